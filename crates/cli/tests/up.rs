//! `bindery up`, from the outside: the demonstration, and everything in one process with kubectl on it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_demonstration_shows_each_step_and_its_rule() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).args(["up", "--demo"]).output().expect("bindery runs");
    let text = String::from_utf8(output.stdout).expect("it writes UTF-8");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let shown = [
        "claim.unbound.fits -> bind.1-reserve-volume",
        "bind.2-mark-volume",
        "bind.3-point-claim",
        "bind.4-mark-claim",
        "claim data is bound to disk-10",
        "claim.unbound.waits-for-consumer",
        "claim.unbound.waits-for-scheduling",
        "claim example-local-claim is bound to example-local-pv",
        "disk-20           needs 50Gi, has 20Gi",
    ];
    let mut rest = text.as_str();
    for words in shown {
        let at = rest.find(words).unwrap_or_else(|| panic!("{words:?} is not where it should be in\n{text}"));
        rest = &rest[at + words.len()..];
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
}

/// `bindery up`, until this is dropped.
struct Up {
    process: Child,
    kubeconfig: PathBuf,
}

impl Up {
    fn start() -> Up {
        let kubeconfig = std::env::temp_dir().join(format!("bindery-up-{}/kubeconfig", std::process::id()));
        let process = Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args(["up", "--listen", "127.0.0.1:0", "--write-kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bindery runs");
        let up = Up { process, kubeconfig };
        let started = Instant::now();
        while !up.kubeconfig.exists() {
            assert!(started.elapsed() < Duration::from_secs(30), "there is no kubeconfig");
            std::thread::sleep(Duration::from_millis(50));
        }
        up
    }

    fn kubectl(&self, kubectl: &PathBuf, args: &[&str]) -> String {
        let mut command = Command::new(kubectl);
        let output = command.arg("--kubeconfig").arg(&self.kubeconfig).args(args).output().expect("kubectl runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it writes UTF-8")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.kubeconfig.parent().map(std::fs::remove_dir_all);
    }
}

#[test]
fn a_claim_that_kubectl_makes_is_bound() {
    if bindery_lab::Lab::skips_test() {
        return;
    }
    let kubectl = bindery_lab::assets::find().expect("assets").expect("assets").join("kubectl");
    let mut up = Up::start();
    let objects = up.kubeconfig.with_file_name("objects.yaml");
    let yaml = "\
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 2Gi},
 accessModes: [ReadWriteOnce], storageClassName: '', hostPath: {path: /tmp/disk}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
 storageClassName: '', resources: {requests: {storage: 1Gi}}}}
";
    std::fs::write(&objects, yaml).expect("a file");
    up.kubectl(&kubectl, &["apply", "-f", &objects.to_string_lossy()]);
    up.kubectl(&kubectl, &["wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s"]);
    let table = up.kubectl(&kubectl, &["get", "pvc", "--no-headers"]);
    assert!(table.split_whitespace().take(4).eq(["data", "Bound", "disk", "2Gi"]), "{table}");

    let told = Command::new("kill").arg(up.process.id().to_string()).status().expect("kill runs");
    assert!(told.success());
    assert!(up.process.wait().expect("it ends").success(), "told to stop, it stops in good order");
}
