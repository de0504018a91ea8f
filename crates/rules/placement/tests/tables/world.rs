//! A world written down: one object a line, its kind and name first, then words and `key=value` pairs.
//!
//! ```text
//! claim data 1G wait                        a claim: what it asks for, and its class (- for none)
//!       bound=v | named=v                   it is bound to a volume, or only names one
//!       node=n owner=uid v=2 lost deleting modes=RWX selector=key:value attributes=gold uid=u no-request beta
//! volume v 5G wait at=n1                    a volume: what it holds, its class, and the node it is reached from (nodeKey=n1)
//!       in=key:value,key:value              or nodes with one of these labels
//!       for=data                            it points at a claim; with its UID unless named-only
//!       v=2 phase=Bound label=key:value attributes=gold modes=RWX source=gce:disk csi=driver:handle
//! node n1 nodeKey=n1                        a node and its labels
//! class wait wait|now|unset                 a class: when its claims are bound
//!       by=provisioner in=key:value         who makes its volumes, and where
//! driver d tells installed                  a CSI driver: whether it tells capacities, and must be installed
//! room r fast 1Gi max=1Mi in=key:value      room for volumes of a class; anywhere, or on nodes with a label; nowhere with lost
//! csi n1 migrated=plugin drivers=d:5,e      the CSI drivers of a node
//! attached a d n1 v                         what is attached where, by whom
//! pod p claims=a,b own=c disks=gce:x:ro     a pod; on=n1 when it has a node
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_cache::{CapacityIndex, TopologyIndex};
use bindery_model::{
    Attachment, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, Meta, Name, Node, Pod, PodKey, Volume,
};
use bindery_placement::{User, View};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "testns";

#[derive(Default)]
pub struct World {
    pub claims: BTreeMap<ClaimKey, Arc<Claim>>,
    pub volumes: BTreeMap<Name, Arc<Volume>>,
    pub nodes: BTreeMap<Name, Arc<Node>>,
    pub pods: BTreeMap<Name, Pod>,
    owners: BTreeMap<ClaimKey, Name>,
    classes: BTreeMap<Name, Arc<Class>>,
    drivers: BTreeMap<Name, Arc<CsiDriver>>,
    csi_nodes: BTreeMap<Name, Arc<CsiNode>>,
    attachments: Vec<Arc<Attachment>>,
    reach: TopologyIndex,
    room: CapacityIndex,
}

/// The words of a line behind its kind and name.
struct Words<'t>(Vec<&'t str>);

impl<'t> Words<'t> {
    /// The value of a key.
    fn get(&self, key: &str) -> Option<&'t str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn has(&self, flag: &str) -> bool {
        self.0.contains(&flag)
    }

    /// The n-th word that is no pair.
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

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

fn claim(name: &str, words: &Words<'_>) -> Claim {
    let mut metadata = words.metadata(name);
    metadata["namespace"] = NAMESPACE.into();
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
    let json = json!({
        "metadata": metadata,
        "spec": {
            "accessModes": modes(words), "resources": {"requests": request},
            "storageClassName": class.filter(|_| !words.has("beta")),
            "volumeName": words.get("bound").or(words.get("named")),
            "volumeAttributesClassName": words.get("attributes"),
            "selector": words.get("selector").map(|_| json!({"matchExpressions": selector})),
        },
        "status": {"phase": if words.has("lost") { "Lost" } else { "Pending" }},
    });
    Claim::from_json(&bytes(&json)).expect("a claim")
}

/// The JSON of a node affinity: one of the labels will do.
fn affinity(words: &Words<'_>) -> Option<Value> {
    let mut pairs = words.pairs("in");
    pairs.extend(words.get("at").map(|node| ("nodeKey", node)));
    let term =
        |(key, value): &(&str, &str)| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
    let terms: Vec<Value> = pairs.iter().map(term).collect();
    (!terms.is_empty()).then(|| json!({"required": {"nodeSelectorTerms": terms}}))
}

