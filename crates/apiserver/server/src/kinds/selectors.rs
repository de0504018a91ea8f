//! Label selectors and node selectors in objects.

use crate::field_errors::FieldErrors;
use crate::metadata::validate_labels;
use crate::names;
use crate::value::{entries, list, text, texts};
use serde_json::Value;

/// Deprecated node labels, their stable names, and the version of the deprecation.
pub(crate) const DEPRECATED_NODE_LABELS: [(&str, &str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone", "v1.17"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region", "v1.17"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "v1.17"),
    ("beta.kubernetes.io/os", "kubernetes.io/os", "v1.14"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch", "v1.14"),
];

/// Warnings about deprecated labels in a node selector.
pub(crate) fn deprecated_label_warnings(selector: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, term) in list(selector, &["nodeSelectorTerms"]).iter().enumerate() {
        for (position, expression) in list(term, &["matchExpressions"]).iter().enumerate() {
            let key = text(expression, &["key"]);
            if let Some((_, new, since)) = DEPRECATED_NODE_LABELS.iter().find(|(old, _, _)| *old == key) {
                let at = format!("{path}.nodeSelectorTerms[{index}].matchExpressions[{position}].key");
                warnings.push(format!("{at}: {key} is deprecated since {since}; use \"{new}\" instead"));
            }
        }
    }
    warnings
}

/// Validates a label selector.
pub(crate) fn validate_label_selector(selector: &Value, path: &str, errors: &mut FieldErrors) {
    validate_labels(entries(selector, &["matchLabels"]), &format!("{path}.matchLabels"), errors);
    for (index, expression) in list(selector, &["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, &["values"]);
        let operator = text(expression, &["operator"]);
        validate_values(operator, values, &path, false, errors);
        let key = text(expression, &["key"]);
        for error in names::qualified(key) {
            errors.invalid(format!("{path}.key"), key, &error);
        }
        for (position, value) in texts(expression, &["values"]).enumerate() {
            for error in names::label_value(value) {
                errors.invalid(format!("{path}.values[{position}]"), value, &error);
            }
        }
    }
}

fn validate_values(operator: &str, values: &[Value], path: &str, numbers: bool, errors: &mut FieldErrors) {
    let at = format!("{path}.values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if numbers && values.len() != 1 => {
            errors.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "Gt" | "Lt" if numbers => {}
        _ => errors.invalid(format!("{path}.operator"), operator, "not a valid selector operator"),
    }
}

/// Validates a node selector.
pub(crate) fn validate_node_selector(selector: &Value, path: &str, errors: &mut FieldErrors) {
    let terms = list(selector, &["nodeSelectorTerms"]);
    if terms.is_empty() {
        errors.required(format!("{path}.nodeSelectorTerms"), "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        for (position, expression) in list(term, &["matchExpressions"]).iter().enumerate() {
            let path = format!("{path}.nodeSelectorTerms[{index}].matchExpressions[{position}]");
            validate_values(text(expression, &["operator"]), list(expression, &["values"]), &path, true, errors);
            let key = text(expression, &["key"]);
            for error in names::qualified(key) {
                errors.invalid(format!("{path}.key"), key, &error);
            }
            for (at, value) in texts(expression, &["values"]).enumerate() {
                for error in names::label_value(value) {
                    errors.invalid(format!("{path}.values[{at}]"), value, &error);
                }
            }
        }
        for (position, expression) in list(term, &["matchFields"]).iter().enumerate() {
            let path = format!("{path}.nodeSelectorTerms[{index}].matchFields[{position}]");
            let (operator, key) = (text(expression, &["operator"]), text(expression, &["key"]));
            match operator {
                "In" | "NotIn" if list(expression, &["values"]).len() != 1 => {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    errors.required(format!("{path}.values"), why);
                }
                "In" | "NotIn" => {}
                _ => errors.invalid(format!("{path}.operator"), operator, "not a valid selector operator"),
            }
            if key != "metadata.name" {
                errors.invalid(format!("{path}.key"), key, "not a valid field selector key");
            }
        }
    }
}
