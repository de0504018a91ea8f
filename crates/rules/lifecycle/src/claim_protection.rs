//! The claim-protection controller: protects claims from deletion while pods use them, and
//! maintains the `Unused` condition of bound claims.

use bindery_cache::{Cache, Change};
use bindery_model::{Claim, ClaimPhase, Condition, Kind, Name, Object, ObjectKey, Pod};
use bindery_rules_api::{
    ClaimReport, ConditionType, Listing, LiveReads, NotUnused, Profile, ProtectedObject, Request, ResyncInterval,
    RuleSet, UnusedProof, Verdict, Write, users,
};

use crate::rules::claim_protection as rules;

/// The rule set of the claim-protection controller.
#[derive(Debug, Clone, Copy)]
pub struct ClaimProtection {
    /// Whether bound claims get the `Unused` condition (upstream's feature gate
    /// `PersistentVolumeClaimUnusedSinceTime`).
    pub reports_unused: bool,
}

impl Default for ClaimProtection {
    fn default() -> ClaimProtection {
        ClaimProtection { reports_unused: true }
    }
}

impl RuleSet for ClaimProtection {
    fn profile(&self) -> Profile {
        Profile {
            name: "persistentvolumeclaim-protection",
            component: "persistentvolumeclaim-protection",
            resync: ResyncInterval::Rarely,
            watches: &[Kind::Claim, Kind::Pod],
            queues: &[(Kind::Claim, "pvcprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::Claim {
            return Verdict::idle(&rules::NOT_HANDLED);
        }
        let Some(claim) = known.claim(&key.claim_key()) else { return Verdict::idle(&rules::DELETED) };
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::MALFORMED).with_note(error.to_string());
        }
        if let Some(verdict) = self.report(known, claim, live_reads) {
            return verdict;
        }
        let protected = ProtectedObject::Claim(claim);
        if protected.is_deleting_with_finalizer() {
            return remove_finalizer(known, claim, live_reads);
        }
        if protected.is_missing_finalizer() {
            return Verdict::write(&rules::ADD_FINALIZER, Write::add_finalizer(&rules::ADD_FINALIZER, protected));
        }
        Verdict::idle(&rules::NO_ACTION)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        if let Some(Object::Claim(claim)) = &change.after
            && self.concerns_claim(change.before.as_ref(), claim)
        {
            wake(claim.key().into());
        }
        for object in change.after.iter().chain(&change.before) {
            let Object::Pod(pod) = object else { continue };
            if pod.field_error.is_some() {
                // It could not be parsed, so it may have used any claim of its namespace.
                wake_terminating(known, &pod.meta.namespace, wake);
            }
            for key in pod.claim_keys() {
                if known.claim(&key).is_some_and(|claim| self.depends_on_pods(claim)) {
                    wake(key.into());
                }
            }
        }
    }
}

impl ClaimProtection {
    /// Whether the `Unused` condition of a claim is maintained.
    fn reports_on(&self, claim: &Claim) -> bool {
        self.reports_unused && !claim.deleting && claim.status.phase == ClaimPhase::Bound
    }

    fn depends_on_pods(&self, claim: &Claim) -> bool {
        ProtectedObject::Claim(claim).is_deleting_with_finalizer() || self.reports_on(claim)
    }

    fn concerns_claim(&self, before: Option<&Object>, claim: &Claim) -> bool {
        let protected = ProtectedObject::Claim(claim);
        let has_changed = || match before {
            Some(Object::Claim(before)) => {
                !self.reports_on(before)
                    || before.status.unused != claim.status.unused
                    || before.controller != claim.controller
                    || before.field_error != claim.field_error
            }
            Some(_) | None => true,
        };
        protected.is_deleting_with_finalizer()
            || protected.is_missing_finalizer()
            || self.reports_on(claim) && has_changed()
    }

    /// Updates the `Unused` condition; `None` if it is correct or not maintained.
    fn report(&self, known: &Cache, claim: &Claim, live_reads: &LiveReads) -> Option<Verdict> {
        if !self.reports_on(claim) {
            return None;
        }
        let is_used = |pod: &Pod| pod.uses(claim);
        let mut used = known.pods_using(&claim.key()).any(|pod| is_used(pod));
        if !used {
            if claim.status.unused == Condition::True {
                return None;
            }
            let listing = Listing { kind: Kind::Pod, namespace: claim.meta.namespace.clone() };
            let Some(pods) = live_reads.listed(&listing) else {
                return Some(Verdict::request(&rules::LIST_PODS, Request::List(listing)));
            };
            used = pods.iter().any(|object| matches!(object, Object::Pod(pod) if is_used(pod)));
        }
        let (rule, report) = match (used, claim.status.unused) {
            (true, Condition::Absent | Condition::True) => (
                &rules::USED,
                ClaimReport::condition(
                    ConditionType::Unused,
                    false,
                    "PodUsingPVC",
                    "A pod is currently referencing this PVC",
                ),
            ),
            (false, Condition::Absent | Condition::False | Condition::Unknown) => (
                &rules::UNUSED,
                ClaimReport::condition(
                    ConditionType::Unused,
                    true,
                    "NoPodsUsingPVC",
                    "No pods are currently referencing this PVC",
                ),
            ),
            (true, Condition::False | Condition::Unknown) | (false, Condition::True) => return None,
        };
        Some(Verdict::write(rule, Write::report(rule, claim, report)))
    }
}

/// Wakes the Terminating claims of a namespace.
fn wake_terminating(known: &Cache, namespace: &Name, wake: &mut dyn FnMut(ObjectKey)) {
    let is_deleting_with_finalizer = |key: &ObjectKey| {
        let claim = known.claim(&key.claim_key());
        key.namespace == *namespace
            && claim.is_some_and(|claim| ProtectedObject::Claim(claim).is_deleting_with_finalizer())
    };
    let mut keys: Vec<ObjectKey> = known.keys(Kind::Claim).into_iter().filter(is_deleting_with_finalizer).collect();
    keys.sort_unstable();
    keys.into_iter().for_each(wake);
}

/// Removes the finalizer of a Terminating claim if no pod uses it, by the cache and by a live list.
fn remove_finalizer(known: &Cache, claim: &Claim, live_reads: &LiveReads) -> Verdict {
    let key = claim.key();
    let users_of = known.pods_using(&key).filter(|pod| pod.protects(claim)).map(|pod| pod.key().into());
    // A pod that could not be parsed may be a user.
    let known_users: Vec<ObjectKey> =
        users_of.chain(known.malformed(Kind::Pod, &claim.meta.namespace).cloned()).collect();
    if !known_users.is_empty() {
        return Verdict::idle(&rules::IN_USE).with_note(format!("used by {}", users(&known_users, known_users.len())));
    }
    match UnusedProof::of_claim(claim, live_reads) {
        Ok(proof) => Verdict::write(
            &rules::REMOVE_FINALIZER,
            Write::remove_finalizer(&rules::REMOVE_FINALIZER, ProtectedObject::Claim(claim), &proof),
        ),
        Err(NotUnused::NeedsList(listing)) => Verdict::request(&rules::LIST_PODS, Request::List(listing)),
        Err(NotUnused::UsedBy(pods)) => {
            Verdict::idle(&rules::IN_USE).with_note(format!("used by {}", users(&pods, pods.len())))
        }
    }
}
