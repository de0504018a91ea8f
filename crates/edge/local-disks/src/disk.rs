//! Looking at the machine: what lies in a directory, what is mounted there, how much it holds. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags, flock, open, openat, statx};

use crate::discover::{Identity, Looked, Seen, Shape, Unseen};

/// What a device has to be without, at its beginning and at its end, to count as empty.
const BLANK_BYTES: u64 = 1 << 20;

/// What file systems put on themselves, and nobody misses.
const LOST_AND_FOUND: &str = "lost+found";

/// The texts of a configuration, by the names of its files. Directories, and what a mounted ConfigMap has for itself, are skipped.
pub fn read_config(directory: &Path) -> Result<BTreeMap<String, String>, String> {
    let of = |path: &Path| format!("{}: ", path.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(|error| of(directory) + &error.to_string())? {
        let path = entry.map_err(|error| of(directory) + &error.to_string())?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        if name.starts_with("..") || !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| of(&path) + &error.to_string())?;
        files.insert(name, text);
    }
    Ok(files)
}

/// Which mount a file is on. Two directories of one file system that are mounted twice are on two mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mount {
    /// By the mount's own number.
    Id(u64),
    /// By the device, where the kernel does not tell more: those before 5.8.
    Device(u32, u32),
}

impl Mount {
    /// The mount of an open file.
    pub(crate) fn of(file: impl AsFd) -> io::Result<Mount> {
        let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        let has_id = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        Ok(if has_id { Mount::Id(found.stx_mnt_id) } else { Mount::Device(found.stx_dev_major, found.stx_dev_minor) })
    }
}

