//! Explaining a volume.

use bindery_binder::{Binder, matching, rules};
use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatches};
use bindery_model::{Claim, Kind, Name, ObjectKey, Volume, VolumePhase};

use crate::candidates::{self, Ranked, Tier, ranked};
use crate::claim::events;
use crate::{Bind, Explanation, NotFound, lifecycle, next_step, terms, waiting};

/// Explains a volume. At most `lines_max` candidate claims get a line.
pub fn explain_volume(binder: &Binder, known: &Cache, name: &Name, lines_max: usize) -> Result<Explanation, NotFound> {
    let key = ObjectKey::volume(name.clone());
    let volume = known.volume(name).ok_or_else(|| NotFound(key.clone()))?;
    let verdict = next_step::verdict(binder, known, &key);
    let terms = terms::of_volume(volume);
    let claims = if volume.field_error.is_some() { Vec::new() } else { claims_of(binder, known, volume) };
    let (candidates, more) = candidates::lines(claims, lines_max);
    Ok(Explanation {
        kind: Kind::Volume.as_str(),
        namespace: Name::default(),
        name: name.clone(),
        phase: volume.phase.as_str().into(),
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: verdict.note.clone(),
        events: events(&verdict),
        provisioning: None,
        rejected: None,
        waits_for: lifecycle::volume_deletion(volume).or_else(|| waiting::volume(volume, &verdict, &terms)),
        is_deleting: volume.deleting,
        controllers: lifecycle::of_volume(known, volume),
        terms: volume.field_error.is_none().then_some(terms),
        next: next_step::of_verdict(&verdict),
        bind: bind(binder, known, volume),
        candidates,
        more,
        matrix: None,
        change: None,
    })
}

/// The claim that the volume is bound to, or would be. The decision about the claim counts, because
/// claims bind volumes.
fn bind(binder: &Binder, known: &Cache, volume: &Volume) -> Option<Bind> {
    if volume.field_error.is_some() {
        return None;
    }
    let claim = match &volume.claim_ref {
        Some(owner) => known.claim(&owner.key).filter(|claim| volume.refers_to(claim))?,
        None => {
            let mut naming = known.claims_naming(volume.name());
            let taker = || matching::taker(known, volume, |_| false).and_then(|key| known.claim(key));
            naming.find(|claim| binds(binder, known, claim, volume).is_some()).or_else(taker)?
        }
    };
    let is_done = binds(binder, known, claim, volume)?;
    let is_done = is_done && volume.phase == VolumePhase::Bound;
    Some(Bind { to: claim.key().to_string(), is_done, rivals: Vec::new() })
}

/// `Some(true)` if the claim is bound to the volume, `Some(false)` if it would be next.
fn binds(binder: &Binder, known: &Cache, claim: &Claim, volume: &Volume) -> Option<bool> {
    let verdict = next_step::verdict(binder, known, &claim.key().into());
    let (name, is_done) = next_step::bound_volume(claim, &verdict)?;
    (name == *volume.name()).then_some(is_done)
}

/// The candidates for a volume: claims that name it, the claim that it is reserved for, and claims
/// that search for a volume.
fn claims_of(binder: &Binder, known: &Cache, volume: &Volume) -> Vec<Ranked> {
    let mut all: Vec<Ranked> = Vec::new();
    for claim in known.claims_naming(volume.name()) {
        all.push(match binds(binder, known, claim, volume) {
            Some(true) => line(claim, Tier::Chosen, true, "is bound to it".into()),
            Some(false) => line(claim, Tier::Chosen, true, "names it and would bind to it".into()),
            None => {
                let rule = next_step::verdict(binder, known, &claim.key().into()).rule;
                line(claim, Tier::Mismatched, false, format!("names it, but is not bound: {} [{rule}]", rule.why))
            }
        });
    }
    if let Some(owner) = &volume.claim_ref {
        match known.claim(&owner.key) {
            None => all.push(ranked(
                owner.key.to_string(),
                Tier::Mismatched,
                false,
                vec!["does not exist".into()],
                String::new(),
            )),
            Some(claim) if !volume.refers_to(claim) => {
                all.push(line(claim, Tier::Mismatched, false, "is another claim with the same name".into()));
            }
            Some(claim) if claim.needs_volume() => all.push(looking(binder, known, claim, volume)),
            Some(_) => {}
        }
        return all;
    }
    // Claims of other classes are left out: they can never bind, and there may be many.
    let classless = volume.class().is_empty().then(|| known.claims_needing_volume(None)).into_iter().flatten();
    let keys = known.claims_needing_volume(Some(volume.class())).chain(classless);
    all.extend(keys.filter_map(|key| known.claim(key)).map(|claim| looking(binder, known, claim, volume)));
    all
}

fn looking(binder: &Binder, known: &Cache, claim: &Claim, volume: &Volume) -> Ranked {
    if binds(binder, known, claim, volume).is_some() {
        return line(claim, Tier::Chosen, true, "would bind to it".into());
    }
    let delayed = matching::is_delayed(known, claim);
    let Some(request) = delayed.ok().and_then(|delayed| MatchCriteria::of(claim, delayed).ok()) else {
        let rule = next_step::verdict(binder, known, &claim.key().into()).rule;
        return line(claim, Tier::Reserved, false, format!("{} [{rule}]", rule.why));
    };
    let failed = mismatches(&request, volume);
    if failed.is_empty() {
        let why = match next_step::bound_volume(claim, &next_step::verdict(binder, known, &claim.key().into())) {
            Some((other, _)) => format!("would bind to {other} instead"),
            None => rules::VOLUME_WANTED.why.to_owned(),
        };
        return line(claim, Tier::Fits, true, why);
    }
    let difference = (volume.size().nanos() - claim.requested().nanos()).unsigned_abs();
    candidates::mismatched(claim.key().to_string(), &failed, difference)
}

fn line(claim: &Claim, tier: Tier, fits: bool, why: String) -> Ranked {
    ranked(claim.key().to_string(), tier, fits, vec![why], "that are waiting".into())
}
