//! The state of all cleanings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_model::Name;

/// The state of a cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CleaningState {
    /// In progress.
    Running,
    /// Failed; will be retried.
    Failed,
    /// Done; no new volume has been created for the disk yet.
    Succeeded,
}

/// The cleanings of this process. The state may be lost: cleaning starts over after a restart.
#[derive(Debug, Clone, Default)]
pub struct Cleanings(Arc<Mutex<BTreeMap<Name, CleaningState>>>);

impl Cleanings {
    fn states(&self) -> MutexGuard<'_, BTreeMap<Name, CleaningState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a cleaning; `false` if it is already running.
    pub fn begin(&self, volume: &Name) -> bool {
        self.states().insert(volume.clone(), CleaningState::Running) != Some(CleaningState::Running)
    }

    /// Ends a cleaning.
    pub fn end(&self, volume: &Name, succeeded: bool) {
        self.states().insert(volume.clone(), if succeeded { CleaningState::Succeeded } else { CleaningState::Failed });
    }

    /// Drops the state of a finished cleaning, after a new volume was created.
    pub fn forget(&self, volume: &Name) {
        let mut states = self.states();
        if states.get(volume).is_some_and(|state| *state != CleaningState::Running) {
            states.remove(volume);
        }
    }

    /// The volumes that are being cleaned.
    pub fn running(&self) -> BTreeSet<Name> {
        let states = self.states();
        states.iter().filter(|(_, state)| **state == CleaningState::Running).map(|(name, _)| name.clone()).collect()
    }

    /// How many cleanings are in a state.
    pub fn count(&self, state: CleaningState) -> usize {
        self.states().values().filter(|known| **known == state).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_runs_once_at_a_time() {
        let (cleanings, volume) = (Cleanings::default(), Name::new_static("v"));
        assert!(cleanings.begin(&volume) && !cleanings.begin(&volume));
        cleanings.forget(&volume);
        assert_eq!(cleanings.running().into_iter().collect::<Vec<_>>(), ["v"], "a running cleaning is kept");
        cleanings.end(&volume, false);
        assert_eq!((cleanings.count(CleaningState::Failed), cleanings.running().len()), (1, 0));
        assert!(cleanings.begin(&volume));
        cleanings.end(&volume, true);
        assert_eq!(cleanings.count(CleaningState::Succeeded), 1);
        cleanings.forget(&volume);
        assert_eq!(cleanings.count(CleaningState::Succeeded), 0);
    }
}
