//! The lab itself: an API server that is ready, and what can be done with it.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::builder::Builder;
use crate::guard::Home;
use crate::patience::PATIENCE;
use crate::port::Port;
use crate::running::Running;
use crate::server::Backend;
use crate::{assets, etcd};

/// Demands the lab: a test that cannot have one fails instead of being skipped.
pub(crate) const REQUIRE: &str = "BINDERY_REQUIRE_LAB";

/// An API server of one's own. It ends when this is dropped, and when the process that holds it ends in any other way.
pub struct TestCluster {
    // Dropped in this order: an API server that has lost its etcd does nothing but complain.
    pub(crate) api_server: Running,
    pub(crate) backend: Backend,
    pub(crate) api_server_program: PathBuf,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) port: Port,
    pub(crate) server_url: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) home: Arc<Home>,
}

impl TestCluster {
    /// Starts a plain one, and returns when it is ready.
    pub fn start() -> Result<Self, String> {
        Builder::default().start()
    }

    /// Starts a plain one for a test: see [`Builder::for_test`].
    pub fn for_test() -> Option<Self> {
        Builder::default().for_test()
    }

    /// One with more users, or other flags.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether the programs are there that a lab needs.
    pub fn available() -> bool {
        matches!(assets::find(), Ok(Some(_)))
    }

    /// Whether a test is to return without having tested, because the programs are not there; that it does is said on
    /// standard error.
    ///
    /// # Panics
    ///
    /// If the programs are not there but demanded: `BINDERY_REQUIRE_LAB` is set.
    pub fn skips_test() -> bool {
        let skips = matches!(assets::find(), Ok(None));
        if skips {
            assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set, but {}", assets::none());
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // Not by eprintln!, which the test harness keeps to itself when a test passes; and in one piece.
            let _ = std::io::stderr().write_all(format!("skipped: {test}: {}\n", assets::none()).as_bytes());
        }
        skips
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig for a user that the lab was built with. The embedded server knows the administrator alone: there, everybody is.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, String> {
        match &self.backend {
            Backend::Kubernetes(kubernetes) => kubernetes.kubeconfig_of(user, self.folder(), &self.server_url),
            Backend::Embedded => Ok(self.kubeconfig.clone()),
        }
    }

    /// Where the API server listens.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// The folder of everything that the lab writes. It goes with the lab.
    pub fn folder(&self) -> &Path {
        self.home.folder()
    }

    /// The processes that make up the lab itself: API server, etcd if it has one, and the guard that ends them.
    pub fn pids(&self) -> Vec<u32> {
        let etcd = self.backend.etcd().map(Running::pid);
        [self.api_server.pid()].into_iter().chain(etcd).chain([self.home.guard_pid()]).collect()
    }

    /// The API server's log.
    pub fn api_server_log(&self) -> String {
        self.api_server.log()
    }

    /// Starts a program beside the API server: one of the reference programs by its name, any other by its path.
    pub fn start_program(
        &self,
        program: impl AsRef<Path>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Running, String> {
        let program = program.as_ref();
        // A path that is absolute, or relative to here, replaces or leaves the folder of the programs.
        let path = if program.components().count() > 1 { program.to_owned() } else { self.programs.join(program) };
        if !path.is_file() {
            return Err(format!("there is no program {}", path.display()));
        }
        Running::start(&self.home, &path, args)
    }

    /// Runs kubectl as the administrator. An answer that is no success is an error with what kubectl said.
    pub fn kubectl(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String, String> {
        self.kubectl_with(&self.kubeconfig, args, "")
    }

    /// Runs kubectl as the administrator with something on its standard input, for `-f -`.
    pub fn kubectl_reading(
        &self,
        input: &str,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String, String> {
        self.kubectl_with(&self.kubeconfig, args, input)
    }

    /// Runs kubectl with any kubeconfig.
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

    /// Kills the API server, as a crash would. Clients see it gone until [`TestCluster::start_api_server`].
    pub fn kill_api_server(&mut self) -> Result<(), String> {
        self.api_server.kill().map(drop)
    }

    /// Starts the API server again after [`TestCluster::kill_api_server`], at the same address and with everything it knew; the embedded
    /// one knows nothing any more, unless it was told where to keep it.
    pub fn start_api_server(&mut self) -> Result<(), String> {
        if self.api_server.ended().is_none() {
            return Err("the API server still runs".to_owned());
        }
        self.api_server = Running::start(&self.home, &self.api_server_program, &self.api_server_flags)?;
        self.wait_until_ready()
    }

    /// Makes etcd forget all revisions but the newest, which is returned. The API server may still know them in its watch
    /// cache: after a restart it does not, and a watch from one of them is told that it is gone. The embedded server has no etcd,
    /// which is an error.
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
                    let last_words = program.last_words();
                    return Err(format!("{} ended ({status}); its last words:\n{last_words}", program.name()));
                }
            }
            if started.elapsed() > PATIENCE {
                let (name, last_words) = (self.api_server.name(), self.api_server.last_words());
                return Err(format!("{name} is not ready after {PATIENCE:?}; its last words:\n{last_words}"));
            }
            sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Starting kubectl costs more than a look at the port, so it waits for that.
    fn is_ready(&self) -> bool {
        let answers = |path| self.kubectl(["get", "--raw", path]).is_ok();
        TcpStream::connect(("127.0.0.1", self.port.number)).is_ok()
            && answers("/readyz")
            // The API server makes it a moment after it says that it is ready, and most tests need it.
            && answers("/api/v1/namespaces/default")
    }

    fn run_kubectl(&self, kubeconfig: &Path, args: &[OsString], input: &str) -> Result<Output, String> {
        let mut child = self.home.spawn(&self.programs.join("kubectl"), args, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            // Neither the settings nor the cache of whoever runs the tests.
            command
                .env("KUBECONFIG", kubeconfig)
                .env("KUBERC", "off")
                .env("KUBECACHEDIR", self.folder().join("kubectl"));
        })?;
        let (pid, stdin) = (child.id(), child.stdin.take());
        let output = std::thread::scope(|scope| {
            // Written beside the reading, because kubectl may answer before it has read everything. One that ends without
            // reading is no error here: its own words say why.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
            child.wait_with_output()
        });
        self.home.forget(pid);
        output.map_err(|error| error.to_string())
    }
}
