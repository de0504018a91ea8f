//! Cases for rules that upstream's tables do not cover. Each is named after its rule.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::Task;
use bindery_simulation::notation;

use crate::case::{Case, claim, multi, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    let groups = [missing_objects(), claims(), volumes(), pairs(), classes(), waiting(), hand_offs(), migration()];
    let more = [plugin_errors(), nodes(), taken_names(), requests(), not_deleted(), races(), scrubbing(), binding()];
    groups.into_iter().chain(more).flatten().collect()
}

const BOUND: &str = "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                     pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc";

/// Objects that do not exist.
fn missing_objects() -> Vec<Case> {
    vec![
        claim("claim.deleted", "missing").before("").after("").events(&[]),
        volume("volume.deleted", "nothing").before("").after("").events(&[]),
    ]
}

// === Malformed objects ===

/// A malformed claim is left alone until it is fixed.
fn claims() -> Vec<Case> {
    let malformed = |name, before| {
        claim(name, "claim1")
            .before(before)
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pvc claim1#uid1 1Gi Pending"))
            .stable(BOUND)
    };
    vec![
        malformed("claim.malformed: request", "pv volume1 1Gi Available\n pvc claim1#uid1 10Xi Pending"),
        malformed("claim.malformed: phase", "pv volume1 1Gi Available\n pvc claim1#uid1 1Gi Weird"),
        malformed("claim.malformed: access mode", "pv volume1 1Gi Available\n pvc claim1#uid1 1Gi Pending modes=bad"),
        malformed("claim.malformed: volume mode", "pv volume1 1Gi Available\n pvc claim1#uid1 1Gi Pending mode=Tape"),
    ]
}

/// A malformed volume is left alone until it is fixed, even if a claim waits for it.
fn volumes() -> Vec<Case> {
    let malformed = |name, before| {
        volume(name, "volume1")
            .before(before)
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pv volume1 1Gi Available"))
            .stable(BOUND)
    };
    vec![
        malformed("volume.malformed: capacity", "pv volume1 10Xi Available\n pvc claim1#uid1 1Gi Pending"),
        malformed("volume.malformed: phase", "pv volume1 1Gi Weird\n pvc claim1#uid1 1Gi Pending"),
        malformed("volume.malformed: access mode", "pv volume1 1Gi Available modes=bad\n pvc claim1#uid1 1Gi Pending"),
        malformed("volume.malformed: volume mode", "pv volume1 1Gi Available mode=Tape\n pvc claim1#uid1 1Gi Pending"),
    ]
}

