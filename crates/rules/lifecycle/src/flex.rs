//! The expansion of FlexVolumes, one step at a time. No driver is called: it resizes the volume to
//! its capacity at the next mount. The recorded status is for the kubelet and for users.
//!
//! ```text
//!  claim: start ─▶ volume: resize ─▶ claim: pending ─▶ volume: record size ─▶ (node)
//!                             │                              volume: clear size ◀─┘
//!                             └──── volumeMode Block: claim: finish
//! ```

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, Condition, Name, Quantity, Volume, VolumeMode};
use bindery_rules_api::{
    ClaimReport, ConditionEdit, ConditionType, Edit, Event, Expansion, RejectionEvent, Rule, Verdict, VolumeEdit, Write,
};

use crate::rules::expander as rules;

/// The volume is being expanded.
const IN_PROGRESS: &str = "ControllerResizeInProgress";
/// The file system must be expanded on a node.
const NODE_PENDING: &str = "NodeResizePending";
/// The file system is being expanded.
const NODE_IN_PROGRESS: &str = "NodeResizeInProgress";
/// The file system cannot be expanded.
const NODE_INFEASIBLE: &str = "NodeResizeInfeasible";
/// The volume cannot be expanded.
const INFEASIBLE: &str = "ControllerResizeInfeasible";

/// The capacity in a claim's status.
pub(crate) fn capacity(claim: &Claim) -> &Quantity {
    claim.status.capacity.as_ref().unwrap_or(Quantity::zero())
}

/// The next step for a claim that requests more than its capacity, or whose file system is being
/// expanded.
pub(crate) fn expand(claim: &Claim, volume: &Volume, driver: &Name) -> Verdict {
    let capacity = capacity(claim);
    let has_former_size = volume.annotations.has(Annotation::PreResizeCapacity);
    // A block device has no file system.
    let needs_node = capacity < volume.size() && volume.volume_mode == VolumeMode::Filesystem;
    if has_former_size && capacity >= claim.requested() && !needs_node {
        return annotate(&rules::FLEX_CLEAR_SIZE, volume, None);
    }
    let change = claim.status.change.as_deref();
    let allocated = change.and_then(|change| change.allocated.as_ref());
    let status = change.map_or("", |change| change.resize_status.as_str());
    let is_on_node = matches!(status, NODE_PENDING | NODE_IN_PROGRESS | NODE_INFEASIBLE);
    let is_in_progress = is_on_node || status == IN_PROGRESS;
    let Some(target) = allocated.filter(|_| is_in_progress) else {
        // A recorded but not started expansion is resumed if the volume is already large enough.
        let can_resume = matches!(status, "" | INFEASIBLE) && volume.size() >= claim.requested();
        let target = allocated.filter(|_| can_resume);
        return start(claim, target.unwrap_or(claim.requested()), driver);
    };
    if volume.size() < target {
        let edit = VolumeEdit { capacity: Some(target.clone()), ..VolumeEdit::default() };
        let prefix = format!("error updating pv for pvc {}: ", claim.key());
        let write = Write::volume(&rules::FLEX_RESIZE, volume, Edit::Volume(edit));
        return Verdict::write(&rules::FLEX_RESIZE, write.on_rejection(failed(claim, &prefix)));
    }
    match volume.volume_mode {
        VolumeMode::Block => finish(claim, target),
        VolumeMode::Filesystem if !matches!(status, NODE_PENDING | NODE_IN_PROGRESS) => pending(claim, target),
        VolumeMode::Filesystem if !has_former_size => {
            annotate(&rules::FLEX_RECORD_SIZE, volume, Some(Name::from(capacity.as_str())))
        }
        VolumeMode::Filesystem => Verdict::idle(&rules::FLEX_WAIT_FOR_NODE),
    }
}

fn failed(claim: &Claim, prefix: &str) -> RejectionEvent {
    RejectionEvent::claim(claim, Reason::VolumeResizeFailed, prefix)
}

/// Sets a condition to True. If it is True already, its transition time is kept.
fn set(condition: ConditionType, before: Option<Condition>, message: &'static str) -> Option<ConditionEdit> {
    let edit = ConditionEdit::Set { condition, status: true, reason: "", message };
    (before != Some(Condition::True)).then_some(edit)
}

/// Removes all conditions about expansion except this one.
fn remove_all_but(kept: Option<ConditionType>) -> impl Iterator<Item = ConditionEdit> {
    let all = [
        ConditionType::Resizing,
        ConditionType::FileSystemResizePending,
        ConditionType::ControllerResizeError,
        ConditionType::NodeResizeError,
    ];
    all.into_iter().filter(move |condition| Some(*condition) != kept).map(ConditionEdit::Remove)
}

fn start(claim: &Claim, target: &Quantity, driver: &Name) -> Verdict {
    let before = claim.status.change.as_ref().map(|change| change.resizing);
    let resizing = set(ConditionType::Resizing, before, "");
    let report = ClaimReport {
        annotations: vec![(Annotation::StorageResizer, Some(driver.clone()))],
        conditions: resizing.into_iter().chain(remove_all_but(Some(ConditionType::Resizing))).collect(),
        expansion: Some(Expansion { allocated: target.clone(), status: Some(IN_PROGRESS) }),
        capacity: None,
    };
    let prefix = format!("error updating pvc {} with resize in progress: ", claim.key());
    let write = Write::report(&rules::FLEX_START, claim, report).on_rejection(failed(claim, &prefix));
    Verdict::write(&rules::FLEX_START, write)
}

fn pending(claim: &Claim, target: &Quantity) -> Verdict {
    let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    let before = claim.status.change.as_ref().map(|change| change.file_system_pending);
    let report = ClaimReport {
        conditions: set(ConditionType::FileSystemResizePending, before, message).into_iter().collect(),
        expansion: Some(Expansion { allocated: target.clone(), status: Some(NODE_PENDING) }),
        ..ClaimReport::default()
    };
    let prefix = format!("error marking pvc {} for node expansion: ", claim.key());
    let write = Write::report(&rules::FLEX_PENDING, claim, report).on_rejection(failed(claim, &prefix));
    Verdict::write(&rules::FLEX_PENDING, write)
}

fn finish(claim: &Claim, target: &Quantity) -> Verdict {
    let report = ClaimReport {
        conditions: remove_all_but(None).collect(),
        capacity: Some(target.clone()),
        expansion: Some(Expansion { allocated: target.clone(), status: None }),
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
