//! Discovery: decides which entries of a directory get a volume, and why others do not. Pure.

mod existing;
mod root_directory;
mod volume;

use std::collections::BTreeSet;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Class, Name, Node, ReclaimPolicy, VolumeMode};
use bindery_rules_api::{Event, Rule};
use serde_json::Value;

use crate::config::{ClassConfig, Config};
use crate::naming;
use crate::rules::discovery as rules;

pub use existing::{ExistingVolumes, Owner};
pub use root_directory::RootDirectory;

/// The node label with the host name.
pub const HOST_LABEL: &str = "kubernetes.io/hostname";

/// The type of an entry, with links resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A directory.
    Directory,
    /// A block device.
    Block,
    /// Anything else.
    Other,
}

/// Identifies a disk independently of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A block device, by its device number.
    Device(u64),
    /// A directory, by device and inode numbers.
    Directory(u64, u64),
}

/// An entry of a class, and its disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryDisk {
    /// The class.
    pub class: String,
    /// The entry's name.
    pub entry: String,
    /// The disk.
    pub identity: Identity,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The type.
    pub shape: Shape,
    /// Whether it is a mount point.
    pub is_mount_point: bool,
    /// The size.
    pub bytes: u64,
    /// Whether it is empty; `None` unless the class needs to know.
    pub is_empty: Option<bool>,
    /// The disk; `None` if it is neither a directory nor a device.
    pub identity: Option<Identity>,
    /// The root directory, if it is a directory.
    pub root: Option<RootDirectory>,
}

/// An entry, or why it could not be read.
pub type ScanResult = Result<Entry, UnreadableEntry>;

/// An entry that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEntry {
    /// The name.
    pub name: String,
    /// The error.
    pub problem: String,
}

/// The input for decisions about one class.
pub struct ClassContext<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The class's name.
    pub class_name: &'a str,
    /// The class's configuration.
    pub class_config: &'a ClassConfig,
    /// The StorageClass, if it exists.
    pub class: Option<&'a Class>,
    /// This node.
    pub node: &'a Node,
    /// Identifies the volumes of this provisioner.
    pub owner: &'a Owner,
    /// The existing volumes.
    pub existing: &'a ExistingVolumes,
    /// The volumes that are being cleaned.
    pub cleaning: &'a BTreeSet<Name>,
    /// The disks of all classes, to detect two entries for the same disk.
    pub entries: &'a [EntryDisk],
}

/// What to do about an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Create this volume.
    Create(Box<Value>),
    /// Nothing.
    Skip,
    /// Nothing, and report a problem.
    Fail,
}

/// The decision about an entry or a whole class.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The entry; `None` if it is about the class.
    pub entry: Option<String>,
    /// The rule that applies.
    pub rule: &'static Rule,
    /// Details.
    pub note: String,
    /// What to do.
    pub outcome: Outcome,
    /// The event to publish.
    pub event: Option<Event>,
}

impl Decision {
    fn new(entry: Option<&str>, rule: &'static Rule, outcome: Outcome, note: impl Into<String>) -> Decision {
        Decision { entry: entry.map(str::to_owned), rule, note: note.into(), outcome, event: None }
    }
}

/// Why no volumes can be created for the class at all, if so.
pub fn class_error(context: &ClassContext<'_>) -> Option<Decision> {
    let fail = |rule, note: String| Some(Decision::new(None, rule, Outcome::Fail, note));
    let name = context.class_name;
    let Some(class) = context.class else {
        return fail(&rules::CLASS_MISSING, format!("storage class {name:?} does not exist"));
    };
    if let Some(error) = &class.field_error {
        return fail(&rules::CLASS_MALFORMED, format!("storage class {name:?}: {error}"));
    }
    match &class.policy {
        ReclaimPolicy::Retain | ReclaimPolicy::Delete => {}
        other @ (ReclaimPolicy::Recycle | ReclaimPolicy::Unknown(_)) => {
            return fail(
                &rules::CLASS_RECLAIM_POLICY,
                format!(
                    "storage class {name:?} has reclaim policy {:?}; only Retain and Delete are supported",
                    other.as_str()
                ),
            );
        }
    }
    if context.node.labels.get(HOST_LABEL).is_none() {
        return fail(
            &rules::NODE_WITHOUT_HOSTNAME_LABEL,
            format!("node {:?} has no label {HOST_LABEL}", context.node.name()),
        );
    }
    None
}

/// Decides about each entry of a class's directory, or about the class if it is unusable.
pub fn discover(context: &ClassContext<'_>, entries: &[ScanResult]) -> Vec<Decision> {
    match class_error(context) {
        Some(error) => vec![error],
        None => entries.iter().map(|entry| decide(context, entry)).collect(),
    }
}