/// An object whose counterpart is malformed is left alone.
fn pairs() -> Vec<Case> {
    vec![
        claim("claim.named.volume-malformed", "claim1")
            .before(
                "pv  volume1 10Xi Available
                 pvc claim1#uid1 1Gi Pending vol=volume1",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pv volume1 1Gi Available"))
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bc",
            ),
        claim("claim.bound.volume-malformed", "claim1")
            .before(
                "pv  volume1 10Xi Bound
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pv volume1 1Gi Bound"))
            .stable(BOUND),
        volume("volume.claimed.claim-malformed", "volume1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 policy=Delete source=hostPath:/tmp/1
                 pvc claim1#uid1 10Xi Bound got=1Gi/RWO,ROX vol=volume1 bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("reclaim.not-released: a claim of that name is malformed", "volume1")
            .before(
                "pv  volume1 1Gi Released ->claim1#uid1 policy=Delete source=hostPath:/tmp/1
                 pvc claim1#uid2 10Xi Pending",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pvc claim1#uid2 1Gi Pending"))
            .stable("pvc claim1#uid2 1Gi Pending"),
    ]
}

// === Waiting claims ===

/// Invalid classes and selectors.
fn classes() -> Vec<Case> {
    let unclear = |name, before| {
        claim(name, "claim1")
            .before(before)
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "sc slow vendor.com/slow"))
            .stable("pvc claim1#uid1 1Gi Pending class=slow sp=vendor.com/slow")
    };
    vec![
        unclear(
            "claim.unbound.class-invalid: no binding mode",
            "sc slow vendor.com/slow no-mode\n pvc claim1#uid1 1Gi Pending class=slow",
        ),
        unclear(
            "claim.unbound.class-invalid: malformed",
            "sc slow vendor.com/slow binding=Someday\n pvc claim1#uid1 1Gi Pending class=slow",
        ),
        claim("claim.unbound.selector-invalid", "claim1")
            .before(
                "pv  volume1 1Gi Available label=zone:a
                 pvc claim1#uid1 1Gi Pending sel-op=zone:Near",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| notation::add(cluster, "pvc claim1#uid1 1Gi Pending sel=zone:a"))
            .stable(BOUND),
        claim("claim.unbound.default-class: the newest", "claim1")
            .before(
                "sc  a vendor.com/a default created=2025-01-01T00:00:00Z
                 sc  b vendor.com/b default created=2025-03-01T00:00:00Z
                 sc  c vendor.com/c default created=2025-02-01T00:00:00Z
                 pvc claim1#uid1 1Gi Pending",
            )
            // Upstream continues with the class in the next sync.
            .after("pvc claim1#uid1 1Gi Pending class=b sp=vendor.com/b")
            .events(&["Normal ExternalProvisioning"]),
    ]
}

/// Claims that wait for their first consumer.
fn waiting() -> Vec<Case> {
    vec![
        claim("claim.unbound.waits-for-consumer", "claim1")
            .before(
                "sc  copper kubernetes.io/host-path wffc
                 pv  volume1 1Gi Available class=copper
                 pvc claim1#uid1 1Gi Pending class=copper",
            )
            .unchanged()
            .events(&["Normal WaitForFirstConsumer waiting for first consumer to be created before binding"]),
        claim("claim.unbound.waits-for-scheduling: one pod", "claim1")
            .before(
                "sc  copper kubernetes.io/host-path wffc
                 pod pod1 claim=claim1
                 pvc claim1#uid1 1Gi Pending class=copper",
            )
            .unchanged()
            .events(&["Normal WaitForPodScheduled waiting for pod pod1 to be scheduled"]),
        claim("claim.unbound.waits-for-scheduling: of four pods two have no node", "claim1")
            .before(
                "sc  copper kubernetes.io/host-path wffc
                 pod pod1 claim=claim1 phase=Failed
                 pod pod2 claim=claim1
                 pod pod3 claim=claim1 node=node1
                 pod pod4 claim=claim1
                 pvc claim1#uid1 1Gi Pending class=copper",
            )
            .unchanged()
            .events(&["Normal WaitForPodScheduled waiting for pods pod2,pod4 to be scheduled"]),
        multi("claim.unbound.waits-for-scheduling: a pod is created, and a node is selected")
            .before(
                "sc  slow vendor.com/slow wffc
                 pvc claim1#uid1 1Gi Pending class=slow",
            )
            .then(|cluster| notation::add(cluster, "pod pod1 claim=claim1"))
            .then(|cluster| notation::add(cluster, "pvc claim1#uid1 1Gi Pending class=slow node=node1"))
            .after("pvc claim1#uid1 1Gi Pending class=slow node=node1 sp=vendor.com/slow")
            .events(&[
                "Normal WaitForFirstConsumer",
                "Normal WaitForPodScheduled waiting for pod pod1 to be scheduled",
                "Normal ExternalProvisioning",
            ]),
    ]
}

/// Volumes that are handed to a claim before they are marked Available.
fn hand_offs() -> Vec<Case> {
    vec![
        volume("volume.unclaimed.hand-off", "volume1")
            .before(
                "pv  volume1 1Gi Pending
                 pvc claim1#uid1 1Gi Pending",
            )
            .after(
                "pv  volume1 1Gi Available
                 pvc claim1#uid1 1Gi Pending",
            )
            .events(&[])
            .stable(BOUND),
        volume("volume.reserved.hand-off", "volume1")
            .before(
                "pv  volume1 1Gi Pending ->claim1
                 pvc claim1#uid1 1Gi Pending",
            )
            .after(
                "pv  volume1 1Gi Available ->claim1
                 pvc claim1#uid1 1Gi Pending",
            )
            .events(&[])
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc",
            ),
    ]
}

/// Plugins that are migrated to CSI, or rolled back.
fn migration() -> Vec<Case> {
    vec![
        claim("claim.migration: to a driver", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc sp=kubernetes.io/gce-pd",
            )
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc sp=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io",
            )
            .events(&[]),
        claim("claim.migration: back", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc sp=kubernetes.io/host-path migrated=vendor.com/driver",
            )
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc sp=kubernetes.io/host-path",
            )
            .events(&[]),
        volume("volume.migration: to a driver", "volume1")
            .before("pv volume1 1Gi Available policy=Delete by=kubernetes.io/gce-pd fin=kubernetes.io/pv-controller")
            .after("pv volume1 1Gi Available policy=Delete by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io")
            .events(&[]),
        volume("volume.migration: back", "volume1")
            .before(
                "pv volume1 1Gi Available policy=Delete by=kubernetes.io/host-path migrated=vendor.com/driver \
                    fin=external-provisioner.volume.kubernetes.io/finalizer",
            )
            .after("pv volume1 1Gi Available policy=Delete by=kubernetes.io/host-path fin=kubernetes.io/pv-controller")
            .events(&[]),
    ]
}

// === Provisioning ===

