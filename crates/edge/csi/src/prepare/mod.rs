//! Everything that has to be known before a volume is asked for, in the order in which users are told what is wrong.
//!
//! [`next`] is shown what was found out so far and names the next step: an object to read, a finalizer to put on a source so that
//! it does not go away meanwhile, or the request itself. It starts over each time, so that it needs no memory.

mod access;
mod clone;
mod parameters;
mod prepared;
mod secrets;
mod snapshot;
mod source;

pub use prepared::{Prepared, SecretRef, Secrets, Source};

pub(crate) use secrets::{Kind as SecretKind, Names as SecretNames, credentials, reference};
pub(crate) use source::SNAPSHOT_KEPT;

use std::collections::BTreeMap;

use crate::facts::{Facts, Flow, Found, Halt, Patch, fail, nothing, untried};
use crate::fields::{is_block, list, requested, text, text_or_empty, texts};
use crate::migration;
use crate::path;
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect};
use source::Kind;

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read what is at this path.
    Read(String),
    /// Write this.
    Write(Patch),
    /// All is known.
    Ready(Box<Prepared>),
    /// It cannot be done.
    Fail(Failure),
}

/// What is next for a claim.
pub fn next(facts: &Facts<'_>) -> Step {
    match prepared(facts) {
        Ok(prepared) => Step::Ready(Box::new(prepared)),
        Err(Halt::Read(path)) => Step::Read(path),
        Err(Halt::Write(patch)) => Step::Write(patch),
        Err(Halt::Fail(failure)) => Step::Fail(failure),
    }
}

fn prepared(facts: &Facts<'_>) -> Flow<Prepared> {
    let (claim, class, order) = (facts.ask.claim, facts.ask.class, facts.ask.request);
    let parameters = match migration::plugin_of(facts.setup, class) {
        Some(plugin) => migration::parameters(plugin, class)
            .or_else(|error| nothing(format!("failed to translate storage class: {error}")))?,
        None => texts(class, "/parameters"),
    };
    let source = source::named(facts)?;
    let attributes_class = attributes_class(facts);
    able(facts.setup, source.as_ref().map(|source| source.kind), attributes_class.is_some())?;
    if claim.pointer("/spec/selector").is_some_and(|selector| !selector.is_null()) {
        return nothing("claim Selector is not supported");
    }
    let fs_type = parameters::fs_type(&parameters, &facts.setup.default_fs_type).or_else(nothing)?;
    let modes = list(claim, "/spec/accessModes");
    let modes: Result<Vec<_>, String> =
        modes.iter().map(|mode| access::mode(mode, facts.setup.abilities.single_pods)).collect();
    let access_modes = modes.or_else(nothing)?;
    let content = source.as_ref().map(|source| source::content(facts, source)).transpose()?;
    let topology = topology(facts)?;
    let names = SecretNames::of_claim(&order.volume, claim);
    let secrets = secrets(facts, &parameters, &names)?;
    let mut stripped = parameters::stripped(&parameters).or_else(nothing)?;
    if facts.setup.extra_metadata {
        stripped.extend(parameters::metadata(&order.claim, &order.volume));
    }
    let mutable_parameters = attributes_class.map(|name| attributes(facts, name)).transpose()?.unwrap_or_default();
    Ok(Prepared {
        name: order.volume.to_string(),
        required_bytes: requested(claim).unwrap_or_default(),
        access_modes,
        block: is_block(claim),
        fs_type,
        mount_flags: list(class, "/mountOptions"),
        parameters: stripped,
        mutable_parameters,
        source: content,
        topology,
        secrets,
    })
}

/// The attributes class that a claim names, where they are heeded.
fn attributes_class<'a>(facts: &Facts<'a>) -> Option<&'a str> {
    text(facts.ask.claim, "/spec/volumeAttributesClassName")
        .filter(|name| facts.setup.attributes_classes && !name.is_empty())
}

/// Whether the driver can do all of what is asked.
fn able(setup: &Setup, source: Option<Kind>, attributes: bool) -> Flow<()> {
    if let Some(missing) = unable(setup) {
        return nothing(missing);
    }
    match source {
        Some(Kind::Snapshot) if !setup.abilities.snapshots => nothing(
            "CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported",
        ),
        Some(Kind::Claim) if !setup.abilities.clones => {
            nothing("CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported")
        }
        Some(Kind::Snapshot | Kind::Claim) | None if attributes && !setup.abilities.attributes => nothing(
            "CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported",
        ),
        Some(Kind::Snapshot | Kind::Claim) | None => Ok(()),
    }
}

/// Why the driver makes and removes no volumes at all, if it does not.
pub(crate) fn unable(setup: &Setup) -> Option<&'static str> {
    if !setup.abilities.controller {
        return Some(
            "CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported",
        );
    }
    let without =
        "CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported";
    (!setup.abilities.volumes).then_some(without)
}

/// From where the volume has to be reachable, if the driver cares.
fn topology(facts: &Facts<'_>) -> Flow<Option<bindery_provisioner_sdk::Accessibility>> {
    if !facts.setup.abilities.topology {
        return Ok(None);
    }
    facts.ask.request.topology.clone().map_err(Halt::Fail)
}

/// The secrets that a volume goes with. The one that it is made with has to be there already.
fn secrets(facts: &Facts<'_>, parameters: &BTreeMap<String, String>, names: &SecretNames) -> Flow<Secrets> {
    let of = |kind: SecretKind| reference(kind, parameters, names).or_else(untried);
    let provisioner = of(SecretKind::Provisioner)?;
    if let Some(secret) = &provisioner {
        let at = path::secret(&secret.namespace, &secret.name).or_else(untried)?;
        match facts.at(&at)? {
            Found::Object(_) => {}
            Found::Missing(error) | Found::Failed(error) => return untried(secret.unreadable(error)),
        }
    }
    Ok(Secrets {
        provisioner,
        controller_publish: of(SecretKind::ControllerPublish)?,
        node_stage: of(SecretKind::NodeStage)?,
        node_publish: of(SecretKind::NodePublish)?,
        controller_expand: of(SecretKind::ControllerExpand)?,
        node_expand: of(SecretKind::NodeExpand)?,
        controller_modify: of(SecretKind::ControllerModify)?,
    })
}

/// The parameters of an attributes class.
fn attributes(facts: &Facts<'_>, name: &str) -> Flow<BTreeMap<String, String>> {
    let at = path::attributes_class(name).or_else(untried)?;
    let class = match facts.at(&at)? {
        Found::Object(class) => class,
        Found::Missing(error) | Found::Failed(error) => return untried(error.as_str()),
    };
    let (theirs, ours) = (text_or_empty(class, "/driverName"), &facts.setup.driver);
    if theirs != ours {
        return nothing(format!(
            "VAC {name} referenced in PVC is for driver {theirs} which does not match driver name {ours}"
        ));
    }
    Ok(texts(class, "/parameters"))
}

/// Somebody else fills this claim.
fn not_ours<T>(error: &str) -> Flow<T> {
    fail(error, FailureEffect::NotOurs)
}
