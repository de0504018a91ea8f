//! `cargo xtask assets`: the reference programs (etcd and Kubernetes) that tests run against.
//!
//! If `KUBEBUILDER_ASSETS` names a folder, they are taken from there. Otherwise the Go toolchain
//! builds them once from the module in xtask/assets, whose go.mod and go.sum pin them.
//!
//! To move to another release, change `bindery_test_cluster::assets::VERSION` and, in go.mod, the
//! version of k8s.io/kubernetes (v1.N.P) and of the replaced staging modules (v0.N.P; Kubernetes'
//! own go.mod lists them as `v0.0.0`). Then run `go mod tidy` in that folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bindery_test_cluster::assets::{PROGRAMS, VARIABLE, VERSION, cache_folder, find, missing_in};

use crate::golang;

/// Whether the programs are available.
pub enum Assets {
    /// They are in this folder.
    Available(PathBuf),
    /// They are missing and cannot be built, for this reason.
    Unavailable(String),
}

/// Finds the programs, or builds them with progress on standard error. If `KUBEBUILDER_ASSETS`
/// names a folder that lacks programs, that is an error.
pub fn provide() -> Result<Assets, String> {
    if let Some(folder) = find()? {
        return Ok(Assets::Available(folder));
    }
    if !golang::is_installed() {
        return Ok(Assets::Unavailable(format!(
            "the reference programs are missing: set {VARIABLE}, or install Go to build them"
        )));
    }
    let folder = cache_folder()?;
    Ok(match build_missing(&folder) {
        Ok(()) => Assets::Available(folder),
        Err(reason) => Assets::Unavailable(reason),
    })
}

/// Builds the missing programs. A concurrent call waits for the lock, and then finds them.
fn build_missing(folder: &Path) -> Result<(), String> {
    let _lock = golang::lock(folder, "assets")?;
    let missing = missing_in(folder);
    if !missing.is_empty() {
        eprintln!("assets: building {} of {} programs into {}, once", missing.len(), PROGRAMS.len(), folder.display());
    }
    for (number, program) in (1..).zip(&missing) {
        eprintln!("assets: {program} ({number} of {}) …", missing.len());
        let started = Instant::now();
        golang::build(&module(), &package(program), &linker_flags(program), &folder.join(program))?;
        eprintln!("assets: {program} built in {} s", started.elapsed().as_secs());
    }
    Ok(())
}

fn module() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets")
}

fn package(program: &str) -> String {
    match program {
        "etcd" => "go.etcd.io/etcd/server/v3".to_owned(),
        of_kubernetes => format!("k8s.io/kubernetes/cmd/{of_kubernetes}"),
    }
}

/// Omits symbols, and sets Kubernetes' version, which clients request and features depend on.
fn linker_flags(program: &str) -> String {
    if program == "etcd" {
        return "-s -w".to_owned();
    }
    let at = "k8s.io/component-base/version";
    let minor = VERSION.split('.').nth(1).unwrap_or_default();
    format!("-s -w -X {at}.gitVersion=v{VERSION} -X {at}.gitMajor=1 -X {at}.gitMinor={minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_of_the_version_that_tests_expect() {
        let module = std::fs::read_to_string(module().join("go.mod")).expect("go.mod");
        assert!(module.contains(&format!("k8s.io/kubernetes v{VERSION}")), "k8s.io/kubernetes is v{VERSION}");
        let staging = VERSION.replacen('1', "0", 1);
        for line in module.lines().filter(|line| line.contains(" => ")) {
            assert!(line.ends_with(&format!(" v{staging}")), "{line}: of Kubernetes {VERSION} it is v{staging}");
        }
        for program in PROGRAMS {
            assert!(module.contains(&format!("\t{}\n", package(program))), "{program} is a tool of the module");
        }
    }
}
