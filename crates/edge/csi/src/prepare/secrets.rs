//! Secrets that a class names with templates.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use bindery_model::names::{is_dns_label, is_dns_subdomain};
use serde_json::Value;

use super::parameters::RESERVED;
use super::prepared::SecretRef;
use crate::fields::{text_or_empty, texts};

/// The CSI call that a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The fallback for calls without a secret of their own.
    Default,
    Provisioner,
    ControllerPublish,
    NodeStage,
    NodePublish,
    ControllerExpand,
    NodeExpand,
    ControllerModify,
}

impl Kind {
    /// The name in error messages, in `csi.storage.k8s.io/` parameters, and in deprecated
    /// parameters if any.
    fn names(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Kind::Default => ("Default", "secret", None),
            Kind::Provisioner => ("Provisioner", "provisioner-secret", Some("csiProvisionerSecret")),
            Kind::ControllerPublish => {
                ("ControllerPublish", "controller-publish-secret", Some("csiControllerPublishSecret"))
            }
            Kind::NodeStage => ("NodeStage", "node-stage-secret", Some("csiNodeStageSecret")),
            Kind::NodePublish => ("NodePublish", "node-publish-secret", Some("csiNodePublishSecret")),
            Kind::ControllerExpand => ("ControllerExpand", "controller-expand-secret", None),
            Kind::NodeExpand => ("NodeExpand", "node-expand-secret", None),
            Kind::ControllerModify => ("ControllerModify", "controller-modify-secret", None),
        }
    }

    /// The templates for name and namespace. Both or neither must be given, each at most once.
    fn templates(self, parameters: &BTreeMap<String, String>) -> Result<Option<(&str, &str)>, String> {
        let (word, reserved, older) = self.names();
        let given = |end: &str, older_end: &str| -> Vec<&str> {
            let keys = [older.map(|older| format!("{older}{older_end}")), Some(format!("{RESERVED}{reserved}{end}"))];
            keys.iter().flatten().filter_map(|key| parameters.get(key).map(String::as_str)).collect()
        };
        match (given("-name", "Name").as_slice(), given("-namespace", "Namespace").as_slice()) {
            ([], []) => Ok(None),
            ([_, _, ..], _) | (_, [_, _, ..]) => {
                Err(format!("{word} secrets specified in parameters with both \"csi\" and \"{RESERVED}\" keys"))
            }
            ([_], []) | ([], [_]) => {
                Err(format!("either name and namespace for {word} secrets specified, Both must be specified"))
            }
            ([""], [_]) | ([_], [""]) => {
                Err(format!("{word} secrets specified in parameters but value of either namespace or name is empty"))
            }
            ([name], [namespace]) => Ok(Some((name, namespace))),
        }
    }
}

/// The values that templates can refer to.
pub(crate) struct Names {
    for_namespaces: BTreeMap<String, String>,
    for_names: BTreeMap<String, String>,
}

impl Names {
    /// For a volume and its claim, including the claim's annotations.
    pub(crate) fn of_claim(volume: &str, claim: &Value) -> Names {
        let mut names =
            Names::of(volume, text_or_empty(claim, "/metadata/namespace"), text_or_empty(claim, "/metadata/name"));
        let annotations = texts(claim, "/metadata/annotations").into_iter();
        names.for_names.extend(annotations.map(|(key, value)| (format!("pvc.annotations['{key}']"), value)));
        names
    }

    /// For a volume whose claim no longer exists: only its name is known.
    pub(crate) fn of(volume: &str, namespace: &str, claim: &str) -> Names {
        let pair = |token: &str, value: &str| (token.to_owned(), value.to_owned());
        let for_namespaces = BTreeMap::from([pair("pv.name", volume), pair("pvc.namespace", namespace)]);
        let mut for_names = for_namespaces.clone();
        for_names.extend([pair("pvc.name", claim)]);
        Names { for_namespaces, for_names }
    }
}

/// The secret that a class's parameters name for a call, if any. Whether the secret exists is not
/// checked.
pub(crate) fn reference(
    kind: Kind,
    parameters: &BTreeMap<String, String>,
    names: &Names,
) -> Result<Option<SecretRef>, String> {
    let wrong = |error: String| format!("failed to get name and namespace template from params: {error}");
    let wrong_default =
        |error: String| format!("failed to get default name and namespace template from params: {error}");
    let own = kind.templates(parameters).map_err(wrong)?;
    let found = match own {
        Some(found) => Some(found),
        None => Kind::Default.templates(parameters).map_err(wrong_default)?,
    };
    let Some((name, namespace)) = found else { return Ok(None) };
    let namespace = resolve(namespace, &names.for_namespaces, is_dns_label, "namespace")?;
    let name = resolve(name, &names.for_names, is_dns_subdomain, "secret")?;
    Ok(Some(SecretRef { name, namespace }))
}

fn resolve(
    template: &str,
    values: &BTreeMap<String, String>,
    is_valid: fn(&str) -> bool,
    what: &str,
) -> Result<String, String> {
    let expanded = expand(template, values).map_err(|error| format!("error resolving value {template:?}: {error}"))?;
    match is_valid(&expanded) {
        true => Ok(expanded),
        false if expanded == template => Err(format!("{template:?} is not a valid {what} name")),
        false => Err(format!("{template:?} resolved to {expanded:?} which is not a valid {what} name")),
    }
}

/// Expands `${token}` and `$token` in a template, as Go's `os.Expand` does.
fn expand(template: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let (mut out, mut rest, mut unknown) = (String::new(), template, BTreeSet::new());
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (token, left) = token(after);
        rest = left;
        match token {
            Token::Named(name) => match values.get(name) {
                Some(value) => out.push_str(value),
                None => {
                    unknown.insert(name);
                }
            },
            Token::Dollar => out.push('$'),
            Token::Broken => {}
        }
    }
    out.push_str(rest);
    if unknown.is_empty() {
        return Ok(out);
    }
    let unknown: Vec<String> = unknown.iter().map(|token| format!("{token:?}")).collect();
    Err(format!("invalid tokens: [{}]", unknown.join(" ")))
}

/// What follows a dollar sign.
enum Token<'a> {
    Named(&'a str),
    /// No name: the dollar sign is literal.
    Dollar,
    /// An empty or unclosed brace: dropped.
    Broken,
}

fn token(after: &str) -> (Token<'_>, &str) {
    if let Some(inside) = after.strip_prefix('{') {
        return match inside.split_once('}') {
            Some(("", rest)) => (Token::Broken, rest),
            Some((name, rest)) => (Token::Named(name), rest),
            None => (Token::Broken, inside),
        };
    }
    if after.starts_with(|c: char| "*#$@!?-0123456789".contains(c)) {
        return (Token::Named(&after[..1]), &after[1..]);
    }
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
    match after.split_at(end) {
        ("", rest) => (Token::Dollar, rest),
        (name, rest) => (Token::Named(name), rest),
    }
}

/// The decoded data of a secret.
pub(crate) fn credentials(secret: &Value) -> BTreeMap<String, String> {
    let decode = |text: String| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    texts(secret, "/data").into_iter().map(|(key, value)| (key, decode(value))).collect()
}

#[cfg(test)]
mod tests;
