//! Replays a recorded state in memory.

use serde_json::Value;

use super::{Ledger, Recorded, Step};
use crate::user_api::{ApiError, UserApi};

/// The cluster with the initial objects of a state.
pub fn begin<W: UserApi>(recorded: &Recorded) -> (W, Ledger) {
    let (mut cluster, mut ledger) = (W::empty(), Ledger::default());
    for action in recorded.beginning() {
        act(recorded, &action, &mut cluster, &mut ledger);
    }
    (cluster, ledger)
}

/// Carries out an action. Rejected creations are noted in the ledger.
pub fn act(recorded: &Recorded, action: &Value, cluster: &mut impl UserApi, ledger: &mut Ledger) {
    for step in recorded.steps(action, ledger) {
        let _ = take(recorded, step, cluster, ledger);
    }
}

fn take(recorded: &Recorded, step: Step, cluster: &mut impl UserApi, ledger: &mut Ledger) -> Result<(), ApiError> {
    match step {
        Step::Create(key, object) => {
            let created = cluster.create(&key, object);
            ledger.note(&key, created.as_deref().map_err(ApiError::reason));
            created.map(drop)
        }
        Step::Patch(key, patch) => cluster.patch(&key, &patch),
        Step::PatchStatus(key, patch) => cluster.patch_status(&key, &patch),
        Step::Delete(key) => cluster.delete(&key),
        Step::Provision(claim, name) => {
            let claim = cluster.get(&claim).ok_or(ApiError::NotFound)?;
            let volume = recorded.provisioned(&claim, &name);
            volume.map_or(Ok(()), |(key, volume)| cluster.create(&key, volume).map(drop))
        }
    }
}
