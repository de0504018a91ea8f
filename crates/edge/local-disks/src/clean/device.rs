//! Cleans a block device with a built-in method or a command.
//!
//! Devices are opened by the descriptor that is locked, never by their path again: a path such as
//! `/dev/sdb` may lead to another disk by then. As long as a descriptor is open, the kernel does not
//! give its device number to another disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, open};
use rustix::io::Errno;

use super::command;
use crate::config::{Cleaner, Wipe};

/// How much to overwrite at both ends: past the second LUKS header, which is at 4 MiB at most.
const ENDS_BYTES: u64 = 8 << 20;

/// The offsets of btrfs superblock copies that are not near either end.
const BTRFS_COPIES: [u64; 2] = [64 << 20, 256 << 30];

/// How much of a superblock copy to overwrite.
const COPY_BYTES: u64 = 64 << 10;

/// How much to write at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// How much to clear with one system call, which cannot be interrupted.
const CLEAR_BYTES: u64 = 128 << 20;

/// Opens a device for reading, after checking that it is not mounted and not part of another
/// device.
pub fn open_unused(path: &Path) -> io::Result<OwnedFd> {
    let device = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let file = File::from(device.try_clone()?);
    if !file.metadata()?.file_type().is_block_device() {
        return Err(io::Error::other("neither a directory nor a block device"));
    }
    // Opening exclusively fails if the device is in use.
    drop(open_exclusive(&device)?);
    Ok(device)
}

/// A path of the open device, for as long as it is open: also for other processes, and whatever
/// happens to the path by which it was opened.
fn descriptor_path(device: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), device.as_raw_fd())
}

/// Opens an open device again, for writing.
fn open_exclusive(device: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open(descriptor_path(device), flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::BUSY) => return Err(io::Error::other("the device is mounted, or used by another device")),
        Err(error) => return Err(error.into()),
    };
    match fstat(&opened)?.st_rdev == fstat(device)?.st_rdev {
        true => Ok(opened.into()),
        false => Err(io::Error::other("another device has taken its place")),
    }
}

/// Cleans a device. A command inherits the locked descriptor, so the lock lasts as long as the
/// command runs.
pub fn clean(path: &Path, cleaner: &Cleaner, timeout: Duration, locked: &OwnedFd) -> Result<(), String> {
    let of_path = |error: io::Error| format!("{}: {error}", path.display());
    match cleaner {
        Cleaner::Builtin(wipe) => open_exclusive(locked).and_then(|device| wipe_device(device, *wipe)).map_err(of_path),
        Cleaner::Command(words) => {
            let locked_too = locked.try_clone().map_err(of_path)?;
            command::run(path, &descriptor_path(locked), words, timeout, locked_too)
        }
    }
}

fn wipe_device(mut device: File, wipe: Wipe) -> io::Result<()> {
    let bytes = device.seek(SeekFrom::End(0))?;
    match wipe {
        Wipe::Quick => {
            let ends_bytes = ENDS_BYTES.min(bytes);
            write_zeros(&device, 0, ends_bytes)?;
            for copy in BTRFS_COPIES.into_iter().filter(|at| at + COPY_BYTES <= bytes) {
                write_zeros(&device, copy, COPY_BYTES)?;
            }
            write_zeros(&device, bytes - ends_bytes, ends_bytes)?;
        }
        Wipe::Zero => clear(&device, bytes, FallocateFlags::ZERO_RANGE, true)?,
        Wipe::Discard => clear(&device, bytes, FallocateFlags::PUNCH_HOLE, false)?,
        Wipe::Shred(passes) => {
            for _ in 0..passes {
                write_random(&device, bytes)?;
                device.sync_data()?;
            }
            clear(&device, bytes, FallocateFlags::ZERO_RANGE, true)?;
        }
    }
    device.sync_all()
}

/// Lets the kernel clear a device; falls back to writing zeros if `may_write`.
fn clear(device: &File, bytes: u64, how: FallocateFlags, may_write: bool) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let step_bytes = CLEAR_BYTES.min(bytes - at);
        match fallocate(device, how | FallocateFlags::KEEP_SIZE, at, step_bytes) {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(Errno::OPNOTSUPP) if may_write => write_zeros(device, at, step_bytes)?,
            Err(Errno::OPNOTSUPP) => {
                return Err(io::Error::other("the device cannot discard so that it reads as zero: use builtin:zero"));
            }
            Err(error) => return Err(error.into()),
        }
        at += step_bytes;
    }
    Ok(())
}

fn write_zeros(device: &File, from: u64, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; usize::try_from(CHUNK_BYTES.min(bytes)).unwrap_or_default()];
    let (mut at, end) = (from, from + bytes);
    while at < end {
        let step_bytes = CHUNK_BYTES.min(end - at);
        device.write_all_at(&zeros[..usize::try_from(step_bytes).unwrap_or_default()], at)?;
        at += step_bytes;
    }
    Ok(())
}

fn write_random(device: &File, bytes: u64) -> io::Result<()> {
    let mut source = File::open("/dev/urandom")?;
    let mut random = vec![0; usize::try_from(CHUNK_BYTES.min(bytes)).unwrap_or_default()];
    let mut at = 0;
    while at < bytes {
        let step_bytes = CHUNK_BYTES.min(bytes - at);
        let chunk = &mut random[..usize::try_from(step_bytes).unwrap_or_default()];
        source.read_exact(chunk)?;
        device.write_all_at(chunk, at)?;
        at += step_bytes;
    }
    Ok(())
}
