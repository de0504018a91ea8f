//! What a claim is to be filled from, and whether it may be.

use bindery_model::finalizer;
use serde_json::Value;

use super::prepared::Source;
use super::{clone, not_ours, snapshot};
use crate::facts::{Facts, Flow, Found, Halt, Patch, nothing, untried};
use crate::fields::{has_finalizer, list, text, text_or_empty};
use crate::path;
use bindery_provisioner_sdk::Failure;

/// The API group of snapshots.
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";

/// Keeps a snapshot while a claim is filled from it.
pub(crate) const SNAPSHOT_KEPT: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// What drivers can fill a volume from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshot,
    Claim,
}

/// What a claim names as its source.
pub(super) struct Named<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub namespace: &'a str,
}

/// The source that a claim names, if it names one that drivers can fill it from.
pub(super) fn named<'a>(facts: &Facts<'a>) -> Flow<Option<Named<'a>>> {
    let claim = facts.ask.claim;
    let at = |field: &str| claim.pointer(field).filter(|source| !source.is_null());
    let home = text_or_empty(claim, "/metadata/namespace");
    let (source, namespace) = match (at("/spec/dataSource"), at("/spec/dataSourceRef")) {
        (Some(source), _) => (source, home),
        (None, Some(source)) => match text(source, "/namespace").filter(|namespace| !namespace.is_empty()) {
            None => (source, home),
            Some(_) if !facts.setup.cross_namespace => {
                return nothing(
                    "dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled",
                );
            }
            Some(namespace) => (source, namespace),
        },
        (None, None) => return Ok(None),
    };
    if namespace != home {
        granted(facts, source, namespace, home)?;
    }
    let (name, group) = (text_or_empty(source, "/name"), text_or_empty(source, "/apiGroup"));
    if name.is_empty() {
        return nothing(format!("the PVC source not found for PVC {}", text_or_empty(claim, "/metadata/name")));
    }
    let kind = match text_or_empty(source, "/kind") {
        "VolumeSnapshot" if group != SNAPSHOTS => {
            return nothing(format!(
                "the PVC source does not belong to the right APIGroup. Expected {SNAPSHOTS}, Got {group}"
            ));
        }
        "VolumeSnapshot" => Kind::Snapshot,
        "PersistentVolumeClaim" => Kind::Claim,
        _ => return not_ours("Assuming an external populator will provision the volume"),
    };
    Ok(Some(Named { kind, name, namespace }))
}

/// Whether another namespace lets its sources be used from here.
fn granted(facts: &Facts<'_>, source: &Value, namespace: &str, home: &str) -> Flow<()> {
    let at = path::reference_grants(namespace).or_else(nothing)?;
    let grants = match facts.at(&at)? {
        Found::Object(list) => list.pointer("/items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default(),
        Found::Missing(error) | Found::Failed(error) => {
            return nothing(format!("error getting ReferenceGrants in {namespace} namespace from api server: {error}"));
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
    nothing(format!(
        "accessing {namespace}/{name} of {} dataSource from {home}/{} isn't allowed",
        text_or_empty(source, "/kind"),
        text_or_empty(claim, "/metadata/name"),
    ))
}

/// The driver's handle of a source that is fit to be used, once a finalizer keeps it from going away.
pub(super) fn content(facts: &Facts<'_>, source: &Named<'_>) -> Flow<Source> {
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
        Kind::Snapshot => kept(facts, &path::snapshot(source.namespace, source.name), SNAPSHOT_KEPT, true)?,
        Kind::Claim => kept(facts, &path::claim(source.namespace, source.name), finalizer::CLONING, false)?,
    }
    Ok(handle)
}

/// Sees to it that a source has the finalizer that keeps it. Where we may not write, a source that can do without is used as it is.
fn kept(facts: &Facts<'_>, at: &Result<String, String>, finalizer: &str, can_do_without: bool) -> Flow<()> {
    let at = at.as_ref().or_else(|error| untried(error.as_str()))?;
    let source = match facts.at(at)? {
        Found::Object(source) => source,
        Found::Missing(error) | Found::Failed(error) => return untried(error.as_str()),
    };
    if has_finalizer(source, finalizer) {
        return Ok(());
    }
    match facts.unwritten(at) {
        Some((_, true)) if can_do_without => Ok(()),
        Some((error, _)) => untried(error),
        None => {
            let mut finalizers = list(source, "/metadata/finalizers");
            finalizers.push(finalizer.to_owned());
            Err(Halt::Write(Patch::finalizers(at, source, &finalizers)))
        }
    }
}
