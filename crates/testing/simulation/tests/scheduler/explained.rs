//! Compares every decision of the scheduler with its explanation, and every wake with a walk over
//! all waiting pods.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use bindery_binder::{Binder, Config};
use bindery_cache::{Cache, Change};
use bindery_explain::explain_pod;
use bindery_model::{Annotation, Claim, ClaimKey, Kind, Name, Object, ObjectKey, Pod};
use bindery_rules_api::{LiveReads, Profile, Rule, RuleSet, Verdict};
use bindery_scheduler::{Scheduler, rules};
use bindery_simulation::run::lifecycle_controllers;
use bindery_simulation::table::check;

use crate::case::Rules;

/// Compared decisions with a node.
static PLACED: AtomicUsize = AtomicUsize::new(0);
/// Compared decisions without a suitable node.
static STUCK: AtomicUsize = AtomicUsize::new(0);
/// Woken pods.
static WOKEN: AtomicUsize = AtomicUsize::new(0);

struct Observed(Scheduler);

impl RuleSet for Observed {
    fn profile(&self) -> Profile {
        self.0.profile()
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        let verdict = self.0.decide(known, key, live_reads);
        compare(known, key, live_reads, &verdict);
        verdict
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        let mut woken = BTreeSet::new();
        self.0.wake(known, change, &mut |key| {
            woken.insert(key.clone());
            wake(key);
        });
        let pods = known.keys(Kind::Pod).into_iter().filter_map(|key| known.pod(&key.pod_key()));
        let waiting = pods.filter(|pod| pod.node.is_empty() && !pod.deleting && !pod.is_finished());
        let ours = waiting.filter(|pod| pod.scheduling.scheduler == "default-scheduler");
        let concerned: BTreeSet<ObjectKey> =
            ours.filter(|pod| concerns(known, change, pod)).map(|pod| pod.key().into()).collect();
        assert_eq!(woken, concerned, "by {change:#?}");
        WOKEN.fetch_add(woken.len(), Ordering::Relaxed);
    }
}

