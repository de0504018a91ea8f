//! A running program of a test cluster.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::wait::wait_until;
use crate::watchdog::Workspace;

/// A program that was started in a test cluster. It is killed on drop.
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
    workspace: Arc<Workspace>,
}

impl Running {
    pub(crate) fn start(
        workspace: &Arc<Workspace>,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self, String> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let log = workspace.folder().join(format!("{name}-{}.log", workspace.next_number()));
        let unwritable = |error| format!("{}: {error}", log.display());
        let output = File::create(&log).map_err(unwritable)?;
        let errors = output.try_clone().map_err(unwritable)?;
        let mut child = workspace.spawn(program, args, |command| {
            command.stdout(Stdio::from(output)).stderr(Stdio::from(errors));
        })?;
        drop(child.stdin.take());
        Ok(Self { name, child, log, ended: None, workspace: Arc::clone(workspace) })
    }

    /// The name of the program, without directories.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far, standard output and standard error.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The file with its output. It is removed with the test cluster.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// The body of an HTTP GET at the address that the program has logged in a line of JSON, as
    /// `bindery` does.
    pub fn page(&self, path: &str) -> Result<String, String> {
        let address = || {
            let log = self.log();
            let mut logged = log.lines().filter_map(|line| line.split_once(r#""address":""#)?.1.split_once('"'));
            logged.next().map(|(address, _)| address.to_owned())
        };
        let mut found = None;
        wait_until(|| {
            found = address();
            found.is_some()
        });
        let address = found.ok_or_else(|| format!("{} has not logged an address", self.name))?;
        let failed = |error: std::io::Error| format!("http://{address}{path}: {error}");
        let mut connection = TcpStream::connect(&address).map_err(failed)?;
        connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).map_err(failed)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("invalid HTTP answer: {answer:?}"))?;
        Ok(body.to_owned())
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.note_end(status);
        }
        self.ended
    }

    /// Waits until it has ended, for at most `at_most`.
    pub fn wait(&mut self, at_most: Duration) -> Result<ExitStatus, String> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if started.elapsed() > at_most {
                return Err(format!(
                    "{} is still running after {at_most:?}; the end of its log:\n{}",
                    self.name,
                    self.log_tail()
                ));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Sends SIGTERM, and returns at once: use [`Running::wait`] for the exit status.
    pub fn terminate(&mut self) -> Result<(), String> {
        self.signal("TERM")
    }

    /// Sends a signal by its name without `SIG`, for example `STOP` and `CONT` to pause a program.
    pub fn signal(&mut self, signal: &str) -> Result<(), String> {
        match self.ended() {
            Some(status) => Err(format!("{} has already ended ({status})", self.name)),
            None => self.workspace.signal(signal, self.pid()),
        }
    }

    /// Kills it and its process group with SIGKILL, and returns when it has ended.
    pub fn kill(&mut self) -> Result<ExitStatus, String> {
        if let Some(status) = self.ended() {
            return Ok(status);
        }
        // The watchdog kills the group; the program itself is killed and waited for here.
        let _ = self.workspace.signal("KILL", self.pid());
        let failed = |error| format!("cannot kill {}: {error}", self.name);
        self.child.kill().map_err(failed)?;
        let status = self.child.wait().map_err(failed)?;
        self.note_end(status);
        Ok(status)
    }

    /// The end of its log, for messages.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    fn note_end(&mut self, status: ExitStatus) {
        self.ended = Some(status);
        self.workspace.forget(self.child.id());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
