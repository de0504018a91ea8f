//! Migrated in-tree classes and volumes on a real API server: claims are annotated with the CSI
//! driver, parameters are translated for it, volumes get the in-tree source, and are deleted by the
//! driver's handle.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{Running, TestCluster};
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, EVENTS, VOLUMES, list, text};
use crate::wait::until;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// The drivers, their topology label, and the zones of two nodes each.
const CLOUDS: [(&str, &str, [&str; 2]); 2] = [
    ("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", ["us-east-1a", "us-east-1b"]),
    ("pd.csi.storage.gke.io", "topology.gke.io/zone", ["us-central1-a", "us-central1-b"]),
];

struct Bench {
    server: Server,
    drivers: Vec<(Arc<FakeDriver>, Serving)>,
    programs: Vec<Running>,
}

#[test]
fn migrated_volumes_are_created_and_deleted_by_the_csi_driver() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::start(&test_cluster).await;
        bench.by_allowed_topologies().await;
        bench.by_zone_and_chosen_node().await;
        bench.made_before().await;
        bench.counts();
    });
}

impl Bench {
    async fn start(test_cluster: &TestCluster) -> Bench {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let mut programs =
            vec![test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts")];
        let mut drivers = vec![];
        for (name, key, zones) in CLOUDS {
            for zone in zones {
                let labels = json!({ZONE: zone, key: zone});
                let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": zone, "labels": labels}});
                server.create("/api/v1/nodes", &node).await.expect("a node");
                let csi_node = json!({
                    "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": zone},
                    "spec": {"drivers": [{"name": name, "nodeID": zone, "topologyKeys": [key]}]},
                });
                server.create("/apis/storage.k8s.io/v1/csinodes", &csi_node).await.expect("a CSINode");
            }
            let driver = Arc::new(FakeDriver::new(name));
            let serving =
                driver.serve(&test_cluster.folder().join(format!("{name}.sock"))).expect("a driver is served");
            let address = format!("--csi-address={}", serving.socket().display());
            let args = ["provisioner", "csi", &kubeconfig, &address, "--http-endpoint=localhost:0"];
            programs
                .push(test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts"));
            drivers.push((driver, serving));
        }
        Bench { server, drivers, programs }
    }

    /// An aws-ebs class with allowedTopologies in in-tree terms.
    async fn by_allowed_topologies(&self) {
        let driver = &self.drivers[0].0;
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "aws"},
            "provisioner": "kubernetes.io/aws-ebs",
            "parameters": {"type": "io1", "fsType": "xfs", "iopsPerGB": "10"},
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-east-1b"]}]}],
        });
        self.server.create(CLASSES, &class).await.expect("a class");
        let (claim, volume) = self.bound("a", "aws", json!({})).await;
        assert_names_driver(&claim, "ebs.csi.aws.com");

        let request = &driver.calls()[0]["request"];
        let there = json!([{"segments": {"topology.ebs.csi.aws.com/zone": "us-east-1b"}}]);
        let parameters = json!({"type": "io1", "iopsPerGB": "10", "allowautoiopspergbincrease": "true"});
        assert_eq!(request["parameters"], parameters);
        assert_eq!(request["volume_capabilities"][0]["mount"], json!({"fs_type": "xfs"}));
        assert_eq!(request["accessibility_requirements"], json!({"requisite": there, "preferred": there}));

        let handle = format!("vol-{}", text(&volume["metadata"]["name"]));
        assert_eq!(volume["spec"]["awsElasticBlockStore"], json!({"volumeID": handle, "fsType": "xfs"}));
        assert_is_migrated(&volume, "kubernetes.io/aws-ebs", "ebs.csi.aws.com", ["us-east-1b", "us-east-1"]);

        self.delete("a", &volume).await;
        assert_eq!(called(driver), ["CreateVolume", "DeleteVolume"]);
        assert_eq!(driver.calls()[1]["request"], json!({"volume_id": handle}));
        assert!(driver.volumes().is_empty(), "nothing is left in the driver");
    }

    /// A gce-pd class with a zone parameter, and a claim with a selected node.
    async fn by_zone_and_chosen_node(&self) {
        let driver = &self.drivers[1].0;
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gce"},
            "provisioner": "kubernetes.io/gce-pd", "volumeBindingMode": "WaitForFirstConsumer",
            "parameters": {"type": "pd-ssd", "zone": "us-central1-a", "handle": "projects/p/zones/us-central1-a/disks/"},
        });
        self.server.create(CLASSES, &class).await.expect("a class");
        let chosen = json!({"volume.kubernetes.io/selected-node": "us-central1-a"});
        let (claim, volume) = self.bound("g", "gce", chosen).await;
        assert_names_driver(&claim, "pd.csi.storage.gke.io");

        let request = &driver.calls()[0]["request"];
        let there = json!([{"segments": {"topology.gke.io/zone": "us-central1-a"}}]);
        assert_eq!(request["accessibility_requirements"], json!({"requisite": there, "preferred": there}));
        assert_eq!(request["parameters"].get("zone"), None, "the zone is in the topology: {request}");

        let name = text(&volume["metadata"]["name"]);
        assert_eq!(volume["spec"]["gcePersistentDisk"], json!({"pdName": name}));
        assert_is_migrated(&volume, "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", ["us-central1-a", "us-central1"]);

        self.delete("g", &volume).await;
        assert_eq!(called(driver), ["CreateVolume", "DeleteVolume"]);
        // In-tree volumes do not name the project; the driver fills it in.
        let handle = format!("projects/UNSPECIFIED/zones/us-central1-a/disks/{name}");
        assert_eq!(driver.calls()[1]["request"], json!({"volume_id": handle}));
    }

    /// A volume that the in-tree plugin provisioned, still in use.
    async fn made_before(&self) {
        let driver = &self.drivers[0].0;
        let before = driver.calls().len();
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {
                "name": "old", "finalizers": ["kubernetes.io/pv-controller"],
                "annotations": {"pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs"},
                "labels": {ZONE: "us-east-1a"},
            },
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "aws",
                "persistentVolumeReclaimPolicy": "Delete", "claimRef": {"namespace": "default", "name": "old"},
                "awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0123"},
            },
        });
        self.server.create(VOLUMES, &volume).await.expect("a volume");
        // Volumes and claims have separate watches: if the claim came first, another volume would
        // be provisioned.
        self.until("the binder knows the volume", async || {
            let volume = self.server.get(&format!("{VOLUMES}/old")).await.expect("a volume");
            volume["status"]["phase"] == "Available"
        })
        .await;
        let (_, volume) = self.bound("old", "aws", json!({})).await;
        assert_eq!(text(&volume["metadata"]["name"]), "old");
        assert_eq!(volume["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"], "ebs.csi.aws.com");
        self.delete("old", &volume).await;
        let calls = driver.calls().split_off(before);
        assert_eq!(calls, [json!({"method": "DeleteVolume", "request": {"volume_id": "vol-0123"}})]);
    }

    /// Calls for migrated volumes are counted with the label `migrated`.
    fn counts(&self) {
        let metrics = self.programs[1].page("/metrics").expect("metrics");
        for (method, migrated, count) in [
            ("Controller/CreateVolume", true, 1),
            ("Controller/DeleteVolume", true, 2),
            ("Identity/GetPluginCapabilities", false, 1),
        ] {
            let labels = format!("method_name=\"/csi.v1.{method}\",grpc_status_code=\"OK\",migrated=\"{migrated}\"");
            let name = "csi_sidecar_operations_seconds_count";
            let expected = format!("{name}{{driver_name=\"ebs.csi.aws.com\",{labels}}} {count}");
            assert!(metrics.contains(&expected), "{expected} is not in\n{metrics}");
        }
    }

    /// Creates a claim, and waits until it is bound and its volume has the provisioner's finalizer.
    async fn bound(&self, name: &str, class: &str, annotations: Value) -> (Value, Value) {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        self.server.create(CLAIMS, &claim).await.expect("a claim");
        let look = async || {
            let claim = self.server.get(&format!("{CLAIMS}/{name}")).await.expect("a claim");
            let volume = self.server.get(&format!("{VOLUMES}/{}", text(&claim["spec"]["volumeName"]))).await;
            (claim, volume.unwrap_or_default())
        };
        let guards =
            BTreeSet::from(["external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"]);
        self.until(&format!("{name} is bound, and its volume guarded by the provisioner alone"), async || {
            let (claim, volume) = look().await;
            let finalizers: BTreeSet<&str> = list(&volume["metadata"]["finalizers"]).iter().map(text).collect();
            let is_migrated = volume["metadata"]["annotations"].get("pv.kubernetes.io/migrated-to").is_some();
            claim["status"]["phase"] == "Bound" && finalizers == guards && is_migrated
        })
        .await;
        look().await
    }

    /// Deletes a claim, and waits until its volume is deleted, too, without warnings.
    async fn delete(&self, name: &str, volume: &Value) {
        self.server.delete(&format!("{CLAIMS}/{name}")).await.expect("deleted");
        let volume = format!("{VOLUMES}/{}", text(&volume["metadata"]["name"]));
        let is_deleted =
            async |path: &str| self.server.get(path).await.is_err_and(|rejection| rejection["code"] == 404);
        self.until(&format!("{name} and its volume are deleted"), async || {
            is_deleted(&format!("{CLAIMS}/{name}")).await && is_deleted(&volume).await
        })
        .await;
        let events = self.server.list(EVENTS).await;
        // The API server publishes warnings about its own Service on a slow start.
        let is_ours = |event: &&Value| event["involvedObject"]["kind"] != "Service";
        let warnings: Vec<&Value> = events.iter().filter(is_ours).filter(|event| event["type"] == "Warning").collect();
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        until(&self.programs.iter().collect::<Vec<_>>(), what, holds).await;
    }
}

