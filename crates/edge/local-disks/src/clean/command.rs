//! Runs a cleaner command, with a time limit.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The environment variable with a path of the device.
const DEVICE_VARIABLE: &str = "LOCAL_PV_BLKDEVICE";

/// The environment variable with the path by which the device was found, for messages.
const FOUND_AT_VARIABLE: &str = "LOCAL_PV_BLKDEVICE_FOUND_AT";

/// Longer lines of output are split.
const LINE_BYTES_MAX: u64 = 4 << 10;

/// Runs a command for the device at `device`, which was found at `path` and which its standard input
/// keeps locked. Logs its output, and reports the last lines if it fails. After `timeout`, kills the
/// command and everything that it has started.
pub fn run(path: &Path, device: &str, words: &[String], timeout: Duration, locked: OwnedFd) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("blockCleanerCommand is empty".into()) };
    let deadline = Instant::now() + timeout;
    let mut command = Command::new(program);
    command.args(arguments).env(DEVICE_VARIABLE, device).env(FOUND_AT_VARIABLE, path);
    command.stdin(Stdio::from(locked)).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that all processes of the command can be killed.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    drop(command);
    let group = Pid::from_child(&child);
    let (last_lines, outputs) = channel();
    let name = (program.clone(), path.display().to_string());
    let pipes = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)];
    for pipe in pipes.into_iter().flatten() {
        let (name, last_lines) = (name.clone(), last_lines.clone());
        std::thread::spawn(move || log_lines(pipe, &name, &last_lines));
    }
    drop(last_lines);
    match wait(child, &outputs, deadline) {
        Some(Ok((status, _))) if status.success() => Ok(()),
        Some(Ok((status, last))) => {
            Err(format!("{}: {program} ended with {status}: {}", path.display(), last.join("; ")))
        }
        Some(Err(error)) => Err(format!("{program}: {error}")),
        None => {
            // All of them may have ended in the meantime.
            let _ = kill_process_group(group, Signal::KILL);
            Err(format!(
                "{}: {program} was killed because it did not finish within {timeout:?} (blockCleanerTimeout)",
                path.display()
            ))
        }
    }
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

/// Waits until the command has ended and its output is closed; `None` at the deadline.
fn wait(
    mut child: Child,
    outputs: &Receiver<String>,
    deadline: Instant,
) -> Option<io::Result<(ExitStatus, Vec<String>)>> {
    let (ended, end) = channel();
    // The receiver is gone after the deadline. The thread then ends with the killed process.
    std::thread::spawn(move || ended.send(child.wait()));
    let left = || deadline.saturating_duration_since(Instant::now());
    let status = match end.recv_timeout(left()).ok()? {
        Ok(status) => status,
        Err(error) => return Some(Err(error)),
    };
    let mut last = Vec::new();
    loop {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match outputs.recv_timeout(left()) {
            Ok(line) => last.extend(Some(line).filter(|line| !line.is_empty())),
            Err(Disconnected) => return Some(Ok((status, last))),
            Err(Timeout) => return None,
        }
    }
}

/// Logs lines until the pipe is closed, and then sends the last one.
fn log_lines(pipe: Box<dyn Read + Send>, (program, device): &(String, String), last_lines: &Sender<String>) {
    let mut pipe = BufReader::new(pipe);
    let (mut bytes, mut last) = (Vec::new(), String::new());
    loop {
        bytes.clear();
        match pipe.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                last = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                tracing::info!(program, device, line = last, "cleaner output");
            }
        }
    }
    // The receiver is gone after the deadline.
    let _ = last_lines.send(last);
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn run_script(script: &str, timeout: Duration) -> Result<(), String> {
        let locked = OwnedFd::from(File::open("/dev/null").expect("opened"));
        run(Path::new("/dev/some"), "/proc/7/fd/9", &["/bin/sh".into(), "-c".into(), script.into()], timeout, locked)
    }

    #[test]
    fn command_gets_its_device_and_its_exit_status_decides() {
        let run = |script: &str| run_script(script, Duration::from_secs(600));
        assert_eq!(run("test \"$LOCAL_PV_BLKDEVICE $LOCAL_PV_BLKDEVICE_FOUND_AT\" = '/proc/7/fd/9 /dev/some'"), Ok(()));
        let error = run("echo first; echo the disk is stuck >&2; exit 3").expect_err("it failed");
        assert!(error.contains("exit status: 3") && error.contains("the disk is stuck"), "{error}");
        let locked = OwnedFd::from(File::open("/dev/null").expect("opened"));
        let error = super::run(Path::new("/dev/some"), "", &["/nowhere".into()], Duration::from_secs(600), locked);
        assert!(error.as_ref().is_err_and(|error| error.starts_with("/nowhere: ")), "{error:?}");
    }

    #[test]
    fn output_that_is_not_text_or_has_no_lines_does_not_block_the_command() {
        let script = "head -c 300000 /dev/zero; head -c 300000 /dev/urandom; echo end";
        assert_eq!(run_script(script, Duration::from_secs(600)), Ok(()));
    }

    #[test]
    fn command_that_does_not_finish_is_killed_with_its_children() {
        let file = std::env::temp_dir().join(format!("bindery-command-{}", std::process::id()));
        for script in [
            "sleep 600 & echo $! > FILE; wait",
            "sleep 600 & echo $! > FILE",
            "exec >&- 2>&-; echo $$ > FILE; exec sleep 600",
        ] {
            let script = script.replace("FILE", &file.display().to_string());
            // Longer if the machine is too busy to start the script in time.
            let mut timeout = Duration::from_millis(100);
            let pid = loop {
                let error = run_script(&script, timeout).expect_err("it takes too long");
                assert!(error.contains("did not finish within") && error.contains("blockCleanerTimeout"), "{error}");
                match std::fs::read_to_string(&file).unwrap_or_default() {
                    pid if pid.ends_with('\n') => break pid,
                    _ => timeout *= 2,
                }
            };
            std::fs::remove_file(&file).expect("removed");
            let is_running = || {
                let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
                // A killed process may remain until its parent has noticed.
                !status.is_empty() && !status.contains(") Z ")
            };
            while is_running() {
                std::thread::yield_now();
            }
        }
    }
}
