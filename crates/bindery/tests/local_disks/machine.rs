//! The machine: disks with file systems, a bare device, and what pods write on them.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use bindery_test_cluster::Disks;

/// How many files a pod leaves on a file system: enough that removing them takes a moment.
const FILES: usize = 400;

/// What a pod writes on a device.
const BLOCK: [u8; 4096] = [7; 4096];

/// The disks, by the names of their entries.
pub struct Machine {
    disks: Disks,
    /// The first is of file systems, the second of devices.
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

    /// What a pod does with what it was given: it fills it, and leaves traps.
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
        symlink(self.folder().join("outside"), path.join("trap")).expect("linked");
        symlink("../../../outside", path.join("1/inside/trap")).expect("linked");
    }

    /// What a person does who knows that it is not needed.
    pub fn empty(&self, path: &Path) {
        if !path.is_dir() {
            let device = File::options().write(true).open(path).expect("opened");
            device.write_all_at(&[0; 4096], 0).expect("written");
            return device.sync_all().expect("written");
        }
        for entry in fs::read_dir(path).expect("listed") {
            let entry = entry.expect("an entry").path();
            let removed = if entry.is_symlink() { fs::remove_file(&entry) } else { fs::remove_dir_all(&entry) };
            removed.expect("removed");
        }
    }

    /// Whether all that was written is there.
    pub fn is_whole(&self, path: &Path) -> bool {
        if !path.is_dir() {
            let mut found = [0; 4096];
            File::open(path).expect("opened").read_exact_at(&mut found, 0).expect("read");
            return found == BLOCK;
        }
        let is_there = |number: usize| path.join(format!("{}/inside/{number}", number % 20)).exists();
        (0..FILES).all(is_there)
    }

    /// Whether nothing is left of it; and nothing outside was touched, ever.
    pub fn is_clean(&self, path: &Path) -> bool {
        assert!(self.folder().join("outside/precious").exists(), "nothing outside is touched");
        if path.is_dir() {
            let names = fs::read_dir(path).expect("listed").map(|entry| entry.expect("an entry").file_name());
            return names.into_iter().all(|name| name == "lost+found");
        }
        let mut found = [1; 4096];
        File::open(path).expect("opened").read_exact_at(&mut found, 0).expect("read");
        found == [0; 4096]
    }
}
