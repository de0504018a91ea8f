//! expand_controller_test.go, TestSyncHandler, and further cases of expansion.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use serde_json::json;

use crate::case::{Case, claim_key, grown, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [upstream(), further()].into_iter().flatten().collect()
}

const WAITS: &str = "Normal ExternalExpanding waiting for an external controller to expand this PVC";
const MIGRATED: &str = "Normal ExternalExpanding CSI migration enabled for kubernetes.io/aws-ebs; waiting for external \
                        resizer to expand the pvc";

fn upstream() -> Vec<Case> {
    vec![
        grown("when pvc has no PV binding", "claim1")
            .before("pvc claim1#uid1 2Gi Bound got=1Gi/RWO,ROX")
            .unchanged()
            .events(&[])
            .requests(&[]),
        grown("when pvc and pv has everything for in-tree plugin", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizer=ebs.csi.aws.com",
            )
            .events(&[MIGRATED])
            .requests(&["write PersistentVolumeClaim default/claim1 [expansion.migrated]"]),
        grown("if pv has pre-resize capacity annotation, it is not expanded", "claim1")
            .before(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1",
            )
            .after(
                "pv  volume1 2Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x pre-resize=1Gi
                 pvc claim1#uid1 2Gi Bound vol=volume1 resizer=ebs.csi.aws.com",
            )
            .events(&[MIGRATED]),
        grown("for csi plugin without migration path", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=csi:com.csi.ceph
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .unchanged()
            .events(&[WAITS])
            .requests(&[]),
    ]
}

fn further() -> Vec<Case> {
    let no_expansion = |name, claim| grown(name, "claim1").before(claim).unchanged().requests(&[]);
    vec![
        no_expansion("a deleted claim", "").events(&[]),
        no_expansion("a claim that is not bound", "pvc claim1#uid1 2Gi Pending vol=volume1 got=1Gi/RWO").events(&[]),
        no_expansion(
            "a claim with the requested capacity",
            "pv  volume1 2Gi Bound ->claim1#uid1 source=csi:x
             pvc claim1#uid1 2Gi Bound vol=volume1",
        )
        .events(&[]),
        no_expansion(
            "a volume of another claim",
            "pv  volume1 1Gi Bound ->claim1#uid9 source=csi:x
             pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
        )
        .events(&[]),
        no_expansion(
            "a volume that refers to the claim by another name: only the UID counts",
            "pv  volume1 1Gi Bound ->claim9#uid1 source=csi:x
             pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
        )
        .events(&[WAITS]),
        grown("its volume is created later, and refers to the claim by another name", "claim1")
            .before("pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX")
            .unchanged()
            .events(&[])
            .then(|cluster| put(cluster, "pv volume1 1Gi Bound ->claim9#uid1 source=gcePersistentDisk:x"))
            .stable(
                "pv  volume1 1Gi Bound ->claim9#uid1 source=gcePersistentDisk:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizer=pd.csi.storage.gke.io",
            ),
        grown("the request of a bound claim is raised later", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 1Gi Bound vol=volume1",
            )
            .unchanged()
            .then(|cluster| put(cluster, "pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX"))
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizer=ebs.csi.aws.com",
            ),
        grown("writing the resizer annotation is rejected: an event is published", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .error("write", Kind::Claim, RequestError::Error(403, "forbidden".into()))
            .unchanged()
            .events(&[MIGRATED])
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizer=ebs.csi.aws.com",
            ),
        grown("a malformed claim and then a malformed volume, until they are fixed", "claim1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX",
            )
            .unseen_change(|cluster| {
                cluster.edit(&claim_key("claim1"), json!({"status": {"capacity": {"storage": "much"}}}));
                cluster.edit(&ObjectKey::volume("volume1"), json!({"spec": {"capacity": {"storage": "much"}}}));
            })
            .after(
                "pv  volume1 much Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=much/RWO,ROX",
            )
            .then(|cluster| put(cluster, "pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX"))
            .then(|cluster| put(cluster, "pv volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x"))
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 source=awsElasticBlockStore:x
                 pvc claim1#uid1 2Gi Bound vol=volume1 got=1Gi/RWO,ROX resizer=ebs.csi.aws.com",
            ),
    ]
}