/// A claim is annotated with the driver, by both keys, and not with the plugin.
fn assert_names_driver(claim: &Value, driver: &str) {
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["volume.kubernetes.io/storage-provisioner"], driver, "{claim}");
    assert_eq!(annotations["volume.beta.kubernetes.io/storage-provisioner"], driver, "{claim}");
    assert_eq!(annotations.get("pv.kubernetes.io/migrated-to"), None, "{claim}");
}

/// A volume names plugin and driver, and its topology in in-tree terms.
fn assert_is_migrated(volume: &Value, plugin: &str, driver: &str, [zone, region]: [&str; 2]) {
    let (metadata, spec) = (&volume["metadata"], &volume["spec"]);
    assert_eq!(metadata["annotations"]["pv.kubernetes.io/provisioned-by"], plugin, "{volume}");
    assert_eq!(metadata["annotations"]["pv.kubernetes.io/migrated-to"], driver, "{volume}");
    assert_eq!(metadata["annotations"]["volume.kubernetes.io/provisioner-deletion-secret-name"], "", "{volume}");
    assert_eq!(metadata["labels"], json!({ZONE: zone, REGION: region}), "{volume}");
    let demand = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let term = json!({"matchExpressions": [demand(ZONE, zone), demand(REGION, region)]});
    assert_eq!(spec["nodeAffinity"], json!({"required": {"nodeSelectorTerms": [term]}}), "{volume}");
    assert_eq!(spec.get("csi"), None, "{volume}");
}

/// The methods called on a driver.
fn called(driver: &FakeDriver) -> Vec<String> {
    driver.calls().iter().map(|call| text(&call["method"]).to_owned()).collect()
}
