//! The volume that is created for an entry.

use bindery_local_disks::discover::{Entry, Outcome, RootDirectory};
use bindery_local_disks::naming::volume_name;
use serde_json::{Value, json};

use crate::world::{US, World, device, mounted, world};

fn created(world: World) -> Value {
    let decisions = world.decide();
    match &decisions[0].outcome {
        Outcome::Create(body) => (**body).clone(),
        other @ (Outcome::Skip | Outcome::Fail) => panic!("{other:?}: {}", decisions[0].note),
    }
}

#[test]
fn minimal_volume() {
    let here = json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-n"]}]});
    let expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name("disk", "n", "fast").as_str(),
            "annotations": {"pv.kubernetes.io/provisioned-by": US},
        },
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Filesystem",
            "storageClassName": "fast",
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": "/mnt/fast/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        },
    });
    assert_eq!(created(world().entry(mounted("disk"))), expected);
}

#[test]
fn root_directory_is_recorded() {
    let root = Some(RootDirectory { owner: 0, group: 2000, mode: 0o2775 });
    let body = created(world().entry(Entry { root, ..mounted("disk") }));
    assert_eq!(body["metadata"]["annotations"]["bindery.dev/root-directory"], "0:2000:2775");
}

#[test]
fn volume_with_all_options() {
    let class = json!({
        "metadata": {"name": "fast", "uid": "c"},
        "reclaimPolicy": "Retain",
        "mountOptions": ["noatime", "nodiratime"],
    });
    let body = created(
        world()
            .class(Some(class))
            .with("volumeMode: Block, accessMode: ReadWriteMany, fsType: xfs, selector: [{matchExpressions: [{key: a, operator: Exists}]}]")
            .file("nodeLabelsForPV", "[zone, absent, team]")
            .file("labelsForPV", "{team: disks, zone: b}")
            .file("setPVOwnerRef", "true")
            .file("useNodeNameOnly", "true")
            .entry(Entry { bytes: (10 << 30) - 1, ..device("disk") }),
    );
    assert_eq!(body["metadata"]["labels"], json!({"team": "disks", "zone": "b"}), "labelsForPV takes precedence");
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
    assert_eq!(body["metadata"]["ownerReferences"], owner);
    let by = &body["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"];
    assert_eq!(by, "local-volume-provisioner-n");
    let spec = &body["spec"];
    assert_eq!(spec["capacity"], json!({"storage": "10239Mi"}));
    assert_eq!((&spec["accessModes"], &spec["volumeMode"]), (&json!(["ReadWriteMany"]), &json!("Block")));
    assert_eq!(spec["local"], json!({"path": "/mnt/fast/disk", "fsType": "xfs"}));
    assert_eq!(spec["mountOptions"], json!(["noatime", "nodiratime"]));
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Retain");
    let terms = spec["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().expect("terms");
    assert_eq!((terms.len(), &terms[1]), (2, &json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})));
}
