//! What the lifecycle controllers decide about an object: what blocks its deletion, who expands its
//! volume, and which ephemeral claims a pod still lacks.

use bindery_cache::Cache;
use bindery_lifecycle::rules::{claim_protection, ephemeral, expander, volume_protection};
use bindery_lifecycle::{ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::{Claim, Name, ObjectKey, PodKey, Volume, VolumePhase};
use bindery_rules_api::{ProtectedObject, Rule, RuleSet};

use crate::claim::events;
use crate::{ControllerDecision, next_step};

/// The decisions about a claim: its deletion and its expansion.
pub(crate) fn of_claim(known: &Cache, claim: &Claim) -> Vec<ControllerDecision> {
    let key: ObjectKey = claim.key().into();
    let mut all = Vec::new();
    if claim.deleting {
        // The Unused condition does not explain why a claim is still there.
        all.extend(decision(&ClaimProtection { reports_unused: false }, known, &key, &[&claim_protection::NO_ACTION]));
    }
    let quiet = [&expander::NOT_BOUND, &expander::VOLUME_NOT_BOUND, &expander::LARGE_ENOUGH, &expander::MALFORMED];
    all.extend(decision(&Expander, known, &key, &quiet));
    all
}

/// The decision about the deletion of a volume.
pub(crate) fn of_volume(known: &Cache, volume: &Volume) -> Vec<ControllerDecision> {
    let key = ObjectKey::volume(volume.name().clone());
    volume
        .deleting
        .then(|| decision(&VolumeProtection, known, &key, &[&volume_protection::NO_ACTION]))
        .flatten()
        .into_iter()
        .collect()
}

/// The decision about the ephemeral volumes of a pod.
pub(crate) fn of_pod(known: &Cache, key: &PodKey) -> Vec<ControllerDecision> {
    let quiet = [
        &ephemeral::NO_VOLUMES,
        &ephemeral::COMPLETE,
        &ephemeral::POD_TERMINATING,
        &ephemeral::POD_MALFORMED,
        &ephemeral::POD_DELETED,
    ];
    decision(&Ephemeral, known, &key.clone().into(), &quiet).into_iter().collect()
}

/// What a rule set decides, unless the rule that applies is one of the `quiet` ones.
fn decision(rules: &dyn RuleSet, known: &Cache, key: &ObjectKey, quiet: &[&Rule]) -> Option<ControllerDecision> {
    let verdict = next_step::verdict(rules, known, key);
    (!quiet.contains(&verdict.rule)).then(|| ControllerDecision {
        controller: rules.profile().name,
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: verdict.note.clone(),
        events: events(&verdict),
        next: next_step::of_verdict(&verdict),
    })
}

/// What a claim that is being deleted still waits for; `None` when it is not being deleted.
pub(crate) fn claim_deletion(known: &Cache, claim: &Claim) -> Option<String> {
    let key = claim.key();
    let pods: Vec<String> =
        known.pods_using(&key).filter(|pod| pod.protects(claim)).map(|pod| pod.key().to_string()).collect();
    let in_use = match pods.as_slice() {
        [] => None,
        [pod] => Some(format!("pod {pod} no longer uses it")),
        _ => Some(format!("pods {} no longer use it", pods.join(", "))),
    };
    claim.deleting.then(|| deletion(ProtectedObject::Claim(claim), &claim.finalizers, in_use))
}

/// What a volume that is being deleted still waits for; `None` when it is not being deleted.
pub(crate) fn volume_deletion(volume: &Volume) -> Option<String> {
    let is_bound = volume.phase == VolumePhase::Bound;
    let claim = volume.claim_ref.as_ref().filter(|_| is_bound);
    let in_use = claim.map(|claim| format!("claim {} is deleted", claim.key));
    volume.deleting.then(|| deletion(ProtectedObject::Volume(volume), &volume.finalizers, in_use))
}

fn deletion(object: ProtectedObject<'_>, finalizers: &[Name], in_use: Option<String>) -> String {
    let others: Vec<&str> =
        finalizers.iter().map(|name| name.as_str()).filter(|name| *name != object.finalizer()).collect();
    let mut conditions: Vec<String> = in_use.filter(|_| object.is_deleting_with_finalizer()).into_iter().collect();
    conditions.extend(match others.as_slice() {
        [] => None,
        [one] => Some(format!("finalizer {one} is removed by its owner")),
        _ => Some(format!("finalizers {} are removed by their owners", others.join(", "))),
    });
    match conditions.is_empty() {
        true => "It is being deleted, and nothing blocks the deletion.".into(),
        false => format!("It is being deleted, and stays Terminating until {}.", conditions.join(" and ")),
    }
}
