//! The promises of the scheduler, checked on the cluster's JSON and on the cache of the engine that
//! decided, independently of the rules.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch};
use bindery_model::{Annotation, ClaimKey, ClaimRef, Kind, Name, Node, ObjectKey, Pod};
use bindery_rules_api::{Bind, ClaimEdit, Edit, RefEdit, Request, VolumeEdit, Write};
use bindery_simulation::{SimulatedCluster, notation};
use serde_json::Value;

use crate::binding::is_delayed;
use crate::history::History;
use crate::protection::{claims_of, controller, is_deleting, list, of_kind, text};

/// The only node that a pod can run on, or that a volume is reachable from, if it is restricted.
fn required_node(object: &Value) -> Option<&str> {
    let volume = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
    let pod = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
               /matchExpressions/0/values/0";
    object.pointer(volume).or_else(|| object.pointer(pod)).and_then(Value::as_str)
}

/// Whether the node affinity of a pod or a volume allows a node. Deleted objects allow all.
fn is_reachable(cluster: &SimulatedCluster, key: &ObjectKey, node: &str) -> bool {
    cluster.get(key).and_then(required_node).is_none_or(|only| only == node)
}

// === When a request is sent, by the cache of the engine ===

/// S6, S8, S9: nodes, reservations and selected nodes satisfy the constraints in the engine's
/// cache.
pub fn check_sent(known: &Cache, cluster: &SimulatedCluster, request: &Request) {
    match request {
        Request::Bind(bind) => check_pod_binding(known, cluster, bind),
        Request::Write(write) => match write.edit() {
            Edit::Volume(VolumeEdit { claim_ref: Some(RefEdit::Set(owner, _)), .. }) => {
                check_reservation(known, cluster, write, owner);
            }
            Edit::Claim(ClaimEdit { annotations, .. }) => {
                let selected = annotations.iter().find(|(annotation, _)| *annotation == Annotation::SelectedNode);
                if let Some(node) = selected.and_then(|(_, node)| node.as_ref()) {
                    let claim = write.target().claim_key();
                    let users = users(known, &claim);
                    let fits = |pod: &&Pod| is_schedulable(known, node) && can_run_on(known, cluster, pod, node);
                    assert!(users.iter().any(fits), "{node} was selected for {claim}, but no pod can use it there");
                }
            }
            Edit::Volume(_) | Edit::VolumeStatus(_) | Edit::PodStatus(_) | Edit::Protection(_) | Edit::Record(_) => {}
            Edit::ClaimStatus(_) | Edit::ClaimReport(_) => {}
        },
        Request::Create(_) | Request::Delete(_) | Request::Read(_) | Request::List(_) | Request::RunOperation(_) => {}
    }
}

/// The unscheduled pods that use a claim.
fn users<'a>(known: &'a Cache, claim: &ClaimKey) -> Vec<&'a Pod> {
    let pods = known.pods_using(claim).map(|pod| &**pod);
    pods.filter(|pod| pod.node.is_empty() && !pod.deleting && !pod.is_finished()).collect()
}

/// The pods that use resources of a node or may do so.
fn active_pods(known: &Cache) -> impl Iterator<Item = &Pod> {
    let pods = known.keys(Kind::Pod).into_iter().filter_map(|key| known.pod(&key.pod_key()));
    pods.map(|pod| &**pod).filter(|pod| !pod.is_finished() && (!pod.deleting || !pod.node.is_empty()))
}

fn is_schedulable(known: &Cache, node: &Name) -> bool {
    known.node(node).is_some_and(|node| !node.unschedulable)
}

/// Whether a node satisfies the affinity of a pod, and the volumes of its claims are reachable.
fn can_run_on(known: &Cache, cluster: &SimulatedCluster, pod: &Pod, node: &Name) -> bool {
    let claims = pod.claim_keys().filter_map(|key| known.claim(&key)?.volume.clone());
    let reaches = |volume: Name| is_reachable(cluster, &ObjectKey::volume(volume), node);
    // A new pod of the same name has its own affinity.
    let is_another = cluster.get(&pod.key().into()).is_some_and(|object| text(object, "/metadata/uid") != pod.meta.uid);
    (is_another || is_reachable(cluster, &pod.key().into(), node)) && claims.into_iter().all(reaches)
}

