//! A notation for clusters: one object per line, its kind and name first, then words and
//! `key=value` pairs.
//!
//! ```text
//! claim data 1G wait                        a claim: its request, and its class (- for none)
//!       bound=v | named=v                   it is bound to a volume, or only names one
//!       node=n owner=uid v=2 lost deleting modes=RWX selector=key:value attributes=gold uid=u no-request beta
//! volume v 5G wait at=n1                    a volume: capacity, class, and the node that reaches it (nodeKey=n1)
//!       in=key:value,key:value              or nodes with one of these labels
//!       for=data                            it refers to a claim; with its UID unless named-only
//!       v=2 phase=Bound label=key:value attributes=gold modes=RWX source=gce:disk csi=driver:handle
//! node n1 nodeKey=n1                        a node and its labels
//! class wait wait|now|unset                 a class: when its claims are bound
//!       by=provisioner in=key:value         its provisioner, and allowed topologies
//! driver d capacity required                a CSI driver: publishes capacity, must be installed
//! capacity r fast 1Gi max=1Mi in=key:value  capacity of a class; for all nodes, or by label; for none with lost
//! csi n1 migrated=plugin drivers=d:5,e      the CSI drivers of a node
//! attached a d n1 v                         a VolumeAttachment: driver, node, volume
//! pod p claims=a,b own=c disks=gce:x:ro     a pod with claims, ephemeral volumes and disks; on=n1 if assigned
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_matching::INDEX_POLICY;
use bindery_model::{Claim, Kind, Name, Node, Object, Pod, Volume};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "testns";

/// A cluster, and its objects by name.
pub struct World {
    pub cache: Cache,
    pub claims: BTreeMap<Name, Arc<Claim>>,
    pub volumes: BTreeMap<Name, Arc<Volume>>,
    pub nodes: BTreeMap<Name, Arc<Node>>,
    pods: BTreeMap<Name, Arc<Pod>>,
}

/// The words of a line after its kind and name.
struct Words<'t>(Vec<&'t str>);

impl<'t> Words<'t> {
    /// The value of a key.
    fn get(&self, key: &str) -> Option<&'t str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn has(&self, flag: &str) -> bool {
        self.0.contains(&flag)
    }

    /// The n-th word that is not a pair.
    fn plain(&self, n: usize) -> &'t str {
        let mut plain = self.0.iter().filter(|word| !word.contains('='));
        plain.nth(n).copied().unwrap_or_default()
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &'t str> {
        self.get(key).into_iter().flat_map(|list| list.split(',')).filter(|item| !item.is_empty())
    }

    /// `key:value` pairs.
    fn pairs(&self, key: &str) -> Vec<(&'t str, &'t str)> {
        self.list(key).map(|pair| pair.rsplit_once(':').unwrap_or((pair, ""))).collect()
    }

    fn metadata(&self, name: &str) -> Value {
        let labels: serde_json::Map<String, Value> =
            self.pairs("label").into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let uid = self.get("uid").map_or_else(|| format!("uid-{name}"), str::to_owned);
        json!({"name": name, "uid": uid, "resourceVersion": self.get("v").unwrap_or("1"), "labels": labels})
    }
}

fn modes(words: &Words<'_>) -> Value {
    let name = |mode: &str| match mode {
        "RWX" => "ReadWriteMany",
        "ROX" => "ReadOnlyMany",
        "RWOP" => "ReadWriteOncePod",
        _ => "ReadWriteOnce",
    };
    words.get("modes").unwrap_or("RWO").split('+').map(name).collect::<Vec<_>>().into()
}

