//! The volumes of a pod, as far as it matters where the pod can run.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::handle::{WireAzure, WireGcePd, WireId, WireInTree};
use crate::{Handle, Name, PodVolume};

/// A disk that a pod names itself, without a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// One of an in-tree plugin whose work a CSI driver takes over.
    InTree {
        /// Which disk.
        handle: Handle,
        /// Whether it is only read.
        read_only: bool,
    },
    /// One of iSCSI.
    Iscsi {
        /// Which disk.
        iqn: Name,
        /// Whether it is only read.
        read_only: bool,
    },
    /// An image in Ceph.
    Rbd {
        /// Who knows where it is.
        monitors: Box<[Name]>,
        /// The pool that it is in.
        pool: Name,
        /// Its name there.
        image: Name,
        /// Whether it is only read.
        read_only: bool,
    },
}

/// A volume of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A claim, by name.
    Claim(Name),
    /// A volume that lives as long as the pod, by its name in the pod: a claim stands for it.
    Ephemeral(Name),
    /// A disk.
    Disk(Box<Disk>),
    /// Something that is there on every node.
    Other,
}

impl Mount {
    /// The name of the claim that is used, in a pod of that name.
    pub fn claim(&self, pod: &str) -> Option<Name> {
        match self {
            Mount::Claim(name) => Some(name.clone()),
            Mount::Ephemeral(volume) => Some(format!("{pod}-{volume}").into()),
            Mount::Disk(_) | Mount::Other => None,
        }
    }
}

