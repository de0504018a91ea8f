//! Objects shared by all states: nodes with topology, CSINodes, and the snapshot kinds.

use std::time::{Duration, Instant};

use bindery_test_cluster::TIMEOUT;
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::CONTENTS;

/// The drivers, and the additional flags of their provisioners.
pub const DRIVERS: [(&str, &[&str]); 3] = [
    ("a.example.com", &["--extra-create-metadata", "--default-fstype=ext4"]),
    ("b.example.com", &["--strict-topology"]),
    ("c.example.com", &["--immediate-topology=false", "--default-fstype=xfs"]),
];

/// The flags of all provisioners.
pub const COMMON: [&str; 7] = [
    "--feature-gates=Topology=true",
    "--retry-interval-start=500ms",
    "--retry-interval-max=2s",
    "--timeout=3s",
    "--worker-threads=50",
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
];

const ZONE: &str = "topology.example.com/zone";
const RACK: &str = "topology.example.com/rack";

/// The nodes, with zone and rack. The last one has no driver.
const NODES: [(&str, Option<(&str, &str)>); 4] =
    [("node-a", Some(("z1", "r1"))), ("node-b", Some(("z1", "r2"))), ("node-c", Some(("z2", "r1"))), ("node-d", None)];

pub async fn set_up(server: &Server) {
    let scopes = [
        ("VolumeSnapshot", "volumesnapshots", "Namespaced"),
        ("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster"),
        ("VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
    ];
    for (kind, plural, scope) in scopes {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.create(path, &definition(kind, plural, scope)).await.expect("a kind");
    }
    for (name, place) in NODES {
        let mut labels = json!({"kubernetes.io/hostname": name});
        let mut drivers = vec![];
        if let Some((zone, rack)) = place {
            (labels[ZONE], labels[RACK]) = (zone.into(), rack.into());
            let driver = |driver| json!({"name": driver, "nodeID": name, "topologyKeys": [ZONE, RACK]});
            drivers.extend(DRIVERS.map(|(name, _)| driver(name)));
        }
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        server.create("/api/v1/nodes", &node).await.expect("a node");
        let csi_node = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers},
        });
        server.create("/apis/storage.k8s.io/v1/csinodes", &csi_node).await.expect("a CSINode");
    }
    for (name, _) in DRIVERS {
        let driver = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name},
            "spec": {"attachRequired": false},
        });
        server.create("/apis/storage.k8s.io/v1/csidrivers", &driver).await.expect("a driver");
    }
    let began = Instant::now();
    while server.get(CONTENTS).await.is_err() {
        assert!(began.elapsed() < TIMEOUT, "the snapshot kinds are not served");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.snapshot.storage.k8s.io"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "snapshot.storage.k8s.io",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}
