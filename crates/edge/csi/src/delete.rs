//! The input of DeleteVolume: the driver's handle, and the secret that the volume was created with.

use std::collections::BTreeMap;

use bindery_model::Annotation;
use bindery_model::migration::Plugin;
use serde_json::Value;

use crate::facts::ReadResult;
use crate::fields::{text, text_or_empty, texts};
use crate::migration;
use crate::path;
use crate::prepare::{SecretKind, SecretNames, SecretRef, missing_capability, reference};
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect};

/// The annotations that name the secret for DeleteVolume.
const SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
const SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";

/// The next step towards deleting a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeleteStep {
    /// Read the class at this path: the volume has no secret annotations.
    ReadClass(String),
    /// Call DeleteVolume with this handle, after reading the secret if there is one.
    Ready { handle: String, secret: Option<SecretRef> },
}

/// The next step towards deleting a volume; `class` is the result of reading its class, if that was
/// done.
pub(crate) fn next_step(setup: &Setup, volume: &Value, class: Option<&ReadResult>) -> Result<DeleteStep, Failure> {
    let Some(handle) = handle(setup, volume).map_err(|error| definite_failure(&error))? else {
        return Err(definite_failure("invalid CSI PV"));
    };
    if let Some(missing) = missing_capability(setup) {
        return Err(definite_failure(missing));
    }
    let annotations = texts(volume, "/metadata/annotations");
    if let (Some(name), Some(namespace)) = (annotations.get(SECRET_NAME), annotations.get(SECRET_NAMESPACE)) {
        let is_given = !name.is_empty() && !namespace.is_empty();
        let secret = is_given.then(|| SecretRef { name: name.clone(), namespace: namespace.clone() });
        return Ok(DeleteStep::Ready { handle, secret });
    }
    let class_name = annotations.get(Annotation::BetaStorageClass.key()).map(String::as_str);
    let class_name = class_name.unwrap_or_else(|| text_or_empty(volume, "/spec/storageClassName"));
    let claim = volume.pointer("/spec/claimRef").filter(|claim| !claim.is_null());
    let (Ok(at), Some(claim)) = (path::class(class_name), claim) else {
        return Ok(DeleteStep::Ready { handle, secret: None });
    };
    match class {
        None => Ok(DeleteStep::ReadClass(at)),
        Some(ReadResult::Object(class)) => {
            let secret = secret_of_class(volume, claim, &texts(class, "/parameters"))
                .map_err(|error| definite_failure(&error))?;
            Ok(DeleteStep::Ready { handle, secret })
        }
        // The class was deleted, and the names of its secrets with it.
        Some(ReadResult::Missing(_)) => Ok(DeleteStep::Ready { handle, secret: None }),
        Some(ReadResult::Failed(error)) => Err(definite_failure(error)),
    }
}

/// Whether a volume is one of an in-tree plugin.
pub(crate) fn is_migrated(volume: &Value) -> bool {
    text(volume, "/spec/csi/volumeHandle").is_none()
}

/// The driver's handle of a volume, including in-tree volumes of the plugin that the driver
/// replaces.
fn handle(setup: &Setup, volume: &Value) -> Result<Option<String>, String> {
    let migrated = Plugin::of_driver(&setup.driver).map(|plugin| migration::handle(plugin, volume)).transpose()?;
    Ok(migrated.flatten().or_else(|| text(volume, "/spec/csi/volumeHandle").map(str::to_owned)))
}

/// The secret that the class names for the volume.
fn secret_of_class(
    volume: &Value,
    claim: &Value,
    parameters: &BTreeMap<String, String>,
) -> Result<Option<SecretRef>, String> {
    let name = text_or_empty(volume, "/metadata/name");
    let names = SecretNames::of(name, text_or_empty(claim, "/namespace"), text_or_empty(claim, "/name"));
    reference(SecretKind::Provisioner, parameters, &names)
        .map_err(|error| format!("failed to get secretreference for volume {name}: {error}"))
}

/// A failure that leaves the volume as it was.
fn definite_failure(error: &str) -> Failure {
    Failure { error: error.into(), effect: FailureEffect::Nothing }
}
