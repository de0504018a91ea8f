//! Which address each pod has.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bindery_model::PodKey;
use rustc_hash::FxHashMap;

/// A range of addresses, as nodes have one for their pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    first: u32,
    last: u32,
}

impl Range {
    /// Reads a range such as `10.128.0.0/24`. One with no room for a pod is none.
    pub fn parse(text: &str) -> Option<Range> {
        let (address, bits) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 30)?;
        let others = u32::MAX.checked_shr(bits).unwrap_or(0);
        let network = address.to_bits() & !others;
        // The first is the network's own, the next its gateway's, and the last is everybody's.
        Some(Range { first: network.checked_add(2)?, last: network.checked_add(others)?.checked_sub(1)? })
    }
}

/// The addresses that are taken.
#[derive(Debug, Default)]
pub struct Addresses {
    taken: BTreeMap<u32, PodKey>,
    by_pod: FxHashMap<PodKey, u32>,
}

impl Addresses {
    /// Notes an address that a pod has.
    pub fn note(&mut self, pod: PodKey, address: Ipv4Addr) {
        self.free(&pod);
        self.taken.insert(address.to_bits(), pod.clone());
        self.by_pod.insert(pod, address.to_bits());
    }

    /// Gives a pod the first address of a range that is free, or the one that it has. None when all are taken.
    pub fn take(&mut self, pod: &PodKey, range: Range) -> Option<Ipv4Addr> {
        let within = range.first..=range.last;
        if let Some(has) = self.by_pod.get(pod).filter(|has| within.contains(has)) {
            return Some(Ipv4Addr::from_bits(*has));
        }
        let mut free = range.first;
        for taken in self.taken.range(within).map(|(taken, _)| *taken) {
            if taken > free {
                break;
            }
            free = taken + 1;
        }
        let address = (free <= range.last).then(|| Ipv4Addr::from_bits(free))?;
        self.note(pod.clone(), address);
        Some(address)
    }

    /// Notes that a pod is gone.
    pub fn free(&mut self, pod: &PodKey) {
        if let Some(address) = self.by_pod.remove(pod)
            && self.taken.get(&address) == Some(pod)
        {
            self.taken.remove(&address);
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
    fn a_pod_gets_the_first_address_that_is_free_and_keeps_it() {
        let range = Range::parse("10.128.0.0/24").expect("a range");
        let mut addresses = Addresses::default();
        addresses.note(pod("old"), Ipv4Addr::new(10, 128, 0, 3));
        let mut take = |name: &str| addresses.take(&pod(name), range).map(|address| address.octets()[3]);
        assert_eq!((take("a"), take("b"), take("a"), take("old")), (Some(2), Some(4), Some(2), Some(3)));
        addresses.free(&pod("old"));
        assert_eq!(addresses.take(&pod("c"), range), Some(Ipv4Addr::new(10, 128, 0, 3)));
    }

    #[test]
    fn a_range_can_be_full() {
        let range = Range::parse("10.0.0.8/29").expect("a range");
        let mut addresses = Addresses::default();
        let given: Vec<_> = (0..6).map(|number| addresses.take(&pod(&number.to_string()), range)).collect();
        assert_eq!(given.iter().flatten().count(), 5, "{given:?}");
        assert_eq!(given[4], Some(Ipv4Addr::new(10, 0, 0, 14)));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/x", "fd00::/64", "10.0.0/24"] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
        assert!(Range::parse("0.0.0.0/0").is_some());
    }
}
