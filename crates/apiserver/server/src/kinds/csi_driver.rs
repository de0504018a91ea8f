//! CSIDriver.

use super::{
    AGE, Behavior, Column, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column,
    print,
};
use crate::field_errors::FieldErrors;
use crate::value::{at, list, set, set_if_absent, text, texts};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const fn flag(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "boolean", format: "", description, priority: 0 }
}

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "CSIDriver",
    plural: "csidrivers",
    columns: &[
        NAME,
        flag("AttachRequired", "Whether volumes have to be attached."),
        flag("PodInfoOnMount", "Whether the driver requires pod information on mount."),
        flag("StorageCapacity", "Whether the driver publishes its capacity."),
        column("TokenRequests", "The audiences of the tokens that the driver requires."),
        flag("RequiresRepublish", "Whether volumes are republished periodically."),
        column("Modes", "The supported volume lifecycle modes."),
        AGE,
    ],
    cells,
    strategy: &CsiDriver,
    behavior: Behavior { unconditional_update: false, shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let flag = |field, none| at(object, &["spec", field]).cloned().unwrap_or(Value::Bool(none));
    let tokens: Vec<&str> =
        list(object, &["spec", "tokenRequests"]).iter().map(|one| text(one, &["audience"])).collect();
    let modes: Vec<&str> = texts(object, &["spec", "volumeLifecycleModes"]).collect();
    let or = |texts: Vec<&str>, none: &str| if texts.is_empty() { none.to_owned() } else { texts.join(",") };
    vec![
        print::name(object),
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        or(tokens, "<unset>").into(),
        flag("requiresRepublish", false),
        or(modes, "<none>").into(),
        print::age(object, context),
    ]
}

#[derive(Debug)]
struct CsiDriver;

impl Strategy for CsiDriver {
    fn set_defaults(&self, object: &mut Value) {
        for (field, value) in [
            ("attachRequired", json!(true)),
            ("podInfoOnMount", json!(false)),
            ("storageCapacity", json!(false)),
            ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
            ("requiresRepublish", json!(false)),
            ("seLinuxMount", json!(false)),
        ] {
            set_if_absent(object, &["spec", field], value);
        }
        if list(object, &["spec", "volumeLifecycleModes"]).is_empty() {
            set(object, &["spec", "volumeLifecycleModes"], json!(["Persistent"]));
        }
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, _context: &WriteContext<'_>) {
        if at(new, &["spec"]) != at(old, &["spec"]) {
            let generation = at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
            set(new, &["metadata", "generation"], generation + 1);
        }
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let policy = text(object, &["spec", "fsGroupPolicy"]);
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        if !policies.contains(&policy) {
            errors.unsupported("spec.fsGroupPolicy", policy, &policies);
        }
        let mut audiences = BTreeSet::new();
        for (index, request) in list(object, &["spec", "tokenRequests"]).iter().enumerate() {
            let audience = text(request, &["audience"]);
            if !audiences.insert(audience) {
                errors.duplicate(format!("spec.tokenRequests[{index}].audience"), audience);
                continue;
            }
            let path = format!("spec.tokenRequests[{index}].expirationSeconds");
            match at(request, &["expirationSeconds"]).and_then(Value::as_i64) {
                Some(seconds) if seconds < 600 => {
                    errors.invalid(path, seconds, "may not specify a duration less than 10 minutes");
                }
                Some(seconds) if seconds > 1 << 32 => {
                    errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds");
                }
                Some(_) | None => {}
            }
        }
        for mode in texts(object, &["spec", "volumeLifecycleModes"]) {
            if !matches!(mode, "Persistent" | "Ephemeral") {
                errors.unsupported("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
            }
        }
        let period = at(object, &["spec", "nodeAllocatableUpdatePeriodSeconds"]).and_then(Value::as_i64);
        if let Some(period) = period.filter(|period| *period < 10) {
            let path = "spec.nodeAllocatableUpdatePeriodSeconds";
            errors.invalid(path, period, "must be greater than or equal to 10 seconds");
        }
        if let Some(set) = at(object, &["spec", "serviceAccountTokenInSecrets"])
            && audiences.is_empty()
        {
            let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
            errors.invalid("spec.serviceAccountTokenInSecrets", set.clone(), why);
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let unset = at(new, &["spec", "serviceAccountTokenInSecrets"]).is_none();
        if !unset || list(new, &["spec", "tokenRequests"]).is_empty() {
            return Vec::new();
        }
        let why =
            "if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
        vec![format!("spec.serviceAccountTokenInSecrets is unset; {why}")]
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        self.validate(new, context, errors);
        for (field, path) in
            [("attachRequired", "spec.attachedRequired"), ("volumeLifecycleModes", "spec.volumeLifecycleModes")]
        {
            let now = at(new, &["spec", field]);
            if now != at(old, &["spec", field]) {
                errors.invalid(path, now.cloned().unwrap_or_default(), "field is immutable");
            }
        }
    }
}
