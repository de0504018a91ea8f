//! Teardown: no process and no directory is left, whether the cluster is dropped or its owner is
//! killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bindery_test_cluster::{TestCluster, eventually};

#[test]
fn dropped_cluster_leaves_no_process_and_no_directory() {
    let Some(cluster) = TestCluster::for_test() else { return };
    let family = "sleep 1000 & echo $!; wait";
    let shell = cluster.start_program("/bin/sh", ["-c", family]).expect("a shell");
    eventually("the shell has a child", || shell.log().ends_with('\n'));
    let grandchild = shell.log().trim().parse().expect("a process");
    let (folder, mut pids) = (cluster.folder().to_owned(), cluster.pids().to_vec());
    pids.extend([shell.pid(), grandchild]);
    assert!(folder.exists());
    assert!(pids.iter().all(|&pid| runs(pid)), "{pids:?} are not all running");
    drop(cluster);
    drop(shell); // the last owner of the directory, although the cluster was dropped first
    assert!(!folder.exists(), "{} still exists", folder.display());
    all_end(&pids);
}

#[test]
fn cluster_of_a_killed_process_leaves_no_process_and_no_directory() {
    if TestCluster::skip_test() {
        return;
    }
    let mut holder = Command::new(env!("CARGO_BIN_EXE_bindery-test-cluster"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("bindery-test-cluster");
    let mut lines = BufReader::new(holder.stdout.take().expect("its output")).lines().map(|line| line.expect("a line"));
    let folder = folder_in(&lines.next().expect("a line with the kubeconfig"));
    let pids = pids_in(&lines.next().expect("a line with the process IDs"));
    assert!(folder.exists());
    assert!(pids.len() == 3 && pids.iter().all(|&pid| runs(pid)), "{pids:?} are not all running");
    holder.kill().expect("SIGKILL");
    holder.wait().expect("its end");
    all_end(&pids);
    assert!(!folder.exists(), "{} still exists", folder.display());
}

/// `export KUBECONFIG=FOLDER/kubeconfig`
fn folder_in(line: &str) -> PathBuf {
    let (_, kubeconfig) = line.split_once('=').expect("a path");
    Path::new(kubeconfig).parent().expect("a folder").to_owned()
}

/// `# … [1, 2, 3] …`
fn pids_in(line: &str) -> Vec<u32> {
    let (_, rest) = line.split_once('[').expect("a list");
    let (list, _) = rest.split_once(']').expect("its end");
    list.split(", ").map(|pid| pid.parse().expect("a number")).collect()
}

fn all_end(pids: &[u32]) {
    eventually(&format!("{pids:?} have ended"), || !pids.iter().any(|&pid| runs(pid)));
}

/// Whether a process is running; a zombie is not.
fn runs(pid: u32) -> bool {
    // Either /proc or `ps` may be missing. In /proc, the state follows the name in brackets.
    let state = if Path::new("/proc/self/stat").exists() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").map(|(_, state)| state.to_owned()).unwrap_or_default()
    } else {
        let ps = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().expect("ps");
        String::from_utf8_lossy(&ps.stdout).into_owned()
    };
    !state.trim().is_empty() && !state.starts_with('Z')
}
