//! Decoding of nodes, node affinity, topologies and CSI objects.

use bindery_model::{
    Allocatable, Attacher, Attachment, Capacity, Class, CsiDriver, CsiNode, Disk, Handle, Labels, Name, Node,
    NodeDriver, Pod, Source, Taint, TaintEffect, Volume,
};
use serde_json::{Value, json};

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect()
}

fn volume(spec: Value) -> Volume {
    Volume::from_json(&bytes(&json!({"metadata": {"name": "v", "uid": "u"}, "spec": spec}))).expect("it has a name")
}

#[test]
fn node_is_decoded() {
    let node = |status: Value| {
        let json = json!({
            "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                {"key": "l", "effect": "PreferNoSchedule"},
            ]},
            "status": status,
        });
        Node::from_json(&bytes(&json)).expect("it has a name")
    };
    let whole =
        node(json!({"allocatable": {"cpu": "15890m", "memory": "1Gi", "pods": "110"}, "capacity": {"cpu": "16"}}));
    assert_eq!((whole.name().as_str(), whole.unschedulable, &whole.field_error), ("n", true, &None));
    assert_eq!(whole.labels, labels(&[("zone", "a")]));
    let taint = |key: &str, value: &str, effect| Taint { key: key.into(), value: value.into(), effect };
    let taints = [taint("k", "v", TaintEffect::NoExecute), taint("l", "", TaintEffect::PreferNoSchedule)];
    assert_eq!(*whole.taints, taints);
    assert_eq!(
        whole.allocatable,
        Allocatable { cpu_millis: 15_890, memory_bytes: 1 << 30, pods: 110, ..Allocatable::default() }
    );
    assert_eq!(node(json!({})).allocatable, Allocatable::default());
    let malformed = node(json!({"allocatable": {"cpu": "many"}}));
    assert_eq!(malformed.field_error.map(|error| error.field).as_deref(), Some("status.allocatable.cpu"));
    for effect in [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute] {
        assert_eq!(TaintEffect::parse(effect.as_str()), Some(effect));
    }
}

#[test]
fn volume_source_handle_and_node_affinity_are_decoded() {
    let terms = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]);
    let local = volume(json!({"local": {"path": "/d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}));
    assert_eq!((local.source, local.handle.clone()), (Source::Local("/d".into()), None));
    assert!(local.nodes.is_some_and(|nodes| nodes.matches(&labels(&[("kubernetes.io/hostname", "n1")]), None)));
    assert_eq!(volume(json!({"nodeAffinity": {}})).nodes, None);
    let handle = |by, id: &str| Some(Box::new(Handle { by, id: id.into() }));
    let csi = volume(json!({"csi": {"driver": "d", "volumeHandle": "h"}}));
    assert_eq!((csi.source, csi.handle), (Source::Csi("d".into()), handle(Attacher::Csi, "h")));
    let in_tree = [
        (json!({"awsElasticBlockStore": {"volumeID": "x", "fsType": "ext4"}}), Attacher::AwsEbs),
        (json!({"gcePersistentDisk": {"pdName": "x"}}), Attacher::GcePd),
        (json!({"azureDisk": {"diskName": "y", "diskURI": "x", "kind": "Managed"}}), Attacher::AzureDisk),
        (json!({"azureDisk": {"diskName": "y", "diskURI": "x", "kind": "Shared"}}), Attacher::AzureBlob),
        (json!({"cinder": {"volumeID": "x"}}), Attacher::Cinder),
        (json!({"portworxVolume": {"volumeID": "x"}}), Attacher::Portworx),
    ];
    for (spec, by) in in_tree {
        assert_eq!(volume(spec.clone()).handle, handle(by, "x"), "{spec}");
        assert!(by.plugin().is_some_and(Attacher::is_migrated), "{by:?} has a plugin that is migrated to CSI");
    }
    assert!(!Attacher::is_migrated("kubernetes.io/host-path"));
}

#[test]
fn inline_disks_of_a_pod_are_decoded() {
    let pod = |volume: Value| {
        let json = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"volumes": [volume]}});
        Pod::from_json(&bytes(&json)).expect("it has a name")
    };
    let disk = |by, read_only| Disk::InTree { handle: Handle { by, id: "x".into() }, read_only };
    let rbd = |pool: &str| Disk::Rbd {
        monitors: ["a".into(), "b".into()].into(),
        pool: pool.into(),
        image: "i".into(),
        read_only: true,
    };
    let cases = [
        (json!({"name": "a", "gcePersistentDisk": {"pdName": "x", "readOnly": true}}), disk(Attacher::GcePd, true)),
        (
            json!({"name": "a", "awsElasticBlockStore": {"volumeID": "x", "readOnly": true}}),
            disk(Attacher::AwsEbs, false),
        ),
        (json!({"name": "a", "azureDisk": {"diskURI": "x"}}), disk(Attacher::AzureDisk, false)),
        (json!({"name": "a", "azureDisk": {"diskURI": "x", "kind": "Dedicated"}}), disk(Attacher::AzureBlob, false)),
        (json!({"name": "a", "cinder": {"volumeID": "x"}}), disk(Attacher::Cinder, false)),
        (json!({"name": "a", "portworxVolume": {"volumeID": "x"}}), disk(Attacher::Portworx, false)),
        (json!({"name": "a", "iscsi": {"iqn": "q"}}), Disk::Iscsi { iqn: "q".into(), read_only: false }),
        (json!({"name": "a", "rbd": {"monitors": ["a", "b"], "image": "i", "readOnly": true}}), rbd("rbd")),
        (json!({"name": "a", "rbd": {"monitors": ["a", "b"], "pool": "p", "image": "i", "readOnly": true}}), rbd("p")),
    ];
    for (volume, expected) in cases {
        let read = pod(volume.clone());
        assert_eq!((&*read.disks, read.volumes.len()), (&[expected][..], 0), "{volume}");
    }
    assert!(pod(json!({"name": "a", "persistentVolumeClaim": {"claimName": "c"}})).disks.is_empty());
}

