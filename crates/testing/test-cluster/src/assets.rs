//! Finds the Kubernetes binaries: in `KUBEBUILDER_ASSETS`, or in the cache of `cargo xtask assets`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The Kubernetes release that tests run against; xtask/assets/go.mod requires the same.
pub const VERSION: &str = "1.36.4";

/// The required binaries.
pub const PROGRAMS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// The environment variable with the directory of the binaries, as in controller-runtime's envtest.
pub const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The directory in `KUBEBUILDER_ASSETS`, or else the cache; `None` if the variable is not set and
/// the cache is incomplete. An incomplete directory in the variable is an error.
pub fn find() -> Result<Option<PathBuf>, String> {
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(named) => named_folder(&named).map(Some),
        None => Ok(Some(cache_folder()?).filter(|folder| missing_in(folder).is_empty())),
    }
}

/// The directory that `cargo xtask assets` installs the binaries in.
pub fn cache_folder() -> Result<PathBuf, String> {
    Ok(cache()?.join("assets").join(VERSION))
}

/// The cache of the project. It is outside the checkout, so that clones share it and `cargo clean`
/// keeps it.
pub fn cache() -> Result<PathBuf, String> {
    // The XDG specification requires that relative paths are ignored.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|workspace| workspace.join(".cache")));
    let cache = cache.ok_or("cannot locate the cache: set XDG_CACHE_HOME or HOME to an absolute path")?;
    Ok(cache.join("bindery"))
}

/// The binaries that are missing in a directory.
pub fn missing_in(folder: &Path) -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|program| !is_program(&folder.join(program))).collect()
}

/// The message when no binaries were found.
pub(crate) fn none() -> String {
    format!("the Kubernetes binaries are not installed: run `cargo xtask assets`, or set {VARIABLE}")
}

fn named_folder(value: &OsStr) -> Result<PathBuf, String> {
    // The binaries are started in other working directories.
    let folder = std::path::absolute(value).map_err(|error| format!("{VARIABLE}: {error}"))?;
    match missing_in(&folder).as_slice() {
        [] => Ok(folder),
        missing => Err(format!("{VARIABLE} is {}, where {} are missing", folder.display(), missing.join(", "))),
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_directory_is_an_error_with_the_missing_binaries() {
        let error = named_folder(OsStr::new("/nowhere")).expect_err("the directory does not exist");
        assert_eq!(
            error,
            "KUBEBUILDER_ASSETS is /nowhere, where etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl are missing"
        );
    }

    #[test]
    fn only_executable_files_are_binaries() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/bin")));
        assert!(!is_program(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")));
    }
}
