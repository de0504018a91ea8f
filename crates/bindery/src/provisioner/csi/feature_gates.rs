//! csi-provisioner's feature gates.

use crate::feature_gates::parse;

/// Which features are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGates {
    /// Pass topology to drivers that support it.
    pub topology: bool,
    /// Use VolumeAttributesClasses; `None` to enable it if the API server serves them.
    pub attributes_classes: Option<bool>,
    /// Allow data sources in other namespaces.
    pub cross_namespace: bool,
}

const TOPOLOGY: &str = "Topology";
const ATTRIBUTES_CLASSES: &str = "VolumeAttributesClass";
const CROSS_NAMESPACE: &str = "CrossNamespaceVolumeDataSource";
/// Has no effect: the lease is always released on exit.
const RELEASE_LEASE: &str = "ReleaseLeaderElectionOnExit";

/// All gates that are accepted.
const KNOWN: [&str; 4] = [TOPOLOGY, ATTRIBUTES_CLASSES, CROSS_NAMESPACE, RELEASE_LEASE];

impl FeatureGates {
    /// Parses gates, each as `NAME=BOOL`.
    pub fn parse(gates: &[String]) -> Result<FeatureGates, String> {
        let mut parsed = FeatureGates { topology: true, attributes_classes: None, cross_namespace: false };
        parse(gates, &KNOWN, |name, value| match name {
            TOPOLOGY => parsed.topology = value,
            ATTRIBUTES_CLASSES => parsed.attributes_classes = Some(value),
            CROSS_NAMESPACE => parsed.cross_namespace = value,
            _ => {}
        })?;
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_gates_are_parsed_and_others_rejected() {
        let parse = |gates: &[&str]| FeatureGates::parse(&gates.iter().map(ToString::to_string).collect::<Vec<_>>());
        let default = FeatureGates { topology: true, attributes_classes: None, cross_namespace: false };
        assert_eq!(parse(&[]), Ok(default));
        assert_eq!(parse(&["Topology=true", "ReleaseLeaderElectionOnExit=true"]), Ok(default));
        let others = FeatureGates { topology: false, attributes_classes: Some(false), cross_namespace: true };
        let gates = ["Topology=false", "VolumeAttributesClass=false", "CrossNamespaceVolumeDataSource=true"];
        assert_eq!(parse(&gates), Ok(others));
        assert!(parse(&["Nonsense=true"]).is_err_and(|error| error.starts_with("unrecognized feature gate: Nonsense")));
        assert!(parse(&["Topology"]).is_err() && parse(&["Topology=perhaps"]).is_err());
    }
}
