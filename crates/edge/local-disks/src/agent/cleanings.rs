//! Which volumes are being cleaned, and how it went.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_model::Name;

/// How a cleaning stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is under way.
    Running,
    /// It failed, and is tried again.
    Failed,
    /// It is done, and the disk was not offered again yet.
    Succeeded,
}

/// The cleanings of this process. Nothing rests on its being remembered: what is lost with the process is begun anew.
#[derive(Debug, Clone, Default)]
pub struct Cleanings(Arc<Mutex<BTreeMap<Name, State>>>);

impl Cleanings {
    fn states(&self) -> MutexGuard<'_, BTreeMap<Name, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cleaning begins; `false` when it is under way already.
    pub fn begin(&self, volume: &Name) -> bool {
        self.states().insert(volume.clone(), State::Running) != Some(State::Running)
    }

    /// A cleaning is over.
    pub fn end(&self, volume: &Name, succeeded: bool) {
        self.states().insert(volume.clone(), if succeeded { State::Succeeded } else { State::Failed });
    }

    /// What was cleaned is offered again.
    pub fn forget(&self, volume: &Name) {
        let mut states = self.states();
        if states.get(volume).is_some_and(|state| *state != State::Running) {
            states.remove(volume);
        }
    }

    /// Those that are under way.
    pub fn running(&self) -> BTreeSet<Name> {
        let states = self.states();
        states.iter().filter(|(_, state)| **state == State::Running).map(|(name, _)| name.clone()).collect()
    }

    /// How many stand so.
    pub fn count(&self, state: State) -> usize {
        self.states().values().filter(|known| **known == state).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleaning_is_under_way_once() {
        let (cleanings, volume) = (Cleanings::default(), Name::new_static("v"));
        assert!(cleanings.begin(&volume) && !cleanings.begin(&volume));
        cleanings.forget(&volume);
        assert_eq!(cleanings.running().into_iter().collect::<Vec<_>>(), ["v"], "what is under way is not forgotten");
        cleanings.end(&volume, false);
        assert_eq!((cleanings.count(State::Failed), cleanings.running().len()), (1, 0));
        assert!(cleanings.begin(&volume));
        cleanings.end(&volume, true);
        assert_eq!(cleanings.count(State::Succeeded), 1);
        cleanings.forget(&volume);
        assert_eq!(cleanings.count(State::Succeeded), 0);
    }
}
