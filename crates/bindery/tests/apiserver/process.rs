//! The process: what it writes, refuses, and how it ends.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::server::{Server, folder, refused};

#[test]
fn it_listens_beyond_loopback_only_if_told_twice() {
    let said = refused(&["--listen", "0.0.0.0:0"]);
    assert!(said.contains("0.0.0.0:0 can be reached from other machines"), "{said}");
    assert!(said.contains("--allow-remote"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = folder();
    let kubeconfig = folder.join("kubeconfig");
    let said = refused(&["--listen", &address, "--write-kubeconfig", &kubeconfig.to_string_lossy()]);
    assert!(said.contains(&format!("cannot listen on {address}")), "{said}");
    assert!(!kubeconfig.exists(), "a kubeconfig that leads nowhere is not written");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_named() {
    let said = refused(&["--listen", "127.0.0.1:0", "--write-kubeconfig", "/proc/none/kubeconfig"]);
    assert!(said.contains("/proc/none"), "{said}");
}

#[test]
fn the_kubeconfig_is_private() {
    let server = Server::start();
    let mode = std::fs::metadata(server.kubeconfig()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn without_a_word_the_kubeconfig_goes_to_the_runtime_folder() {
    let folder = folder();
    let mut process = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["apiserver", "--listen", "127.0.0.1:0"])
        .env("XDG_RUNTIME_DIR", &folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("bindery starts");
    let mut output = std::io::BufReader::new(process.stdout.take().expect("its output is ours"));
    let mut said = String::new();
    for _ in 0..2 {
        std::io::BufRead::read_line(&mut output, &mut said).expect("it speaks");
    }
    process.kill().expect("it can be killed");
    process.wait().expect("it ends");
    let kubeconfig = folder.join("bindery/kubeconfig");
    assert!(said.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{said}");
    assert!(kubeconfig.exists());
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn it_ends_when_asked_to_though_somebody_watches() {
    let Some(mut server) = Server::for_kubectl() else { return };
    let watch =
        server.kubectl_command(&["get", "namespaces", "--watch", "-o", "name"]).spawn().expect("kubectl starts");
    let mut watch = watch;
    let mut output = std::io::BufReader::new(watch.stdout.take().expect("its output is ours"));
    let mut first = String::new();
    std::io::BufRead::read_line(&mut output, &mut first).expect("it tells of a namespace");
    assert_eq!(first, "namespace/default\n");
    server.stop();
    let _ = watch.kill();
    let _ = watch.wait();
}
