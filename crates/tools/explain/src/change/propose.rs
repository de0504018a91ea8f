//! How what stands against a node could be removed. These are proposals: whether they help, the scheduler's tests tell.

use bindery_model::{
    Annotation, Capacity, Claim, Labels, Meta, Name, Node, NodeSelector, PodKey, Requirement, Selector, Volume,
    VolumePhase,
};
use bindery_placement::{
    CannotProvision, ClaimFailure, ClaimOutcome, ClaimRejection, NodeRejection, PodRejection, UnusableVolume,
};
use bindery_scheduler::{Reason, ResourceShortage};

use super::edit::Edit;
use super::{Cost, Proposal, Step};
use crate::matrix::{Asked, Asking};
use crate::{cells, terms};

/// Labels that say which node it is, or where: nobody moves a node by writing another name on it.
const WHEREABOUTS: [&str; 4] =
    ["kubernetes.io/hostname", "topology.", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/"];

/// What to do so that the pod can be placed on a node; `None` when something stands against it that cannot be removed.
pub(super) fn proposal<'a>(asked: &Asked<'_>, asking: &'a Asking<'_>) -> Option<Proposal<'a>> {
    let outlook = asking.outlook.as_ref().ok()?;
    let (pod, node) = (asked.pod.key(), asking.node);
    let mut steps = Vec::new();
    if asked.pod.scheduling.is_gated {
        steps.push(step(Cost::Mark, "remove its scheduling gates".into(), Edit::Ungate(pod.clone())));
    }
    let is_refused = |claim: &Claim| asked.refused.iter().any(|refused| refused.claim == claim.key());
    for claim in &asked.claims {
        let refused = asked.refused.iter().find(|refused| refused.claim == *claim);
        steps.extend(refused.map(|refused| of_refusal(&pod, refused)));
    }
    for (claim, prospect) in outlook.claims.iter().filter(|(claim, _)| !is_refused(claim)) {
        if let ClaimOutcome::Failed(lack) = prospect {
            steps.push(of_lack(asked, node, claim, lack)?);
        }
    }
    for reason in &outlook.reasons {
        let step = of_reason(asked, node, reason)?;
        // Two reasons may have one remedy.
        if steps.iter().all(|known: &Step| known.text != step.text) {
            steps.push(step);
        }
    }
    (!steps.is_empty()).then(|| Proposal { node: node.name(), steps })
}

fn step(cost: Cost, text: String, edit: Edit) -> Step {
    Step { text, edits: vec![edit], cost }
}

/// A claim that keeps the pod from every node.
fn of_refusal(pod: &PodKey, refused: &ClaimRejection) -> Step {
    let claim = &refused.claim.name;
    let text = match &refused.why {
        PodRejection::ClaimMissing(_) => format!("create claim {claim}"),
        PodRejection::EphemeralClaimMissing(_) => {
            format!("have claim {claim} made by the controller of ephemeral volumes")
        }
        PodRejection::ClaimMalformed(_, flaw) => format!("mend claim {claim}: {flaw}"),
        PodRejection::ClaimLost { volume, .. } => format!("make claim {claim} anew, as its volume {volume} is lost"),
        PodRejection::ClaimDeleting(_) => format!("let claim {claim} go, and create it again"),
        PodRejection::ClaimNotOwned { .. } => format!("delete claim {claim}, which was not made for this pod"),
        PodRejection::ClaimUnbound | PodRejection::NoVolume => {
            format!("have claim {claim} bound (see bindery explain pvc/{claim})")
        }
        PodRejection::ClassInvalid(problem) => format!("mend the class of claim {claim}: {problem}"),
        PodRejection::ClassMissing(class) => format!("create class {:?} of claim {claim}", class.as_str()),
        PodRejection::NoClass => format!("have claim {claim} bound, as it has no class"),
        PodRejection::VolumeMissing(volume) => format!("bring back volume {volume} of claim {claim}"),
    };
    step(Cost::Make, text, Edit::Settle { pod: pod.clone(), claim: claim.clone() })
}

