//! One line for every candidate, the nearest first, and groups for those that get no line.

use std::collections::BTreeMap;

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, Mismatch, mismatches};
use bindery_model::{Claim, Kind, Name, Volume};

use crate::{Candidate, More};

/// A candidate and how near it is.
pub(crate) struct Ranked {
    pub nearness: Nearness,
    pub candidate: Candidate,
    /// What it has in common with others, for those that get no line.
    pub group: String,
}

/// How near a candidate is to being the one: by its standing, then by how many tests it fails, then by the first that it fails,
/// then by how far its capacity is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nearness {
    pub standing: Standing,
    pub failed: usize,
    pub first: usize,
    pub capacity_off_nanos: u128,
}

/// What stands between a claim and a volume, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Nothing: they are bound, or would be.
    Chosen,
    /// Another choice.
    Fits,
    /// Some test.
    Free,
    /// Another claim.
    Taken,
    /// The class: it was never meant for it.
    OtherClass,
}

/// The volumes for a claim that looks for one. `chosen` is the one that it would be bound to.
pub(crate) fn volumes(known: &Cache, request: &MatchCriteria<'_>, chosen: Option<&Name>) -> Vec<Ranked> {
    let chosen = chosen.and_then(|name| known.volume(name)).map(AsRef::as_ref);
    let keys = known.keys(Kind::Volume);
    let volumes = keys.iter().filter_map(|key| known.volume(&key.name));
    volumes.map(|volume| rank(known, request, chosen, volume)).collect()
}

/// The volume that a claim names. Neither its labels nor its phase count: who names a volume gets it.
pub(crate) fn named(known: &Cache, claim: &Claim, name: &Name, is_chosen: bool) -> Ranked {
    let Some(volume) = known.volume(name) else {
        let why = vec!["does not exist".to_owned()];
        return ranked(name.to_string(), Standing::Free, false, why, "that do not exist".into());
    };
    let plain = MatchCriteria { claim, selector: None, modes: claim.modes.set(), delayed: false, node: None };
    let mut failed = mismatches(&plain, volume);
    failed.retain(|mismatch| !matches!(mismatch, Mismatch::Phase(_)));
    if is_chosen || failed.is_empty() {
        let why = if is_chosen { "named by the claim" } else { "fits, but is another claim's" };
        return ranked(name.to_string(), Standing::Chosen, true, vec![why.into()], String::new());
    }
    of_misfits(volume.name().to_string(), &failed, 0)
}

fn rank(known: &Cache, request: &MatchCriteria<'_>, chosen: Option<&Volume>, volume: &Volume) -> Ranked {
    let (claim, name) = (request.claim, volume.name().to_string());
    // Which volumes a delayed claim can have is worth knowing: its pod's scheduler chooses among them.
    let failed = mismatches(&MatchCriteria { delayed: false, ..*request }, volume);
    if let Some(chosen) = chosen.filter(|chosen| chosen.name() == volume.name()) {
        let why = if chosen.refers_to(claim) { "reserved for the claim" } else { "fits" };
        return ranked(name, Standing::Chosen, true, vec![why.into()], String::new());
    }
    let off = (volume.size().nanos() - claim.requested().nanos()).unsigned_abs();
    if !failed.is_empty() {
        return of_misfits(name, &failed, off);
    }
    if !volume.refers_to(claim) && known.is_requested_by_name(volume) {
        let wanted_by = known.claims_naming(volume.name()).map(|other| other.key().to_string());
        let why = format!("wanted by {}", wanted_by.collect::<Vec<_>>().join(", "));
        return ranked(name, Standing::Taken, false, vec![why], "wanted by other claims by name".into());
    }
    let why = match chosen {
        Some(chosen) => format!("fits, but {}", comes_first(claim, chosen, volume)),
        None => "fits: a scheduler may choose it for the claim's pod".into(),
    };
    let mut fits = ranked(name, Standing::Fits, true, vec![why], "that fit too".into());
    fits.nearness.capacity_off_nanos = off;
    fits
}

/// Why one volume that fits is chosen before another.
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

/// A candidate that fails tests. The class is told last, unless it is all there is to tell.
pub(crate) fn of_misfits(name: String, failed: &[Mismatch<'_>], capacity_off_nanos: u128) -> Ranked {
    let is_class = |mismatch: &&Mismatch<'_>| matches!(mismatch, Mismatch::Class(_));
    let is_taken = |mismatch: &Mismatch<'_>| matches!(mismatch, Mismatch::ReservedFor(_));
    let main = failed.iter().find(is_class).or(failed.first());
    let standing = match main {
        Some(Mismatch::Class(_)) => Standing::OtherClass,
        Some(_) if failed.iter().any(is_taken) => Standing::Taken,
        Some(_) | None => Standing::Free,
    };
    let why = failed.iter().map(ToString::to_string).collect();
    let (order, group) = main.map(in_common).unwrap_or_default();
    let mut ranked = ranked(name, standing, false, why, group);
    ranked.nearness = Nearness { failed: failed.len(), first: order, capacity_off_nanos, ..ranked.nearness };
    ranked
}

/// Where a test stands in the order of nearness, and what all that fail it have in common.
fn in_common(mismatch: &Mismatch<'_>) -> (usize, String) {
    match mismatch {
        Mismatch::Delayed => (0, "that wait for a pod".into()),
        Mismatch::TooSmall { .. } => (1, "that are too small".into()),
        Mismatch::Label { .. } => (2, "with other labels".into()),
        Mismatch::MissingAccessModes(_) => (3, "that lack an access mode".into()),
        Mismatch::Phase(phase) => (4, format!("that are {}", phase.as_str())),
        Mismatch::VolumeMode { .. } => (5, "of another volume mode".into()),
        Mismatch::AttributesClass { .. } => (6, "of another attributes class".into()),
        Mismatch::Deleting => (7, "that are being deleted".into()),
        Mismatch::Malformed(_) => (8, "that cannot be read".into()),
        Mismatch::ReservedFor(_) => (9, "reserved for other claims".into()),
        Mismatch::Unreachable => (11, "that cannot be reached from the node".into()),
        Mismatch::Class(class) if class.is_empty() => (10, "without a class".into()),
        Mismatch::Class(class) => (10, format!("of class {:?}", class.as_str())),
    }
}

pub(crate) fn ranked(name: String, standing: Standing, fits: bool, why: Vec<String>, group: String) -> Ranked {
    let nearness = Nearness { standing, failed: 0, first: 0, capacity_off_nanos: 0 };
    Ranked { nearness, candidate: Candidate { name, fits, why }, group }
}

/// The lines and the groups. When not all get a line, those of another class are grouped first.
pub(crate) fn lines(mut all: Vec<Ranked>, lines_max: usize) -> (Vec<Candidate>, Vec<More>) {
    all.sort_by(|a, b| (a.nearness, &a.candidate.name).cmp(&(b.nearness, &b.candidate.name)));
    let mut shown = all.len();
    if shown > lines_max {
        let near = all.iter().filter(|ranked| ranked.nearness.standing < Standing::OtherClass).count();
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
