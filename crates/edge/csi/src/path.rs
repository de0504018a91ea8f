//! API paths of objects. Names come from users: invalid ones are rejected, not escaped.

/// The path of an object, in a namespace or cluster-scoped.
fn object(group: &str, namespace: Option<&str>, plural: &str, name: &str) -> Result<String, String> {
    segment(name)?;
    match namespace {
        None => Ok(format!("{group}/{plural}/{name}")),
        Some(namespace) => {
            segment(namespace)?;
            Ok(format!("{group}/namespaces/{namespace}/{plural}/{name}"))
        }
    }
}

/// Checks that a name can be a path segment.
fn segment(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if name.is_empty() || name == "." || name == ".." || !name.chars().all(plain) {
        return Err(format!("invalid resource name {name:?}"));
    }
    Ok(())
}

pub(crate) fn claim(namespace: &str, name: &str) -> Result<String, String> {
    object("/api/v1", Some(namespace), "persistentvolumeclaims", name)
}

pub(crate) fn claims(namespace: &str) -> Result<String, String> {
    segment(namespace)?;
    Ok(format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims"))
}

pub(crate) fn volume(name: &str) -> Result<String, String> {
    object("/api/v1", None, "persistentvolumes", name)
}

pub(crate) fn secret(namespace: &str, name: &str) -> Result<String, String> {
    object("/api/v1", Some(namespace), "secrets", name)
}

pub(crate) fn class(name: &str) -> Result<String, String> {
    object("/apis/storage.k8s.io/v1", None, "storageclasses", name)
}

pub(crate) fn attributes_class(name: &str) -> Result<String, String> {
    object("/apis/storage.k8s.io/v1", None, "volumeattributesclasses", name)
}

pub(crate) fn snapshot(namespace: &str, name: &str) -> Result<String, String> {
    object("/apis/snapshot.storage.k8s.io/v1", Some(namespace), "volumesnapshots", name)
}

pub(crate) fn snapshot_content(name: &str) -> Result<String, String> {
    object("/apis/snapshot.storage.k8s.io/v1", None, "volumesnapshotcontents", name)
}

pub(crate) fn reference_grants(namespace: &str) -> Result<String, String> {
    segment(namespace)?;
    Ok(format!("/apis/gateway.networking.k8s.io/v1beta1/namespaces/{namespace}/referencegrants"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_the_path_are_rejected() {
        assert_eq!(secret("ns", "a.b-c"), Ok("/api/v1/namespaces/ns/secrets/a.b-c".into()));
        for name in ["", ".", "..", "../x", "a/b", "a%2fb", "a?b", "a#b", "a b", "ä", "a\n"] {
            assert!(secret("ns", name).is_err(), "{name:?}");
            assert!(claim(name, "c").is_err(), "{name:?}");
            assert!(reference_grants(name).is_err(), "{name:?}");
        }
    }
}