/// Opens a directory that a person has configured; links on the way there are that person's.
pub(crate) fn open_configured(directory: &Path) -> io::Result<OwnedFd> {
    Ok(open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a directory by its name in another. A link is not followed.
pub(crate) fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// A disk that is held: whoever cleans it or offers it holds it meanwhile, in whichever process. Let go when dropped.
#[derive(Debug)]
pub struct Hold {
    file: OwnedFd,
}

impl Hold {
    /// Holds what is open; `None` when somebody else does.
    pub(crate) fn of(file: OwnedFd) -> io::Result<Option<Hold>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Hold { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The open directory or device.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

/// Holds an entry while it is offered; `None` when somebody else holds it, as whoever cleans it does.
pub fn hold(mount_dir: &Path, name: &str, shape: Shape) -> io::Result<Option<Hold>> {
    let file = match shape {
        Shape::Directory => open_directory(open_configured(mount_dir)?, name)?,
        Shape::Block | Shape::Other => open_device(&mount_dir.join(name))?.into(),
    };
    Hold::of(file)
}

fn open_device(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// Looks at every entry of a class's directory whose name is meant; the others are told of by name alone.
pub fn look(mount_dir: &Path, is_meant: impl Fn(&str) -> bool, wants_empty: bool) -> Result<Vec<Looked>, String> {
    let of_directory = |error: io::Error| format!("{}: {error}", mount_dir.display());
    let mounted = mount_points().map_err(|error| format!("the list of mounts: {error}"))?;
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(mount_dir).map_err(of_directory)? {
        let file_name = entry.map_err(of_directory)?.file_name();
        entries.push(match file_name.into_string() {
            Ok(name) if !is_meant(&name) => {
                Ok(Seen { name, shape: Shape::Other, is_mount_point: false, bytes: 0, is_empty: None, identity: None })
            }
            Ok(name) => look_at(mount_dir, &mounted, &name, wants_empty)
                .map_err(|error| Unseen { problem: format!("{}: {error}", mount_dir.join(&name).display()), name }),
            Err(name) => Err(Unseen {
                name: name.to_string_lossy().into_owned(),
                problem: format!("{}: its name is not UTF-8", mount_dir.join(name).display()),
            }),
        });
    }
    entries.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(entries)
}

fn name(entry: &Looked) -> &str {
    match entry {
        Ok(seen) => &seen.name,
        Err(unseen) => &unseen.name,
    }
}

fn look_at(mount_dir: &Path, mounted: &BTreeSet<PathBuf>, name: &str, wants_empty: bool) -> io::Result<Seen> {
    let path = mount_dir.join(name);
    let metadata = std::fs::metadata(&path)?;
    let kind = metadata.file_type();
    let shape = match () {
        () if kind.is_dir() => Shape::Directory,
        () if kind.is_block_device() => Shape::Block,
        () => Shape::Other,
    };
    let bytes = match shape {
        Shape::Directory => {
            let file_system = rustix::fs::statvfs(&path)?;
            file_system.f_blocks.saturating_mul(file_system.f_frsize)
        }
        Shape::Block => open_device(&path)?.seek(SeekFrom::End(0))?,
        Shape::Other => 0,
    };
    let is_empty = match shape {
        Shape::Directory if wants_empty => Some(is_directory_empty(&path)?),
        Shape::Block if wants_empty => Some(is_device_blank(&path, bytes)?),
        Shape::Directory | Shape::Block | Shape::Other => None,
    };
    // The list of mounts has paths without links. A link to a mount point is none itself.
    let is_mount_point = mount_dir.canonicalize().is_ok_and(|directory| mounted.contains(&directory.join(name)));
    let identity = match shape {
        Shape::Directory => Some(Identity::Directory(metadata.dev(), metadata.ino())),
        Shape::Block => Some(Identity::Device(metadata.rdev())),
        Shape::Other => None,
    };
    Ok(Seen { name: name.to_owned(), shape, is_mount_point, bytes, is_empty, identity })
}

/// Whether there is nothing in a directory but what its file system put there.
pub fn is_directory_empty(path: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        if entry?.file_name() != LOST_AND_FOUND {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a device has nothing where anything that is made of a device would be known by.
fn is_device_blank(path: &Path, bytes: u64) -> io::Result<bool> {
    let device = open_device(path)?;
    let blank_bytes = BLANK_BYTES.min(bytes);
    let mut buffer = vec![0; usize::try_from(blank_bytes).unwrap_or_default()];
    for at in [0, bytes - blank_bytes] {
        device.read_exact_at(&mut buffer, at)?;
        if buffer.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Everything that something is mounted on, as this process sees it.
pub fn mount_points() -> io::Result<BTreeSet<PathBuf>> {
    let mut text = Vec::new();
    File::open("/proc/self/mountinfo")?.read_to_end(&mut text)?;
    Ok(parse_mounts(&text))
}

/// The fifth field of each line, in which blanks, tabs, line feeds and backslashes are written as octal numbers.
fn parse_mounts(text: &[u8]) -> BTreeSet<PathBuf> {
    let fields = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    fields.map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescape(field)))).collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = || {
            let digits = after.get(..3).filter(|_| *first == b'\\')?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
        };
        match octal() {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// A path, as it may be shown.
pub(crate) fn shown(name: &[u8]) -> String {
    OsStr::from_bytes(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_whatever_they_are_called() {
        let text = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n\
                     37 35 98:0 / /mnt/back\\134slash rw - ext3 /dev/root rw\n\n36 short\n";
        let mounts: Vec<PathBuf> = parse_mounts(text).into_iter().collect();
        assert_eq!(mounts, [PathBuf::from("/mnt/a b"), PathBuf::from("/mnt/back\\slash")]);
        assert!(mount_points().expect("a list of mounts").contains(Path::new("/proc")));
    }

    #[test]
    fn entries_are_looked_at_as_they_are() {
        let root = std::env::temp_dir().join(format!("bindery-look-{}", std::process::id()));
        std::fs::create_dir_all(root.join("dir/inside")).expect("made");
        std::fs::create_dir_all(root.join("blank/lost+found")).expect("made");
        std::fs::write(root.join("file"), "text").expect("written");
        std::os::unix::fs::symlink("dir", root.join("link")).expect("linked");
        std::os::unix::fs::symlink("/proc", root.join("to-proc")).expect("linked");
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).expect("linked");
        let entries = look(&root, |name| name != "file", true).expect("looked");
        let brief: Vec<(String, Option<_>)> = entries
            .iter()
            .map(|entry| {
                let seen = entry.as_ref().ok().map(|seen| (seen.shape, seen.is_mount_point, seen.is_empty));
                (name(entry).to_owned(), seen)
            })
            .collect();
        let directory = |is_empty| Some((Shape::Directory, false, Some(is_empty)));
        assert_eq!(
            brief,
            [
                ("blank".to_owned(), directory(true)),
                ("dangling".to_owned(), None),
                ("dir".to_owned(), directory(false)),
                ("file".to_owned(), Some((Shape::Other, false, None))),
                ("link".to_owned(), directory(false)),
                ("to-proc".to_owned(), directory(false)),
            ]
        );
        assert!(look(&root.join("nowhere"), |_| true, false).is_err());
        std::fs::remove_dir_all(&root).expect("cleaned up");
    }

    #[test]
    fn a_configuration_is_the_plain_files_of_a_directory() {
        let root = std::env::temp_dir().join(format!("bindery-config-{}", std::process::id()));
        std::fs::create_dir_all(root.join("..2026/x")).expect("made");
        std::fs::write(root.join("..2026/useNodeNameOnly"), "true").expect("written");
        std::os::unix::fs::symlink("..2026", root.join("..data")).expect("linked");
        std::os::unix::fs::symlink("..data/useNodeNameOnly", root.join("useNodeNameOnly")).expect("linked");
        std::os::unix::fs::symlink("..data/x", root.join("x")).expect("linked");
        let files = read_config(&root).expect("read");
        assert_eq!(files.into_iter().collect::<Vec<_>>(), [("useNodeNameOnly".to_owned(), "true".to_owned())]);
        assert!(read_config(&root.join("nowhere")).is_err_and(|error| error.contains("nowhere")));
        std::fs::remove_dir_all(&root).expect("cleaned up");
    }
}