/// A claim for which a node has nothing.
fn of_lack(asked: &Asked<'_>, node: &Node, claim: &Claim, lack: &ClaimFailure<'_>) -> Option<Step> {
    let name = &claim.meta.name;
    match lack {
        ClaimFailure::Unusable(volume, UnusableVolume::NodeAffinity) | ClaimFailure::ReservedElsewhere(volume) => {
            let nodes = asked.known.volume(volume)?.nodes.as_deref()?;
            label(node, nodes.unmet(&node.labels, None))
        }
        ClaimFailure::Unusable(volume, UnusableVolume::Missing) => {
            let text = format!("bring back volume {volume} of claim {name}");
            Some(step(Cost::Make, text, Edit::Settle { pod: asked.pod.key(), claim: name.clone() }))
        }
        ClaimFailure::SelectedElsewhere(_) => {
            let text = format!("remove the annotation {} from claim {name}", Annotation::SelectedNode.key());
            Some(step(Cost::Mark, text, Edit::Unselect(claim.key())))
        }
        ClaimFailure::CannotProvision(CannotProvision::NoProvisioner) | ClaimFailure::TooSmall(_) => {
            Some(volume_for(node, claim))
        }
        ClaimFailure::CannotProvision(CannotProvision::Topology) => {
            let class = asked.known.class(claim.class())?;
            label(node, class.topologies.unmet(&node.labels)).or_else(|| {
                let text = format!(
                    "let class {:?} provision where node {} is (allowedTopologies), or create a {} that it reaches",
                    class.meta.name.as_str(),
                    node.name(),
                    terms::of_claim(claim).wanted()
                );
                Some(step(Cost::Make, text, Edit::Allow(class.meta.name.clone())))
            })
        }
        ClaimFailure::CannotProvision(CannotProvision::Capacity) => Some(room_for(node, claim)),
    }
}

/// The fewest labels that make one of several terms hold, unless they say where the node is.
fn label<'r>(node: &Node, terms: impl Iterator<Item = Vec<&'r Requirement>>) -> Option<Step> {
    let is_fixed = |unmet: &&Requirement| WHEREABOUTS.iter().any(|place| unmet.key().starts_with(place));
    let unmet = terms.filter(|unmet| !unmet.is_empty() && !unmet.iter().any(is_fixed));
    let labels = unmet.min_by_key(Vec::len)?.into_iter().map(|unmet| (unmet.key().clone(), unmet.sample_value()));
    Some(labelled(node, labels.collect()))
}

fn labelled(node: &Node, labels: Vec<(Name, Option<Name>)>) -> Step {
    let name = node.name();
    let text = |(key, value): &(Name, Option<Name>)| match value {
        Some(value) => format!("label node {name} with {key}={value}"),
        None => format!("remove the label {key} from node {name}"),
    };
    let text = labels.iter().map(text).collect::<Vec<_>>().join(" and ");
    let edit = |(key, value)| Edit::Label { node: name.clone(), key, value };
    Step { text, edits: labels.into_iter().map(edit).collect(), cost: Cost::Mark }
}

/// A volume that a claim could have on a node.
fn volume_for(node: &Node, claim: &Claim) -> Step {
    let selector = claim.selector.as_deref().and_then(|selector| selector.as_ref().ok());
    let requirements = selector.into_iter().flat_map(Selector::requirements);
    let labels: Labels =
        requirements.filter_map(|demand| Some((demand.key().clone(), demand.sample_value()?))).collect();
    let name = Name::from(format!("for {}", claim.key()));
    let volume = Volume {
        meta: Meta { uid: name.clone(), name, ..Meta::default() },
        labels,
        capacity: claim.request.clone(),
        modes: claim.modes,
        volume_mode: claim.volume_mode,
        class_field: claim.class().clone(),
        attributes_class: claim.attributes_class.clone(),
        nodes: NodeSelector::of_host(&node.labels).map(Box::new),
        phase: VolumePhase::Available,
        ..Volume::default()
    };
    let text = format!("create a {} that node {} reaches", terms::of_claim(claim).wanted(), node.name());
    step(Cost::Make, text, Edit::Volume(Box::new(volume)))
}

/// CapacityIndex for a volume that a claim could have on a node.
fn room_for(node: &Node, claim: &Claim) -> Step {
    let (class, size) = (claim.class(), claim.requested());
    let name = Name::from(format!("for {}", claim.key()));
    let capacity = Capacity {
        meta: Meta { uid: name.clone(), name, ..Meta::default() },
        class: class.clone(),
        nodes: Some(Ok(Selector::default())),
        total: Some(size.clone()),
        ..Capacity::default()
    };
    let text = format!(
        "raise the capacity for class {:?} that node {} reaches to {size} or more (as a CSIStorageCapacity tells it)",
        class.as_str(),
        node.name()
    );
    step(Cost::Make, text, Edit::CapacityIndex(Box::new(capacity)))
}

