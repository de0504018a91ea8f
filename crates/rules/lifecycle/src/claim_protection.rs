//! The claim-protection controller: a claim that pods use does not go; and of a bound one it is said whether pods refer to it.

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
    /// Whether bound claims get the `Unused` condition (upstream's feature gate `PersistentVolumeClaimUnusedSinceTime`).
    pub says_unused: bool,
}

impl Default for ClaimProtection {
    fn default() -> ClaimProtection {
        ClaimProtection { says_unused: true }
    }
}

impl RuleSet for ClaimProtection {
    fn profile(&self) -> Profile {
        Profile {
            name: "persistentvolumeclaim-protection",
            component: "persistentvolumeclaim-protection",
            tempo: ResyncInterval::Rarely,
            sees: &[Kind::Claim, Kind::Pod],
            queues: &[(Kind::Claim, "pvcprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::Claim {
            return Verdict::settle(&rules::NOT_OURS);
        }
        let Some(claim) = known.claim(&key.claim_key()) else { return Verdict::settle(&rules::GONE) };
        if let Some(flaw) = &claim.field_error {
            return Verdict::settle(&rules::MALFORMED).noting(flaw.to_string());
        }
        if let Some(verdict) = self.report(known, claim, live_reads) {
            return verdict;
        }
        let guarded = ProtectedObject::Claim(claim);
        if guarded.is_deleting_with_finalizer() {
            return let_go(known, claim, live_reads);
        }
        if guarded.is_missing_finalizer() {
            return Verdict::write(&rules::GUARD, Write::guard(&rules::GUARD, guarded));
        }
        Verdict::settle(&rules::AT_REST)
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
                // NoObserver knows which claims it used: it held all of them.
                wake_deleted(known, &pod.meta.namespace, wake);
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
    /// Whether the `Unused` condition is kept on a claim.
    fn reports_on(&self, claim: &Claim) -> bool {
        self.says_unused && !claim.deleting && claim.status.phase == ClaimPhase::Bound
    }

    fn depends_on_pods(&self, claim: &Claim) -> bool {
        ProtectedObject::Claim(claim).is_deleting_with_finalizer() || self.reports_on(claim)
    }

    fn concerns_claim(&self, before: Option<&Object>, claim: &Claim) -> bool {
        let guarded = ProtectedObject::Claim(claim);
        let has_news = || match before {
            Some(Object::Claim(before)) => {
                !self.reports_on(before)
                    || before.status.unused != claim.status.unused
                    || before.controller != claim.controller
                    || before.field_error != claim.field_error
            }
            Some(_) | None => true,
        };
        guarded.is_deleting_with_finalizer() || guarded.is_missing_finalizer() || self.reports_on(claim) && has_news()
    }

    /// Brings the `Unused` condition in line with the pods; `None` when it is, or is not kept.
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
                return Some(Verdict::request(&rules::LOOK, Request::List(listing)));
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

/// Wakes the claims of a namespace that somebody deleted.
fn wake_deleted(known: &Cache, namespace: &Name, wake: &mut dyn FnMut(ObjectKey)) {
    let is_deleting_with_finalizer = |key: &ObjectKey| {
        let claim = known.claim(&key.claim_key());
        key.namespace == *namespace
            && claim.is_some_and(|claim| ProtectedObject::Claim(claim).is_deleting_with_finalizer())
    };
    let mut keys: Vec<ObjectKey> = known.keys(Kind::Claim).into_iter().filter(is_deleting_with_finalizer).collect();
    keys.sort_unstable();
    keys.into_iter().for_each(wake);
}

/// Lets a deleted claim go, if no pod holds it: none that is known, and none of all that there are.
fn let_go(known: &Cache, claim: &Claim, live_reads: &LiveReads) -> Verdict {
    let key = claim.key();
    let holders = known.pods_using(&key).filter(|pod| pod.protects(claim)).map(|pod| pod.key().into());
    // A pod that could not be understood may be one.
    let holders: Vec<ObjectKey> = holders.chain(known.malformed(Kind::Pod, &claim.meta.namespace).cloned()).collect();
    if !holders.is_empty() {
        return Verdict::settle(&rules::HELD).noting(format!("held by {}", users(&holders)));
    }
    match UnusedProof::of_claim(claim, live_reads) {
        Ok(proof) => Verdict::write(
            &rules::LET_GO,
            Write::remove_finalizer(&rules::LET_GO, ProtectedObject::Claim(claim), &proof),
        ),
        Err(NotUnused::Look(listing)) => Verdict::request(&rules::LOOK, Request::List(listing)),
        Err(NotUnused::UsedBy(pods)) => Verdict::settle(&rules::HELD).noting(format!("held by {}", users(&pods))),
    }
}
