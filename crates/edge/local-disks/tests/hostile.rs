//! Removing what somebody has put on a volume to hurt whoever removes it: nothing outside is touched, whatever they do.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bindery_local_disks::clean::{Target, hold, remove_content};
use bindery_local_disks::{Cleaner, Wipe};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with, symlinkat};

/// A folder of its own for a test: a volume, and something precious beside it.
struct Place {
    root: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("bindery-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("volume")).expect("made");
        fs::create_dir_all(root.join("outside/precious")).expect("made");
        fs::write(root.join("outside/precious/data"), "data").expect("written");
        fs::write(root.join("outside/file"), "data").expect("written");
        Place { root }
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn links_are_removed_and_not_followed() {
    let place = Place::new("links");
    let volume = place.volume();
    fs::create_dir_all(volume.join("a/b/c")).expect("made");
    symlink(place.outside(), volume.join("to-outside")).expect("linked");
    symlink("../../../../outside/precious", volume.join("a/b/c/back")).expect("linked");
    symlink("/", volume.join("a/root")).expect("linked");
    symlink("..", volume.join("a/up")).expect("linked");
    symlink("nowhere", volume.join("dangling")).expect("linked");
    symlink("loop", volume.join("loop")).expect("linked");
    fs::hard_link(place.outside().join("file"), volume.join("hard")).expect("linked");
    oddities(&volume);
    assert_eq!(place.remove(), Ok(()));
    assert!(place.is_empty() && place.is_outside_whole());
    assert_eq!(place.remove(), Ok(()), "it can be done twice");
}

/// Names and things that are seldom seen.
fn oddities(volume: &Path) {
    let names: [&[u8]; 6] = [b"-rf", b"...", b" ", b"\n", b"\xff\xfe", b"*"];
    for name in names {
        let path = volume.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&path).expect("made");
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
fn a_directory_deeper_than_anything_can_name_is_removed() {
    let place = Place::new("deep");
    // Deeper than is ever open at a time, and than a path may be long; and with something beside every step.
    const DEPTH: usize = 1200;
    let mut deepest = OwnedFd::from(fs::File::open(place.volume()).expect("opened"));
    for _ in 0..DEPTH {
        mkdirat(&deepest, "deeper", Mode::RWXU).expect("made");
        symlinkat(place.outside(), &deepest, "beside").expect("linked");
        deepest = openat(&deepest, "deeper", OFlags::DIRECTORY, Mode::empty()).expect("opened");
    }
    assert_eq!(place.remove(), Ok(()));
    assert!(place.is_empty() && place.is_outside_whole());
}

#[test]
fn a_directory_of_very_many_is_removed() {
    let place = Place::new("many");
    for number in 0..5000 {
        fs::write(place.volume().join(number.to_string()), "").expect("written");
    }
    assert_eq!(place.remove(), Ok(()));
    assert!(place.is_empty());
}

/// Swaps a directory for a link to the outside, and back, at a stroke and as fast as it can, while it is removed. That nothing is
/// to be found at any step is tested beside the steps; this is for what nobody has thought of.
#[test]
fn a_directory_swapped_for_a_link_while_it_is_removed_leads_nowhere() {
    let place = Place::new("swap");
    let (trap, aside) = (place.volume().join("trap"), place.root.join("aside"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Each may fail because the other side was faster: that is the point.
                let _ = symlink(place.outside(), &aside);
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
        // Until they have met often enough, however slow the machine is.
        let mut removals = 0;
        while removals < 2_000 || swaps.load(Ordering::Relaxed) < 2_000 {
            // While somebody writes it need not come to an end well; it has to come to an end.
            let _ = place.remove();
            removals += 1;
            if !place.is_outside_whole() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(place.is_outside_whole(), "nothing outside is touched");
    assert_eq!(place.remove(), Ok(()));
    assert!(place.is_empty());
}

#[test]
fn a_directory_on_which_nothing_is_mounted_is_not_cleaned() {
    let place = Place::new("unmounted");
    fs::write(place.volume().join("file"), "x").expect("written");
    let target = |entry: &str| Target {
        mount_dir: place.root.clone(),
        entry: entry.into(),
        cleaner: Cleaner::Builtin(Wipe::Quick),
    };
    let error = hold(&target("volume")).expect_err("it is no mount point").to_string();
    assert!(error.contains("nothing is mounted there"), "{error}");
    symlink("volume", place.root.join("link")).expect("linked");
    assert!(hold(&target("link")).is_err(), "a link is not followed");
    let error = hold(&target("absent")).expect_err("it is not there").to_string();
    assert!(error.contains("No such file"), "{error}");
    let error = hold(&target("outside/file")).expect_err("it is a file").to_string();
    assert!(error.contains("neither a directory nor a block device"), "{error}");
    assert!(place.volume().join("file").exists());
}
