//! Scheduler, binder and lifecycle controllers as processes, on a real API server and on the
//! embedded one, with kubectl; and our controllers with upstream's scheduler. The test acts as the
//! external provisioner. In the end every schedulable pod has a node that can access all its
//! volumes.

#[macro_use]
mod cluster;
mod kube_scheduler;
mod servers;

use std::collections::{BTreeMap, BTreeSet};

use cluster::Cluster;
use serde_json::{Value, json};
use servers::ApiServer;

const HOSTNAME: &str = "kubernetes.io/hostname";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const PROVISIONER_BEFORE: &str = "volume.beta.kubernetes.io/storage-provisioner";

/// Starts a cluster with our controllers and our scheduler.
fn start(api_server: ApiServer) -> Option<Cluster> {
    let mut cluster = with_controllers(api_server)?;
    cluster.add_bindery("scheduler", &["--scheduler-name=default-scheduler"]);
    Some(cluster)
}

/// Starts a cluster with our controllers and upstream's scheduler.
fn start_with_kube_scheduler() -> Option<Cluster> {
    let mut cluster = with_controllers(ApiServer::Real)?;
    cluster.add(kube_scheduler::start(&cluster.test_cluster));
    Some(cluster)
}

fn with_controllers(api_server: ApiServer) -> Option<Cluster> {
    let mut cluster = Cluster::new(api_server.start()?);
    cluster.add_bindery("controller", &[]);
    Some(cluster)
}

impl Cluster {
    fn create(&self, objects: &[Value]) {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.test_cluster
            .kubectl_with_input(&documents.join("\n---\n"), ["create", "-f", "-"])
            .expect("objects are created");
    }

    /// All objects of some kinds.
    fn all(&self, kinds: &str) -> Vec<Value> {
        let list = self.test_cluster.kubectl(["get", kinds, "-o", "json"]).expect("a list");
        let mut list: Value = serde_json::from_str(&list).expect("JSON");
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The nodes of the scheduled pods.
    fn nodes_by_pod(&self) -> BTreeMap<String, String> {
        let place =
            |pod: &Value| Some((text(pod, "/metadata/name"), pod.pointer("/spec/nodeName")?.as_str()?.to_owned()));
        self.all("pods").iter().filter_map(place).collect()
    }

    /// The output of `bindery explain`.
    fn explain(&self, target: &str) -> Value {
        let bindery = std::process::Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args(["explain", target, "-o", "json", "--kubeconfig"])
            .arg(self.test_cluster.kubeconfig())
            .output()
            .expect("bindery runs");
        serde_json::from_slice(&bindery.stdout).expect("JSON")
    }

    fn all_are_placed(&self, pods: usize) {
        self.eventually("all pods have a node", || self.nodes_by_pod().len() == pods);
    }

    /// The claims to provision, and their selected nodes.
    fn to_provision(&self) -> Vec<(Value, String)> {
        let asked = |claim: Value| {
            let annotations = claim.pointer("/metadata/annotations")?;
            annotations.get(PROVISIONER)?;
            let node = annotations.get(SELECTED_NODE)?.as_str()?.to_owned();
            claim.pointer("/spec/volumeName").is_none().then_some((claim, node))
        };
        self.all("pvc").into_iter().filter_map(asked).collect()
    }

    /// Provisions some of the requested volumes.
    fn provision(&self, at_most: usize) {
        let made: Vec<Value> = self.all("pv").iter().map(|volume| volume["spec"]["claimRef"]["uid"].clone()).collect();
        let asked = self.to_provision().into_iter().filter(|(claim, _)| !made.contains(&claim["metadata"]["uid"]));
        let volumes: Vec<Value> = asked.take(at_most).map(|(claim, node)| provisioned_for(&claim, &node)).collect();
        if !volumes.is_empty() {
            self.create(&volumes);
        }
    }

    /// Checks that every pod with claims has a node, and that each claim is bound to its own
    /// volume, which the node can access. Returns the number of volumes in use.
    fn is_sound(&self) -> usize {
        // A pod is scheduled before its claims are marked Bound.
        let is_bound = |claim: &Value| claim["spec"]["volumeName"].is_null() || claim["status"]["phase"] == "Bound";
        self.eventually("all claims are Bound", || self.all("pvc").iter().all(is_bound));
        let by_name = |objects: Vec<Value>| -> BTreeMap<String, Value> {
            objects.into_iter().map(|object| (text(&object, "/metadata/name"), object)).collect()
        };
        let (claims, volumes) = (by_name(self.all("pvc")), by_name(self.all("pv")));
        let mut used = BTreeMap::new();
        for pod in self.all("pods") {
            let (name, node) = (text(&pod, "/metadata/name"), text(&pod, "/spec/nodeName"));
            for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
                let Some(claim_name) = volume.pointer("/persistentVolumeClaim/claimName") else { continue };
                let claim = &claims[claim_name.as_str().expect("a name")];
                assert_eq!(claim["status"]["phase"], "Bound", "{claim_name} of {name}");
                let volume = &volumes[&text(claim, "/spec/volumeName")];
                assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"], "{claim_name} of {name}");
                assert_eq!(volume["status"]["phase"], "Bound", "{claim_name} of {name}");
                assert_eq!(host(volume), node, "{claim_name} of {name}");
                let other = used.insert(text(volume, "/metadata/name"), claim_name.clone());
                assert!(other.is_none_or(|other| other == *claim_name), "{volume} has two claims");
            }
        }
        used.len()
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The node that can access a volume.
fn host(volume: &Value) -> String {
    text(volume, "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0")
}

fn on(node: &str) -> Value {
    json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]})
}