/// Whether an entry's name matches a pattern of the class.
pub fn matches_pattern(class: &ClassConfig, name: &str) -> bool {
    class.patterns.iter().any(|pattern| pattern.matches(name))
}

fn decide(context: &ClassContext<'_>, entry: &ScanResult) -> Decision {
    let (name, seen) = match entry {
        Ok(seen) => (seen.name.as_str(), Ok(seen)),
        Err(unreadable) => (unreadable.name.as_str(), Err(&unreadable.problem)),
    };
    if !matches_pattern(context.class_config, name) {
        return Decision::new(Some(name), &rules::NAME_NOT_MATCHED, Outcome::Skip, "");
    }
    match seen {
        Ok(seen) => decide_entry(context, seen),
        Err(problem) => Decision::new(Some(name), &rules::UNREADABLE, Outcome::Fail, problem),
    }
}

fn decide_entry(context: &ClassContext<'_>, seen: &Entry) -> Decision {
    let entry = seen.name.as_str();
    let skip = |rule, note: String| Decision::new(Some(entry), rule, Outcome::Skip, note);
    let fail = |rule, note: String| Decision::new(Some(entry), rule, Outcome::Fail, note);
    let path = format!("{}/{entry}", context.class_config.host_dir);
    if seen.shape == Shape::Other {
        return fail(&rules::UNSUPPORTED_TYPE, format!("{path} is neither a directory nor a block device"));
    }
    let name = naming::volume_name(entry, context.node.name(), context.class_name);
    if let Some(decision) = existing_volume(context, seen, &name) {
        return decision;
    }
    if let Some(other) = context.existing.at(&path) {
        return skip(&rules::PATH_TAKEN, format!("volume {other} has the path {path}"));
    }
    if let Some(other) = same_disk(context, seen) {
        let note = format!("{path} is the same disk as {:?} of class {:?}", other.entry, other.class);
        return fail(&rules::SAME_DISK, note);
    }
    if context.cleaning.contains(&name) {
        return skip(&rules::CLEANING, format!("volume {name} is being cleaned"));
    }
    if seen.shape == Shape::Directory && context.class_config.volume_mode == VolumeMode::Block {
        return fail(&rules::DIRECTORY_FOR_BLOCK, format!("{path} is a directory, but volumeMode is Block"));
    }
    if seen.shape == Shape::Directory && !seen.is_mount_point {
        return fail(&rules::NOT_MOUNTED, format!("{path} is not an actual mountpoint"));
    }
    if context.class_config.only_empty && seen.is_empty != Some(true) {
        return skip(&rules::NOT_EMPTY, format!("{path} is not empty, and volume {name} does not exist"));
    }
    let body = volume::build(context, &name, seen);
    Decision::new(
        Some(entry),
        &rules::CREATE_VOLUME,
        Outcome::Create(Box::new(body)),
        format!("volume {name} at {path}"),
    )
}

/// Another entry for the same disk that takes precedence: it has a volume already, or its name
/// sorts first.
fn same_disk<'a>(context: &ClassContext<'a>, seen: &Entry) -> Option<&'a EntryDisk> {
    let identity = seen.identity?;
    let this = EntryDisk { class: context.class_name.to_owned(), entry: seen.name.clone(), identity };
    context.entries.iter().filter(|other| other.identity == identity && **other != this).find(|other| {
        let name = naming::volume_name(&other.entry, context.node.name(), &other.class);
        context.existing.named(&name).is_some() || **other < this
    })
}

/// The decision if a volume with the entry's volume name exists.
fn existing_volume(context: &ClassContext<'_>, seen: &Entry, name: &Name) -> Option<Decision> {
    let volume = context.existing.named(name)?;
    let entry = Some(seen.name.as_str());
    if !context.owner.owns(volume) {
        let note = format!("volume {name} exists and was not created by {}", context.owner.provisioner);
        return Some(Decision::new(entry, &rules::NAME_TAKEN, Outcome::Fail, note));
    }
    if volume.volume_mode != VolumeMode::Block || seen.shape != Shape::Directory {
        return Some(Decision::new(entry, &rules::VOLUME_EXISTS, Outcome::Skip, ""));
    }
    let path = format!("{}/{}", context.class_config.host_dir, seen.name);
    let note = format!("volume {name} is for a block device, but {path} is a directory");
    let event = Event::volume(volume, EventType::Warning, Reason::VolumeFailedDelete, note.clone());
    Some(Decision { event: Some(event), ..Decision::new(entry, &rules::DEVICE_BECAME_DIRECTORY, Outcome::Fail, note) })
}
