//! What is written about room.

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

fn place(zone: &str) -> Place {
    Place::from([("zone".to_owned(), zone.to_owned())])
}

fn wanted(rooms: &[(&str, &str, Room)]) -> BTreeMap<(String, Place), Room> {
    rooms.iter().map(|(class, zone, room)| ((class.to_string(), place(zone)), *room)).collect()
}

fn known(bytes: i64) -> Room {
    Room::Known { bytes, largest: None }
}

/// An object of ours that is there.
fn told(name: &str, class: &str, zone: &str, capacity: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": format!("u-{name}"), "resourceVersion": "7", "ownerReferences": [identity().owner],
        },
        "storageClassName": class,
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": capacity,
    })
}

fn deleted(name: &str) -> Deed {
    let path = format!("/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities/{name}");
    Deed::Delete { path, preconditions: json!({"uid": format!("u-{name}"), "resourceVersion": "7"}) }
}

#[test]
fn what_is_not_told_yet_is_created() {
    let room = Room::Known { bytes: 5 * GIB, largest: Some(GIB) };
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
    assert_eq!(plan(&identity(), &wanted(&[("fast", "z1", room)]), &[]), [Deed::Create(expected)]);
    let everywhere = BTreeMap::from([(("fast".to_owned(), Place::new()), known(0))]);
    let [Deed::Create(object)] = &plan(&identity(), &everywhere, &[])[..] else { panic!("one is created") };
    assert_eq!((&object["nodeTopology"], &object["capacity"]), (&json!({}), &json!("0")), "no room is told, too");
}

#[test]
fn what_is_told_is_left_alone_and_what_is_not_true_any_more_changed() {
    let told = [told("a", "fast", "z1", "1073741824")];
    assert_eq!(plan(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &told), [], "it is the same in other words");
    assert_eq!(plan(&identity(), &wanted(&[("fast", "z1", Room::Unknown)]), &told), []);
    let path = "/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities/a".to_owned();
    let metadata = json!({"uid": "u-a", "resourceVersion": "7"});
    let body = json!({"metadata": metadata, "capacity": "2Gi", "maximumVolumeSize": null});
    let changed = plan(&identity(), &wanted(&[("fast", "z1", known(2 * GIB))]), &told);
    assert_eq!(changed, [Deed::Change(Patch { path, body })]);
    let mut orphan = told[0].clone();
    orphan["metadata"]["ownerReferences"] = json!([{"uid": "8"}]);
    let changed = plan(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &[orphan]);
    let [Deed::Change(patch)] = &changed[..] else { panic!("the owner is put in: {changed:?}") };
    assert_eq!(patch.body["metadata"]["ownerReferences"], json!([{"uid": "8"}, identity().owner]));
}

#[test]
fn what_nobody_wants_goes_and_so_does_the_second_of_two() {
    let mut nowhere = told("e", "fast", "z1", "1Gi");
    nowhere["nodeTopology"] = Value::Null;
    let told = [
        told("a", "fast", "z1", "1Gi"),
        told("b", "fast", "z1", "1Gi"),
        told("c", "slow", "z1", "1Gi"),
        told("d", "fast", "z2", "1Gi"),
        nowhere,
    ];
    let deeds = plan(&identity(), &wanted(&[("fast", "z1", known(GIB))]), &told);
    assert_eq!(deeds, ["b", "c", "d", "e"].map(deleted));
    assert_eq!(plan(&identity(), &BTreeMap::new(), &told).len(), 5);
}
