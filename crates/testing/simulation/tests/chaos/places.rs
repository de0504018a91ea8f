//! The promises of the scheduler, checked by looking at the world's JSON, and at what an engine knew when it decided: independent
//! of the rules that are to keep them.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch};
use bindery_model::{Annotation, ClaimKey, ClaimRef, Kind, Name, Node, ObjectKey, Pod};
use bindery_rules_api::{Bind, ClaimEdit, Edit, RefEdit, Request, VolumeEdit, Write};
use bindery_simulation::{World, notation};
use serde_json::Value;

use crate::guards::{claims_of, controller, is_deleting, list, of_kind, text};
use crate::past::Past;
use crate::promises::is_delayed;

/// The one node that something is confined to, if it is: a volume by its affinity, a pod by its own.
fn confined_to(object: &Value) -> Option<&str> {
    let volume = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
    let pod = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
               /matchExpressions/0/values/0";
    object.pointer(volume).or_else(|| object.pointer(pod)).and_then(Value::as_str)
}

/// Whether something may be on a node, or be used from it. What is gone from the world tells nothing any more.
fn suits(world: &World, key: &ObjectKey, node: &str) -> bool {
    world.get(key).and_then(confined_to).is_none_or(|only| only == node)
}

// === When a request is sent, by what the engine knows ===

/// S6, S8, S9: who is sent where, by what the engine that sends it knows.
pub fn sent(known: &Cache, world: &World, request: &Request) {
    match request {
        Request::Bind(bind) => placed(known, world, bind),
        Request::Write(write) => match write.edit() {
            Edit::Volume(VolumeEdit { claim_ref: Some(RefEdit::Set(owner, _)), .. }) => {
                reserved(known, world, write, owner);
            }
            Edit::Claim(ClaimEdit { annotations, .. }) => {
                let selected = annotations.iter().find(|(annotation, _)| *annotation == Annotation::SelectedNode);
                if let Some(node) = selected.and_then(|(_, node)| node.as_ref()) {
                    let claim = write.target().claim_key();
                    let users = users(known, &claim);
                    let will_do = |pod: &&Pod| open(known, node) && may_be_on(known, world, pod, node);
                    assert!(users.iter().any(will_do), "{node} was selected for {claim}, which nobody needs there");
                }
            }
            Edit::Volume(_) | Edit::VolumeStatus(_) | Edit::PodStatus(_) | Edit::Protection(_) => {}
            Edit::ClaimStatus(_) | Edit::ClaimReport(_) => {}
        },
        Request::Create(_) | Request::Delete(_) | Request::Read(_) | Request::List(_) | Request::RunOperation(_) => {}
    }
}

/// The pods that wait for a node and have a claim.
fn users<'a>(known: &'a Cache, claim: &ClaimKey) -> Vec<&'a Pod> {
    let pods = known.pods_using(claim).map(|pod| &**pod);
    pods.filter(|pod| pod.node.is_empty() && !pod.deleting && !pod.is_finished()).collect()
}

/// The pods that have not ended, and are to have a node if they have none.
fn living(known: &Cache) -> impl Iterator<Item = &Pod> {
    let pods = known.keys(Kind::Pod).into_iter().filter_map(|key| known.pod(&key.pod_key()));
    pods.map(|pod| &**pod).filter(|pod| !pod.is_finished() && (!pod.deleting || !pod.node.is_empty()))
}

fn open(known: &Cache, node: &Name) -> bool {
    known.node(node).is_some_and(|node| !node.unschedulable)
}

/// Whether a pod may be on a node, and reaches from there all the volumes that its claims have.
fn may_be_on(known: &Cache, world: &World, pod: &Pod, node: &Name) -> bool {
    let claims = pod.claim_keys().filter_map(|key| known.claim(&key)?.volume.clone());
    let reaches = |volume: Name| suits(world, &ObjectKey::volume(volume), node);
    // A pod that came under its name says nothing of it.
    let is_another = world.get(&pod.key().into()).is_some_and(|object| text(object, "/metadata/uid") != pod.meta.uid);
    (is_another || suits(world, &pod.key().into(), node)) && claims.into_iter().all(reaches)
}

