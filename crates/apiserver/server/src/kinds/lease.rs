//! Lease.

use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print,
};
use crate::field_errors::FieldErrors;
use crate::value::{at, take, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "coordination.k8s.io",
    kind: "Lease",
    plural: "leases",
    namespaced: true,
    columns: &[NAME, column("Holder", "The holder of the lease."), AGE],
    cells,
    strategy: &Lease,
    behavior: Behavior { unconditional_update: false, create_on_update: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["spec", "holderIdentity"]).into(), print::age(object, context)]
}

#[derive(Debug)]
struct Lease;

impl Strategy for Lease {
    fn prepare_for_create(&self, object: &mut Value, _context: &WriteContext<'_>) {
        // As upstream by default, coordinated leader election is disabled.
        take(object, &["spec", "strategy"]);
        take(object, &["spec", "preferredHolder"]);
    }

    fn prepare_for_update(&self, new: &mut Value, _old: &Value, context: &WriteContext<'_>) {
        self.prepare_for_create(new, context);
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let number = |field| at(object, &["spec", field]).and_then(Value::as_i64);
        if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
        }
        if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
            errors.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0");
        }
    }
}
