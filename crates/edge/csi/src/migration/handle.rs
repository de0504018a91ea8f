//! The CSI volume handle of an in-tree volume.

use bindery_model::Volume;
use bindery_model::migration::{Plugin, csi_id};
use serde_json::Value;

use super::field;
use super::source::{ACCOUNT_SECRET, RESOURCE_GROUP};
use crate::fields::{text, text_or_empty, texts};

/// The handle by which the driver knows an in-tree volume; `None` if the volume is not of this
/// plugin.
pub(crate) fn handle(plugin: Plugin, volume: &Value) -> Result<Option<String>, String> {
    let Some(source) = volume["spec"].get(field(plugin)).filter(|source| !source.is_null()) else { return Ok(None) };
    let handle = match plugin {
        Plugin::AwsEbs | Plugin::GcePd | Plugin::AzureDisk | Plugin::Cinder | Plugin::Portworx => known(volume)?,
        Plugin::AzureFile => azure_file(source, volume)?,
        Plugin::Vsphere => text_or_empty(source, "/volumePath").to_owned(),
    };
    match handle.is_empty() {
        true => Err(format!("{} does not identify a volume", field(plugin))),
        false => Ok(Some(handle)),
    }
}

/// The handle of a plugin whose volumes are attached.
fn known(volume: &Value) -> Result<String, String> {
    let volume = Volume::from_json(volume.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let Some(handle) = &volume.handle else { return Ok(String::new()) };
    Ok(csi_id(handle, &volume)?.to_string())
}

/// An Azure file share's handle: `group#account#share#volume#namespace`.
fn azure_file(source: &Value, volume: &Value) -> Result<String, String> {
    let secret = text_or_empty(source, "/secretName");
    let (before, after) = ACCOUNT_SECRET;
    let account = secret.split_once(before).and_then(|(_, rest)| rest.rsplit_once(after)).map(|(account, _)| account);
    let account = account.filter(|account| !account.is_empty()).unwrap_or(secret);
    let namespace =
        text(source, "/secretNamespace").unwrap_or_else(|| text_or_empty(volume, "/spec/claimRef/namespace"));
    if namespace.is_empty() {
        return Err("neither the volume nor its claim gives the namespace of the secret".into());
    }
    let annotations = texts(volume, "/metadata/annotations");
    let group = annotations.get(RESOURCE_GROUP).map(String::as_str).unwrap_or_default();
    let (share, name) = (text_or_empty(source, "/shareName"), text_or_empty(volume, "/metadata/name"));
    Ok([group, account, share, name, namespace].join("#"))
}
