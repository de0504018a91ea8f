//! Feature gates: the flags `--feature-gates` and `--emulated-version`, as Kubernetes components
//! parse them, and gates that follow the version of the API server.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::version::{KUBERNETES_MAX, KUBERNETES_MIN};

/// A minor version of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    pub major: u32,
    pub minor: u32,
}

impl KubernetesVersion {
    /// Reads `1.36`, or a longer version such as `v1.36.4-rc.1+k3s1`.
    fn parse(text: &str) -> Option<KubernetesVersion> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
        let mut number = || parts.next()?.parse().ok();
        Some(KubernetesVersion { major: number()?, minor: number()? })
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Parses `--emulated-version`: `1.36`, or `kube=1.36` as upstream spells it.
pub fn parse_emulated_version(text: &str) -> Result<KubernetesVersion, String> {
    let version = KubernetesVersion::parse(text.strip_prefix("kube=").unwrap_or(text));
    let range = KubernetesVersion::parse(KUBERNETES_MIN)..=KubernetesVersion::parse(KUBERNETES_MAX);
    version
        .filter(|version| range.contains(&Some(*version)))
        .ok_or_else(|| format!("use a Kubernetes version from {KUBERNETES_MIN} to {KUBERNETES_MAX}"))
}

/// A feature gate whose value may not be known until the API server's version is. It is set once.
#[derive(Debug, Clone)]
pub struct Gate {
    name: &'static str,
    /// The version in which it became on by default.
    on_since: KubernetesVersion,
    is_on: Arc<OnceLock<bool>>,
}

impl Gate {
    /// A gate that is not set yet.
    pub fn new(name: &'static str, on_since: KubernetesVersion) -> Gate {
        Gate { name, on_since, is_on: Arc::default() }
    }

    /// Whether the gate is on; off while it is not known.
    pub fn is_on(&self) -> bool {
        self.is_on.get().copied().unwrap_or(false)
    }

    /// Whether its value is known.
    pub fn is_resolved(&self) -> bool {
        self.is_on.get().is_some()
    }

    /// Sets the gate, unless it is set, and logs why.
    pub fn set(&self, is_on: bool, because: &str) {
        if self.is_on.set(is_on).is_ok() {
            let (gate, on_since) = (self.name, self.on_since.to_string());
            tracing::info!(gate, is_on, because, on_since, "feature gate set");
        }
    }

    /// Sets the gate to its default in a version, unless it is set.
    pub fn follow(&self, version: KubernetesVersion, source: &str) {
        self.set(version >= self.on_since, &format!("{source} is {version}"));
    }

    /// Sets the gate to its default in the API server's version, unless it is set. It is off if the
    /// version is unknown.
    pub fn follow_server(&self, git_version: Option<&str>) {
        match git_version.and_then(KubernetesVersion::parse) {
            Some(version) => self.follow(version, "the API server"),
            None => self.set(false, "the API server's version is unknown"),
        }
    }
}

/// Parses `NAME=BOOL` pairs and passes each to `set`. Names outside `known` are an error.
pub fn parse(gates: &[String], known: &[&str], mut set: impl FnMut(&str, bool)) -> Result<(), String> {
    for gate in gates {
        let (name, value) =
            gate.split_once('=').ok_or_else(|| format!("missing bool value for feature gate {gate:?}"))?;
        let value = value.trim().parse::<bool>();
        let value = value.map_err(|_| format!("invalid value of {name}: use true or false, not {gate:?}"))?;
        let name = name.trim();
        if !known.contains(&name) {
            return Err(format!("unrecognized feature gate: {name} (known: {})", known.join(", ")));
        }
        set(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_version_is_within_the_supported_range() {
        let parse = |text| parse_emulated_version(text).map(|version| version.to_string());
        assert_eq!(parse("1.33"), Ok("1.33".into()));
        assert_eq!(parse("kube=1.37"), Ok("1.37".into()));
        for text in ["1.32", "1.38", "2.0", "1", "", "kube=", "nonsense"] {
            assert_eq!(parse(text), Err("use a Kubernetes version from 1.33 to 1.37".into()), "{text}");
        }
    }
}