fn volume(name: &str, words: &Words<'_>, claims: &BTreeMap<ClaimKey, Arc<Claim>>) -> Volume {
    let mut metadata = words.metadata(name);
    let claim_ref = words.get("for").map(|claim| {
        let uid = claims.get(&ClaimKey::new(NAMESPACE, claim)).map_or("uid-gone", |claim| &claim.meta.uid);
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
    let json =
        json!({"metadata": metadata, "spec": spec, "status": {"phase": words.get("phase").unwrap_or("Available")}});
    Volume::from_json(&bytes(&json)).expect("a volume")
}

/// The JSON of a disk of a kind, `id` or `id:ro`, in a volume or a pod.
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

fn class(name: &str, words: &Words<'_>) -> Class {
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
    let json = json!({"metadata": words.metadata(name), "provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": terms});
    Class::from_json(&bytes(&json)).expect("a class")
}

fn room(name: &str, words: &Words<'_>) -> Capacity {
    let labels: serde_json::Map<String, Value> =
        words.pairs("in").into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let size = Some(words.plain(1)).filter(|size| !size.is_empty() && *size != "lost" && *size != "-");
    let nodes = (!words.has("lost")).then(|| json!({"matchLabels": labels}));
    let json = json!({
        "metadata": words.metadata(name), "storageClassName": words.plain(0), "capacity": size,
        "maximumVolumeSize": words.get("max"), "nodeTopology": nodes,
    });
    Capacity::from_json(&bytes(&json)).expect("room")
}

fn csi_node(name: &str, words: &Words<'_>) -> CsiNode {
    let driver = |(name, count): (&str, &str)| match count.parse::<i64>() {
        Ok(count) => json!({"name": name, "allocatable": {"count": count}}),
        Err(_) => json!({"name": name}),
    };
    let drivers: Vec<Value> = words.pairs("drivers").into_iter().map(driver).collect();
    let json = json!({"metadata": words.metadata(name), "spec": {"drivers": drivers}});
    let mut node = CsiNode::from_json(&bytes(&json)).expect("a CSI node");
    node.migrated = words.list("migrated").map(Name::from).collect();
    node
}

fn pod(name: &str, words: &Words<'_>) -> Pod {
    let claims = words.list("claims").map(|claim| json!({"name": "x", "persistentVolumeClaim": {"claimName": claim}}));
    let own = words.list("own").map(|volume| json!({"name": volume, "ephemeral": {}}));
    let disks = words.list("disks").map(|text| {
        let (kind, id) = text.split_once(':').expect("kind:id");
        let (key, source) = disk(kind, id);
        json!({"name": "x", key: source})
    });
    let other = words.has("scratch").then(|| json!({"name": "x", "emptyDir": {}}));
    let volumes: Vec<Value> = claims.chain(own).chain(disks).chain(other).collect();
    let mut metadata = words.metadata(name);
    metadata["namespace"] = NAMESPACE.into();
    let json = json!({"metadata": metadata, "spec": {"volumes": volumes, "nodeName": words.get("on")}});
    Pod::from_json(&bytes(&json)).expect("a pod")
}

impl World {
    /// A world of these lines. Blank lines are passed over.
    pub fn new(text: &str) -> World {
        let mut world = World::default();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|line| !line.is_empty())
            .collect();
        // Claims first: volumes point at them.
        for pass in [true, false] {
            for line in lines.iter().filter(|line| (line[0] == "claim") == pass) {
                world.add(line[0], line[1], &Words(line[2..].to_vec()));
            }
        }
        for volume in world.volumes.values().filter(|volume| TopologyIndex::includes(volume)) {
            world.reach.insert(volume);
        }
        world
    }

    fn add(&mut self, kind: &str, name: &str, words: &Words<'_>) {
        match kind {
            "claim" => {
                let claim = Arc::new(claim(name, words));
                if let Some(owner) = words.get("owner") {
                    self.owners.insert(claim.key(), owner.into());
                }
                self.claims.insert(claim.key(), claim);
            }
            "volume" => {
                let volume = volume(name, words, &self.claims);
                self.volumes.insert(name.into(), Arc::new(volume));
            }
            "class" => {
                self.classes.insert(name.into(), Arc::new(class(name, words)));
            }
            "node" => {
                let labels = words.0.iter().filter_map(|word| word.split_once('='));
                let labels = labels.map(|(key, value)| (Name::from(key), Name::from(value))).collect();
                let meta = Meta { name: name.into(), ..Meta::default() };
                self.nodes.insert(name.into(), Arc::new(Node { meta, labels, ..Node::default() }));
            }
            "driver" => {
                let spec = json!({"storageCapacity": words.has("tells"), "preventPodSchedulingIfMissing": words.has("installed")});
                let json = json!({"metadata": words.metadata(name), "spec": spec});
                self.drivers.insert(name.into(), Arc::new(CsiDriver::from_json(&bytes(&json)).expect("a driver")));
            }
            "room" => self.room.insert(&Arc::new(room(name, words))),
            "csi" => {
                self.csi_nodes.insert(name.into(), Arc::new(csi_node(name, words)));
            }
            "attached" => {
                let spec = json!({"attacher": words.plain(0), "nodeName": words.plain(1), "source": {"persistentVolumeName": words.plain(2)}});
                let json = json!({"metadata": words.metadata(name), "spec": spec});
                self.attachments.push(Arc::new(Attachment::from_json(&bytes(&json)).expect("an attachment")));
            }
            "pod" => {
                self.pods.insert(name.into(), pod(name, words));
            }
            other => panic!("{other:?} is no kind"),
        }
    }

    /// The pod that is to be placed: the only one without a node.
    pub fn pod(&self) -> User<'_> {
        let mut unplaced = self.pods.values().filter(|pod| pod.node.is_empty());
        let pod = unplaced.next().expect("a pod without a node");
        User::of(pod)
    }

    pub fn claim_named(&self, name: &str) -> &Arc<Claim> {
        self.claims.get(&ClaimKey::new(NAMESPACE, name)).unwrap_or_else(|| panic!("there is a claim {name}"))
    }
}

