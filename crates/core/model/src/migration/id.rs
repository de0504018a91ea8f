//! Translating the volume IDs of in-tree plugins to CSI volume handles.

use super::Plugin;
use super::topology::{BETA_ZONE, ZONE, ZONE_DELIMITER, region};
use crate::{Attacher, Handle, Name, Volume};

/// The CSI volume handle of an in-tree volume; an error in upstream's words when there is none.
pub fn csi_id(handle: &Handle, volume: &Volume) -> Result<Name, String> {
    match handle.by {
        Attacher::AwsEbs => aws_id(&handle.id),
        Attacher::GcePd => gce_id(&handle.id, volume),
        Attacher::AzureBlob => Err("only managed disks are supported in csi migration".into()),
        Attacher::AzureDisk | Attacher::Cinder | Attacher::Portworx | Attacher::Csi => Ok(handle.id.clone()),
    }
}

/// An EBS volume ID: bare, or the last part of a URL that includes the zone.
fn aws_id(id: &Name) -> Result<Name, String> {
    let Some(address) = id.strip_prefix("aws://") else { return Ok(id.clone()) };
    let volume = address.split_once('/').map_or("", |(_, path)| path.trim_matches('/'));
    if volume.starts_with("vol-") && !volume.contains('/') {
        Ok(volume.into())
    } else {
        Err(format!("failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({id})"))
    }
}

/// The path of a GCE disk: with its zone, its region if it is in several zones, or neither.
fn gce_id(disk: &Name, volume: &Volume) -> Result<Name, String> {
    const UNKNOWN: &str = "UNSPECIFIED";
    let label = |key: &str| volume.labels.get(key).filter(|label| !label.is_empty());
    let label = label(BETA_ZONE).or_else(|| label(ZONE)).map(Name::as_str).unwrap_or_default();
    let zones: Vec<&str> = label.split(ZONE_DELIMITER).collect();
    let location = match zones.as_slice() {
        [""] => format!("zones/{UNKNOWN}"),
        [zone] => format!("zones/{zone}"),
        zones => match region(Plugin::GcePd, zones) {
            Ok(Some(region)) => format!("regions/{region}"),
            Ok(None) | Err(_) => {
                return Err(format!("failed to get region from zones: {label:?} are not of one region"));
            }
        },
    };
    Ok(format!("projects/{UNKNOWN}/{location}/disks/{disk}").into())
}
