//! Which volume a claim gets on a node, and which nodes a volume can be reached from; and that the index finds what a scan of all
//! volumes finds.

use std::sync::Arc;

use bindery_cache::{TopologyIndex, VolumeRequirements};
use bindery_matching::{MatchCriteria, choose, mismatch, reserved_mismatch};
use bindery_model::{RequiredLabels, Claim, Labels, Name, Volume};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check;
use super::world::World;

/// Every table, for the test that all rules are exercised.
pub fn tables() -> Vec<fn()> {
    vec![a_claim_gets_a_volume_of_its_node, a_volume_is_reached_from_the_nodes_it_says]
}

const VOLUMES: &str = "
    volume local001 5G -
    volume local002 200E large
    volume affinity001 100G wait in=key1:value1
    volume affinity002 150G wait in=key1:value1
    volume affinity003 100G wait in=key1:value1 for=claim02 named-only
    volume affinity003b 200G wait in=key1:value3
    volume affinity004 200G wait in=key1:value4 phase=Pending";

/// The name of the volume that a claim gets on a node whose key1 has a value, without those that are taken.
fn on_node(volumes: &str, claim: &str, value: &str, taken: &str) -> String {
    let world = World::new(&format!("claim {claim}\n{volumes}"));
    let claim = world.claims.values().next().expect("a claim");
    let labels: Labels = [("key1".into(), Name::from(value))].into_iter().collect();
    let request = MatchCriteria::of(claim, true).expect("a selector").on(&labels);
    let is_left = |volume: &Volume| !taken.split(' ').any(|taken| taken == volume.name());
    let reserved = world.volumes.values().filter(|volume| is_left(volume));
    let mut reach = TopologyIndex::default();
    world.volumes.values().filter(|volume| TopologyIndex::includes(volume)).for_each(|volume| reach.insert(volume));
    let wish = VolumeRequirements::of(claim);
    let candidates = reach.candidates(&wish, request.selector);
    let choice = choose(&request, reserved, |fits: &dyn Fn(&Volume) -> bool| {
        let found = candidates.near(&labels).first(&wish, &labels, |volume| !is_left(volume));
        found.map(|found| found.volume()).filter(|volume| fits(volume))
    });
    choice.map(|choice| choice.volume().name().to_string()).unwrap_or_default()
}

#[test]
fn a_claim_gets_a_volume_of_its_node() {
    let gold: String =
        VOLUMES.lines().map(|line| format!("{line} attributes=gold\n")).filter(|line| line.len() > 20).collect();
    let cases = [
        ("it fits", VOLUMES, "claim01 100G wait", "value1", "", "affinity001"),
        ("it is reserved", VOLUMES, "claim02 100G wait", "value1", "", "affinity003"),
        ("the first is taken", VOLUMES, "claim01 100G wait", "value1", "affinity001", "affinity002"),
        ("all are taken", VOLUMES, "claim01 100G wait", "value1", "affinity001 affinity002", ""),
        ("an access mode lacks", VOLUMES, "claim01 100G wait modes=RWX", "value1", "", ""),
        ("none is reached from the node", VOLUMES, "claim01 100G wait", "value2", "", ""),
        ("the reserved one is not reached: no other will do", VOLUMES, "claim02 100G wait", "value3", "", ""),
        ("it is not marked available", VOLUMES, "claim04 100G wait", "value4", "", ""),
        ("one is reached, another is not", VOLUMES, "claim03 100G wait", "value3", "", "affinity003b"),
        ("attributes are the same", &gold, "claim01 100G wait attributes=gold", "value1", "", "affinity001"),
        ("attributes are asked for", VOLUMES, "claim01 100G wait attributes=silver", "value1", "", ""),
        ("the reserved one has other attributes", &gold, "claim02 100G wait attributes=silver", "value1", "", ""),
        ("attributes are not asked for", &gold, "claim01 100G wait", "value1", "", ""),
        (
            "labels are asked for",
            "volume a 1G wait\nvolume b 2G wait label=disk:ssd",
            "c 1G wait selector=disk:ssd",
            "",
            "",
            "b",
        ),
        (
            "a reserved one that is too small is passed over",
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
fn a_volume_is_reached_from_the_nodes_it_says() {
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
        ("nothing is said", Value::Null, ""),
        ("nothing is required", json!({}), ""),
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

/// What upstream does: it looks at all volumes, one after another, here in the order of their names.
fn scan<'a>(request: &MatchCriteria<'_>, volumes: &'a [Arc<Volume>]) -> Option<&'a Arc<Volume>> {
    let mut best: Option<&Arc<Volume>> = None;
    for volume in volumes {
        if volume.refers_to(request.claim) {
            if reserved_mismatch(request, volume).is_none() {
                return request.reaches(volume).then_some(volume);
            }
        } else if mismatch(request, volume).is_none() && best.is_none_or(|best| volume.size() < best.size()) {
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
    // Of several reserved ones a scan takes the first, and we the smallest: there is one at most.
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

/// What a claim asks for: how much, and what else.
fn asks() -> impl Strategy<Value = (&'static str, &'static str)> {
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
    fn the_index_finds_what_a_scan_finds(volumes in volumes(), labels in labels(), asks in asks(), gone in 0..12_usize) {
        let claim = claim(asks.0, asks.1);
        let request = MatchCriteria::of(&claim, true).expect("no selector").on(&labels);
        let mut reach = TopologyIndex::default();
        volumes.iter().filter(|volume| TopologyIndex::includes(volume)).for_each(|volume| reach.insert(volume));
        let mut left = volumes.clone();
        if gone < left.len() {
            let gone = left.remove(gone);
            if TopologyIndex::includes(&gone) {
                reach.remove(&gone);
            }
        }
        let wish = VolumeRequirements::of(&claim);
        let candidates = reach.candidates(&wish, request.selector);
        let near = candidates.near(&labels);
        let found = choose(&request, left.iter(), |_: &dyn Fn(&Volume) -> bool| {
            near.first(&wish, &labels, |_| false).map(|found| found.volume())
        });
        prop_assert_eq!(found.map(|choice| choice.volume().name()), scan(&request, &left).map(|volume| volume.name()));
    }

    #[test]
    fn what_a_node_reaches_is_under_its_labels(volumes in volumes(), labels in labels()) {
        for volume in &volumes {
            let is_near = match RequiredLabels::of_nodes(volume.nodes.as_deref()) {
                RequiredLabels::Unrestricted => true,
                RequiredLabels::OneOf(at) => at.into_iter().any(|(key, value)| labels.get(key) == Some(value)),
            };
            prop_assert!(is_near || !volume.is_reachable(&labels), "{:?} from {:?}", volume.nodes, labels);
        }
    }
}