/// What stands against a node beside its claims.
fn of_reason(asked: &Asked<'_>, node: &Node, reason: &Reason) -> Option<Step> {
    let name = node.name();
    match reason {
        Reason::Unschedulable => Some(step(Cost::Mark, format!("uncordon node {name}"), Edit::Uncordon(name.clone()))),
        Reason::Tainted(taints) => {
            let names: Vec<String> = taints.iter().map(cells::taint).collect();
            let (taint, it) = if names.len() == 1 { ("taint", "it") } else { ("taints", "them") };
            let text = format!("remove the {taint} {} from node {name}, or tolerate {it}", names.join(" and "));
            let untaint = |taint: &bindery_model::Taint| Edit::Untaint { node: name.clone(), taint: taint.clone() };
            Some(Step { text, edits: taints.iter().map(untaint).collect(), cost: Cost::Mark })
        }
        Reason::NodeAffinity { labels, is_by_affinity } => not_wanted(asked, node, labels, *is_by_affinity),
        Reason::TooManyPods => {
            let text = format!("end a pod on node {name}: it has room for {}", node.allocatable.pods);
            Some(step(Cost::Pod, text, Edit::Enlarge { node: name.clone(), what: "pods".into(), by: 1 }))
        }
        Reason::Insufficient(shortage) => Some(enlarge(node, shortage)),
        Reason::Affinity => {
            let text = format!("run a pod near node {name} that it must be near, or drop its pod affinity");
            Some(step(Cost::Pod, text, Edit::Detach(asked.pod.key())))
        }
        Reason::MissingSpreadLabel(key) => {
            let text = format!("drop the pod's spread over {key}, or give node {name} that label");
            Some(step(Cost::Pod, text, Edit::Unspread(asked.pod.key(), key.clone())))
        }
        Reason::TopologySpread(crowd) => {
            let (key, value) = (&crowd.key, &crowd.value);
            let text = format!("let {key}={value} have more pods of its kind than others, by a larger maxSkew");
            Some(step(Cost::Pod, text, Edit::Unspread(asked.pod.key(), key.clone())))
        }
        Reason::PortInUse
        | Reason::AntiAffinity
        | Reason::ExistingAntiAffinity
        | Reason::Volumes(NodeRejection::DiskInUse | NodeRejection::ClaimInUse) => end(asked, node, reason),
        Reason::Volumes(NodeRejection::TooManyVolumes) => {
            let text = format!("detach a volume from node {name}: it has as many as its driver allows");
            Some(step(Cost::Pod, text, Edit::Unlimit(name.clone())))
        }
        Reason::Volumes(NodeRejection::DriverMissing(driver)) => {
            let edit = Edit::Install { node: name.clone(), driver: driver.clone() };
            Some(step(Cost::Make, format!("install CSI driver {driver} on node {name}"), edit))
        }
        // A volume does not move; the rest is said of claims.
        Reason::Volumes(
            NodeRejection::ZoneMismatch | NodeRejection::VolumeUnreachable | NodeRejection::NoMatchingVolume,
        )
        | Reason::Volumes(NodeRejection::InsufficientCapacity | NodeRejection::VolumeMissing) => None,
    }
}

/// The labels that a pod wants of its node.
fn not_wanted(asked: &Asked<'_>, node: &Node, labels: &[(Name, Name)], is_by_affinity: bool) -> Option<Step> {
    let is_fixed = |(key, _): &(Name, Name)| WHEREABOUTS.iter().any(|place| key.starts_with(place));
    if labels.iter().any(is_fixed) {
        return None;
    }
    let labels: Vec<_> = labels.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let selected = (!labels.is_empty()).then(|| labelled(node, labels));
    if !is_by_affinity {
        return selected;
    }
    let nodes = asked.pod.scheduling.node_affinity.as_ref()?;
    let by_affinity = label(node, nodes.unmet(&node.labels, Some(node.name())))?;
    Some(match selected {
        None => by_affinity,
        Some(selected) => Step {
            text: format!("{} and {}", selected.text, by_affinity.text),
            edits: selected.edits.into_iter().chain(by_affinity.edits).collect(),
            cost: Cost::Mark,
        },
    })
}

fn enlarge(node: &Node, shortage: &ResourceShortage) -> Step {
    let &ResourceShortage { resource: ref what, requested: needs, used: taken, allocatable: has } = shortage;
    let by = needs + taken - has;
    let (amount, name) = (cells::amount(what, by), node.name());
    let text = if needs > has {
        format!("ask for {amount} less {what}, or give node {name} as much more")
    } else {
        format!("free {amount} of {what} on node {name}, or ask for as much less")
    };
    step(Cost::Pod, text, Edit::Enlarge { node: name.clone(), what: what.clone(), by })
}

/// The pods that are in the way end.
fn end(asked: &Asked<'_>, node: &Node, reason: &Reason) -> Option<Step> {
    let pods = asked.look.blocking_pods(node, reason);
    let names: Vec<String> = pods.iter().map(ToString::to_string).collect();
    let text = match names.as_slice() {
        [] => return None,
        [one] => format!("end pod {one}"),
        several => format!("end pods {}", several.join(", ")),
    };
    Some(Step { text, edits: pods.into_iter().map(Edit::End).collect(), cost: Cost::Pod })
}
