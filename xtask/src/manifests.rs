//! deploy/manifests: the chart with its default values, for who does not use Helm; and parts of it alone that are off
//! by default.
//!
//! Helm renders it: the one in the cache, or one on PATH, or one that is built, once, by the Go toolchain from the module in
//! xtask/helm, whose go.mod says the version. To move to another, run `go get -tool helm.sh/helm/v3/cmd/helm@vX.Y.Z` and
//! `go mod tidy` there, and set [`VERSION`].
//!
//! Two tests keep the files current. One renders them again, where there is a Helm. The other needs none: each file carries a
//! checksum of the chart that it was made from.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::golang;

/// The release of Helm that is built. xtask/helm/go.mod requires the same.
pub const VERSION: &str = "3.22.0";

/// The oldest Kubernetes that the chart is for.
const KUBERNETES: &str = "1.33.0";

/// Demands Helm: the test that renders fails without one, instead of being skipped.
pub const REQUIRE: &str = "BINDERY_REQUIRE_HELM";

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// A file of manifests.
pub struct Manifests {
    name: &'static str,
    /// What it is made from, in words.
    from: &'static str,
    values: &'static [&'static str],
}

/// All files there are.
pub const ALL: [Manifests; 4] = [
    Manifests { name: "bindery.yaml", from: "deploy/chart with its default values", values: &[] },
    Manifests {
        name: "bindery-scheduler.yaml",
        from: "deploy/chart with scheduler.enabled=true and controller.enabled=false",
        values: &["scheduler.enabled=true", "controller.enabled=false"],
    },
    Manifests {
        name: "bindery-local.yaml",
        from: "deploy/chart with the provisioner of local disks, one class, and node-cleanup, and controller.enabled=false",
        values: &[
            "controller.enabled=false",
            "provisioner.local.enabled=true",
            "provisioner.local.classes.local-disks.hostDir=/mnt/local-disks",
            "provisioner.nodeCleanup.enabled=true",
            "provisioner.nodeCleanup.storageClassNames={local-disks}",
        ],
    },
    Manifests {
        name: "bindery-csi.yaml",
        from: "deploy/chart with the role of a CSI driver's provisioner and all that is optional of it, and controller.enabled=false",
        values: &[
            "controller.enabled=false",
            "provisioner.csi.enabled=true",
            "provisioner.csi.driver=csi.example.com",
            "provisioner.csi.serviceAccount.name=csi-driver",
            "provisioner.csi.attachments=true",
            "provisioner.csi.capacity=true",
            "provisioner.csi.snapshots=true",
            "provisioner.csi.secrets=true",
            "provisioner.csi.attributesClasses=true",
        ],
    },
];

impl Manifests {
    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        deploy().join("manifests").join(self.name)
    }

    /// The file as it is to be.
    pub fn page(&self, helm: &Path) -> Result<String, String> {
        let mut page = format!(
            "# Made from {} by `cargo xtask manifests`; tests check that it is current.\n\
             # docs/tasks/install.md says how to use it. Replace the image, at least.\n\
             {}\n",
            self.from,
            checksum_line()?
        );
        for line in render(helm, self.values)?.lines() {
            page.push_str(line.trim_end());
            page.push('\n');
        }
        page.truncate(page.trim_end().len());
        page.push('\n');
        Ok(page)
    }
}

/// The Helm of the cache, or else the one on PATH, if there is one.
pub fn find_helm() -> Option<PathBuf> {
    let runs = |helm: &PathBuf| Command::new(helm).arg("version").output().is_ok_and(|output| output.status.success());
    cached_helm().ok().into_iter().chain([PathBuf::from("helm")]).find(runs)
}

/// Finds Helm, or builds it; what is said while building goes to standard error.
pub fn provide_helm() -> Result<PathBuf, String> {
    if let Some(helm) = find_helm() {
        return Ok(helm);
    }
    if !golang::is_there() {
        return Err("there is no Helm: install it, or install Go to have it built".to_owned());
    }
    let helm = cached_helm()?;
    let folder = helm.parent().unwrap_or(Path::new("."));
    let _lock = golang::lock(folder, "manifests")?;
    if !helm.is_file() {
        eprintln!("manifests: building Helm {VERSION} into {}, once …", folder.display());
        let module = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("helm");
        golang::build(&module, "helm.sh/helm/v3/cmd/helm", "-s -w", &helm)?;
    }
    Ok(helm)
}

