//! Block devices and file systems for tests, on loop devices. They are removed on drop.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The required programs: util-linux, and one for each file system.
const PROGRAMS: [&str; 6] = ["mount", "umount", "losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];

/// Directories of administration programs that may be missing in PATH.
const MORE_PATH: &str = "/usr/sbin:/sbin";

/// Disks in a temporary directory. They are unmounted, detached and removed on drop.
pub struct Disks {
    folder: PathBuf,
    mounted: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    count: u32,
}

impl Disks {
    /// Disks for a test; `None` if they are not supported here, which is reported on standard
    /// error.
    ///
    /// # Panics
    ///
    /// If a system call fails, or if programs are missing and `BINDERY_REQUIRE_TEST_CLUSTER` is
    /// set.
    pub fn for_test() -> Option<Disks> {
        if let Some(missing) = missing() {
            let is_required = std::env::var_os(crate::test_cluster::REQUIRE).is_some() && missing.starts_with("mkfs");
            assert!(!is_required, "{} is set, but real disks need {missing}", crate::test_cluster::REQUIRE);
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // The test harness would capture eprintln! of a passing test.
            let _ = std::io::stderr().write_all(format!("skipped: {test}: real disks need {missing}\n").as_bytes());
            return None;
        }
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindery-disks-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("create the directory");
        let folder = folder.canonicalize().expect("the directory exists");
        Some(Disks { folder, mounted: Vec::new(), devices: Vec::new(), count: 0 })
    }

    /// The temporary directory, which tests can use freely.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a sparse file for a disk.
    fn image(&mut self, mib: u64) -> PathBuf {
        self.count += 1;
        let path = self.folder.join(format!("image-{}", self.count));
        let file = std::fs::File::create(&path).expect("an image");
        file.set_len(mib << 20).expect("an image of that size");
        path
    }

    /// Creates a block device.
    pub fn device(&mut self, mib: u64) -> PathBuf {
        let image = self.image(mib);
        let device = PathBuf::from(run("losetup", &["--find".as_ref(), "--show".as_ref(), image.as_ref()]).trim());
        self.devices.push(device.clone());
        device
    }

    /// Creates a file system and mounts it.
    pub fn mount(&mut self, file_system: &str, mib: u64, at: &Path) {
        let image = self.image(mib);
        let quiet = if file_system == "ext4" { "-F" } else { "-f" };
        run(&format!("mkfs.{file_system}"), &["-q".as_ref(), quiet.as_ref(), image.as_ref()]);
        std::fs::create_dir_all(at).expect("a directory to mount on");
        run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), at.as_ref()]);
        self.mounted.push(at.to_path_buf());
    }

    /// Mounts a device, or bind-mounts a directory.
    pub fn mount_existing(&mut self, what: &Path, at: &Path) {
        std::fs::create_dir_all(at).expect("a directory to mount on");
        let how = if what.is_dir() { "--bind" } else { "--read-write" };
        run("mount", &[how.as_ref(), what.as_ref(), at.as_ref()]);
        self.mounted.push(at.to_path_buf());
    }

    /// Unmounts a directory.
    pub fn unmount(&mut self, at: &Path) {
        run("umount", &[at.as_ref()]);
        self.mounted.retain(|mounted| mounted != at);
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for at in self.mounted.iter().rev() {
            let _ = command("umount").arg("--lazy").arg(at).output();
        }
        for device in &self.devices {
            let _ = command("losetup").arg("--detach").arg(device).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What is missing for real disks.
fn missing() -> Option<String> {
    if std::fs::metadata("/proc/self").map_or(1, |itself| itself.uid()) != 0 {
        return Some("root".into());
    }
    let is_installed = |program: &&str| command(program).arg("--version").output().is_ok();
    if let Some(program) = PROGRAMS.iter().find(|program| !is_installed(program)) {
        return Some(format!("{program}: install util-linux, e2fsprogs, xfsprogs and btrfs-progs"));
    }
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let is_known = |name: &&str| known.lines().any(|line| line.trim() == *name);
    if let Some(name) = ["ext4", "xfs", "btrfs"].into_iter().find(|name| !is_known(name) && !loads(name)) {
        return Some(format!("a kernel with {name}"));
    }
    let found = command("losetup").arg("--find").output();
    match found {
        Ok(found) if found.status.success() => None,
        Ok(found) => Some(format!("a free loop device: {}", String::from_utf8_lossy(&found.stderr).trim())),
        Err(error) => Some(format!("losetup: {error}")),
    }
}

/// Loads a kernel module.
fn loads(module: &str) -> bool {
    command("modprobe").arg(module).status().is_ok_and(|status| status.success())
}

fn command(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.env("PATH", format!("{path}:{MORE_PATH}"));
    command
}

fn run(program: &str, args: &[&std::ffi::OsStr]) -> String {
    let done = command(program).args(args).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{program} {args:?} failed: {error}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
