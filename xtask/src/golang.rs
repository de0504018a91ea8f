//! Builds programs with Go, from a module in this repository that pins their versions, into the
//! cache.

use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Whether a Go toolchain is installed.
pub(crate) fn is_installed() -> bool {
    Command::new("go").arg("version").output().is_ok()
}

/// Creates the folder, and prevents other processes from building into it while the lock is held.
pub(crate) fn lock(folder: &Path, task: &str) -> Result<File, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(folder.join(".lock")).map_err(failed)?;
    if lock.try_lock().is_err() {
        eprintln!("{task}: another process is building; waiting for it");
        lock.lock().map_err(failed)?;
    }
    Ok(lock)
}

/// Builds a program under a temporary name and renames it, so that an existing file is complete.
pub(crate) fn build(module: &Path, package: &str, linker_flags: &str, program: &Path) -> Result<(), String> {
    let unfinished = program.with_extension("unfinished");
    let status = Command::new("go")
        .current_dir(module)
        // Without cgo the programs need no C compiler now and no libraries later. The other two
        // settings isolate the build from the user's Go workspace and flags.
        .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "-mod=readonly")])
        .args(["build", "-trimpath", "-ldflags", linker_flags, "-o"])
        .arg(&unfinished)
        .arg(package)
        .status()
        .map_err(|error| format!("cannot start go: {error}"))?;
    if !status.success() {
        return Err(format!("`go build {package}` failed ({status})"));
    }
    std::fs::rename(&unfinished, program).map_err(|error| format!("{}: {error}", program.display()))
}
