//! Explaining a volume.

use bindery_binder::{Binder, matching, rules};
use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatches};
use bindery_model::{Claim, Kind, Name, ObjectKey, Volume, VolumePhase};

use crate::candidates::{self, Ranked, Standing, ranked};
use crate::claim::events;
use crate::{Bind, Explanation, NotFound, beside, next, terms, waits};

/// Why a volume is as it is, and at most so many of the claims that could have it one by one.
pub fn explain_volume(binder: &Binder, known: &Cache, name: &Name, lines_max: usize) -> Result<Explanation, NotFound> {
    let key = ObjectKey::volume(name.clone());
    let volume = known.volume(name).ok_or_else(|| NotFound(key.clone()))?;
    let verdict = next::verdict(binder, known, &key);
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
        waits_for: beside::volume_goes_when(volume).or_else(|| waits::volume(volume, &verdict, &terms)),
        is_deleting: volume.deleting,
        beside: beside::of_volume(known, volume),
        terms: volume.field_error.is_none().then_some(terms),
        next: next::next(&verdict),
        bind: bind(binder, known, volume),
        candidates,
        more,
        matrix: None,
        change: None,
    })
}

/// The claim that a volume is bound to, or would be: by what is decided about the claim, which binds it.
fn bind(binder: &Binder, known: &Cache, volume: &Volume) -> Option<Bind> {
    if volume.field_error.is_some() {
        return None;
    }
    let claim = match &volume.claim_ref {
        Some(owner) => known.claim(&owner.key).filter(|claim| volume.refers_to(claim))?,
        None => {
            let mut naming = known.claims_naming(volume.name());
            let taker = || matching::taker(known, volume, |_| false).and_then(|key| known.claim(key));
            naming.find(|claim| takes(binder, known, claim, volume).is_some()).or_else(taker)?
        }
    };
    let is_done = takes(binder, known, claim, volume)?;
    let is_done = is_done && volume.phase == VolumePhase::Bound;
    Some(Bind { to: claim.key().to_string(), is_done, rivals: Vec::new() })
}

/// Whether a claim is bound to the volume (`true`), or would be next (`false`).
fn takes(binder: &Binder, known: &Cache, claim: &Claim, volume: &Volume) -> Option<bool> {
    let verdict = next::verdict(binder, known, &claim.key().into());
    let (name, is_done) = next::bound_volume(claim, &verdict)?;
    (name == *volume.name()).then_some(is_done)
}

/// The claims that could have a volume: those that name it, the one that it is reserved for, and those that look for one.
fn claims_of(binder: &Binder, known: &Cache, volume: &Volume) -> Vec<Ranked> {
    let mut all: Vec<Ranked> = Vec::new();
    for claim in known.claims_naming(volume.name()) {
        all.push(match takes(binder, known, claim, volume) {
            Some(true) => line(claim, Standing::Chosen, true, "is bound to it".into()),
            Some(false) => line(claim, Standing::Chosen, true, "names it, and would bind to it".into()),
            None => {
                let rule = next::verdict(binder, known, &claim.key().into()).rule;
                line(claim, Standing::Free, false, format!("names it, but: {} [{rule}]", rule.why))
            }
        });
    }
    if let Some(owner) = &volume.claim_ref {
        match known.claim(&owner.key) {
            None => all.push(ranked(
                owner.key.to_string(),
                Standing::Free,
                false,
                vec!["does not exist".into()],
                String::new(),
            )),
            Some(claim) if !volume.refers_to(claim) => {
                all.push(line(claim, Standing::Free, false, "is another claim of that name".into()));
            }
            Some(claim) if claim.needs_volume() => all.push(looking(binder, known, claim, volume)),
            Some(_) => {}
        }
        return all;
    }
    // A claim of another class was never meant for it, and there may be many.
    let classless = volume.class().is_empty().then(|| known.claims_needing_volume(None)).into_iter().flatten();
    let keys = known.claims_needing_volume(Some(volume.class())).chain(classless);
    all.extend(keys.filter_map(|key| known.claim(key)).map(|claim| looking(binder, known, claim, volume)));
    all
}

fn looking(binder: &Binder, known: &Cache, claim: &Claim, volume: &Volume) -> Ranked {
    if takes(binder, known, claim, volume).is_some() {
        return line(claim, Standing::Chosen, true, "would bind to it".into());
    }
    let delayed = matching::is_delayed(known, claim);
    let Some(request) = delayed.ok().and_then(|delayed| MatchCriteria::of(claim, delayed).ok()) else {
        let rule = next::verdict(binder, known, &claim.key().into()).rule;
        return line(claim, Standing::Taken, false, format!("{} [{rule}]", rule.why));
    };
    let failed = mismatches(&request, volume);
    if failed.is_empty() {
        let why = match next::bound_volume(claim, &next::verdict(binder, known, &claim.key().into())) {
            Some((other, _)) => format!("would bind to {other} instead"),
            None => rules::VOLUME_WANTED.why.to_owned(),
        };
        return line(claim, Standing::Fits, true, why);
    }
    let off = (volume.size().nanos() - claim.requested().nanos()).unsigned_abs();
    candidates::of_misfits(claim.key().to_string(), &failed, off)
}

fn line(claim: &Claim, standing: Standing, fits: bool, why: String) -> Ranked {
    ranked(claim.key().to_string(), standing, fits, vec![why], "that wait".into())
}
