//! Discovery: which entries of a directory become volumes, and why the others do not. Pure.

mod known;
mod offer;

use std::collections::BTreeSet;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Class, Name, Node, ReclaimPolicy, VolumeMode};
use bindery_rules_api::{Event, Rule};
use serde_json::Value;

use crate::config::{ClassConfig, Config};
use crate::naming;
use crate::rules::discovery as rules;

pub use known::{Known, Owner};

/// The label by which a node says its host's name.
pub const HOST_LABEL: &str = "kubernetes.io/hostname";

/// What an entry is, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A directory.
    Directory,
    /// A block device.
    Block,
    /// Anything else.
    Other,
}

/// Which disk an entry is, whatever it is called: a device by its number, a directory by its file system's and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A device.
    Device(u64),
    /// A directory.
    Directory(u64, u64),
}

/// An entry of some class that is meant, and which disk it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The class.
    pub class: String,
    /// The entry's name.
    pub entry: String,
    /// Which disk it is.
    pub identity: Identity,
}

/// An entry of a directory, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What it is.
    pub shape: Shape,
    /// Whether something is mounted just there.
    pub is_mount_point: bool,
    /// How much it holds.
    pub bytes: u64,
    /// Whether there is nothing on it; not looked at unless the class wants to know.
    pub is_empty: Option<bool>,
    /// Which disk it is, if it is one.
    pub identity: Option<Identity>,
}

/// An entry, or why it could not be looked at.
pub type Looked = Result<Seen, Unseen>;

/// An entry that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// Its name.
    pub name: String,
    /// Why.
    pub problem: String,
}

/// What a look at one class is made with.
pub struct Scene<'a> {
    /// Everything that is configured.
    pub config: &'a Config,
    /// The class's name.
    pub class_name: &'a str,
    /// What is configured for it.
    pub class_config: &'a ClassConfig,
    /// The class, if there is one.
    pub class: Option<&'a Class>,
    /// The node that this is.
    pub node: &'a Node,
    /// Whose volumes are ours.
    pub owner: &'a Owner,
    /// The volumes there are.
    pub known: &'a Known,
    /// The volumes that are being cleaned.
    pub cleaning: &'a BTreeSet<Name>,
    /// All entries of all classes, by which one disk with two names is known.
    pub entries: &'a [Named],
}

/// What is to be done about an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// This volume is to be created.
    Offer(Box<Value>),
    /// Nothing; all is well, or somebody else's turn.
    Leave,
    /// Nothing can be done, and somebody should know.
    Fail,
}

/// What was found about an entry, or about the whole class.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which entry; `None` where it is about the class.
    pub entry: Option<String>,
    /// The rule that applies.
    pub rule: &'static Rule,
    /// What is particular about this case, in words.
    pub note: String,
    /// What is to be done.
    pub outcome: Outcome,
    /// What is to be published.
    pub notice: Option<Event>,
}

impl Finding {
    fn new(entry: Option<&str>, rule: &'static Rule, outcome: Outcome, note: impl Into<String>) -> Finding {
        Finding { entry: entry.map(str::to_owned), rule, note: note.into(), outcome, notice: None }
    }
}

/// What is wrong with the whole class, if anything is.
pub fn class_flaw(scene: &Scene<'_>) -> Option<Finding> {
    let fail = |rule, note: String| Some(Finding::new(None, rule, Outcome::Fail, note));
    let name = scene.class_name;
    let Some(class) = scene.class else {
        return fail(&rules::CLASS_MISSING, format!("storage class {name:?} does not exist"));
    };
    if let Some(flaw) = &class.field_error {
        return fail(&rules::CLASS_MALFORMED, format!("storage class {name:?}: {flaw}"));
    }
    match &class.policy {
        ReclaimPolicy::Retain | ReclaimPolicy::Delete => {}
        other @ (ReclaimPolicy::Recycle | ReclaimPolicy::Unknown(_)) => {
            return fail(
                &rules::CLASS_POLICY,
                format!(
                    "storage class {name:?} has the reclaim policy {:?}, and only Retain and Delete will do",
                    other.as_str()
                ),
            );
        }
    }
    if scene.node.labels.get(HOST_LABEL).is_none() {
        return fail(&rules::NODE_UNLABELLED, format!("node {:?} has no label {HOST_LABEL}", scene.node.name()));
    }
    None
}

/// What is to be done about each entry of a class's directory; about none where the class itself will not do.
pub fn discover(scene: &Scene<'_>, entries: &[Looked]) -> Vec<Finding> {
    match class_flaw(scene) {
        Some(flaw) => vec![flaw],
        None => entries.iter().map(|entry| about(scene, entry)).collect(),
    }
}

