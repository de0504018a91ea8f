//! Which volume a claim gets on a node, and which nodes can index a volume; and that the index
//! finds the same as a scan of all volumes.

use std::sync::Arc;

use bindery_cache::{TopologyIndex, VolumeRequirements};
use bindery_matching::{MatchCriteria, choose, mismatch, reserved_mismatch};
use bindery_model::{Claim, Labels, Name, RequiredLabels, Volume};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check;
use super::world::World;

const VOLUMES: &str = "
    volume local001 5G -
    volume local002 200E large
    volume affinity001 100G wait in=key1:value1
    volume affinity002 150G wait in=key1:value1
    volume affinity003 100G wait in=key1:value1 for=claim02 named-only
    volume affinity003b 200G wait in=key1:value3
    volume affinity004 200G wait in=key1:value4 phase=Pending";

/// The name of the volume that a claim gets on a node with a value of key1, without taken ones.
fn on_node(volumes: &str, claim: &str, value: &str, taken: &str) -> String {
    let world = World::new(&format!("claim {claim}\n{volumes}"));
    let claim = world.claims.values().next().expect("a claim");
    let labels: Labels = [("key1".into(), Name::from(value))].into_iter().collect();
    let criteria = MatchCriteria::of(claim, true).expect("a selector").on(&labels);
    let is_left = |volume: &Volume| !taken.split(' ').any(|taken| taken == volume.name());
    let reserved = world.volumes.values().filter(|volume| is_left(volume));
    let mut index = TopologyIndex::default();
    world.volumes.values().filter(|volume| TopologyIndex::includes(volume)).for_each(|volume| index.insert(volume));
    let requirements = VolumeRequirements::of(claim);
    let candidates = index.candidates(&requirements, criteria.selector);
    let choice = choose(&criteria, reserved, |fits: &dyn Fn(&Volume) -> bool| {
        let found = candidates.reachable(&labels).first(&requirements, &labels, |volume| !is_left(volume));
        found.map(|found| found.volume()).filter(|volume| fits(volume))
    });
    choice.map(|choice| choice.volume().name().to_string()).unwrap_or_default()
}

#[test]
fn claim_gets_a_volume_that_the_node_reaches() {
    let gold: String =
        VOLUMES.lines().map(|line| format!("{line} attributes=gold\n")).filter(|line| line.len() > 20).collect();
    let cases = [
        ("matching", VOLUMES, "claim01 100G wait", "value1", "", "affinity001"),
        ("reserved", VOLUMES, "claim02 100G wait", "value1", "", "affinity003"),
        ("the first is taken", VOLUMES, "claim01 100G wait", "value1", "affinity001", "affinity002"),
        ("all are taken", VOLUMES, "claim01 100G wait", "value1", "affinity001 affinity002", ""),
        ("missing access mode", VOLUMES, "claim01 100G wait modes=RWX", "value1", "", ""),
        ("unreachable", VOLUMES, "claim01 100G wait", "value2", "", ""),
        ("reserved volume is unreachable: no other is used", VOLUMES, "claim02 100G wait", "value3", "", ""),
        ("not Available", VOLUMES, "claim04 100G wait", "value4", "", ""),
        ("one reachable, another not", VOLUMES, "claim03 100G wait", "value3", "", "affinity003b"),
        ("same attributes class", &gold, "claim01 100G wait attributes=gold", "value1", "", "affinity001"),
        ("another attributes class", VOLUMES, "claim01 100G wait attributes=silver", "value1", "", ""),
        (
            "reserved volume with another attributes class",
            &gold,
            "claim02 100G wait attributes=silver",
            "value1",
            "",
            "",
        ),
        ("no attributes class requested", &gold, "claim01 100G wait", "value1", "", ""),
        ("selector", "volume a 1G wait\nvolume b 2G wait label=disk:ssd", "c 1G wait selector=disk:ssd", "", "", "b"),
        (
            "reserved volume that is too small is ignored",
            "volume a 1G wait for=c\nvolume b 2G wait",
            "c 2G wait",
            "",
            "",
            "b",
        ),
    ];
    check(cases.map(|(name, volumes, claim, node, taken, wanted)| {
        (name, on_node(volumes, claim, node, taken), wanted.to_owned())
    }));
}

