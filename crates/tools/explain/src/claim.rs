//! Explaining a claim.

use bindery_binder::{Binder, matching, rules};
use bindery_cache::Cache;
use bindery_matching::MatchCriteria;
use bindery_model::{Claim, ClaimKey, Kind, Name};
use bindery_rules_api::{Action, Event, Request as ApiRequest, Verdict};

use crate::candidates::{self, Ranked};
use crate::{Bind, Explanation, NotFound, lifecycle, next_step, terms, waiting};

/// Explains a claim. At most `lines_max` candidate volumes get a line.
pub fn explain_claim(
    binder: &Binder,
    known: &Cache,
    key: &ClaimKey,
    lines_max: usize,
) -> Result<Explanation, NotFound> {
    let claim = known.claim(key).ok_or_else(|| NotFound(key.clone().into()))?;
    let verdict = next_step::verdict(binder, known, &key.clone().into());
    let bound = next_step::bound_volume(claim, &verdict);
    let terms = terms::of_claim(claim);
    let candidates = if claim.field_error.is_some() || verdict.rule == &rules::CLAIM_BOUND {
        Vec::new()
    } else {
        candidates_of(known, claim, bound.as_ref().map(|(volume, _)| volume))
    };
    let (candidates, more) = candidates::lines(candidates, lines_max);
    let bind = bound.map(|(volume, is_done)| Bind {
        rivals: rivals(binder, known, claim, &volume),
        to: volume.to_string(),
        is_done,
    });
    Ok(Explanation {
        kind: Kind::Claim.as_str(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        phase: claim.status.phase.as_str().into(),
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: verdict.note.clone(),
        events: events(&verdict),
        provisioning: None,
        rejected: None,
        waits_for: lifecycle::claim_deletion(known, claim)
            .or_else(|| waiting::claim(known, claim, &verdict, &terms, bind.as_ref())),
        is_deleting: claim.deleting,
        controllers: lifecycle::of_claim(known, claim),
        terms: claim.field_error.is_none().then_some(terms),
        next: next_step::of_verdict(&verdict),
        bind,
        candidates,
        more,
        matrix: None,
        change: None,
    })
}

fn candidates_of(known: &Cache, claim: &Claim, chosen: Option<&Name>) -> Vec<Ranked> {
    if let Some(name) = &claim.volume {
        return vec![candidates::named(known, claim, name, chosen.is_some())];
    }
    // With an invalid class or selector, no volume can be judged.
    let delayed = matching::is_delayed(known, claim);
    let request =
        delayed.ok().filter(|_| claim.needs_volume()).and_then(|delayed| MatchCriteria::of(claim, delayed).ok());
    request.map(|request| candidates::volumes(known, &request, chosen)).unwrap_or_default()
}

/// Other claims that would bind to the same volume while it is not reserved.
fn rivals(binder: &Binder, known: &Cache, claim: &Claim, name: &Name) -> Vec<String> {
    let Some(volume) = known.volume(name).filter(|volume| volume.claim_ref.is_none()) else { return Vec::new() };
    let class = Some(volume.class());
    let classless = volume.class().is_empty().then(|| known.claims_needing_volume(None)).into_iter().flatten();
    let looking = known.claims_needing_volume(class).chain(classless).filter_map(|key| known.claim(key));
    let others = looking.chain(known.claims_naming(name)).filter(|other| other.meta != claim.meta);
    let would_bind = |other: &&std::sync::Arc<Claim>| {
        let verdict = next_step::verdict(binder, known, &other.key().into());
        next_step::bound_volume(other, &verdict).is_some_and(|(volume, _)| volume == *name)
    };
    others.filter(would_bind).map(|other| other.key().to_string()).collect()
}

/// The events of a verdict: those published now, and those published once its write has succeeded.
pub(crate) fn events(verdict: &Verdict) -> Vec<String> {
    let later: &[Event] = match &verdict.action {
        Action::Request(ApiRequest::Write(write)) => &write.then,
        Action::Request(ApiRequest::Create(create)) => &create.then,
        Action::Request(ApiRequest::Bind(bind)) => &bind.then,
        Action::Request(
            ApiRequest::Delete(_) | ApiRequest::Read(_) | ApiRequest::List(_) | ApiRequest::RunOperation(_),
        ) => &[],
        Action::Idle | Action::HandOff(_) | Action::Retry(_) | Action::Pause(_) => &[],
    };
    let text = |event: &Event| format!("{}: {}", event.reason.as_str(), event.message);
    verdict.events.iter().chain(later).map(text).collect()
}
