//! What stands in a cell of the table of nodes and claims, in words.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, Mismatch};
use bindery_model::{Claim, Node, Pod, PodKey, Taint};
use bindery_placement::{CannotProvision, ClaimFailure, ClaimOutcome, NodeRejection, UnusableVolume};
use bindery_scheduler::{Evaluation, Reason, ResourceShortage, SpreadViolation};

use crate::candidates::{self, Standing};

/// What a node has for a claim. `is_alone` says whether the row is about no other node: what holds of one only is not said of many.
pub(crate) fn of_prospect(
    known: &Cache,
    node: &Node,
    is_alone: bool,
    claim: &Claim,
    prospect: &ClaimOutcome<'_>,
) -> String {
    match prospect {
        ClaimOutcome::Bound(volume) => format!("bound to {volume}, in reach"),
        ClaimOutcome::Reserved(volume) => format!("would take {}, which is reserved for it", volume.name()),
        ClaimOutcome::Available(volume) => format!("would take {}", volume.name()),
        ClaimOutcome::Provision(_) => "would be provisioned".into(),
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::NoProvisioner)) if is_alone => {
            match nearest(known, node, claim) {
                Some(nearest) => format!("no matching volume; {nearest}"),
                None => "no matching volume".into(),
            }
        }
        ClaimOutcome::Failed(lack) => of_lack(claim, lack),
    }
}

fn of_lack(claim: &Claim, lack: &ClaimFailure<'_>) -> String {
    match lack {
        ClaimFailure::Unusable(volume, UnusableVolume::NodeAffinity) => {
            format!("bound to {volume}: node affinity conflict")
        }
        ClaimFailure::Unusable(volume, UnusableVolume::Missing) => format!("bound to {volume}, which does not exist"),
        ClaimFailure::SelectedElsewhere(node) => format!("to be provisioned on {node}"),
        ClaimFailure::ReservedElsewhere(volume) => format!("{volume} is reserved for it: node affinity conflict"),
        ClaimFailure::TooSmall(volume) => {
            let (needs, has) = (claim.requested(), volume.size());
            format!("no matching volume; {}: {}", volume.name(), Mismatch::TooSmall { needs, has })
        }
        ClaimFailure::CannotProvision(CannotProvision::NoProvisioner) => "no matching volume".into(),
        ClaimFailure::CannotProvision(CannotProvision::Topology) => "class topology: none is provisioned here".into(),
        ClaimFailure::CannotProvision(CannotProvision::Capacity) => "not enough free storage".into(),
    }
}

/// What all prospects of a sort have in common: nodes that differ in nothing else are shown as one.
pub(crate) fn sort_of_prospect(prospect: &ClaimOutcome<'_>) -> &'static str {
    match prospect {
        ClaimOutcome::Bound(_) => "bound",
        ClaimOutcome::Reserved(_) => "reserved",
        ClaimOutcome::Available(_) => "free",
        ClaimOutcome::Provision(_) => "made",
        ClaimOutcome::Failed(ClaimFailure::Unusable(_, UnusableVolume::NodeAffinity)) => "unreachable",
        ClaimOutcome::Failed(ClaimFailure::Unusable(_, UnusableVolume::Missing)) => "missing",
        ClaimOutcome::Failed(ClaimFailure::SelectedElsewhere(_)) => "elsewhere",
        ClaimOutcome::Failed(ClaimFailure::ReservedElsewhere(_)) => "reserved elsewhere",
        ClaimOutcome::Failed(ClaimFailure::TooSmall(_)) => "too small",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::NoProvisioner)) => "no volume",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::Topology)) => "topology",
        ClaimOutcome::Failed(ClaimFailure::CannotProvision(CannotProvision::Capacity)) => "no room",
    }
}

/// The volume that comes nearest to what a claim looks for of those that a node reaches, and what it lacks; of the claim's class only.
fn nearest(known: &Cache, node: &Node, claim: &Claim) -> Option<String> {
    let request = MatchCriteria::of(claim, true).ok()?.on(&node.labels);
    let volumes = candidates::volumes(known, &request, None);
    let is_in_reach = |name: &str| known.volume(&name.into()).is_some_and(|volume| volume.is_reachable(&node.labels));
    let meant = volumes.into_iter().filter(|ranked| ranked.nearness.standing < Standing::OtherClass);
    let meant = meant.filter(|ranked| is_in_reach(&ranked.candidate.name));
    let by_nearness = |ranked: &candidates::Ranked| (ranked.nearness, ranked.candidate.name.clone());
    let nearest = meant.min_by_key(by_nearness)?.candidate;
    (!nearest.fits).then(|| format!("{}: {}", nearest.name, nearest.why.join(", ")))
}

/// What stands against a node beside its claims.
pub(crate) fn of_reason(look: &Evaluation<'_>, pod: &Pod, node: &Node, reason: &Reason) -> String {
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
            format!("port {} taken by {}", ports.join(" or "), pods())
        }
        Reason::TooManyPods => format!("no room for more than {} pods", node.allocatable.pods),
        Reason::Insufficient(shortage) => {
            let &ResourceShortage { resource: ref what, requested: needs, used: taken, allocatable: has } = shortage;
            let free = amount(what, (has - taken).max(0));
            format!("{what}: needs {}, {free} free of {}", amount(what, needs), amount(what, has))
        }
        Reason::Affinity => "no pod near that must be".into(),
        Reason::AntiAffinity => format!("{} near, and must not be", pods()),
        Reason::ExistingAntiAffinity => format!("{} near, and wants it elsewhere", pods()),
        Reason::MissingSpreadLabel(key) => format!("no label {key}, over which pods are spread"),
        Reason::TopologySpread(SpreadViolation { key, value, count, minimum, skew_max }) => {
            format!(
                "{key}={value} has {count} pods of its kind, the emptiest {minimum}, and {skew_max} more is allowed"
            )
        }
        Reason::Volumes(obstacle) => of_obstacle(obstacle, pods),
    }
}

fn of_obstacle(obstacle: &NodeRejection, pods: impl FnOnce() -> String) -> String {
    match obstacle {
        NodeRejection::ZoneMismatch => "a volume is in another zone".into(),
        NodeRejection::DiskInUse => format!("a disk is in use by {}", pods()),
        NodeRejection::ClaimInUse => format!("a ReadWriteOncePod claim is in use by {}", pods()),
        NodeRejection::TooManyVolumes => "too many volumes".into(),
        NodeRejection::DriverMissing(driver) => format!("CSI driver {driver} is not installed"),
        // These are said of claims.
        NodeRejection::VolumeUnreachable
        | NodeRejection::NoMatchingVolume
        | NodeRejection::InsufficientCapacity
        | NodeRejection::VolumeMissing => obstacle.to_string(),
    }
}

/// A taint, as kubectl has it.
pub(crate) fn taint(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{}", taint.key, taint.effect.as_str())
}

/// An amount of what a node has, as it is written.
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

/// Pods, the first few by name.
fn list(pods: &[PodKey]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = pods.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if pods.len() > SHOWN { format!(" and {} more", pods.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names.join(", "))
}