fn claim(name: &str, words: &Words<'_>) -> Value {
    let mut metadata = namespaced(name, words);
    if let Some(owner) = words.get("owner") {
        metadata["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
    }
    let mut annotations = serde_json::Map::new();
    if words.get("bound").is_some() {
        annotations.insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    }
    if let Some(node) = words.get("node") {
        annotations.insert("volume.kubernetes.io/selected-node".into(), node.into());
    }
    let class = Some(words.plain(1)).filter(|class| *class != "-");
    if words.has("beta") {
        annotations.insert("volume.beta.kubernetes.io/storage-class".into(), class.into());
    }
    metadata["annotations"] = annotations.into();
    if words.has("deleting") {
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let request = if words.has("no-request") { json!({}) } else { json!({"storage": words.plain(0)}) };
    let selector: Value = words
        .pairs("selector")
        .into_iter()
        .map(|(key, value)| json!({"key": key, "operator": "In", "values": if value.is_empty() { vec![] } else { vec![value] }}))
        .collect::<Vec<_>>()
        .into();
    json!({
        "metadata": metadata,
        "spec": {
            "accessModes": modes(words), "resources": {"requests": request},
            "storageClassName": class.filter(|_| !words.has("beta")),
            "volumeName": words.get("bound").or(words.get("named")),
            "volumeAttributesClassName": words.get("attributes"),
            "selector": words.get("selector").map(|_| json!({"matchExpressions": selector})),
        },
        "status": {"phase": if words.has("lost") { "Lost" } else { "Pending" }},
    })
}

/// A node affinity: a node needs one of the labels.
fn affinity(words: &Words<'_>) -> Option<Value> {
    let mut pairs = words.pairs("in");
    pairs.extend(words.get("at").map(|node| ("nodeKey", node)));
    let term =
        |(key, value): &(&str, &str)| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
    let terms: Vec<Value> = pairs.iter().map(term).collect();
    (!terms.is_empty()).then(|| json!({"required": {"nodeSelectorTerms": terms}}))
}

fn volume(name: &str, words: &Words<'_>, claims: &BTreeMap<Name, Arc<Claim>>) -> Value {
    let mut metadata = words.metadata(name);
    let claim_ref = words.get("for").map(|claim| {
        let uid = claims.get(claim).map_or("uid-gone", |claim| &claim.meta.uid);
        json!({"name": claim, "namespace": NAMESPACE, "uid": if words.has("named-only") { "" } else { uid }})
    });
    if claim_ref.is_some() && !words.has("named-only") {
        metadata["annotations"] = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    }
    let mut spec = json!({
        "capacity": {"storage": words.plain(0)}, "accessModes": modes(words), "claimRef": claim_ref,
        "storageClassName": Some(words.plain(1)).filter(|class| *class != "-"),
        "volumeAttributesClassName": words.get("attributes"), "nodeAffinity": affinity(words),
    });
    if let Some((driver, handle)) = words.get("csi").and_then(|csi| csi.split_once(':')) {
        spec["csi"] = json!({"driver": driver, "volumeHandle": handle});
    }
    if let Some((kind, id)) = words.get("source").and_then(|source| source.split_once(':')) {
        let (key, source) = disk(kind, id);
        spec[key] = source;
    }
    json!({"metadata": metadata, "spec": spec, "status": {"phase": words.get("phase").unwrap_or("Available")}})
}

/// A disk of a kind, `id` or `id:ro`, in a volume or a pod.
fn disk(kind: &str, id: &str) -> (&'static str, Value) {
    let (id, read_only) = id.strip_suffix(":ro").map_or((id, false), |id| (id, true));
    match kind {
        "gce" => ("gcePersistentDisk", json!({"pdName": id, "readOnly": read_only})),
        "aws" => ("awsElasticBlockStore", json!({"volumeID": id, "readOnly": read_only})),
        "azure" => ("azureDisk", json!({"diskURI": id})),
        "blob" => ("azureDisk", json!({"diskURI": id, "kind": "Dedicated"})),
        "cinder" => ("cinder", json!({"volumeID": id})),
        "iscsi" => ("iscsi", json!({"iqn": id, "readOnly": read_only})),
        _ => {
            let (monitors, image) = id.split_once('/').expect("monitors/image");
            let monitors: Vec<&str> = monitors.split('+').collect();
            ("rbd", json!({"monitors": monitors, "image": image, "readOnly": read_only}))
        }
    }
}

fn class(name: &str, words: &Words<'_>) -> Value {
    let mode = match words.plain(0) {
        "wait" => Some("WaitForFirstConsumer"),
        "now" => Some("Immediate"),
        _ => None,
    };
    let terms: Vec<Value> = words
        .pairs("in")
        .into_iter()
        .map(|(key, value)| json!({"matchLabelExpressions": [{"key": key, "values": [value]}]}))
        .collect();
    let provisioner = words.get("by").unwrap_or("kubernetes.io/no-provisioner");
    json!({
        "metadata": words.metadata(name), "provisioner": provisioner,
        "volumeBindingMode": mode, "allowedTopologies": terms,
    })
}

fn capacity(name: &str, words: &Words<'_>) -> Value {
    let labels: serde_json::Map<String, Value> =
        words.pairs("in").into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let size = Some(words.plain(1)).filter(|size| !size.is_empty() && *size != "lost" && *size != "-");
    let nodes = (!words.has("lost")).then(|| json!({"matchLabels": labels}));
    json!({
        "metadata": namespaced(name, words), "storageClassName": words.plain(0), "capacity": size,
        "maximumVolumeSize": words.get("max"), "nodeTopology": nodes,
    })
}

fn csi_node(name: &str, words: &Words<'_>) -> Value {
    let driver = |(name, count): (&str, &str)| match count.parse::<i64>() {
        Ok(count) => json!({"name": name, "allocatable": {"count": count}}),
        Err(_) => json!({"name": name}),
    };
    let drivers: Vec<Value> = words.pairs("drivers").into_iter().map(driver).collect();
    let mut metadata = words.metadata(name);
    metadata["annotations"] = json!({"storage.alpha.kubernetes.io/migrated-plugins": words.get("migrated")});
    if words.get("migrated").is_none() {
        metadata["annotations"] = json!({});
    }
    json!({"metadata": metadata, "spec": {"drivers": drivers}})
}

fn pod(name: &str, words: &Words<'_>) -> Value {
    let claims = words.list("claims").map(|claim| json!({"name": "x", "persistentVolumeClaim": {"claimName": claim}}));
    let own = words.list("own").map(|volume| json!({"name": volume, "ephemeral": {}}));
    let disks = words.list("disks").map(|text| {
        let (kind, id) = text.split_once(':').expect("kind:id");
        let (key, source) = disk(kind, id);
        json!({"name": "x", key: source})
    });
    let other = words.has("scratch").then(|| json!({"name": "x", "emptyDir": {}}));
    let volumes: Vec<Value> = claims.chain(own).chain(disks).chain(other).collect();
    json!({"metadata": namespaced(name, words), "spec": {"volumes": volumes, "nodeName": words.get("on")}})
}

/// The metadata of an object in the namespace of the tests.
fn namespaced(name: &str, words: &Words<'_>) -> Value {
    let mut metadata = words.metadata(name);
    metadata["namespace"] = NAMESPACE.into();
    metadata
}

fn node(name: &str, words: &Words<'_>) -> Value {
    let labels = words.0.iter().filter_map(|word| word.split_once('='));
    let labels: serde_json::Map<String, Value> = labels.map(|(key, value)| (key.to_owned(), value.into())).collect();
    json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "labels": labels}})
}

