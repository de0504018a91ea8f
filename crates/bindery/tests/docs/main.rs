//! The documentation does what it says: every `console` block of README.md and docs/ is executed,
//! and what the commands print is compared with what the page shows.
//!
//! A page declares in a comment what its commands run on:
//!
//! ```text
//! <!-- docs-test: local -->            no API server
//! <!-- docs-test: up --nodes 3 -->     `bindery up` with these flags; KUBECONFIG is set
//! <!-- docs-test: cluster -->          etcd and kube-apiserver; KUBECONFIG is set
//! <!-- docs-test: skip: REASON -->     directly above a block: it is not executed
//! <!-- docs-test-setup                 commands that readers do not see
//! kubectl apply -f …
//! -->
//! ```
//!
//! All commands of a page run in one bash, in a copy of examples/ and deploy/. In the expected
//! output a line `...` stands for any lines and `[..]` for any text within a line; see pattern.rs
//! for what is ignored. A command without expected output only has to succeed. A server (`bindery
//! up`) and a command that ends in `&` run in the background until the page ends; the next command
//! starts when the output that the page shows has appeared. `kubectl wait` is patient unless it
//! says how long.
//!
//! `BINDERY_UPDATE_DOCS=1 cargo test -p bindery --test docs` writes what was printed into the
//! pages. `BINDERY_DOCS_PAGE=quickstart` tests only the pages with this text in their path.

mod page;
mod pattern;
mod session;
mod update;

use std::path::{Path, PathBuf};
use std::process::Command;

use bindery_test_cluster::{TestCluster, assets};

use page::{Environment, Page};
use session::Session;

const UPDATE: &str = "BINDERY_UPDATE_DOCS";
const ONLY: &str = "BINDERY_DOCS_PAGE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and every page of the book.
fn files() -> Vec<PathBuf> {
    let mut files = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("docs can be read") {
            let path = entry.expect("docs can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn console_blocks_print_what_their_pages_show() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut wrong = Vec::new();
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("a page can be read");
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        if !name.contains(&only) {
            continue;
        }
        match Page::parse(&text) {
            Ok(page) if page.steps.is_empty() => {}
            Ok(page) => wrong.extend(run(&file, &text, &page).into_iter().map(|reason| format!("{name}:{reason}"))),
            Err(reason) => wrong.push(format!("{name}:{reason}")),
        }
    }
    assert!(wrong.is_empty(), "{}\nto accept what was printed, set {UPDATE}=1", wrong.join("\n"));
}

/// Executes a page, and returns what went wrong, by line.
fn run(file: &Path, text: &str, page: &Page) -> Vec<String> {
    let needs_programs = page.environment != Environment::Local || page.mentions("kubectl");
    if needs_programs && TestCluster::skip_test() {
        return Vec::new();
    }
    // Held until the page is done.
    let cluster = (page.environment == Environment::Cluster).then(|| TestCluster::start().expect("a cluster starts"));
    let kubeconfig = cluster.as_ref().map(TestCluster::kubeconfig);
    let mut session = Session::start(&root(), assets::find().ok().flatten().as_deref(), kubeconfig);
    let (mut wrong, mut changes) = (Vec::new(), Vec::new());
    if let Environment::Up(flags) = &page.environment
        && let Err(reason) = session.up(flags)
    {
        return vec![format!(" bindery up {flags}: {reason}")];
    }
    for step in &page.steps {
        match session.run(step) {
            Ok(()) => {}
            Err(session::Failure { reason, printed }) => {
                wrong.push(format!("{}: $ {}\n{reason}", step.line, step.command));
                match printed {
                    Some(printed) if std::env::var_os(UPDATE).is_some() => changes.push((step, printed)),
                    // What follows depends on it.
                    _ => break,
                }
            }
        }
    }
    if !changes.is_empty() {
        std::fs::write(file, update::updated(text, &changes)).expect("a page can be written");
    }
    wrong
}

#[test]
fn the_command_line_reference_is_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).args(["generate", "markdown"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(root().join("docs/reference/cli.md")).unwrap_or_default();
    let is_current = page.as_bytes() == output.stdout;
    assert!(is_current, "docs/reference/cli.md is not current: run `cargo xtask docs`");
}
