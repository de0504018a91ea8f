//! The binary as a server for one test, and kubectl with its kubeconfig.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bindery_test_cluster::{TestCluster, assets};

/// A running server, killed on drop.
pub struct Server {
    pub process: Child,
    /// Kept open: the process may end if its stdout is closed.
    _output: BufReader<ChildStdout>,
    /// Its URL.
    pub url: String,
    folder: PathBuf,
}

/// A new folder for one test.
pub fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindery-apiserver-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return folder,
            // Left by a killed process with the same PID.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", folder.display()),
        }
    }
}

/// The error message of a server that does not start.
pub fn start_error(args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bindery")).arg("apiserver").args(args).output().expect("bindery runs");
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Server {
    /// Starts a server on a free port.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts a server with more flags.
    pub fn start_with(args: &[&str]) -> Server {
        Server::start_as("apiserver", args)
    }

    /// Starts `bindery apiserver` or `bindery up`.
    fn start_as(command: &str, args: &[&str]) -> Server {
        let folder = folder();
        let kubeconfig = folder.join("kubeconfig");
        Server::spawn(command, folder, &kubeconfig, args)
    }

    /// Starts `bindery apiserver` or `bindery up` with a kubeconfig elsewhere.
    pub fn start_in(command: &str, kubeconfig: &Path, args: &[&str]) -> Server {
        Server::spawn(command, folder(), kubeconfig, args)
    }

    fn spawn(command: &str, folder: PathBuf, kubeconfig: &Path, args: &[&str]) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args([command, "--listen", "127.0.0.1:0", "--write-kubeconfig"])
            .arg(kubeconfig)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("bindery starts");
        let mut output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut message = [String::new(), String::new()];
        for line in &mut message {
            output.read_line(line).expect("it prints a line");
        }
        let url = message[0].trim().strip_prefix("serves ").expect("it prints its URL").to_owned();
        assert_eq!(message[1].trim(), format!("export KUBECONFIG={}", kubeconfig.display()));
        Server { process, _output: output, url, folder }
    }

    /// Starts `bindery up` for a test that needs kubectl, or reports that the test is skipped.
    pub fn up_for_kubectl(args: &[&str]) -> Option<Server> {
        if TestCluster::skip_test() { None } else { Some(Server::start_as("up", args)) }
    }

    /// Starts a server for a test that needs kubectl, or reports that the test is skipped.
    pub fn for_kubectl() -> Option<Server> {
        if TestCluster::skip_test() { None } else { Some(Server::start()) }
    }

    /// Stops it with SIGTERM, and checks that it exits successfully.
    pub fn stop(&mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A kubectl command, not yet started.
    pub fn kubectl_command(&self, args: &[&str]) -> Command {
        let programs = assets::find().expect("programs are found").expect("programs exist");
        let mut command = Command::new(programs.join("kubectl"));
        command
            .args(args)
            .env("KUBECONFIG", self.kubeconfig())
            .env("KUBERC", "off")
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs kubectl. Returns its output or its error.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        finish(self.kubectl_command(args).spawn().expect("kubectl starts"), args)
    }

    /// Runs kubectl with this standard input.
    pub fn kubectl_with_input(&self, input: &str, args: &[&str]) -> Result<String, String> {
        let mut process = self.kubectl_command(args).stdin(Stdio::piped()).spawn().expect("kubectl starts");
        let mut stdin = process.stdin.take().expect("stdin is piped");
        stdin.write_all(input.as_bytes()).expect("kubectl reads");
        drop(stdin);
        finish(process, args)
    }

    /// Runs kubectl, which must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        self.kubectl(args).expect("kubectl succeeds")
    }

    /// Creates objects, which must succeed.
    pub fn create(&self, yaml: &str) -> String {
        self.kubectl_with_input(yaml, &["create", "-f", "-"]).expect("objects are created")
    }
}

fn finish(process: Child, args: &[&str]) -> Result<String, String> {
    let output = process.wait_with_output().expect("kubectl ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("kubectl {}: {}{}", args.join(" "), text(&output.stdout), text(&output.stderr)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
