//! With what a volume is removed: the driver's handle, and the secret that it was made with.

use std::collections::BTreeMap;

use bindery_model::Annotation;
use bindery_model::migration::Plugin;
use serde_json::Value;

use crate::facts::Found;
use crate::fields::{text, text_or_empty, texts};
use crate::migration;
use crate::path;
use crate::prepare::{SecretKind, SecretNames, SecretRef, reference, unable};
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect};

/// The annotations that say which secret a volume is removed with.
const SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
const SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";

/// What has to be known before a volume is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need {
    /// Its class has to be read, at this path: it is older than the annotations.
    Class(String),
    /// All is known: its handle, and the secret to be read first, if there is one.
    Nothing { handle: String, secret: Option<SecretRef> },
}

/// What is needed to remove a volume; with its class, once that was read.
pub(crate) fn need(setup: &Setup, volume: &Value, class: Option<&Found>) -> Result<Need, Failure> {
    let Some(handle) = handle(setup, volume).map_err(|error| certain(&error))? else {
        return Err(certain("invalid CSI PV"));
    };
    if let Some(missing) = unable(setup) {
        return Err(certain(missing));
    }
    let annotations = texts(volume, "/metadata/annotations");
    if let (Some(name), Some(namespace)) = (annotations.get(SECRET_NAME), annotations.get(SECRET_NAMESPACE)) {
        let is_given = !name.is_empty() && !namespace.is_empty();
        let secret = is_given.then(|| SecretRef { name: name.clone(), namespace: namespace.clone() });
        return Ok(Need::Nothing { handle, secret });
    }
    let class_name = annotations.get(Annotation::BetaStorageClass.key()).map(String::as_str);
    let class_name = class_name.unwrap_or_else(|| text_or_empty(volume, "/spec/storageClassName"));
    let claim = volume.pointer("/spec/claimRef").filter(|claim| !claim.is_null());
    let (Ok(at), Some(claim)) = (path::class(class_name), claim) else {
        return Ok(Need::Nothing { handle, secret: None });
    };
    match class {
        None => Ok(Need::Class(at)),
        Some(Found::Object(class)) => {
            let secret = by_class(volume, claim, &texts(class, "/parameters")).map_err(|error| certain(&error))?;
            Ok(Need::Nothing { handle, secret })
        }
        // Whoever removed the class has no secrets for its volumes any more.
        Some(Found::Missing(_)) => Ok(Need::Nothing { handle, secret: None }),
        Some(Found::Failed(error)) => Err(certain(error)),
    }
}

/// Whether a volume is one of an in-tree plugin.
pub(crate) fn is_migrated(volume: &Value) -> bool {
    text(volume, "/spec/csi/volumeHandle").is_none()
}

/// The driver's handle of a volume, also of one of the plugin that the driver has taken over from.
fn handle(setup: &Setup, volume: &Value) -> Result<Option<String>, String> {
    let migrated = Plugin::of_driver(&setup.driver).map(|plugin| migration::handle(plugin, volume)).transpose()?;
    Ok(migrated.flatten().or_else(|| text(volume, "/spec/csi/volumeHandle").map(str::to_owned)))
}

/// The secret that a class names for a volume whose claim has only its name left.
fn by_class(volume: &Value, claim: &Value, parameters: &BTreeMap<String, String>) -> Result<Option<SecretRef>, String> {
    let name = text_or_empty(volume, "/metadata/name");
    let names = SecretNames::of(name, text_or_empty(claim, "/namespace"), text_or_empty(claim, "/name"));
    reference(SecretKind::Provisioner, parameters, &names)
        .map_err(|error| format!("failed to get secretreference for volume {name}: {error}"))
}

/// Nothing was done.
fn certain(error: &str) -> Failure {
    Failure { error: error.into(), effect: FailureEffect::Nothing }
}
