//! A program that runs beside the API server.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::guard::Home;
use crate::patience::comes_to_hold;

/// A program that was started beside a lab's API server. It is killed when this is dropped.
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
    home: Arc<Home>,
}

impl Running {
    pub(crate) fn start(
        home: &Arc<Home>,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self, String> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let log = home.folder().join(format!("{name}-{}.log", home.next_number()));
        let unwritable = |error| format!("{}: {error}", log.display());
        let output = File::create(&log).map_err(unwritable)?;
        let errors = output.try_clone().map_err(unwritable)?;
        let mut child = home.spawn(program, args, |command| {
            command.stdout(Stdio::from(output)).stderr(Stdio::from(errors));
        })?;
        drop(child.stdin.take());
        Ok(Self { name, child, log, ended: None, home: Arc::clone(home) })
    }

    /// The program's name, without folders.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written until now, to either output.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The file that it writes to. It goes with the lab.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// What it serves over plain HTTP at a path, without the head of the answer: at the address that it logs in a line of JSON, as
    /// `bindery` does.
    pub fn page(&self, path: &str) -> Result<String, String> {
        let address = || {
            let log = self.log();
            let mut logged = log.lines().filter_map(|line| line.split_once(r#""address":""#)?.1.split_once('"'));
            logged.next().map(|(address, _)| address.to_owned())
        };
        let mut found = None;
        comes_to_hold(|| {
            found = address();
            found.is_some()
        });
        let address = found.ok_or_else(|| format!("{} has logged no address", self.name))?;
        let failed = |error: std::io::Error| format!("http://{address}{path}: {error}");
        let mut connection = TcpStream::connect(&address).map_err(failed)?;
        connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).map_err(failed)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("no answer but {answer:?}"))?;
        Ok(body.to_owned())
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.note_end(status);
        }
        self.ended
    }

    /// Waits for its end. It is an error if it still runs after `at_most`.
    pub fn wait(&mut self, at_most: Duration) -> Result<ExitStatus, String> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if started.elapsed() > at_most {
                return Err(format!(
                    "{} still runs after {at_most:?}; its last words:\n{}",
                    self.name,
                    self.last_words()
                ));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end (SIGTERM), and returns at once: [`Running::wait`] tells how it did.
    pub fn terminate(&mut self) -> Result<(), String> {
        self.signal("TERM")
    }

    /// Sends a signal by its name, without `SIG`: `STOP` and `CONT` make a program pause that others take for dead.
    pub fn signal(&mut self, signal: &str) -> Result<(), String> {
        match self.ended() {
            Some(status) => Err(format!("{} has ended already ({status})", self.name)),
            None => self.home.signal(signal, self.pid()),
        }
    }

    /// Kills it and whatever it has started, as `kill -9` does, and returns when it is gone.
    pub fn kill(&mut self) -> Result<ExitStatus, String> {
        if let Some(status) = self.ended() {
            return Ok(status);
        }
        // The group is killed by the guard, the program itself from here: it is gone when this returns.
        let _ = self.home.signal("KILL", self.pid());
        let failed = |error| format!("{} could not be killed: {error}", self.name);
        self.child.kill().map_err(failed)?;
        let status = self.child.wait().map_err(failed)?;
        self.note_end(status);
        Ok(status)
    }

    /// The end of its log, for messages.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    fn note_end(&mut self, status: ExitStatus) {
        self.ended = Some(status);
        self.home.forget(self.child.id());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
