//! A storage behind the world: makes and removes as it is told to, and remembers all that it was asked for.

use std::collections::{BTreeMap, VecDeque};

use bindery_verdict::{Accessibility, After, Failure, Operation, Order, Yield};
use bindery_volumes::Name;
use serde_json::{Value, json};

/// What a storage says when it is asked to make or to remove something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// It is done.
    Done,
    /// It is not done.
    Fails(After),
    /// It is done, and nobody hears so.
    DoneUnheard,
}

/// What was asked for under a name, for as long as nobody knows what came of it.
type Asked = (Option<Name>, Option<Accessibility>);

/// A storage.
#[derive(Debug, Clone, Default)]
pub struct Backend {
    /// What it holds: the handles, by the name of the volume that each was made for.
    pub holds: BTreeMap<String, String>,
    /// What it says, one after the other, when asked what can be asked for. After the last, all is well.
    pub prepares: VecDeque<After>,
    /// When asked to make something.
    pub makes: VecDeque<Says>,
    /// When asked to remove something.
    pub removes: VecDeque<Says>,
    /// How often something was made anew.
    pub made: usize,
    /// What is uncertain.
    open: BTreeMap<String, Asked>,
    /// Whether every volume gets a handle of its own, even where it is made again.
    pub forgets_names: bool,
}

impl Backend {
    /// Does what it is asked to. `None` when it is not a storage's to do.
    pub fn operate(&mut self, operation: &Operation, volume: Option<&Value>) -> Option<Result<Yield, Failure>> {
        Some(match operation {
            Operation::Prepare(order) => match (&order.topology, self.prepares.pop_front()) {
                (Err(failure), _) => Err(failure.clone()),
                (Ok(_), Some(after)) => Err(Failure::new("told to fail").with(after)),
                (Ok(_), None) => Ok(Yield::of(order.prepared(Value::Null))),
            },
            Operation::Make(order, _) => self.make(order),
            Operation::Unmake(_, made) => self.remove(made),
            Operation::Remove(_) => match volume {
                Some(volume) => self.remove(volume),
                None => Err(Failure::new("there is no such volume").with(After::Untried)),
            },
            Operation::Provision(_)
            | Operation::CleanUp(_)
            | Operation::DeleteStorage { .. }
            | Operation::Recycle(_) => return None,
        })
    }

    fn make(&mut self, order: &Order) -> Result<Yield, Failure> {
        let name = order.volume.to_string();
        let asked = (order.node.clone(), order.topology.clone().ok().flatten());
        if let Some(before) = self.open.get(&name) {
            assert_eq!(*before, asked, "{name}: asked again for something else, before it was certain what came of it");
        }
        self.open.insert(name.clone(), asked);
        match self.makes.pop_front().unwrap_or(Says::Done) {
            Says::Fails(After::Unknown) => Err(Failure::uncertain("told not to answer")),
            Says::Fails(after) => {
                if after != After::Untried {
                    self.open.remove(&name);
                }
                Err(Failure::new("told to fail").with(after))
            }
            Says::DoneUnheard => {
                self.put(&name);
                Err(Failure::uncertain("told not to answer"))
            }
            Says::Done => {
                let handle = self.put(&name);
                self.open.remove(&name);
                Ok(Yield::of(order.complete(json!({"spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                    "persistentVolumeReclaimPolicy": "Delete",
                    "csi": {"driver": order.provisioner.as_str(), "volumeHandle": handle},
                }}))))
            }
        }
    }

    fn put(&mut self, name: &str) -> String {
        if self.forgets_names || !self.holds.contains_key(name) {
            self.made += 1;
            let handle = format!("{name}@{}", self.made);
            // What is forgotten by its name is kept by its handle.
            let key = if self.forgets_names { handle.clone() } else { name.to_owned() };
            self.holds.insert(key, handle.clone());
            return handle;
        }
        self.holds[name].clone()
    }

    fn remove(&mut self, volume: &Value) -> Result<Yield, Failure> {
        let handle = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default().to_owned();
        let says = self.removes.pop_front().unwrap_or(Says::Done);
        if let Says::Fails(after) = says {
            return Err(Failure::new("told to fail").with(after));
        }
        self.holds.retain(|_, held| *held != handle);
        match says {
            Says::DoneUnheard => Err(Failure::uncertain("told not to answer")),
            Says::Done | Says::Fails(_) => Ok(Yield::default()),
        }
    }
}
