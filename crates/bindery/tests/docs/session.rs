//! A shell that executes the commands of one page.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use bindery_test_cluster::{KUBECTL_TIMEOUT, TIMEOUT, wait_until};

use crate::page::Step;
use crate::pattern;

/// Ends the output of a command; its exit status follows.
const END: char = '\u{1}';

/// A bash with a private folder and process group. It ends the group when its standard input
/// ends, and so even if this process is killed.
pub struct Session {
    shell: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    folder: PathBuf,
    jobs: u32,
}

/// Why a step failed, and what it printed, if it ended.
pub struct Failure {
    pub reason: String,
    pub printed: Option<Vec<String>>,
}

impl Session {
    /// Starts a shell in a copy of examples/ and deploy/, with `bindery`, `cargo` and `programs` in
    /// its PATH.
    pub fn start(root: &Path, programs: Option<&Path>, kubeconfig: Option<&Path>) -> Session {
        let folder = scratch_folder();
        for copied in ["examples", "deploy"] {
            let copy = Command::new("cp").arg("-r").arg(root.join(copied)).arg(folder.join("work")).status();
            assert!(copy.is_ok_and(|status| status.success()), "{copied} can be copied");
        }
        let bin = folder.join("bin");
        write_program(&bin.join("bindery"), &BINDERY.replace("PROGRAM", env!("CARGO_BIN_EXE_bindery")));
        write_program(&bin.join("cargo"), CARGO);
        if let Some(programs) = programs {
            let kubectl = KUBECTL.replace("PROGRAM", &programs.join("kubectl").to_string_lossy());
            write_program(&bin.join("kubectl"), &kubectl.replace("TIMEOUT", KUBECTL_TIMEOUT));
        }
        let programs = programs.map(|programs| format!("{}:", programs.display())).unwrap_or_default();
        let mut command = Command::new("bash");
        command
            .current_dir(folder.join("work"))
            .env_clear()
            .env("PATH", format!("{}:{programs}/usr/local/bin:/usr/bin:/bin", bin.display()))
            .env("HOME", &folder)
            .env("XDG_RUNTIME_DIR", &folder)
            .env("KUBERC", "off")
            .env("KUBECACHEDIR", folder.join("cache"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let mut shell = command.spawn().expect("bash starts");
        let output = BufReader::new(shell.stdout.take().expect("standard output is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let input = shell.stdin.take();
        let mut session = Session { shell, input, lines, folder, jobs: 0 };
        session.type_in("exec 2>&1; trap 'kill 0' EXIT");
        session
    }

    /// Starts `bindery up` for the whole page. With nodes, they are Ready when this returns.
    pub fn up(&mut self, flags: &str) -> Result<(), String> {
        let kubeconfig = self.folder.join("kubeconfig");
        let path = kubeconfig.display().to_string();
        self.start_job(&format!("bindery up {flags} --write-kubeconfig {path}"));
        if !wait_until(|| kubeconfig.exists() || self.job_ended()) || !kubeconfig.exists() {
            return Err(format!("it does not start: {}", self.job_output().join("\n")));
        }
        self.type_in(&format!("export KUBECONFIG={path}"));
        let mut words = flags.split_whitespace();
        let Some(nodes) = words.find(|word| *word == "--nodes").and_then(|_| words.next()) else { return Ok(()) };
        for waiting in [
            format!("kubectl wait --for=create node/node-{nodes} storageclass/simulated {KUBECTL_TIMEOUT}"),
            format!("kubectl wait --for=condition=Ready nodes --all {KUBECTL_TIMEOUT}"),
        ] {
            let (status, printed) = self.execute(&waiting)?;
            if status != 0 {
                return Err(format!("{waiting}: {}", printed.join("\n")));
            }
        }
        Ok(())
    }

    /// Executes a step, and compares what it prints.
    pub fn run(&mut self, step: &Step) -> Result<(), Failure> {
        if step.in_background {
            return self.run_in_background(step);
        }
        let (status, printed) = self.execute(&step.command).map_err(|reason| Failure { reason, printed: None })?;
        // A command that fails is right where the page shows its error.
        let shows_error = step.expected.iter().any(|line| line.trim() != "...");
        let reason = if status != 0 && !shows_error {
            format!("  exit status {status}")
        } else if !step.expected.is_empty() && !pattern::matches(&step.expected, &printed) {
            "  it prints something else".to_owned()
        } else {
            return Ok(());
        };
        let reason = format!("{reason}\n{}", compared(&step.expected, &printed));
        Err(Failure { reason, printed: (!step.expected.is_empty()).then_some(printed) })
    }

    fn run_in_background(&mut self, step: &Step) -> Result<(), Failure> {
        self.start_job(&step.command);
        if wait_until(|| pattern::begins(&step.expected, &self.job_output()) || self.job_ended())
            && pattern::begins(&step.expected, &self.job_output())
        {
            return Ok(());
        }
        let printed = self.job_output();
        Err(Failure { reason: format!("  it prints\n{}", compared(&step.expected, &printed)), printed: None })
    }

    /// Executes a command: its exit status, and the lines that it printed.
    fn execute(&mut self, command: &str) -> Result<(u8, Vec<String>), String> {
        let script = self.folder.join("command");
        std::fs::write(&script, command).expect("a script can be written");
        // In a file, so that it keeps its variables but does not read the commands that follow.
        self.type_in(&format!(". {} </dev/null; printf '\\n{END}%d\\n' $?", script.display()));
        let mut printed: Vec<String> = Vec::new();
        loop {
            let line = match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => line,
                Err(error) => return Err(format!("  it does not end ({error}):\n{}", printed.join("\n"))),
            };
            if let Some(status) = line.strip_prefix(END) {
                // The line break before the mark, if the output ended with a line break, too.
                if printed.last().is_some_and(String::is_empty) {
                    printed.pop();
                }
                return Ok((status.parse().unwrap_or(u8::MAX), printed));
            }
            printed.push(line);
        }
    }

    fn start_job(&mut self, command: &str) {
        self.jobs += 1;
        let (output, end) = (self.job_file("output"), self.job_file("end"));
        std::fs::write(&output, "").expect("a file can be written");
        let (output, end) = (output.display(), end.display());
        self.type_in(&format!("{{ {{ {command}\n}} >{output} 2>&1 </dev/null; echo $? >{end}; }} &"));
    }

    fn job_file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("job-{}-{name}", self.jobs))
    }

    fn job_output(&self) -> Vec<String> {
        let bytes = std::fs::read(self.job_file("output")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    fn job_ended(&self) -> bool {
        self.job_file("end").exists()
    }

    fn type_in(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the shell runs");
        writeln!(input, "{line}").expect("the shell reads");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The whole group: a shell that waits for a command does not notice that its input ended.
        let group = format!("-{}", self.shell.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.shell.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `bindery`, on any free port where the page does not say which.
const BINDERY: &str = "#!/bin/bash
case \"$1 $*\" in
    *--listen*|*--demo*|*--help*) ;;
    up*|apiserver*) set -- \"$@\" --listen 127.0.0.1:0 ;;
esac
exec PROGRAM \"$@\"
";

/// `kubectl`, as patient as other tests.
const KUBECTL: &str = "#!/bin/bash
case \"$*\" in
    *--timeout*) ;;
    wait*) set -- \"$@\" TIMEOUT ;;
esac
exec PROGRAM \"$@\"
";

/// `cargo run -p bindery -- …`, without cargo.
const CARGO: &str = "#!/bin/bash
[ \"$1 $2 $3 $4\" = \"run -p bindery --\" ] || { echo \"a page cannot run cargo $*\"; exit 1; }
shift 4
exec bindery \"$@\"
";

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a program can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

/// A folder with the folders `bin` and `work`.
fn scratch_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("bindery-docs-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    for folder in [folder.clone(), folder.join("bin"), folder.join("work")] {
        std::fs::DirBuilder::new().mode(0o700).create(folder).expect("a folder can be made");
    }
    folder
}

fn compared(expected: &[String], printed: &[String]) -> String {
    let indented = |lines: &[String]| lines.iter().map(|line| format!("    {line}\n")).collect::<String>();
    format!("  expected:\n{}  printed:\n{}", indented(expected), indented(printed))
}
