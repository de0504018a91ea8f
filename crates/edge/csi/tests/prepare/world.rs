//! Objects in a map, and a claim that storage is prepared for.

use std::collections::{BTreeMap, BTreeSet};

use bindery_csi::{Abilities, Facts, Found, Patch, Setup, Step, Wrote, next};
use bindery_model::ClaimKey;
use bindery_provisioner_sdk::{Accessibility, Failure, FailureEffect, ProvisionContext, ProvisionRequest};
use serde_json::{Value, json};

/// What there is.
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

/// What came of preparing, and what was read and written for it.
pub struct Outcome {
    pub result: Result<Value, Failure>,
    pub read: Vec<String>,
    pub written: Vec<Patch>,
}

/// A claim for 1.5Gi, a class, and a driver that can do everything.
pub fn world() -> World {
    let abilities = Abilities {
        controller: true,
        topology: true,
        volumes: true,
        snapshots: true,
        clones: true,
        single_pods: true,
        attributes: true,
        attachments: false,
        capacity: false,
    };
    let setup = Setup {
        driver: "d.example.com".into(),
        identity: "id".into(),
        abilities,
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

/// A failure.
pub fn failed(after: FailureEffect, error: &str) -> Failure {
    Failure { error: error.into(), effect: after }
}

/// Sets a field, or removes it with null; what it is in is made.
pub fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, field) = path.rsplit_once('/').expect("a path");
    let parent = match parent {
        "" => object,
        parent => {
            if object.pointer(parent).is_none() {
                set(object, parent, json!({}));
            }
            object.pointer_mut(parent).expect("just made")
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

    pub fn able(mut self, change: impl FnOnce(&mut Abilities)) -> World {
        change(&mut self.setup.abilities);
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

    /// An object that is there, changed.
    pub fn change(mut self, path: &str, field: &str, value: Value) -> World {
        set(self.objects.get_mut(path).expect("it is there"), field, value);
        self
    }

    /// An object that may not be written.
    pub fn forbid(mut self, path: &str) -> World {
        self.forbidden.insert(path.into());
        self
    }

    /// An object that others change just before it is written, so often.
    pub fn busy(mut self, path: &str, times: usize) -> World {
        self.busy.insert(path.into(), times);
        self
    }

    /// Prepares, one step after the other.
    pub fn prepare(&self) -> Outcome {
        let order = ProvisionRequest {
            claim: ClaimKey::new("ns", "c"),
            uid: "1".into(),
            class: "k".into(),
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
            assert!(read.len() + written.len() < 20, "it does not come to an end");
            match next(&facts) {
                Step::Read(path) => {
                    read.push(path.clone());
                    facts.read(path.clone(), self.found(&path));
                }
                Step::Write(patch) => {
                    written.push(patch.clone());
                    facts.wrote(patch.path.clone(), self.wrote(&patch, written.len()));
                }
                Step::Ready(prepared) => break Ok(serde_json::to_value(*prepared).expect("JSON")),
                Step::Fail(failure) => break Err(failure),
            }
        };
        Outcome { result, read, written }
    }

    fn found(&self, path: &str) -> Found {
        match self.objects.get(path) {
            Some(object) => Found::Object(object.clone()),
            None => {
                let mut parts = path.rsplit('/');
                let (name, plural) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                Found::Missing(format!("{plural} {name:?} not found"))
            }
        }
    }

    fn wrote(&self, patch: &Patch, tries: usize) -> Wrote {
        if self.busy.get(&patch.path).is_some_and(|busy| tries <= *busy) {
            return Wrote::Changed("it has changed".into());
        }
        if self.forbidden.contains(&patch.path) {
            return Wrote::Forbidden("you may not".into());
        }
        let mut object = self.objects[&patch.path].clone();
        for (field, value) in patch.body["metadata"].as_object().expect("metadata") {
            object["metadata"][field] = value.clone();
        }
        Wrote::Object(object)
    }
}
