//! Carrying out a recorded state in memory, step by step.

use serde_json::Value;

use super::{Ledger, Recorded, Step};
use crate::cluster::{Cluster, Refused};

/// The cluster that a state begins with.
pub fn begin<W: Cluster>(recorded: &Recorded) -> (W, Ledger) {
    let (mut cluster, mut ledger) = (W::empty(), Ledger::default());
    for action in recorded.beginning() {
        act(recorded, &action, &mut cluster, &mut ledger);
    }
    (cluster, ledger)
}

/// Carries out an action. What is refused has no effect, and is noted if it was to be created.
pub fn act(recorded: &Recorded, action: &Value, cluster: &mut impl Cluster, ledger: &mut Ledger) {
    for step in recorded.steps(action, ledger) {
        let _ = take(recorded, step, cluster, ledger);
    }
}

fn take(recorded: &Recorded, step: Step, cluster: &mut impl Cluster, ledger: &mut Ledger) -> Result<(), Refused> {
    match step {
        Step::Create(key, object) => {
            let created = cluster.create(&key, object);
            ledger.note(&key, created.as_deref().map_err(Refused::reason));
            created.map(drop)
        }
        Step::Patch(key, patch) => cluster.patch(&key, &patch),
        Step::PatchStatus(key, patch) => cluster.patch_status(&key, &patch),
        Step::Delete(key) => cluster.delete(&key),
        Step::Provision(claim, name) => {
            let claim = cluster.get(&claim).ok_or(Refused::NotFound)?;
            let volume = recorded.provisioned(&claim, &name);
            volume.map_or(Ok(()), |(key, volume)| cluster.create(&key, volume).map(drop))
        }
    }
}
