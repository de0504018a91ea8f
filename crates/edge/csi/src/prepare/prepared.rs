//! A CreateVolume request without its secrets, which are read only when it is sent and never
//! stored.

use std::collections::BTreeMap;

use bindery_model::Name;
use serde::{Deserialize, Serialize};

use crate::proto::volume_capability::{self, AccessMode, AccessType, BlockVolume, MountVolume};
use crate::proto::volume_content_source::{self, SnapshotSource, VolumeSource};
use crate::proto::{
    CapacityRange, CreateVolumeRequest, Topology, TopologyRequirement, VolumeCapability, VolumeContentSource,
};
use bindery_provisioner_sdk::{Accessibility, Term};

/// A CreateVolume request, and what the PersistentVolume needs besides the response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The volume's name.
    pub name: String,
    /// The requested capacity.
    pub required_bytes: i64,
    /// The access modes, by their CSI names.
    pub access_modes: Vec<String>,
    /// Whether the volume is a raw block device.
    pub block: bool,
    /// The filesystem type, for mounted volumes.
    pub fs_type: String,
    /// The mount options.
    pub mount_flags: Vec<String>,
    /// The class's parameters for the driver.
    pub parameters: BTreeMap<String, String>,
    /// The VolumeAttributesClass's parameters.
    pub mutable_parameters: BTreeMap<String, String>,
    /// The content source.
    pub source: Option<Source>,
    /// The topology requirement.
    pub topology: Option<Accessibility>,
    /// References to the volume's secrets.
    pub secrets: Secrets,
}

/// The content source of a volume, by the driver's handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A snapshot.
    Snapshot(String),
    /// Another volume.
    Volume(String),
}

/// A reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// The secret's name.
    pub name: String,
    /// The secret's namespace.
    pub namespace: String,
}

impl SecretRef {
    /// csi-provisioner's message for a secret that cannot be read.
    pub(crate) fn unreadable(&self, error: &str) -> String {
        format!("error getting secret {} in namespace {}: {error}", self.name, self.namespace)
    }
}

/// References to the secrets for each CSI call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// For CreateVolume and DeleteVolume.
    pub provisioner: Option<SecretRef>,
    /// For ControllerPublishVolume.
    pub controller_publish: Option<SecretRef>,
    /// For NodeStageVolume.
    pub node_stage: Option<SecretRef>,
    /// For NodePublishVolume.
    pub node_publish: Option<SecretRef>,
    /// For ControllerExpandVolume.
    pub controller_expand: Option<SecretRef>,
    /// For NodeExpandVolume.
    pub node_expand: Option<SecretRef>,
    /// For ControllerModifyVolume.
    pub controller_modify: Option<SecretRef>,
}

impl Prepared {
    /// The request with its secrets.
    pub fn request(&self, secrets: BTreeMap<String, String>) -> CreateVolumeRequest {
        CreateVolumeRequest {
            name: self.name.clone(),
            capacity_range: Some(CapacityRange { required_bytes: self.required_bytes, limit_bytes: 0 }),
            volume_capabilities: self.capabilities(),
            parameters: self.parameters.clone(),
            secrets,
            volume_content_source: self.source.as_ref().map(content_source),
            accessibility_requirements: self.topology.as_ref().map(requirement),
            mutable_parameters: self.mutable_parameters.clone(),
        }
    }

    /// One volume capability for each access mode.
    pub fn capabilities(&self) -> Vec<VolumeCapability> {
        let access_type = || match self.block {
            true => AccessType::Block(BlockVolume {}),
            false => AccessType::Mount(MountVolume {
                fs_type: self.fs_type.clone(),
                mount_flags: self.mount_flags.clone(),
                volume_mount_group: String::new(),
            }),
        };
        let mode = |name: &String| {
            let mode = volume_capability::access_mode::Mode::from_str_name(name).unwrap_or_default();
            VolumeCapability { access_type: Some(access_type()), access_mode: Some(AccessMode { mode: mode.into() }) }
        };
        self.access_modes.iter().map(mode).collect()
    }
}

fn content_source(source: &Source) -> VolumeContentSource {
    let kind = match source.clone() {
        Source::Snapshot(snapshot_id) => volume_content_source::Type::Snapshot(SnapshotSource { snapshot_id }),
        Source::Volume(volume_id) => volume_content_source::Type::Volume(VolumeSource { volume_id }),
    };
    VolumeContentSource { r#type: Some(kind) }
}

fn requirement(wanted: &Accessibility) -> TopologyRequirement {
    let all = |terms: &[Term]| terms.iter().map(topology).collect();
    TopologyRequirement { requisite: all(&wanted.requisite), preferred: all(&wanted.preferred) }
}

fn topology(term: &Term) -> Topology {
    let pair = |(key, value): &(Name, Name)| (key.to_string(), value.to_string());
    Topology { segments: term.iter().map(pair).collect() }
}
