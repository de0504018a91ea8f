//! Nothing is left behind: a lab's folder, and a shell that outlives whoever started it to clear up.
//!
//! `Drop` does not run in a process that is killed. So beside every lab a shell reads from a pipe whose other end only we
//! hold. It is told of every program *before* that program starts. When the pipe closes, because the lab was dropped or
//! because we are no more, it kills what still runs and removes the folder.
//!
//! Considered: `PR_SET_PDEATHSIG` (needs `unsafe` or util-linux, exists on Linux only, and fires when the *thread* that
//! started the program ends, as the threads of tests do while others still use a shared lab).

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

/// Reads orders, one a line: `guard PID`, `forget PID`, or the name of a signal and PID. Every program leads a process group,
/// and is killed with its group, so that what it has started ends with it; any other signal is for the program alone. Signals
/// for the shell itself are ignored: it ends when there is nothing left to guard. `rm` is repeated because a killed program may
/// write for another moment.
const GUARD: &str = r#"
trap '' HUP INT QUIT TERM
running=' '
while read -r order pid; do
  case $order in
    guard) running="$running$pid " ;;
    forget) case $running in *" $pid "*) running="${running%% $pid *} ${running#* $pid }" ;; esac ;;
    KILL) kill -s KILL -- "-$pid" ;;
    *) kill -s "$order" "$pid" ;;
  esac
done
for pid in $running; do kill -s KILL -- "-$pid"; done
tries=50
until rm -rf -- "$1" || [ "$tries" = 0 ]; do tries=$((tries - 1)); sleep 0.1; done
"#;

/// Becomes the program once it is told to; if we end before that, it reads the end of the pipe and never starts.
const GATE: &str = r#"read -r go && exec "$@""#;

/// A lab's folder with its guard. The last one to let go of it ends the guard, which removes the folder.
pub(crate) struct Home {
    folder: PathBuf,
    guard: Child,
    /// `None` only while dropping.
    orders: Mutex<Option<ChildStdin>>,
    started: AtomicU32,
}

impl Home {
    /// Makes the folder, for our eyes only: it holds keys and tokens.
    pub(crate) fn create() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("bindery-lab-{}", random()));
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "bindery-lab-guard"])
            .arg(&folder)
            .current_dir("/")
            // A group of its own: what is sent to ours (Ctrl-C, a CI's kill) must not take the guard along.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the lab's guard (sh) could not be started: {error}"))?;
        let orders = Mutex::new(guard.stdin.take());
        let home = Self { folder, guard, orders, started: AtomicU32::new(0) };
        // FailureEffect the guard has started, so that there is no moment in which nobody would remove it.
        let made = DirBuilder::new().mode(0o700).create(&home.folder);
        made.map_err(|error| format!("{}: {error}", home.folder.display()))?;
        Ok(home)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The guard's process: what must be gone, too.
    pub(crate) fn guard_pid(&self) -> u32 {
        self.guard.id()
    }

    /// A number that no other program of this lab has.
    pub(crate) fn next_number(&self) -> u32 {
        self.started.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a program under guard, in a process group of its own. What is written to its standard input is the program's.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Child, String> {
        let failed = |error: std::io::Error| format!("{} could not be started: {error}", program.display());
        let mut command = Command::new("sh");
        command.args(["-c", GATE, "sh"]).arg(program).args(args).process_group(0).stdin(Stdio::piped());
        configure(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        // Dropping the child at an error closes its input: then the gate ends without having started anything.
        self.order("guard", child.id())?;
        child.stdin.as_mut().map_or(Ok(()), |input| input.write_all(b"go\n")).map_err(failed)?;
        Ok(child)
    }

    /// Sends a signal (`TERM`, `STOP`…) to a program that was started here and has not been waited for.
    pub(crate) fn signal(&self, signal: &str, pid: u32) -> Result<(), String> {
        self.order(signal, pid)
    }

    /// A program has ended, and its number may soon be another's.
    pub(crate) fn forget(&self, pid: u32) {
        // A guard that is gone guards nothing: there is nothing to forget.
        let _ = self.order("forget", pid);
    }

    fn order(&self, order: &str, pid: u32) -> Result<(), String> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = orders.as_mut().ok_or("the lab's guard has been dismissed")?;
        writeln!(pipe, "{order} {pid}").map_err(|error| format!("the lab's guard does not listen: {error}"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.orders.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.guard.wait();
    }
}

/// 128 bits that nobody guesses, from the operating system's randomness by way of the hasher's keys.
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
    fn the_guard_kills_what_it_was_told_of_and_removes_the_folder() {
        let home = Home::create().expect("a home");
        let folder = home.folder().to_owned();
        let mut children = [1, 2, 3].map(|_| home.spawn(Path::new("sleep"), ["1000"], |_| ()).expect("sleep"));
        // Forgotten in the middle of the list: the others are still known.
        home.forget(children[1].id());
        drop(home);
        assert!(!folder.exists());
        assert_eq!(children[0].wait().expect("an end").signal(), KILLED);
        assert_eq!(children[2].wait().expect("an end").signal(), KILLED);
        assert!(children[1].try_wait().expect("a state").is_none(), "one that is forgotten is left alone");
        children[1].kill().and_then(|()| children[1].wait()).expect("it ends");
    }

    #[test]
    fn input_after_the_gate_is_the_programs() {
        let home = Home::create().expect("a home");
        let mut cat = home
            .spawn(Path::new("cat"), [""; 0], |command| {
                command.stdout(Stdio::piped());
            })
            .expect("cat");
        cat.stdin.take().expect("its input").write_all(b"go\nand more\n").expect("written");
        assert_eq!(cat.wait_with_output().expect("its output").stdout, b"go\nand more\n");
    }
}
