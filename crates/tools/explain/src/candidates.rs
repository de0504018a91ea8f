//! One line for every candidate, the best first, and groups for those that get no line.

use std::collections::BTreeMap;

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, Mismatch, mismatches};
use bindery_model::{Claim, Kind, Name, Volume};

use crate::{Candidate, More};

/// A candidate and its rank.
pub(crate) struct Ranked {
    pub rank: Rank,
    pub candidate: Candidate,
    /// The group it is counted in when it gets no line.
    pub group: String,
}

/// The order of candidates: by tier, then by the number of failed checks, then by the first failed
/// check, then by the difference in capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub tier: Tier,
    pub failed_count: usize,
    pub first_failed: usize,
    pub capacity_difference_nanos: u128,
}

/// How close a claim and a volume are to being bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// They are bound, or would be.
    Chosen,
    /// All checks pass, but another candidate is preferred.
    Fits,
    /// A check fails.
    Mismatched,
    /// The volume is reserved for another claim.
    Reserved,
    /// The volume has another class.
    OtherClass,
}

/// The candidates for a claim without a volume. `chosen` is the one that it would be bound to.
pub(crate) fn volumes(known: &Cache, request: &MatchCriteria<'_>, chosen: Option<&Name>) -> Vec<Ranked> {
    let chosen = chosen.and_then(|name| known.volume(name)).map(AsRef::as_ref);
    let keys = known.keys(Kind::Volume);
    let volumes = keys.iter().filter_map(|key| known.volume(&key.name));
    volumes.map(|volume| rank(known, request, chosen, volume)).collect()
}

/// The volume that `spec.volumeName` of a claim names: neither its labels nor its phase matter.
pub(crate) fn named(known: &Cache, claim: &Claim, name: &Name, is_chosen: bool) -> Ranked {
    let Some(volume) = known.volume(name) else {
        let why = vec!["does not exist".to_owned()];
        return ranked(name.to_string(), Tier::Mismatched, false, why, "that do not exist".into());
    };
    let plain = MatchCriteria { claim, selector: None, modes: claim.modes.set(), delayed: false, node: None };
    let mut failed = mismatches(&plain, volume);
    failed.retain(|mismatch| !matches!(mismatch, Mismatch::Phase(_)));
    if is_chosen || failed.is_empty() {
        let why = if is_chosen { "named by the claim" } else { "fits, but is reserved for another claim" };
        return ranked(name.to_string(), Tier::Chosen, true, vec![why.into()], String::new());
    }
    mismatched(volume.name().to_string(), &failed, 0)
}

fn rank(known: &Cache, request: &MatchCriteria<'_>, chosen: Option<&Volume>, volume: &Volume) -> Ranked {
    let (claim, name) = (request.claim, volume.name().to_string());
    // A delayed claim is not rejected here: the scheduler chooses among the volumes that fit.
    let failed = mismatches(&MatchCriteria { delayed: false, ..*request }, volume);
    if let Some(chosen) = chosen.filter(|chosen| chosen.name() == volume.name()) {
        let why = if chosen.refers_to(claim) { "reserved for the claim" } else { "fits" };
        return ranked(name, Tier::Chosen, true, vec![why.into()], String::new());
    }
    let difference = (volume.size().nanos() - claim.requested().nanos()).unsigned_abs();
    if !failed.is_empty() {
        return mismatched(name, &failed, difference);
    }
    if !volume.refers_to(claim) && known.is_requested_by_name(volume) {
        let named_by = known.claims_naming(volume.name()).map(|other| other.key().to_string());
        let why = format!("named by {}", named_by.collect::<Vec<_>>().join(", "));
        return ranked(name, Tier::Reserved, false, vec![why], "named by other claims".into());
    }
    let why = match chosen {
        Some(chosen) => format!("fits, but {}", comes_first(claim, chosen, volume)),
        None => "fits: a scheduler may choose it for the claim's pod".into(),
    };
    let mut fits = ranked(name, Tier::Fits, true, vec![why], "that also fit".into());
    fits.rank.capacity_difference_nanos = difference;
    fits
}

