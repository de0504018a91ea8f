//! Removing data that an attacker prepared: nothing outside the volume is touched.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bindery_local_disks::clean::{Target, lock, remove_content};
use bindery_local_disks::config::CLEANER_TIMEOUT_DEFAULT;
use bindery_local_disks::{Cleaner, Wipe};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with, symlinkat};

/// A temporary directory with a volume, and files outside of it.
struct Sandbox {
    root: PathBuf,
}

impl Sandbox {
    fn new(name: &str) -> Sandbox {
        let root = std::env::temp_dir().join(format!("bindery-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("volume")).expect("created");
        fs::create_dir_all(root.join("outside/precious")).expect("created");
        fs::write(root.join("outside/precious/data"), "data").expect("written");
        fs::write(root.join("outside/file"), "data").expect("written");
        Sandbox { root }
    }

    fn volume(&self) -> PathBuf {
        self.root.join("volume")
    }

    fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    fn remove(&self) -> Result<(), String> {
        remove_content(OwnedFd::from(fs::File::open(self.volume()).expect("opened")))
    }

    fn is_outside_whole(&self) -> bool {
        let names = fs::read_dir(self.outside()).expect("listed").count();
        names == 2 && fs::read_to_string(self.outside().join("precious/data")).is_ok_and(|data| data == "data")
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.volume()).expect("the volume itself is kept").count() == 0
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn links_are_removed_but_not_followed() {
    let sandbox = Sandbox::new("links");
    let volume = sandbox.volume();
    fs::create_dir_all(volume.join("a/b/c")).expect("created");
    symlink(sandbox.outside(), volume.join("to-outside")).expect("linked");
    symlink("../../../../outside/precious", volume.join("a/b/c/back")).expect("linked");
    symlink("/", volume.join("a/root")).expect("linked");
    symlink("..", volume.join("a/up")).expect("linked");
    symlink("nowhere", volume.join("dangling")).expect("linked");
    symlink("loop", volume.join("loop")).expect("linked");
    fs::hard_link(sandbox.outside().join("file"), volume.join("hard")).expect("linked");
    oddities(&volume);
    assert_eq!(sandbox.remove(), Ok(()));
    assert!(sandbox.is_empty() && sandbox.is_outside_whole());
    assert_eq!(sandbox.remove(), Ok(()), "removal is idempotent");
}

/// Unusual names and file types.
fn oddities(volume: &Path) {
    let names: [&[u8]; 6] = [b"-rf", b"...", b" ", b"\n", b"\xff\xfe", b"*"];
    for name in names {
        let path = volume.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&path).expect("created");
        fs::write(path.join("x"), "x").expect("written");
    }
    std::os::unix::net::UnixListener::bind(volume.join("socket")).expect("bound");
    let made = std::process::Command::new("mkfifo").arg(volume.join("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    fs::write(volume.join("a/read-only"), "x").expect("written");
    let read_only = fs::Permissions::from_mode(0o000);
    fs::set_permissions(volume.join("a/read-only"), read_only).expect("set");
}

#[test]
fn very_deep_directories_are_removed() {
    let sandbox = Sandbox::new("deep");
    // Deeper than the maximum number of open directories and the maximum path length; with a link
    // at every level.
    const DEPTH: usize = 1200;
    let mut deepest = OwnedFd::from(fs::File::open(sandbox.volume()).expect("opened"));
    for _ in 0..DEPTH {
        mkdirat(&deepest, "deeper", Mode::RWXU).expect("created");
        symlinkat(sandbox.outside(), &deepest, "link").expect("linked");
        deepest = openat(&deepest, "deeper", OFlags::DIRECTORY, Mode::empty()).expect("opened");
    }
    assert_eq!(sandbox.remove(), Ok(()));
    assert!(sandbox.is_empty() && sandbox.is_outside_whole());
}

#[test]
fn directory_with_many_entries_is_removed() {
    let sandbox = Sandbox::new("many");
    for number in 0..5000 {
        fs::write(sandbox.volume().join(number.to_string()), "").expect("written");
    }
    assert_eq!(sandbox.remove(), Ok(()));
    assert!(sandbox.is_empty());
}

/// Swaps a directory for a link to the outside, and back, as fast as possible during removal. A
/// unit test swaps at every single step; this one finds what that test does not cover.
#[test]
fn directory_swapped_for_a_link_during_removal_is_not_followed() {
    let sandbox = Sandbox::new("swap");
    let (trap, aside) = (sandbox.volume().join("trap"), sandbox.root.join("aside"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Each call may fail because the other thread was faster.
                let _ = symlink(sandbox.outside(), &aside);
                let _ = fs::create_dir(&trap);
                let _ = fs::write(trap.join("bait"), "");
                for _ in 0..20 {
                    if renameat_with(CWD, &trap, CWD, &aside, RenameFlags::EXCHANGE).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
                if !aside.is_symlink() {
                    let _ = fs::remove_dir_all(&aside);
                }
            }
        });
        // Until enough swaps have happened, however slow the machine is.
        let mut removals = 0;
        while removals < 2_000 || swaps.load(Ordering::Relaxed) < 2_000 {
            // With concurrent writes it need not succeed, but has to end.
            let _ = sandbox.remove();
            removals += 1;
            if !sandbox.is_outside_whole() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(sandbox.is_outside_whole(), "nothing outside is touched");
    assert_eq!(sandbox.remove(), Ok(()));
    assert!(sandbox.is_empty());
}

#[test]
fn directory_without_a_mount_is_not_cleaned() {
    let sandbox = Sandbox::new("unmounted");
    fs::write(sandbox.volume().join("file"), "x").expect("written");
    let target = |entry: &str| Target {
        mount_dir: sandbox.root.clone(),
        entry: entry.into(),
        cleaner: Cleaner::Builtin(Wipe::Quick),
        timeout: CLEANER_TIMEOUT_DEFAULT,
        root: None,
    };
    let error = lock(&target("volume")).expect_err("it is not a mount point").to_string();
    assert!(error.contains("nothing is mounted there"), "{error}");
    symlink("volume", sandbox.root.join("link")).expect("linked");
    assert!(lock(&target("link")).is_err(), "a link is not followed");
    let error = lock(&target("absent")).expect_err("it does not exist").to_string();
    assert!(error.contains("No such file"), "{error}");
    let error = lock(&target("outside/file")).expect_err("it is a file").to_string();
    assert!(error.contains("neither a directory nor a block device"), "{error}");
    assert!(sandbox.volume().join("file").exists());
}
