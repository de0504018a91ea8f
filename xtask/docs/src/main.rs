//! `cargo xtask docs`: writes the generated pages, checks links, and builds the book.

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match run(&xtask_docs::root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask docs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path) -> Result<(), String> {
    if !std::env::args().any(|argument| argument == "--no-generate") {
        generate_pages(root)?;
    }
    let broken = xtask_docs::links::broken(root)?;
    if !broken.is_empty() {
        return Err(format!("broken links:\n  {}", broken.join("\n  ")));
    }
    build_book(root)
}

fn generate_pages(root: &Path) -> Result<(), String> {
    let write = |path: &str, text: String| {
        std::fs::write(root.join(path), text).map_err(|error| format!("cannot write {path}: {error}"))
    };
    for (path, text) in xtask_docs::generated_pages(root)? {
        write(path, text)?;
    }
    write("docs/reference/cli.md", command_line_reference()?)
}

/// The reference of all commands and flags, which the program itself prints.
fn command_line_reference() -> Result<String, String> {
    let args = ["run", "--quiet", "--profile", "test", "--package", "bindery", "--", "generate", "markdown"];
    let words = format!("cargo {}", args.join(" "));
    let output = Command::new(env!("CARGO")).args(args).output().map_err(|error| format!("{words}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{words} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{words}: {error}"))
}

#[cfg(feature = "book")]
fn build_book(root: &Path) -> Result<(), String> {
    let built = mdbook_driver::MDBook::load(root).and_then(|book| book.build());
    built.map_err(|error| format!("cannot build the book: {error:#}"))?;
    println!("{}", root.join("target/book/index.html").display());
    Ok(())
}

#[cfg(not(feature = "book"))]
fn build_book(_root: &Path) -> Result<(), String> {
    Err("this program was compiled without the feature `book`: run `cargo xtask docs`".into())
}
