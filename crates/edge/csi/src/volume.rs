//! Turns a CreateVolumeResponse into a PersistentVolume, or reports why the new volume is unusable.

use serde_json::{Map, Value, json};

use crate::fields::{is_block, list, text};
use crate::migration;
use crate::prepare::{Prepared, SecretRef};
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::{CreateVolumeResponse, Topology, Volume};
use crate::setup::Setup;
use bindery_model::Quantity;
use bindery_provisioner_sdk::ProvisionContext;

/// The volume attribute that identifies the provisioner that created the volume.
const IDENTITY: &str = "storage.kubernetes.io/csiProvisionerIdentity";

/// A volume that the driver created but that does not satisfy the claim. It has to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableVolume {
    /// Why it is unusable.
    pub error: String,
    /// The driver's volume handle; `None` if the response has none, so that nothing can be deleted.
    pub handle: Option<String>,
    /// How csi-provisioner's message continues if deleting the volume fails, too.
    pub orphaned: &'static str,
}

/// Builds the PersistentVolume for a response. The name, claimRef and class are added later.
pub fn from_response(
    setup: &Setup,
    ask: ProvisionContext<'_>,
    prepared: &Prepared,
    response: CreateVolumeResponse,
) -> Result<Value, UnusableVolume> {
    let Some(volume) = response.volume.filter(|volume| !volume.volume_id.is_empty()) else {
        let error = "CreateVolume succeeded but returned no volume handle".to_owned();
        return Err(UnusableVolume { error, handle: None, orphaned: "" });
    };
    check(setup, ask, prepared, &volume)?;
    let bytes = if volume.capacity_bytes == 0 { prepared.required_bytes } else { volume.capacity_bytes };
    let mut spec = Map::new();
    spec.insert("accessModes".into(), list(ask.claim, "/spec/accessModes").into());
    spec.insert("capacity".into(), json!({"storage": in_binary_units(bytes)}));
    let mount_options = list(ask.class, "/mountOptions");
    if !mount_options.is_empty() {
        spec.insert("mountOptions".into(), mount_options.into());
    }
    let copied = [
        ("persistentVolumeReclaimPolicy", text(ask.class, "/reclaimPolicy")),
        ("volumeMode", text(ask.claim, "/spec/volumeMode")),
        ("volumeAttributesClassName", attributes_class(setup, ask)),
    ];
    spec.extend(copied.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?.into()))));
    if setup.capabilities.topology
        && let Some(affinity) = affinity(&volume.accessible_topology)
    {
        spec.insert("nodeAffinity".into(), affinity);
    }
    let handle = volume.volume_id.clone();
    spec.insert("csi".into(), source(setup, ask, prepared, volume));
    let persistent_volume = json!({"metadata": {"annotations": annotations(prepared)}, "spec": spec});
    match migration::plugin_of(setup, ask.class) {
        Some(plugin) => migration::to_in_tree(plugin, persistent_volume).map_err(|error| UnusableVolume {
            error: format!("cannot translate the volume to {}: {error}", plugin.name()),
            handle: Some(handle),
            orphaned: "Cleanup of volume",
        }),
        None => Ok(persistent_volume),
    }
}

/// Checks that the volume satisfies the claim.
fn check(setup: &Setup, ask: ProvisionContext<'_>, prepared: &Prepared, volume: &Volume) -> Result<(), UnusableVolume> {
    let (has, wants) = (volume.capacity_bytes, prepared.required_bytes);
    if has != 0 && has < wants {
        return Err(UnusableVolume {
            error: format!("created volume capacity {has} less than requested capacity {wants}"),
            handle: Some(volume.volume_id.clone()),
            orphaned: "Cleanup of volume",
        });
    }
    let given = |field: &str| ask.claim.pointer(field).is_some_and(|value| !value.is_null() && value != "");
    let from_elsewhere = setup.cross_namespace && given("/spec/dataSourceRef/namespace");
    if (given("/spec/dataSource") || from_elsewhere) && volume.content_source.is_none() {
        return Err(UnusableVolume {
            error: "volume content source missing".into(),
            handle: Some(volume.volume_id.clone()),
            orphaned: "cleanup of volume",
        });
    }
    Ok(())
}

fn attributes_class<'a>(setup: &Setup, ask: ProvisionContext<'a>) -> Option<&'a str> {
    text(ask.claim, "/spec/volumeAttributesClassName").filter(|name| setup.attributes_classes && !name.is_empty())
}

/// The volume's `spec.csi`.
fn source(setup: &Setup, ask: ProvisionContext<'_>, prepared: &Prepared, volume: Volume) -> Value {
    let mut attributes = Map::from_iter([(IDENTITY.to_owned(), Value::from(setup.identity.as_str()))]);
    attributes.extend(volume.volume_context.into_iter().map(|(key, value)| (key, Value::from(value))));
    let mut csi = Map::from_iter([
        ("driver".to_owned(), Value::from(setup.driver.as_str())),
        ("volumeHandle".to_owned(), volume.volume_id.into()),
        ("volumeAttributes".to_owned(), attributes.into()),
    ]);
    if !is_block(ask.claim) && !prepared.fs_type.is_empty() {
        csi.insert("fsType".into(), prepared.fs_type.clone().into());
    }
    if setup.read_only && prepared.access_modes == [Mode::MultiNodeReaderOnly.as_str_name()] {
        csi.insert("readOnly".into(), true.into());
    }
    let secrets = &prepared.secrets;
    let references = [
        ("controllerPublishSecretRef", &secrets.controller_publish),
        ("nodeStageSecretRef", &secrets.node_stage),
        ("nodePublishSecretRef", &secrets.node_publish),
        ("controllerExpandSecretRef", &secrets.controller_expand),
        ("nodeExpandSecretRef", &secrets.node_expand),
    ];
    for (field, secret) in references {
        if let Some(SecretRef { name, namespace }) = secret {
            csi.insert(field.into(), json!({"name": name, "namespace": namespace}));
        }
    }
    csi.into()
}

/// The annotations that name the secrets for deletion and modification. Empty values mean that no
/// secret is needed.
fn annotations(prepared: &Prepared) -> Map<String, Value> {
    let mut annotations = Map::new();
    let mut put = |word: &str, secret: Option<&SecretRef>| {
        let (name, namespace) = secret.map(|secret| (&*secret.name, &*secret.namespace)).unwrap_or_default();
        annotations.insert(format!("volume.kubernetes.io/{word}-secret-name"), name.into());
        annotations.insert(format!("volume.kubernetes.io/{word}-secret-namespace"), namespace.into());
    };
    put("provisioner-deletion", prepared.secrets.provisioner.as_ref());
    if let Some(secret) = &prepared.secrets.controller_modify {
        put("controller-modify", Some(secret));
    }
    annotations
}

/// The node affinity for the volume's topology, in a stable order; `None` if every node can access
/// it.
fn affinity(reachable: &[Topology]) -> Option<Value> {
    let term = |topology: &Topology| {
        let one = |(key, value)| json!({"key": key, "operator": "In", "values": [value]});
        json!({"matchExpressions": topology.segments.iter().map(one).collect::<Vec<_>>()})
    };
    let terms: Vec<Value> = reachable.iter().filter(|topology| !topology.segments.is_empty()).map(term).collect();
    (!terms.is_empty()).then(|| json!({"required": {"nodeSelectorTerms": terms}}))
}

/// Formats bytes in the largest binary unit that represents them exactly.
pub(crate) fn in_binary_units(bytes: i64) -> String {
    Quantity::of_bytes(u64::try_from(bytes).unwrap_or_default()).to_string()
}

#[cfg(test)]
mod tests;
