//! Pod IP addresses.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bindery_model::PodKey;
use rustc_hash::FxHashMap;

/// The address range of a node's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodRange {
    first: u32,
    last: u32,
}

impl PodRange {
    /// Parses a range such as `10.128.0.0/24`. Returns `None` if it is invalid or has no address
    /// for a pod.
    pub fn parse(text: &str) -> Option<PodRange> {
        let (address, bits) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 30)?;
        let others = u32::MAX.checked_shr(bits).unwrap_or(0);
        let network = address.to_bits() & !others;
        // Without the network address, the gateway and the broadcast address.
        Some(PodRange { first: network.checked_add(2)?, last: network.checked_add(others)?.checked_sub(1)? })
    }
}

/// The allocated addresses.
#[derive(Debug, Default)]
pub struct Addresses {
    allocated: BTreeMap<u32, PodKey>,
    by_pod: FxHashMap<PodKey, u32>,
}

impl Addresses {
    /// Records the address of a pod.
    pub fn record(&mut self, pod: PodKey, address: Ipv4Addr) {
        self.release(&pod);
        self.allocated.insert(address.to_bits(), pod.clone());
        self.by_pod.insert(pod, address.to_bits());
    }

    /// Returns the pod's address in the range, or allocates the first free one. `None` if all are
    /// allocated.
    pub fn allocate(&mut self, pod: &PodKey, range: PodRange) -> Option<Ipv4Addr> {
        let within = range.first..=range.last;
        if let Some(has) = self.by_pod.get(pod).filter(|has| within.contains(has)) {
            return Some(Ipv4Addr::from_bits(*has));
        }
        let mut free = range.first;
        for allocated in self.allocated.range(within).map(|(allocated, _)| *allocated) {
            if allocated > free {
                break;
            }
            free = allocated + 1;
        }
        let address = (free <= range.last).then(|| Ipv4Addr::from_bits(free))?;
        self.record(pod.clone(), address);
        Some(address)
    }

    /// Releases the address of a pod.
    pub fn release(&mut self, pod: &PodKey) {
        if let Some(address) = self.by_pod.remove(pod)
            && self.allocated.get(&address) == Some(pod)
        {
            self.allocated.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> PodKey {
        PodKey { namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn pod_gets_the_first_free_address_and_keeps_it() {
        let range = PodRange::parse("10.128.0.0/24").expect("a range");
        let mut addresses = Addresses::default();
        addresses.record(pod("old"), Ipv4Addr::new(10, 128, 0, 3));
        let mut allocate = |name: &str| addresses.allocate(&pod(name), range).map(|address| address.octets()[3]);
        assert_eq!(
            (allocate("a"), allocate("b"), allocate("a"), allocate("old")),
            (Some(2), Some(4), Some(2), Some(3))
        );
        addresses.release(&pod("old"));
        assert_eq!(addresses.allocate(&pod("c"), range), Some(Ipv4Addr::new(10, 128, 0, 3)));
    }

    #[test]
    fn range_can_be_exhausted() {
        let range = PodRange::parse("10.0.0.8/29").expect("a range");
        let mut addresses = Addresses::default();
        let given: Vec<_> = (0..6).map(|number| addresses.allocate(&pod(&number.to_string()), range)).collect();
        assert_eq!(given.iter().flatten().count(), 5, "{given:?}");
        assert_eq!(given[4], Some(Ipv4Addr::new(10, 0, 0, 14)));
    }

    #[test]
    fn invalid_ranges_are_rejected() {
        for text in ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/x", "fd00::/64", "10.0.0/24"] {
            assert_eq!(PodRange::parse(text), None, "{text}");
        }
        assert!(PodRange::parse("0.0.0.0/0").is_some());
    }
}
