//! Free volumes ordered by size.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use bindery_model::{Quantity, Volume};

/// A volume in the order in which volumes are chosen: smallest first, then first by name. The size
/// is stored alongside, so that comparing two of them rarely reads the volumes.
#[derive(Debug, Clone)]
pub(crate) struct SizedVolume {
    /// The capacity, rounded down.
    bytes: i64,
    /// Whether `bytes` is exact.
    is_exact: bool,
    /// Whether it is not a volume but the start of a range, ordered before all volumes of its size.
    is_lower_bound: bool,
    /// Whether every node under whose label it is indexed can reach it.
    pub is_reached_by_label: bool,
    pub volume: Arc<Volume>,
}

impl SizedVolume {
    pub fn of(volume: &Arc<Volume>) -> SizedVolume {
        let size = volume.size();
        let bytes = size.whole_units(1);
        SizedVolume {
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            is_exact: size.units() == bytes && bytes < i128::from(i64::MAX),
            is_lower_bound: false,
            is_reached_by_label: volume.nodes.as_ref().is_none_or(|nodes| nodes.is_label_sufficient()),
            volume: volume.clone(),
        }
    }

    /// The start of the range of all volumes with at least this size.
    pub fn lower_bound(size: &Quantity) -> SizedVolume {
        static EMPTY: LazyLock<Arc<Volume>> = LazyLock::new(Arc::default);
        let bytes = size.whole_units(1);
        let is_exact = size.units() == bytes && bytes < i128::from(i64::MAX);
        // Only an inexact size is compared by the volume's quantity.
        let volume = match is_exact {
            true => EMPTY.clone(),
            false => Arc::new(Volume { capacity: Some(size.clone()), ..Volume::default() }),
        };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        SizedVolume { bytes, is_exact, is_lower_bound: true, is_reached_by_label: true, volume }
    }

    /// Its capacity in whole bytes, rounded up.
    pub fn bytes(&self) -> i128 {
        if self.is_exact { i128::from(self.bytes) } else { self.volume.size().units() }
    }
}

impl Ord for SizedVolume {
    fn cmp(&self, other: &Self) -> Ordering {
        let exactly = |this: &Self, other: &Self| match this.is_exact && other.is_exact {
            true => Ordering::Equal,
            false => this.volume.size().cmp(other.volume.size()),
        };
        self.bytes
            .cmp(&other.bytes)
            .then_with(|| exactly(self, other))
            .then_with(|| other.is_lower_bound.cmp(&self.is_lower_bound))
            .then_with(|| self.volume.name().cmp(other.volume.name()))
    }
}

impl PartialOrd for SizedVolume {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SizedVolume {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SizedVolume {}
