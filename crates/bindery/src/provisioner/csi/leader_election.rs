//! Leader election with the flags of CSI sidecars.

use std::path::Path;
use std::time::Duration;

use bindery_runtime::LeaseConfig;
use clap::ArgAction::Set;

use crate::duration;
use crate::leadership::{check_times, hostname};

/// Contains the namespace of the pod that the process runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Flags of leader election.
#[derive(clap::Args)]
pub struct LeaderElectionFlags {
    /// Elect a leader among several instances. The others stand by.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub leader_election: bool,
    /// Namespace of the Lease [default: $POD_NAMESPACE, else the namespace of the pod].
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    leader_election_namespace: String,
    /// Time after the last renewal until another instance may take over the lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub leader_election_lease_duration: Duration,
    /// Time for which the leader retries a failed renewal before it exits.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    leader_election_renew_deadline: Duration,
    /// Time between attempts to acquire or renew the lease.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    leader_election_retry_period: Duration,
    /// Labels of the Lease.
    #[arg(long, value_name = "KEY:VALUE", value_delimiter = ',', value_parser = parse_label)]
    leader_election_labels: Vec<(String, String)>,
}

impl LeaderElectionFlags {
    /// Checks that the durations fit together.
    pub fn check(&self) -> Result<(), String> {
        let (duration, deadline) = (self.leader_election_lease_duration, self.leader_election_renew_deadline);
        check_times("--leader-election", duration, deadline, self.leader_election_retry_period)
    }

    /// The lease of a driver's provisioner, named as csi-provisioner names it.
    pub fn lease(&self, driver: &str) -> LeaseConfig {
        LeaseConfig {
            namespace: self.namespace(),
            name: sanitize(driver),
            identity: sanitize(&hostname()),
            duration: self.leader_election_lease_duration,
            renew_deadline: self.leader_election_renew_deadline,
            retry_period: self.leader_election_retry_period,
            labels: self.leader_election_labels.clone(),
        }
    }

    fn namespace(&self) -> String {
        let flag = Some(self.leader_election_namespace.clone()).filter(|flag| !flag.is_empty());
        flag.unwrap_or_else(own_namespace)
    }
}

/// The namespace of the pod that the process runs in.
pub fn own_namespace() -> String {
    pod_namespace(Path::new(NAMESPACE_FILE))
}

/// The namespace of the pod that the process runs in, or `default`.
fn pod_namespace(file: &Path) -> String {
    let variable = std::env::var("POD_NAMESPACE").ok().filter(|value| !value.is_empty());
    let mounted = || std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    variable.or_else(mounted).filter(|namespace| !namespace.is_empty()).unwrap_or_else(|| "default".into())
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').ok_or_else(|| format!("{text:?} is not KEY:VALUE"))?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// A name of letters, digits and dashes that does not end with a dash.
fn sanitize(name: &str) -> String {
    let mut sanitized: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if sanitized.ends_with('-') {
        sanitized.push('X');
    }
    sanitized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_is_named_as_by_csi_provisioner() {
        for (driver, lease) in [
            ("hostpath.csi.k8s.io", "hostpath-csi-k8s-io"),
            ("example.com/fs", "example-com-fs"),
            ("a_b.", "a-b-X"),
            ("plain", "plain"),
        ] {
            assert_eq!(sanitize(driver), lease);
        }
    }

    #[test]
    fn labels_are_key_value_pairs() {
        assert_eq!(parse_label("a:b:c"), Ok(("a".into(), "b:c".into())));
        assert!(parse_label("a").is_err());
    }

    #[test]
    fn namespace_is_that_of_the_pod() {
        let file = std::env::temp_dir().join(format!("bindery-namespace-{}", std::process::id()));
        std::fs::write(&file, "storage\n").expect("the file is written");
        // The variable may be set where the tests run. Then it takes precedence.
        let expected = std::env::var("POD_NAMESPACE").unwrap_or_else(|_| "storage".into());
        assert_eq!(pod_namespace(&file), expected);
        std::fs::remove_file(&file).expect("the file is removed");
    }
}