/// Why one suitable volume is preferred to another.
fn comes_first(claim: &Claim, chosen: &Volume, other: &Volume) -> String {
    let name = chosen.name();
    if chosen.refers_to(claim) {
        format!("{name} is reserved for the claim")
    } else if chosen.modes.set().count() < other.modes.set().count() {
        format!("{name} has fewer access modes")
    } else if chosen.size() < other.size() {
        format!("{name} is smaller")
    } else {
        format!("{name} comes first by name")
    }
}

/// A candidate that fails checks.
pub(crate) fn mismatched(name: String, failed: &[Mismatch<'_>], capacity_difference_nanos: u128) -> Ranked {
    let is_class = |mismatch: &&Mismatch<'_>| matches!(mismatch, Mismatch::Class(_));
    let is_taken = |mismatch: &Mismatch<'_>| matches!(mismatch, Mismatch::ReservedFor(_));
    let main = failed.iter().find(is_class).or(failed.first());
    let tier = match main {
        Some(Mismatch::Class(_)) => Tier::OtherClass,
        Some(_) if failed.iter().any(is_taken) => Tier::Reserved,
        Some(_) | None => Tier::Mismatched,
    };
    let why = failed.iter().map(ToString::to_string).collect();
    let (order, group) = main.map(group).unwrap_or_default();
    let mut ranked = ranked(name, tier, false, why, group);
    ranked.rank = Rank { failed_count: failed.len(), first_failed: order, capacity_difference_nanos, ..ranked.rank };
    ranked
}

/// The rank of a failed check, and the group of the candidates that fail it.
fn group(mismatch: &Mismatch<'_>) -> (usize, String) {
    match mismatch {
        Mismatch::Delayed => (0, "that wait for a pod".into()),
        Mismatch::TooSmall { .. } => (1, "that are too small".into()),
        Mismatch::Label { .. } => (2, "with other labels".into()),
        Mismatch::MissingAccessModes(_) => (3, "that lack an access mode".into()),
        Mismatch::Phase(phase) => (4, format!("that are {}", phase.as_str())),
        Mismatch::VolumeMode { .. } => (5, "of another volume mode".into()),
        Mismatch::AttributesClass { .. } => (6, "of another attributes class".into()),
        Mismatch::Deleting => (7, "that are being deleted".into()),
        Mismatch::Scrubbing => (7, "that are being scrubbed".into()),
        Mismatch::Malformed(_) => (8, "that are invalid".into()),
        Mismatch::ReservedFor(_) => (9, "reserved for other claims".into()),
        Mismatch::Unreachable => (11, "not reachable from the node".into()),
        Mismatch::Class(class) if class.is_empty() => (10, "without a class".into()),
        Mismatch::Class(class) => (10, format!("of class {:?}", class.as_str())),
    }
}

pub(crate) fn ranked(name: String, tier: Tier, fits: bool, why: Vec<String>, group: String) -> Ranked {
    let rank = Rank { tier, failed_count: 0, first_failed: 0, capacity_difference_nanos: 0 };
    Ranked { rank, candidate: Candidate { name, fits, why }, group }
}

/// The lines and the groups. If there are too many candidates, those of another class get no line.
pub(crate) fn lines(mut all: Vec<Ranked>, lines_max: usize) -> (Vec<Candidate>, Vec<More>) {
    all.sort_by(|a, b| (a.rank, &a.candidate.name).cmp(&(b.rank, &b.candidate.name)));
    let mut shown = all.len();
    if shown > lines_max {
        let near = all.iter().filter(|ranked| ranked.rank.tier < Tier::OtherClass).count();
        shown = near.min(lines_max);
    }
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for ranked in all.drain(shown..) {
        *groups.entry(ranked.group).or_default() += 1;
    }
    let mut more: Vec<More> = groups.into_iter().map(|(what, count)| More { count, what }).collect();
    more.sort_by_key(|more| std::cmp::Reverse(more.count));
    if more.len() > lines_max {
        let count = more.drain(lines_max..).map(|more| more.count).sum();
        more.push(More { count, what: "for other reasons".into() });
    }
    (all.into_iter().map(|ranked| ranked.candidate).collect(), more)
}