#[test]
fn allowed_topologies_of_a_class_are_decoded() {
    let json = json!({
        "metadata": {"name": "c", "uid": "u"}, "provisioner": "p",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    });
    let class = Class::from_json(&bytes(&json)).expect("it has a name");
    assert!(class.topologies.allow(&labels(&[("zone", "b")])) && !class.topologies.allow(&labels(&[("zone", "c")])));
}

#[test]
fn capacity_is_decoded_with_its_nodes() {
    let capacity = |more: Value| {
        let mut json = json!({"metadata": {"name": "r", "namespace": "ns", "uid": "u"}, "storageClassName": "fast"});
        json.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        Capacity::from_json(&bytes(&json)).expect("it has a name")
    };
    let (here, there) = (labels(&[("zone", "a")]), labels(&[("zone", "b")]));
    let size = |text: &str| text.parse().expect("a quantity");
    let whole = capacity(
        json!({"capacity": "10Gi", "maximumVolumeSize": "1Gi", "nodeTopology": {"matchLabels": {"zone": "a"}}}),
    );
    assert_eq!((whole.class.as_str(), &whole.field_error), ("fast", &None));
    assert!(whole.is_for(&here) && !whole.is_for(&there));
    assert!(whole.fits(&size("1Gi")) && !whole.fits(&size("2Gi")), "the limit for one volume applies");
    assert!(capacity(json!({"capacity": "10Gi"})).fits(&size("10Gi")));
    assert!(!capacity(json!({})).fits(&size("0")), "an unspecified capacity is not sufficient");
    assert!(!capacity(json!({"capacity": "1Gi"})).is_for(&here), "without a topology it applies to no node");
    assert!(capacity(json!({"nodeTopology": {}})).is_for(&there), "an empty topology applies to all nodes");
    let invalid = json!({"nodeTopology": {"matchExpressions": [{"key": "zone", "operator": "Near"}]}});
    assert!(!capacity(invalid).is_for(&here));
    assert_eq!(capacity(json!({"capacity": "much"})).field_error.map(|error| error.field).as_deref(), Some("capacity"));
}

#[test]
fn drivers_and_attachments_are_decoded() {
    let driver = |spec: Value| {
        let json = json!({"metadata": {"name": "d", "uid": "u"}, "spec": spec});
        let driver = CsiDriver::from_json(&bytes(&json)).expect("it has a name");
        (driver.reports_capacity, driver.must_be_installed)
    };
    assert_eq!(driver(json!({})), (false, false));
    assert_eq!(driver(json!({"storageCapacity": true, "attachRequired": true})), (true, false));
    assert_eq!(driver(json!({"preventPodSchedulingIfMissing": true, "storageCapacity": null})), (false, true));

    let drivers =
        json!([{"name": "d", "nodeID": "x", "allocatable": {"count": 5}}, {"name": "e", "topologyKeys": ["z"]}]);
    let migrated =
        json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"});
    let json = json!({"metadata": {"name": "n", "uid": "u", "annotations": migrated}, "spec": {"drivers": drivers}});
    let node = CsiNode::from_json(&bytes(&json)).expect("it has a name");
    assert_eq!(node.driver("d"), Some(&NodeDriver { name: "d".into(), volumes_max: Some(5), ..NodeDriver::default() }));
    assert_eq!(node.driver("e").map(|driver| driver.volumes_max), Some(None));
    assert_eq!(node.driver("f"), None);
    assert!(node.has_migrated("kubernetes.io/gce-pd") && !node.has_migrated("kubernetes.io/cinder"));

    let spec = json!({"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}});
    let json = json!({"metadata": {"name": "a", "uid": "u"}, "spec": spec, "status": {"attached": true}});
    let attachment = Attachment::from_json(&bytes(&json)).expect("it has a name");
    assert_eq!((attachment.attacher.as_str(), attachment.node.as_str()), ("d", "n"));
    assert_eq!(attachment.volume.as_deref(), Some("v"));
}
