//! Programs that are built with Go: from a module of the project's own, which says the versions, into a folder of the cache.

use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Whether there is a Go toolchain.
pub(crate) fn is_there() -> bool {
    Command::new("go").arg("version").output().is_ok()
}

/// Makes the folder, and keeps other processes from building into it for as long as the lock is held.
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

/// Builds one program under another name and renames it, so that one that is there is whole.
pub(crate) fn build(module: &Path, package: &str, linker_flags: &str, program: &Path) -> Result<(), String> {
    let unfinished = program.with_extension("unfinished");
    let status = Command::new("go")
        .current_dir(module)
        // Without C the programs need neither a compiler here nor libraries later. The module stands for itself, whatever
        // workspace or flags surround it.
        .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "-mod=readonly")])
        .args(["build", "-trimpath", "-ldflags", linker_flags, "-o"])
        .arg(&unfinished)
        .arg(package)
        .status()
        .map_err(|error| format!("go could not be started: {error}"))?;
    if !status.success() {
        return Err(format!("`go build {package}` failed ({status})"));
    }
    std::fs::rename(&unfinished, program).map_err(|error| format!("{}: {error}", program.display()))
}
