//! Lease.

use super::{AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print};
use crate::invalid::FieldErrors;
use crate::value::{at, take, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, column("Holder", "Who holds it."), AGE],
    cells,
    space: "leases",
    rules: &Lease,
    manners: Manners { unconditional_update: false, create_on_update: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["spec", "holderIdentity"]).into(), print::age(object, sight)]
}

#[derive(Debug)]
struct Lease;

impl Rules for Lease {
    fn prepare(&self, object: &mut Value, _scene: &Scene<'_>) {
        // Coordinated leader election is off, as it is upstream unless asked for.
        take(object, &["spec", "strategy"]);
        take(object, &["spec", "preferredHolder"]);
    }

    fn prepare_change(&self, new: &mut Value, _old: &Value, scene: &Scene<'_>) {
        self.prepare(new, scene);
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let number = |field| at(object, &["spec", field]).and_then(Value::as_i64);
        if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            flaws.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
        }
        if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
            flaws.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0");
        }
    }
}
