//! Leader election, as the sidecars of CSI drivers have it.

use std::path::Path;
use std::time::Duration;

use bindery_runtime::LeaseConfig;
use clap::ArgAction::Set;

use crate::duration;

/// Where a pod finds the namespace that it runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Flags.
#[derive(clap::Args)]
pub struct Flags {
    /// Whether one of several instances leads, and the others stand by.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub leader_election: bool,
    /// The namespace of the Lease [default: that of POD_NAMESPACE, or the one this runs in].
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    leader_election_namespace: String,
    /// How long others wait after the leader last renewed its lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub leader_election_lease_duration: Duration,
    /// How long the leader goes on trying to renew its lease before it gives up.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    leader_election_renew_deadline: Duration,
    /// How often the lease is tried for, or renewed.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    leader_election_retry_period: Duration,
    /// Labels for the Lease, each as KEY:VALUE.
    #[arg(long, value_name = "KEY:VALUE", value_delimiter = ',', value_parser = label)]
    leader_election_labels: Vec<(String, String)>,
}

impl Flags {
    /// Whether the times of the election go together.
    pub fn check(&self) -> Result<(), String> {
        let (duration, renew_deadline, retry_period) = (
            self.leader_election_lease_duration,
            self.leader_election_renew_deadline,
            self.leader_election_retry_period,
        );
        if duration <= renew_deadline || renew_deadline <= retry_period.mul_f64(1.2) || retry_period.is_zero() {
            return Err(
                "--leader-election-lease-duration must be longer than --leader-election-renew-deadline, and that \
                        longer than 1.2 times --leader-election-retry-period"
                    .into(),
            );
        }
        Ok(())
    }

    /// The lease of a driver's provisioner.
    pub fn lease(&self, driver: &str) -> LeaseConfig {
        LeaseConfig {
            namespace: self.namespace(),
            name: plain(driver),
            identity: plain(&hostname()),
            duration: self.leader_election_lease_duration,
            renew_deadline: self.leader_election_renew_deadline,
            retry_period: self.leader_election_retry_period,
            labels: self.leader_election_labels.clone(),
        }
    }

    fn namespace(&self) -> String {
        let given = Some(self.leader_election_namespace.clone()).filter(|given| !given.is_empty());
        given.unwrap_or_else(|| own_namespace(Path::new(OWN_NAMESPACE)))
    }
}

/// The namespace that this runs in, as far as it can be told.
fn own_namespace(file: &Path) -> String {
    let told = std::env::var("POD_NAMESPACE").ok().filter(|told| !told.is_empty());
    let written = || std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    told.or_else(written).filter(|namespace| !namespace.is_empty()).unwrap_or_else(|| "default".into())
}

fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "unknown".into());
    host.trim().to_owned()
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').ok_or_else(|| format!("{text:?} is no KEY:VALUE"))?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// A name with nothing in it but letters, digits and dashes, and no dash at its end.
fn plain(name: &str) -> String {
    let mut plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.ends_with('-') {
        plain.push('X');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_named_as_upstream_names_it() {
        for (driver, lease) in [
            ("hostpath.csi.k8s.io", "hostpath-csi-k8s-io"),
            ("example.com/fs", "example-com-fs"),
            ("a_b.", "a-b-X"),
            ("plain", "plain"),
        ] {
            assert_eq!(plain(driver), lease);
        }
    }

    #[test]
    fn labels_are_pairs() {
        assert_eq!(label("a:b:c"), Ok(("a".into(), "b:c".into())));
        assert!(label("a").is_err());
    }

    #[test]
    fn a_namespace_is_read_where_pods_find_theirs() {
        let file = std::env::temp_dir().join(format!("bindery-namespace-{}", std::process::id()));
        std::fs::write(&file, "storage\n").expect("written");
        // Where the variable is set for the tests themselves, it wins.
        let told = std::env::var("POD_NAMESPACE").unwrap_or_else(|_| "storage".into());
        assert_eq!(own_namespace(&file), told);
        std::fs::remove_file(&file).expect("removed");
    }
}
