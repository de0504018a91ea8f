//! The texts in the cells of the table of nodes and claims.

use bindery_cache::Cache;
use bindery_model::{Claim, Mismatch, Node, Pod, PodKey, Request, Taint};
use bindery_placement::{Lack, Obstacle, Prospect, Unmade, Unreached};
use bindery_scheduler::{Crowd, Look, Reason, Shortage};

use crate::candidates::{self, Tier};

/// What a node offers a claim. `is_alone` is false if the row stands for several nodes: then
/// details that apply to one node only are left out.
pub(crate) fn prospect_text(
    known: &Cache,
    node: &Node,
    is_alone: bool,
    claim: &Claim,
    prospect: &Prospect<'_>,
) -> String {
    match prospect {
        Prospect::Bound(volume) => format!("bound to {volume}, reachable"),
        Prospect::Reserved(volume) => format!("would use {}, which is reserved for it", volume.name()),
        Prospect::Free(volume) => format!("would use {}", volume.name()),
        Prospect::Made(_) => "would be provisioned".into(),
        Prospect::Nothing(Lack::Unmade(Unmade::NoMaker)) if is_alone => match nearest(known, node, claim) {
            Some(nearest) => format!("no matching volume; {nearest}"),
            None => "no matching volume".into(),
        },
        Prospect::Nothing(lack) => lack_text(claim, lack),
    }
}

fn lack_text(claim: &Claim, lack: &Lack<'_>) -> String {
    match lack {
        Lack::Unreached(volume, Unreached::NodeAffinity) => format!("bound to {volume}: node affinity conflict"),
        Lack::Unreached(volume, Unreached::Missing) => format!("bound to {volume}, which does not exist"),
        Lack::Elsewhere(node) => format!("will be provisioned on {node}"),
        Lack::ReservedElsewhere(volume) => format!("{volume} is reserved for it: node affinity conflict"),
        Lack::TooSmall(volume) => {
            let (needs, has) = (claim.requested(), volume.holds());
            format!("no matching volume; {}: {}", volume.name(), Mismatch::TooSmall { needs, has })
        }
        Lack::Unmade(Unmade::NoMaker) => "no matching volume".into(),
        Lack::Unmade(Unmade::Topology) => "cannot be provisioned here (allowedTopologies)".into(),
        Lack::Unmade(Unmade::NoRoom) => "not enough free storage".into(),
    }
}

/// The kind of a prospect: nodes that differ in nothing else share a row.
pub(crate) fn prospect_group(prospect: &Prospect<'_>) -> &'static str {
    match prospect {
        Prospect::Bound(_) => "bound",
        Prospect::Reserved(_) => "reserved",
        Prospect::Free(_) => "free",
        Prospect::Made(_) => "provisioned",
        Prospect::Nothing(Lack::Unreached(_, Unreached::NodeAffinity)) => "unreachable",
        Prospect::Nothing(Lack::Unreached(_, Unreached::Missing)) => "missing",
        Prospect::Nothing(Lack::Elsewhere(_)) => "elsewhere",
        Prospect::Nothing(Lack::ReservedElsewhere(_)) => "reserved elsewhere",
        Prospect::Nothing(Lack::TooSmall(_)) => "too small",
        Prospect::Nothing(Lack::Unmade(Unmade::NoMaker)) => "no volume",
        Prospect::Nothing(Lack::Unmade(Unmade::Topology)) => "topology",
        Prospect::Nothing(Lack::Unmade(Unmade::NoRoom)) => "no capacity",
    }
}

/// The best volume of the claim's class that is reachable from the node, and what it lacks.
fn nearest(known: &Cache, node: &Node, claim: &Claim) -> Option<String> {
    let request = Request::of(claim, true).ok()?.on(&node.labels);
    let volumes = candidates::volumes(known, &request, None);
    let is_reachable = |name: &str| known.volume(&name.into()).is_some_and(|volume| volume.is_reachable(&node.labels));
    let of_class = volumes.into_iter().filter(|ranked| ranked.rank.tier < Tier::OtherClass);
    let of_class = of_class.filter(|ranked| is_reachable(&ranked.candidate.name));
    let by_rank = |ranked: &candidates::Ranked| (ranked.rank, ranked.candidate.name.clone());
    let nearest = of_class.min_by_key(by_rank)?.candidate;
    (!nearest.fits).then(|| format!("{}: {}", nearest.name, nearest.why.join(", ")))
}

/// A failed check of a node that is not about claims.
pub(crate) fn reason_text(look: &Look<'_>, pod: &Pod, node: &Node, reason: &Reason) -> String {
    let pods = || list(&look.in_the_way(node, reason));
    match reason {
        Reason::Unschedulable => "cordoned".into(),
        Reason::Tainted(taints) => {
            let taints: Vec<String> = taints.iter().map(taint).collect();
            format!("taint {}", taints.join(", "))
        }
        Reason::NotWanted { labels, is_by_affinity } => {
            let mut lacks: Vec<String> = labels.iter().map(|(key, value)| format!("no label {key}={value}")).collect();
            lacks.extend(is_by_affinity.then(|| "the pod's node affinity".into()));
            lacks.join(", ")
        }
        Reason::PortTaken => {
            let ports: Vec<String> = pod.scheduling.ports.iter().map(|(_, _, port)| port.to_string()).collect();
            format!("host port {} in use by {}", ports.join(" or "), pods())
        }
        Reason::TooManyPods => format!("limit of {} pods reached", node.allocatable.pods),
        Reason::Lacks(shortage) => {
            let &Shortage { ref what, needs, taken, has } = shortage;
            let free = amount(what, (has - taken).max(0));
            format!("{what}: needs {}, {free} free of {}", amount(what, needs), amount(what, has))
        }
        Reason::NotNear => "pod affinity: no matching pod nearby".into(),
        Reason::NotApart => format!("pod anti-affinity: conflicts with {}", pods()),
        Reason::KeptApart => format!("rejected by the pod anti-affinity of {}", pods()),
        Reason::NoPlace(key) => format!("topology spread: no label {key}"),
        Reason::Uneven(Crowd { key, value, here, fewest, skew_max }) => {
            format!(
                "topology spread: {key}={value} has {here} matching pods, the minimum is {fewest}, maxSkew {skew_max}"
            )
        }
        Reason::Volumes(obstacle) => obstacle_text(obstacle, pods),
    }
}

fn obstacle_text(obstacle: &Obstacle, pods: impl FnOnce() -> String) -> String {
    match obstacle {
        Obstacle::OtherZone => "a volume is in another zone".into(),
        Obstacle::DiskInUse => format!("a disk is in use by {}", pods()),
        Obstacle::ClaimInUse => format!("a ReadWriteOncePod claim is in use by {}", pods()),
        Obstacle::TooManyVolumes => "too many volumes".into(),
        Obstacle::DriverMissing(driver) => format!("CSI driver {driver} is not installed"),
        // These are reported in the claim columns.
        Obstacle::Unreachable | Obstacle::NothingToBind | Obstacle::NoRoom | Obstacle::VolumeMissing => {
            obstacle.to_string()
        }
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
