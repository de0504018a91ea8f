//! Cleaning: what is on a released disk is removed, and nothing else, whatever somebody has put there.
//!
//! First it is decided which disk is meant ([`target`], pure); then the disk is held, so that nobody offers it meanwhile, and
//! whoever has it ([`hold`]); then, once a live read has shown that its volume is still released, it is cleaned ([`Held::clean`]).
//! It can be done twice without harm, and is done again from the beginning by whoever finds a released volume.

mod content;
mod device;

use std::path::{Component, Path, PathBuf};

use bindery_model::event::{EventType, Reason};
use bindery_model::{Name, ReclaimPolicy, Source, Volume, VolumePhase};
use bindery_rules_api::{Event, Rule};

use crate::config::{ClassConfig, Cleaner, Config};
use crate::discover::{Known, Shape};
use crate::disk::{self, Hold, Mount};
use crate::rules::cleaning as rules;

/// A disk that is to be cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The directory that it is in, as it is seen from here.
    pub mount_dir: PathBuf,
    /// Its name there.
    pub entry: String,
    /// How it is cleaned if it is a block device.
    pub cleaner: Cleaner,
}

/// Why a volume is not cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// What is particular about this case.
    pub note: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.note, self.rule)
    }
}

/// Which disk is behind a volume; why it is not to be touched, otherwise.
pub fn target(config: &Config, known: &Known, volume: &Volume) -> Result<Target, Refusal> {
    let refuse = |rule, note: String| Err(Refusal { rule, note });
    let name = volume.name();
    let Source::Local(path) = &volume.source else {
        return refuse(&rules::NOT_LOCAL, format!("volume {name} has no local source"));
    };
    let Some(class) = config.classes.get(volume.class().as_str()) else {
        return refuse(
            &rules::CLASS_UNKNOWN,
            format!("volume {name} is of class {:?}, which is not configured", volume.class()),
        );
    };
    let Some(entry) = entry(class, path) else {
        return refuse(
            &rules::OUTSIDE,
            format!("volume {name} is at {path:?}, which is no entry of {}", class.host_dir),
        );
    };
    if let Some(other) = known.other_at(path, name) {
        return refuse(&rules::SHARED, format!("volume {other} is at {path} too"));
    }
    Ok(Target { mount_dir: PathBuf::from(&class.mount_dir), entry, cleaner: class.cleaner.clone() })
}

/// Whether a volume whose disk is held by now is still what it was when that was decided, by a live read. Whoever held the disk before
/// may have cleaned and offered it: then it is another volume's.
pub fn unchanged(volume: &Volume, live: &Volume) -> Result<(), Refusal> {
    let is_as_it_was = live.meta.uid == volume.meta.uid
        && live.meta.version == volume.meta.version
        && live.phase == VolumePhase::Released
        && !live.deleting;
    if is_as_it_was { Ok(()) } else { Err(Refusal { rule: &rules::CHANGED, note: rules::CHANGED.why.to_owned() }) }
}

/// What is told of a released volume whose policy cannot be carried out.
pub fn policy_flaw(volume: &Volume) -> Option<Event> {
    if volume.phase != VolumePhase::Released || volume.deleting {
        return None;
    }
    let reason = match &volume.policy {
        ReclaimPolicy::Retain | ReclaimPolicy::Delete => return None,
        ReclaimPolicy::Recycle => Reason::VolumeUnsupportedReclaimPolicy,
        ReclaimPolicy::Unknown(_) => Reason::VolumeUnknownReclaimPolicy,
    };
    let message = format!("its reclaim policy is {:?}: {}", volume.policy.as_str(), rules::POLICY.why);
    Some(Event::volume(volume, EventType::Warning, reason, message))
}

/// The name of the entry that a path is of: just one step below the class's directory, part by part, and no way back out of it.
fn entry(class: &ClassConfig, path: &Name) -> Option<String> {
    let below = Path::new(path.as_str()).strip_prefix(&class.host_dir).ok()?;
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(entry)), None) => entry.to_str().map(str::to_owned),
        (_, _) => None,
    }
}

/// A disk that is held for cleaning.
#[derive(Debug)]
pub struct Held {
    hold: Hold,
    shape: Shape,
    target: Target,
}

/// Why a disk is not held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotHeld {
    /// Another holds it: whoever cleans or offers it.
    ByUs(String),
    /// It is not there, not mounted, or in use.
    Problem(String),
}

impl std::fmt::Display for NotHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotHeld::ByUs(problem) | NotHeld::Problem(problem) => f.write_str(problem),
        }
    }
}

/// Holds a disk, so that nobody else cleans or offers it.
pub fn hold(target: &Target) -> Result<Held, NotHeld> {
    let path = target.mount_dir.join(&target.entry);
    let of_path = |error: std::io::Error| NotHeld::Problem(format!("{}: {error}", path.display()));
    let is_directory = std::fs::metadata(&path).map_err(of_path)?.is_dir();
    let (file, shape) = if is_directory {
        let parent = disk::open_configured(&target.mount_dir).map_err(of_path)?;
        let root = disk::open_directory(&parent, target.entry.as_str()).map_err(of_path)?;
        if Mount::of(&root).map_err(of_path)? == Mount::of(&parent).map_err(of_path)? {
            let problem = "nothing is mounted there: it is cleaned when its disk is there again";
            return Err(NotHeld::Problem(format!("{}: {problem}", path.display())));
        }
        (root, Shape::Directory)
    } else {
        (device::open_unused(&path).map_err(of_path)?, Shape::Block)
    };
    match Hold::of(file).map_err(of_path)? {
        Some(hold) => Ok(Held { hold, shape, target: target.clone() }),
        None => {
            Err(NotHeld::ByUs(format!("{}: somebody else holds it: it may be being cleaned already", path.display())))
        }
    }
}

impl Held {
    /// What it is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Cleans it. Blocks for as long as that takes.
    pub fn clean(&self) -> Result<(), String> {
        let path = self.target.mount_dir.join(&self.target.entry);
        match self.shape {
            Shape::Directory => {
                content::remove(self.hold.file()).map_err(|problem| format!("{}: {problem}", path.display()))
            }
            Shape::Block | Shape::Other => device::clean(&path, &self.target.cleaner, self.hold.file()),
        }
    }
}

/// Removes everything in an open directory: for tests that go past what a [`Target`] may be.
#[doc(hidden)]
pub fn remove_content(directory: std::os::fd::OwnedFd) -> Result<(), String> {
    content::remove(&directory)
}