/// Whether the name of an entry is meant by the class.
pub fn is_meant(class: &ClassConfig, name: &str) -> bool {
    class.patterns.iter().any(|pattern| pattern.matches(name))
}

fn about(scene: &Scene<'_>, entry: &Looked) -> Finding {
    let (name, seen) = match entry {
        Ok(seen) => (seen.name.as_str(), Ok(seen)),
        Err(unseen) => (unseen.name.as_str(), Err(&unseen.problem)),
    };
    if !is_meant(scene.class_config, name) {
        return Finding::new(Some(name), &rules::NOT_MEANT, Outcome::Leave, "");
    }
    match seen {
        Ok(seen) => about_seen(scene, seen),
        Err(problem) => Finding::new(Some(name), &rules::UNREADABLE, Outcome::Fail, problem),
    }
}

fn about_seen(scene: &Scene<'_>, seen: &Seen) -> Finding {
    let entry = seen.name.as_str();
    let leave = |rule, note: String| Finding::new(Some(entry), rule, Outcome::Leave, note);
    let fail = |rule, note: String| Finding::new(Some(entry), rule, Outcome::Fail, note);
    let path = format!("{}/{entry}", scene.class_config.host_dir);
    if seen.shape == Shape::Other {
        return fail(&rules::STRANGE, format!("{path} is neither a directory nor a block device"));
    }
    let name = naming::volume_name(entry, scene.node.name(), scene.class_name);
    if let Some(finding) = about_namesake(scene, seen, &name) {
        return finding;
    }
    if let Some(other) = scene.known.at(&path) {
        return leave(&rules::PATH_TAKEN, format!("{path} is the path of volume {other}"));
    }
    if let Some(twin) = twin(scene, seen) {
        let note = format!("{path} is the same disk as {:?} of class {:?}", twin.entry, twin.class);
        return fail(&rules::SAME_DISK, note);
    }
    if scene.cleaning.contains(&name) {
        return leave(&rules::CLEANING, format!("volume {name} is being cleaned"));
    }
    if seen.shape == Shape::Directory && scene.class_config.volume_mode == VolumeMode::Block {
        return fail(&rules::DIRECTORY_FOR_BLOCK, format!("{path} is a directory, and volumeMode is Block"));
    }
    if seen.shape == Shape::Directory && !seen.is_mount_point {
        return fail(&rules::NOT_MOUNTED, format!("{path} is not an actual mountpoint"));
    }
    if scene.class_config.is_only_empty && seen.is_empty != Some(true) {
        return leave(&rules::NOT_EMPTY, format!("{path} is not empty, and volume {name} is not known"));
    }
    let body = offer::volume(scene, &name, entry, seen.bytes);
    Finding::new(Some(entry), &rules::OFFER, Outcome::Offer(Box::new(body)), format!("volume {name} at {path}"))
}

/// Another entry that is the same disk, and goes before: because it has its volume already, or else by its name.
fn twin<'a>(scene: &Scene<'a>, seen: &Seen) -> Option<&'a Named> {
    let identity = seen.identity?;
    let this = Named { class: scene.class_name.to_owned(), entry: seen.name.clone(), identity };
    scene.entries.iter().filter(|other| other.identity == identity && **other != this).find(|other| {
        let name = naming::volume_name(&other.entry, scene.node.name(), &other.class);
        scene.known.named(&name).is_some() || **other < this
    })
}

/// What there is to say where a volume has the name that the entry's has, or is to have.
fn about_namesake(scene: &Scene<'_>, seen: &Seen, name: &Name) -> Option<Finding> {
    let volume = scene.known.named(name)?;
    let entry = Some(seen.name.as_str());
    if !scene.owner.owns(volume) {
        let note = format!("volume {name} exists and was not made by {}", scene.owner.provisioner);
        return Some(Finding::new(entry, &rules::NAME_TAKEN, Outcome::Fail, note));
    }
    if volume.volume_mode != VolumeMode::Block || seen.shape != Shape::Directory {
        return Some(Finding::new(entry, &rules::OFFERED, Outcome::Leave, ""));
    }
    let path = format!("{}/{}", scene.class_config.host_dir, seen.name);
    let note = format!("volume {name} is of a block device, and {path} is a directory");
    let notice = Event::volume(volume, EventType::Warning, Reason::VolumeFailedDelete, note.clone());
    Some(Finding { notice: Some(notice), ..Finding::new(entry, &rules::MODE_CHANGED, Outcome::Fail, note) })
}
