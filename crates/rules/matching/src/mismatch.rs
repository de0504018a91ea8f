//! The tests of one volume against one claim. Matching, checking a volume that a claim names, and
//! explaining a decision all use them.

use std::fmt;

use bindery_model::{
    AccessSet, Claim, ClaimKey, FieldError, Labels, Name, Quantity, Requirement, Selector, Volume, VolumeMode,
    VolumePhase,
};

/// Why a volume does not match a claim: one failed test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch<'a> {
    /// A field of the volume could not be parsed.
    Malformed(&'a FieldError),
    /// It is bound to another claim or reserved for one.
    ReservedFor(&'a ClaimKey),
    /// Its capacity is below the criteria.
    TooSmall {
        /// The claim's criteria.
        needs: &'a Quantity,
        /// The volume's capacity.
        has: &'a Quantity,
    },
    /// One is a file system and the other a block device.
    VolumeMode {
        /// The claim's volume mode.
        needs: VolumeMode,
        /// The volume's.
        has: VolumeMode,
    },
    /// Their VolumeAttributesClasses differ; empty for none.
    AttributesClass {
        /// The claim's class.
        needs: &'a Name,
        /// The volume's.
        has: &'a Name,
    },
    /// It is being deleted.
    Deleting,
    /// A recycler pod may be scrubbing it.
    Scrubbing,
    /// It does not have these access modes that the claim requires.
    MissingAccessModes(AccessSet),
    /// The claim waits for its first consumer.
    Delayed,
    /// It is in a phase in which it is not available.
    Phase(VolumePhase),
    /// A label does not match the claim's selector.
    Label {
        /// The requirement of the selector.
        needs: &'a Requirement,
        /// The value of the label, if the volume has it.
        has: Option<&'a Name>,
    },
    /// It has this StorageClass and the claim another; empty for none.
    Class(&'a Name),
    /// Its node affinity excludes the node.
    Unreachable,
}

/// What a claim requires of a volume, parsed once for many volumes.
#[derive(Debug, Clone, Copy)]
pub struct MatchCriteria<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Its selector, if it has one.
    pub selector: Option<&'a Selector>,
    /// The access modes it requires.
    pub modes: AccessSet,
    /// Whether it must wait for its first consumer.
    pub delayed: bool,
    /// The labels of the node that must reach the volume, while a pod is being scheduled.
    pub node: Option<&'a Labels>,
}

impl<'a> MatchCriteria<'a> {
    /// The criteria of a claim; an error when its selector is invalid.
    pub fn of(claim: &'a Claim, delayed: bool) -> Result<MatchCriteria<'a>, &'a str> {
        let selector = match claim.selector.as_deref() {
            None => None,
            Some(Ok(selector)) => Some(selector),
            Some(Err(problem)) => return Err(problem),
        };
        Ok(MatchCriteria { claim, selector, modes: claim.modes.set(), delayed, node: None })
    }

    /// The same criteria for a pod that is being scheduled to a node: binding is no longer delayed.
    #[must_use]
    pub fn on(self, node: &'a Labels) -> MatchCriteria<'a> {
        MatchCriteria { delayed: false, node: Some(node), ..self }
    }

    /// Whether the node, if there is one, can reach a volume.
    pub fn reaches(&self, volume: &Volume) -> bool {
        self.node.is_none_or(|labels| volume.is_reachable(labels))
    }
}

type Test = for<'a> fn(&MatchCriteria<'a>, &'a Volume) -> Option<Mismatch<'a>>;

/// The tests that every volume must pass, even one reserved for the claim, in this order.
const ALWAYS: [Test; 8] = [
    |_, volume| volume.field_error.as_deref().map(Mismatch::Malformed),
    |criteria, volume| match &volume.claim_ref {
        Some(other) if !volume.refers_to(criteria.claim) => Some(Mismatch::ReservedFor(&other.key)),
        Some(_) | None => None,
    },
    |criteria, volume| {
        let (needs, has) = (criteria.claim.requested(), volume.size());
        (has < needs).then_some(Mismatch::TooSmall { needs, has })
    },
    |criteria, volume| {
        let (needs, has) = (criteria.claim.volume_mode, volume.volume_mode);
        (has != needs).then_some(Mismatch::VolumeMode { needs, has })
    },
    |criteria, volume| {
        let (needs, has) = (criteria.claim.attributes(), volume.attributes());
        (has != needs).then_some(Mismatch::AttributesClass { needs, has })
    },
    |_, volume| volume.deleting.then_some(Mismatch::Deleting),
    |_, volume| volume.is_scrubbing().then_some(Mismatch::Scrubbing),
    |criteria, volume| {
        let has = volume.modes.set();
        (!has.contains(criteria.modes)).then(|| Mismatch::MissingAccessModes(criteria.modes.without(has)))
    },
];

/// The further tests for a volume that is not reserved for the claim, in this order.
const UNRESERVED: [Test; 5] = [
    |criteria, _| criteria.delayed.then_some(Mismatch::Delayed),
    // A volume that refers to another claim is reported as such above. A Pending volume is about to
    // become Available: scheduling ignores it until then, as upstream does, because a write would
    // probably conflict.
    |criteria, volume| {
        let is_open = match volume.phase {
            VolumePhase::Available => true,
            VolumePhase::Pending => criteria.node.is_none(),
            VolumePhase::Bound | VolumePhase::Released | VolumePhase::Failed => false,
        };
        (!is_open && volume.claim_ref.is_none()).then_some(Mismatch::Phase(volume.phase))
    },
    |criteria, volume| {
        let needs = criteria.selector?.first_unmet(&volume.labels)?;
        Some(Mismatch::Label { needs, has: volume.labels.get(needs.key()) })
    },
    |criteria, volume| (volume.class() != criteria.claim.class()).then(|| Mismatch::Class(volume.class())),
    // Last, because it is the most expensive.
    |criteria, volume| (!criteria.reaches(volume)).then_some(Mismatch::Unreachable),
];

/// The first failed test among those that even a volume reserved for the claim must pass.
pub fn reserved_mismatch<'a>(criteria: &MatchCriteria<'a>, volume: &'a Volume) -> Option<Mismatch<'a>> {
    ALWAYS.iter().find_map(|test| test(criteria, volume))
}

/// The first failed test of a volume. One that is reserved for the claim must pass fewer tests.
pub fn mismatch<'a>(criteria: &MatchCriteria<'a>, volume: &'a Volume) -> Option<Mismatch<'a>> {
    reserved_mismatch(criteria, volume).or_else(|| match volume.claim_ref {
        Some(_) => None,
        None => UNRESERVED.iter().find_map(|test| test(criteria, volume)),
    })
}

/// All failed tests of a volume. The first is that of [`mismatch`].
pub fn mismatches<'a>(criteria: &MatchCriteria<'a>, volume: &'a Volume) -> Vec<Mismatch<'a>> {
    if let Some(error) = volume.field_error.as_deref() {
        // The other fields of a malformed volume are unreliable.
        return vec![Mismatch::Malformed(error)];
    }
    let more: &[Test] = if volume.refers_to(criteria.claim) { &[] } else { &UNRESERVED };
    ALWAYS.iter().chain(more).filter_map(|test| test(criteria, volume)).collect()
}

/// Whether an unclaimed volume satisfies a claim that names it. Labels and phase do not matter
/// then. The errors are upstream's.
pub fn check_satisfies(claim: &Claim, volume: &Volume) -> Result<(), String> {
    if volume.deleting {
        Err(format!("the volume is marked for deletion {:?}", volume.name().as_str()))
    } else if volume.size() < claim.requested() {
        Err("requested PV is too small".into())
    } else if volume.class() != claim.class() {
        Err("storageClassName does not match".into())
    } else if volume.attributes() != claim.attributes() {
        Err("volumeAttributesClassName does not match".into())
    } else if volume.volume_mode != claim.volume_mode {
        Err("incompatible volumeMode".into())
    } else if !volume.modes.set().contains(claim.modes.set()) {
        Err("incompatible accessMode".into())
    } else {
        Ok(())
    }
}

/// The name of a class for a message.
fn quoted(name: &Name) -> String {
    if name.is_empty() { "none".into() } else { format!("{:?}", name.as_str()) }
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Malformed(error) => write!(f, "it cannot be read: {error}"),
            Mismatch::ReservedFor(key) => write!(f, "reserved for {key}"),
            Mismatch::TooSmall { needs, has } => write!(f, "needs {needs}, has {has}"),
            Mismatch::VolumeMode { needs, has } => {
                write!(f, "volume mode: wants {}, has {}", needs.as_str(), has.as_str())
            }
            Mismatch::AttributesClass { needs, has } => {
                write!(f, "attributes class: wants {}, has {}", quoted(needs), quoted(has))
            }
            Mismatch::Deleting => f.write_str("it is being deleted"),
            Mismatch::Scrubbing => f.write_str("it is being scrubbed"),
            Mismatch::MissingAccessModes(modes) => write!(f, "lacks {modes}"),
            Mismatch::Delayed => f.write_str("the claim waits for its first consumer"),
            Mismatch::Phase(phase) => write!(f, "it is {}", phase.as_str()),
            Mismatch::Label { needs, has: Some(has) } => write!(f, "label {needs}, has {has}"),
            Mismatch::Label { needs, has: None } => write!(f, "label {needs}, has none"),
            Mismatch::Unreachable => f.write_str("it cannot be reached from the node"),
            Mismatch::Class(has) if has.is_empty() => f.write_str("it has no class"),
            Mismatch::Class(has) => write!(f, "other class {:?}", has.as_str()),
        }
    }
}
