//! Remedies for the obstacles of a node. They are proposals; the scheduler's checks verify them.

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
use crate::node_matrix::{NodeOutlook, PodPlacement};
use crate::{cell_text, terms};

/// Labels that identify a node or its location. Changing them does not move the node.
const IDENTITY_LABELS: [&str; 4] =
    ["kubernetes.io/hostname", "topology.", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/"];

/// What to do so that the pod can be scheduled on a node; `None` when an obstacle has no remedy.
pub(super) fn proposal<'a>(placement: &PodPlacement<'_>, evaluated: &'a NodeOutlook<'_>) -> Option<Proposal<'a>> {
    let outlook = evaluated.outlook.as_ref().ok()?;
    let (pod, node) = (placement.pod.key(), evaluated.node);
    let mut steps = Vec::new();
    if placement.pod.scheduling.is_gated {
        steps.push(step(Cost::Edit, "remove the pod's scheduling gates".into(), Edit::Ungate(pod.clone())));
    }
    let is_refused = |claim: &Claim| placement.refused.iter().any(|refused| refused.claim == claim.key());
    for claim in &placement.claims {
        let refused = placement.refused.iter().find(|refused| refused.claim == *claim);
        steps.extend(refused.map(|refused| remedy_for_claim(&pod, refused)));
    }
    for (claim, prospect) in outlook.claims.iter().filter(|(claim, _)| !is_refused(claim)) {
        if let ClaimOutcome::Failed(lack) = prospect {
            steps.push(remedy_for_lack(placement, node, claim, lack)?);
        }
    }
    for reason in &outlook.reasons {
        let step = remedy(placement, node, reason)?;
        // Several reasons can share one remedy.
        if steps.iter().all(|known: &Step| known.text != step.text) {
            steps.push(step);
        }
    }
    (!steps.is_empty()).then(|| Proposal { node: node.name(), steps })
}

fn step(cost: Cost, text: String, edit: Edit) -> Step {
    Step { text, edits: vec![edit], cost }
}

/// A claim that makes every node unsuitable.
fn remedy_for_claim(pod: &PodKey, refused: &ClaimRejection) -> Step {
    let claim = &refused.claim.name;
    let text = match &refused.why {
        PodRejection::ClaimMissing(_) => format!("create claim {claim}"),
        PodRejection::EphemeralClaimMissing(_) => {
            format!("wait until the ephemeral volume controller creates claim {claim}")
        }
        PodRejection::ClaimMalformed(_, error) => format!("fix claim {claim}: {error}"),
        PodRejection::ClaimLost { volume, .. } => {
            format!("create claim {claim} again, because its volume {volume} is lost")
        }
        PodRejection::ClaimDeleting(_) => format!("wait until claim {claim} is deleted, and create it again"),
        PodRejection::ClaimNotOwned { .. } => format!("delete claim {claim}, which was not created for this pod"),
        PodRejection::ClaimUnbound | PodRejection::NoVolume => {
            format!("get claim {claim} bound (see bindery explain pvc/{claim})")
        }
        PodRejection::ClassInvalid(problem) => format!("fix the StorageClass of claim {claim}: {problem}"),
        PodRejection::ClassMissing(class) => format!("create StorageClass {:?} for claim {claim}", class.as_str()),
        PodRejection::NoClass => format!("get claim {claim} bound, which has no class"),
        PodRejection::VolumeMissing(volume) => format!("restore volume {volume} of claim {claim}"),
    };
    step(Cost::Make, text, Edit::AssumeBound { pod: pod.clone(), claim: claim.clone() })
}

