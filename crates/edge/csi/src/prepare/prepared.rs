//! A request for a volume, ready to be sent but for its secrets, which are read only when it is sent and kept nowhere.

use std::collections::BTreeMap;

use bindery_model::Name;
use serde::{Deserialize, Serialize};

use crate::proto::volume_capability::{self, AccessMode, AccessType, BlockVolume, MountVolume};
use crate::proto::volume_content_source::{self, SnapshotSource, VolumeSource};
use crate::proto::{
    CapacityRange, CreateVolumeRequest, Topology, TopologyRequirement, VolumeCapability, VolumeContentSource,
};
use bindery_provisioner_sdk::{Accessibility, Term};

/// A request for a volume, and what its answer will be made into.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The volume's name.
    pub name: String,
    /// How much it has to hold.
    pub required_bytes: i64,
    /// How it is to be reached, by the names that the interface has for it.
    pub access_modes: Vec<String>,
    /// Whether it is a bare device.
    pub block: bool,
    /// The file system on it, otherwise.
    pub fs_type: String,
    /// How that is mounted.
    pub mount_flags: Vec<String>,
    /// What the class tells the driver.
    pub parameters: BTreeMap<String, String>,
    /// What the attributes class tells the driver.
    pub mutable_parameters: BTreeMap<String, String>,
    /// What it is filled from.
    pub source: Option<Source>,
    /// From where it has to be reachable.
    pub topology: Option<Accessibility>,
    /// The secrets that go with it, by name.
    pub secrets: Secrets,
}

/// What a volume is filled from, by the driver's own handles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A snapshot.
    Snapshot(String),
    /// Another volume.
    Volume(String),
}

/// A secret's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl SecretRef {
    /// What is said when it cannot be read.
    pub(crate) fn unreadable(&self, error: &str) -> String {
        format!("error getting secret {} in namespace {}: {error}", self.name, self.namespace)
    }
}

/// The secrets that go with a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// With which it is made and removed.
    pub provisioner: Option<SecretRef>,
    /// With which it is attached to a node.
    pub controller_publish: Option<SecretRef>,
    /// With which a node makes it ready.
    pub node_stage: Option<SecretRef>,
    /// With which a node shows it to a pod.
    pub node_publish: Option<SecretRef>,
    /// With which it is made to grow.
    pub controller_expand: Option<SecretRef>,
    /// With which its file system is made to grow.
    pub node_expand: Option<SecretRef>,
    /// With which its attributes are changed.
    pub controller_modify: Option<SecretRef>,
}

impl Prepared {
    /// The request, with the secrets that were read for it.
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

    /// How the volume is to be reached: one capability for each access mode.
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
