//! Selectors within objects: of labels, and of nodes.

use crate::invalid::FieldErrors;
use crate::metadata::check_labels;
use crate::names;
use crate::value::{entries, list, text, texts};
use serde_json::Value;

/// Labels of nodes that were renamed when they became stable, and since when the old ones are not to be used.
pub(crate) const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone", "v1.17"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region", "v1.17"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "v1.17"),
    ("beta.kubernetes.io/os", "kubernetes.io/os", "v1.14"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch", "v1.14"),
];

/// Warns of old labels in a node selector.
pub(crate) fn warn_of_old_labels(selector: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, term) in list(selector, &["nodeSelectorTerms"]).iter().enumerate() {
        for (place, expression) in list(term, &["matchExpressions"]).iter().enumerate() {
            let key = text(expression, &["key"]);
            if let Some((_, new, since)) = OLD_LABELS.iter().find(|(old, _, _)| *old == key) {
                let at = format!("{path}.nodeSelectorTerms[{index}].matchExpressions[{place}].key");
                warnings.push(format!("{at}: {key} is deprecated since {since}; use \"{new}\" instead"));
            }
        }
    }
    warnings
}

/// A label selector.
pub(crate) fn check_label_selector(selector: &Value, path: &str, flaws: &mut FieldErrors) {
    check_labels(entries(selector, &["matchLabels"]), &format!("{path}.matchLabels"), flaws);
    for (index, expression) in list(selector, &["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, &["values"]);
        let operator = text(expression, &["operator"]);
        check_values(operator, values, &path, false, flaws);
        let key = text(expression, &["key"]);
        for flaw in names::qualified(key) {
            flaws.invalid(format!("{path}.key"), key, &flaw);
        }
        for (place, value) in texts(expression, &["values"]).enumerate() {
            for flaw in names::label_value(value) {
                flaws.invalid(format!("{path}.values[{place}]"), value, &flaw);
            }
        }
    }
}

fn check_values(operator: &str, values: &[Value], path: &str, numbers: bool, flaws: &mut FieldErrors) {
    let at = format!("{path}.values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            flaws.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            flaws.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if numbers && values.len() != 1 => {
            flaws.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "Gt" | "Lt" if numbers => {}
        _ => flaws.invalid(format!("{path}.operator"), operator, "not a valid selector operator"),
    }
}

/// A node selector: at least one term, each with expressions that make sense.
pub(crate) fn check_node_selector(selector: &Value, path: &str, flaws: &mut FieldErrors) {
    let terms = list(selector, &["nodeSelectorTerms"]);
    if terms.is_empty() {
        flaws.required(format!("{path}.nodeSelectorTerms"), "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        for (place, expression) in list(term, &["matchExpressions"]).iter().enumerate() {
            let path = format!("{path}.nodeSelectorTerms[{index}].matchExpressions[{place}]");
            check_values(text(expression, &["operator"]), list(expression, &["values"]), &path, true, flaws);
            let key = text(expression, &["key"]);
            for flaw in names::qualified(key) {
                flaws.invalid(format!("{path}.key"), key, &flaw);
            }
            for (at, value) in texts(expression, &["values"]).enumerate() {
                for flaw in names::label_value(value) {
                    flaws.invalid(format!("{path}.values[{at}]"), value, &flaw);
                }
            }
        }
        for (place, expression) in list(term, &["matchFields"]).iter().enumerate() {
            let path = format!("{path}.nodeSelectorTerms[{index}].matchFields[{place}]");
            let (operator, key) = (text(expression, &["operator"]), text(expression, &["key"]));
            match operator {
                "In" | "NotIn" if list(expression, &["values"]).len() != 1 => {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    flaws.required(format!("{path}.values"), why);
                }
                "In" | "NotIn" => {}
                _ => flaws.invalid(format!("{path}.operator"), operator, "not a valid selector operator"),
            }
            if key != "metadata.name" {
                flaws.invalid(format!("{path}.key"), key, "not a valid field selector key");
            }
        }
    }
}
