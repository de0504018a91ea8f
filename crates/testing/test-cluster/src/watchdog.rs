//! The directory of a test cluster, and a watchdog that cleans up even if this process is killed.
//!
//! `Drop` does not run in a killed process. Therefore every test cluster has a watchdog: a shell
//! that reads from a pipe. Every program is registered with it *before* it starts. When the pipe is
//! closed, by drop or by the end of this process, the watchdog kills all programs and removes the
//! directory.
//!
//! The alternative `PR_SET_PDEATHSIG` needs `unsafe` or util-linux, exists on Linux only, and fires
//! when the *thread* that started the program ends, which may be a test while others share the
//! cluster.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Reads commands, one per line: `watch PID`, `forget PID`, or a signal name and a PID. Every
/// program is the leader of a process group, which is killed as a whole; other signals are sent to
/// the program only. The watchdog itself ignores signals and ends with the pipe. `rm` is repeated
/// because a killed program may still write for a moment.
const WATCHDOG: &str = r#"
trap '' HUP INT QUIT TERM
running=' '
while read -r order pid; do
  case $order in
    watch) running="$running$pid " ;;
    forget) case $running in *" $pid "*) running="${running%% $pid *} ${running#* $pid }" ;; esac ;;
    KILL) kill -s KILL -- "-$pid" ;;
    *) kill -s "$order" "$pid" ;;
  esac
done
for pid in $running; do kill -s KILL -- "-$pid"; done
tries=50
until rm -rf -- "$1" || [ "$tries" = 0 ]; do tries=$((tries - 1)); sleep 0.1; done
"#;

/// Waits for a line before it executes the program; if this process ends first, it never starts.
const GATE: &str = r#"read -r go && exec "$@""#;

/// The directory of a test cluster with its watchdog. Dropping it ends the watchdog, which cleans
/// up.
pub(crate) struct Workspace {
    folder: PathBuf,
    watchdog: Child,
    /// `None` only while dropping.
    orders: Mutex<Option<ChildStdin>>,
    started: AtomicU32,
}

impl Workspace {
    /// Creates the directory with mode 0700, because it contains keys and tokens.
    pub(crate) fn create() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("bindery-test-cluster-{}", random()));
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "bindery-test-cluster-watchdog"])
            .arg(&folder)
            .current_dir("/")
            // A separate group, so that signals for our group (Ctrl-C, CI) do not end the watchdog.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start the watchdog (sh): {error}"))?;
        let orders = Mutex::new(watchdog.stdin.take());
        let workspace = Self { folder, watchdog, orders, started: AtomicU32::new(0) };
        // After the watchdog has started, so that the directory is always removed.
        let created = DirBuilder::new().mode(0o700).create(&workspace.folder);
        created.map_err(|error| format!("{}: {error}", workspace.folder.display()))?;
        Ok(workspace)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process ID of the watchdog.
    pub(crate) fn watchdog_pid(&self) -> u32 {
        self.watchdog.id()
    }

    /// A unique number for a program.
    pub(crate) fn next_number(&self) -> u32 {
        self.started.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a program under the watchdog, in a new process group. Its standard input is free to
    /// use.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Child, String> {
        let failed = |error: std::io::Error| format!("cannot start {}: {error}", program.display());
        let mut command = Command::new("sh");
        command.args(["-c", GATE, "sh"]).arg(program).args(args).process_group(0).stdin(Stdio::piped());
        configure(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        // Dropping the child on error closes its input, and the program is never executed.
        self.order("watch", child.id())?;
        child.stdin.as_mut().map_or(Ok(()), |input| input.write_all(b"go\n")).map_err(failed)?;
        Ok(child)
    }

    /// Sends a signal (`TERM`, `STOP`…) to a program that was started here and not waited for.
    pub(crate) fn signal(&self, signal: &str, pid: u32) -> Result<(), String> {
        self.order(signal, pid)
    }

    /// Unregisters a program that has ended, because its PID may be reused.
    pub(crate) fn forget(&self, pid: u32) {
        // Without a watchdog there is nothing to unregister.
        let _ = self.order("forget", pid);
    }

    fn order(&self, order: &str, pid: u32) -> Result<(), String> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = orders.as_mut().ok_or("the watchdog has ended")?;
        writeln!(pipe, "{order} {pid}").map_err(|error| format!("cannot write to the watchdog: {error}"))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.orders.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.watchdog.wait();
    }
}

/// 128 random bits from the operating system, by way of the hasher's keys.
pub(crate) fn random() -> String {
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const KILLED: Option<i32> = Some(9);

    #[test]
    fn watchdog_kills_registered_programs_and_removes_the_directory() {
        let workspace = Workspace::create().expect("a workspace");
        let folder = workspace.folder().to_owned();
        let mut children = [1, 2, 3].map(|_| workspace.spawn(Path::new("sleep"), ["1000"], |_| ()).expect("sleep"));
        // Unregistering one in the middle keeps the others.
        workspace.forget(children[1].id());
        drop(workspace);
        assert!(!folder.exists());
        assert_eq!(children[0].wait().expect("an end").signal(), KILLED);
        assert_eq!(children[2].wait().expect("an end").signal(), KILLED);
        assert!(children[1].try_wait().expect("a state").is_none(), "an unregistered program is not killed");
        children[1].kill().and_then(|()| children[1].wait()).expect("it ends");
    }

    #[test]
    fn program_gets_its_standard_input() {
        let workspace = Workspace::create().expect("a workspace");
        let mut cat = workspace
            .spawn(Path::new("cat"), [""; 0], |command| {
                command.stdout(Stdio::piped());
            })
            .expect("cat");
        cat.stdin.take().expect("its input").write_all(b"go\nand more\n").expect("written");
        assert_eq!(cat.wait_with_output().expect("its output").stdout, b"go\nand more\n");
    }
}