/// Checks that the explanation agrees with the decision.
fn compare(known: &Cache, key: &ObjectKey, live_reads: &LiveReads, verdict: &Verdict) {
    let Ok(explained) = explain_pod(known, &key.pod_key(), usize::MAX) else {
        assert_eq!(verdict.rule, &rules::POD_GONE);
        return;
    };
    let rows = explained.matrix.iter().flat_map(|matrix| &matrix.rows);
    let fits: Vec<&str> = rows.filter(|row| row.fits).map(|row| row.node.as_str()).collect();
    let is_one_of = |rules: &[&Rule]| rules.contains(&verdict.rule);
    if is_one_of(&[&rules::NOMINATE, &rules::BIND_VOLUMES, &rules::BIND]) {
        let note = verdict.note.as_deref().unwrap_or_default();
        let node = note.rsplit(' ').next().unwrap_or_default();
        assert!(fits.contains(&node), "{key} is assigned to {node}, but the explanation is:\n{explained}");
        // After a back-off the failed node is tried again; the explanation does not know about it.
        if live_reads.pause_count() == 0 {
            let first = fits.first().copied();
            assert_eq!(first, Some(node), "{key} is assigned to {node}, but the explanation is:\n{explained}");
            assert_eq!(explained.rule, verdict.rule.name, "{explained}");
        }
        assert_eq!(explained.change, None, "{explained}");
        PLACED.fetch_add(1, Ordering::Relaxed);
    } else if is_one_of(&[&rules::UNSCHEDULABLE, &rules::CLAIMS_REJECTED, &rules::WAITS_FOR_EPHEMERAL_CLAIM]) {
        assert_eq!(fits, [""; 0], "{key} has no suitable node, but the explanation is:\n{explained}");
        assert_eq!(explained.rule, verdict.rule.name, "{explained}");
        STUCK.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_stuck(pod: &Pod) -> bool {
    pod.scheduling.nominated_node.is_empty()
}

/// The node whose resources a pod uses.
fn node_of(pod: &Pod) -> Option<&Name> {
    let node = if pod.node.is_empty() { &pod.scheduling.nominated_node } else { &pod.node };
    (!node.is_empty() && !is_done(pod)).then_some(node)
}

/// Whether a pod is completed, or never gets a node.
fn is_done(pod: &Pod) -> bool {
    pod.is_finished() || pod.node.is_empty() && pod.deleting
}

/// Whether a pod uses resources, directly or by its claims.
fn uses_resources(pod: &Pod) -> bool {
    node_of(pod).is_some() || !is_done(pod) && !pod.volumes.is_empty()
}

/// Whether a change can help a waiting pod, or changes the reason in its condition.
fn concerns(known: &Cache, change: &Change, pod: &Pod) -> bool {
    if let (before, Some(Object::Pod(other))) = (&change.before, &change.after) {
        let before = if let Some(Object::Pod(before)) = before { Some(before) } else { None };
        let shape = |pod: &Pod| {
            (pod.scheduling.requests.clone(), pod.scheduling.labels.clone(), pod.scheduling.anti_affinity.clone())
        };
        let moves = |before: &Pod| node_of(before).is_some() && node_of(before) != node_of(other);
        let leaves = |before: &Pod| moves(before) || !uses_resources(other) || shape(before) != shape(other);
        let frees_resources_by_leaving = before.is_some_and(|before| uses_resources(before) && leaves(before));
        let moves = |before: &Pod| node_of(before) != node_of(other) || before.deleting != other.deleting;
        let arrives = node_of(other).is_some() && before.is_none_or(|before| moves(before));
        let depends_on_pods = !(pod.scheduling.affinity.is_empty() && pod.scheduling.topology_spread.is_empty());
        let is_own = other.meta.uid == pod.meta.uid && other.key() == pod.key();
        return is_own || is_stuck(pod) && (frees_resources_by_leaving || arrives && depends_on_pods);
    }
    let objects = change.after.iter().chain(&change.before);
    objects.into_iter().any(|object| concerns_by(known, object, pod)) || is_stuck(pod) && frees_resources(known, change)
}

fn concerns_by(known: &Cache, object: &Object, pod: &Pod) -> bool {
    let claims: Vec<_> = pod.claim_keys().filter_map(|key| known.claim(&key)).collect();
    let waits_for = |class: &Name| claims.iter().any(|claim| claim.class() == class && !claim.is_bind_completed());
    match object {
        Object::Pod(other) => uses_resources(other) && is_stuck(pod),
        Object::Node(node) => is_stuck(pod) || pod.scheduling.nominated_node == *node.name(),
        Object::Claim(claim) => pod.claim_keys().any(|key| key == claim.key()),
        Object::Volume(volume) => claims.iter().any(|claim| match &claim.volume {
            Some(name) => name == volume.name(),
            None => claim.class() == volume.class(),
        }),
        Object::Class(class) => waits_for(&class.meta.name),
        Object::Capacity(capacity) => is_stuck(pod) && waits_for(&capacity.class),
        Object::CsiDriver(_) | Object::CsiNode(_) | Object::Attachment(_) => is_stuck(pod) && !pod.volumes.is_empty(),
        Object::AttributesClass(_) | Object::Record(_) => false,
    }
}

/// Whether a node is no longer reserved for pods by the selected node of their claims.
fn frees_resources(known: &Cache, change: &Change) -> bool {
    let selected = |claim: &Claim| claim.annotations.get(Annotation::SelectedNode).cloned();
    let claim: Option<ClaimKey> = match (&change.before, &change.after) {
        (Some(Object::Claim(before)), after) => {
            let is_same = matches!(after, Some(Object::Claim(after))
                if selected(before) == selected(after) && before.is_bind_completed() == after.is_bind_completed());
            let was_done = after.is_some() && before.is_bind_completed();
            (!is_same && !was_done).then(|| before.key())
        }
        (Some(Object::Volume(before)), after) => {
            let is_same = matches!(after, Some(Object::Volume(after)) if before.claim_ref == after.claim_ref);
            before.claim_ref.as_ref().filter(|_| !is_same).map(|claim| claim.key.clone())
        }
        (_, _) => None,
    };
    let is_silent = |pod: &Pod| pod.node.is_empty() && pod.scheduling.nominated_node.is_empty();
    claim.is_some_and(|claim| known.pods_using(&claim).any(|pod| is_silent(pod)))
}

fn observed() -> Vec<Box<dyn RuleSet + Send>> {
    let deciding: [Box<dyn RuleSet + Send>; 2] =
        [Box::new(Observed(Scheduler::default())), Box::new(Binder::new(Config::default()))];
    deciding.into_iter().chain(lifecycle_controllers()).collect()
}

#[test]
fn explanations_agree_with_decisions_and_wakes_are_exact() {
    for case in crate::all() {
        let outcome = check(&case.config(|rules| *rules = observed as Rules));
        assert!(outcome.is_ok(), "{}", outcome.expect_err("the case failed"));
    }
    let counts = [&PLACED, &STUCK, &WOKEN].map(|count| count.load(Ordering::Relaxed));
    assert!(counts.iter().all(|count| *count > 300), "compared: {counts:?}");
}
