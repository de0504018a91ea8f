//! Objects in a map, and a claim to prepare.

use std::collections::{BTreeMap, BTreeSet};

use bindery_csi::{Capabilities, Facts, Patch, ReadResult, Setup, Step, WriteResult, next};
use bindery_model::ClaimKey;
use bindery_provisioner_sdk::{Accessibility, Failure, FailureEffect, ProvisionContext, ProvisionRequest};
use serde_json::{Value, json};

/// The state before preparation.
#[derive(Clone)]
pub struct World {
    setup: Setup,
    claim: Value,
    class: Value,
    topology: Result<Option<Accessibility>, Failure>,
    objects: BTreeMap<String, Value>,
    forbidden: BTreeSet<String>,
    busy: BTreeMap<String, usize>,
}

/// The result of preparation, and what was read and written.
pub struct Outcome {
    pub result: Result<Value, Failure>,
    pub read: Vec<String>,
    pub written: Vec<Patch>,
}

/// A claim for 1.5Gi, a class, and a driver with all capabilities.
pub fn world() -> World {
    let capabilities = Capabilities {
        controller_service: true,
        topology: true,
        create_delete_volume: true,
        create_delete_snapshot: true,
        clone_volume: true,
        single_node_multi_writer: true,
        modify_volume: true,
        publish_unpublish_volume: false,
        get_capacity: false,
    };
    let setup = Setup {
        driver: "d.example.com".into(),
        identity: "id".into(),
        capabilities,
        default_fs_type: "ext4".into(),
        keep_volume_mode: true,
        attributes_classes: true,
        ..Setup::default()
    };
    let claim = json!({
        "metadata": {"name": "c", "namespace": "ns", "uid": "1", "annotations": {"team": "blue"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "k", "resources": {"requests": {"storage": "1.5Gi"}}},
    });
    let class = json!({"metadata": {"name": "k"}, "provisioner": "d.example.com"});
    World {
        setup,
        claim,
        class,
        topology: Ok(None),
        objects: BTreeMap::new(),
        forbidden: BTreeSet::new(),
        busy: BTreeMap::new(),
    }
}

pub fn failed(after: FailureEffect, error: &str) -> Failure {
    Failure { error: error.into(), effect: after }
}

/// Sets a field, or removes it with null. Missing parents are created.
pub fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, field) = path.rsplit_once('/').expect("a path");
    let parent = match parent {
        "" => object,
        parent => {
            if object.pointer(parent).is_none() {
                set(object, parent, json!({}));
            }
            object.pointer_mut(parent).expect("just created")
        }
    };
    let fields = parent.as_object_mut().expect("an object");
    let field = field.replace("~1", "/");
    if value.is_null() {
        fields.remove(&field);
    } else {
        fields.insert(field, value);
    }
}

impl World {
    pub fn claim(mut self, path: &str, value: Value) -> World {
        set(&mut self.claim, path, value);
        self
    }

    pub fn class(mut self, path: &str, value: Value) -> World {
        set(&mut self.class, path, value);
        self
    }

    pub fn setup(mut self, change: impl FnOnce(Setup) -> Setup) -> World {
        self.setup = change(self.setup);
        self
    }

    pub fn capabilities(mut self, change: impl FnOnce(&mut Capabilities)) -> World {
        change(&mut self.setup.capabilities);
        self
    }

    pub fn topology(mut self, topology: Result<Option<Accessibility>, Failure>) -> World {
        self.topology = topology;
        self
    }

    pub fn object(mut self, path: &str, object: Value) -> World {
        self.objects.insert(path.into(), object);
        self
    }

    /// Changes an object.
    pub fn change(mut self, path: &str, field: &str, value: Value) -> World {
        set(self.objects.get_mut(path).expect("the object exists"), field, value);
        self
    }

    /// Makes an object read-only.
    pub fn forbid(mut self, path: &str) -> World {
        self.forbidden.insert(path.into());
        self
    }

    /// Makes the first writes of an object conflict.
    pub fn busy(mut self, path: &str, times: usize) -> World {
        self.busy.insert(path.into(), times);
        self
    }

    /// Prepares, step by step.
    pub fn prepare(&self) -> Outcome {
        let order = ProvisionRequest {
            claim: ClaimKey::new("ns", "c"),
            uid: "1".into(),
            class: "k".into(),
            class_version: 0,
            version: 1,
            provisioner: "d.example.com".into(),
            has_finalizer: true,
            volume: "pvc-1".into(),
            node: None,
            topology: self.topology.clone(),
            attempt: None,
        };
        let mut facts =
            Facts::new(&self.setup, ProvisionContext { request: &order, claim: &self.claim, class: &self.class });
        let (mut read, mut written) = (vec![], vec![]);
        let result = loop {
            assert!(read.len() + written.len() < 20, "preparation does not end");
            match next(&facts) {
                Step::Read(path) => {
                    read.push(path.clone());
                    facts.record_read(path.clone(), self.found(&path));
                }
                Step::Write(patch) => {
                    written.push(patch.clone());
                    facts.record_write(patch.path.clone(), self.wrote(&patch, written.len()));
                }
                Step::Ready(prepared) => break Ok(serde_json::to_value(*prepared).expect("JSON")),
                Step::Fail(failure) => break Err(failure),
            }
        };
        Outcome { result, read, written }
    }

    fn found(&self, path: &str) -> ReadResult {
        match self.objects.get(path) {
            Some(object) => ReadResult::Object(object.clone()),
            None => {
                let mut parts = path.rsplit('/');
                let (name, plural) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                ReadResult::Missing(format!("{plural} {name:?} not found"))
            }
        }
    }

    fn wrote(&self, patch: &Patch, tries: usize) -> WriteResult {
        if self.busy.get(&patch.path).is_some_and(|busy| tries <= *busy) {
            return WriteResult::Conflict("it has changed".into());
        }
        if self.forbidden.contains(&patch.path) {
            return WriteResult::Forbidden("you may not".into());
        }
        let mut object = self.objects[&patch.path].clone();
        for (field, value) in patch.body["metadata"].as_object().expect("metadata") {
            object["metadata"][field] = value.clone();
        }
        WriteResult::Object(object)
    }
}
