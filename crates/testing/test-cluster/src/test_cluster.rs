//! A running test cluster: kubeconfigs, kubectl, further programs, and faults of the API server.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::builder::Builder;
use crate::port::Port;
use crate::running::Running;
use crate::server::Backend;
use crate::wait::TIMEOUT;
use crate::watchdog::Workspace;
use crate::{assets, etcd};

/// If set, tests fail instead of being skipped when binaries are missing.
pub(crate) const REQUIRE: &str = "BINDERY_REQUIRE_TEST_CLUSTER";

/// An API server for tests. It is torn down on drop, and when this process ends in any way.
pub struct TestCluster {
    // Dropped in this order: an API server without etcd only logs errors.
    pub(crate) api_server: Running,
    pub(crate) backend: Backend,
    pub(crate) api_server_program: PathBuf,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) port: Port,
    pub(crate) server_url: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) workspace: Arc<Workspace>,
}

impl TestCluster {
    /// Starts a test cluster with default settings, and returns when it is ready.
    pub fn start() -> Result<Self, String> {
        Builder::default().start()
    }

    /// Starts a test cluster with default settings for a test: see [`Builder::for_test`].
    pub fn for_test() -> Option<Self> {
        Builder::default().for_test()
    }

    /// Configures a test cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether the required binaries are installed.
    pub fn available() -> bool {
        matches!(assets::find(), Ok(Some(_)))
    }

    /// Whether a test must be skipped because binaries are missing, which is reported on standard
    /// error.
    ///
    /// # Panics
    ///
    /// If binaries are missing and `BINDERY_REQUIRE_TEST_CLUSTER` is set.
    pub fn skip_test() -> bool {
        let skips = matches!(assets::find(), Ok(None));
        if skips {
            assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set, but {}", assets::none());
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // The test harness would capture eprintln! of a passing test.
            let _ = std::io::stderr().write_all(format!("skipped: {test}: {}\n", assets::none()).as_bytes());
        }
        skips
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig for a user added with [`Builder::user`]. The embedded API server has only the
    /// administrator, whose kubeconfig is returned.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, String> {
        match &self.backend {
            Backend::Kubernetes(kubernetes) => kubernetes.kubeconfig_of(user, self.folder(), &self.server_url),
            Backend::Embedded => Ok(self.kubeconfig.clone()),
        }
    }

    /// The URL of the API server.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// The directory of all files of the test cluster. It is removed with it.
    pub fn folder(&self) -> &Path {
        self.workspace.folder()
    }

    /// The process IDs of the API server, of etcd if there is one, and of the watchdog.
    pub fn pids(&self) -> Vec<u32> {
        let etcd = self.backend.etcd().map(Running::pid);
        [self.api_server.pid()].into_iter().chain(etcd).chain([self.workspace.watchdog_pid()]).collect()
    }

    /// The API server's log.
    pub fn api_server_log(&self) -> String {
        self.api_server.log()
    }

    /// Starts a further program: a Kubernetes binary by its name, any other by its path.
    pub fn start_program(
        &self,
        program: impl AsRef<Path>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Running, String> {
        let program = program.as_ref();
        // A name without directories is a Kubernetes binary.
        let path = if program.components().count() > 1 { program.to_owned() } else { self.programs.join(program) };
        if !path.is_file() {
            return Err(format!("cannot start {}: no such file", path.display()));
        }
        Running::start(&self.workspace, &path, args)
    }

    /// Runs kubectl as the administrator. A failure is an error with kubectl's message.
    pub fn kubectl(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String, String> {
        self.kubectl_with(&self.kubeconfig, args, "")
    }

    /// Runs kubectl as the administrator with standard input, for `-f -`.
    pub fn kubectl_with_input(
        &self,
        input: &str,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String, String> {
        self.kubectl_with(&self.kubeconfig, args, input)
    }

    /// Runs kubectl with a kubeconfig and standard input.
    pub fn kubectl_with(
        &self,
        kubeconfig: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &str,
    ) -> Result<String, String> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let words = || format!("kubectl {}", args.join(OsStr::new(" ")).display());
        let output = self.run_kubectl(kubeconfig, &args, input).map_err(|error| format!("{}: {error}", words()))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("{}: {}", words(), String::from_utf8_lossy(&output.stderr).trim_end()))
        }
    }

    /// Kills the API server, which is unreachable until [`TestCluster::start_api_server`].
    pub fn kill_api_server(&mut self) -> Result<(), String> {
        self.api_server.kill().map(drop)
    }

    /// Starts the API server again after [`TestCluster::kill_api_server`], at the same address and
    /// with the same data. The embedded API server loses its data, unless it has a data directory.
    pub fn start_api_server(&mut self) -> Result<(), String> {
        if self.api_server.ended().is_none() {
            return Err("the API server is still running".to_owned());
        }
        self.api_server = Running::start(&self.workspace, &self.api_server_program, &self.api_server_flags)?;
        self.wait_until_ready()
    }

    /// Compacts all revisions of etcd but the newest, which is returned. The API server may still
    /// have them in its watch cache, but not after a restart: then a watch from one of them
    /// expires. An error with the embedded API server, which has no etcd.
    pub fn compact(&self) -> Result<u64, String> {
        match self.backend {
            Backend::Kubernetes(_) => etcd::compact(self.folder()),
            Backend::Embedded => Err("the embedded API server has no etcd".to_owned()),
        }
    }

    pub(crate) fn wait_until_ready(&mut self) -> Result<(), String> {
        let started = Instant::now();
        while !self.is_ready() {
            for program in [&mut self.api_server].into_iter().chain(self.backend.etcd_mut()) {
                if let Some(status) = program.ended() {
                    let log_tail = program.log_tail();
                    return Err(format!("{} ended ({status}); the end of its log:\n{log_tail}", program.name()));
                }
            }
            if started.elapsed() > TIMEOUT {
                let (name, log_tail) = (self.api_server.name(), self.api_server.log_tail());
                return Err(format!("{name} is not ready after {TIMEOUT:?}; the end of its log:\n{log_tail}"));
            }
            sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Connecting to the port is cheaper than starting kubectl, and is tried first.
    fn is_ready(&self) -> bool {
        let answers = |path| self.kubectl(["get", "--raw", path]).is_ok();
        TcpStream::connect(("127.0.0.1", self.port.number)).is_ok()
            && answers("/readyz")
            // The default namespace is created shortly after the server is ready, and most tests
            // need it.
            && answers("/api/v1/namespaces/default")
    }

    fn run_kubectl(&self, kubeconfig: &Path, args: &[OsString], input: &str) -> Result<Output, String> {
        let mut child = self.workspace.spawn(&self.programs.join("kubectl"), args, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            // Ignore the settings and the cache of the user who runs the tests.
            command
                .env("KUBECONFIG", kubeconfig)
                .env("KUBERC", "off")
                .env("KUBECACHEDIR", self.folder().join("kubectl"));
        })?;
        let (pid, stdin) = (child.id(), child.stdin.take());
        let output = std::thread::scope(|scope| {
            // In another thread, because kubectl may write before it has read everything. If it
            // ends without reading, its own message says why.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
            child.wait_with_output()
        });
        self.workspace.forget(pid);
        output.map_err(|error| error.to_string())
    }
}
