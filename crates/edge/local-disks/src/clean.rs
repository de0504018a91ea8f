//! Cleaning: deletes all data on a released disk, and nothing else, whatever its users have put
//! there.
//!
//! [`target`] (pure) decides which disk to clean; [`lock`] locks it, so that no volume is created
//! for it in the meantime; and after a live read has shown that its volume is still released,
//! [`LockedDisk::clean`] cleans it. Cleaning is idempotent: after a crash it starts over.

mod command;
mod content;
mod device;
mod root;

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Name, ReclaimPolicy, Source, Volume, VolumePhase};
use bindery_rules_api::{Event, Rule};

use crate::config::{ClassConfig, Cleaner, Config};
use crate::discover::{ExistingVolumes, RootDirectory, Shape};
use crate::disk::{self, DiskLock, Mount};
use crate::rules::cleaning as rules;

/// A disk to clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The directory of the class, as mounted in this process.
    pub mount_dir: PathBuf,
    /// The entry's name.
    pub entry: String,
    /// How to clean it if it is a block device.
    pub cleaner: Cleaner,
    /// How long a cleaner command may run.
    pub timeout: Duration,
    /// The root directory's owner, group and mode when the disk was discovered, if recorded.
    pub root: Option<RootDirectory>,
}

/// Why a volume is not cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleaningError {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// Details.
    pub note: String,
}

impl std::fmt::Display for CleaningError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.note, self.rule)
    }
}

/// The disk of a volume, or why it must not be cleaned.
pub fn target(config: &Config, known: &ExistingVolumes, volume: &Volume) -> Result<Target, CleaningError> {
    let reject = |rule, note: String| Err(CleaningError { rule, note });
    let name = volume.name();
    let Source::Local(path) = &volume.source else {
        return reject(&rules::NOT_LOCAL, format!("volume {name} has no local source"));
    };
    let Some(class) = config.classes.get(volume.class().as_str()) else {
        return reject(
            &rules::CLASS_NOT_CONFIGURED,
            format!("volume {name} is of class {:?}, which is not configured", volume.class()),
        );
    };
    let Some(entry) = entry(class, path) else {
        return reject(
            &rules::PATH_OUTSIDE_DIRECTORY,
            format!("volume {name} is at {path:?}, which is not an entry of {}", class.host_dir),
        );
    };
    if let Some(other) = known.other_at(path, name) {
        return reject(&rules::PATH_SHARED, format!("volume {other} has the same path {path}"));
    }
    let root = volume.annotations.get(Annotation::RootDirectory).and_then(|text| text.parse().ok());
    Ok(Target {
        mount_dir: PathBuf::from(&class.mount_dir),
        entry,
        cleaner: class.cleaner.clone(),
        timeout: class.cleaner_timeout,
        root,
    })
}

/// Checks, after its disk was locked, that a volume is still the one that was decided on. Before,
/// another process may have cleaned the disk and created a new volume for it.
pub fn check_unchanged(volume: &Volume, live: &Volume) -> Result<(), CleaningError> {
    let is_unchanged = live.meta.uid == volume.meta.uid
        && live.meta.version == volume.meta.version
        && live.phase == VolumePhase::Released
        && !live.deleting;
    if is_unchanged {
        Ok(())
    } else {
        Err(CleaningError { rule: &rules::VOLUME_CHANGED, note: rules::VOLUME_CHANGED.why.to_owned() })
    }
}

/// The event for a released volume with an unsupported reclaim policy.
pub fn unsupported_policy_event(volume: &Volume) -> Option<Event> {
    if volume.phase != VolumePhase::Released || volume.deleting {
        return None;
    }
    let reason = match &volume.policy {
        ReclaimPolicy::Retain | ReclaimPolicy::Delete => return None,
        ReclaimPolicy::Recycle => Reason::VolumeUnsupportedReclaimPolicy,
        ReclaimPolicy::Unknown(_) => Reason::VolumeUnknownReclaimPolicy,
    };
    let message = format!("reclaim policy {:?}: {}", volume.policy.as_str(), rules::UNSUPPORTED_RECLAIM_POLICY.why);
    Some(Event::volume(volume, EventType::Warning, reason, message))
}

/// The entry's name in a path: exactly one component below the class's directory, and not `..`.
fn entry(class: &ClassConfig, path: &Name) -> Option<String> {
    let below = Path::new(path.as_str()).strip_prefix(&class.host_dir).ok()?;
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(entry)), None) => entry.to_str().map(str::to_owned),
        (_, _) => None,
    }
}

/// A disk that is locked for cleaning.
#[derive(Debug)]
pub struct LockedDisk {
    lock: DiskLock,
    shape: Shape,
    target: Target,
}

/// Why a disk could not be locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockError {
    /// Another process or thread has locked it.
    Locked(String),
    /// It is missing, not mounted, or in use.
    Problem(String),
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockError::Locked(problem) | LockError::Problem(problem) => f.write_str(problem),
        }
    }
}

/// Locks a disk for cleaning.
pub fn lock(target: &Target) -> Result<LockedDisk, LockError> {
    let path = target.mount_dir.join(&target.entry);
    let of_path = |error: std::io::Error| LockError::Problem(format!("{}: {error}", path.display()));
    let is_directory = std::fs::metadata(&path).map_err(of_path)?.is_dir();
    let (file, shape) = if is_directory {
        let parent = disk::open_configured(&target.mount_dir).map_err(of_path)?;
        let root = disk::open_directory(&parent, target.entry.as_str()).map_err(of_path)?;
        if Mount::of(&root).map_err(of_path)? == Mount::of(&parent).map_err(of_path)? {
            let problem = "nothing is mounted there; the disk is cleaned when it is mounted again";
            return Err(LockError::Problem(format!("{}: {problem}", path.display())));
        }
        (root, Shape::Directory)
    } else {
        (device::open_unused(&path).map_err(of_path)?, Shape::Block)
    };
    match DiskLock::of(file).map_err(of_path)? {
        Some(lock) => Ok(LockedDisk { lock, shape, target: target.clone() }),
        None => {
            Err(LockError::Locked(format!("{}: locked by another process, which may be cleaning it", path.display())))
        }
    }
}

impl LockedDisk {
    /// Whether it is a directory or a device.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Cleans it. Blocks until done.
    pub fn clean(&self) -> Result<(), String> {
        let path = self.target.mount_dir.join(&self.target.entry);
        match self.shape {
            Shape::Directory => {
                let directory = self.lock.file();
                let cleaned = content::remove(directory).and_then(|()| root::reset(directory, self.target.root));
                cleaned.map_err(|problem| format!("{}: {problem}", path.display()))
            }
            Shape::Block | Shape::Other => {
                device::clean(&path, &self.target.cleaner, self.target.timeout, self.lock.file())
            }
        }
    }
}

/// Removes everything in an open directory. For tests of cases that a [`Target`] excludes.
#[doc(hidden)]
pub fn remove_content(directory: std::os::fd::OwnedFd) -> Result<(), String> {
    content::remove(&directory)
}
