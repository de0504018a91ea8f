//! What the simulated driver puts into the API: itself, its class, its presence on nodes, and how much room there is.

use bindery_model::Quantity;
use serde_json::{Value, json};

/// The name of the driver.
pub const DRIVER: &str = "simulated.csi.bindery.dev";
/// The class that it serves, the default one.
pub const CLASS: &str = "simulated";
/// The label of nodes that tells where a volume is.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The annotation of a node that says how much storage it has.
pub const ROOM: &str = "bindery/simulated-storage";
/// Where the objects that say how much room there is live.
pub const CAPACITIES: &str = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities";

/// The driver.
pub fn driver() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": false, "podInfoOnMount": false, "storageCapacity": true},
    })
}

/// Its class.
pub fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// That a node has the driver.
pub fn on_node(node: &Value) -> Value {
    let name = &node["metadata"]["name"];
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]},
        ]},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": [HOSTNAME]}]},
    })
}

/// The name of the object that says how much room a node has for a class.
pub fn capacity_name(class: &str, node: &str) -> String {
    format!("{class}.{node}")
}

/// How much room a node has for a class.
pub fn capacity(class: &str, node: &str, bytes: i128) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": capacity_name(class, node), "namespace": "kube-system", "labels": {
            "csi.storage.k8s.io/drivername": DRIVER,
            "csi.storage.k8s.io/managed-by": "bindery-up",
        }},
        "storageClassName": class,
        "nodeTopology": {"matchLabels": {HOSTNAME: node}},
        "capacity": amount(bytes),
        "maximumVolumeSize": amount(bytes),
    })
}

/// So many bytes, as quantities are written.
pub fn amount(bytes: i128) -> String {
    Quantity::of_bytes(u64::try_from(bytes).unwrap_or_default()).to_string()
}

/// A volume on a node.
pub fn volume(name: &str, node: &str, bytes: i128, claim: &Value, class: &Value) -> Value {
    let expression = json!({"key": HOSTNAME, "operator": "In", "values": [node]});
    let mut spec = json!({
        "capacity": {"storage": amount(bytes)},
        "accessModes": claim["spec"]["accessModes"],
        "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        "csi": {"driver": DRIVER, "volumeHandle": name, "volumeAttributes": {"simulated": "true"}},
    });
    for (field, value) in [("volumeMode", &claim["spec"]["volumeMode"]), ("mountOptions", &class["mountOptions"])] {
        if !value.is_null() {
            spec[field] = value.clone();
        }
    }
    json!({"spec": spec})
}
