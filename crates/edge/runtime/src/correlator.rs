//! Event correlation as in client-go: repeated events are counted, similar ones combined, and too
//! many dropped.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Name, ObjectKey};
use bindery_rules_api::Event;

/// The most keys in each map. Those that were not used for longest are evicted.
const KEYS_MAX: usize = 4096;
/// After this many different messages with one reason about one object within the interval, further
/// ones are combined.
const SIMILAR_MAX: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// A token bucket per object: a burst, then one event per period.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// What to do with an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Correlated {
    /// Create an event with this message.
    Write(String),
    /// Increase the count of the existing event of this name.
    Count { name: String, count: u32, message: String },
    /// Drop it: the object has too many events.
    Drop,
}

type About = (&'static str, ObjectKey, Name, EventType);
type Similar = (About, Reason);
type Same = (Similar, String);

/// Remembers the events that were written. The caller passes the time.
#[derive(Default)]
pub(crate) struct Correlator {
    similar: BoundedMap<Similar, (Duration, Vec<String>)>,
    same: BoundedMap<Same, (String, u32)>,
    spam: BoundedMap<About, (Duration, f64)>,
}

impl Correlator {
    /// Decides what to do with an event at a time.
    pub fn correlate(&mut self, event: &Event, now: Duration) -> Correlated {
        let about = about(event);
        let similar = (about.clone(), event.reason);
        let message = self.combined(&similar, &event.message, now);
        if !self.has_token(about, now) {
            return Correlated::Drop;
        }
        match self.same.get_mut(&(similar, message.clone())) {
            Some((name, count)) => {
                *count += 1;
                Correlated::Count { name: name.clone(), count: *count, message }
            }
            None => Correlated::Write(message),
        }
    }

    /// Records the name of an event that was created.
    pub fn written(&mut self, event: &Event, message: String, name: String) {
        self.same.insert(((about(event), event.reason), message), (name, 1));
    }

    /// The message, marked as combined if there were too many different ones.
    fn combined(&mut self, similar: &Similar, message: &str, now: Duration) -> String {
        let (last, messages) = self.similar.get_or_insert(similar, || (now, Vec::new()));
        if now.saturating_sub(*last) > SIMILAR_WITHIN {
            messages.clear();
        }
        *last = now;
        if messages.iter().any(|known| known == message) {
            return message.to_owned();
        }
        if messages.len() < SIMILAR_MAX {
            messages.push(message.to_owned());
            return message.to_owned();
        }
        format!("(combined from similar events): {message}")
    }

    fn has_token(&mut self, about: About, now: Duration) -> bool {
        let (last, tokens) = self.spam.get_or_insert(&about, || (now, BURST));
        let refilled = now.saturating_sub(*last).as_secs_f64() / REFILL.as_secs_f64();
        *tokens = (*tokens + refilled).min(BURST);
        *last = now;
        let has = *tokens >= 1.0;
        *tokens -= if has { 1.0 } else { 0.0 };
        has
    }
}

/// The source, object and type of an event.
fn about(event: &Event) -> About {
    (event.component, event.about.clone(), event.meta.uid.clone(), event.event_type)
}

/// A map that evicts the keys that were not used for longest.
struct BoundedMap<K, V> {
    map: HashMap<K, (V, Use)>,
    by_use: BTreeMap<Use, K>,
    next_use: Use,
}

/// Numbers the uses of keys.
type Use = u64;

impl<K, V> Default for BoundedMap<K, V> {
    fn default() -> Self {
        BoundedMap { map: HashMap::new(), by_use: BTreeMap::new(), next_use: 0 }
    }
}

impl<K: Hash + Eq + Clone, V> BoundedMap<K, V> {
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (value, last_use) = self.map.get_mut(key)?;
        self.by_use.remove(last_use);
        *last_use = self.next_use;
        self.by_use.insert(self.next_use, key.clone());
        self.next_use += 1;
        Some(value)
    }

    fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.get_mut(&key) {
            *known = value;
            return;
        }
        if self.map.len() == KEYS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.map.remove(&oldest);
        }
        self.map.insert(key.clone(), (value, self.next_use));
        self.by_use.insert(self.next_use, key);
        self.next_use += 1;
    }

    fn get_or_insert(&mut self, key: &K, value: impl FnOnce() -> V) -> &mut V {
        if !self.map.contains_key(key) {
            self.insert(key.clone(), value());
        }
        self.get_mut(key).expect("just inserted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_model::{ClaimKey, Meta};

    fn event(claim: &str, message: &str) -> Event {
        Event {
            about: ClaimKey::new("ns", claim).into(),
            meta: Meta { uid: claim.into(), ..Meta::default() },
            event_type: EventType::Normal,
            reason: Reason::FailedBinding,
            message: message.into(),
            component: "tests",
            retry_in: None,
            missing: None,
        }
    }

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn repeated_event_is_counted_and_a_different_one_is_not() {
        let mut correlator = Correlator::default();
        assert_eq!(correlator.correlate(&event("a", "x"), NOW), Correlated::Write("x".into()));
        correlator.written(&event("a", "x"), "x".into(), "a.1".into());
        let again = correlator.correlate(&event("a", "x"), NOW);
        assert_eq!(again, Correlated::Count { name: "a.1".into(), count: 2, message: "x".into() });
        assert_eq!(correlator.correlate(&event("a", "y"), NOW), Correlated::Write("y".into()));
        assert_eq!(correlator.correlate(&event("b", "x"), NOW), Correlated::Write("x".into()));
    }

    #[test]
    fn too_many_different_messages_are_combined_until_a_pause() {
        let mut correlator = Correlator::default();
        for n in 0..10 {
            assert_eq!(correlator.correlate(&event("a", &n.to_string()), NOW), Correlated::Write(n.to_string()));
        }
        let correlated = correlator.correlate(&event("a", "10"), NOW);
        assert_eq!(correlated, Correlated::Write("(combined from similar events): 10".into()));
        let later = NOW + SIMILAR_WITHIN + NOW;
        assert_eq!(correlator.correlate(&event("a", "11"), later), Correlated::Write("11".into()));
    }

    #[test]
    fn flood_about_one_object_is_dropped_and_others_are_written() {
        let mut correlator = Correlator::default();
        let dropped = (0..40).filter(|_| correlator.correlate(&event("a", "x"), NOW) == Correlated::Drop).count();
        assert_eq!(dropped, 15);
        assert_ne!(correlator.correlate(&event("b", "x"), NOW), Correlated::Drop);
        assert_ne!(correlator.correlate(&event("a", "x"), NOW + REFILL), Correlated::Drop);
    }

    #[test]
    fn number_of_keys_is_limited() {
        let mut correlator = Correlator::default();
        for n in 0..3 * KEYS_MAX {
            correlator.correlate(&event(&n.to_string(), "x"), NOW);
        }
        assert_eq!(correlator.spam.map.len(), KEYS_MAX);
        assert_eq!((correlator.similar.map.len(), correlator.similar.by_use.len()), (KEYS_MAX, KEYS_MAX));
    }

    #[test]
    fn object_with_recurring_events_is_remembered_while_others_are_evicted() {
        let mut correlator = Correlator::default();
        correlator.correlate(&event("a", "x"), NOW);
        correlator.written(&event("a", "x"), "x".into(), "a.1".into());
        for n in 0..3 * KEYS_MAX {
            let other = n.to_string();
            correlator.correlate(&event(&other, "x"), NOW);
            correlator.written(&event(&other, "x"), "x".into(), other.clone());
            if n % 1000 == 0 {
                let again = correlator.correlate(&event("a", "x"), NOW);
                assert!(matches!(again, Correlated::Count { .. }), "after {n} others: {again:?}");
            }
        }
    }
}
