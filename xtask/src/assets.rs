//! `cargo xtask assets`: the reference programs (etcd and Kubernetes) that tests run against.
//!
//! Where `KUBEBUILDER_ASSETS` names a folder, they are there. Else they are built, once, by the Go toolchain from the module
//! in xtask/assets: its go.mod says the versions and its go.sum pins the bytes.
//!
//! To move to another release, set `bindery_test_cluster::assets::VERSION`, the requirement of k8s.io/kubernetes and the replaces in
//! go.mod (v1.N.P there is v0.N.P here; new staging modules stand in Kubernetes' own go.mod as `v0.0.0`), and run
//! `go mod tidy` in that folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bindery_test_cluster::assets::{PROGRAMS, VARIABLE, VERSION, cache_folder, find, missing_in};

use crate::golang;

/// Whether the programs can be had.
pub enum Assets {
    /// In this folder.
    There(PathBuf),
    /// They are not there and could not be built, for this reason.
    Unavailable(String),
}

/// Finds the programs, or builds them; what is said while building goes to standard error. A folder that is named and lacks
/// programs is an error, because nothing else was asked for.
pub fn provide() -> Result<Assets, String> {
    if let Some(folder) = find()? {
        return Ok(Assets::There(folder));
    }
    if !golang::is_there() {
        return Ok(Assets::Unavailable(format!(
            "the reference programs are not there: set {VARIABLE}, or install Go to have them built"
        )));
    }
    let folder = cache_folder()?;
    Ok(match build_missing(&folder) {
        Ok(()) => Assets::There(folder),
        Err(reason) => Assets::Unavailable(reason),
    })
}

/// Builds what a folder lacks. Whoever comes while another builds waits, and then finds it done.
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

/// No symbols, and for Kubernetes its version: clients ask for it, and features depend on it.
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