#[test]
fn node_affinity_determines_which_nodes_reach_a_volume() {
    let volume = |affinity: Value| {
        let json = json!({"metadata": {"name": "v", "uid": "u"}, "spec": {"nodeAffinity": affinity}});
        Volume::from_json(json.to_string().as_bytes()).expect("a volume")
    };
    let wants = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
    let terms = |terms: &[&[&Value]]| {
        let terms: Vec<Value> = terms.iter().map(|term| json!({"matchExpressions": term})).collect();
        json!({"required": {"nodeSelectorTerms": terms}})
    };
    let labels: Labels =
        [("test-key1".into(), "test-value1".into()), ("test-key2".into(), "test-value2".into())].into_iter().collect();
    let (one, two, absent) = (
        wants("test-key1", &["test-value1", "test-value3"]),
        wants("test-key2", &["test-value0", "test-value2"]),
        wants("test-key3", &["test-value1", "test-value3"]),
    );
    let (not_one, not_two) =
        (wants("test-key1", &["test-value3", "test-value4"]), wants("test-key2", &["test-value0", "test-value1"]));
    let none = "no matching NodeSelectorTerms";
    let cases = [
        ("no node affinity", Value::Null, ""),
        ("nothing required", json!({}), ""),
        ("no terms", json!({"required": {}}), none),
        ("an empty term", terms(&[&[]]), none),
        ("one of two terms", terms(&[&[&absent], &[&two]]), ""),
        ("two expressions", terms(&[&[&one, &two]]), ""),
        ("two expressions, a label is absent", terms(&[&[&one, &absent]]), none),
        ("two expressions, a value differs", terms(&[&[&not_one, &two]]), none),
        ("neither of two terms", terms(&[&[&absent], &[&not_two]]), none),
    ];
    check(cases.map(|(name, affinity, wanted)| {
        let volume = volume(affinity);
        let problem = volume.nodes.as_ref().and_then(|nodes| nodes.check(&labels, None).err()).unwrap_or_default();
        assert_eq!(volume.is_reachable(&labels), problem.is_empty(), "{name}");
        (name, problem, wanted.to_owned())
    }));
}

/// Upstream's algorithm: a scan of all volumes, here in the order of their names.
fn scan<'a>(criteria: &MatchCriteria<'_>, volumes: &'a [Arc<Volume>]) -> Option<&'a Arc<Volume>> {
    let mut best: Option<&Arc<Volume>> = None;
    for volume in volumes {
        if volume.refers_to(criteria.claim) {
            if reserved_mismatch(criteria, volume).is_none() {
                return criteria.reaches(volume).then_some(volume);
            }
        } else if mismatch(criteria, volume).is_none() && best.is_none_or(|best| volume.size() < best.size()) {
            best = Some(volume);
        }
    }
    best
}

fn expression() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["kubernetes.io/hostname", "zone", "rack"]);
    let operator = prop::sample::select(vec!["In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Near"]);
    let values = prop::collection::vec(prop::sample::select(vec!["1", "2", "3"]), 1..3);
    (key, operator, values).prop_map(|(key, operator, values)| {
        let values = if operator.ends_with("Exist") || operator == "Exists" { vec![] } else { values };
        json!({"key": key, "operator": operator, "values": values})
    })
}

