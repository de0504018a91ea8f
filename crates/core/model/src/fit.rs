//! The tests between one claim and one volume. Matching, checking what a user asked for, and explaining all use these.

use std::fmt;

use crate::{
    AccessSet, Claim, ClaimKey, FieldError, Labels, Name, Quantity, Requirement, Selector, Volume, VolumeMode,
    VolumePhase,
};

/// Whether a volume belongs to a claim or is reserved for it: by name, and by UID where it has one.
pub fn points_to(volume: &Volume, claim: &Claim) -> bool {
    volume.claim_ref.as_ref().is_some_and(|reserved| {
        reserved.key.name == claim.meta.name
            && reserved.key.namespace == claim.meta.namespace
            && (reserved.uid.is_empty() || reserved.uid == claim.meta.uid)
    })
}

/// Why a volume is not for a claim: one test that fails, and by how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch<'a> {
    /// A field of the volume could not be understood.
    Malformed(&'a FieldError),
    /// It belongs to another claim, or is reserved for one.
    ReservedFor(&'a ClaimKey),
    /// It holds less than is asked for.
    TooSmall {
        /// What is asked for.
        needs: &'a Quantity,
        /// What it holds.
        has: &'a Quantity,
    },
    /// It is a file system where a block device is asked for, or the other way round.
    VolumeMode {
        /// What is asked for.
        needs: VolumeMode,
        /// What it is.
        has: VolumeMode,
    },
    /// Its attributes class is another; empty for none.
    AttributesClass {
        /// What is asked for.
        needs: &'a Name,
        /// What it has.
        has: &'a Name,
    },
    /// It is being deleted.
    Deleting,
    /// It cannot be mounted in these ways, which are asked for.
    Lacks(AccessSet),
    /// The claim is bound only when its pod has a node.
    Delayed,
    /// It is not free.
    Phase(VolumePhase),
    /// Its labels are not those asked for.
    Label {
        /// What is asked for.
        needs: &'a Requirement,
        /// What the label is, if it is there.
        has: Option<&'a Name>,
    },
    /// Its class is another; empty for none.
    Class(&'a Name),
    /// It cannot be reached from the node.
    Unreachable,
}

/// What a claim asks for, in the form that matching compares. Made once for many volumes.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The claim that asks.
    pub claim: &'a Claim,
    /// Its selector, if it has one.
    pub selector: Option<&'a Selector>,
    /// The access modes it needs.
    pub modes: AccessSet,
    /// Whether it is bound only when its pod has a node.
    pub delayed: bool,
    /// The labels of the node that it is to be reached from, when a pod is being placed.
    pub node: Option<&'a Labels>,
}

impl<'a> Request<'a> {
    /// What a claim asks for; why that cannot be known, when its selector makes no sense.
    pub fn of(claim: &'a Claim, delayed: bool) -> Result<Request<'a>, &'a str> {
        let selector = match claim.selector.as_deref() {
            None => None,
            Some(Ok(selector)) => Some(selector),
            Some(Err(problem)) => return Err(problem),
        };
        Ok(Request { claim, selector, modes: claim.modes.set(), delayed, node: None })
    }

    /// The same request on behalf of a pod that is being placed on a node: what was delayed until then no longer is.
    #[must_use]
    pub fn on(self, node: &'a Labels) -> Request<'a> {
        Request { delayed: false, node: Some(node), ..self }
    }

    /// Whether a volume can be reached from the node, if there is one.
    pub fn reaches(&self, volume: &Volume) -> bool {
        self.node.is_none_or(|labels| volume.is_reachable(labels))
    }
}

/// A test between what is asked for and a volume: how it fails, if it does.
type Test = for<'a> fn(&Request<'a>, &'a Volume) -> Option<Mismatch<'a>>;

/// The tests that even a volume reserved for the claim must pass, in their order.
const ALWAYS: [Test; 7] = [
    |_, volume| volume.flaw.as_deref().map(Mismatch::Malformed),
    |request, volume| match &volume.claim_ref {
        Some(other) if !points_to(volume, request.claim) => Some(Mismatch::ReservedFor(&other.key)),
        Some(_) | None => None,
    },
    |request, volume| {
        let (needs, has) = (request.claim.requested(), volume.holds());
        (has < needs).then_some(Mismatch::TooSmall { needs, has })
    },
    |request, volume| {
        let (needs, has) = (request.claim.volume_mode, volume.volume_mode);
        (has != needs).then_some(Mismatch::VolumeMode { needs, has })
    },
    |request, volume| {
        let (needs, has) = (request.claim.attributes(), volume.attributes());
        (has != needs).then_some(Mismatch::AttributesClass { needs, has })
    },
    |_, volume| volume.deleting.then_some(Mismatch::Deleting),
    |request, volume| {
        let has = volume.modes.set();
        (!has.contains(request.modes)).then(|| Mismatch::Lacks(request.modes.without(has)))
    },
];

/// The tests that a volume must pass besides when it is not reserved for the claim, in their order.
const UNRESERVED: [Test; 5] = [
    |request, _| request.delayed.then_some(Mismatch::Delayed),
    // That a volume of another claim is not free goes without saying. A new volume is about to be marked: whoever places pods
    // leaves it alone until then, as upstream does, because what is written on it now is likely to be refused.
    |request, volume| {
        let is_open = match volume.phase {
            VolumePhase::Available => true,
            VolumePhase::Pending => request.node.is_none(),
            VolumePhase::Bound | VolumePhase::Released | VolumePhase::Failed => false,
        };
        (!is_open && volume.claim_ref.is_none()).then_some(Mismatch::Phase(volume.phase))
    },
    |request, volume| {
        let needs = request.selector?.first_unmet(&volume.labels)?;
        Some(Mismatch::Label { needs, has: volume.labels.get(needs.key()) })
    },
    |request, volume| (volume.class() != request.claim.class()).then(|| Mismatch::Class(volume.class())),
    // Last, because it costs most.
    |request, volume| (!request.reaches(volume)).then_some(Mismatch::Unreachable),
];

/// How a volume fails the tests that even one reserved for the claim must pass: the first of them.
pub fn reserved_mismatch<'a>(request: &Request<'a>, volume: &'a Volume) -> Option<Mismatch<'a>> {
    ALWAYS.iter().find_map(|test| test(request, volume))
}

/// Why a claim cannot have a volume, if it cannot: the first test that fails. A volume reserved for the claim is asked less
/// than a free one.
pub fn mismatch<'a>(request: &Request<'a>, volume: &'a Volume) -> Option<Mismatch<'a>> {
    reserved_mismatch(request, volume).or_else(|| match volume.claim_ref {
        Some(_) => None,
        None => UNRESERVED.iter().find_map(|test| test(request, volume)),
    })
}

/// All reasons why a claim cannot have a volume. The first is [`mismatch`].
pub fn mismatches<'a>(request: &Request<'a>, volume: &'a Volume) -> Vec<Mismatch<'a>> {
    if let Some(flaw) = volume.flaw.as_deref() {
        // What else it seems to be is not to be believed.
        return vec![Mismatch::Malformed(flaw)];
    }
    let more: &[Test] = if points_to(volume, request.claim) { &[] } else { &UNRESERVED };
    ALWAYS.iter().chain(more).filter_map(|test| test(request, volume)).collect()
}

/// Whether an unclaimed volume is good enough for a claim that asks for it by name. Labels and phase are not looked at:
/// who names a volume gets it.
pub fn satisfies(claim: &Claim, volume: &Volume) -> Result<(), String> {
    if volume.deleting {
        Err(format!("the volume is marked for deletion {:?}", volume.name().as_str()))
    } else if volume.holds() < claim.requested() {
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

/// A class in words.
fn quoted(name: &Name) -> String {
    if name.is_empty() { "none".into() } else { format!("{:?}", name.as_str()) }
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Malformed(flaw) => write!(f, "it cannot be read: {flaw}"),
            Mismatch::ReservedFor(key) => write!(f, "reserved for {key}"),
            Mismatch::TooSmall { needs, has } => write!(f, "needs {needs}, has {has}"),
            Mismatch::VolumeMode { needs, has } => {
                write!(f, "volume mode: wants {}, has {}", needs.as_str(), has.as_str())
            }
            Mismatch::AttributesClass { needs, has } => {
                write!(f, "attributes class: wants {}, has {}", quoted(needs), quoted(has))
            }
            Mismatch::Deleting => f.write_str("it is being deleted"),
            Mismatch::Lacks(modes) => write!(f, "lacks {modes}"),
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