/// A pod is bound to a node when all of its claims are bound to volumes reachable from there.
fn check_pod_binding(known: &Cache, cluster: &SimulatedCluster, bind: &Bind) {
    let (key, node) = (bind.target(), bind.node());
    let pod = known.pod(&key.pod_key()).expect("the pod is known");
    assert!(is_schedulable(known, node), "{key} was bound to {node}, which is unschedulable");
    let there =
        |other: &Pod| [&other.node, &other.scheduling.nominated_node].contains(&node) || other.meta.uid == pod.meta.uid;
    let requested: i128 =
        active_pods(known).filter(|other| there(other)).map(|other| other.scheduling.requests.cpu_millis).sum();
    let allocatable = known.node(node).map(|node| node.allocatable.cpu_millis).unwrap_or_default();
    assert!(requested <= allocatable, "{key} was bound to {node}, which has no capacity left");
    assert!(can_run_on(known, cluster, pod, node), "the volumes of {key} are not reachable from {node}");
    for volume in &pod.volumes {
        let claim = known.claim(&pod.claim_key(volume)).expect("the pod's claim is known");
        let name = claim.volume.as_ref().expect("the pod's claim has a volume");
        // The volume may be a new one of the same name: the binder decides about it later.
        let is_bound = known.volume(name).is_some() && claim.is_bind_completed();
        assert!(is_bound, "{key} was bound to a node though {} is not bound", claim.key());
        assert!(!volume.is_ephemeral() || pod.owns(claim), "{key} uses {}, which belongs to another pod", claim.key());
    }
}

/// A volume is reserved for a delayed claim only for a pod that can run where it is reachable.
fn check_reservation(known: &Cache, cluster: &SimulatedCluster, write: &Write, owner: &ClaimRef) {
    let target = write.target();
    let Some(claim) = known.claim(&owner.key) else { return };
    if let Some(volume) = &claim.volume {
        assert_eq!(*volume, target.name, "{} names another volume", owner.key);
        return;
    }
    let volume = known.volume(&target.name).expect("the volume is known");
    if !is_delayed(claim) || volume.claim_ref.is_some() {
        return;
    }
    let ask = MatchCriteria::of(claim, false).expect("selectors make sense here");
    assert_eq!(mismatch(&ask, volume), None, "{target} does not satisfy {}", owner.key);
    let fits = |pod: &Pod, node: &Node| {
        !node.unschedulable
            && can_run_on(known, cluster, pod, node.name())
            && is_reachable(cluster, target, node.name())
    };
    let is_needed = users(known, &owner.key).iter().any(|pod| known.nodes().any(|node| fits(pod, node)));
    assert!(is_needed, "{target} was reserved for {}, but no pod can use it there", owner.key);
}

// === When a request is carried out, by the state of the cluster ===

/// S11: a pod binding carries the UID and the version of the pod, which had no node.
pub fn check_carried_out(
    before: &SimulatedCluster,
    after: &SimulatedCluster,
    request: &Request,
    history: &mut History,
) {
    let Request::Bind(bind) = request else { return };
    let (key, body) = (bind.target(), bind.body());
    let was = before.get(key).expect("the pod existed");
    for field in ["/metadata/uid", "/metadata/resourceVersion"] {
        assert_eq!(text(&body, field), text(was, field), "{key}: {field}");
    }
    assert_eq!(text(was, "/spec/nodeName"), "", "{key} already had a node");
    let is = after.get(key).expect("the pod exists");
    assert_eq!(text(is, "/spec/nodeName"), bind.node().as_str());
    let is_deleting = |(name, _): &(String, bool)| before.get(&claim_key(name)).is_some_and(is_deleting);
    if claims_of(was).iter().any(is_deleting) {
        history.note_placed_too_late(is);
    }
}

/// With one engine, the pods of a node never request more CPU than it has.
pub fn check_node_capacity(cluster: &SimulatedCluster, request: &Request) {
    let Request::Bind(bind) = request else { return };
    let Some(node) = cluster.get(&ObjectKey::cluster(Kind::Node, bind.node().clone())) else { return };
    let (requested, allocatable) = (requested_cpu(cluster, bind.node()), cpu(node, "/status/allocatable/cpu"));
    assert!(
        requested <= allocatable,
        "after {}, pods request {requested} of {allocatable} CPUs of {}",
        bind.target(),
        bind.node()
    );
}

fn cpu(object: &Value, pointer: &str) -> u64 {
    text(object, pointer).parse().unwrap_or_default()
}

fn needs(pod: &Value) -> u64 {
    cpu(pod, "/spec/containers/0/resources/requests/cpu")
}

