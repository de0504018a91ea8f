//! When the capacity of each class and segment is requested again. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::changes::Change;
use super::publisher::Targets;
use super::segments::Segment;

/// A class and a segment.
pub(super) type Item = (String, Segment);

/// How long to wait after failures.
#[derive(Debug, Clone, Copy)]
pub struct RetryDelays {
    /// After the first failure; it doubles with each further one.
    pub first: Duration,
    /// At most.
    pub max: Duration,
}

/// When something is due, and how often it has failed since it last succeeded.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Instant,
    failures: u32,
}

/// When each class and segment is due.
#[derive(Debug)]
pub(super) struct Schedule {
    poll: Duration,
    retry: RetryDelays,
    items: BTreeMap<Item, Due>,
    /// When obsolete objects are searched for. With every item, too.
    sweep: Due,
}

impl Schedule {
    pub fn new(now: Instant, poll: Duration, retry: RetryDelays) -> Schedule {
        Schedule { poll, retry, items: BTreeMap::new(), sweep: Due { at: now, failures: 0 } }
    }

    /// Sets the classes and segments. New ones are due at once; obsolete objects of removed ones
    /// are searched for at once.
    pub fn set_targets(&mut self, now: Instant, targets: &Targets) {
        let mut wanted: BTreeSet<Item> = BTreeSet::new();
        for class in &targets.classes {
            wanted.extend(targets.segments.iter().map(|segment| (class.clone(), segment.clone())));
        }
        let before = self.items.len();
        self.items.retain(|item, _| wanted.contains(item));
        if self.items.len() < before {
            self.sweep = Due { at: now, failures: 0 };
        }
        for item in wanted {
            self.items.entry(item).or_insert(Due { at: now, failures: 0 });
        }
    }

    /// Makes what a change affects due.
    pub fn changed(&mut self, now: Instant, change: &Change) {
        let has_segment = change.has_segment(self.items.keys().map(|(_, segment)| segment));
        let affected =
            self.items.iter_mut().filter(|((class, segment), _)| change.affects(class, segment, has_segment));
        for (_, due) in affected {
            // What fails is not retried sooner because of a change.
            if due.failures == 0 {
                due.at = now;
            }
        }
    }

    /// What is due, by class; `None` if nothing is. An empty map means that only obsolete objects
    /// are to be searched for.
    pub fn due(&self, now: Instant) -> Option<BTreeMap<String, Vec<Segment>>> {
        let mut classes: BTreeMap<String, Vec<Segment>> = BTreeMap::new();
        for ((class, segment), _) in self.items.iter().filter(|(_, due)| due.at <= now) {
            classes.entry(class.clone()).or_default().push(segment.clone());
        }
        (!classes.is_empty() || self.sweep.at <= now).then_some(classes)
    }

    /// All classes and segments.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.keys()
    }

    /// Records that an item was handled, or has failed. Returns the time until the next attempt.
    pub fn record(&mut self, now: Instant, item: &Item, succeeded: bool) -> Duration {
        let (poll, retry) = (self.poll, self.retry);
        self.items.get_mut(item).map_or(poll, |due| due.record(now, succeeded, poll, retry))
    }

    /// Records that obsolete objects were searched for and deleted, or that this has failed.
    pub fn record_sweep(&mut self, now: Instant, succeeded: bool) -> Duration {
        self.sweep.record(now, succeeded, self.poll, self.retry)
    }
}

impl Due {
    fn record(&mut self, now: Instant, succeeded: bool, poll: Duration, retry: RetryDelays) -> Duration {
        let wait = match succeeded {
            true => poll,
            false => retry.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(retry.max),
        };
        self.failures = if succeeded { 0 } else { self.failures.saturating_add(1) };
        self.at = now + wait;
        wait
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POLL: Duration = Duration::from_secs(60);
    const RETRY: RetryDelays = RetryDelays { first: Duration::from_secs(1), max: Duration::from_secs(8) };

    fn targets(classes: &[&str], zones: &[&str]) -> Targets {
        let segment = |zone: &&str| Segment::from([("zone".to_owned(), zone.to_string())]);
        Targets {
            classes: classes.iter().map(|class| class.to_string()).collect(),
            segments: zones.iter().map(segment).collect(),
        }
    }

    fn due(schedule: &Schedule, now: Instant) -> Option<Vec<String>> {
        let names = |(class, segments): (String, Vec<Segment>)| -> Vec<String> {
            segments.into_iter().map(|segment| format!("{class}-{}", segment["zone"])).collect()
        };
        schedule.due(now).map(|due| due.into_iter().flat_map(names).collect())
    }

    /// A schedule of two classes and two zones, all of which were just handled.
    fn handled(now: Instant) -> Schedule {
        let mut schedule = Schedule::new(now, POLL, RETRY);
        schedule.set_targets(now, &targets(&["fast", "slow"], &["a", "b"]));
        assert_eq!(due(&schedule, now).map(|due| due.len()), Some(4), "all are due at first");
        let items: Vec<Item> = schedule.items().cloned().collect();
        for item in items {
            schedule.record(now, &item, true);
        }
        schedule.record_sweep(now, true);
        assert_eq!(due(&schedule, now), None);
        schedule
    }

    #[test]
    fn a_volume_makes_only_its_own_segment_due() {
        let now = Instant::now();
        let mut schedule = handled(now);
        let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]);
        let volume = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
        let changes = super::super::changes::CapacityChanges::default();
        changes.created("fast", Some(&volume));
        let taken = futures::FutureExt::now_or_never(changes.next()).expect("there is a change");
        taken.iter().for_each(|change| schedule.changed(now, change));
        assert_eq!(due(&schedule, now), Some(vec!["fast-a".into(), "slow-a".into()]));
        let mut schedule = handled(now);
        schedule.changed(now, &Change::Class("slow".into()));
        assert_eq!(due(&schedule, now), Some(vec!["slow-a".into(), "slow-b".into()]));
        assert_eq!(due(&schedule, now + POLL).map(|due| due.len()), Some(4), "all at the poll interval");
    }

    #[test]
    fn failures_are_retried_with_back_off() {
        let now = Instant::now();
        let mut schedule = handled(now);
        let item = schedule.items().next().expect("an item").clone();
        let waits: Vec<u64> = (0..5).map(|_| schedule.record(now, &item, false).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 8]);
        schedule.changed(now, &Change::Class("fast".into()));
        assert_eq!(due(&schedule, now), Some(vec!["fast-b".into()]), "a change does not end the back-off");
        assert_eq!(schedule.record(now, &item, true), POLL);
        assert_eq!(schedule.record(now, &item, false).as_secs(), 1, "success ends the back-off");
    }

    #[test]
    fn obsolete_objects_are_searched_for_when_a_class_or_segment_is_removed() {
        let now = Instant::now();
        let mut schedule = handled(now);
        schedule.set_targets(now, &targets(&["fast", "slow"], &["a", "b"]));
        assert_eq!(due(&schedule, now), None, "nothing has changed");
        schedule.set_targets(now, &targets(&["fast"], &["a", "b", "c"]));
        assert_eq!(due(&schedule, now), Some(vec!["fast-c".into()]));
        schedule.set_targets(now, &targets(&["fast"], &["a"]));
        schedule.record(now, &("fast".into(), Segment::from([("zone".into(), "a".into())])), true);
        assert_eq!(due(&schedule, now), Some(vec![]));
        assert_eq!(schedule.record_sweep(now, false).as_secs(), 1);
        assert_eq!(due(&schedule, now), None);
        assert_eq!(due(&schedule, now + Duration::from_secs(1)), Some(vec![]), "a failed deletion is retried");
    }
}
