//! Carrying out a recorded state in memory, step by step.

use super::{Ledger, Recorded, Step, creations, provisioned};
use crate::cluster::{Cluster, Refused};

/// The cluster that a state begins with.
pub fn begin<W: Cluster>(recorded: &Recorded) -> (W, Ledger) {
    let (mut cluster, mut ledger) = (W::empty(), Ledger::default());
    for creation in creations(&recorded.state) {
        let step = creation(&ledger);
        // What is refused is noted.
        let _ = take(step, &mut cluster, &mut ledger);
    }
    (cluster, ledger)
}

/// Does a step.
pub fn take(step: Step, cluster: &mut impl Cluster, ledger: &mut Ledger) -> Result<(), Refused> {
    match step {
        Step::Create(key, object, phase) => {
            let created = cluster.create(&key, object);
            ledger.note(&key, created.as_deref().map_err(Refused::reason));
            created?;
            phase.map_or(Ok(()), |phase| cluster.set_phase(&key, &phase))
        }
        Step::Patch(key, patch) => cluster.patch(&key, &patch),
        Step::Delete(key) => cluster.delete(&key),
        Step::Provision(claim, name) => match provisioned(&cluster.get(&claim).ok_or(Refused::NotFound)?, &name) {
            Some((key, volume)) => cluster.create(&key, volume).map(drop),
            None => Ok(()),
        },
    }
}
