//! Translates a CSI volume to an in-tree volume.

use bindery_model::migration::Plugin;
use serde_json::{Map, Value, json};

use super::{field, topology};
use crate::fields::{text, text_or_empty, texts};

/// The annotation that names the Azure resource group of a share.
pub(super) const RESOURCE_GROUP: &str = "kubernetes.io/azure-file-resource-group";

/// Prefix and suffix of the secret's name for an Azure storage account.
pub(super) const ACCOUNT_SECRET: (&str, &str) = ("azure-storage-account-", "-secret");

/// Translates a volume that the driver created to one of the in-tree plugin that it replaces.
pub(crate) fn to_in_tree(plugin: Plugin, mut volume: Value) -> Result<Value, String> {
    let csi = volume["spec"]["csi"].take();
    let source = match plugin {
        Plugin::AwsEbs => disk("volumeID", text_or_empty(&csi, "/volumeHandle"), &csi, partition(&csi, false)?),
        Plugin::GcePd => disk("pdName", gce_name(&csi)?, &csi, partition(&csi, true)?),
        Plugin::Cinder | Plugin::Portworx => disk("volumeID", text_or_empty(&csi, "/volumeHandle"), &csi, None),
        Plugin::AzureDisk => azure_disk(&csi)?,
        Plugin::AzureFile => azure_file(&csi, &mut volume)?,
        Plugin::Vsphere => vsphere(&csi),
    };
    topology::to_in_tree(plugin, &mut volume)?;
    if let Some(spec) = volume["spec"].as_object_mut() {
        spec.remove("csi");
        spec.insert(field(plugin).into(), source);
    }
    Ok(volume)
}

/// The fields that most in-tree disks have.
fn disk(id_field: &str, id: &str, csi: &Value, partition: Option<i32>) -> Value {
    let mut source = Map::from_iter([(id_field.to_owned(), Value::from(id))]);
    for same in ["fsType", "readOnly"] {
        if let Some(value) = csi.get(same) {
            source.insert(same.into(), value.clone());
        }
    }
    if let Some(partition) = partition.filter(|partition| *partition != 0) {
        source.insert("partition".into(), partition.into());
    }
    source.into()
}

/// The disk's partition. Google's driver may use an empty string for none.
fn partition(csi: &Value, may_be_empty: bool) -> Result<Option<i32>, String> {
    let written = text(csi, "/volumeAttributes/partition").filter(|written| !(may_be_empty && written.is_empty()));
    let number = |written: &str| written.parse().map_err(|_| format!("partition {written:?} is not a number"));
    written.map(number).transpose()
}

/// The disk name in a handle such as `projects/p/zones/z/disks/name`.
fn gce_name(csi: &Value) -> Result<&str, String> {
    let handle = text_or_empty(csi, "/volumeHandle");
    handle.split('/').nth(5).ok_or_else(|| format!("volume handle {handle:?} contains no disk name"))
}

fn azure_disk(csi: &Value) -> Result<Value, String> {
    let uri = text_or_empty(csi, "/volumeHandle");
    let name = azure_name(uri).ok_or_else(|| format!("volume handle {uri:?} contains no disk name"))?;
    let mut source = json!({
        "diskName": name,
        "diskURI": uri,
        "fsType": text_or_empty(csi, "/fsType"),
        "readOnly": csi["readOnly"].as_bool().unwrap_or_default(),
        "kind": "Managed",
    });
    for (key, value) in texts(csi, "/volumeAttributes").into_iter().filter(|(_, value)| !value.is_empty()) {
        match key.to_lowercase().as_str() {
            "cachingmode" => source["cachingMode"] = value.into(),
            "fstype" => source["fsType"] = value.into(),
            _ => {}
        }
    }
    Ok(source)
}

/// The name at the end of an Azure disk URI.
fn azure_name(uri: &str) -> Option<&str> {
    let is_blob = uri.len() > 4 && uri.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    let (before, name) = uri.rsplit_once(if is_blob { "/vhds/" } else { "/providers/Microsoft.Compute/disks/" })?;
    let leads = match is_blob {
        true => before.starts_with("http") && before.contains("://"),
        false => before.split_once("/subscriptions/").is_some_and(|(_, rest)| rest.contains("/resourceGroups/")),
    };
    (leads && !name.is_empty()).then_some(name)
}

fn azure_file(csi: &Value, volume: &mut Value) -> Result<Value, String> {
    let (mut share, mut secret, mut namespace) = (String::new(), String::new(), None);
    for (key, value) in texts(csi, "/volumeAttributes") {
        match key.to_lowercase().as_str() {
            "sharename" => share = value,
            "secretname" => secret = value,
            "secretnamespace" => namespace = Some(value),
            _ => {}
        }
    }
    let staged = text_or_empty(csi, "/nodeStageSecretRef/name");
    if !staged.is_empty() {
        secret = staged.to_owned();
        namespace = Some(text_or_empty(csi, "/nodeStageSecretRef/namespace").to_owned());
    }
    if share.is_empty() || secret.is_empty() {
        // A handle starts with `group#account#share#disk`.
        let handle = text_or_empty(csi, "/volumeHandle");
        let mut words = handle.splitn(4, '#');
        let (Some(group), Some(account), Some(its_share)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("volume handle {handle:?} contains no share name"));
        };
        if share.is_empty() {
            share = its_share.to_owned();
        }
        if secret.is_empty() {
            secret = format!("{}{account}{}", ACCOUNT_SECRET.0, ACCOUNT_SECRET.1);
        }
        if !group.is_empty() {
            volume["metadata"]["annotations"][RESOURCE_GROUP] = group.into();
        }
    }
    let namespace = namespace.unwrap_or_else(|| "default".into());
    let mut source = json!({"shareName": share, "secretName": secret, "secretNamespace": namespace});
    if let Some(read_only) = csi.get("readOnly") {
        source["readOnly"] = read_only.clone();
    }
    Ok(source)
}

/// The in-tree plugin identifies a disk by its path, which the driver reports as an attribute.
fn vsphere(csi: &Value) -> Value {
    let mut source = json!({"volumePath": text_or_empty(csi, "/volumeAttributes/initialvolumefilepath")});
    if let Some(fs_type) = csi.get("fsType") {
        source["fsType"] = fs_type.clone();
    }
    source
}
