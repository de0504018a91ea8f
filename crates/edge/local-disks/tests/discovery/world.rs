//! A builder for the input of discovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bindery_local_disks::Config;
use bindery_local_disks::discover::{
    ClassContext, Decision, Entry, EntryDisk, ExistingVolumes, Identity, Owner, ScanResult, Shape, UnreadableEntry,
    discover,
};
use bindery_model::{Class, Name, Node, Volume};
use serde_json::{Value, json};

/// A directory of class `fast` on node `n` (host `host-n`), and existing volumes.
pub struct World {
    pub files: BTreeMap<String, String>,
    pub class: Option<Value>,
    pub node: Value,
    pub entries: Vec<ScanResult>,
    pub volumes: Vec<Value>,
    pub cleaning: BTreeSet<Name>,
    /// The disks of all classes.
    pub disks: Vec<EntryDisk>,
}

pub fn world() -> World {
    World {
        files: [("storageClassMap".to_owned(), "fast: {hostDir: /mnt/fast, mountDir: /seen}".to_owned())].into(),
        class: Some(json!({"metadata": {"name": "fast", "uid": "c"}, "provisioner": "kubernetes.io/no-provisioner"})),
        node: json!({"metadata": {"name": "n", "uid": "u", "labels": {"kubernetes.io/hostname": "host-n", "zone": "a"}}}),
        entries: Vec::new(),
        volumes: Vec::new(),
        cleaning: BTreeSet::new(),
        disks: Vec::new(),
    }
}

impl World {
    pub fn file(mut self, name: &str, text: &str) -> World {
        self.files.insert(name.into(), text.into());
        self
    }

    /// Adds keys to the class.
    pub fn with(self, keys: &str) -> World {
        let text = format!("fast: {{hostDir: /mnt/fast, mountDir: /seen, {keys}}}");
        self.file("storageClassMap", &text)
    }

    pub fn class(mut self, class: Option<Value>) -> World {
        self.class = class;
        self
    }

    pub fn entry(mut self, seen: Entry) -> World {
        self.entries.push(Ok(seen));
        self
    }

    pub fn unreadable(mut self, name: &str, problem: &str) -> World {
        self.entries.push(Err(UnreadableEntry { name: name.into(), problem: problem.into() }));
        self
    }

    pub fn volume(mut self, volume: Value) -> World {
        self.volumes.push(volume);
        self
    }

    /// Adds an entry for the disk with this number.
    pub fn disk(mut self, class: &str, entry: &str, number: u64) -> World {
        self.disks.push(EntryDisk { class: class.into(), entry: entry.into(), identity: Identity::Device(number) });
        self
    }

    pub fn config(&self) -> Config {
        Config::parse(&self.files).expect("a config")
    }

    pub fn node(&self) -> Node {
        Node::from_json(self.node.to_string().as_bytes()).expect("a node")
    }

    pub fn existing(&self) -> ExistingVolumes {
        ExistingVolumes::new(&self.node(), self.volumes.iter().map(|json| Arc::new(volume(json))))
    }

    /// The decisions.
    pub fn decide(&self) -> Vec<Decision> {
        let (config, node) = (self.config(), self.node());
        let class = self.class.as_ref().map(|json| Class::from_json(json.to_string().as_bytes()).expect("a class"));
        let context = ClassContext {
            config: &config,
            class_name: "fast",
            class_config: &config.classes["fast"],
            class: class.as_ref(),
            node: &node,
            owner: &Owner::new(&config, &node),
            existing: &self.existing(),
            cleaning: &self.cleaning,
            entries: &self.disks,
        };
        discover(&context, &self.entries)
    }
}

pub fn volume(json: &Value) -> Volume {
    Volume::from_json(json.to_string().as_bytes()).expect("a volume")
}

pub fn mounted(name: &str) -> Entry {
    Entry {
        name: name.into(),
        shape: Shape::Directory,
        is_mount_point: true,
        bytes: 20 << 30,
        is_empty: None,
        identity: None,
        root: None,
    }
}

pub fn device(name: &str) -> Entry {
    Entry { shape: Shape::Block, is_mount_point: false, ..mounted(name) }
}

/// A volume at a path on node `n`.
pub fn of(name: &str, provisioner: &str, path: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
        "spec": {
            "storageClassName": "fast",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-n"]}]}
            ]}},
        },
    })
}

/// The provisioner of node `n`.
pub const US: &str = "local-volume-provisioner-n-u";
