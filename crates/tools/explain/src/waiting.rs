//! What a claim or a volume waits for, as one sentence.

use bindery_binder::rules;
use bindery_cache::Cache;
use bindery_model::{Claim, Volume};
use bindery_rules_api::{Rule, Verdict};

use crate::{Bind, Terms};

/// What a claim waits for; `None` when it does not wait.
pub(crate) fn claim(
    known: &Cache,
    claim: &Claim,
    verdict: &Verdict,
    terms: &Terms,
    bind: Option<&Bind>,
) -> Option<String> {
    if bind.is_some() {
        return None;
    }
    let is = |rule: &Rule| verdict.rule == rule;
    let (required, class) = (terms.required_volume(), claim.class().as_str());
    let any = format!("a {required} becomes Available");
    let named = claim.volume.as_deref().unwrap_or_default();
    // A class without a provisioner means that an administrator creates its volumes.
    let manually = [&rules::CLAIM_NO_VOLUME_FITS, &rules::PROVISION_DISABLED, &rules::PROVISION_NO_PLUGIN];
    Some(if manually.contains(&verdict.rule) {
        format!("It binds when {any}.")
    } else if is(&rules::PROVISION_CLASS_MISSING) {
        format!("It proceeds when StorageClass {class:?} exists, or when {any}.")
    } else if is(&rules::PROVISION_WAIT) || is(&rules::PROVISION_REQUEST) {
        let provisioner = known.class(claim.class()).map(|class| class.provisioner.to_string()).unwrap_or_default();
        format!("It binds when provisioner {provisioner} has created a volume for it, or when {any}.")
    } else if is(&rules::CLAIM_WAITS_FOR_CONSUMER) {
        "It proceeds when a pod uses it and a scheduler has chosen a node.".into()
    } else if is(&rules::CLAIM_WAITS_FOR_SCHEDULING) {
        "It proceeds when a scheduler has chosen a node for its pod.".into()
    } else if is(&rules::CLAIM_CLASS_INVALID) {
        format!("It proceeds when StorageClass {class:?} is fixed.")
    } else if is(&rules::CLAIM_SELECTOR_INVALID) {
        "It can never bind, because the selector of a claim is immutable: create a new claim.".into()
    } else if is(&rules::CLAIM_NAMED_MISSING) {
        format!("It binds when PersistentVolume {named:?} exists and is not reserved for another claim.")
    } else if is(&rules::CLAIM_NAMED_MISMATCH) {
        format!("It binds when PersistentVolume {named:?} satisfies its requirements.")
    } else if is(&rules::CLAIM_NAMED_TAKEN) || is(&rules::CLAIM_NAMED_CONFLICT) {
        format!("It binds when PersistentVolume {named:?} is no longer reserved for another claim.")
    } else if is(&rules::CLAIM_NAMED_VOLUME_MALFORMED) || is(&rules::CLAIM_VOLUME_MALFORMED) {
        format!("It proceeds when the invalid field of PersistentVolume {named:?} is fixed.")
    } else if is(&rules::CLAIM_MALFORMED) {
        "It proceeds when that field is fixed.".into()
    } else if is(&rules::BIND_NO_CAPACITY) {
        "It proceeds when spec.capacity.storage of its volume is set.".into()
    } else {
        return None;
    })
}

/// What a volume waits for; `None` when it does not wait.
pub(crate) fn volume(volume: &Volume, verdict: &Verdict, terms: &Terms) -> Option<String> {
    let is = |rule: &Rule| verdict.rule == rule;
    let owner = volume.claim_ref.as_ref().map(|claim| claim.key.to_string()).unwrap_or_default();
    Some(if is(&rules::VOLUME_UNCLAIMED) {
        let class = match terms.class.as_deref() {
            None => "without a class".into(),
            Some(class) => format!("of class {class:?}"),
        };
        let size = terms.storage.as_ref().map_or_else(|| "storage".into(), |size| format!("{size} or less"));
        format!("It binds when a claim {class} requests {size}.")
    } else if is(&rules::VOLUME_RESERVED) {
        format!("It binds when claim {owner} can use it; no other claim can.")
    } else if is(&rules::RECLAIM_RETAIN) {
        "It becomes Available again when spec.claimRef is removed; its data is kept.".into()
    } else if is(&rules::VOLUME_MALFORMED) {
        "It proceeds when that field is fixed.".into()
    } else if is(&rules::VOLUME_CLAIM_MALFORMED) {
        format!("It proceeds when the invalid field of claim {owner} is fixed.")
    } else if is(&rules::VOLUME_MODE_MISMATCH) {
        format!("It never binds to claim {owner}: remove spec.claimRef to make it available to other claims.")
    } else if is(&rules::DELETE_EXTERNAL) || is(&rules::RECLAIM_MIGRATED) {
        "It remains until its external provisioner deletes it.".into()
    } else {
        return None;
    })
}