impl View for World {
    fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        self.claims.get(key)
    }

    fn controller_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Name> {
        self.owners.get(&claim.key())
    }

    fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.volumes.get(name)
    }

    fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>> {
        let claim = claim.clone();
        self.volumes.values().filter(move |volume| volume.claim_ref.as_ref().is_some_and(|named| named.key == claim))
    }

    fn class(&self, name: &Name) -> Option<&Arc<Class>> {
        self.classes.get(name)
    }

    fn node(&self, name: &Name) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    fn reach(&self) -> &TopologyIndex {
        &self.reach
    }

    fn room(&self) -> &CapacityIndex {
        &self.room
    }

    fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>> {
        self.drivers.get(name)
    }

    fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>> {
        self.csi_nodes.get(node)
    }

    fn attachments(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>> {
        let node = node.clone();
        self.attachments.iter().filter(move |attachment| attachment.node == node)
    }

    fn users_on(&self, node: &Name) -> impl Iterator<Item = User<'_>> {
        let node = node.clone();
        let there = self.pods.values().filter(move |pod| pod.node == node);
        there.map(User::of)
    }

    fn is_used(&self, claim: &ClaimKey, besides: &PodKey) -> bool {
        let mut placed = self.pods.values().filter(|pod| !pod.node.is_empty() && pod.meta.name != besides.name);
        placed.any(|pod| User::of(pod).claims().any(|(key, _)| key == *claim))
    }

    fn has_pod(&self, pod: &PodKey, uid: &Name) -> bool {
        pod.namespace == NAMESPACE && self.pods.get(&pod.name).is_some_and(|known| known.meta.uid == *uid)
    }
}
