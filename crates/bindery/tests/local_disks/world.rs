//! A cluster of one node that has real disks.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use serde_json::{Value, json};

use crate::machine::{FILE_SYSTEMS, Machine};
use crate::servers::{self, ApiServer};

/// The command whose role in deploy/ applies.
const PART: &str = "local";
const NODE: &str = "n1";
/// The classes with their volume modes.
const CLASSES: [(&str, &str); 2] = [("disks", "Filesystem"), ("raw", "Block")];

pub struct World {
    pub machine: Machine,
    test_cluster: TestCluster,
    deciders: Vec<Running>,
    /// The observed volumes by name: their UIDs, and whether they may contain data.
    seen: BTreeMap<String, String>,
}

impl World {
    /// Starts a cluster whose classes have these additional keys.
    pub fn start(api_server: ApiServer, keys: &str) -> Option<World> {
        let machine = Machine::for_test()?;
        let test_cluster = api_server.start()?;
        let start = |command: &[&str]| {
            let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
            let args = [command, &[&kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"]].concat();
            test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
        };
        let deciders = [&["controller"][..], &["scheduler", "--scheduler-name=default-scheduler"]].map(start).into();
        let world = World { machine, test_cluster, deciders, seen: BTreeMap::new() };
        world.configure(keys);
        let resources = json!({"cpu": "8", "memory": "16Gi", "pods": "100"});
        let labels = json!({"kubernetes.io/hostname": NODE});
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels},
            "status": {"capacity": resources, "allocatable": resources},
        });
        let class = |(name, _)| {
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
            })
        };
        world.create(&[&[node], &CLASSES.map(class)[..]].concat());
        Some(world)
    }

    fn configure(&self, keys: &str) {
        let class = |((name, mode), directory): ((&str, &str), &PathBuf)| {
            format!("{name}: {{hostDir: {0}, mountDir: {0}, volumeMode: {mode}{keys}}}\n", directory.display())
        };
        let classes: String = CLASSES.into_iter().zip(&self.machine.directories).map(class).collect();
        fs::create_dir_all(self.config()).expect("made");
        fs::write(self.config().join("storageClassMap"), classes).expect("written");
    }

    fn config(&self) -> PathBuf {
        self.machine.folder().join("config")
    }

    fn create(&self, objects: &[Value]) {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.test_cluster
            .kubectl_with_input(&documents.join("\n---\n"), ["create", "-f", "-"])
            .expect("objects are created");
    }

    pub fn provisioner(&self) -> Running {
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&self.test_cluster, PART).display());
        let config = format!("--config={}", self.config().display());
        let node = format!("--node-name={NODE}");
        let fast = ["--discovery-period=50ms", "--listen-address=127.0.0.1:0"];
        let args = [&["provisioner", "local", "-v=4", &kubeconfig, &config, &node], &fast[..]].concat();
        self.test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the provisioner starts")
    }

    /// All volumes by name. A volume with a new UID was just published, so its disk must be clean.
    fn volumes(&mut self) -> BTreeMap<String, Value> {
        let list = self.test_cluster.kubectl(["get", "pv", "-o", "json"]).expect("a list");
        let mut list: Value = serde_json::from_str(&list).expect("JSON");
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let volumes: BTreeMap<String, Value> = items.into_iter().map(|v| (text(&v, "/metadata/name"), v)).collect();
        for (name, volume) in &volumes {
            let uid = text(volume, "/metadata/uid");
            if self.seen.insert(name.clone(), uid.clone()) != Some(uid) {
                let path = PathBuf::from(text(volume, "/spec/local/path"));
                assert!(self.machine.is_clean(&path), "{} is published, but not clean", path.display());
            }
        }
        volumes
    }

    pub fn eventually(&mut self, what: &str, mut holds: impl FnMut(&mut World) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let logs: Vec<String> = self.deciders.iter().map(|decider| decider.log()).collect();
            let tail = |log: &String| log.lines().rev().take(20).collect::<Vec<_>>().join("\n");
            let tails: Vec<String> = logs.iter().map(tail).collect();
            assert!(started.elapsed() < TIMEOUT, "timed out: {what}\n{}", tails.join("\n\n"));
            sleep(Duration::from_millis(50));
        }
    }

    fn are_published(&mut self) -> bool {
        let volumes = self.volumes();
        let is_offered =
            |volume: &Value| volume["status"]["phase"] == "Available" && volume["spec"]["claimRef"].is_null();
        volumes.len() == FILE_SYSTEMS.len() + 1 && volumes.values().all(is_offered)
    }

    /// Starts a provisioner, and waits until it has logged this.
    pub fn provisioner_that_logs(&mut self, words: &str) -> Running {
        let provisioner = self.provisioner();
        self.eventually(words, |_| provisioner.log().contains(words));
        provisioner
    }

    /// The disks that have a volume.
    pub fn published(&mut self) -> Vec<String> {
        let entry = |volume: &Value| text(volume, "/spec/local/path").rsplit('/').next().unwrap_or_default().to_owned();
        let mut entries: Vec<String> = self.volumes().values().map(entry).collect();
        entries.sort();
        entries
    }

    /// Runs a provisioner until it has logged this many lines, then kills it. Returns whether it
    /// logged so many: not if all is done before and it is idle.
    pub fn provisioner_until(&mut self, lines: usize) -> bool {
        let mut provisioner = self.provisioner();
        let started = Instant::now();
        loop {
            // Polled without a pause, to kill it in the middle of an operation.
            if provisioner.log().lines().count() >= lines {
                provisioner.kill().expect("killed");
                return true;
            }
            // Rarely, because a query takes longer than the operations to interrupt.
            if started.elapsed() > Duration::from_secs(5) && self.are_published() {
                return false;
            }
            assert!(started.elapsed() < TIMEOUT, "timed out: {lines} lines\n{}", provisioner.log());
        }
    }

    /// Two concurrent provisioners, as during a rolling update, publish all disks.
    pub fn publish_all(&mut self) {
        let two = [self.provisioner(), self.provisioner()];
        self.deciders.extend(two);
        self.eventually("all disks are published", World::are_published);
        self.deciders.truncate(2);
    }

    /// Every disk is bound by a pod, and written to, whether or not a provisioner runs.
    pub fn bind_and_write(&mut self) {
        let disks = FILE_SYSTEMS.map(|(name, _)| (name, CLASSES[0])).into_iter().chain([("device", CLASSES[1])]);
        let objects: Vec<Value> =
            disks.flat_map(|(name, (class, mode))| [claim(name, class, mode), pod(name, mode)]).collect();
        self.create(&objects);
        self.deciders.push(self.provisioner());
        self.eventually("all disks are bound", |world| {
            let volumes = world.volumes();
            volumes.len() == FILE_SYSTEMS.len() + 1 && volumes.values().all(|v| v["status"]["phase"] == "Bound")
        });
        self.eventually("all pods have their node", |world| {
            let nodes =
                world.test_cluster.kubectl(["get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"]).expect("pods");
            nodes.split_whitespace().filter(|node| *node == NODE).count() == FILE_SYSTEMS.len() + 1
        });
        for volume in self.volumes().values() {
            self.machine.write(&PathBuf::from(text(volume, "/spec/local/path")));
        }
        self.deciders.pop();
    }

    /// Deletes the pods and claims while no provisioner runs: the volumes are Released, with their
    /// data.
    pub fn release(&mut self) {
        let forced = ["delete", "pods", "--all", "--force", "--grace-period=0"];
        self.test_cluster.kubectl(forced).expect("pods are deleted");
        self.test_cluster.kubectl(["delete", "pvc", "--all", "--wait=false"]).expect("claims are deleted");
        self.eventually("all disks are released", |world| {
            world.volumes().values().all(|volume| volume["status"]["phase"] == "Released")
        });
        for volume in self.volumes().values() {
            let path = PathBuf::from(text(volume, "/spec/local/path"));
            assert!(self.machine.is_intact(&path), "{} still has its data", path.display());
        }
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn claim(name: &str, class: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}},
            "storageClassName": class, "volumeMode": mode,
        },
    })
}

/// A pod with a claim. It tolerates the taint of new nodes, which no kubelet removes here.
fn pod(name: &str, mode: &str) -> Value {
    let (field, path) = if mode == "Block" { ("volumeDevices", "devicePath") } else { ("volumeMounts", "mountPath") };
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "none", field: [{"name": "v", path: "/v"}]}],
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
        },
    })
}