impl Disk {
    /// Whether two pods cannot use their disks on one node: it is the same disk, and not both only read it.
    pub fn conflicts_with(&self, other: &Disk) -> bool {
        use crate::Attacher::{AwsEbs, AzureBlob, AzureDisk, Cinder, Csi, GcePd, Portworx};
        match (self, other) {
            (Disk::InTree { handle, read_only }, Disk::InTree { handle: theirs, read_only: they_read }) => {
                let is_shared = match handle.by {
                    AwsEbs => false,
                    GcePd => *read_only && *they_read,
                    // These are left to who attaches them.
                    AzureDisk | AzureBlob | Cinder | Portworx | Csi => true,
                };
                handle == theirs && !is_shared
            }
            (Disk::Iscsi { iqn, read_only }, Disk::Iscsi { iqn: theirs, read_only: they_read }) => {
                iqn == theirs && !(*read_only && *they_read)
            }
            (
                Disk::Rbd { monitors, pool, image, read_only },
                Disk::Rbd { monitors: their_monitors, pool: their_pool, image: their_image, read_only: they_read },
            ) => {
                let known: BTreeSet<&Name> = monitors.iter().collect();
                let is_same = pool == their_pool && image == their_image;
                is_same && their_monitors.iter().any(|monitor| known.contains(monitor)) && !(*read_only && *they_read)
            }
            (Disk::InTree { .. } | Disk::Iscsi { .. } | Disk::Rbd { .. }, _) => false,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    name: Name,
    persistent_volume_claim: Option<WireClaim>,
    ephemeral: Option<WireEphemeral>,
    iscsi: Option<WireIscsi>,
    rbd: Option<WireRbd>,
    aws_elastic_block_store: Option<WireId>,
    gce_persistent_disk: Option<WireGcePd>,
    azure_disk: Option<WireAzure>,
    cinder: Option<WireId>,
    portworx_volume: Option<WireId>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireClaim {
    claim_name: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireIscsi {
    iqn: Name,
    read_only: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireRbd {
    monitors: Option<Vec<Name>>,
    pool: Option<Name>,
    image: Name,
    read_only: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireEphemeral {
    volume_claim_template: Option<Box<RawValue>>,
}

impl Wire {
    /// The volume of a pod of that name, if it is a claim's. One that names no claim is none.
    pub fn claim(&self, pod: &str) -> Option<PodVolume> {
        let name = self.name.clone();
        match (&self.persistent_volume_claim, &self.ephemeral) {
            (Some(claim), _) if claim.claim_name.is_empty() => None,
            (Some(claim), _) => Some(PodVolume { name, claim: claim.claim_name.clone(), template: None }),
            (None, Some(ephemeral)) => {
                let template = ephemeral.volume_claim_template.as_ref().map_or("{}", |template| template.get());
                Some(PodVolume { claim: format!("{pod}-{name}").into(), template: Some(template.into()), name })
            }
            (None, None) => None,
        }
    }
}

impl From<Wire> for Mount {
    fn from(wire: Wire) -> Mount {
        let disk = |disk| Mount::Disk(Box::new(disk));
        let in_tree = WireInTree {
            aws_elastic_block_store: wire.aws_elastic_block_store,
            gce_persistent_disk: wire.gce_persistent_disk,
            azure_disk: wire.azure_disk,
            cinder: wire.cinder,
            portworx_volume: wire.portworx_volume,
        };
        if let Some(claim) = wire.persistent_volume_claim {
            Mount::Claim(claim.claim_name)
        } else if wire.ephemeral.is_some() {
            Mount::Ephemeral(wire.name)
        } else if let Some(iscsi) = wire.iscsi {
            disk(Disk::Iscsi { iqn: iscsi.iqn, read_only: iscsi.read_only.unwrap_or_default() })
        } else if let Some(rbd) = wire.rbd {
            disk(Disk::Rbd {
                monitors: rbd.monitors.unwrap_or_default().into(),
                // What an API server fills in.
                pool: rbd.pool.unwrap_or(Name::new_static("rbd")),
                image: rbd.image,
                read_only: rbd.read_only.unwrap_or_default(),
            })
        } else if let Some((handle, read_only)) = in_tree.parse() {
            disk(Disk::InTree { handle, read_only })
        } else {
            Mount::Other
        }
    }
}

impl<'de> Deserialize<'de> for Mount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Mount, D::Error> {
        Wire::deserialize(from).map(Mount::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attacher;

    fn mount(json: &str) -> Mount {
        serde_json::from_str(json).expect("a volume of a pod")
    }

    #[test]
    fn the_volumes_of_a_pod_are_told_apart() {
        let disk = |by, id: &str, read_only| {
            Mount::Disk(Box::new(Disk::InTree { handle: Handle { by, id: id.into() }, read_only }))
        };
        let cases = [
            (r#"{"name":"a","persistentVolumeClaim":{"claimName":"data"}}"#, Mount::Claim("data".into())),
            (r#"{"name":"a","ephemeral":{"volumeClaimTemplate":{}}}"#, Mount::Ephemeral("a".into())),
            (r#"{"name":"a","emptyDir":{}}"#, Mount::Other),
            (r#"{"gcePersistentDisk":{"pdName":"d","readOnly":true}}"#, disk(Attacher::GcePd, "d", true)),
            (r#"{"awsElasticBlockStore":{"volumeID":"d","readOnly":true}}"#, disk(Attacher::AwsEbs, "d", false)),
            (r#"{"azureDisk":{"diskURI":"d"}}"#, disk(Attacher::AzureDisk, "d", false)),
            (r#"{"azureDisk":{"diskURI":"d","kind":"Dedicated"}}"#, disk(Attacher::AzureBlob, "d", false)),
            (r#"{"cinder":{"volumeID":"d"}}"#, disk(Attacher::Cinder, "d", false)),
            (r#"{"portworxVolume":{"volumeID":"d"}}"#, disk(Attacher::Portworx, "d", false)),
        ];
        for (json, expected) in cases {
            assert_eq!(mount(json), expected, "{json}");
        }
        let scratch = mount(r#"{"name":"scratch","ephemeral":{}}"#);
        assert_eq!(scratch.claim("pod").as_deref(), Some("pod-scratch"));
    }
}