impl World {
    /// A cluster with the objects of these lines. Blank lines are ignored.
    pub fn new(text: &str) -> World {
        let mut world = World {
            cache: Cache::new(INDEX_POLICY),
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
        };
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|line| !line.is_empty())
            .collect();
        // Claims first: volumes refer to them by UID.
        for pass in [true, false] {
            for line in lines.iter().filter(|line| (line[0] == "claim") == pass) {
                let (kind, json) = world.object(line[0], line[1], &Words(line[2..].to_vec()));
                world.put(Object::from_json(kind, json.to_string().as_bytes()).expect("a name"));
            }
        }
        world
    }

    /// Adds an object, or replaces it.
    pub fn put(&mut self, object: Object) {
        let name = object.meta().name.clone();
        if let Some(claim) = object.get::<Claim>() {
            self.claims.insert(name, claim.clone());
        } else if let Some(volume) = object.get::<Volume>() {
            self.volumes.insert(name, volume.clone());
        } else if let Some(node) = object.get::<Node>() {
            self.nodes.insert(name, node.clone());
        } else if let Some(pod) = object.get::<Pod>() {
            self.pods.insert(name, pod.clone());
        }
        self.cache.answered(object);
    }

    fn object(&self, kind: &str, name: &str, words: &Words<'_>) -> (Kind, Value) {
        match kind {
            "claim" => (Kind::Claim, claim(name, words)),
            "volume" => (Kind::Volume, volume(name, words, &self.claims)),
            "class" => (Kind::Class, class(name, words)),
            "node" => (Kind::Node, node(name, words)),
            "driver" => {
                let spec = json!({
                    "storageCapacity": words.has("capacity"),
                    "preventPodSchedulingIfMissing": words.has("required"),
                });
                (Kind::CsiDriver, json!({"metadata": words.metadata(name), "spec": spec}))
            }
            "capacity" => (Kind::Capacity, capacity(name, words)),
            "csi" => (Kind::CsiNode, csi_node(name, words)),
            "attached" => {
                let source = json!({"persistentVolumeName": words.plain(2)});
                let spec = json!({"attacher": words.plain(0), "nodeName": words.plain(1), "source": source});
                (Kind::Attachment, json!({"metadata": words.metadata(name), "spec": spec}))
            }
            "pod" => (Kind::Pod, pod(name, words)),
            other => panic!("{other:?} is not a kind"),
        }
    }

    /// The pod to schedule: the only one without a node.
    pub fn pod(&self) -> &Pod {
        self.pods.values().find(|pod| pod.node.is_empty()).expect("a pod without a node")
    }

    /// The first node by name.
    pub fn node(&self) -> &Node {
        self.nodes.values().next().expect("a node")
    }

    pub fn claim_named(&self, name: &str) -> &Arc<Claim> {
        self.claims.get(name).unwrap_or_else(|| panic!("no claim {name}"))
    }
}