fn node(name: &str, pods: usize) -> Value {
    let resources = json!({"cpu": "8", "memory": "16Gi", "pods": pods.to_string()});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "status": {"capacity": resources, "allocatable": resources},
    })
}

fn class(name: &str, provisioner: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

fn local(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "local": {"path": "/mnt/none"}, "nodeAffinity": {"required": on(node)},
        },
    })
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": class,
        },
    })
}

/// The volume that an external provisioner creates for a claim.
fn provisioned_for(claim: &Value, node: &str) -> Value {
    let (name, uid) = (text(claim, "/metadata/name"), text(claim, "/metadata/uid"));
    let claim_ref = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid,
    });
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": format!("pvc-{uid}"), "annotations": {"pv.kubernetes.io/provisioned-by": claim["metadata"]["annotations"][PROVISIONER]},
        },
        "spec": {
            "capacity": claim["spec"]["resources"]["requests"], "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": claim["spec"]["storageClassName"],
            "csi": {"driver": "example.com", "volumeHandle": name}, "claimRef": claim_ref,
            "nodeAffinity": {"required": on(node)},
        },
    })
}

/// A pod with claims. It tolerates the taint of new nodes, which no kubelet removes here.
fn pod(name: &str, claims: &[String]) -> Value {
    let volume = |claim: &String| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "db"}},
        "spec": {
            "containers": [{"name": "c", "image": "none"}], "tolerations": [{"operator": "Exists"}],
            "volumes": claims.iter().map(volume).collect::<Vec<_>>(),
        },
    })
}

