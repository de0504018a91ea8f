//! Cleaning of real disks: other mounts are left alone, subvolumes are removed, devices in use are
//! not touched, and devices are wiped. Needs root and loop devices; skipped with a message without
//! them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_local_disks::clean::{LockError, LockedDisk, Target, lock};
use bindery_local_disks::discover::{Entry, Shape};
use bindery_local_disks::{Cleaner, Wipe, disk};
use bindery_test_cluster::{Disks, eventually};
use rustix::fs::{XattrFlags, listxattr, setxattr};

const MIB: u64 = 1 << 20;

/// A child process that another test starts inherits all open files for a moment: locks are not
/// released, and nothing can be unmounted.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn exclusive() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Disks, and the lock to use them.
fn disks() -> Option<(MutexGuard<'static, ()>, Disks)> {
    let exclusive = exclusive();
    Some((exclusive, Disks::for_test()?))
}

fn target(mount_dir: &Path, entry: &str, cleaner: Cleaner) -> Target {
    let timeout = Duration::from_secs(600);
    Target { mount_dir: mount_dir.to_path_buf(), entry: entry.into(), cleaner, timeout, root: None }
}

fn locked(mount_dir: &Path, entry: &str) -> LockedDisk {
    lock(&target(mount_dir, entry, Cleaner::Builtin(Wipe::Quick))).expect("locked")
}

fn seen(mount_dir: &Path, entry: &str) -> Entry {
    let entries = disk::scan(mount_dir, |name| name == entry, true).expect("looked");
    entries.into_iter().flatten().find(|seen| seen.name == entry).expect("the entry exists")
}

#[test]
fn mounts_inside_a_volume_are_left_alone() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let root = disks.folder().join("root");
    let (volume, outside) = (root.join("volume"), disks.folder().join("outside"));
    disks.mount("ext4", 64, &volume);
    fs::create_dir_all(&outside).expect("created");
    fs::write(outside.join("precious"), "data").expect("written");
    fs::create_dir_all(volume.join("a/b")).expect("created");
    fs::write(volume.join("a/file"), "data").expect("written");
    // Another file system, and another directory of the same one: neither device nor inode
    // distinguishes it.
    disks.mount_existing(&outside, &volume.join("a/b/bound"));
    fs::create_dir_all(volume.join("c/d")).expect("created");
    fs::write(volume.join("c/d/file"), "data").expect("written");
    disks.mount_existing(&volume.join("c"), &volume.join("again"));
    assert!(seen(&root, "volume").is_mount_point);

    let error = locked(&root, "volume").clean().expect_err("mounts cannot be removed");
    assert!(error.contains("a/b/bound") && error.contains("mounted"), "{error}");
    assert!(outside.join("precious").exists() && volume.join("a/b/bound/precious").exists());
    assert!(!volume.join("a/file").exists(), "everything else is removed");

    disks.unmount(&volume.join("again"));
    disks.unmount(&volume.join("a/b/bound"));
    assert_eq!(locked(&root, "volume").clean(), Ok(()));
    assert_eq!(seen(&root, "volume").is_empty, Some(true));
    assert!(outside.join("precious").exists());
}

#[test]
fn btrfs_subvolumes_are_removed() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let root = disks.folder().join("root");
    let volume = root.join("volume");
    disks.mount("btrfs", 128, &volume);
    let made = std::process::Command::new("btrfs").args(["subvolume", "create"]).arg(volume.join("sub")).output();
    assert!(made.expect("btrfs runs").status.success());
    fs::create_dir_all(volume.join("sub/deep/er")).expect("created");
    fs::write(volume.join("sub/deep/er/file"), "data").expect("written");
    assert_eq!(locked(&root, "volume").clean(), Ok(()));
    assert_eq!(seen(&root, "volume").is_empty, Some(true));
}

/// An access control list with one named user, in the format of the kernel.
fn access_control_list() -> Vec<u8> {
    const UNDEFINED: u32 = u32::MAX;
    let mut list = 2_u32.to_le_bytes().to_vec();
    // The owner, user 1000, the group, the mask, all others.
    for (tag, permissions, id) in [
        (0x01_u16, 7_u16, UNDEFINED),
        (0x02, 7, 1000),
        (0x04, 5, UNDEFINED),
        (0x10, 7, UNDEFINED),
        (0x20, 5, UNDEFINED),
    ] {
        list.extend(tag.to_le_bytes().into_iter().chain(permissions.to_le_bytes()).chain(id.to_le_bytes()));
    }
    list
}

