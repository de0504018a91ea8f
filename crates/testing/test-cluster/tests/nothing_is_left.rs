//! Nothing of a lab is left behind: no process and no folder, whether it is dropped or whoever holds it is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bindery_test_cluster::{TestCluster, eventually};

#[test]
fn nothing_is_left_of_a_lab_that_was_dropped() {
    let Some(lab) = TestCluster::for_test() else { return };
    let family = "sleep 1000 & echo $!; wait";
    let shell = lab.start_program("/bin/sh", ["-c", family]).expect("a shell");
    eventually("the shell has a child", || shell.log().ends_with('\n'));
    let grandchild = shell.log().trim().parse().expect("a process");
    let (folder, mut pids) = (lab.folder().to_owned(), lab.pids().to_vec());
    pids.extend([shell.pid(), grandchild]);
    assert!(folder.exists());
    assert!(pids.iter().all(|&pid| runs(pid)), "{pids:?} run");
    drop(lab);
    drop(shell); // the last one to hold the folder, even though the lab went first
    assert!(!folder.exists(), "{} is left", folder.display());
    all_end(&pids);
}

#[test]
fn nothing_is_left_when_its_holder_is_killed() {
    if TestCluster::skips_test() {
        return;
    }
    let mut holder = Command::new(env!("CARGO_BIN_EXE_bindery-test-cluster"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("bindery-test-cluster");
    let mut lines = BufReader::new(holder.stdout.take().expect("its output")).lines().map(|line| line.expect("a line"));
    let folder = folder_in(&lines.next().expect("where its kubeconfig is"));
    let pids = pids_in(&lines.next().expect("which its processes are"));
    assert!(folder.exists());
    assert!(pids.len() == 3 && pids.iter().all(|&pid| runs(pid)), "{pids:?} run");
    holder.kill().expect("SIGKILL");
    holder.wait().expect("its end");
    all_end(&pids);
    assert!(!folder.exists(), "{} is left", folder.display());
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

/// One that has ended and waits to be noticed by its parent (a zombie) does not run.
fn runs(pid: u32) -> bool {
    // Where there is /proc there need not be `ps`, and the other way round. The state follows the name in brackets.
    let state = if Path::new("/proc/self/stat").exists() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").map(|(_, state)| state.to_owned()).unwrap_or_default()
    } else {
        let ps = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().expect("ps");
        String::from_utf8_lossy(&ps.stdout).into_owned()
    };
    !state.trim().is_empty() && !state.starts_with('Z')
}