/// A pod gets its node when all of its claims are bound, to volumes that the node reaches.
fn placed(known: &Cache, world: &World, bind: &Bind) {
    let (key, node) = (bind.target(), bind.node());
    let pod = known.pod(&key.pod_key()).expect("the pod is known");
    assert!(open(known, node), "{key} was sent to {node}, which is closed");
    let there =
        |other: &Pod| [&other.node, &other.scheduling.nominated_node].contains(&node) || other.meta.uid == pod.meta.uid;
    let taken: i128 =
        living(known).filter(|other| there(other)).map(|other| other.scheduling.requests.cpu_millis).sum();
    let room = known.node(node).map(|node| node.allocatable.cpu_millis).unwrap_or_default();
    assert!(taken <= room, "{key} was sent to {node}, where others are or are meant to be");
    assert!(may_be_on(known, world, pod, node), "{key} does not reach its volumes from {node}");
    for volume in &pod.volumes {
        let claim = known.claim(&pod.claim_key(volume)).expect("the pod's claim is known");
        let name = claim.volume.as_ref().expect("the pod's claim has a volume");
        // Whose a volume is that came under the name of one that is gone, the binder has yet to say.
        let is_bound = known.volume(name).is_some() && claim.is_bind_completed();
        assert!(is_bound, "{key} got a node, and {} is not bound", claim.key());
        assert!(!volume.is_ephemeral() || pod.owns(claim), "{key} uses {}, which is another's", claim.key());
    }
}

/// A volume is kept for a claim that waits for its consumer only where there is one: for a pod that can be where the volume is.
fn reserved(known: &Cache, world: &World, write: &Write, owner: &ClaimRef) {
    let target = write.target();
    let Some(claim) = known.claim(&owner.key) else { return };
    if let Some(volume) = &claim.volume {
        assert_eq!(*volume, target.name, "{} asks for another volume", owner.key);
        return;
    }
    let volume = known.volume(&target.name).expect("the volume is known");
    if !is_delayed(claim) || volume.claim_ref.is_some() {
        return;
    }
    let ask = MatchCriteria::of(claim, false).expect("selectors make sense here");
    assert_eq!(mismatch(&ask, volume), None, "{target} does not fit {}", owner.key);
    let will_do = |pod: &Pod, node: &Node| {
        !node.unschedulable && may_be_on(known, world, pod, node.name()) && suits(world, target, node.name())
    };
    let is_needed = users(known, &owner.key).iter().any(|pod| known.nodes().any(|node| will_do(pod, node)));
    assert!(is_needed, "{target} was kept for {}, which nobody needs there", owner.key);
}

// === When a request is carried out, by how things stand ===

/// S11: a pod that was given its node had the UID and the version that were asked for, and had none.
pub fn carried_out(before: &World, after: &World, request: &Request, past: &mut Past) {
    let Request::Bind(bind) = request else { return };
    let (key, body) = (bind.target(), bind.body());
    let was = before.get(key).expect("the pod was there");
    for field in ["/metadata/uid", "/metadata/resourceVersion"] {
        assert_eq!(text(&body, field), text(was, field), "{key}: {field}");
    }
    assert_eq!(text(was, "/spec/nodeName"), "", "{key} had a node");
    let is = after.get(key).expect("the pod is there");
    assert_eq!(text(is, "/spec/nodeName"), bind.node().as_str());
    let is_going = |(name, _): &(String, bool)| before.get(&claim_key(name)).is_some_and(is_deleting);
    if claims_of(was).iter().any(is_going) {
        past.note_too_late(is);
    }
}

/// No node is given more than it has, as long as one engine gives.
pub fn there_is_room(world: &World, request: &Request) {
    let Request::Bind(bind) = request else { return };
    let Some(node) = world.get(&ObjectKey::cluster(Kind::Node, bind.node().clone())) else { return };
    let (taken, room) = (taken(world, bind.node()), cpu(node, "/status/allocatable/cpu"));
    assert!(taken <= room, "{} pods take {taken} processors of {room} of {}", bind.target(), bind.node());
}

fn cpu(object: &Value, pointer: &str) -> u64 {
    text(object, pointer).parse().unwrap_or_default()
}

fn needs(pod: &Value) -> u64 {
    cpu(pod, "/spec/containers/0/resources/requests/cpu")
}

fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn taken(world: &World, node: &str) -> u64 {
    let there = |pod: &&Value| text(pod, "/spec/nodeName") == node && !is_over(pod);
    of_kind(world, Kind::Pod).map(|(_, pod)| pod).filter(there).map(needs).sum()
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

// === When the faults have stopped ===

/// Every pod has a node that can have one; who has none is told so, and takes no room.
pub fn nothing_left(world: &World) {
    for (key, pod) in of_kind(world, Kind::Pod) {
        if !text(pod, "/spec/nodeName").is_empty() || is_deleting(pod) || is_over(pod) {
            continue;
        }
        assert_eq!(text(pod, "/status/nominatedNodeName"), "", "{key} waits for ever");
        let is_told = list(pod, "/status/conditions").any(|condition| condition["status"] == "False");
        assert!(is_told, "{key} has no node, and is not told why");
        for (node, state) in of_kind(world, Kind::Node) {
            let why = notation::places(world);
            assert!(!can_have(world, pod, &node.name, state), "{key} waits though {node} will do: {why:#?}");
        }
    }
}

fn can_have(world: &World, pod: &Value, node: &Name, state: &Value) -> bool {
    let is_open = state["spec"]["unschedulable"] != true;
    let has_room = taken(world, node) + kept_free(world, node) + needs(pod) <= cpu(state, "/status/allocatable/cpu");
    let may_go = confined_to(pod).is_none_or(|only| only == node.as_str());
    is_open && has_room && may_go && can_have_all(world, pod, &claims_of(pod), node, &mut Vec::new())
}

fn has_class(world: &World, claim: &Value) -> bool {
    world.get(&ObjectKey::cluster(Kind::Class, Name::from(text(claim, "/spec/storageClassName")))).is_some()
}

/// What is kept free on a node that was selected for claims of pods which wait: their volumes are made once their class is back.
fn kept_free(world: &World, node: &Name) -> u64 {
    let waits = |claim: &Value| {
        let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
        selected == Some(node) && text(claim, "/spec/volumeName").is_empty() && !has_class(world, claim)
    };
    let has_one = |pod: &&Value| claims_of(pod).iter().any(|(name, _)| world.get(&claim_key(name)).is_some_and(waits));
    let waiting = |pod: &&Value| text(pod, "/spec/nodeName").is_empty() && !is_deleting(pod) && !is_over(pod);
    of_kind(world, Kind::Pod).map(|(_, pod)| pod).filter(waiting).filter(has_one).map(needs).sum()
}

/// Whether each of a pod's claims has a volume that a node reaches, or could get one of its own.
fn can_have_all<'a>(
    world: &'a World,
    pod: &Value,
    claims: &[(String, bool)],
    node: &Name,
    given: &mut Vec<&'a ObjectKey>,
) -> bool {
    let [(name, is_made), rest @ ..] = claims else { return true };
    let Some(claim) = world.get(&claim_key(name)).filter(|claim| !is_deleting(claim)) else { return false };
    if *is_made && controller(claim) != Some(text(pod, "/metadata/uid")) {
        return false;
    }
    let has = text(claim, "/spec/volumeName");
    if !has.is_empty() {
        let volume = world.get(&ObjectKey::volume(Name::from(has)));
        let is_its = |volume: &&Value| text(volume, "/spec/claimRef/uid") == text(claim, "/metadata/uid");
        let reaches =
            volume.filter(is_its).is_some_and(|volume| confined_to(volume).is_none_or(|only| only == node.as_str()));
        let is_bound = text(claim, "/status/phase") == "Bound";
        return is_bound && reaches && can_have_all(world, pod, rest, node, given);
    }
    let class = text(claim, "/spec/storageClassName");
    if !has_class(world, claim) {
        return false;
    }
    match class {
        "make" => {
            let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
            selected.is_none_or(|selected| selected == node.as_str()) && can_have_all(world, pod, rest, node, given)
        }
        "late" => of_kind(world, Kind::Volume).any(|(key, volume)| {
            if given.contains(&key) || !could_have(claim, volume, node) {
                return false;
            }
            given.push(key);
            let can = can_have_all(world, pod, rest, node, given);
            given.pop();
            can
        }),
        // It is bound as soon as it can be, whatever its pod does.
        _ => false,
    }
}

/// Whether a claim could get a volume that is there, from a node. All are equal here but for their sizes, in Gi.
fn could_have(claim: &Value, volume: &Value, node: &Name) -> bool {
    let size = |object: &Value, pointer: &str| text(object, pointer).trim_end_matches("Gi").parse::<u64>().unwrap_or(0);
    let owner = &volume["spec"]["claimRef"];
    let is_kept = || owner["name"] == claim["metadata"]["name"] && owner["uid"].as_str().unwrap_or_default().is_empty();
    let is_free = owner.is_null() || is_kept();
    is_free
        && !is_deleting(volume)
        && text(volume, "/spec/storageClassName") == "late"
        && confined_to(volume).is_none_or(|only| only == node.as_str())
        && size(volume, "/spec/capacity/storage") >= size(claim, "/spec/resources/requests/storage")
}
