//! Expansion of FlexVolumes: the conditions and statuses of resize_util_test.go, as far as they
//! apply, and the whole process from a raised request to a finished node expansion.

use bindery_engine::RequestError;
use bindery_model::Kind;

use crate::case::{Case, grown, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [conditions(), statuses(), whole_process(), inconsistent()].into_iter().flatten().collect()
}

const BEGIN: &str = "write PersistentVolumeClaim default/claim1 [expansion.flex.start]";
const GROW: &str = "write PersistentVolume volume1 [expansion.flex.resize]";
const PENDING: &str = "write PersistentVolumeClaim default/claim1 [expansion.flex.pending]";
const REMEMBER: &str = "write PersistentVolume volume1 [expansion.flex.record-size]";
const FINISH: &str = "write PersistentVolumeClaim default/claim1 [expansion.flex.finish]";
const FORGET: &str = "write PersistentVolume volume1 [expansion.flex.clear-size]";

/// The final state of a claim that waits for its node.
const ON_NODE: &str = "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                       pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizePending \
                           resizer=example.com/flex resizing fs-pending";

/// TestMergeResizeCondition.
fn conditions() -> Vec<Case> {
    vec![
        grown("when removing all conditions: resize conditions are removed, others are kept", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block got=1Gi/RWO,ROX alloc=2Gi \
                     resize=ControllerResizeInProgress resizing fs-pending cond=NodeResizeError:True \
                     cond=ControllerResizeError:True cond=Mine:True unused",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block alloc=2Gi cond=Mine:True unused",
            )
            .events(&["Normal VolumeResizeSuccessful ExpandVolume succeeded for volume default/claim1"])
            .requests(&[FINISH]),
        grown("adding new condition: errors of an earlier attempt are removed", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX fs-pending@2020-01-01T00:00:00Z \
                     cond=NodeResizeError:True cond=ControllerResizeError:True",
            )
            .after(ON_NODE)
            .events(&[])
            .requests(&[BEGIN, GROW, PENDING, REMEMBER]),
        grown("adding same condition with new timestamp: the transition time is kept", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizing@2020-01-01T00:00:00Z",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizePending \
                     resizer=example.com/flex resizing@2020-01-01T00:00:00Z fs-pending",
            ),
        grown("adding same condition but with different status: the transition time is now", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX cond=Resizing:False@2020-01-01T00:00:00Z",
            )
            .after(ON_NODE),
        grown("when no condition exists on pvc", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .after(ON_NODE)
            .events(&[])
            .requests(&[BEGIN, GROW, PENDING, REMEMBER]),
        grown(
            "when adding new condition with existing resize conditions: they are kept while it waits for its node",
            "claim1",
        )
        .before(
            "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizeInfeasible \
                     resizing@2020-01-01T00:00:00Z cond=NodeResizeError:True",
        )
        .after(
            "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizePending fs-pending \
                     resizing@2020-01-01T00:00:00Z cond=NodeResizeError:True",
        )
        .requests(&[PENDING]),
    ]
}

/// TestResizeFunctions.
fn statuses() -> Vec<Case> {
    vec![
        grown("mark fs resize, with no other conditions", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=ControllerResizeInProgress",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizePending fs-pending",
            )
            .requests(&[PENDING, REMEMBER]),
        grown("mark fs resize, when other resource statuses are present", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=ControllerResizeInProgress \
                     resize-cpu=ControllerResizeInfeasible",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizePending \
                     resize-cpu=ControllerResizeInfeasible fs-pending",
            ),
        grown("mark controller resize in-progress, and the volume cannot be expanded", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .error("write", Kind::Volume, RequestError::Error(403, "forbidden".into()))
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=ControllerResizeInProgress \
                     resizer=example.com/flex resizing",
            )
            .stable(ON_NODE),
        grown("mark resize finished, when other resource statuses are present", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block got=1Gi/RWO,ROX \
                     resize-cpu=ControllerResizeInfeasible",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block alloc=2Gi resizer=example.com/flex \
                     resize-cpu=ControllerResizeInfeasible",
            )
            .events(&["Normal VolumeResizeSuccessful"])
            .requests(&[BEGIN, GROW, FINISH]),
    ]
}

/// From a raised request to a finished node expansion.
fn whole_process() -> Vec<Case> {
    vec![
        grown("the node has finished: the annotation is removed", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .after(ON_NODE)
            .then(|cluster| put(cluster, "pvc claim1#uid1 2Gi Bound vol=volume1 alloc=2Gi resizer=example.com/flex"))
            .stable(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 alloc=2Gi resizer=example.com/flex",
            )
            .requests(&[BEGIN, GROW, PENDING, REMEMBER, FORGET]),
        grown("the request is raised again while the node is busy: one after the other", "claim1")
            .before(ON_NODE)
            .unchanged()
            .then(|cluster| {
                put(
                    cluster,
                    "pvc claim1#uid1 3Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=NodeResizeInProgress \
                         resizer=example.com/flex resizing fs-pending",
                );
            })
            .then(|cluster| {
                put(
                    cluster,
                    "pvc claim1#uid1 3Gi Bound vol=volume1 got=2Gi/RWO,ROX alloc=2Gi resizer=example.com/flex",
                );
            })
            .stable(
                "pv  volume1 3Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 3Gi Bound vol=volume1 got=2Gi/RWO,ROX alloc=3Gi resize=NodeResizePending \
                     resizer=example.com/flex resizing fs-pending",
            )
            .requests(&[BEGIN, GROW, PENDING]),
        grown("every answer is lost once", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .lost_answer("write", Kind::Claim)
            .lost_answer("write", Kind::Claim)
            .lost_answer("write", Kind::Volume)
            .lost_answer("write", Kind::Volume)
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=2Gi resize=ControllerResizeInProgress \
                     resizer=example.com/flex resizing",
            )
            .stable(ON_NODE),
        grown("a claim is bound to a volume with an unfinished expansion", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 1Gi Bound vol=volume1",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 1Gi Bound vol=volume1 alloc=1Gi resize=NodeResizePending \
                     resizer=example.com/flex resizing fs-pending",
            ),
        grown("the request is lowered during the expansion: the expansion is finished", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi resize=ControllerResizeInProgress",
            )
            .after(
                "pv  volume1 3Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi resize=NodeResizePending fs-pending",
            ),
    ]
}

/// Inconsistent states.
fn inconsistent() -> Vec<Case> {
    vec![
        grown("allocatedResources is set without a status: it is finished when the volume is large enough", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi",
            )
            .after(
                "pv  volume1 3Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi resize=NodeResizePending \
                     resizer=example.com/flex resizing fs-pending",
            ),
        grown("the expansion failed before: the allocated size is tried again", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi resize=ControllerResizeInfeasible",
            )
            .after(
                "pv  volume1 3Gi Bound ->claim1#uid1 source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX alloc=3Gi resize=NodeResizePending \
                     resizer=example.com/flex resizing fs-pending",
            ),
        grown("a block device needs no node expansion: the annotation is removed", "claim1")
            .before(
                "pv  volume1 3Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block",
            )
            .after(
                "pv  volume1 3Gi Bound ->claim1#uid1 mode=Block source=flex:example.com/flex
                 pvc claim1#uid1 2Gi Bound vol=volume1 mode=Block",
            )
            .requests(&[FORGET]),
        grown("a claim without a request", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=flex:example.com/flex
                 pvc claim1#uid1 - Bound vol=volume1 got=nothing",
            )
            .unchanged()
            .requests(&[]),
    ]
}
