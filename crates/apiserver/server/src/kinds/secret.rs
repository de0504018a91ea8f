//! Secret.

use super::config_map::{MAX_BYTES, validate_immutable};
use super::{AGE, DEFAULT_KIND, Kind, NAME, PrintContext, Selectable, Strategy, WriteContext, column, print};
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::value::{at, entries, map, set, set_if_empty, take, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    kind: "Secret",
    plural: "secrets",
    namespaced: true,
    columns: &[NAME, column("Type", "The type of the secret."), column("Data", "The number of entries."), AGE],
    cells,
    strategy: &Secret,
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let count = map(object, &["data"]).map_or(0, serde_json::Map::len);
    vec![print::name(object), text(object, &["type"]).into(), count.into(), print::age(object, context)]
}

#[derive(Debug)]
struct Secret;

impl Strategy for Secret {
    fn set_defaults(&self, object: &mut Value) {
        for (key, value) in take(object, &["stringData"]).as_ref().and_then(Value::as_object).into_iter().flatten() {
            set(object, &["data", key], STANDARD.encode(value.as_str().unwrap_or_default().as_bytes()));
        }
        set_if_empty(object, &["type"], "Opaque");
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let mut bytes = 0;
        for (key, value) in entries(object, &["data"]) {
            for error in names::config_key(key) {
                errors.invalid(format!("data[{key}]"), key, &error);
            }
            bytes += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        }
        if bytes > MAX_BYTES {
            errors.too_long("data", MAX_BYTES);
        }
        let mut needs = |key: &str| {
            if at(object, &["data", key]).is_none() {
                errors.required(format!("data[{key}]"), "");
            }
        };
        match text(object, &["type"]) {
            "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(needs),
            "kubernetes.io/ssh-auth" => needs("ssh-privatekey"),
            "kubernetes.io/basic-auth" => {
                let keys = ["username", "password"];
                if keys.iter().all(|key| at(object, &["data", key]).is_none()) {
                    keys.into_iter().for_each(needs);
                }
            }
            "kubernetes.io/dockercfg" => validate_json(object, ".dockercfg", errors),
            "kubernetes.io/dockerconfigjson" => validate_json(object, ".dockerconfigjson", errors),
            "kubernetes.io/service-account-token" => {
                let path = ["metadata", "annotations", "kubernetes.io/service-account.name"];
                if text(object, &path).is_empty() {
                    errors.required("metadata.annotations[kubernetes.io/service-account.name]", "");
                }
            }
            _ => {}
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let is_tls = text(new, &["type"]) == "kubernetes.io/tls";
        is_tls.then(|| tls_warning(new)).flatten().into_iter().collect()
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::UpdateAndCreate
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let (ours, theirs) = (text(new, &["type"]), text(old, &["type"]));
        if ours != theirs {
            errors.invalid("type", ours, "field is immutable");
        }
        validate_immutable(new, old, &["data"], errors);
        self.validate(new, context, errors);
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
        &[("type", |secret| text(secret, &["type"]).to_owned())]
    }
}

/// Validates a required entry that must be JSON.
fn validate_json(object: &Value, key: &str, errors: &mut FieldErrors) {
    let path = format!("data[{key}]");
    match at(object, &["data", key]).and_then(Value::as_str) {
        None => errors.required(path, ""),
        Some(data) => {
            // Invalid base64 was rejected by the decoder.
            let error = bindery_fields::decode::object_error(&STANDARD.decode(data).unwrap_or_default());
            if let Some(error) = error {
                errors.invalid(path, "<secret contents redacted>", &error);
            }
        }
    }
}

/// A warning if a certificate or key is not PEM.
fn tls_warning(object: &Value) -> Option<String> {
    [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find_map(|(key, what)| {
        let data = STANDARD.decode(text(object, &["data", key])).unwrap_or_default();
        let has_block = data.windows(11).any(|window| window == b"-----BEGIN ");
        (!has_block).then(|| format!("tls: failed to find any PEM data in {what} input"))
    })
}
