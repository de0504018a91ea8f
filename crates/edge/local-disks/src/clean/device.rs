//! Cleans a block device with a built-in method or a command.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use rustix::io::Errno;

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

/// The environment variable with the device's path, for commands.
const DEVICE_VARIABLE: &str = "LOCAL_PV_BLKDEVICE";

/// Upstream's scripts, and the built-in replacement if they do not exist.
const SCRIPTS: [(&str, Wipe); 3] = [
    (crate::config::DEFAULT_CLEANER, Wipe::Quick),
    ("/scripts/dd_zero.sh", Wipe::Zero),
    ("/scripts/blkdiscard.sh", Wipe::Discard),
];

/// Opens a device for reading, after checking that it is not mounted and not part of another
/// device.
pub fn open_unused(path: &Path) -> io::Result<OwnedFd> {
    let device = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let file = File::from(device.try_clone()?);
    if !file.metadata()?.file_type().is_block_device() {
        return Err(io::Error::other("neither a directory nor a block device"));
    }
    // Opening exclusively fails if the device is in use.
    drop(open_exclusive(path)?);
    Ok(device)
}

fn open_exclusive(path: &Path) -> io::Result<File> {
    match open(path, OFlags::RDWR | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
        Ok(device) => Ok(device.into()),
        Err(Errno::BUSY) => Err(io::Error::other("the device is mounted, or used by another device")),
        Err(error) => Err(error.into()),
    }
}

/// Cleans a device. A command inherits the locked descriptor, so the lock lasts as long as the
/// command runs.
pub fn clean(path: &Path, cleaner: &Cleaner, locked: &OwnedFd) -> Result<(), String> {
    let of_path = |error: io::Error| format!("{}: {error}", path.display());
    match resolve(cleaner) {
        Cleaner::Builtin(wipe) => wipe_device(path, wipe).map_err(of_path),
        Cleaner::Command(words) => run(path, &words, locked.try_clone().map_err(of_path)?),
    }
}

/// Replaces an upstream script that does not exist by the built-in method.
fn resolve(cleaner: &Cleaner) -> Cleaner {
    if let Cleaner::Command(words) = cleaner
        && let Some(script) = words.first().filter(|script| !Path::new(script).exists())
        && let Some((_, wipe)) = SCRIPTS.iter().find(|(known, _)| known == script)
    {
        return Cleaner::Builtin(*wipe);
    }
    cleaner.clone()
}

fn wipe_device(path: &Path, wipe: Wipe) -> io::Result<()> {
    let mut device = open_exclusive(path)?;
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

/// Runs a command. Logs its output, and reports the last lines if it fails.
fn run(path: &Path, words: &[String], locked: OwnedFd) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("blockCleanerCommand is empty".into()) };
    let mut command = Command::new(program);
    command.args(arguments).env(DEVICE_VARIABLE, path).stdin(Stdio::from(locked));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let of_command = |error: io::Error| format!("{program}: {error}");
    let mut child = command.spawn().map_err(of_command)?;
    drop(command);
    let outputs: Vec<Box<dyn io::Read + Send>> = [
        child.stdout.take().map(|out| Box::new(out) as Box<dyn io::Read + Send>),
        child.stderr.take().map(|out| Box::new(out) as Box<dyn io::Read + Send>),
    ]
    .into_iter()
    .flatten()
    .collect();
    let readers: Vec<_> = outputs
        .into_iter()
        .map(|output| {
            let (program, device) = (program.clone(), path.display().to_string());
            std::thread::spawn(move || {
                let mut last = String::new();
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    tracing::info!(program, device, line, "cleaner output");
                    last = line;
                }
                last
            })
        })
        .collect();
    let status = child.wait().map_err(of_command)?;
    let last: Vec<String> =
        readers.into_iter().filter_map(|reader| reader.join().ok()).filter(|l| !l.is_empty()).collect();
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {program} ended with {status}: {}", path.display(), last.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Cleaner {
        Cleaner::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn missing_upstream_scripts_are_replaced() {
        assert_eq!(resolve(&command(&["/scripts/quick_reset.sh"])), Cleaner::Builtin(Wipe::Quick));
        assert_eq!(resolve(&command(&["/scripts/dd_zero.sh", "2"])), Cleaner::Builtin(Wipe::Zero));
        assert_eq!(resolve(&command(&["/scripts/blkdiscard.sh"])), Cleaner::Builtin(Wipe::Discard));
        for other in [command(&["/scripts/shred.sh"]), command(&["/bin/true"]), Cleaner::Builtin(Wipe::Zero)] {
            assert_eq!(resolve(&other), other, "nothing else is replaced");
        }
    }

    #[test]
    fn command_gets_its_device_and_its_exit_status_decides() {
        let locked = || OwnedFd::from(File::open("/dev/null").expect("opened"));
        let run = |script: &str| run(Path::new("/dev/some"), &["/bin/sh".into(), "-c".into(), script.into()], locked());
        assert_eq!(run("test \"$LOCAL_PV_BLKDEVICE\" = /dev/some"), Ok(()));
        let error = run("echo first; echo the disk is stuck >&2; exit 3").expect_err("it failed");
        assert!(error.contains("exit status: 3") && error.contains("the disk is stuck"), "{error}");
        let error = super::run(Path::new("/dev/some"), &["/nowhere".into()], locked()).expect_err("no such command");
        assert!(error.starts_with("/nowhere: "), "{error}");
    }
}
