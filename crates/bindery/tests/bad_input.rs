//! Invalid flags and configuration files are rejected at the start, with what is wrong, where, and
//! what to use instead.

use std::path::PathBuf;
use std::process::{Command, Output};

fn output(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    command.args(args).env_remove("KUBECONFIG").env_remove("RUST_LOG").output().expect("bindery runs")
}

/// What a command that has to fail writes to standard error.
fn error(args: &[&str]) -> String {
    let output = output(args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}: {error}");
    error
}

const CSI: &[&str] = &["provisioner", "csi"];
const LOCAL: &[&str] = &["provisioner", "local"];
const NODE_CLEANUP: &[&str] = &["provisioner", "node-cleanup"];

#[test]
fn numbers_without_a_meaning_are_rejected_with_flag_value_reason_and_remedy() {
    let no_limit = "must not be negative: use 0 or more; 0 means no limit";
    let positive = "must not be 0: use a duration such as 15s";
    let cases: [(&[&str], &str, &str, &str); 34] = [
        (&["controller"], "--kube-api-qps", "-1", no_limit),
        (&["scheduler"], "--kube-api-qps", "-0.5", no_limit),
        (CSI, "--kube-api-qps", "-1", no_limit),
        (CSI, "--kube-api-qps", "nan", "not a number such as 20 or 0.5"),
        (CSI, "--kube-api-qps", "inf", "not a number such as 20 or 0.5"),
        (CSI, "--kube-api-qps", "many", "not a number such as 20 or 0.5"),
        (&["controller"], "--kube-api-burst", "-1", "too small: use 0 or more"),
        (CSI, "--kube-api-burst", "-10", "too small: use 0 or more"),
        (CSI, "--kube-api-burst", "0.5", "not a whole number: use 0 or more"),
        (CSI, "--kube-api-capacity-qps", "-1", "must not be negative: use 0 or more"),
        (CSI, "--kube-api-capacity-burst", "-1", "too small: use 0 or more"),
        (CSI, "--worker-threads", "0", "too small: use 1 or more"),
        (CSI, "--worker-threads", "-1", "too small: use 1 or more"),
        (CSI, "--capacity-threads", "-1", "too small: use 1 or more"),
        (CSI, "--capacity-ownerref-level", "-2", "-2 is not in -1.."),
        (CSI, "--timeout", "0", positive),
        (CSI, "--timeout", "10", "not a duration: use a number and a unit, such as 15s or 1m30s"),
        (CSI, "--retry-interval-start", "0s", positive),
        (CSI, "--retry-interval-max", "0s", positive),
        (CSI, "--capacity-poll-interval", "0", positive),
        (CSI, "--snapshot-orphan-sweep-interval", "2562048h", "too long: use at most 2562047h"),
        (&["controller"], "--kube-api-in-flight", "0", "too small: use 1 or more"),
        (&["controller"], "--min-resync-period", "0", positive),
        (&["controller"], "--pvclaimbinder-sync-period", "0", positive),
        (&["controller"], "--concurrent-ephemeralvolume-syncs", "-1", "too small: use 1 or more"),
        (&["controller"], "--pv-recycler-minimum-timeout-nfs", "-1", "too small: use 0 or more"),
        (&["controller"], "--pv-recycler-increment-timeout-nfs", "99999999999", "too large: use a smaller number"),
        (LOCAL, "--discovery-period", "0", positive),
        (LOCAL, "--config-sync-period", "0s", positive),
        (NODE_CLEANUP, "--stale-pv-discovery-interval", "0", positive),
        (NODE_CLEANUP, "--worker-threads", "0", "too small: use 1 or more"),
        (&["up", "--nodes=1"], "--node-storage", "-1", "must not be negative: use 0 or more, such as 100Gi"),
        (&["up", "--nodes=1"], "--node-storage", "lots", "not a quantity such as 100Gi: it is not a number"),
        (&["up"], "--nodes", "-1", "-1 is not in 0.."),
    ];
    for (command, flag, value, reason) in cases {
        // Both forms, except that a duration that starts with a dash needs the equals sign.
        for flags in [vec![format!("{flag}={value}")], vec![flag.to_owned(), value.to_owned()]] {
            let flags: Vec<&str> = command.iter().copied().chain(flags.iter().map(String::as_str)).collect();
            let error = error(&flags);
            assert!(error.contains(&format!("invalid value '{value}' for '{flag} <")), "{flags:?}: {error}");
            assert!(error.contains(reason), "{flags:?}: {error}");
        }
    }
    let error = error(&["provisioner", "csi", "--timeout=-1s"]);
    assert!(error.contains("invalid value '-1s' for '--timeout <DURATION>': must not be negative"), "{error}");
}

