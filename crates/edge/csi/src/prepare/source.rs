//! The data source of a claim, and whether the claim may use it.

use bindery_model::finalizer;
use serde_json::Value;

use super::prepared::Source;
use super::{clone, not_ours, snapshot};
use crate::facts::{Facts, Flow, Halt, Patch, ReadResult, fail_before_call, reject};
use crate::fields::{has_finalizer, list, text, text_or_empty};
use crate::path;
use bindery_provisioner_sdk::Failure;

/// The API group of VolumeSnapshots.
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";

/// Protects a VolumeSnapshot from deletion while a volume is created from it.
pub(crate) const SNAPSHOT_FINALIZER: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// The kinds of data sources that CSI drivers support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshot,
    Claim,
}

/// A claim's data source.
pub(super) struct SourceRef<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub namespace: &'a str,
}

/// The claim's data source, if CSI drivers support its kind.
pub(super) fn source_ref<'a>(facts: &Facts<'a>) -> Flow<Option<SourceRef<'a>>> {
    let claim = facts.ask.claim;
    let at = |field: &str| claim.pointer(field).filter(|source| !source.is_null());
    let home = text_or_empty(claim, "/metadata/namespace");
    let (source, namespace) = match (at("/spec/dataSource"), at("/spec/dataSourceRef")) {
        (Some(source), _) => (source, home),
        (None, Some(source)) => match text(source, "/namespace").filter(|namespace| !namespace.is_empty()) {
            None => (source, home),
            Some(_) if !facts.setup.cross_namespace => {
                return reject(
                    "dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled",
                );
            }
            Some(namespace) => (source, namespace),
        },
        (None, None) => return Ok(None),
    };
    if namespace != home {
        check_grant(facts, source, namespace, home)?;
    }
    let (name, group) = (text_or_empty(source, "/name"), text_or_empty(source, "/apiGroup"));
    if name.is_empty() {
        return reject(format!("the PVC source not found for PVC {}", text_or_empty(claim, "/metadata/name")));
    }
    let kind = match text_or_empty(source, "/kind") {
        "VolumeSnapshot" if group != SNAPSHOTS => {
            return reject(format!(
                "the PVC source does not belong to the right APIGroup. Expected {SNAPSHOTS}, Got {group}"
            ));
        }
        "VolumeSnapshot" => Kind::Snapshot,
        "PersistentVolumeClaim" => Kind::Claim,
        _ => return not_ours("Assuming an external populator will provision the volume"),
    };
    Ok(Some(SourceRef { kind, name, namespace }))
}

/// Checks that a ReferenceGrant in the source's namespace allows the reference.
fn check_grant(facts: &Facts<'_>, source: &Value, namespace: &str, home: &str) -> Flow<()> {
    let at = path::reference_grants(namespace).or_else(reject)?;
    let grants = match facts.at(&at)? {
        ReadResult::Object(list) => {
            list.pointer("/items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        }
        ReadResult::Missing(error) | ReadResult::Failed(error) => {
            return reject(format!("error getting ReferenceGrants in {namespace} namespace from api server: {error}"));
        }
    };
    let entries =
        |grant: &Value, field: &str| grant.pointer(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let from = |from: &Value| {
        text_or_empty(from, "/group").is_empty()
            && text(from, "/kind") == Some("PersistentVolumeClaim")
            && text(from, "/namespace") == Some(home)
    };
    let to = |to: &Value| {
        let name = text_or_empty(to, "/name");
        text_or_empty(to, "/group") == text_or_empty(source, "/apiGroup")
            && text(to, "/kind") == text(source, "/kind")
            && (name.is_empty() || Some(name) == text(source, "/name"))
    };
    let grants_it =
        |grant: &Value| entries(grant, "/spec/from").iter().any(from) && entries(grant, "/spec/to").iter().any(to);
    if grants.iter().any(grants_it) {
        return Ok(());
    }
    let (claim, name) = (facts.ask.claim, text_or_empty(source, "/name"));
    reject(format!(
        "accessing {namespace}/{name} of {} dataSource from {home}/{} isn't allowed",
        text_or_empty(source, "/kind"),
        text_or_empty(claim, "/metadata/name"),
    ))
}

/// The driver's handle for a usable data source, after the source has got its protection finalizer.
pub(super) fn resolve(facts: &Facts<'_>, source: &SourceRef<'_>) -> Flow<Source> {
    let (word, found) = match source.kind {
        Kind::Snapshot => ("VolumeSnapshot", snapshot::handle(facts, source)),
        Kind::Claim => ("PersistentVolumeClaim", clone::handle(facts, source)),
    };
    let handle = found.map_err(|halt| match halt {
        Halt::Fail(Failure { error, effect: after }) => Halt::Fail(Failure {
            error: format!("error getting handle for DataSource Type {word} by Name {}: {error}", source.name),
            effect: after,
        }),
        Halt::Read(path) => Halt::Read(path),
        Halt::Write(patch) => Halt::Write(patch),
    })?;
    match source.kind {
        Kind::Snapshot => {
            ensure_finalizer(facts, &path::snapshot(source.namespace, source.name), SNAPSHOT_FINALIZER, true)?
        }
        Kind::Claim => ensure_finalizer(facts, &path::claim(source.namespace, source.name), finalizer::CLONING, false)?,
    }
    Ok(handle)
}

/// Adds the finalizer that protects a source. If writing is forbidden, an `optional` finalizer is
/// skipped.
fn ensure_finalizer(facts: &Facts<'_>, at: &Result<String, String>, finalizer: &str, optional: bool) -> Flow<()> {
    let at = at.as_ref().or_else(|error| fail_before_call(error.as_str()))?;
    let source = match facts.at(at)? {
        ReadResult::Object(source) => source,
        ReadResult::Missing(error) | ReadResult::Failed(error) => return fail_before_call(error.as_str()),
    };
    if has_finalizer(source, finalizer) {
        return Ok(());
    }
    match facts.unwritten(at) {
        Some((_, true)) if optional => Ok(()),
        Some((error, _)) => fail_before_call(error),
        None => {
            let mut finalizers = list(source, "/metadata/finalizers");
            finalizers.push(finalizer.to_owned());
            Err(Halt::Write(Patch::finalizers(at, source, &finalizers)))
        }
    }
}
