//! `bindery generate`: man pages, the Markdown reference of the command line, and shell
//! completions.

mod markdown;

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::stdout;

/// What to generate.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write a man page for each command
    Man {
        /// Directory to write to, which is created if needed.
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print a reference of all commands and flags
    Markdown,
    /// Print a shell completion script
    Completions {
        /// Shell to generate the script for.
        shell: Shell,
    },
}

/// Generates one of them.
pub fn run(args: Args) -> Result<(), String> {
    match args.what {
        What::Man { dir } => {
            let error = |error| format!("cannot write man pages to {}: {error}", dir.display());
            std::fs::create_dir_all(&dir).map_err(error)?;
            // The commit in the version would change the pages with every commit.
            let command = Cli::command().version(env!("CARGO_PKG_VERSION"));
            clap_mangen::generate_to(command, &dir).map_err(error)
        }
        What::Markdown => stdout::print(&markdown::reference(Cli::command())),
        What::Completions { shell } => completions(shell),
    }
}

/// Prints a shell completion script.
pub fn completions(shell: Shell) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bindery", &mut script);
    stdout::print(&String::from_utf8_lossy(&script))
}
