//! What the controllers beside the binder say of an object, where that is of interest: who holds what is being deleted, and who
//! makes a volume grow.

use bindery_cache::Cache;
use bindery_lifecycle::rules::{claim_protection, ephemeral, expander, volume_protection};
use bindery_lifecycle::{ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::{Claim, Name, ObjectKey, PodKey, Volume, VolumePhase};
use bindery_rules_api::{ProtectedObject, Rule, RuleSet};

use crate::claim::events;
use crate::{Beside, next};

/// What is said of a claim.
pub(crate) fn of_claim(known: &Cache, claim: &Claim) -> Vec<Beside> {
    let key: ObjectKey = claim.key().into();
    let mut all = Vec::new();
    if claim.deleting {
        // The condition of claims in use is of no interest to who asks why one does not go.
        all.extend(said(&ClaimProtection { reports_unused: false }, known, &key, &[&claim_protection::NO_ACTION]));
    }
    let quiet = [&expander::NOT_BOUND, &expander::VOLUME_NOT_BOUND, &expander::LARGE_ENOUGH, &expander::MALFORMED];
    all.extend(said(&Expander, known, &key, &quiet));
    all
}

/// What is said of a volume.
pub(crate) fn of_volume(known: &Cache, volume: &Volume) -> Vec<Beside> {
    let key = ObjectKey::volume(volume.name().clone());
    volume
        .deleting
        .then(|| said(&VolumeProtection, known, &key, &[&volume_protection::NO_ACTION]))
        .flatten()
        .into_iter()
        .collect()
}

/// What is said of a pod.
pub(crate) fn of_pod(known: &Cache, key: &PodKey) -> Vec<Beside> {
    let quiet = [
        &ephemeral::NO_VOLUMES,
        &ephemeral::COMPLETE,
        &ephemeral::POD_TERMINATING,
        &ephemeral::POD_MALFORMED,
        &ephemeral::POD_DELETED,
    ];
    said(&Ephemeral, known, &key.clone().into(), &quiet).into_iter().collect()
}

/// What a rule set says, unless it is one of the quiet rules that applies.
fn said(rules: &dyn RuleSet, known: &Cache, key: &ObjectKey, quiet: &[&Rule]) -> Option<Beside> {
    let verdict = next::verdict(rules, known, key);
    (!quiet.contains(&verdict.rule)).then(|| Beside {
        controller: rules.profile().name,
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: verdict.note.clone(),
        events: events(&verdict),
        next: next::next(&verdict),
    })
}

/// What has to happen for a claim that is being deleted to go; nothing when it is not.
pub(crate) fn claim_goes_when(known: &Cache, claim: &Claim) -> Option<String> {
    let key = claim.key();
    let holders = known.pods_using(&key).filter(|pod| pod.protects(claim));
    let holders = holders.map(|pod| format!("pod {}", pod.key())).collect();
    claim.deleting.then(|| goes_when(ProtectedObject::Claim(claim), &claim.finalizers, holders))
}

/// What has to happen for a volume that is being deleted to go; nothing when it is not.
pub(crate) fn volume_goes_when(volume: &Volume) -> Option<String> {
    let is_held = volume.phase == VolumePhase::Bound;
    let holder = volume.claim_ref.iter().filter(|_| is_held).map(|claim| format!("claim {}", claim.key)).collect();
    volume.deleting.then(|| goes_when(ProtectedObject::Volume(volume), &volume.finalizers, holder))
}

fn goes_when(object: ProtectedObject<'_>, finalizers: &[Name], holders: Vec<String>) -> String {
    let others: Vec<&str> =
        finalizers.iter().map(|name| name.as_str()).filter(|name| *name != object.finalizer()).collect();
    let mut conditions = Vec::new();
    if object.is_deleting_with_finalizer() && !holders.is_empty() {
        let verb = if holders.len() == 1 { "is" } else { "are" };
        conditions.push(format!("{} {verb} gone", holders.join(", ")));
    }
    if !others.is_empty() {
        conditions.push(format!("whoever put them there removes the finalizers {}", others.join(", ")));
    }
    match conditions.is_empty() {
        true => "It is being deleted, and goes now.".into(),
        false => format!("It is being deleted, and goes when {}.", conditions.join(" and ")),
    }
}
