//! Printing answers to standard output.

use std::io::{ErrorKind, Write as _};

/// The `--output` of commands that print an answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
}

/// Prints to standard output. It is no error if the reader has closed the pipe.
pub fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Indented JSON that ends with a newline.
pub fn pretty_json(value: &impl serde::Serialize) -> Result<String, String> {
    let json = serde_json::to_string_pretty(value).map_err(|error| format!("cannot write JSON: {error}"))?;
    Ok(json + "\n")
}
