//! Preparing a CreateVolume request: all checks, in the order in which csi-provisioner reports
//! errors.
//!
//! [`next`] looks at the objects read so far and returns the next step: an object to read, a
//! finalizer to add to a data source so that it is not deleted in the meantime, or the request. It
//! starts over each time, so it keeps no state.

mod access;
mod clone;
mod parameters;
mod prepared;
mod secrets;
mod snapshot;
mod source;

pub use prepared::{Prepared, SecretRef, Secrets, Source};

pub(crate) use secrets::{Kind as SecretKind, Names as SecretNames, credentials, reference};
pub(crate) use source::SNAPSHOT_FINALIZER;

use std::collections::BTreeMap;

use crate::facts::{Facts, Flow, Halt, Patch, ReadResult, fail, fail_before_call, reject};
use crate::fields::{is_block, list, requested, text, text_or_empty, texts};
use crate::migration;
use crate::path;
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect};
use source::Kind;

/// The next step of preparation.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the object at this path.
    Read(String),
    /// Write this patch.
    Write(Patch),
    /// The request is complete.
    Ready(Box<Prepared>),
    /// Preparation failed.
    Fail(Failure),
}

/// The next step of preparing a claim.
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
            .or_else(|error| reject(format!("failed to translate storage class: {error}")))?,
        None => texts(class, "/parameters"),
    };
    let source = source::source_ref(facts)?;
    let attributes_class = attributes_class(facts);
    check_capabilities(facts.setup, source.as_ref().map(|source| source.kind), attributes_class.is_some())?;
    if claim.pointer("/spec/selector").is_some_and(|selector| !selector.is_null()) {
        return reject("claim Selector is not supported");
    }
    let fs_type = parameters::fs_type(&parameters, &facts.setup.default_fs_type).or_else(reject)?;
    let modes = list(claim, "/spec/accessModes");
    let modes: Result<Vec<_>, String> =
        modes.iter().map(|mode| access::mode(mode, facts.setup.capabilities.single_node_multi_writer)).collect();
    let access_modes = modes.or_else(reject)?;
    let content = source.as_ref().map(|source| source::resolve(facts, source)).transpose()?;
    let topology = topology(facts)?;
    let names = SecretNames::of_claim(&order.volume, claim);
    let secrets = secrets(facts, &parameters, &names)?;
    let mut driver_parameters = parameters::for_driver(&parameters).or_else(reject)?;
    if facts.setup.extra_metadata {
        driver_parameters.extend(parameters::metadata(&order.claim, &order.volume));
    }
    let mutable_parameters = attributes_class.map(|name| attributes(facts, name)).transpose()?.unwrap_or_default();
    Ok(Prepared {
        name: order.volume.to_string(),
        required_bytes: requested(claim).unwrap_or_default(),
        access_modes,
        block: is_block(claim),
        fs_type,
        mount_flags: list(class, "/mountOptions"),
        parameters: driver_parameters,
        mutable_parameters,
        source: content,
        topology,
        secrets,
    })
}

/// The claim's VolumeAttributesClass, if the feature is enabled.
fn attributes_class<'a>(facts: &Facts<'a>) -> Option<&'a str> {
    text(facts.ask.claim, "/spec/volumeAttributesClassName")
        .filter(|name| facts.setup.attributes_classes && !name.is_empty())
}

/// Checks that the driver has every capability that the claim needs.
fn check_capabilities(setup: &Setup, source: Option<Kind>, attributes: bool) -> Flow<()> {
    if let Some(missing) = missing_capability(setup) {
        return reject(missing);
    }
    match source {
        Some(Kind::Snapshot) if !setup.capabilities.create_delete_snapshot => reject(
            "CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported",
        ),
        Some(Kind::Claim) if !setup.capabilities.clone_volume => {
            reject("CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported")
        }
        Some(Kind::Snapshot | Kind::Claim) | None if attributes && !setup.capabilities.modify_volume => reject(
            "CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported",
        ),
        Some(Kind::Snapshot | Kind::Claim) | None => Ok(()),
    }
}

/// Why the driver cannot create and delete volumes at all, if it cannot.
pub(crate) fn missing_capability(setup: &Setup) -> Option<&'static str> {
    if !setup.capabilities.controller_service {
        return Some(
            "CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported",
        );
    }
    let without =
        "CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported";
    (!setup.capabilities.create_delete_volume).then_some(without)
}

/// The topology requirement, if the driver supports topology.
fn topology(facts: &Facts<'_>) -> Flow<Option<bindery_provisioner_sdk::Accessibility>> {
    if !facts.setup.capabilities.topology {
        return Ok(None);
    }
    facts.ask.request.topology.clone().map_err(Halt::Fail)
}

/// The secrets that the class names. The provisioner secret has to exist already.
fn secrets(facts: &Facts<'_>, parameters: &BTreeMap<String, String>, names: &SecretNames) -> Flow<Secrets> {
    let of = |kind: SecretKind| reference(kind, parameters, names).or_else(fail_before_call);
    let provisioner = of(SecretKind::Provisioner)?;
    if let Some(secret) = &provisioner {
        let at = path::secret(&secret.namespace, &secret.name).or_else(fail_before_call)?;
        match facts.at(&at)? {
            ReadResult::Object(_) => {}
            ReadResult::Missing(error) | ReadResult::Failed(error) => {
                return fail_before_call(secret.unreadable(error));
            }
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

/// The parameters of a VolumeAttributesClass.
fn attributes(facts: &Facts<'_>, name: &str) -> Flow<BTreeMap<String, String>> {
    let at = path::attributes_class(name).or_else(fail_before_call)?;
    let class = match facts.at(&at)? {
        ReadResult::Object(class) => class,
        ReadResult::Missing(error) | ReadResult::Failed(error) => return fail_before_call(error.as_str()),
    };
    let (driver, our_driver) = (text_or_empty(class, "/driverName"), &facts.setup.driver);
    if driver != our_driver {
        return reject(format!(
            "VAC {name} referenced in PVC is for driver {driver} which does not match driver name {our_driver}"
        ));
    }
    Ok(texts(class, "/parameters"))
}

/// Fails because another controller provisions this claim.
fn not_ours<T>(error: &str) -> Flow<T> {
    fail(error, FailureEffect::NotOurs)
}
