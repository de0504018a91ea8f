//! The process: its output, invalid flags, and shutdown.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::server::{Server, folder, start_error};

#[test]
fn listening_beyond_loopback_requires_allow_remote() {
    let message = start_error(&["--listen", "0.0.0.0:0"]);
    assert!(message.contains("0.0.0.0:0 can be reached from other machines"), "{message}");
    assert!(message.contains("--allow-remote"), "{message}");
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = folder();
    let kubeconfig = folder.join("kubeconfig");
    let message = start_error(&["--listen", &address, "--write-kubeconfig", &kubeconfig.to_string_lossy()]);
    assert!(message.contains(&format!("cannot listen on {address}")), "{message}");
    assert!(!kubeconfig.exists(), "no kubeconfig is written");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn an_unwritable_kubeconfig_is_reported() {
    let message = start_error(&["--listen", "127.0.0.1:0", "--write-kubeconfig", "/proc/none/kubeconfig"]);
    assert!(message.contains("/proc/none"), "{message}");
}

#[test]
fn the_kubeconfig_is_private() {
    let server = Server::start();
    let mode = std::fs::metadata(server.kubeconfig()).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_kubeconfig_defaults_to_the_runtime_folder() {
    let folder = folder();
    let mut process = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["apiserver", "--listen", "127.0.0.1:0"])
        .env("XDG_RUNTIME_DIR", &folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("bindery starts");
    let mut output = std::io::BufReader::new(process.stdout.take().expect("stdout is piped"));
    let mut message = String::new();
    for _ in 0..2 {
        std::io::BufRead::read_line(&mut output, &mut message).expect("it prints a line");
    }
    process.kill().expect("it can be killed");
    process.wait().expect("it ends");
    let kubeconfig = folder.join("bindery/kubeconfig");
    assert!(message.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{message}");
    assert!(kubeconfig.exists());
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn it_stops_on_sigterm_with_open_watches() {
    let Some(mut server) = Server::for_kubectl() else { return };
    let watch =
        server.kubectl_command(&["get", "namespaces", "--watch", "-o", "name"]).spawn().expect("kubectl starts");
    let mut watch = watch;
    let mut output = std::io::BufReader::new(watch.stdout.take().expect("stdout is piped"));
    let mut first = String::new();
    std::io::BufRead::read_line(&mut output, &mut first).expect("it prints a namespace");
    assert_eq!(first, "namespace/default\n");
    server.stop();
    let _ = watch.kill();
    let _ = watch.wait();
}

/// A kubeconfig as another program may have written it.
const FOREIGN: &str = "apiVersion: v1
kind: Config
clusters:
- {name: prod, cluster: {server: 'https://prod.example.com:6443'}}
users:
- {name: me, user: {token: secret}}
contexts:
- {name: prod, context: {cluster: prod, user: me}}
current-context: prod
";

fn contexts(file: &std::path::Path) -> (String, Vec<String>) {
    let config = kube::config::Kubeconfig::read_from(file).expect("a kubeconfig");
    (config.current_context.unwrap_or_default(), config.contexts.into_iter().map(|context| context.name).collect())
}

#[test]
fn a_kubeconfig_of_others_is_not_overwritten() {
    let folder = folder();
    let file = folder.join("config");
    for command in ["apiserver", "up"] {
        std::fs::write(&file, FOREIGN).expect("a file can be written");
        let mut first = Server::start_in(command, &file, &[]);
        assert_eq!(contexts(&file), ("bindery".to_owned(), vec!["prod".to_owned(), "bindery".to_owned()]));
        let mode = std::fs::metadata(&file).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // A second server does not lock the first one's user out.
        let mut second = Server::start_in(command, &file, &[]);
        let port = second.url.rsplit(':').next().expect("a port");
        let name = format!("bindery-{port}");
        assert_eq!(contexts(&file), (name.clone(), vec!["prod".to_owned(), "bindery".to_owned(), name]));
        second.stop();
        first.stop();
        assert_eq!(contexts(&file), (String::new(), vec!["prod".to_owned()]), "both were in memory");
        assert!(std::fs::read_to_string(&file).expect("it exists").contains("https://prod.example.com:6443"));
    }
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn a_file_that_is_no_kubeconfig_is_not_overwritten() {
    let folder = folder();
    let file = folder.join("config");
    std::fs::write(&file, "clusters: [").expect("a file can be written");
    let message = start_error(&["--listen", "127.0.0.1:0", "--write-kubeconfig", &file.to_string_lossy()]);
    assert!(message.contains("config is not a valid kubeconfig, and is left as it is"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).expect("it exists"), "clusters: [");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
