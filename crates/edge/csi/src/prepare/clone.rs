//! Cloning: a claim whose data source is another claim.

use serde_json::Value;

use super::prepared::Source;
use super::source::SourceRef;
use crate::facts::{Facts, Flow, ReadResult, fail_before_call};
use crate::fields::{is_block, is_deleting, requested, text, text_or_empty};
use crate::path;

/// csi-provisioner reports several problems of a source volume with the same vague message, so that
/// a user learns nothing about a volume they may not see.
const VAGUE: &str = "claim in dataSource not bound or invalid";

/// The volume handle of the source claim.
pub(super) fn handle(facts: &Facts<'_>, source_ref: &SourceRef<'_>) -> Flow<Source> {
    let source = match facts.at(&path::claim(source_ref.namespace, source_ref.name).or_else(fail_before_call)?)? {
        ReadResult::Object(source) => source,
        ReadResult::Missing(_) => {
            return fail_before_call(read_error(
                facts,
                source_ref,
                &format!("persistentvolumeclaim {:?} not found", source_ref.name),
            ));
        }
        ReadResult::Failed(error) => return fail_before_call(read_error(facts, source_ref, error)),
    };
    check_source(facts.ask.claim, source, source_ref.name).or_else(fail_before_call)?;
    let volume_name = text_or_empty(source, "/spec/volumeName");
    if volume_name.is_empty() {
        return fail_before_call(format!("volume name is empty in source PVC {}", source_ref.name));
    }
    let volume = match facts.at(&path::volume(volume_name).or_else(fail_before_call)?)? {
        ReadResult::Object(volume) => volume,
        ReadResult::Missing(error) | ReadResult::Failed(error) => {
            tracing::warn!(volume = volume_name, source = source_ref.name, error, "cannot read the source volume");
            return fail_before_call(VAGUE);
        }
    };
    if let Err(why) = check_volume(source, volume, text_or_empty(facts.ask.class, "/provisioner")) {
        tracing::warn!(volume = volume_name, source = source_ref.name, why, "cannot clone the source volume");
        return fail_before_call(VAGUE);
    }
    check_mode(facts.ask.claim, volume).or_else(fail_before_call)?;
    Ok(Source::Volume(text_or_empty(volume, "/spec/csi/volumeHandle").to_owned()))
}

fn read_error(facts: &Facts<'_>, source_ref: &SourceRef<'_>, error: &str) -> String {
    let namespace = text_or_empty(facts.ask.claim, "/metadata/namespace");
    format!("error getting PVC {} (namespace {namespace:?}) from api server: {error}", source_ref.name)
}

/// Checks that the source claim can be cloned, and that the new claim is not smaller.
fn check_source(claim: &Value, source: &Value, name: &str) -> Result<(), String> {
    let phase = text_or_empty(source, "/status/phase");
    if phase != "Bound" {
        // csi-provisioner prints the whole status; this is how Go formats an otherwise empty one.
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
    let (wanted, existing) = (requested(claim).unwrap_or_default(), requested(source).unwrap_or_default());
    if wanted < existing {
        return Err(format!(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested {wanted} \
             but source is {existing}"
        ));
    }
    Ok(())
}

/// Checks that the volume is bound to the source claim and belongs to this driver.
fn check_volume(source: &Value, volume: &Value, driver: &str) -> Result<(), &'static str> {
    let same = |of_volume: &str, of_claim: &str| text_or_empty(volume, of_volume) == text_or_empty(source, of_claim);
    if volume.pointer("/spec/csi").is_none() {
        return Err("not a CSI volume");
    }
    if text_or_empty(volume, "/spec/csi/driver") != driver {
        return Err("it belongs to another driver");
    }
    let is_bound = same("/spec/claimRef/uid", "/metadata/uid")
        && same("/spec/claimRef/namespace", "/metadata/namespace")
        && same("/spec/claimRef/name", "/metadata/name");
    if !is_bound {
        return Err("not bound to the source claim");
    }
    if text(volume, "/status/phase") != Some("Bound") {
        return Err("the phase is not Bound");
    }
    Ok(())
}

fn check_mode(claim: &Value, volume: &Value) -> Result<(), String> {
    let word = |block: bool| if block { "Block" } else { "Filesystem" };
    let (wanted, existing) = (is_block(claim), is_block(volume));
    if wanted == existing {
        return Ok(());
    }
    Err(format!(
        "the source PVC and destination PVCs must have the same volume mode for cloning.  Source is {}, but new PVC requested {}",
        word(existing),
        word(wanted),
    ))
}