/// A claim that has no suitable volume on a node.
fn remedy_for_lack(placement: &PodPlacement<'_>, node: &Node, claim: &Claim, lack: &ClaimFailure<'_>) -> Option<Step> {
    let name = &claim.meta.name;
    match lack {
        ClaimFailure::Unusable(volume, UnusableVolume::NodeAffinity) | ClaimFailure::ReservedElsewhere(volume) => {
            let nodes = placement.known.volume(volume)?.nodes.as_deref()?;
            label(node, nodes.unmet(&node.labels, None))
        }
        ClaimFailure::Unusable(volume, UnusableVolume::Missing) => {
            let text = format!("restore volume {volume} of claim {name}");
            Some(step(Cost::Make, text, Edit::AssumeBound { pod: placement.pod.key(), claim: name.clone() }))
        }
        ClaimFailure::SelectedElsewhere(_) => {
            let text = format!("remove the annotation {} from claim {name}", Annotation::SelectedNode.key());
            Some(step(Cost::Edit, text, Edit::UnselectNode(claim.key())))
        }
        ClaimFailure::CannotProvision(CannotProvision::NoProvisioner) | ClaimFailure::TooSmall(_) => {
            Some(volume_for(node, claim))
        }
        ClaimFailure::CannotProvision(CannotProvision::Topology) => {
            let class = placement.known.class(claim.class())?;
            label(node, class.topologies.unmet(&node.labels)).or_else(|| {
                let text = format!(
                    "allow class {:?} to provision for node {} (allowedTopologies), or create a {} reachable from it",
                    class.meta.name.as_str(),
                    node.name(),
                    terms::of_claim(claim).required_volume()
                );
                Some(step(Cost::Make, text, Edit::AllowAllTopologies(class.meta.name.clone())))
            })
        }
        ClaimFailure::CannotProvision(CannotProvision::Capacity) => Some(capacity_for(node, claim)),
    }
}

/// The fewest labels that satisfy one of several terms, unless they identify the node's location.
fn label<'r>(node: &Node, terms: impl Iterator<Item = Vec<&'r Requirement>>) -> Option<Step> {
    let is_fixed = |unmet: &&Requirement| IDENTITY_LABELS.iter().any(|prefix| unmet.key().starts_with(prefix));
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
    Step { text, edits: labels.into_iter().map(edit).collect(), cost: Cost::Edit }
}

/// A new volume for a claim on a node.
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
    let text = format!("create a {} reachable from node {}", terms::of_claim(claim).required_volume(), node.name());
    step(Cost::Make, text, Edit::CreateVolume(Box::new(volume)))
}

/// Storage capacity for provisioning a claim's volume on a node.
fn capacity_for(node: &Node, claim: &Claim) -> Step {
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
        "raise the capacity of class {:?} for node {} to {size} or more (as reported by CSIStorageCapacity)",
        class.as_str(),
        node.name()
    );
    step(Cost::Make, text, Edit::PublishCapacity(Box::new(capacity)))
}