/// Two equal local volumes on two nodes, and a pod that is restricted to one of them: nothing is
/// bound before the pod exists; then the claim is bound to the volume of the pod's node.
fn bound_on_the_node_of_its_pod(cluster: &Cluster) {
    let volumes = [local("v1", "n1"), local("v2", "n2")];
    let others =
        [node("n1", 10), node("n2", 10), class("local", "kubernetes.io/no-provisioner"), claim("data", "local")];
    cluster.create(&volumes);
    cluster.create(&others);
    // That this pod is scheduled shows that the scheduler runs, and has not touched the claim.
    cluster.create(&[pod("first", &[])]);
    cluster.all_are_placed(1);
    let reported =
        |event: &Value| event["reason"] == "WaitForFirstConsumer" && event["involvedObject"]["name"] == "data";
    cluster.eventually("the claim's wait is reported", || cluster.all("events").iter().any(reported));
    let is_available = |volume: &Value| volume["status"]["phase"] == "Available";
    cluster.eventually("the volumes are available", || cluster.all("pv").iter().all(is_available));
    let waiting = &cluster.all("pvc")[0];
    assert_eq!(waiting["status"]["phase"], "Pending", "no pod exists yet");
    assert_eq!(waiting["metadata"]["annotations"].get(SELECTED_NODE), None, "no pod exists yet");
    assert!(cluster.all("pv").iter().all(|volume| volume["spec"]["claimRef"].is_null()), "no pod exists yet");

    let mut pinned = pod("p", &["data".into()]);
    pinned["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": on("n2")}});
    cluster.create(&[pinned]);
    cluster.all_are_placed(2);
    assert_eq!(cluster.nodes_by_pod()["p"], "n2");
    assert_eq!(text(&cluster.all("pvc")[0], "/spec/volumeName"), "v2");
    assert_eq!(cluster.is_sound(), 1);
    assert!(cluster.all("pv").iter().any(|volume| volume["metadata"]["name"] == "v1" && is_available(volume)));
}

fn a_claim_is_bound_on_the_node_of_its_pod(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    bound_on_the_node_of_its_pod(&cluster);
}

/// Fifty pods with three claims each, and exactly as many local volumes: every pod gets three
/// volumes on one node.
fn every_local_volume_is_used(api_server: ApiServer) {
    const PODS: usize = 50;
    const NODES: usize = 5;
    const CLAIMS: usize = 3;
    let Some(cluster) = start(api_server) else { return };
    let mut objects = vec![class("local", "kubernetes.io/no-provisioner")];
    objects.extend((0..NODES).map(|n| node(&format!("n{n}"), 110)));
    objects.extend((0..PODS * CLAIMS).map(|n| local(&format!("v{n}"), &format!("n{}", n % NODES))));
    cluster.create(&objects);
    let name = |pod: usize, claim: usize| format!("c{pod}-{claim}");
    let claims = |pod| (0..CLAIMS).map(|claim| name(pod, claim)).collect::<Vec<_>>();
    let mut users: Vec<Value> = (0..PODS).flat_map(claims).map(|name| claim(&name, "local")).collect();
    users.extend((0..PODS).map(|n| pod(&format!("p{n}"), &claims(n))));
    cluster.create(&users);
    cluster.all_are_placed(PODS);
    assert_eq!(cluster.is_sound(), PODS * CLAIMS, "every volume is used");
}

/// Slow provisioning on nodes with capacity for exactly as many pods: capacity stays reserved for
/// pods that wait for their volumes.
fn capacity_is_reserved_during_slow_provisioning(api_server: ApiServer) {
    const PODS: usize = 50;
    const NODES: usize = 5;
    let Some(cluster) = start(api_server) else { return };
    let mut objects = vec![class("make", "example.com")];
    objects.extend((0..NODES).map(|n| node(&format!("n{n}"), PODS / NODES)));
    objects.extend((0..PODS).map(|n| claim(&format!("c{n}"), "make")));
    objects.extend((0..PODS).map(|n| pod(&format!("p{n}"), &[format!("c{n}")])));
    cluster.create(&objects);
    cluster.eventually("every claim has a node selected", || cluster.to_provision().len() == PODS);
    assert!(cluster.nodes_by_pod().is_empty(), "no pod is scheduled before its volume exists");
    // A later pod without claims does not take the reserved capacity.
    cluster.create(&[pod("late", &[])]);
    cluster.eventually("all pods have a node", || {
        cluster.provision(5);
        cluster.nodes_by_pod().len() == PODS
    });
    assert!(!cluster.nodes_by_pod().contains_key("late"), "the capacity was reserved for others");
    assert_eq!(cluster.is_sound(), PODS);
    cluster.test_cluster.kubectl(["delete", "pod/p0", "--force", "--grace-period=0"]).expect("a pod is deleted");
    cluster.eventually("the last pod is scheduled", || cluster.nodes_by_pod().contains_key("late"));
    assert_eq!(cluster.is_sound(), PODS - 1);
}

