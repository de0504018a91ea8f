//! csi-provisioner's feature gates.

/// What is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// Whether places are heeded, where the driver knows any.
    pub topology: bool,
    /// Whether attributes classes are heeded; `None` where that is left to whether the server has them.
    pub attributes_classes: Option<bool>,
    /// Whether claims may be filled from other namespaces.
    pub cross_namespace: bool,
}

const TOPOLOGY: &str = "Topology";
const ATTRIBUTES_CLASSES: &str = "VolumeAttributesClass";
const CROSS_NAMESPACE: &str = "CrossNamespaceVolumeDataSource";
/// The lease is always released, once nothing more is sent.
const RELEASE: &str = "ReleaseLeaderElectionOnExit";

impl Gates {
    /// Reads gates, each as `NAME=true` or `NAME=false`.
    pub fn read(gates: &[String]) -> Result<Gates, String> {
        let mut read = Gates { topology: true, attributes_classes: None, cross_namespace: false };
        for gate in gates {
            let (name, value) =
                gate.split_once('=').ok_or_else(|| format!("missing bool value for feature gate {gate:?}"))?;
            let value: bool = value
                .trim()
                .parse()
                .map_err(|_| format!("invalid value of {name}: use true or false, not {gate:?}"))?;
            match name.trim() {
                TOPOLOGY => read.topology = value,
                ATTRIBUTES_CLASSES => read.attributes_classes = Some(value),
                CROSS_NAMESPACE => read.cross_namespace = value,
                RELEASE => {}
                other => {
                    let known = [TOPOLOGY, ATTRIBUTES_CLASSES, CROSS_NAMESPACE, RELEASE].join(", ");
                    return Err(format!("unrecognized feature gate: {other} (known: {known})"));
                }
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_unknown_ones_refused() {
        let read = |gates: &[&str]| Gates::read(&gates.iter().map(ToString::to_string).collect::<Vec<_>>());
        let plain = Gates { topology: true, attributes_classes: None, cross_namespace: false };
        assert_eq!(read(&[]), Ok(plain));
        assert_eq!(read(&["Topology=true", "ReleaseLeaderElectionOnExit=true"]), Ok(plain));
        let others = Gates { topology: false, attributes_classes: Some(false), cross_namespace: true };
        let gates = ["Topology=false", "VolumeAttributesClass=false", "CrossNamespaceVolumeDataSource=true"];
        assert_eq!(read(&gates), Ok(others));
        assert!(read(&["Nonsense=true"]).is_err_and(|error| error.starts_with("unrecognized feature gate: Nonsense")));
        assert!(read(&["Topology"]).is_err() && read(&["Topology=perhaps"]).is_err());
    }
}