fn volumes() -> impl Strategy<Value = Vec<Arc<Volume>>> {
    let term = prop::collection::vec(expression(), 0..3).prop_map(|term| json!({"matchExpressions": term}));
    let affinity = prop::option::of(prop::collection::vec(term, 0..3));
    let size = prop::sample::select(vec!["1G", "2G", "1999999999.5", "3G", "200E"]);
    let class = prop::sample::select(vec!["wait", "wait", "other"]);
    let volume = (affinity, size, class, 0..32_u32);
    // Among several reserved volumes a scan takes the first, and we the smallest: so there is at
    // most one.
    let reserved = prop::option::weighted(0.5, 0..12_usize);
    (prop::collection::vec(volume, 0..12), reserved).prop_map(|(volumes, reserved)| {
        let volume = |n: usize, affinity: Option<Vec<Value>>, size: &str, class: &str, traits: u32| {
            let (labels, modes) = ([json!({}), json!({"disk": "ssd"})], [json!(["ReadWriteOnce"]), json!(["ReadWriteMany"])]);
            let claim = (reserved == Some(n)).then(|| json!({"namespace": super::world::NAMESPACE, "name": "c"}));
            let nodes = affinity.map(|terms| json!({"required": {"nodeSelectorTerms": terms}}));
            let json = json!({
                "metadata": {"name": format!("v{n:02}"), "uid": format!("u{n}"), "labels": labels[(traits % 2) as usize]},
                "spec": {"capacity": {"storage": size}, "storageClassName": class, "claimRef": claim,
                         "accessModes": modes[(traits / 2 % 2) as usize], "nodeAffinity": nodes},
                "status": {"phase": if traits == 31 { "Pending" } else { "Available" }},
            });
            Arc::new(Volume::from_json(json.to_string().as_bytes()).expect("a volume"))
        };
        let numbered = volumes.into_iter().enumerate();
        numbered.map(|(n, (affinity, size, class, traits))| volume(n, affinity, size, class, traits)).collect()
    })
}

/// A request, and other properties of a claim.
fn requests() -> impl Strategy<Value = (&'static str, &'static str)> {
    let size = prop::sample::select(vec!["1G", "1500M", "2G", "1999999999.5", "100E"]);
    (size, prop::sample::select(vec!["", "", "selector=disk:ssd", "modes=RWX", "attributes=gold"]))
}

fn labels() -> impl Strategy<Value = Labels> {
    let value = || prop::option::of(prop::sample::select(vec!["1", "2", "3"]));
    (value(), value(), value()).prop_map(|(host, zone, rack)| {
        let labels = [("kubernetes.io/hostname", host), ("zone", zone), ("rack", rack)];
        labels.into_iter().filter_map(|(key, value)| Some((Name::from(key), Name::from(value?)))).collect()
    })
}

fn claim(size: &str, more: &str) -> Claim {
    let world = World::new(&format!("claim c {size} wait {more}"));
    Claim::clone(world.claim_named("c"))
}

proptest! {
    #[test]
    fn index_finds_the_same_volume_as_a_scan(volumes in volumes(), labels in labels(), request in requests(), removed in 0..12_usize) {
        let claim = claim(request.0, request.1);
        let criteria = MatchCriteria::of(&claim, true).expect("no selector").on(&labels);
        let mut index = TopologyIndex::default();
        volumes.iter().filter(|volume| TopologyIndex::includes(volume)).for_each(|volume| index.insert(volume));
        let mut left = volumes.clone();
        if removed < left.len() {
            let removed = left.remove(removed);
            if TopologyIndex::includes(&removed) {
                index.remove(&removed);
            }
        }
        let requirements = VolumeRequirements::of(&claim);
        let candidates = index.candidates(&requirements, criteria.selector);
        let reachable = candidates.reachable(&labels);
        let found = choose(&criteria, left.iter(), |_: &dyn Fn(&Volume) -> bool| {
            reachable.first(&requirements, &labels, |_| false).map(|found| found.volume())
        });
        prop_assert_eq!(found.map(|choice| choice.volume().name()), scan(&criteria, &left).map(|volume| volume.name()));
    }

    #[test]
    fn reachable_volumes_are_indexed_under_labels_of_the_node(volumes in volumes(), labels in labels()) {
        for volume in &volumes {
            let is_indexed = match RequiredLabels::of_nodes(volume.nodes.as_deref()) {
                RequiredLabels::Unrestricted => true,
                RequiredLabels::OneOf(required) => required.into_iter().any(|(key, value)| labels.get(key) == Some(value)),
            };
            prop_assert!(is_indexed || !volume.is_reachable(&labels), "{:?} from {:?}", volume.nodes, labels);
        }
    }
}
