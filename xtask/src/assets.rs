//! `cargo xtask assets`: the reference programs (etcd and Kubernetes) that tests run against.
//!
//! Where `KUBEBUILDER_ASSETS` names a folder, they are there. Else they are built, once, by the Go toolchain from the module
//! in xtask/assets: its go.mod says the versions and its go.sum pins the bytes.
//!
//! To move to another release, set `bindery_lab::assets::VERSION`, the requirement of k8s.io/kubernetes and the replaces in
//! go.mod (v1.N.P there is v0.N.P here; new staging modules stand in Kubernetes' own go.mod as `v0.0.0`), and run
//! `go mod tidy` in that folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bindery_lab::assets::{PROGRAMS, VARIABLE, VERSION, cache_folder, find, missing_in};

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
    if Command::new("go").arg("version").output().is_err() {
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
    let failed = |error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(folder.join(".lock")).map_err(failed)?;
    if lock.try_lock().is_err() {
        eprintln!("assets: another process is building them; waiting for it");
        lock.lock().map_err(failed)?;
    }
    let missing = missing_in(folder);
    if !missing.is_empty() {
        eprintln!("assets: building {} of {} programs into {}, once", missing.len(), PROGRAMS.len(), folder.display());
    }
    for (number, program) in (1..).zip(&missing) {
        eprintln!("assets: {program} ({number} of {}) …", missing.len());
        let started = Instant::now();
        build(folder, program)?;
        eprintln!("assets: {program} built in {} s", started.elapsed().as_secs());
    }
    Ok(())
}

/// Builds one program under another name and renames it, so that one that is there is whole.
fn build(folder: &Path, program: &str) -> Result<(), String> {
    let unfinished = folder.join(format!(".{program}.unfinished"));
    let status = Command::new("go")
        .current_dir(module())
        // Without C the programs need neither a compiler here nor libraries later. The module stands for itself, whatever
        // workspace or flags surround it.
        .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "-mod=readonly")])
        .args(["build", "-trimpath", "-ldflags", &linker_flags(program), "-o"])
        .arg(&unfinished)
        .arg(package(program))
        .status()
        .map_err(|error| format!("go could not be started: {error}"))?;
    if !status.success() {
        return Err(format!("`go build {}` failed ({status})", package(program)));
    }
    let finished = folder.join(program);
    std::fs::rename(&unfinished, &finished).map_err(|error| format!("{}: {error}", finished.display()))
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
