//! What becomes of an event before it is written: repeated ones are counted, similar ones combined, too many dropped.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Name, ObjectKey};
use bindery_rules_api::Event;

/// How many keys are remembered of each kind. Who is not heard of for so long is forgotten.
const REMEMBERED_MAX: usize = 4096;
/// FailureEffect so many different messages of one reason about one object, close to each other, further ones are combined.
const SIMILAR_MAX: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// So many events about one object at once, and then one more in each period.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// What to do with a notice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Write an event of that message.
    Write(String),
    /// Raise the count of the event of that name.
    Count { event: String, count: u32, message: String },
    /// There are too many.
    Drop,
}

type About = (&'static str, ObjectKey, Name, EventType);
type Similar = (About, Reason);
type Same = (Similar, String);

/// Remembers what was written. It is told the time.
#[derive(Default)]
pub(crate) struct Correlator {
    similar: Remembered<Similar, (Duration, Vec<String>)>,
    same: Remembered<Same, (String, u32)>,
    spam: Remembered<About, (Duration, f64)>,
}

impl Correlator {
    /// What becomes of a notice at a time.
    pub fn fate(&mut self, notice: &Event, now: Duration) -> Fate {
        let about = about(notice);
        let similar = (about.clone(), notice.reason);
        let message = self.combined(&similar, &notice.message, now);
        if !self.has_token(about, now) {
            return Fate::Drop;
        }
        match self.same.get_mut(&(similar, message.clone())) {
            Some((event, count)) => {
                *count += 1;
                Fate::Count { event: event.clone(), count: *count, message }
            }
            None => Fate::Write(message),
        }
    }

    /// Notes under which name an event was written.
    pub fn written(&mut self, notice: &Event, message: String, event: String) {
        self.same.insert(((about(notice), notice.reason), message), (event, 1));
    }

    /// The message, marked as combined where there were too many others.
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

/// Who says something of whom, and how grave it is.
fn about(notice: &Event) -> About {
    (notice.component, notice.about.clone(), notice.meta.uid.clone(), notice.event_type)
}

/// A map that forgets the oldest keys when there are too many.
struct Remembered<K, V> {
    map: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Remembered { map: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Hash + Eq + Clone, V> Remembered<K, V> {
    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.map.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > REMEMBERED_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.map.remove(&oldest);
            }
        }
    }

    fn get_or_insert(&mut self, key: &K, value: impl FnOnce() -> V) -> &mut V {
        if !self.map.contains_key(key) {
            self.insert(key.clone(), value());
        }
        self.map.get_mut(key).expect("it was just put there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_model::{ClaimKey, Meta};

    fn notice(claim: &str, message: &str) -> Event {
        Event {
            about: ClaimKey::new("ns", claim).into(),
            meta: Meta { uid: claim.into(), ..Meta::default() },
            event_type: EventType::Normal,
            reason: Reason::FailedBinding,
            message: message.into(),
            component: "tests",
            again_in: None,
            missing: None,
        }
    }

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_said_again_is_counted_and_what_is_said_otherwise_is_not() {
        let mut correlator = Correlator::default();
        assert_eq!(correlator.fate(&notice("a", "x"), NOW), Fate::Write("x".into()));
        correlator.written(&notice("a", "x"), "x".into(), "a.1".into());
        let again = correlator.fate(&notice("a", "x"), NOW);
        assert_eq!(again, Fate::Count { event: "a.1".into(), count: 2, message: "x".into() });
        assert_eq!(correlator.fate(&notice("a", "y"), NOW), Fate::Write("y".into()));
        assert_eq!(correlator.fate(&notice("b", "x"), NOW), Fate::Write("x".into()));
    }

    #[test]
    fn too_many_different_messages_are_combined_until_there_is_a_pause() {
        let mut correlator = Correlator::default();
        for n in 0..10 {
            assert_eq!(correlator.fate(&notice("a", &n.to_string()), NOW), Fate::Write(n.to_string()));
        }
        let fate = correlator.fate(&notice("a", "10"), NOW);
        assert_eq!(fate, Fate::Write("(combined from similar events): 10".into()));
        let later = NOW + SIMILAR_WITHIN + NOW;
        assert_eq!(correlator.fate(&notice("a", "11"), later), Fate::Write("11".into()));
    }

    #[test]
    fn a_flood_about_one_object_is_dropped_and_others_are_heard() {
        let mut correlator = Correlator::default();
        let dropped = (0..40).filter(|_| correlator.fate(&notice("a", "x"), NOW) == Fate::Drop).count();
        assert_eq!(dropped, 15);
        assert_ne!(correlator.fate(&notice("b", "x"), NOW), Fate::Drop);
        assert_ne!(correlator.fate(&notice("a", "x"), NOW + REFILL), Fate::Drop);
    }

    #[test]
    fn memory_has_a_limit() {
        let mut correlator = Correlator::default();
        for n in 0..3 * REMEMBERED_MAX {
            correlator.fate(&notice(&n.to_string(), "x"), NOW);
        }
        assert_eq!(correlator.spam.map.len(), REMEMBERED_MAX);
        assert_eq!(correlator.similar.order.len(), REMEMBERED_MAX);
    }
}
