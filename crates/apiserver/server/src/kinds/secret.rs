//! Secret.

use super::config_map::{MOST_BYTES, check_immutable};
use super::{AGE, ALL_VERBS, Kind, MANNERS, NAME, Rules, Scene, Selectable, Sight, column, print};
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::value::{at, entries, map, set, set_default, take, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, column("Type", "What it is for."), column("Data", "How many entries there are."), AGE],
    cells,
    space: "secrets",
    rules: &Secret,
    manners: MANNERS,
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let count = map(object, &["data"]).map_or(0, serde_json::Map::len);
    vec![print::name(object), text(object, &["type"]).into(), count.into(), print::age(object, sight)]
}

#[derive(Debug)]
struct Secret;

impl Rules for Secret {
    fn fill_in(&self, object: &mut Value) {
        for (key, value) in take(object, &["stringData"]).as_ref().and_then(Value::as_object).into_iter().flatten() {
            set(object, &["data", key], STANDARD.encode(value.as_str().unwrap_or_default().as_bytes()));
        }
        set_default(object, &["type"], "Opaque");
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let mut bytes = 0;
        for (key, value) in entries(object, &["data"]) {
            for flaw in names::config_key(key) {
                flaws.invalid(format!("data[{key}]"), key, &flaw);
            }
            bytes += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        }
        if bytes > MOST_BYTES {
            flaws.too_long("data", MOST_BYTES);
        }
        let mut needs = |key: &str| {
            if at(object, &["data", key]).is_none() {
                flaws.required(format!("data[{key}]"), "");
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
            "kubernetes.io/dockercfg" => check_json(object, ".dockercfg", flaws),
            "kubernetes.io/dockerconfigjson" => check_json(object, ".dockerconfigjson", flaws),
            "kubernetes.io/service-account-token" => {
                let path = ["metadata", "annotations", "kubernetes.io/service-account.name"];
                if text(object, &path).is_empty() {
                    flaws.required("metadata.annotations[kubernetes.io/service-account.name]", "");
                }
            }
            _ => {}
        }
    }

    fn warn(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let is_tls = text(new, &["type"]) == "kubernetes.io/tls";
        is_tls.then(|| tls_flaw(new)).flatten().into_iter().collect()
    }

    fn care(&self) -> Care {
        Care::Both
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let (ours, theirs) = (text(new, &["type"]), text(old, &["type"]));
        if ours != theirs {
            flaws.invalid("type", ours, "field is immutable");
        }
        check_immutable(new, old, &["data"], flaws);
        self.check(new, scene, flaws);
    }

    fn selectable(&self) -> &'static [Selectable] {
        &[("type", |secret| text(secret, &["type"]).to_owned())]
    }
}

/// An entry that has to be there, and to be JSON.
fn check_json(object: &Value, key: &str, flaws: &mut FieldErrors) {
    let path = format!("data[{key}]");
    match at(object, &["data", key]).and_then(Value::as_str) {
        None => flaws.required(path, ""),
        Some(data) => {
            // Base64 that is none was refused before.
            let flaw = bindery_fields::decode::object_mistake(&STANDARD.decode(data).unwrap_or_default());
            if let Some(flaw) = flaw {
                flaws.invalid(path, "<secret contents redacted>", &flaw);
            }
        }
    }
}

/// What no client can make a connection with, for it is not even the form of certificate and key.
fn tls_flaw(object: &Value) -> Option<String> {
    [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find_map(|(key, what)| {
        let data = STANDARD.decode(text(object, &["data", key])).unwrap_or_default();
        let has_block = data.windows(11).any(|window| window == b"-----BEGIN ");
        (!has_block).then(|| format!("tls: failed to find any PEM data in {what} input"))
    })
}