fn is_completed(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn requested_cpu(cluster: &SimulatedCluster, node: &str) -> u64 {
    let there = |pod: &&Value| text(pod, "/spec/nodeName") == node && !is_completed(pod);
    of_kind(cluster, Kind::Pod).map(|(_, pod)| pod).filter(there).map(needs).sum()
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

// === Once the faults have stopped ===

/// Every pod that fits on a node has one. The others have a condition with the reason, and no
/// nominated node.
pub fn check_stable(cluster: &SimulatedCluster) {
    for (key, pod) in of_kind(cluster, Kind::Pod) {
        if !text(pod, "/spec/nodeName").is_empty() || is_deleting(pod) || is_completed(pod) {
            continue;
        }
        assert_eq!(text(pod, "/status/nominatedNodeName"), "", "{key} still has a nominated node");
        let is_reported = list(pod, "/status/conditions").any(|condition| condition["status"] == "False");
        assert!(is_reported, "{key} has no node, and no condition with the reason");
        for (node, state) in of_kind(cluster, Kind::Node) {
            let why = notation::pod_nodes(cluster);
            assert!(!pod_fits(cluster, pod, &node.name, state), "{key} is not scheduled though {node} fits: {why:#?}");
        }
    }
}

fn pod_fits(cluster: &SimulatedCluster, pod: &Value, node: &Name, state: &Value) -> bool {
    let is_open = state["spec"]["unschedulable"] != true;
    let has_room = requested_cpu(cluster, node) + reserved_cpu(cluster, node) + needs(pod)
        <= cpu(state, "/status/allocatable/cpu");
    let may_go = required_node(pod).is_none_or(|only| only == node.as_str());
    is_open && has_room && may_go && claims_fit(cluster, pod, &claims_of(pod), node, &mut Vec::new())
}

fn has_class(cluster: &SimulatedCluster, claim: &Value) -> bool {
    cluster.get(&ObjectKey::cluster(Kind::Class, Name::from(text(claim, "/spec/storageClassName")))).is_some()
}

/// The CPU reserved on a node by waiting pods whose claims selected it: their volumes are
/// provisioned once their class exists again.
fn reserved_cpu(cluster: &SimulatedCluster, node: &Name) -> u64 {
    let waits = |claim: &Value| {
        let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
        selected == Some(node) && text(claim, "/spec/volumeName").is_empty() && !has_class(cluster, claim)
    };
    let has_one =
        |pod: &&Value| claims_of(pod).iter().any(|(name, _)| cluster.get(&claim_key(name)).is_some_and(waits));
    let waiting = |pod: &&Value| text(pod, "/spec/nodeName").is_empty() && !is_deleting(pod) && !is_completed(pod);
    of_kind(cluster, Kind::Pod).map(|(_, pod)| pod).filter(waiting).filter(has_one).map(needs).sum()
}

/// Whether each claim of a pod has a volume that is reachable from a node, or could get one.
fn claims_fit<'a>(
    cluster: &'a SimulatedCluster,
    pod: &Value,
    claims: &[(String, bool)],
    node: &Name,
    used_volumes: &mut Vec<&'a ObjectKey>,
) -> bool {
    let [(name, is_made), rest @ ..] = claims else { return true };
    let Some(claim) = cluster.get(&claim_key(name)).filter(|claim| !is_deleting(claim)) else { return false };
    if *is_made && controller(claim) != Some(text(pod, "/metadata/uid")) {
        return false;
    }
    let has = text(claim, "/spec/volumeName");
    if !has.is_empty() {
        let volume = cluster.get(&ObjectKey::volume(Name::from(has)));
        let is_its = |volume: &&Value| text(volume, "/spec/claimRef/uid") == text(claim, "/metadata/uid");
        let reaches =
            volume.filter(is_its).is_some_and(|volume| required_node(volume).is_none_or(|only| only == node.as_str()));
        let is_bound = text(claim, "/status/phase") == "Bound";
        return is_bound && reaches && claims_fit(cluster, pod, rest, node, used_volumes);
    }
    let class = text(claim, "/spec/storageClassName");
    if !has_class(cluster, claim) {
        return false;
    }
    match class {
        "make" => {
            let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
            selected.is_none_or(|selected| selected == node.as_str())
                && claims_fit(cluster, pod, rest, node, used_volumes)
        }
        "late" => of_kind(cluster, Kind::Volume).any(|(key, volume)| {
            if used_volumes.contains(&key) || !volume_fits(claim, volume, node) {
                return false;
            }
            used_volumes.push(key);
            let can = claims_fit(cluster, pod, rest, node, used_volumes);
            used_volumes.pop();
            can
        }),
        // Immediate binding does not depend on the pod.
        _ => false,
    }
}

/// Whether a volume suits a claim on a node. Volumes differ only in size here.
fn volume_fits(claim: &Value, volume: &Value, node: &Name) -> bool {
    let size = |object: &Value, pointer: &str| text(object, pointer).trim_end_matches("Gi").parse::<u64>().unwrap_or(0);
    let owner = &volume["spec"]["claimRef"];
    let is_kept = || owner["name"] == claim["metadata"]["name"] && owner["uid"].as_str().unwrap_or_default().is_empty();
    let is_free = owner.is_null() || is_kept();
    is_free
        && !is_deleting(volume)
        && text(volume, "/spec/storageClassName") == "late"
        && required_node(volume).is_none_or(|only| only == node.as_str())
        && size(volume, "/spec/capacity/storage") >= size(claim, "/spec/resources/requests/storage")
}
