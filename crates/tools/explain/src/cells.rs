//! What stands in a cell of the table of nodes and claims, in words.

use bindery_cache::Cache;
use bindery_model::{Claim, Mismatch, Node, Pod, PodKey, Request, Taint};
use bindery_placement::{Lack, Obstacle, Prospect, Unmade, Unreached};
use bindery_scheduler::{Crowd, Look, Reason, Shortage};

use crate::candidates::{self, Standing};

/// What a node has for a claim. `is_alone` says whether the row is about no other node: what holds of one only is not said of many.
pub(crate) fn of_prospect(
    known: &Cache,
    node: &Node,
    is_alone: bool,
    claim: &Claim,
    prospect: &Prospect<'_>,
) -> String {
    match prospect {
        Prospect::Bound(volume) => format!("bound to {volume}, in reach"),
        Prospect::Reserved(volume) => format!("would take {}, which is reserved for it", volume.name()),
        Prospect::Free(volume) => format!("would take {}", volume.name()),
        Prospect::Made(_) => "would be provisioned".into(),
        Prospect::Nothing(Lack::Unmade(Unmade::NoMaker)) if is_alone => match nearest(known, node, claim) {
            Some(nearest) => format!("no matching volume; {nearest}"),
            None => "no matching volume".into(),
        },
        Prospect::Nothing(lack) => of_lack(claim, lack),
    }
}

fn of_lack(claim: &Claim, lack: &Lack<'_>) -> String {
    match lack {
        Lack::Unreached(volume, Unreached::NodeAffinity) => format!("bound to {volume}: node affinity conflict"),
        Lack::Unreached(volume, Unreached::Missing) => format!("bound to {volume}, which does not exist"),
        Lack::Elsewhere(node) => format!("to be provisioned on {node}"),
        Lack::ReservedElsewhere(volume) => format!("{volume} is reserved for it: node affinity conflict"),
        Lack::TooSmall(volume) => {
            let (needs, has) = (claim.requested(), volume.holds());
            format!("no matching volume; {}: {}", volume.name(), Mismatch::TooSmall { needs, has })
        }
        Lack::Unmade(Unmade::NoMaker) => "no matching volume".into(),
        Lack::Unmade(Unmade::Topology) => "class topology: none is provisioned here".into(),
        Lack::Unmade(Unmade::NoRoom) => "not enough free storage".into(),
    }
}

/// What all prospects of a sort have in common: nodes that differ in nothing else are shown as one.
pub(crate) fn sort_of_prospect(prospect: &Prospect<'_>) -> &'static str {
    match prospect {
        Prospect::Bound(_) => "bound",
        Prospect::Reserved(_) => "reserved",
        Prospect::Free(_) => "free",
        Prospect::Made(_) => "made",
        Prospect::Nothing(Lack::Unreached(_, Unreached::NodeAffinity)) => "unreachable",
        Prospect::Nothing(Lack::Unreached(_, Unreached::Missing)) => "missing",
        Prospect::Nothing(Lack::Elsewhere(_)) => "elsewhere",
        Prospect::Nothing(Lack::ReservedElsewhere(_)) => "reserved elsewhere",
        Prospect::Nothing(Lack::TooSmall(_)) => "too small",
        Prospect::Nothing(Lack::Unmade(Unmade::NoMaker)) => "no volume",
        Prospect::Nothing(Lack::Unmade(Unmade::Topology)) => "topology",
        Prospect::Nothing(Lack::Unmade(Unmade::NoRoom)) => "no room",
    }
}

/// The volume that comes nearest to what a claim looks for of those that a node reaches, and what it lacks; of the claim's class only.
fn nearest(known: &Cache, node: &Node, claim: &Claim) -> Option<String> {
    let request = Request::of(claim, true).ok()?.on(&node.labels);
    let volumes = candidates::volumes(known, &request, None);
    let is_in_reach = |name: &str| known.volume(&name.into()).is_some_and(|volume| volume.is_reachable(&node.labels));
    let meant = volumes.into_iter().filter(|ranked| ranked.nearness.standing < Standing::OtherClass);
    let meant = meant.filter(|ranked| is_in_reach(&ranked.candidate.name));
    let by_nearness = |ranked: &candidates::Ranked| (ranked.nearness, ranked.candidate.name.clone());
    let nearest = meant.min_by_key(by_nearness)?.candidate;
    (!nearest.fits).then(|| format!("{}: {}", nearest.name, nearest.why.join(", ")))
}

/// What stands against a node beside its claims.
pub(crate) fn of_reason(look: &Look<'_>, pod: &Pod, node: &Node, reason: &Reason) -> String {
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
            format!("port {} taken by {}", ports.join(" or "), pods())
        }
        Reason::TooManyPods => format!("no room for more than {} pods", node.allocatable.pods),
        Reason::Lacks(shortage) => {
            let &Shortage { ref what, needs, taken, has } = shortage;
            let free = amount(what, (has - taken).max(0));
            format!("{what}: needs {}, {free} free of {}", amount(what, needs), amount(what, has))
        }
        Reason::NotNear => "no pod near that must be".into(),
        Reason::NotApart => format!("{} near, and must not be", pods()),
        Reason::KeptApart => format!("{} near, and wants it elsewhere", pods()),
        Reason::NoPlace(key) => format!("no label {key}, over which pods are spread"),
        Reason::Uneven(Crowd { key, value, here, fewest, skew_max }) => {
            format!("{key}={value} has {here} pods of its kind, the emptiest {fewest}, and {skew_max} more is allowed")
        }
        Reason::Volumes(obstacle) => of_obstacle(obstacle, pods),
    }
}

fn of_obstacle(obstacle: &Obstacle, pods: impl FnOnce() -> String) -> String {
    match obstacle {
        Obstacle::OtherZone => "a volume is in another zone".into(),
        Obstacle::DiskInUse => format!("a disk is in use by {}", pods()),
        Obstacle::ClaimInUse => format!("a ReadWriteOncePod claim is in use by {}", pods()),
        Obstacle::TooManyVolumes => "too many volumes".into(),
        Obstacle::DriverMissing(driver) => format!("CSI driver {driver} is not installed"),
        // These are said of claims.
        Obstacle::Unreachable | Obstacle::NothingToBind | Obstacle::NoRoom | Obstacle::VolumeMissing => {
            obstacle.to_string()
        }
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
