//! The texts in the cells of the table of nodes and claims.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, Mismatch};
use bindery_model::{Claim, Node, Pod, PodKey, Taint};
use bindery_placement::{CannotProvision, ClaimFailure, ClaimOutcome, NodeRejection, UnusableVolume};
use bindery_scheduler::{Evaluation, Reason, ResourceShortage, SpreadViolation};

use crate::candidates::{self, Tier};

/// What a node offers a claim. `is_alone` is false if the row stands for several nodes: then
/// details that apply to one node only are left out.
pub(crate) fn prospect_text(
    known: &Cache,
    node: &Node,
    is_alone: bool,
    claim: &Claim,
    prospect: &ClaimOutcome<'_>,
) -> String {
    match prospect {
        ClaimOutcome::Bound(volume) => format!("bound to {volume}, reachable"),
        ClaimOutcome::Reserved(volume) => format!("would use {}, which is reserved for it", volume.name()),
        ClaimOutcome::Available(volume) => format!("would use {}", volume.name()),
        ClaimOutcome::Provision(_) => "would be provisioned".into(),
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::NoProvisioner)) if is_alone => {
            match nearest(known, node, claim) {
                Some(nearest) => format!("no matching volume; {nearest}"),
                None => "no matching volume".into(),
            }
        }
        ClaimOutcome::Failed(lack) => lack_text(claim, lack),
    }
}

fn lack_text(claim: &Claim, lack: &ClaimFailure<'_>) -> String {
    match lack {
        ClaimFailure::Unusable(volume, UnusableVolume::NodeAffinity) => {
            format!("bound to {volume}: node affinity conflict")
        }
        ClaimFailure::Unusable(volume, UnusableVolume::Missing) => format!("bound to {volume}, which does not exist"),
        ClaimFailure::SelectedElsewhere(node) => format!("will be provisioned on {node}"),
        ClaimFailure::ReservedElsewhere(volume) => format!("{volume} is reserved for it: node affinity conflict"),
        ClaimFailure::TooSmall(volume) => {
            let (needs, has) = (claim.requested(), volume.size());
            format!("no matching volume; {}: {}", volume.name(), Mismatch::TooSmall { needs, has })
        }
        ClaimFailure::CannotProvision(CannotProvision::NoProvisioner) => "no matching volume".into(),
        ClaimFailure::CannotProvision(CannotProvision::Topology) => {
            "cannot be provisioned here (allowedTopologies)".into()
        }
        ClaimFailure::CannotProvision(CannotProvision::Capacity) => "not enough free storage".into(),
    }
}

/// The kind of a prospect: nodes that differ in nothing else share a row.
pub(crate) fn prospect_group(prospect: &ClaimOutcome<'_>) -> &'static str {
    match prospect {
        ClaimOutcome::Bound(_) => "bound",
        ClaimOutcome::Reserved(_) => "reserved",
        ClaimOutcome::Available(_) => "free",
        ClaimOutcome::Provision(_) => "provisioned",
        ClaimOutcome::Failed(ClaimFailure::Unusable(_, UnusableVolume::NodeAffinity)) => "unreachable",
        ClaimOutcome::Failed(ClaimFailure::Unusable(_, UnusableVolume::Missing)) => "missing",
        ClaimOutcome::Failed(ClaimFailure::SelectedElsewhere(_)) => "elsewhere",
        ClaimOutcome::Failed(ClaimFailure::ReservedElsewhere(_)) => "reserved elsewhere",
        ClaimOutcome::Failed(ClaimFailure::TooSmall(_)) => "too small",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::NoProvisioner)) => "no volume",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::Topology)) => "topology",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::Capacity)) => "no capacity",
    }
}

/// The best volume of the claim's class that is reachable from the node, and what it lacks.
fn nearest(known: &Cache, node: &Node, claim: &Claim) -> Option<String> {
    let request = MatchCriteria::of(claim, true).ok()?.on(&node.labels);
    let volumes = candidates::volumes(known, &request, None);
    let is_reachable = |name: &str| known.volume(&name.into()).is_some_and(|volume| volume.is_reachable(&node.labels));
    let of_class = volumes.into_iter().filter(|ranked| ranked.rank.tier < Tier::OtherClass);
    let of_class = of_class.filter(|ranked| is_reachable(&ranked.candidate.name));
    let by_rank = |ranked: &candidates::Ranked| (ranked.rank, ranked.candidate.name.clone());
    let nearest = of_class.min_by_key(by_rank)?.candidate;
    (!nearest.fits).then(|| format!("{}: {}", nearest.name, nearest.why.join(", ")))
}