fn attributes(path: &Path) -> Vec<String> {
    let mut names = vec![0; 1 << 16];
    let length = listxattr(path, names.as_mut_slice()).expect("listed");
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    names
}

#[test]
fn nothing_of_the_last_user_stays_on_the_root_directory() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let root = disks.folder().join("root");
    for file_system in ["ext4", "xfs", "btrfs"] {
        let volume = root.join(file_system);
        disks.mount(file_system, if file_system == "xfs" { 512 } else { 128 }, &volume);
        fs::set_permissions(&volume, Permissions::from_mode(0o1777)).expect("set");
        let found = seen(&root, file_system).root.expect("a directory");
        assert_eq!((found.owner, found.group, found.mode), (0, 0, 0o1777));
        // The node's own label stays.
        let label = b"system_u:object_r:container_file_t:s0\0";
        setxattr(&volume, "security.selinux", label, XattrFlags::empty()).expect("set");
        let before = attributes(&volume);
        for (name, value) in [
            ("user.secret", b"of the last tenant".to_vec()),
            ("trusted.secret", b"of the last tenant".to_vec()),
            ("security.other", b"of the last tenant".to_vec()),
            ("system.posix_acl_access", access_control_list()),
            ("system.posix_acl_default", access_control_list()),
        ] {
            setxattr(&volume, name, &value, XattrFlags::empty()).expect(name);
        }
        fs::write(volume.join("file"), "data").expect("written");
        chown(&volume, Some(1000), Some(2000)).expect("changed");
        fs::set_permissions(&volume, Permissions::from_mode(0o2770)).expect("set");
        // XFS lists access control lists twice.
        assert!(attributes(&volume).len() >= before.len() + 5, "{file_system}");

        let target = Target { root: Some(found), ..target(&root, file_system, Cleaner::Builtin(Wipe::Quick)) };
        assert_eq!(lock(&target).expect("locked").clean(), Ok(()), "{file_system}");
        assert_eq!(attributes(&volume), before, "{file_system}");
        let after = seen(&root, file_system);
        assert_eq!((after.root, after.is_empty), (Some(found), Some(true)), "{file_system}");
    }
}

/// A device that is renumbered or linked elsewhere after it was locked.
#[test]
fn device_that_was_locked_is_wiped_and_not_what_its_path_leads_to_later() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let script = "dd if=/dev/zero of=\"$LOCAL_PV_BLKDEVICE\" bs=1M count=1 conv=fsync 2>&1";
    let command = Cleaner::Command(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
    for cleaner in [Cleaner::Builtin(Wipe::Zero), command] {
        let (root, released) = written_device(&mut disks, 16);
        let locked = lock(&target(&root, "device", cleaner.clone())).expect("locked");
        fs::remove_file(root.join("device")).expect("removed");
        let (root, precious) = written_device(&mut disks, 16);
        assert_eq!(locked.clean(), Ok(()), "{cleaner:?}");
        assert!(is_zero_at(&released, 0), "{cleaner:?}: the released device is wiped");
        assert!(!is_zero_at(&precious, 0), "{cleaner:?}: the other device is not touched");
        fs::remove_file(root.join("device")).expect("removed");
    }
}

#[test]
fn disk_is_locked_for_cleaning_by_one_at_a_time() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let root = disks.folder().join("root");
    disks.mount("ext4", 64, &root.join("volume"));
    let device = disks.device(16);
    symlink(&device, root.join("device")).expect("linked");
    for entry in ["volume", "device"] {
        let shape = seen(&root, entry).shape;
        let first = locked(&root, entry);
        let second = lock(&target(&root, entry, Cleaner::Builtin(Wipe::Quick))).expect_err("one at a time");
        assert!(matches!(second, LockError::Locked(_)), "{entry}: {second}");
        assert!(disk::lock(&root, entry, shape).expect("opened").is_none(), "{entry} is locked");
        drop(first);
        assert!(disk::lock(&root, entry, shape).expect("opened").is_some(), "{entry}");
    }
}

#[test]
fn disk_is_locked_exclusively() {
    let _exclusive = exclusive();
    let root = std::env::temp_dir().join(format!("bindery-hold-{}", std::process::id()));
    fs::create_dir_all(root.join("disk")).expect("created");
    symlink("disk", root.join("link")).expect("linked");
    let locked = disk::lock(&root, "disk", Shape::Directory).expect("opened").expect("locked");
    assert!(disk::lock(&root, "disk", Shape::Directory).expect("opened").is_none(), "it is locked already");
    drop(locked);
    assert!(disk::lock(&root, "disk", Shape::Directory).expect("opened").is_some());
    assert!(disk::lock(&root, "link", Shape::Directory).is_err(), "a link is not followed");
    fs::remove_dir_all(&root).expect("cleaned up");
}

