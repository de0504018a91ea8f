//! Class parameters: those for the driver, and the reserved ones for the provisioner.

use std::collections::BTreeMap;

use bindery_model::{ClaimKey, Name};

/// The prefix of parameters that are reserved for the provisioner.
pub(super) const RESERVED: &str = "csi.storage.k8s.io/";

/// The kinds of secrets as parameters spell them. The first is the fallback for all others.
const SECRETS: [&str; 8] = [
    "secret",
    "provisioner-secret",
    "controller-publish-secret",
    "node-stage-secret",
    "node-publish-secret",
    "controller-expand-secret",
    "node-expand-secret",
    "controller-modify-secret",
];

/// The filesystem type, from the reserved key or the deprecated one.
pub(super) fn fs_type(parameters: &BTreeMap<String, String>, default: &str) -> Result<String, String> {
    let reserved = format!("{RESERVED}fstype");
    let mut named = parameters.iter().filter(|(key, _)| key.to_lowercase() == "fstype" || **key == reserved);
    let found = named.next().map(|(_, value)| value.as_str()).unwrap_or_default();
    if named.next().is_some() {
        return Err(format!("fstype specified in parameters with both \"fstype\" and \"{reserved}\" keys"));
    }
    Ok(if found.is_empty() { default } else { found }.to_owned())
}

/// The parameters to pass to the driver. An unknown reserved key is an error.
pub(super) fn for_driver(parameters: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let mut left = BTreeMap::new();
    for (key, value) in parameters {
        match key.strip_prefix(RESERVED) {
            None => {
                left.insert(key.clone(), value.clone());
            }
            Some(known) if is_known(known) => {}
            Some(_) => {
                return Err(format!(
                    "failed to strip CSI Parameters of prefixed keys: found unknown parameter key \"{key}\" with reserved \
                     namespace {RESERVED}"
                ));
            }
        }
    }
    Ok(left)
}

fn is_known(key: &str) -> bool {
    let secret = || {
        SECRETS
            .iter()
            .any(|secret| key.strip_prefix(secret).is_some_and(|rest| rest == "-name" || rest == "-namespace"))
    };
    key == "fstype" || secret()
}

/// The parameters of `--extra-create-metadata`: the names of claim and volume.
pub(super) fn metadata(claim: &ClaimKey, volume: &Name) -> [(String, String); 3] {
    [
        (format!("{RESERVED}pvc/name"), claim.name.to_string()),
        (format!("{RESERVED}pvc/namespace"), claim.namespace.to_string()),
        (format!("{RESERVED}pv/name"), volume.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn fs_type_is_given_once() {
        let of = |pairs: &[(&str, &str)]| fs_type(&map(pairs), "ext4");
        assert_eq!(of(&[]).as_deref(), Ok("ext4"));
        assert_eq!(of(&[("fsType", "xfs")]).as_deref(), Ok("xfs"));
        assert_eq!(of(&[("csi.storage.k8s.io/fstype", "xfs")]).as_deref(), Ok("xfs"));
        assert_eq!(of(&[("csi.storage.k8s.io/fstype", "")]).as_deref(), Ok("ext4"));
        let twice = "fstype specified in parameters with both \"fstype\" and \"csi.storage.k8s.io/fstype\" keys";
        assert_eq!(of(&[("FSTYPE", "xfs"), ("csi.storage.k8s.io/fstype", "xfs")]), Err(twice.into()));
        assert_eq!(of(&[("FSTYPE", "xfs"), ("fstype", "")]), Err(twice.into()));
    }

    #[test]
    fn reserved_parameters_are_not_passed_to_the_driver() {
        let mut given = map(&[("color", "blue"), ("fstype", "xfs"), ("csiProvisionerSecretName", "s")]);
        let kept = given.clone();
        given.insert("csi.storage.k8s.io/fstype".into(), "xfs".into());
        for secret in SECRETS {
            for end in ["name", "namespace"] {
                given.insert(format!("csi.storage.k8s.io/{secret}-{end}"), "x".into());
            }
        }
        assert_eq!(given.len(), 3 + 1 + 16);
        assert_eq!(for_driver(&given), Ok(kept));
        for unknown in ["nonsense", "", "secret", "node-stage-secret-", "pvc/name"] {
            let key = format!("csi.storage.k8s.io/{unknown}");
            let error = for_driver(&map(&[(key.as_str(), "x")])).expect_err("unknown");
            let reason = format!("found unknown parameter key \"{key}\" with reserved namespace csi.storage.k8s.io/");
            assert_eq!(error, format!("failed to strip CSI Parameters of prefixed keys: {reason}"));
        }
    }
}