/// A failed check of a node that is not about claims.
pub(crate) fn reason_text(look: &Evaluation<'_>, pod: &Pod, node: &Node, reason: &Reason) -> String {
    let pods = || list(&look.blocking_pods(node, reason));
    match reason {
        Reason::Unschedulable => "cordoned".into(),
        Reason::Tainted(taints) => {
            let taints: Vec<String> = taints.iter().map(taint).collect();
            format!("taint {}", taints.join(", "))
        }
        Reason::NodeAffinity { labels, is_by_affinity } => {
            let mut lacks: Vec<String> = labels.iter().map(|(key, value)| format!("no label {key}={value}")).collect();
            lacks.extend(is_by_affinity.then(|| "the pod's node affinity".into()));
            lacks.join(", ")
        }
        Reason::PortInUse => {
            let ports: Vec<String> = pod.scheduling.ports.iter().map(|(_, _, port)| port.to_string()).collect();
            format!("host port {} in use by {}", ports.join(" or "), pods())
        }
        Reason::TooManyPods => format!("limit of {} pods reached", node.allocatable.pods),
        Reason::Insufficient(shortage) => {
            let &ResourceShortage { ref resource, requested, used, allocatable } = shortage;
            let free = amount(resource, (allocatable - used).max(0));
            format!(
                "{resource}: needs {}, {free} free of {}",
                amount(resource, requested),
                amount(resource, allocatable)
            )
        }
        Reason::Affinity => "pod affinity: no matching pod nearby".into(),
        Reason::AntiAffinity => format!("pod anti-affinity: conflicts with {}", pods()),
        Reason::ExistingAntiAffinity => format!("rejected by the pod anti-affinity of {}", pods()),
        Reason::MissingSpreadLabel(key) => format!("topology spread: no label {key}"),
        Reason::TopologySpread(SpreadViolation { key, value, count, minimum, skew_max }) => {
            format!(
                "topology spread: {key}={value} has {count} matching pods, the minimum is {minimum}, maxSkew {skew_max}"
            )
        }
        Reason::Volumes(obstacle) => obstacle_text(obstacle, pods),
    }
}

fn obstacle_text(obstacle: &NodeRejection, pods: impl FnOnce() -> String) -> String {
    match obstacle {
        NodeRejection::ZoneMismatch => "a volume is in another zone".into(),
        NodeRejection::DiskInUse => format!("a disk is in use by {}", pods()),
        NodeRejection::ClaimInUse => format!("a ReadWriteOncePod claim is in use by {}", pods()),
        NodeRejection::TooManyVolumes => "too many volumes".into(),
        NodeRejection::DriverMissing(driver) => format!("CSI driver {driver} is not installed"),
        // These are reported in the claim columns.
        NodeRejection::VolumeUnreachable
        | NodeRejection::NoMatchingVolume
        | NodeRejection::InsufficientCapacity
        | NodeRejection::VolumeMissing => obstacle.to_string(),
    }
}

/// A taint in kubectl's notation.
pub(crate) fn taint(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{}", taint.key, taint.effect.as_str())
}

/// An amount of a resource in Kubernetes' notation.
pub(crate) fn amount(what: &str, amount: i128) -> String {
    const UNITS: [(&str, i128); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    match what {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        _ => {
            let whole = UNITS.into_iter().find(|(_, bytes)| amount > 0 && amount % bytes == 0);
            whole.map_or_else(|| amount.to_string(), |(unit, bytes)| format!("{}{unit}", amount / bytes))
        }
    }
}

/// The names of the first few pods.
fn list(pods: &[PodKey]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = pods.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if pods.len() > SHOWN { format!(" and {} more", pods.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names.join(", "))
}
