//! The objects of a cache at one moment, for work that must not hold up the cache's owner.

use std::fmt;

use bindery_model::{Kind, Object};

use crate::{Cache, IndexPolicy};

/// Creates the objects of one kind.
pub(crate) type Contents = Box<dyn Fn() -> Vec<Object> + Send + Sync>;

/// The visible objects of a cache at one moment. It shares them with the cache, so taking it costs
/// the same however many there are. [`Snapshot::build`] takes time in proportion to their number.
pub struct Snapshot {
    policy: IndexPolicy,
    /// The version of each kind's watch, and its objects.
    kinds: [(Kind, u64, Contents); Kind::ALL.len()],
}

impl Cache {
    /// The objects as they are now.
    pub fn snapshot(&self) -> Snapshot {
        let kinds = Kind::ALL.map(|kind| (kind, self.watched_version(kind), self.contents(kind)));
        Snapshot { policy: self.policy(), kinds }
    }
}

impl Snapshot {
    /// A cache with these objects. Pending writes are part of them.
    pub fn build(&self) -> Cache {
        let mut cache = Cache::new(self.policy);
        for (kind, version, contents) in &self.kinds {
            cache.listed(*kind, *version, contents());
        }
        cache
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
