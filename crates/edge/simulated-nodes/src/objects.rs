//! The objects that the simulated CSI driver creates.

use bindery_model::Quantity;
use serde_json::{Value, json};

/// The driver's name.
pub const DRIVER: &str = "simulated.csi.bindery.dev";
/// The driver's class, which is the default class.
pub const CLASS: &str = "simulated";
/// The driver's topology key.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The node annotation with the amount of simulated storage.
pub const STORAGE_ANNOTATION: &str = "bindery/simulated-storage";
/// The path of the driver's CSIStorageCapacity objects.
pub const CAPACITIES: &str = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities";

/// The CSIDriver.
pub fn driver() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": false, "podInfoOnMount": false, "storageCapacity": true},
    })
}

/// The StorageClass.
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

/// The CSINode of a node.
pub fn csi_node(node: &Value) -> Value {
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

/// The name of the CSIStorageCapacity for a class and node.
pub fn capacity_name(class: &str, node: &str) -> String {
    format!("{class}.{node}")
}

/// The CSIStorageCapacity for a class and node.
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
        "capacity": quantity(bytes),
        "maximumVolumeSize": quantity(bytes),
    })
}

/// Bytes as a quantity.
pub fn quantity(bytes: i128) -> String {
    Quantity::of_bytes(u64::try_from(bytes).unwrap_or_default()).to_string()
}

/// A PersistentVolume on a node.
pub fn volume(name: &str, node: &str, bytes: i128, claim: &Value, class: &Value) -> Value {
    let expression = json!({"key": HOSTNAME, "operator": "In", "values": [node]});
    let mut spec = json!({
        "capacity": {"storage": quantity(bytes)},
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