/// A failed check that is not about claims.
fn remedy(placement: &PodPlacement<'_>, node: &Node, reason: &Reason) -> Option<Step> {
    let name = node.name();
    match reason {
        Reason::Unschedulable => Some(step(Cost::Edit, format!("uncordon node {name}"), Edit::Uncordon(name.clone()))),
        Reason::Tainted(taints) => {
            let names: Vec<String> = taints.iter().map(cell_text::taint).collect();
            let (taint, it) = if names.len() == 1 { ("taint", "it") } else { ("taints", "them") };
            let text = format!("remove the {taint} {} from node {name}, or tolerate {it}", names.join(" and "));
            let untaint = |taint: &bindery_model::Taint| Edit::Untaint { node: name.clone(), taint: taint.clone() };
            Some(Step { text, edits: taints.iter().map(untaint).collect(), cost: Cost::Edit })
        }
        Reason::NodeAffinity { labels, is_by_affinity } => not_wanted(placement, node, labels, *is_by_affinity),
        Reason::TooManyPods => {
            let text = format!("delete a pod on node {name}, which accepts at most {}", node.allocatable.pods);
            Some(step(Cost::Pod, text, Edit::RaiseAllocatable { node: name.clone(), what: "pods".into(), by: 1 }))
        }
        Reason::Insufficient(shortage) => Some(enlarge(node, shortage)),
        Reason::Affinity => {
            let text = format!("run a pod that matches the pod affinity near node {name}, or remove the pod affinity");
            Some(step(Cost::Pod, text, Edit::DropPodAffinity(placement.pod.key())))
        }
        Reason::MissingSpreadLabel(key) => {
            let text =
                format!("remove the pod's topology spread constraint on {key}, or add that label to node {name}");
            Some(step(Cost::Pod, text, Edit::DropSpread(placement.pod.key(), key.clone())))
        }
        Reason::TopologySpread(crowd) => {
            let key = &crowd.key;
            let text = format!("raise maxSkew of the pod's topology spread constraint on {key}");
            Some(step(Cost::Pod, text, Edit::DropSpread(placement.pod.key(), key.clone())))
        }
        Reason::PortInUse
        | Reason::AntiAffinity
        | Reason::ExistingAntiAffinity
        | Reason::Volumes(NodeRejection::DiskInUse | NodeRejection::ClaimInUse) => {
            delete_conflicting(placement, node, reason)
        }
        Reason::Volumes(NodeRejection::TooManyVolumes) => {
            let text = format!("detach a volume from node {name}, which is at the volume limit of its driver");
            Some(step(Cost::Pod, text, Edit::DropVolumeLimits(name.clone())))
        }
        Reason::Volumes(NodeRejection::DriverMissing(driver)) => {
            let edit = Edit::InstallDriver { node: name.clone(), driver: driver.clone() };
            Some(step(Cost::Make, format!("install CSI driver {driver} on node {name}"), edit))
        }
        // A volume cannot be moved; the others are obstacles of claims.
        Reason::Volumes(
            NodeRejection::ZoneMismatch | NodeRejection::VolumeUnreachable | NodeRejection::NoMatchingVolume,
        )
        | Reason::Volumes(NodeRejection::InsufficientCapacity | NodeRejection::VolumeMissing) => None,
    }
}

/// The labels that a pod requires of its node.
fn not_wanted(
    placement: &PodPlacement<'_>,
    node: &Node,
    labels: &[(Name, Name)],
    is_by_affinity: bool,
) -> Option<Step> {
    let is_fixed = |(key, _): &(Name, Name)| IDENTITY_LABELS.iter().any(|prefix| key.starts_with(prefix));
    if labels.iter().any(is_fixed) {
        return None;
    }
    let labels: Vec<_> = labels.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let selected = (!labels.is_empty()).then(|| labelled(node, labels));
    if !is_by_affinity {
        return selected;
    }
    let nodes = placement.pod.scheduling.node_affinity.as_ref()?;
    let by_affinity = label(node, nodes.unmet(&node.labels, Some(node.name())))?;
    Some(match selected {
        None => by_affinity,
        Some(selected) => Step {
            text: format!("{} and {}", selected.text, by_affinity.text),
            edits: selected.edits.into_iter().chain(by_affinity.edits).collect(),
            cost: Cost::Edit,
        },
    })
}

fn enlarge(node: &Node, shortage: &ResourceShortage) -> Step {
    let &ResourceShortage { ref resource, requested, used, allocatable } = shortage;
    let by = requested + used - allocatable;
    let (amount, name) = (cell_text::amount(resource, by), node.name());
    let text = if requested > allocatable {
        format!("request {amount} less {resource}, or add as much to node {name}")
    } else {
        format!("free {amount} of {resource} on node {name}, or request as much less")
    };
    step(Cost::Pod, text, Edit::RaiseAllocatable { node: name.clone(), what: resource.clone(), by })
}

/// Deletes the conflicting pods.
fn delete_conflicting(placement: &PodPlacement<'_>, node: &Node, reason: &Reason) -> Option<Step> {
    let pods = placement.look.blocking_pods(node, reason);
    let names: Vec<String> = pods.iter().map(ToString::to_string).collect();
    let text = match names.as_slice() {
        [] => return None,
        [one] => format!("delete pod {one}"),
        several => format!("delete pods {}", several.join(", ")),
    };
    Some(Step { text, edits: pods.into_iter().map(Edit::DeletePod).collect(), cost: Cost::Pod })
}
