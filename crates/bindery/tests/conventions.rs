//! Conventions that all commands share: flags, log formats, error messages, and what is logged at
//! start. Uses the embedded API server, so that these tests run everywhere.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// Commands that talk to a cluster.
const CLUSTER_COMMANDS: [&[&str]; 6] = [
    &["controller"],
    &["scheduler"],
    &["explain", "pvc/data"],
    &["provisioner", "csi"],
    &["provisioner", "local"],
    &["provisioner", "node-cleanup"],
];
/// Commands that listen.
const LISTENING_COMMANDS: [&[&str]; 7] = [
    &["controller"],
    &["scheduler"],
    &["up"],
    &["apiserver"],
    &["provisioner", "csi"],
    &["provisioner", "local"],
    &["provisioner", "node-cleanup"],
];
const PATIENCE: Duration = Duration::from_secs(60);

fn bindery(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    command.args(args).env_remove("KUBECONFIG").env_remove("RUST_LOG");
    command
}

fn output(args: &[&str]) -> Output {
    bindery(args).output().expect("bindery runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of a log, each of which must be JSON.
fn json_lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

/// A directory that is removed with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("bindery-conventions-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the file is written");
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A kubeconfig with a context for each server. The first is the current context.
fn kubeconfig(servers: &[(&str, &str)]) -> String {
    let mut text = format!("apiVersion: v1\nkind: Config\ncurrent-context: {}\n", servers[0].0);
    let list = |heading: &str, item: &dyn Fn(&str, &str) -> String| {
        let items: String = servers.iter().map(|(context, server)| format!("- {}\n", item(context, server))).collect();
        format!("{heading}:\n{items}")
    };
    text += &list("clusters", &|name, server| format!("{{name: {name}, cluster: {{server: '{server}'}}}}"));
    text += &list("contexts", &|name, _| format!("{{name: {name}, context: {{cluster: {name}, user: u}}}}"));
    text + "users:\n- {name: u, user: {}}\n"
}

fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// A command that runs until the test ends, and the lines that it logs.
struct Daemon {
    child: Child,
    lines: Receiver<String>,
}

impl Daemon {
    fn start(args: &[&str]) -> Daemon {
        let mut child = bindery(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("bindery starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (send, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Daemon { child, lines }
    }

    /// The embedded API server, once it has written its kubeconfig.
    fn api_server(kubeconfig: &str) -> Daemon {
        let server = Daemon::start(&["apiserver", "--listen=localhost:0", "--write-kubeconfig", kubeconfig]);
        server.logs("API server started");
        server
    }

    /// Waits for a message, and returns its line and all before it. Every line must be JSON.
    fn logs(&self, message: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{message:?} was not logged after {seen:#?}"));
            seen.push(json_lines(&line).remove(0));
            if seen.last().is_some_and(|line| line["message"] == message) {
                return seen;
            }
        }
    }

    fn line(&self, message: &str) -> Value {
        self.logs(message).pop().expect("a line")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === Flags ===

#[test]
fn commands_have_the_same_flags_for_the_same_things() {
    let help = |command: &[&str]| {
        let output = output(&[command, &["--help"]].concat());
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for command in CLUSTER_COMMANDS {
        let help = help(command);
        for flag in ["--kubeconfig <FILE>", "--context <NAME>", "-v, --v <LEVEL>", "--log-format <FORMAT>"] {
            assert!(help.contains(flag), "{command:?} has no {flag}:\n{help}");
        }
    }
    for command in LISTENING_COMMANDS {
        let help = help(command);
        assert!(help.contains("--listen <ADDRESS>"), "{command:?} has no --listen:\n{help}");
        let output = output(&[command, &["--listen=nonsense"]].concat());
        assert!(stderr(&output).contains("use HOST:PORT, :PORT or localhost:PORT"), "{command:?}: {}", stderr(&output));
    }
}

#[test]
fn listen_accepts_localhost_and_all_interfaces() {
    let directory = Directory::new("listen");
    let config = kubeconfig(&[("prod", &format!("https://127.0.0.1:{}", closed_port()))]);
    let config = format!("--kubeconfig={}", directory.file("kubeconfig", &config));
    for (listen, expected) in [("localhost:0", "127.0.0.1:|[::1]:"), (":0", "[::]:|0.0.0.0:")] {
        for command in [&["controller"][..], &["scheduler"], &["provisioner", "node-cleanup"]] {
            let daemon = Daemon::start(&[command, &[&config, "--listen", listen]].concat());
            let address = daemon.line("serving health and metrics")["address"].as_str().expect("text").to_owned();
            assert!(expected.split('|').any(|start| address.starts_with(start)), "{command:?} {listen}: {address}");
        }
    }
    let output = output(&["apiserver", "--listen=:0"]);
    assert!(stderr(&output).contains("--allow-remote"), "{}", stderr(&output));
}

// === Log formats ===

#[test]
fn stderr_has_only_json_lines_unless_it_is_a_terminal() {
    for args in [
        &["explain", "-f", "/does/not/exist", "pvc/data"][..],
        &["controller", "--kubeconfig=/does/not/exist"],
        &["controller", "--controllers=nonsense"],
        &["scheduler", "--kubeconfig=/does/not/exist"],
        &["apiserver", "--listen=0.0.0.0:0"],
        &["provisioner", "csi", "--volume-name-prefix="],
        &["provisioner", "local", "--config=/does/not/exist", "--node-name=n"],
        &["provisioner", "node-cleanup", "--kubeconfig=/does/not/exist"],
    ] {
        let failed = output(args);
        assert_eq!(failed.status.code(), Some(1), "{args:?}: {}", stderr(&failed));
        let lines = json_lines(&stderr(&failed));
        let last = lines.last().unwrap_or_else(|| panic!("{args:?} logs its error"));
        assert_eq!(last["level"], "ERROR", "{args:?}: {last}");

        let failed = output(&[args, &["--log-format=text"]].concat());
        let text = stderr(&failed);
        assert!(text.lines().all(|line| line.contains("INFO") || line.contains("ERROR")), "{args:?}: {text}");
        assert!(!text.contains('{') && !text.contains('\x1b'), "{args:?}: {text}");
    }
}

// === Errors ===

fn explain_error(kubeconfig: &str, flags: &[&str]) -> String {
    let kubeconfig = format!("--kubeconfig={kubeconfig}");
    let output = output(&[&["explain", "pvc/data", &kubeconfig], flags].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    json_lines(&stderr(&output)).pop().expect("a line")["message"].as_str().expect("text").to_owned()
}

#[test]
fn unreachable_server_is_named_with_its_context_and_the_cause() {
    let directory = Directory::new("unreachable");
    let closed = format!("https://127.0.0.1:{}", closed_port());
    let file = directory.file("kubeconfig", &kubeconfig(&[("prod", &closed), ("dns", "https://nowhere.invalid:6443")]));
    assert_eq!(explain_error(&file, &[]), format!("cannot reach {closed} (context \"prod\"): connection refused"));
    assert_eq!(
        explain_error(&file, &["--context=dns"]),
        "cannot reach https://nowhere.invalid:6443 (context \"dns\"): the host name cannot be resolved"
    );
    let unknown = explain_error(&file, &["--context=nonsense"]);
    assert!(unknown.starts_with("cannot use the kubeconfig ") && unknown.contains("nonsense"), "{unknown}");
    let missing = explain_error("/does/not/exist", &[]);
    assert!(missing.starts_with("cannot read the kubeconfig /does/not/exist: "), "{missing}");
}

#[test]
fn certificate_of_another_authority_is_named() {
    let directory = Directory::new("authority");
    let files = ["first", "second"].map(|name| directory.path(name));
    let _servers = files.each_ref().map(|file| Daemon::api_server(file));
    let [first, second] = files.map(|file| std::fs::read_to_string(Path::new(&file)).expect("a kubeconfig"));
    let authority = |config: &str| {
        let line = config.lines().find(|line| line.contains("certificate-authority-data")).expect("a CA");
        line.trim().to_owned()
    };
    let swapped = first.replace(&authority(&first), &authority(&second));
    let error = explain_error(&directory.file("swapped", &swapped), &[]);
    assert!(error.starts_with("cannot reach https://") && error.contains("certificate authority"), "{error}");
}

#[test]
fn credentials_that_the_server_does_not_accept_are_named() {
    let directory = Directory::new("credentials");
    let server = directory.path("server");
    let _server = Daemon::api_server(&server);
    let text = std::fs::read_to_string(&server).expect("a kubeconfig");
    let context = text.split_once("current-context:").and_then(|(_, rest)| rest.lines().next()).expect("a context");
    let is_kept = |line: &&str| !line.contains("client-certificate-data:") && !line.contains("client-key-data:");
    let expire = |line: &str| match line.split_once("token:") {
        Some((before, _)) => format!("{before}token: expired\n"),
        None => format!("{line}\n"),
    };
    let expired: String = text.lines().filter(is_kept).map(expire).collect();
    let file = directory.file("expired", &expired);
    let error = explain_error(&file, &[]);
    assert!(error.starts_with("cannot log in to https://"), "{error}");
    assert!(error.contains(&format!("(context {:?})", context.trim().trim_matches('"'))), "{error}");
    assert!(error.contains("does not accept the credentials"), "{error}");
    let config = format!("--kubeconfig={file}");
    let controller = Daemon::start(&["controller", &config, "--listen=localhost:0"]);
    let warning = controller.line("API server unavailable, retrying");
    assert_eq!((&warning["level"], &warning["error"]), (&"WARN".into(), &error.as_str().into()));
}

// === Logs ===

#[test]
fn logs_tell_version_server_controllers_and_leadership() {
    let directory = Directory::new("story");
    let kubeconfig = directory.path("kubeconfig");
    let _server = Daemon::api_server(&kubeconfig);
    let config = format!("--kubeconfig={kubeconfig}");
    let args = ["controller", &config, "--listen=localhost:0", "--controllers=*,-ephemeral-volume"];

    let leader = Daemon::start(&args);
    let start = leader.logs("connected to the API server");
    assert_eq!(start[0]["message"], "starting");
    assert_eq!((&start[0]["command"], &start[0]["version"]), (&"controller".into(), &env!("CARGO_PKG_VERSION").into()));
    assert!(start[0]["commit"].is_string());
    assert_eq!(start[1]["message"], "controllers configured");
    assert_eq!(start[1]["disabled"], "ephemeral-volume-controller");
    let connected = start.last().expect("a line");
    assert!(connected["server"].as_str().is_some_and(|server| server.starts_with("https://")), "{connected}");
    assert!(connected["context"].is_string() && connected["version"].is_string(), "{connected}");

    let standby = Daemon::start(&args).line("standing by");
    assert!(standby["leader"].is_string(), "{standby}");
    assert!(standby["renewed"].as_str().is_some_and(|renewed| renewed.ends_with("s ago")), "{standby}");
}

// === Generated documents ===

#[test]
fn documents_are_generated_for_every_command() {
    let directory = Directory::new("generate");
    let man = directory.path("man");
    assert!(output(&["generate", "man", "--dir", &man]).status.success());
    for page in ["bindery.1", "bindery-controller.1", "bindery-provisioner-csi.1", "bindery-explain.1"] {
        assert!(Path::new(&man).join(page).exists(), "{page}");
    }
    let reference = String::from_utf8(output(&["generate", "markdown"]).stdout).expect("UTF-8");
    assert!(reference.contains("bindery provisioner node-cleanup"), "{reference}");
    for args in [["generate", "completions", "bash"].as_slice(), &["completions", "bash"]] {
        assert!(String::from_utf8_lossy(&output(args).stdout).contains("explain"), "{args:?}");
    }
}
