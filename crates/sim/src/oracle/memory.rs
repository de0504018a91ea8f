//! Carrying out a recorded state in memory, step by step.

use serde_json::json;

use super::{Ledger, Recorded, Step, creations, provisioned};
use crate::World;
use crate::cluster::{self, Refused};

/// The world that a state begins with.
pub fn begin(recorded: &Recorded) -> (World, Ledger) {
    let (mut world, mut ledger) = (cluster::empty(), Ledger::default());
    for creation in creations(&recorded.state) {
        let step = creation(&ledger);
        // What is refused is noted.
        let _ = take(step, &mut world, &mut ledger);
    }
    (world, ledger)
}

/// Does a step.
pub fn take(step: Step, world: &mut World, ledger: &mut Ledger) -> Result<(), Refused> {
    match step {
        Step::Create(key, object, phase) => {
            let created = cluster::create(world, &key, object);
            ledger.note(&key, created.as_deref().map_err(Refused::reason));
            created?;
            phase.map_or(Ok(()), |phase| cluster::patch(world, &key, &json!({"status": {"phase": phase}})))
        }
        Step::Patch(key, patch) => cluster::patch(world, &key, &patch),
        Step::Delete(key) => cluster::delete(world, &key),
        Step::Provision(claim, name) => match provisioned(world.get(&claim).ok_or(Refused::NotFound)?, &name) {
            Some((key, volume)) => cluster::create(world, &key, volume).map(drop),
            None => Ok(()),
        },
    }
}
