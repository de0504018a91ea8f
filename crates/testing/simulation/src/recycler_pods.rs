//! The recycler pods of a simulated cluster. They are not objects of the cluster, because no rule
//! reads them.

use std::collections::BTreeMap;

use bindery_model::Name;
use bindery_rules_api::{Failure, OperationOutput, Recycle, RecycleStep};

/// A recycler pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedPod {
    uid: String,
    /// The UID of the volume that it scrubs.
    pub volume_uid: Name,
    /// Whether its scheduling gate was removed, so that it may write at any time.
    pub is_running: bool,
}

/// The recycler pods by volume: their names are unique.
#[derive(Debug, Clone, Default)]
pub struct RecyclerPods {
    pods: BTreeMap<Name, SimulatedPod>,
    created: usize,
}

impl RecyclerPods {
    /// The recycler pods that may write, by volume.
    pub fn running(&self) -> impl Iterator<Item = (&Name, &SimulatedPod)> {
        self.pods.iter().filter(|(_, pod)| pod.is_running)
    }

    /// Removes the gate of a pod that is to run, without waiting for its end.
    pub fn start(&mut self, recycle: &Recycle) -> Result<(), Failure> {
        let RecycleStep::RunPod(proof) = &recycle.step else { return Ok(()) };
        let uid = proof.recycler_pod().expect("a pod runs only once the volume is marked");
        match self.pods.get_mut(&recycle.volume.name).filter(|pod| pod.uid == uid.as_str()) {
            Some(pod) => pod.is_running = true,
            None => return Err(Failure::new("failed to recycle volume: recycler pod was deleted")),
        }
        Ok(())
    }

    /// Takes a step to its end. A pod that runs ends with the given outcome.
    pub fn carry_out(
        &mut self,
        recycle: &Recycle,
        outcome: Result<OperationOutput, Failure>,
    ) -> Result<OperationOutput, Failure> {
        let volume = &recycle.volume.name;
        match &recycle.step {
            RecycleStep::CreatePod { marked } => {
                outcome?;
                match self.pods.get(volume) {
                    Some(pod) if marked.as_deref() == Some(pod.uid.as_str()) => return Ok(recycle.output(&pod.uid)),
                    Some(_) => {
                        self.pods.remove(volume);
                        return Err(Failure::new("old recycler pod found, will retry later"));
                    }
                    None => {}
                }
                self.created += 1;
                let uid = format!("pod-{}", self.created);
                let volume_uid = recycle.volume.uid.clone();
                self.pods.insert(volume.clone(), SimulatedPod { uid: uid.clone(), volume_uid, is_running: false });
                Ok(recycle.output(&uid))
            }
            RecycleStep::RunPod(_) => {
                self.start(recycle)?;
                let pod = self.pods.remove(volume).expect("it was started");
                outcome.map(|_| recycle.output(&pod.uid))
            }
            RecycleStep::DeletePod { marked } => {
                outcome?;
                self.pods.remove(volume);
                Ok(recycle.output(marked))
            }
        }
    }
}
