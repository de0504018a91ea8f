//! Free volumes in the order in which they are chosen.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use bindery_model::{Quantity, Volume};

/// A volume in the order in which volumes are chosen: the smallest first, then the first by name. What is needed of it for that
/// is kept beside it.
#[derive(Debug, Clone)]
pub(crate) struct Ranked {
    /// How much it holds, rounded down.
    bytes: i64,
    /// Whether nothing was cut off.
    is_whole: bool,
    /// Whether it stands for all volumes of its size, and comes before them.
    is_bound: bool,
    /// Whether every node that has one of its anchors reaches it.
    pub is_sure: bool,
    pub volume: Arc<Volume>,
}

impl Ranked {
    pub fn of(volume: &Arc<Volume>) -> Ranked {
        let size = volume.holds();
        let bytes = size.whole_units(1);
        Ranked {
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            is_whole: size.units() == bytes && bytes < i128::from(i64::MAX),
            is_bound: false,
            is_sure: volume.nodes.as_ref().is_none_or(|nodes| nodes.is_anchored()),
            volume: volume.clone(),
        }
    }

    /// What stands before all volumes that hold so much or more.
    pub fn least(size: &Quantity) -> Ranked {
        static NOTHING: LazyLock<Arc<Volume>> = LazyLock::new(Arc::default);
        let bytes = size.whole_units(1);
        // Only what was cut off makes it necessary to look at a volume.
        let is_whole = size.units() == bytes && bytes < i128::from(i64::MAX);
        let volume = match is_whole {
            true => NOTHING.clone(),
            false => Arc::new(Volume { capacity: Some(size.clone()), ..Volume::default() }),
        };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        Ranked { bytes, is_whole, is_bound: true, is_sure: true, volume }
    }

    /// How much it holds, in whole bytes, rounded up.
    pub fn bytes(&self) -> i128 {
        if self.is_whole { i128::from(self.bytes) } else { self.volume.holds().units() }
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let exactly = |this: &Self, other: &Self| match this.is_whole && other.is_whole {
            true => Ordering::Equal,
            false => this.volume.holds().cmp(other.volume.holds()),
        };
        self.bytes
            .cmp(&other.bytes)
            .then_with(|| exactly(self, other))
            .then_with(|| other.is_bound.cmp(&self.is_bound))
            .then_with(|| self.volume.name().cmp(other.volume.name()))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
