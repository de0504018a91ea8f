//! Filling a claim from another claim's volume.

use serde_json::Value;

use super::prepared::Source;
use super::source::Named;
use crate::facts::{Facts, Flow, Found, untried};
use crate::fields::{is_block, is_deleting, requested, text, text_or_empty};
use crate::path;

/// Several things that may be wrong with another's volume are told in the same vague words: who asks need not learn more of it.
const VAGUE: &str = "claim in dataSource not bound or invalid";

/// The handle of the source's volume.
pub(super) fn handle(facts: &Facts<'_>, named: &Named<'_>) -> Flow<Source> {
    let source = match facts.at(&path::claim(named.namespace, named.name).or_else(untried)?)? {
        Found::Object(source) => source,
        Found::Missing(_) => {
            return untried(unread(facts, named, &format!("persistentvolumeclaim {:?} not found", named.name)));
        }
        Found::Failed(error) => return untried(unread(facts, named, error)),
    };
    fit(facts.ask.claim, source, named.name).or_else(untried)?;
    let volume_name = text_or_empty(source, "/spec/volumeName");
    if volume_name.is_empty() {
        return untried(format!("volume name is empty in source PVC {}", named.name));
    }
    let volume = match facts.at(&path::volume(volume_name).or_else(untried)?)? {
        Found::Object(volume) => volume,
        Found::Missing(error) | Found::Failed(error) => {
            tracing::warn!(volume = volume_name, source = named.name, error, "the source's volume cannot be read");
            return untried(VAGUE);
        }
    };
    if let Err(why) = is_its_volume(source, volume, text_or_empty(facts.ask.class, "/provisioner")) {
        tracing::warn!(volume = volume_name, source = named.name, why, "the source's volume cannot be cloned");
        return untried(VAGUE);
    }
    same_mode(facts.ask.claim, volume).or_else(untried)?;
    Ok(Source::Volume(text_or_empty(volume, "/spec/csi/volumeHandle").to_owned()))
}

fn unread(facts: &Facts<'_>, named: &Named<'_>, error: &str) -> String {
    let namespace = text_or_empty(facts.ask.claim, "/metadata/namespace");
    format!("error getting PVC {} (namespace {namespace:?}) from api server: {error}", named.name)
}

/// Whether the source is there to be cloned, and the claim large enough.
fn fit(claim: &Value, source: &Value, name: &str) -> Result<(), String> {
    let phase = text_or_empty(source, "/status/phase");
    if phase != "Bound" {
        // As upstream prints the whole status of a claim that has nothing yet.
        return Err(format!(
            "the PVC DataSource {name} must have a status of Bound.  Got {{{phase} [] map[] [] map[] map[] <nil> nil}}"
        ));
    }
    if is_deleting(source) {
        return Err(format!("the PVC DataSource {name} is currently being deleted"));
    }
    if text(source, "/spec/storageClassName").is_none() {
        return Err(format!("the source PVC ({name}) storageclass cannot be empty"));
    }
    if text(claim, "/spec/storageClassName").is_none() {
        let name = text_or_empty(claim, "/metadata/name");
        return Err(format!("the requested PVC ({name}) storageclass cannot be empty"));
    }
    let (wanted, there) = (requested(claim).unwrap_or_default(), requested(source).unwrap_or_default());
    if wanted < there {
        return Err(format!(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested {wanted} \
             but source is {there}"
        ));
    }
    Ok(())
}

/// Whether it is the volume that the source is bound to, and one of this driver.
fn is_its_volume(source: &Value, volume: &Value, driver: &str) -> Result<(), &'static str> {
    let same = |of_volume: &str, of_claim: &str| text_or_empty(volume, of_volume) == text_or_empty(source, of_claim);
    if volume.pointer("/spec/csi").is_none() {
        return Err("it is not a CSI volume");
    }
    if text_or_empty(volume, "/spec/csi/driver") != driver {
        return Err("another driver has it");
    }
    let is_bound = same("/spec/claimRef/uid", "/metadata/uid")
        && same("/spec/claimRef/namespace", "/metadata/namespace")
        && same("/spec/claimRef/name", "/metadata/name");
    if !is_bound {
        return Err("it is not bound to the source");
    }
    if text(volume, "/status/phase") != Some("Bound") {
        return Err("it is not Bound");
    }
    Ok(())
}

fn same_mode(claim: &Value, volume: &Value) -> Result<(), String> {
    let word = |block: bool| if block { "Block" } else { "Filesystem" };
    let (wanted, there) = (is_block(claim), is_block(volume));
    if wanted == there {
        return Ok(());
    }
    Err(format!(
        "the source PVC and destination PVCs must have the same volume mode for cloning.  Source is {}, but new PVC requested {}",
        word(there),
        word(wanted),
    ))
}