fn cached_helm() -> Result<PathBuf, String> {
    Ok(bindery_test_cluster::assets::cache()?.join("tools/helm").join(VERSION).join("helm"))
}

/// The chart with its default values and some others, as it would be installed in kube-system under the name that the
/// documentation uses.
pub fn render(helm: &Path, values: &[&str]) -> Result<String, String> {
    let output = Command::new(helm)
        // Without a cluster to ask, Helm takes a release of Kubernetes for granted, and each Helm another.
        .args(["template", "bindery", "--namespace=kube-system", &format!("--kube-version={KUBERNETES}")])
        .args(values.iter().map(|value| format!("--set={value}")))
        .arg(deploy().join("chart"))
        .output()
        .map_err(|error| format!("{} could not be started: {error}", helm.display()))?;
    if !output.status.success() {
        return Err(format!("`helm template` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The line that ties the file to the chart that it was made from.
fn checksum_line() -> Result<String, String> {
    let mut folders = vec![deploy().join("chart")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let unreadable = |error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    files.sort();
    let mut sum = Fnv::default();
    for file in files {
        let name = file.strip_prefix(deploy()).unwrap_or(&file);
        sum.add(name.to_string_lossy().as_bytes());
        sum.add(&std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    Ok(format!("# The chart's checksum: {:016x}", sum.0))
}

/// FNV-1a: against forgetting, not against malice; and the same on every machine, unlike the standard library's.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds some bytes, and where they end.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().map(u64::from).chain([0x100]) {
            self.0 = (self.0 ^ byte).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Helm, or `None` after it was said that the test is skipped.
    fn helm_for_test() -> Option<PathBuf> {
        let helm = find_helm();
        if helm.is_none() {
            assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set, but there is no Helm");
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            let line = format!("skipped: {test}: there is no Helm; `cargo xtask manifests` builds it\n");
            // Not by eprintln!, which the test harness keeps to itself when a test passes.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        helm
    }

    #[test]
    fn the_manifests_are_what_helm_renders() {
        let Some(helm) = helm_for_test() else { return };
        for manifests in ALL {
            let written = std::fs::read_to_string(manifests.path()).expect("the manifests");
            let is_current = written == manifests.page(&helm).expect("rendered");
            assert!(is_current, "{} is not current: run `cargo xtask manifests`", manifests.name);
        }
    }

    #[test]
    fn the_manifests_are_of_this_chart() {
        let line = checksum_line().expect("a checksum");
        for manifests in ALL {
            let written = std::fs::read_to_string(manifests.path()).expect("the manifests");
            let is_of_it = written.lines().any(|written| written == line);
            assert!(is_of_it, "the chart has changed: run `cargo xtask manifests`");
        }
    }

    #[test]
    fn local_disks_get_what_they_need() {
        let Some(helm) = helm_for_test() else { return };
        let local = ["provisioner.local.enabled=true", "provisioner.local.classes.a.hostDir=/mnt/a"];
        let more = ["provisioner.local.classes.b\\.c.hostDir=/mnt/b", "provisioner.local.classes.b\\.c.mountDir=/seen"];
        let taint = ["provisioner.local.config.removeNodeNotReadyTaint=true", "provisioner.local.privileged=false"];
        let rendered = render(&helm, &[local, more, taint].concat()).expect("rendered");
        let parts = ["mountPath: /mnt/a", "mountPath: /seen", "verbs: [get, patch]", "removeNodeNotReadyTaint: "];
        for part in parts {
            assert!(rendered.contains(part), "{part} is not in\n{rendered}");
        }
        assert!(!rendered.contains("privileged: true"));
        let usual = render(&helm, &local).expect("rendered");
        assert!(usual.contains("privileged: true") && !usual.contains("verbs: [get, patch]"));
        assert!(!render(&helm, &[]).expect("rendered").contains("kind: DaemonSet"), "it is off by default");
    }

    #[test]
    fn a_csi_provisioner_may_only_what_its_driver_needs() {
        let Some(helm) = helm_for_test() else { return };
        let base = ["controller.enabled=false", "provisioner.csi.enabled=true"];
        let named = ["provisioner.csi.serviceAccount.name=sa", "provisioner.csi.driver=a_b."];
        let rendered = |more: &[&str]| render(&helm, &[&base, more].concat());
        let least = rendered(&named).expect("rendered");
        assert!(least.contains("resourceNames: [\"a-b-X\"]") && least.contains("resources: [csinodes]"), "{least}");
        let optional = [
            ("attachments", "volumeattachments"),
            ("capacity", "csistoragecapacities"),
            ("snapshots", "volumesnapshots"),
            ("secrets", "secrets"),
            ("attributesClasses", "volumeattributesclasses"),
            ("crossNamespace", "referencegrants"),
        ];
        for (value, resource) in optional {
            let granted = format!("resources: [{resource}]");
            let more = rendered(&[&named[..], &[&format!("provisioner.csi.{value}=true")]].concat()).expect("rendered");
            assert!(!least.contains(&granted) && more.contains(&granted), "{value}");
        }
        let off = ["provisioner.csi.leaderElection=false", "provisioner.csi.topology=false", named[0]];
        let bare = rendered(&off).expect("rendered");
        assert!(!bare.contains("leases") && !bare.contains("csinodes") && !bare.contains("kind: Role\n"), "{bare}");
        assert!(rendered(&named[..1]).is_err_and(|error| error.contains("provisioner.csi.driver is needed")));
        assert!(rendered(&[]).is_err_and(|error| error.contains("serviceAccount.name is needed")));
        assert!(!render(&helm, &[]).expect("rendered").contains("bindery-csi"), "it is off by default");
    }

    #[test]
    fn values_switch_parts_on_and_off() {
        let Some(helm) = helm_for_test() else { return };
        let usual = render(&helm, &[]).expect("rendered");
        assert!(!usual.contains("kind: ServiceMonitor") && usual.contains("name: bindery-recycler"));
        let switched = ["serviceMonitor.enabled=true", "serviceMonitor.labels.team=storage", "recycler.enabled=false"];
        let more = ["controller.verbosity=2", "controller.extraArgs={--kube-api-burst=50}", "image.digest=sha256:0"];
        let other = render(&helm, &[switched, more].concat()).expect("rendered");
        for part in ["kind: ServiceMonitor", "team: storage", "- --v=2", "- --kube-api-burst=50", "bindery@sha256:0"] {
            assert!(other.contains(part), "{part} is not in\n{other}");
        }
        assert!(!other.contains("bindery-recycler"));
    }

    #[test]
    fn the_scheduler_is_switched_on_beside_the_controller_or_alone() {
        let Some(helm) = helm_for_test() else { return };
        let kinds = |text: &str, kind: &str| text.lines().filter(|line| *line == format!("kind: {kind}")).count();
        let usual = render(&helm, &[]).expect("rendered");
        assert!(!usual.contains("bindery-scheduler"));
        let both = render(&helm, &["scheduler.enabled=true"]).expect("rendered");
        for kind in ["Deployment", "Service", "ServiceAccount", "ClusterRole", "PodDisruptionBudget"] {
            assert_eq!((kinds(&usual, kind), kinds(&both, kind)), (1, 2), "{kind}");
        }
        let alone = ALL[1].values;
        let named = ["scheduler.schedulerName=default-scheduler", "scheduler.replicas=3", "placedBy=kube-scheduler"];
        let other = render(&helm, &[alone, &named].concat()).expect("rendered");
        for part in ["- --scheduler-name=default-scheduler", "replicas: 3", "schedulerName: kube-scheduler"] {
            assert!(other.contains(part), "{part} is not in\n{other}");
        }
        assert!(!other.contains("bindery-recycler") && kinds(&other, "ClusterRole") == 1);
        // It would wait for itself.
        let error = render(&helm, &["scheduler.enabled=true", named[0]]).expect_err("refused");
        assert!(error.contains("cannot place its own pods"), "{error}");
    }

    #[test]
    fn the_module_is_of_the_version_that_is_built() {
        let module = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/helm/go.mod")).expect("go.mod");
        assert!(module.contains(&format!("helm.sh/helm/v3 v{VERSION}")), "helm.sh/helm/v3 is v{VERSION}");
    }

    #[test]
    fn chart_and_program_have_one_version() {
        let chart = std::fs::read_to_string(deploy().join("chart/Chart.yaml")).expect("Chart.yaml");
        for field in ["version", "appVersion"] {
            let line = format!("\n{field}: {}\n", env!("CARGO_PKG_VERSION"));
            assert!(chart.contains(&line), "{field} is {}", env!("CARGO_PKG_VERSION"));
        }
    }
}