/// The plugin does not support the claim.
fn plugin_errors() -> Vec<Case> {
    vec![
        claim("provision.no-plugin: a plugin without a provisioner", "claim1")
            .before(
                "sc  shared kubernetes.io/nfs
                 pvc claim1#uid1 1Gi Pending class=shared",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed no provisionable volume plugin matched"]),
        claim("provision.in-tree.unsupported: a block device", "claim1")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim1#uid1 1Gi Pending class=gold mode=Block",
            )
            .after("pvc claim1#uid1 1Gi Pending class=gold mode=Block sp=kubernetes.io/host-path")
            .events(&["Warning ProvisioningFailed Failed to provision volume with StorageClass \"gold\": \
                 kubernetes.io/host-path does not support block volume provisioning"]),
    ]
}

/// A scheduler has selected a node.
fn nodes() -> Vec<Case> {
    let missing = |name| {
        claim(name, "claim1")
            .before(
                "sc  copper kubernetes.io/host-path wffc policy=Retain
                 pvc claim1#uid1 1Gi Pending class=copper node=node1",
            )
            .after("pvc claim1#uid1 1Gi Pending class=copper node=node1 sp=kubernetes.io/host-path")
            .events(&["Warning ProvisioningFailed Failed to get target node: node \"node1\" not found"])
    };
    vec![
        missing("provision.in-tree.node-missing"),
        missing("provision.in-tree.node-missing: it is created; the class has the policy Retain")
            .then(|cluster| notation::add(cluster, "node node1"))
            .stable(
                "pv  pvc-uid1 1Gi Bound ->claim1#uid1 class=copper bbc by=kubernetes.io/host-path \
                     source=hostPath:/tmp/hostpath_pv/uid1
                 pvc claim1#uid1 1Gi Bound vol=pvc-uid1 bbc bc class=copper node=node1 sp=kubernetes.io/host-path",
            ),
        claim("provision.in-tree.reschedule", "claim1")
            .before(
                "sc   copper kubernetes.io/host-path wffc
                 node node1
                 pvc  claim1#uid1 1Gi Pending class=copper node=node1",
            )
            // Twice, so that a restart between the failure and its answer gives the same result.
            .script(Task::CreateStorage, &[Err("Mock provisioner error"), Err("Mock provisioner error")])
            .after("pvc claim1#uid1 1Gi Pending class=copper sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Failed to provision volume with StorageClass \"copper\": \
                 Mock provisioner error",
                "Normal WaitForFirstConsumer",
            ]),
    ]
}

