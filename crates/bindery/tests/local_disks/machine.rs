//! The machine: disks with file systems, a raw device, and the data that pods write.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bindery_test_cluster::Disks;
use rustix::fs::{XattrFlags, listxattr, removexattr, setxattr};

/// The number of files a pod writes: enough that deleting them takes a moment.
const FILES: usize = 400;

/// The data a pod writes on a device.
const BLOCK: [u8; 4096] = [7; 4096];

/// The names of the disks.
pub struct Machine {
    disks: Disks,
    /// The discovery directories of file systems and of devices.
    pub directories: [PathBuf; 2],
}

/// Those with a file system.
pub const FILE_SYSTEMS: [(&str, u64); 3] = [("ext4", 64), ("xfs", 320), ("btrfs", 128)];
/// The bare one.
pub const DEVICE: &str = "device";

impl Machine {
    pub fn for_test() -> Option<Machine> {
        let mut disks = Disks::for_test()?;
        let [file_systems, devices] = ["file-systems", "devices"].map(|name| disks.folder().join(name));
        for (name, mib) in FILE_SYSTEMS {
            disks.mount(name, mib, &file_systems.join(name));
        }
        let device = disks.device(32);
        fs::create_dir_all(&devices).expect("made");
        symlink(device, devices.join(DEVICE)).expect("linked");
        fs::create_dir_all(disks.folder().join("outside")).expect("made");
        fs::write(disks.folder().join("outside/precious"), "data").expect("written");
        Some(Machine { disks, directories: [file_systems, devices] })
    }

    pub fn folder(&self) -> &Path {
        self.disks.folder()
    }

    /// Fills a volume as a pod would, and leaves malicious links and attributes.
    pub fn write(&self, path: &Path) {
        if !path.is_dir() {
            let device = File::options().write(true).open(path).expect("opened");
            device.write_all_at(&BLOCK, 0).expect("written");
            return device.sync_all().expect("written");
        }
        for number in 0..FILES {
            let folder = path.join(format!("{}/inside", number % 20));
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join(number.to_string()), "secret").expect("written");
        }
        for name in ["user.secret", "trusted.secret"] {
            setxattr(path, name, b"secret", XattrFlags::empty()).expect("set");
        }
        fs::set_permissions(path, Permissions::from_mode(0o2777)).expect("set");
        symlink(self.folder().join("outside"), path.join("trap")).expect("linked");
        symlink("../../../outside", path.join("1/inside/trap")).expect("linked");
    }

    /// Empties a volume as an administrator would.
    pub fn empty(&self, path: &Path) {
        if !path.is_dir() {
            let device = File::options().write(true).open(path).expect("opened");
            device.write_all_at(&[0; 4096], 0).expect("written");
            return device.sync_all().expect("written");
        }
        for name in ["user.secret", "trusted.secret"] {
            removexattr(path, name).expect("removed");
        }
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("set");
        for entry in fs::read_dir(path).expect("listed") {
            let entry = entry.expect("an entry").path();
            let removed = if entry.is_symlink() { fs::remove_file(&entry) } else { fs::remove_dir_all(&entry) };
            removed.expect("removed");
        }
    }

    /// Whether all written data is present.
    pub fn is_intact(&self, path: &Path) -> bool {
        if !path.is_dir() {
            let mut found = [0; 4096];
            File::open(path).expect("opened").read_exact_at(&mut found, 0).expect("read");
            return found == BLOCK;
        }
        let is_there = |number: usize| path.join(format!("{}/inside/{number}", number % 20)).exists();
        (0..FILES).all(is_there)
    }

    /// Whether no data is left; also checks that nothing outside was touched.
    pub fn is_clean(&self, path: &Path) -> bool {
        assert!(self.folder().join("outside/precious").exists(), "nothing outside is touched");
        if path.is_dir() {
            let names = fs::read_dir(path).expect("listed").map(|entry| entry.expect("an entry").file_name());
            let mut attributes = vec![0; 1 << 16];
            let length = listxattr(path, attributes.as_mut_slice()).expect("listed");
            let has_secret = attributes[..length].split(|byte| *byte == 0).any(|name| name.ends_with(b".secret"));
            let mode = fs::metadata(path).expect("it exists").permissions().mode() & 0o7777;
            return !has_secret && mode == 0o755 && names.into_iter().all(|name| name == "lost+found");
        }
        let mut found = [1; 4096];
        File::open(path).expect("opened").read_exact_at(&mut found, 0).expect("read");
        found == [0; 4096]
    }
}
