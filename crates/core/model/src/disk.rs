//! Disks that pods refer to inline, without a claim.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::handle::WireInTree;
use crate::{Handle, Name};

/// A disk that a pod refers to inline, without a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// A disk of an in-tree plugin that is migrated to CSI.
    InTree {
        /// The disk.
        handle: Handle,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
    /// An iSCSI target.
    Iscsi {
        /// Its qualified name.
        iqn: Name,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
    /// A Ceph RBD image.
    Rbd {
        /// The Ceph monitors.
        monitors: Box<[Name]>,
        /// The pool of the image.
        pool: Name,
        /// The name of the image.
        image: Name,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
}

impl Disk {
    /// Whether two pods cannot use their disks on one node: it is the same disk, and not both mount
    /// it read-only.
    pub fn conflicts_with(&self, other: &Disk) -> bool {
        use crate::Attacher::{AwsEbs, AzureBlob, AzureDisk, Cinder, Csi, GcePd, Portworx};
        match (self, other) {
            (Disk::InTree { handle, read_only }, Disk::InTree { handle: theirs, read_only: they_read }) => {
                let is_shared = match handle.by {
                    AwsEbs => false,
                    GcePd => *read_only && *they_read,
                    // Left to the attach limits, as upstream does.
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

/// The volume sources of a pod that are disks.
#[derive(Default)]
pub(crate) struct WireDisk {
    pub iscsi: Option<WireIscsi>,
    pub rbd: Option<WireRbd>,
    pub in_tree: WireInTree,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireIscsi {
    iqn: Name,
    read_only: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireRbd {
    monitors: Option<Vec<Name>>,
    pool: Option<Name>,
    image: Name,
    read_only: Option<bool>,
}

impl WireDisk {
    /// The disk, if the source is one.
    pub fn parse(self) -> Option<Disk> {
        if let Some(iscsi) = self.iscsi {
            return Some(Disk::Iscsi { iqn: iscsi.iqn, read_only: iscsi.read_only.unwrap_or_default() });
        }
        if let Some(rbd) = self.rbd {
            return Some(Disk::Rbd {
                monitors: rbd.monitors.unwrap_or_default().into(),
                // The API's default.
                pool: rbd.pool.unwrap_or(Name::new_static("rbd")),
                image: rbd.image,
                read_only: rbd.read_only.unwrap_or_default(),
            });
        }
        self.in_tree.parse().map(|(handle, read_only)| Disk::InTree { handle, read_only })
    }
}