/// A volume with the name of the claim's future volume exists, but belongs to another claim.
fn taken_names() -> Vec<Case> {
    let exists = |name| {
        claim(name, "claim1")
            .before(
                "sc  gold kubernetes.io/host-path
                 pv  pvc-uid1 1Gi Available class=silver
                 pvc claim1#uid1 1Gi Pending class=gold",
            )
            .after(
                "pv  pvc-uid1 1Gi Available class=silver
                 pvc claim1#uid1 1Gi Pending class=gold sp=kubernetes.io/host-path",
            )
            .events(&[])
    };
    vec![
        exists("provision.in-tree.exists"),
        exists("provision.in-tree.exists: it is deleted")
            .then(|cluster| cluster.delete(&ObjectKey::volume("pvc-uid1")))
            .stable(
                "pv  pvc-uid1 1Gi Bound ->claim1#uid1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                     source=hostPath:/tmp/hostpath_pv/uid1 fin=kubernetes.io/pv-controller
                 pvc claim1#uid1 1Gi Bound vol=pvc-uid1 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
    ]
}

/// The request to an external provisioner fails at first.
fn requests() -> Vec<Case> {
    let ask = |name| {
        multi(name)
            .before(
                "sc  external vendor.com/my-volume
                 pvc claim1#uid1 1Gi Pending class=external",
            )
            .after("pvc claim1#uid1 1Gi Pending class=external sp=vendor.com/my-volume")
    };
    vec![
        ask("provision.external.request: rejected")
            .error("write", Kind::Claim, RequestError::Error(500, "Mock update error".into()))
            .events(&[
                "Warning ProvisioningFailed Error saving claim: Mock update error",
                "Normal ExternalProvisioning",
            ]),
        ask("provision.external.request: in conflict")
            .error("write", Kind::Claim, RequestError::Conflict)
            .events(&["Normal ExternalProvisioning"]),
        ask("provision.external.request: the answer is lost")
            .lost_answer("write", Kind::Claim)
            .events(&["Normal ExternalProvisioning"]),
    ]
}

// === Reclaiming ===

/// The backing storage cannot or must not be deleted.
fn not_deleted() -> Vec<Case> {
    vec![
        volume("reclaim.delete.in-use", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Delete source=hostPath:/tmp/1")
            .script_in_use(Task::DeleteStorage, "node1 still uses it")
            .after("pv volume1 1Gi Released ->claim1#uid1 policy=Delete source=hostPath:/tmp/1")
            .events(&["Normal VolumeDelete node1 still uses it"])
            .stable(""),
        volume("reclaim.delete.failed: not below /tmp", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Delete source=hostPath:/data/1")
            .after(
                "pv volume1 1Gi Failed ->claim1#uid1 policy=Delete source=hostPath:/data/1 \
                    msg=host_path_deleter_only_supports_/tmp/.+_but_received_provided_/data/1",
            )
            .events(&[
                "Warning VolumeFailedDelete host_path deleter only supports /tmp/.+ but received provided /data/1",
            ]),
        volume("reclaim.delete.failed: a path that leaves /tmp", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Delete source=hostPath:/tmp/../etc")
            .after(
                "pv volume1 1Gi Failed ->claim1#uid1 policy=Delete source=hostPath:/tmp/../etc \
                    msg=host_path_deleter_only_supports_/tmp/.+_but_received_provided_/tmp/../etc",
            )
            .events(&["Warning VolumeFailedDelete host_path deleter only supports"]),
        volume("reclaim.delete.no-plugin: a plugin without a deleter", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Delete source=nfs:/1")
            .after(
                "pv volume1 1Gi Failed ->claim1#uid1 policy=Delete source=nfs:/1 \
                    msg=error_getting_deleter_volume_plugin_for_volume_\"volume1\":_no_deletable_volume_plugin_matched",
            )
            .events(&["Warning VolumeFailedDelete error getting deleter volume plugin for volume \"volume1\""]),
        volume("reclaim.delete.no-plugin: provisioned by an unknown plugin", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Delete by=kubernetes.io/unknown")
            .after(
                "pv volume1 1Gi Failed ->claim1#uid1 policy=Delete by=kubernetes.io/unknown \
                    fin=kubernetes.io/pv-controller msg=no_volume_plugin_matched_name:_kubernetes.io/unknown",
            )
            .events(&["Warning VolumeFailedDelete no volume plugin matched name: kubernetes.io/unknown"]),
    ]
}

/// The volume is released in the cache, but a live read shows otherwise.
fn races() -> Vec<Case> {
    vec![
        volume("reclaim.verify: the claim exists", "volume1")
            .before("pv volume1 1Gi Released ->claim1#uid1 bbc policy=Delete source=hostPath:/tmp/1")
            .unseen_change(|cluster| notation::add(cluster, "pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc"))
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc policy=Delete source=hostPath:/tmp/1
                 pvc claim1#uid1 1Gi Bound vol=volume1 bbc bc",
            )
            .events(&[]),
        volume("reclaim.verify: the volume was deleted", "volume1")
            .before("pv volume1 1Gi Released ->claim1#uid1 bbc policy=Delete source=hostPath:/tmp/1")
            .unseen_change(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after("")
            .events(&[]),
        volume("reclaim.verify: the policy was changed to Retain", "volume1")
            .before("pv volume1 1Gi Released ->claim1#uid1 bbc policy=Delete source=hostPath:/tmp/1")
            .unseen_change(|cluster| {
                notation::add(cluster, "pv volume1 1Gi Released ->claim1#uid1 bbc source=hostPath:/tmp/1");
            })
            .after("pv volume1 1Gi Released ->claim1#uid1 bbc source=hostPath:/tmp/1")
            .events(&[]),
        claim("claim.bound.verify-volume: it is not in the cache yet", "claim1")
            .before(BOUND)
            .unseen(&[ObjectKey::volume("volume1")])
            .unchanged()
            .events(&[]),
    ]
}

/// Which volumes can be scrubbed.
fn scrubbing() -> Vec<Case> {
    vec![
        volume("reclaim.recycle.no-plugin: a CSI volume", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 policy=Recycle source=csi:vendor.com/driver")
            .after(
                "pv volume1 1Gi Failed ->claim1#uid1 policy=Recycle source=csi:vendor.com/driver \
                    msg=No_recycler_plugin_found_for_the_volume!",
            )
            .events(&["Warning VolumeFailedRecycle No recycler plugin found for the volume!"]),
        volume("reclaim.recycle.done: an NFS volume", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 bbc policy=Recycle source=nfs:/1")
            .after("pv volume1 1Gi Available policy=Recycle source=nfs:/1")
            .events(&["Normal VolumeRecycled"]),
    ]
}

/// A bind that cannot be completed.
fn binding() -> Vec<Case> {
    vec![
        claim("bind.no-capacity", "claim1")
            .before(
                "pv  volume1 - Available
                 pvc claim1#uid1 - Pending",
            )
            .after(
                "pv  volume1 - Bound ->claim1#uid1 bbc
                 pvc claim1#uid1 - Pending vol=volume1 bbc bc",
            )
            .events(&[]),
    ]
}