/// Fifty pods with anti-affinity on fifty nodes with one disk each: each gets its own node. A pod
/// that shares a claim with another fits only on its node, and waits until that pod is deleted.
fn anti_affinity_is_respected(api_server: ApiServer) {
    const NODES: usize = 50;
    let Some(cluster) = start(api_server) else { return };
    let apart = |name: &str, claim: &str| {
        let mut pod = pod(name, &[claim.into()]);
        let term = json!({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME});
        pod["spec"]["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        pod
    };
    let mut objects = vec![class("local", "kubernetes.io/no-provisioner")];
    for n in 0..NODES {
        objects.extend([node(&format!("n{n}"), 110), local(&format!("v{n}"), &format!("n{n}"))]);
        objects.push(claim(&format!("c{n}"), "local"));
    }
    objects.extend((0..NODES).map(|n| apart(&format!("p{n}"), &format!("c{n}"))));
    cluster.create(&objects);
    cluster.all_are_placed(NODES);
    let taken = || cluster.nodes_by_pod().into_values().collect::<BTreeSet<_>>();
    assert_eq!(taken().len(), NODES, "one pod per node");
    assert_eq!(cluster.is_sound(), NODES);
    cluster.create(&[apart("last", "c7")]);
    let reported =
        |pod: &Value| pod["metadata"]["name"] == "last" && pod["status"]["conditions"][0]["status"] == "False";
    cluster.eventually("the last pod's failure is reported", || cluster.all("pods").iter().any(reported));
    let explained = cluster.explain("pod/last");
    assert_eq!(explained["rule"], "schedule.unschedulable", "{explained}");
    let rows = &explained["matrix"]["rows"];
    assert_eq!((&rows[0]["similarNodes"], &rows[1]["similarNodes"]), (&json!(0), &json!(NODES - 2)), "{explained}");
    assert_eq!(explained["change"]["steps"], json!(["delete pod default/p7"]), "{explained}");
    let scheduler = cluster.programs.last().expect("the scheduler");
    let reported = scheduler.page("/debug/state.json?pod=default/last").expect("a page");
    let reported: Value = serde_json::from_str(&reported).expect("JSON");
    assert_eq!(reported["explanation"]["change"], explained["change"]);
    cluster.test_cluster.kubectl(["delete", "pod/p7", "--force", "--grace-period=0"]).expect("a pod is deleted");
    cluster.eventually("the last has a node", || cluster.nodes_by_pod().contains_key("last"));
    assert_eq!(taken().len(), NODES, "one pod per node");
    assert_eq!(cluster.is_sound(), NODES);
}

/// Provisioning fails on the first selected node: another node is selected, the volume is
/// provisioned there, and the pod is scheduled there. Returns both nodes.
fn provisioned_after_a_failure(cluster: &Cluster) -> (String, String) {
    let objects = [class("make", "example.com"), node("n1", 10), node("n2", 10), claim("data", "make")];
    cluster.create(&objects);
    cluster.create(&[pod("p", &["data".into()])]);
    let selected = || cluster.to_provision().into_iter().map(|(_, node)| node).next().unwrap_or_default();
    cluster.eventually("a node is selected", || !selected().is_empty());
    let first = selected();
    let annotations = &cluster.all("pvc")[0]["metadata"]["annotations"];
    for key in [PROVISIONER, PROVISIONER_BEFORE] {
        assert_eq!(annotations[key], "example.com");
    }
    assert!(cluster.nodes_by_pod().is_empty(), "the pod is not scheduled before its volume exists");
    cluster
        .test_cluster
        .kubectl(["annotate", "pvc/data", &format!("{SELECTED_NODE}-")])
        .expect("the selection is removed");
    cluster.eventually("a node is selected again", || !selected().is_empty());
    let second = selected();
    cluster.provision(1);
    cluster.all_are_placed(1);
    assert_eq!(cluster.nodes_by_pod()["p"], second);
    assert_eq!(cluster.is_sound(), 1);
    (first, second)
}

fn another_node_is_tried_after_a_provisioning_failure(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    let (first, second) = provisioned_after_a_failure(&cluster);
    assert_ne!(first, second, "the other node is tried");
}

/// With default flags, the scheduler places only the pods that name it: it spreads them over zones,
/// counts devices, publishes events under its name, and leaves the pods of kube-scheduler alone.
fn only_pods_that_name_the_scheduler_are_placed(api_server: ApiServer) {
    let Some(mut cluster) = with_controllers(api_server) else { return };
    cluster.add_bindery("scheduler", &[]);
    let in_zone = |name: &str, zone: &str, devices: usize| {
        let mut node = node(name, 10);
        node["metadata"]["labels"]["zone"] = zone.into();
        node["status"]["allocatable"]["example.com/device"] = devices.to_string().into();
        node
    };
    cluster.create(&[in_zone("n1", "a", 1), in_zone("n2", "a", 1), in_zone("n3", "b", 1)]);
    let spread = |name: &str| {
        let mut pod = pod(name, &[]);
        let device = json!({"example.com/device": "1"});
        pod["spec"]["schedulerName"] = "bindery-scheduler".into();
        pod["spec"]["containers"][0]["resources"] = json!({"requests": device, "limits": device});
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "db"}},
        }]);
        pod
    };
    cluster.create(&[pod("other", &[]), spread("p1"), spread("p2"), spread("p3")]);
    cluster.all_are_placed(3);
    let places = cluster.nodes_by_pod();
    assert_eq!(places.values().collect::<BTreeSet<_>>().len(), 3, "each has a device: {places:?}");
    assert!(!places.contains_key("other"));
    cluster.create(&[spread("p4")]);
    // The API server publishes warnings about its own Service on a slow start.
    let is_ours = |event: &Value| event["involvedObject"]["kind"] != "Service";
    let events = || cluster.all("events").into_iter().filter(is_ours).collect::<Vec<_>>();
    let failed = |event: &Value| event["reason"] == "FailedScheduling" && event["involvedObject"]["name"] == "p4";
    cluster.eventually("the last pod's failure is reported", || events().iter().any(failed));
    for event in events() {
        assert_eq!(event["source"]["component"], "bindery-scheduler", "{event}");
        assert_ne!(event["involvedObject"]["name"], "other", "{event}");
        assert!(!failed(&event) || text(&event, "/message").contains("3 Insufficient example.com/device"), "{event}");
    }
    let counted = "scheduler_pending_pods{queue=\"unschedulable\"} 1\n";
    cluster.eventually("the metric is counted", || {
        cluster.programs[1].page("/metrics").expect("metrics").contains(counted)
    });
    cluster.test_cluster.kubectl(["delete", "pod/p2", "--force", "--grace-period=0"]).expect("a pod is deleted");
    cluster.eventually("the last has a node", || cluster.nodes_by_pod().get("p4") == Some(&places["p2"]));
}

/// Our controllers with upstream's scheduler.
mod with_kube_scheduler {
    #[test]
    fn a_claim_is_bound_on_the_node_of_its_pod() {
        let Some(cluster) = crate::start_with_kube_scheduler() else { return };
        crate::bound_on_the_node_of_its_pod(&cluster);
    }

    #[test]
    fn a_node_is_selected_again() {
        let Some(cluster) = crate::start_with_kube_scheduler() else { return };
        // It may be the same node: upstream does not remember the failure.
        crate::provisioned_after_a_failure(&cluster);
    }
}

on_each_server!(
    a_claim_is_bound_on_the_node_of_its_pod,
    every_local_volume_is_used,
    capacity_is_reserved_during_slow_provisioning,
    anti_affinity_is_respected,
    another_node_is_tried_after_a_provisioning_failure,
    only_pods_that_name_the_scheduler_are_placed
);
