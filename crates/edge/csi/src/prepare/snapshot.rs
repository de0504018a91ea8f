//! Restoring: a claim whose data source is a VolumeSnapshot.

use serde_json::Value;

use super::prepared::Source;
use super::source::{SNAPSHOT_FINALIZER, SourceRef};
use crate::facts::{Facts, Flow, ReadResult, fail_before_call};
use crate::fields::{bytes, has_finalizer, is_deleting, requested, text, text_or_empty};
use crate::path;

/// On a VolumeSnapshotContent: volumes with another volume mode may be created from it.
const MODE_MAY_CHANGE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

/// The handle of the snapshot.
pub(super) fn handle(facts: &Facts<'_>, source_ref: &SourceRef<'_>) -> Flow<Source> {
    let name = source_ref.name;
    let snapshot = match facts.at(&path::snapshot(source_ref.namespace, name).or_else(fail_before_call)?)? {
        ReadResult::Object(snapshot) => snapshot,
        ReadResult::Missing(error) | ReadResult::Failed(error) => {
            return fail_before_call(format!("error getting snapshot {name} from api server: {error}"));
        }
    };
    // A snapshot that was in use before its deletion stays usable.
    if is_deleting(snapshot) && !has_finalizer(snapshot, SNAPSHOT_FINALIZER) {
        return fail_before_call(format!("snapshot {name} is being deleted"));
    }
    let Some(content_name) = text(snapshot, "/status/boundVolumeSnapshotContentName") else {
        return fail_before_call(format!("snapshot {name} not bound"));
    };
    let content = match facts.at(&path::snapshot_content(content_name).or_else(fail_before_call)?)? {
        ReadResult::Object(content) => content,
        ReadResult::Missing(error) | ReadResult::Failed(error) => {
            tracing::warn!(content = content_name, snapshot = name, error, "cannot read VolumeSnapshotContent");
            return fail_before_call(format!("error getting snapshotcontent {content_name} for snapshot {name}"));
        }
    };
    check_binding(snapshot, content, content_name, name).or_else(fail_before_call)?;
    if text_or_empty(content, "/spec/driver") != text_or_empty(facts.ask.class, "/provisioner") {
        let class = text_or_empty(facts.ask.class, "/metadata/name");
        return fail_before_call(format!(
            "snapshotcontent {content_name} for snapshot {name} is not handled by CSI driver of StorageClass {class}"
        ));
    }
    if snapshot.pointer("/status/readyToUse").and_then(Value::as_bool) != Some(true) {
        return fail_before_call(format!("snapshot {name} is not Ready"));
    }
    let Some(handle) = text(content, "/status/snapshotHandle") else {
        return fail_before_call(format!("snapshot handle {name} is not available"));
    };
    check_size(facts.ask.claim, snapshot, name).or_else(fail_before_call)?;
    if facts.setup.keep_volume_mode {
        check_mode(facts.ask.claim, content).or_else(fail_before_call)?;
    }
    Ok(Source::Snapshot(handle.to_owned()))
}

/// Checks that snapshot and content refer to each other.
fn check_binding(snapshot: &Value, content: &Value, content_name: &str, name: &str) -> Result<(), String> {
    let same = |field: &str| {
        text_or_empty(content, &format!("/spec/volumeSnapshotRef/{field}"))
            == text_or_empty(snapshot, &format!("/metadata/{field}"))
    };
    if same("uid") && same("namespace") && same("name") {
        return Ok(());
    }
    Err(format!("snapshotcontent {content_name} for snapshot {name} is bound to a different snapshot"))
}

fn check_size(claim: &Value, snapshot: &Value, name: &str) -> Result<(), String> {
    let Some(least) = bytes(snapshot, "/status/restoreSize") else { return Ok(()) };
    let Some(wanted) = requested(claim) else {
        let claim = text_or_empty(claim, "/metadata/name");
        return Err(format!("error getting capacity for PVC {claim} when creating snapshot {name}"));
    };
    if wanted < least {
        return Err(format!(
            "requested volume size {wanted} is less than the size {least} for the source snapshot {name}"
        ));
    }
    Ok(())
}

/// Checks that the claim's volume mode is the snapshot's, or that a change is allowed.
fn check_mode(claim: &Value, content: &Value) -> Result<(), String> {
    let (taken, wanted) = (text(content, "/spec/sourceVolumeMode"), text(claim, "/spec/volumeMode"));
    if taken.is_none() || wanted.is_none() || taken == wanted {
        return Ok(());
    }
    let content_name = text_or_empty(content, "/metadata/name");
    let allowed = content.pointer("/metadata/annotations").and_then(|annotations| annotations.get(MODE_MAY_CHANGE));
    let why = match allowed.and_then(Value::as_str) {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => return Ok(()),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => {
            format!("{MODE_MAY_CHANGE} is set to false on snapshotcontent {content_name}")
        }
        Some(other) => format!(
            "failed to convert {MODE_MAY_CHANGE} annotation value to boolean with error: strconv.ParseBool: parsing {other:?}: \
             invalid syntax"
        ),
        None => format!("{MODE_MAY_CHANGE} annotation is not present on snapshotcontent {content_name}"),
    };
    let (namespace, name) = (text_or_empty(claim, "/metadata/namespace"), text_or_empty(claim, "/metadata/name"));
    Err(format!(
        "requested volume {namespace}/{name} modifies the mode of the source volume but does not have permission to do so. {why}"
    ))
}
