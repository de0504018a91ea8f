//! What has to happen for an object to go on, in a sentence.

use bindery_binder::rules;
use bindery_cache::Cache;
use bindery_model::{Claim, Volume};
use bindery_rules_api::{Rule, Verdict};

use crate::{Bind, Terms};

/// What a claim waits for; nothing when it does not wait.
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
    let (wanted, class) = (terms.wanted(), claim.class().as_str());
    let any = format!("a {wanted} becomes Available");
    let named = claim.volume.as_deref().unwrap_or_default();
    // A class without a provisioner is an honest way to say that its volumes are made by hand.
    let by_hand = [&rules::CLAIM_NO_VOLUME_FITS, &rules::PROVISION_DISABLED, &rules::PROVISION_NO_PLUGIN];
    Some(if by_hand.contains(&verdict.rule) {
        format!("It binds when {any}.")
    } else if is(&rules::PROVISION_CLASS_MISSING) {
        format!("It goes on when StorageClass {class:?} exists, or when {any}.")
    } else if is(&rules::PROVISION_WAIT) || is(&rules::PROVISION_REQUEST) {
        let provisioner = known.class(claim.class()).map(|class| class.provisioner.to_string()).unwrap_or_default();
        format!("It binds when {provisioner} has made a volume for it, or when {any}.")
    } else if is(&rules::CLAIM_WAITS_FOR_CONSUMER) {
        "It goes on when a pod uses it and a scheduler has chosen a node.".into()
    } else if is(&rules::CLAIM_WAITS_FOR_SCHEDULING) {
        "It goes on when a scheduler has chosen a node for its pod.".into()
    } else if is(&rules::CLAIM_CLASS_INVALID) {
        format!("It goes on when StorageClass {class:?} is mended.")
    } else if is(&rules::CLAIM_SELECTOR_INVALID) {
        "It never goes on: a claim's selector cannot be changed, so make a new claim.".into()
    } else if is(&rules::CLAIM_NAMED_MISSING) {
        format!("It binds when PersistentVolume {named:?} exists and is not another claim's.")
    } else if is(&rules::CLAIM_NAMED_MISMATCH) {
        format!("It binds when PersistentVolume {named:?} can serve it.")
    } else if is(&rules::CLAIM_NAMED_TAKEN) || is(&rules::CLAIM_NAMED_CONFLICT) {
        format!("It binds when PersistentVolume {named:?} is set free by its claim.")
    } else if is(&rules::CLAIM_NAMED_VOLUME_MALFORMED) || is(&rules::CLAIM_VOLUME_MALFORMED) {
        format!("It goes on when PersistentVolume {named:?} can be read.")
    } else if is(&rules::CLAIM_MALFORMED) {
        "It goes on when that field is mended.".into()
    } else if is(&rules::BIND_NO_CAPACITY) {
        "It goes on when its volume says how much it holds.".into()
    } else {
        return None;
    })
}

/// What a volume waits for; nothing when it does not wait.
pub(crate) fn volume(volume: &Volume, verdict: &Verdict, terms: &Terms) -> Option<String> {
    let is = |rule: &Rule| verdict.rule == rule;
    let owner = volume.claim_ref.as_ref().map(|claim| claim.key.to_string()).unwrap_or_default();
    Some(if is(&rules::VOLUME_UNCLAIMED) {
        let class = match terms.class.as_deref() {
            None => "without a class".into(),
            Some(class) => format!("of class {class:?}"),
        };
        let size = terms.storage.as_ref().map(|size| format!(" for {size} or less")).unwrap_or_default();
        format!("It binds when a claim {class}{size} needs it.")
    } else if is(&rules::VOLUME_RESERVED) {
        format!("It binds when claim {owner} takes it; no other can have it.")
    } else if is(&rules::RECLAIM_RETAIN) {
        "It is offered again when somebody removes spec.claimRef; what it holds stays on it.".into()
    } else if is(&rules::VOLUME_MALFORMED) {
        "It goes on when that field is mended.".into()
    } else if is(&rules::VOLUME_CLAIM_MALFORMED) {
        format!("It goes on when claim {owner} is mended.")
    } else if is(&rules::VOLUME_MODE_MISMATCH) {
        format!("It never binds to claim {owner}: remove spec.claimRef to offer it to others.")
    } else if is(&rules::DELETE_EXTERNAL) || is(&rules::RECLAIM_MIGRATED) {
        "It goes when its external provisioner has deleted it.".into()
    } else {
        return None;
    })
}