/// A device with data at its beginning, middle and end, linked into a directory.
fn written_device(disks: &mut Disks, mib: u64) -> (PathBuf, PathBuf) {
    let (root, device) = (disks.folder().join("root"), disks.device(mib));
    fs::create_dir_all(&root).expect("created");
    symlink(&device, root.join("device")).expect("linked");
    let file = File::options().write(true).open(&device).expect("opened");
    for at in [0, mib * MIB / 2, (mib - 1) * MIB] {
        file.write_all_at(&[7; MIB as usize], at).expect("written");
    }
    file.sync_all().expect("written");
    (root, device)
}

fn is_zero_at(device: &Path, at: u64) -> bool {
    let mut buffer = vec![1; MIB as usize];
    File::open(device).expect("opened").read_exact_at(&mut buffer, at).expect("read");
    buffer.iter().all(|byte| *byte == 0)
}

#[test]
fn devices_are_wiped_as_configured() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    for (wipe, is_middle_gone) in
        [(Wipe::Quick, false), (Wipe::Zero, true), (Wipe::Discard, true), (Wipe::Shred(2), true)]
    {
        let (root, device) = written_device(&mut disks, 64);
        let before = seen(&root, "device");
        assert_eq!((before.shape, before.bytes, before.is_empty), (Shape::Block, 64 * MIB, Some(false)));
        let locked = lock(&target(&root, "device", Cleaner::Builtin(wipe))).expect("locked");
        assert_eq!(locked.clean(), Ok(()), "{wipe:?}");
        let zero = [0, 32 * MIB, 63 * MIB].map(|at| is_zero_at(&device, at));
        assert_eq!(zero, [true, is_middle_gone, true], "{wipe:?}");
        assert_eq!(seen(&root, "device").is_empty, Some(true), "{wipe:?}");
        fs::remove_file(root.join("device")).expect("removed");
    }
}

#[test]
fn command_gets_the_device_and_keeps_it_locked() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let (root, device) = written_device(&mut disks, 16);
    let script = "dd if=/dev/zero of=\"$LOCAL_PV_BLKDEVICE\" bs=1M count=1 conv=fsync 2>&1";
    let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    assert_eq!(lock(&target(&root, "device", Cleaner::Command(words))).expect("locked").clean(), Ok(()));
    assert!(is_zero_at(&device, 0) && !is_zero_at(&device, 15 * MIB));
    // A child of the cleaner outlives it: the device stays locked until the child has exited.
    let pid = disks.folder().join("pid");
    let script = "exec 3<&0; sleep 600 <&3 3<&- >/dev/null 2>&1 & echo $! > \"$0\"";
    let words = vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned(), pid.display().to_string()];
    assert_eq!(lock(&target(&root, "device", Cleaner::Command(words))).expect("locked").clean(), Ok(()));
    let again = || lock(&target(&root, "device", Cleaner::Builtin(Wipe::Quick)));
    let is_locked = matches!(again(), Err(LockError::Locked(_)));
    let sleeper = fs::read_to_string(&pid).expect("a process");
    assert!(std::process::Command::new("kill").arg(sleeper.trim()).status().expect("kill runs").success());
    assert!(is_locked, "the remaining child keeps the lock");
    eventually("the lock is released", || again().is_ok());
}

#[test]
fn device_in_use_is_not_touched() {
    let Some((_exclusive, mut disks)) = disks() else { return };
    let root = disks.folder().join("root");
    let device = disks.device(64);
    let made = std::process::Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&device).output();
    assert!(made.expect("mkfs runs").status.success());
    let mounted = disks.folder().join("mounted");
    disks.mount_existing(&device, &mounted);
    fs::write(mounted.join("precious"), "data").expect("written");
    fs::create_dir_all(&root).expect("created");
    symlink(&device, root.join("device")).expect("linked");
    let error = lock(&target(&root, "device", Cleaner::Builtin(Wipe::Quick))).expect_err("it is mounted");
    assert!(error.to_string().contains("mounted, or used by another device"), "{error}");
    assert!(mounted.join("precious").exists());
    disks.unmount(&mounted);
    assert_eq!(locked(&root, "device").clean(), Ok(()));
    assert_eq!(seen(&root, "device").is_empty, Some(true));
}
