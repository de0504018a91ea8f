//! The writes for CSIStorageCapacity objects.

use super::*;

const GIB: i64 = 1 << 30;

fn identity() -> Identity {
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "9", "controller": true});
    Identity {
        namespace: "ns".into(),
        driver: "d.example.com".into(),
        managed_by: "external-provisioner".into(),
        owner: Some(owner),
    }
}

fn segment(zone: &str) -> Segment {
    Segment::from([("zone".to_owned(), zone.to_owned())])
}

fn wanted(capacities: &[(&str, &str, Capacity)]) -> BTreeMap<(String, Segment), Capacity> {
    capacities.iter().map(|(class, zone, capacity)| ((class.to_string(), segment(zone)), *capacity)).collect()
}

fn writes_of(
    identity: &Identity,
    wanted: &BTreeMap<(String, Segment), Capacity>,
    existing: &[Value],
) -> Vec<CapacityWrite> {
    plan(identity, wanted, existing).into_iter().map(|(_, write)| write).collect()
}

fn known(bytes: i64) -> Capacity {
    Capacity::Known { bytes, maximum: None }
}

/// An existing object.
fn published(name: &str, class: &str, zone: &str, capacity: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": format!("u-{name}"), "resourceVersion": "7", "ownerReferences": [identity().owner],
        },
        "storageClassName": class,
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": capacity,
    })
}

fn deleted(name: &str) -> CapacityWrite {
    let path = format!("/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities/{name}");
    CapacityWrite::Delete { path, preconditions: json!({"uid": format!("u-{name}"), "resourceVersion": "7"}) }
}

#[test]
fn missing_objects_are_created() {
    let capacity = Capacity::Known { bytes: 5 * GIB, maximum: Some(GIB) };
    let expected = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {
            "generateName": "csisc-", "namespace": "ns",
            "labels": {
                "csi.storage.k8s.io/drivername": "d.example.com", "csi.storage.k8s.io/managed-by": "external-provisioner",
            },
            "ownerReferences": [identity().owner],
        },
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"zone": "z1"}},
        "capacity": "5Gi",
        "maximumVolumeSize": "1Gi",
    });
    assert_eq!(writes_of(&identity(), &wanted(&[("fast", "z1", capacity)]), &[]), [CapacityWrite::Create(expected)]);
    let everywhere = BTreeMap::from([(("fast".to_owned(), Segment::new()), known(0))]);
    let [CapacityWrite::Create(object)] = &writes_of(&identity(), &everywhere, &[])[..] else {
        panic!("one is created")
    };
    assert_eq!((&object["nodeTopology"], &object["capacity"]), (&json!({}), &json!("0")), "zero is published, too");
}

#[test]
fn current_objects_are_left_alone_and_outdated_ones_patched() {
    let published = [published("a", "fast", "z1", "1073741824")];
    assert_eq!(
        writes_of(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &published),
        [],
        "same quantity, other notation"
    );
    assert_eq!(writes_of(&identity(), &wanted(&[("fast", "z1", Capacity::Unknown)]), &published), []);
    let path = "/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities/a".to_owned();
    let metadata = json!({"uid": "u-a", "resourceVersion": "7"});
    let body = json!({"metadata": metadata, "capacity": "2Gi", "maximumVolumeSize": null});
    let changed = writes_of(&identity(), &wanted(&[("fast", "z1", known(2 * GIB))]), &published);
    assert_eq!(changed, [CapacityWrite::Patch(Patch { path, body })]);
    let mut orphan = published[0].clone();
    orphan["metadata"]["ownerReferences"] = json!([{"uid": "8"}]);
    let changed = writes_of(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &[orphan]);
    let [CapacityWrite::Patch(patch)] = &changed[..] else { panic!("the owner is added: {changed:?}") };
    assert_eq!(patch.body["metadata"]["ownerReferences"], json!([{"uid": "8"}, identity().owner]));
}

#[test]
fn unwanted_and_duplicate_objects_are_deleted() {
    let mut nowhere = published("e", "fast", "z1", "1Gi");
    nowhere["nodeTopology"] = Value::Null;
    let published = [
        published("a", "fast", "z1", "1Gi"),
        published("b", "fast", "z1", "1Gi"),
        published("c", "slow", "z1", "1Gi"),
        published("d", "fast", "z2", "1Gi"),
        nowhere,
    ];
    let writes = writes_of(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &published);
    assert_eq!(writes, ["b", "c", "d", "e"].map(deleted));
    assert_eq!(writes_of(&identity(), &BTreeMap::new(), &published).len(), 5);
}
