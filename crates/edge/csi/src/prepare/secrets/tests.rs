//! Secret templates.

use super::*;
use serde_json::json;

fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn names() -> Names {
    let claim =
        json!({"metadata": {"namespace": "ns", "name": "c", "annotations": {"team": "blue", "a.b/c-d": "deep"}}});
    Names::of_claim("pvc-1", &claim)
}

/// The secret for a name and namespace template.
fn by(name: &str, namespace: &str) -> Result<Option<(String, String)>, String> {
    let given = [
        ("csi.storage.k8s.io/provisioner-secret-name", name),
        ("csi.storage.k8s.io/provisioner-secret-namespace", namespace),
    ];
    let found = reference(Kind::Provisioner, &parameters(&given), &names())?;
    Ok(found.map(|secret| (secret.name, secret.namespace)))
}

#[test]
fn templates_are_expanded() {
    for (name, resolved) in [
        ("s", "s"),
        ("${pv.name}", "pvc-1"),
        ("${pvc.name}-${pvc.namespace}.x", "c-ns.x"),
        ("${pvc.annotations['team']}", "blue"),
        ("x-${pvc.annotations['a.b/c-d']}", "x-deep"),
        ("a${}b", "ab"),
        ("a${b", "ab"),
    ] {
        assert_eq!(by(name, "${pvc.namespace}"), Ok(Some((resolved.into(), "ns".into()))), "{name}");
    }
    assert_eq!(by("s", "x-${pv.name}"), Ok(Some(("s".into(), "x-pvc-1".into()))));
}

#[test]
fn invalid_templates_are_rejected() {
    for (name, namespace, error) in [
        ("${nonsense}", "d", r#"error resolving value "${nonsense}": invalid tokens: ["nonsense"]"#),
        ("${b} ${a} ${b}", "d", r#"error resolving value "${b} ${a} ${b}": invalid tokens: ["a" "b"]"#),
        ("$x", "d", r#"error resolving value "$x": invalid tokens: ["x"]"#),
        ("$1a", "d", r#"error resolving value "$1a": invalid tokens: ["1"]"#),
        (
            "${pvc.annotations['none']}",
            "d",
            r#"error resolving value "${pvc.annotations['none']}": invalid tokens: ["pvc.annotations['none']"]"#,
        ),
        ("s", "${pvc.name}", r#"error resolving value "${pvc.name}": invalid tokens: ["pvc.name"]"#),
        (
            "s",
            "${pvc.annotations['team']}",
            r#"error resolving value "${pvc.annotations['team']}": invalid tokens: ["pvc.annotations['team']"]"#,
        ),
        ("S", "d", r#""S" is not a valid secret name"#),
        ("../other", "d", r#""../other" is not a valid secret name"#),
        ("${pv.name}/x", "d", r#""${pv.name}/x" resolved to "pvc-1/x" which is not a valid secret name"#),
        ("a$", "d", r#""a$" is not a valid secret name"#),
        ("s", "a.b", r#""a.b" is not a valid namespace name"#),
        ("s", "-${pv.name}", r#""-${pv.name}" resolved to "-pvc-1" which is not a valid namespace name"#),
    ] {
        assert_eq!(by(name, namespace), Err(error.to_owned()), "{name} in {namespace}");
    }
}

#[test]
fn name_and_namespace_are_given_together_and_once() {
    let prefix = "csi.storage.k8s.io/";
    let of = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, &str)> = pairs.iter().map(|(key, value)| (key.replace('/', prefix), *value)).collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let found = reference(Kind::NodeStage, &parameters(&pairs), &names());
        found.map(|secret| secret.map_or(String::new(), |secret| format!("{}/{}", secret.namespace, secret.name)))
    };
    let wrong = |error: &str| Err(format!("failed to get name and namespace template from params: {error}"));
    let wrong_default =
        |error: &str| Err(format!("failed to get default name and namespace template from params: {error}"));
    assert_eq!(of(&[]), Ok(String::new()));
    assert_eq!(of(&[("/node-stage-secret-name", "a"), ("/node-stage-secret-namespace", "n")]), Ok("n/a".into()));
    assert_eq!(of(&[("csiNodeStageSecretName", "a"), ("csiNodeStageSecretNamespace", "n")]), Ok("n/a".into()));
    assert_eq!(of(&[("csiNodeStageSecretName", "a"), ("/node-stage-secret-namespace", "n")]), Ok("n/a".into()));
    assert_eq!(of(&[("/secret-name", "d"), ("/secret-namespace", "n")]), Ok("n/d".into()));
    assert_eq!(of(&[("/provisioner-secret-name", "d"), ("/provisioner-secret-namespace", "n")]), Ok(String::new()));
    let one = "either name and namespace for NodeStage secrets specified, Both must be specified";
    assert_eq!(of(&[("/node-stage-secret-name", "a")]), wrong(one));
    assert_eq!(of(&[("/node-stage-secret-namespace", "a"), ("/secret-name", "d")]), wrong(one));
    let one = "either name and namespace for Default secrets specified, Both must be specified";
    assert_eq!(of(&[("/secret-name", "d")]), wrong_default(one));
    let empty = "NodeStage secrets specified in parameters but value of either namespace or name is empty";
    assert_eq!(of(&[("/node-stage-secret-name", ""), ("/node-stage-secret-namespace", "n")]), wrong(empty));
    let twice = "NodeStage secrets specified in parameters with both \"csi\" and \"csi.storage.k8s.io/\" keys";
    let both =
        [("csiNodeStageSecretName", "a"), ("/node-stage-secret-name", "a"), ("/node-stage-secret-namespace", "n")];
    assert_eq!(of(&both), wrong(twice));
}

#[test]
fn secret_data_is_decoded() {
    let secret = json!({"data": {"user": "YWRtaW4=", "key": "czNjcjN0", "none": ""}});
    let expected = parameters(&[("user", "admin"), ("key", "s3cr3t"), ("none", "")]);
    assert_eq!(credentials(&secret), expected);
    assert_eq!(credentials(&json!({})), BTreeMap::new());
}
