//! Node deployment: a driver and a provisioner on each of two nodes. Each creates and deletes its
//! own node's volumes, claims without a selected node go to a node with capacity, and capacity is
//! published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{Running, TestCluster};
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES, text};
use crate::wait::until;

const DRIVER: &str = "l.example.com";
const KEY: &str = "topology.example.com/node";
const CAPACITIES: &str = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities";
const GIB: i64 = 1 << 30;
/// The nodes and their capacity in GiB.
const NODES: [(&str, i64); 2] = [("n1", 3), ("n2", 10)];

struct Nodes {
    server: Server,
    drivers: BTreeMap<&'static str, Arc<FakeDriver>>,
    provisioners: Vec<Running>,
    _serving: Vec<Serving>,
    _binder: Running,
}

#[test]
fn each_node_provisions_its_own_volumes_and_publishes_its_capacity() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let nodes = Nodes::start(&test_cluster).await;
        nodes.class("at-once", "Immediate").await;
        nodes.class("later", "WaitForFirstConsumer").await;
        let full = BTreeMap::from([("n1".to_owned(), 3 * GIB), ("n2".to_owned(), 10 * GIB)]);
        nodes.until("the capacity is published", async || nodes.published().await == full).await;

        for number in 0..4 {
            nodes.claim(&format!("any{number}"), "at-once", "2Gi", None).await;
        }
        nodes.until("claims without a selected node are provisioned", async || nodes.bound().await.len() == 4).await;
        nodes.claim("here", "later", "512Mi", Some("n1")).await;
        nodes
            .until("the chosen node makes what is chosen for it", async || nodes.bound().await.contains_key("here"))
            .await;
        let bound = nodes.bound().await;
        assert_eq!(bound["here"], "n1");
        assert!(bound.values().filter(|node| *node == "n1").count() <= 2, "more than its capacity: {bound:?}");
        let left: BTreeMap<String, i64> =
            nodes.drivers.iter().map(|(node, driver)| (node.to_string(), driver.available())).collect();
        nodes.until("the remaining capacity is published", async || nodes.published().await == left).await;

        nodes.claim("nowhere", "later", "100Gi", Some("n1")).await;
        let unselected = async || {
            let claim = nodes.server.get(&format!("{CLAIMS}/nowhere")).await.expect("a claim");
            claim["metadata"]["annotations"].get("volume.kubernetes.io/selected-node").is_none()
        };
        nodes.until("the selected node without capacity is removed", unselected).await;

        for name in ["any0", "any1", "any2", "any3", "here", "nowhere"] {
            nodes.server.delete(&format!("{CLAIMS}/{name}")).await.expect("deleted");
        }
        nodes
            .until("each node removes its own", async || {
                let is_left = nodes.drivers.values().any(|driver| !driver.volumes().is_empty());
                !is_left && nodes.server.list(VOLUMES).await.is_empty() && nodes.server.list(CLAIMS).await.is_empty()
            })
            .await;
        nodes.until("the freed capacity is published", async || nodes.published().await == full).await;
        nodes.server.delete(&format!("{CLASSES}/later")).await.expect("deleted");
        nodes.until("the capacity of the deleted class is removed", async || nodes.published().await.is_empty()).await;
    });
}

impl Nodes {
    async fn start(test_cluster: &TestCluster) -> Nodes {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let (mut drivers, mut provisioners, mut served) = (BTreeMap::new(), vec![], vec![]);
        for (name, gib) in NODES {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {KEY: name}}});
            server.create("/api/v1/nodes", &node).await.expect("a node");
            let csi_node = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": [KEY]}]},
            });
            server.create("/apis/storage.k8s.io/v1/csinodes", &csi_node).await.expect("a CSINode");
            let driver = Arc::new(FakeDriver::new(DRIVER).on_node(gib * GIB, &[(KEY, name)]));
            let serving =
                driver.serve(&test_cluster.folder().join(format!("{name}.sock"))).expect("a driver is served");
            provisioners.push(provisioner(test_cluster, name, &kubeconfig, &serving));
            drivers.insert(name, driver);
            served.push(serving);
        }
        let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let binder = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts");
        Nodes { server, drivers, provisioners, _serving: served, _binder: binder }
    }

    async fn class(&self, name: &str, binding: &str) {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": DRIVER, "volumeBindingMode": binding,
        });
        self.server.create(CLASSES, &class).await.expect("a class");
    }

    async fn claim(&self, name: &str, class: &str, size: &str, node: Option<&str>) {
        let annotations = node.map(|node| json!({"volume.kubernetes.io/selected-node": node}));
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}},
            },
        });
        self.server.create(CLAIMS, &claim).await.expect("a claim");
    }

    /// The bound claims with the nodes of their volumes, which is checked with the drivers.
    async fn bound(&self) -> BTreeMap<String, String> {
        let volumes = self.server.list(VOLUMES).await;
        let bound = volumes.iter().filter(|volume| volume["status"]["phase"] == "Bound");
        let mut places = BTreeMap::new();
        for volume in bound {
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            let node = text(&terms[0]["matchExpressions"][0]["values"][0]);
            let handle = text(&volume["spec"]["csi"]["volumeHandle"]);
            let has = self.drivers.iter().filter(|(_, driver)| driver.volumes().contains_key(handle));
            let has: BTreeSet<&str> = has.map(|(node, _)| *node).collect();
            assert_eq!(has, BTreeSet::from([node]), "{handle} is on one node, as its volume says");
            places.insert(text(&volume["spec"]["claimRef"]["name"]).to_owned(), node.to_owned());
        }
        places
    }

    /// The published capacity by node.
    async fn published(&self) -> BTreeMap<String, i64> {
        let objects = self.server.list(CAPACITIES).await;
        let one = |object: &Value| {
            let node = text(&object["nodeTopology"]["matchLabels"][KEY]).to_owned();
            let label = text(&object["metadata"]["labels"]["csi.storage.k8s.io/managed-by"]).to_owned();
            assert_eq!(label, format!("external-provisioner-{node}"));
            assert_eq!(
                (&object["storageClassName"], &object["maximumVolumeSize"]),
                (&json!("later"), &object["capacity"])
            );
            let capacity: bindery_model::Quantity = text(&object["capacity"]).parse().expect("a quantity");
            (node, i64::try_from(capacity.units()).expect("it fits"))
        };
        let all: BTreeMap<String, i64> = objects.iter().map(one).collect();
        assert_eq!(all.len(), objects.len(), "one capacity object per node");
        all
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        until(&self.provisioners.iter().collect::<Vec<_>>(), what, holds).await;
    }
}

fn provisioner(test_cluster: &TestCluster, node: &str, kubeconfig: &str, serving: &Serving) -> Running {
    let (name, address) = (format!("NODE_NAME={node}"), format!("--csi-address={}", serving.socket().display()));
    let args = [
        &name,
        "NAMESPACE=default",
        env!("CARGO_BIN_EXE_bindery"),
        "provisioner",
        "csi",
        kubeconfig,
        &address,
        "--node-deployment",
        "--node-deployment-base-delay=500ms",
        "--node-deployment-max-delay=2s",
        "--strict-topology",
        "--immediate-topology=false",
        "--enable-capacity",
        "--capacity-ownerref-level=-1",
        "--capacity-poll-interval=2s",
        "--kube-api-capacity-qps=50",
        "--kube-api-qps=0",
        "--retry-interval-start=200ms",
        "--retry-interval-max=2s",
    ];
    test_cluster.start_program("/usr/bin/env", args).expect("a provisioner starts")
}
