//! The growing of Flex volumes, a step at a time. Nothing has to be called: the driver makes the volume as large as it is said
//! to be when it is next mounted. What is written down on the way is for the node, and for whoever watches.
//!
//! ```text
//!   claim: begin ─▶ volume: grow ─▶ claim: pending ─▶ volume: remember ─▶ (node) ─▶ volume: forget
//!                             └──── a block device: claim: finish
//! ```

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, Condition, Name, Quantity, Volume, VolumeMode};
use bindery_rules_api::{
    ClaimReport, ConditionEdit, ConditionType, Edit, Event, Growth, RejectionEvent, Rule, Verdict, VolumeEdit, Write,
};

use crate::rules::expander as rules;

/// The volume is being made to grow.
const IN_PROGRESS: &str = "ControllerResizeInProgress";
/// Its file system has yet to grow on a node.
const NODE_PENDING: &str = "NodeResizePending";
/// It grows there.
const NODE_IN_PROGRESS: &str = "NodeResizeInProgress";
/// It cannot grow there.
const NODE_INFEASIBLE: &str = "NodeResizeInfeasible";
/// It cannot be made to grow.
const INFEASIBLE: &str = "ControllerResizeInfeasible";

/// How much a claim has.
pub(crate) fn had(claim: &Claim) -> &Quantity {
    claim.status.capacity.as_ref().unwrap_or(Quantity::zero())
}

/// The next step for a claim that asks for more than it has, or whose node was to make its file system grow.
pub(crate) fn grow(claim: &Claim, volume: &Volume, driver: &Name) -> Verdict {
    let has = had(claim);
    let remembers = volume.annotations.has(Annotation::PreResizeCapacity);
    // A block device has no file system that a node would make grow.
    let needs_node = has < volume.size() && volume.volume_mode == VolumeMode::Filesystem;
    if remembers && has >= claim.requested() && !needs_node {
        return annotate(&rules::FLEX_FORGET, volume, None);
    }
    let change = claim.status.change.as_deref();
    let allocated = change.and_then(|change| change.allocated.as_ref());
    let status = change.map_or("", |change| change.resize_status.as_str());
    let is_on_node = matches!(status, NODE_PENDING | NODE_IN_PROGRESS | NODE_INFEASIBLE);
    let is_under_way = is_on_node || status == IN_PROGRESS;
    let Some(target) = allocated.filter(|_| is_under_way) else {
        // What was written down before and never begun is gone on with, once the volume holds what is asked for.
        let was_begun = matches!(status, "" | INFEASIBLE) && volume.size() >= claim.requested();
        let target = allocated.filter(|_| was_begun);
        return begin(claim, target.unwrap_or(claim.requested()), driver);
    };
    if volume.size() < target {
        let edit = VolumeEdit { capacity: Some(target.clone()), ..VolumeEdit::default() };
        let regret = format!("error updating pv for pvc {}: ", claim.key());
        let write = Write::volume(&rules::FLEX_GROW, volume, Edit::Volume(edit));
        return Verdict::write(&rules::FLEX_GROW, write.on_rejection(failed(claim, &regret)));
    }
    match volume.volume_mode {
        VolumeMode::Block => finish(claim, target),
        VolumeMode::Filesystem if !matches!(status, NODE_PENDING | NODE_IN_PROGRESS) => pending(claim, target),
        VolumeMode::Filesystem if !remembers => annotate(&rules::FLEX_REMEMBER, volume, Some(Name::from(has.as_str()))),
        VolumeMode::Filesystem => Verdict::settle(&rules::FLEX_ON_NODE),
    }
}

fn failed(claim: &Claim, prefix: &str) -> RejectionEvent {
    RejectionEvent::claim(claim, Reason::VolumeResizeFailed, prefix)
}

/// Says that a condition holds. One that holds already holds since it did: it stays as it is.
fn set(condition: ConditionType, before: Option<Condition>, message: &'static str) -> Option<ConditionEdit> {
    let edit = ConditionEdit::Set { condition, holds: true, reason: "", message };
    (before != Some(Condition::True)).then_some(edit)
}

/// Removes all that was said of growing, but for this.
fn remove_all_but(kept: Option<ConditionType>) -> impl Iterator<Item = ConditionEdit> {
    let all = [
        ConditionType::Resizing,
        ConditionType::FileSystemResizePending,
        ConditionType::ControllerResizeError,
        ConditionType::NodeResizeError,
    ];
    all.into_iter().filter(move |condition| Some(*condition) != kept).map(ConditionEdit::Remove)
}

fn begin(claim: &Claim, target: &Quantity, driver: &Name) -> Verdict {
    let before = claim.status.change.as_ref().map(|change| change.resizing);
    let resizing = set(ConditionType::Resizing, before, "");
    let report = ClaimReport {
        annotations: vec![(Annotation::StorageResizer, Some(driver.clone()))],
        conditions: resizing.into_iter().chain(remove_all_but(Some(ConditionType::Resizing))).collect(),
        growth: Some(Growth { allocated: target.clone(), status: Some(IN_PROGRESS) }),
        capacity: None,
    };
    let regret = format!("error updating pvc {} with resize in progress: ", claim.key());
    let write = Write::report(&rules::FLEX_BEGIN, claim, report).on_rejection(failed(claim, &regret));
    Verdict::write(&rules::FLEX_BEGIN, write)
}

fn pending(claim: &Claim, target: &Quantity) -> Verdict {
    let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    let before = claim.status.change.as_ref().map(|change| change.file_system_pending);
    let report = ClaimReport {
        conditions: set(ConditionType::FileSystemResizePending, before, message).into_iter().collect(),
        growth: Some(Growth { allocated: target.clone(), status: Some(NODE_PENDING) }),
        ..ClaimReport::default()
    };
    let regret = format!("error marking pvc {} for node expansion: ", claim.key());
    let write = Write::report(&rules::FLEX_PENDING, claim, report).on_rejection(failed(claim, &regret));
    Verdict::write(&rules::FLEX_PENDING, write)
}

fn finish(claim: &Claim, target: &Quantity) -> Verdict {
    let report = ClaimReport {
        conditions: remove_all_but(None).collect(),
        capacity: Some(target.clone()),
        growth: Some(Growth { allocated: target.clone(), status: None }),
        ..ClaimReport::default()
    };
    let message = format!("ExpandVolume succeeded for volume {}", claim.key());
    let write = Write::report(&rules::FLEX_FINISH, claim, report)
        .then(Event::claim(claim, EventType::Normal, Reason::VolumeResizeSuccessful, message))
        .on_rejection(failed(claim, &format!("error marking pvc {} as resized: ", claim.key())));
    Verdict::write(&rules::FLEX_FINISH, write)
}

fn annotate(rule: &'static Rule, volume: &Volume, value: Option<Name>) -> Verdict {
    let edit = VolumeEdit { annotations: vec![(Annotation::PreResizeCapacity, value)], ..VolumeEdit::default() };
    Verdict::write(rule, Write::volume(rule, volume, Edit::Volume(edit)))
}
