//! Explaining a pod: the claims of its volumes, and those that are made for it.

use bindery_companions::Ephemeral;
use bindery_mirror::Mirror;
use bindery_volumes::{Claim, ClaimPhase, Kind, Pod, PodKey, PodPhase, PodVolume};

use crate::claim::events;
use crate::{Candidate, Explanation, NotFound, next};

/// Why a pod's volumes are as they are: a line for each that is a claim's.
pub fn explain_pod(known: &Mirror, key: &PodKey) -> Result<Explanation, NotFound> {
    let pod = known.pod(key).ok_or_else(|| NotFound(key.clone().into()))?;
    let verdict = next::verdict(&Ephemeral, known, &key.clone().into());
    let lines: Vec<Candidate> = pod.volumes.iter().map(|volume| line(known, pod, volume)).collect();
    let missing: Vec<&str> = lines.iter().filter(|line| !line.fits).map(|line| line.name.as_str()).collect();
    let waits_for = match missing.as_slice() {
        [] => None,
        [one] => Some(format!("Its volumes are there when claim {one} is bound.")),
        several => Some(format!("Its volumes are there when claims {} are bound.", several.join(", "))),
    };
    Ok(Explanation {
        kind: Kind::Pod.as_str(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        phase: phase(pod),
        is_deleting: pod.deleting,
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: verdict.note.clone(),
        events: events(&verdict),
        terms: None,
        next: next::next(&verdict),
        bind: None,
        beside: Vec::new(),
        waits_for: waits_for.filter(|_| !pod.is_terminated()),
        candidates: lines,
        more: Vec::new(),
    })
}

fn phase(pod: &Pod) -> &'static str {
    match pod.phase {
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Active if pod.node.is_empty() => "waiting for a node",
        PodPhase::Active => "on a node",
    }
}

/// How the claim of a volume stands.
fn line(known: &Mirror, pod: &Pod, volume: &PodVolume) -> Candidate {
    let key = pod.claim_key(volume);
    let claim = known.claim(&key);
    let is_its_own = |claim: &Claim| !volume.is_ephemeral() || pod.owns(claim);
    let fits = claim.is_some_and(|claim| is_its_own(claim) && claim.status.phase == ClaimPhase::Bound);
    let name = &volume.name;
    let of = if volume.is_ephemeral() { format!("ephemeral volume {name}") } else { format!("volume {name}") };
    let how = match claim {
        None if volume.is_ephemeral() => "its claim does not exist yet".into(),
        None => "its claim does not exist".into(),
        Some(claim) if !is_its_own(claim) => "a claim of that name is there, and was not made for this pod".into(),
        Some(claim) => state(claim),
    };
    Candidate { name: key.name.to_string(), fits, why: vec![of, how] }
}

fn state(claim: &Claim) -> String {
    let phase = claim.status.phase.as_str();
    let deleting = if claim.deleting { ", being deleted" } else { "" };
    match &claim.volume {
        Some(volume) => format!("{phase} to {volume}{deleting}"),
        None => format!("{phase}{deleting}: see bindery explain pvc/{}", claim.meta.name),
    }
}