#[test]
fn units_that_kubernetes_does_not_know_are_corrected() {
    for (value, meant) in [("10GB", "10G or 10Gi"), ("1.5TiB", "1.5Ti"), ("10 Gi", "10Gi"), ("500mb", "500M or 500Mi")]
    {
        let error = error(&["up", "--nodes=1", &format!("--node-storage={value}")]);
        let expected = format!(
            "invalid value '{value}' for '--node-storage <QUANTITY>': not a quantity such as 100Gi: its unit is unknown; use {meant}"
        );
        assert!(error.contains(&expected), "{error}");
    }
}

/// A configuration directory of `bindery provisioner local`, removed with the test.
struct Configuration(PathBuf);

impl Configuration {
    fn new(class_map: &str) -> Configuration {
        let directory = std::env::temp_dir().join(format!("bindery-bad-input-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("storageClassMap"), class_map).expect("written");
        Configuration(directory)
    }
}

impl Drop for Configuration {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn mistakes_in_the_configuration_of_local_disks_are_named() {
    for (class, expected) in [
        ("hostdir: /mnt/fast, mountDir: /mnt/fast", "hostdir: unknown key; did you mean hostDir?"),
        ("hostDir: /a, mountDir: /a, blockCleanerComand: [x]", "did you mean blockCleanerCommand?"),
        ("hostDir: /a, mountDir: /a, colour: red", "colour: unknown key; known keys: hostDir, mountDir"),
        (
            "hostDir: /a, mountDir: /a, blockCleanerCommand: [/scripts/own.sh]",
            "blockCleanerCommand: /scripts/own.sh does not exist or is not executable here",
        ),
        (
            "hostDir: /a, mountDir: /a, blockCleanerCommand: [/scripts/fsclean.sh]",
            "blockCleanerCommand: /scripts/fsclean.sh cleans file systems, for which no command is needed",
        ),
        ("hostDir: /a, mountDir: /a, blockCleanerTimeout: 0s", "blockCleanerTimeout: must not be 0"),
    ] {
        let configuration = Configuration::new(&format!("fast: {{{class}}}"));
        let directory = configuration.0.display().to_string();
        let error = error(&["provisioner", "local", "--node-name=n", "--config", &directory, "--log-format=text"]);
        assert!(error.contains(&format!("{directory}/storageClassMap: class \"fast\": ")), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

/// All of upstream's scripts for devices are known; the program fails later, for want of a cluster.
#[test]
fn scripts_of_upstream_are_accepted() {
    for command in
        ["", ", blockCleanerCommand: [/scripts/shred.sh]", ", blockCleanerCommand: [/scripts/dd_zero.sh, '2']"]
    {
        let configuration = Configuration::new(&format!("fast: {{hostDir: /a, mountDir: /a{command}}}"));
        let directory = configuration.0.display().to_string();
        let kubeconfig = "--kubeconfig=/does/not/exist";
        let error = error(&["provisioner", "local", "--node-name=n", "--config", &directory, kubeconfig]);
        assert!(error.contains("cannot read the kubeconfig /does/not/exist"), "{error}");
    }
}
