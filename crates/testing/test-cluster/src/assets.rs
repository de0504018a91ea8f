//! Where the reference programs are: the folder named by `KUBEBUILDER_ASSETS`, or the cache that `cargo xtask assets` fills.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The Kubernetes release that tests run against. xtask/assets/go.mod requires the same.
pub const VERSION: &str = "1.36.4";

/// The programs of a full folder.
pub const PROGRAMS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// The variable that names a folder of programs, as in other projects that test on a real API server.
pub const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The folder named by `KUBEBUILDER_ASSETS`, else the cache, if it is full; `None` if no folder is named and the cache is not
/// full. A folder that is named but not full is an error: whoever names one means it.
pub fn find() -> Result<Option<PathBuf>, String> {
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(named) => named_folder(&named).map(Some),
        None => Ok(Some(cache_folder()?).filter(|folder| missing_in(folder).is_empty())),
    }
}

/// Where programs built by `cargo xtask assets` are kept.
pub fn cache_folder() -> Result<PathBuf, String> {
    Ok(cache()?.join("assets").join(VERSION))
}

/// Where the project keeps what it builds for itself: outside the checkout, so that clones share it and `cargo clean` spares
/// it.
pub fn cache() -> Result<PathBuf, String> {
    // A relative path is to be ignored, says the XDG specification.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let cache = cache.ok_or("neither XDG_CACHE_HOME nor HOME names a folder to keep programs in")?;
    Ok(cache.join("bindery"))
}

/// The programs that a folder lacks.
pub fn missing_in(folder: &Path) -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|program| !is_program(&folder.join(program))).collect()
}

/// What to say, and to do, when there are none.
pub(crate) fn none() -> String {
    format!("there are no reference programs: run `cargo xtask assets`, or set {VARIABLE}")
}

fn named_folder(value: &OsStr) -> Result<PathBuf, String> {
    // Absolute, because the programs are started from other folders than this one.
    let folder = std::path::absolute(value).map_err(|error| format!("{VARIABLE}: {error}"))?;
    match missing_in(&folder).as_slice() {
        [] => Ok(folder),
        missing => Err(format!("{VARIABLE} names {}, which lacks {}", folder.display(), missing.join(", "))),
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_folder_says_what_it_lacks() {
        let error = named_folder(OsStr::new("/nowhere")).expect_err("nothing is there");
        assert_eq!(
            error,
            "KUBEBUILDER_ASSETS names /nowhere, which lacks etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl"
        );
    }

    #[test]
    fn what_cannot_be_executed_is_no_program() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/bin")));
        assert!(!is_program(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")));
    }
}
