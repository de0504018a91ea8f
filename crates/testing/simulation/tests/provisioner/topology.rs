//! The topology requirements of a request to create a volume.

use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_provisioner::{Config, Provisioner, TopologyConfig};
use bindery_rules_api::{Accessibility, Action, Failure, FailureEffect, LiveReads, Operation, Request, RuleSet, Term};
use bindery_simulation::notation;
use bindery_simulation::run::{Restart, Run, cache_of};
use bindery_simulation::storage::{Response, StorageBackend};
use serde_json::json;

const NODES: &str = "node n1 label=zone:a label=rack:1
                     node n2 label=zone:a label=rack:2
                     node n3 label=zone:b label=rack:1
                     node bare
                     csinode n1 driver=d:zone,rack
                     csinode n2 driver=d:zone,rack
                     csinode n3 driver=d:zone,rack
                     csinode bare
                     csinode z-lost driver=d:zone
                     csinode z-half driver=d:zone
                     node z-half";

/// The topology requirements for a claim.
fn requirements(class: &str, claim: &str, how: (bool, bool)) -> Result<Option<Accessibility>, Failure> {
    requirements_on(NODES, class, claim, how)
}

fn requirements_on(nodes: &str, class: &str, claim: &str, how: (bool, bool)) -> Result<Option<Accessibility>, Failure> {
    let mut cluster = notation::parse(nodes);
    notation::add(&mut cluster, &format!("sc gold d {class}\npvc {claim} class=gold sp=d"));
    let (strict, immediate) = how;
    let config = Config { topology: Some(TopologyConfig { strict, immediate }), ..Config::new("d") };
    let name = claim.split('#').next().unwrap_or_default();
    let known = cache_of(&cluster, &[]);
    let verdict =
        Provisioner::new(config).decide(&known, &ClaimKey::new("default", name).into(), &LiveReads::default());
    let Action::Request(Request::RunOperation(Operation::Prepare(order))) = verdict.action else {
        panic!("no volume is requested: {:?}", verdict.action)
    };
    order.topology
}

/// `zone:a,rack:1 zone:b`.
fn terms(text: &str) -> Vec<Term> {
    let label = |text: &str| text.split_once(':').map(|(key, value)| (key.into(), value.into()));
    text.split_whitespace().map(|term| term.split(',').filter_map(label).collect()).collect()
}

const FREE: (bool, bool) = (false, true);
const STRICT: (bool, bool) = (true, true);
const LATE: (bool, bool) = (false, false);

#[test]
fn requirements_equal_upstreams() {
    let all = "rack:1,zone:a rack:1,zone:b rack:2,zone:a";
    let cases = [
        // Class, claim, configuration; requisite and preferred topology.
        ("", "web-0#u 1Gi Pending", FREE, all, all),
        ("", "web-1#u 1Gi Pending", FREE, all, "rack:1,zone:b rack:2,zone:a rack:1,zone:a"),
        ("", "claim#u 1Gi Pending", FREE, all, "rack:2,zone:a rack:1,zone:a rack:1,zone:b"),
        ("wffc", "c#u 1Gi Pending node=n3", FREE, all, "rack:1,zone:b rack:2,zone:a rack:1,zone:a"),
        ("wffc", "c#u 1Gi Pending node=n3", LATE, all, "rack:1,zone:b rack:2,zone:a rack:1,zone:a"),
        ("wffc", "c#u 1Gi Pending node=n2", STRICT, "rack:2,zone:a", "rack:2,zone:a"),
        ("wffc allow=zone:a", "c#u 1Gi Pending node=n2", STRICT, "rack:2,zone:a", "rack:2,zone:a"),
        ("wffc allow=zone:b|a", "c#u 1Gi Pending node=n3", FREE, "zone:a zone:b", "zone:b zone:a"),
        (
            "allow=zone:b|a,rack:2|1",
            "web-0#u 1Gi Pending",
            FREE,
            "rack:1,zone:a rack:1,zone:b rack:2,zone:a rack:2,zone:b",
            "rack:1,zone:b rack:2,zone:a rack:2,zone:b rack:1,zone:a",
        ),
        // Terms are ordered by length first, without duplicates.
        (
            "allow=zone:z allow=zone:a,rack:1 allow=zone:z",
            "web-0#u 1Gi Pending",
            FREE,
            "zone:z rack:1,zone:a",
            "rack:1,zone:a zone:z",
        ),
        ("allow=zone:a", "c#u 1Gi Pending", LATE, "zone:a", "zone:a"),
    ];
    for (class, claim, how, requisite, preferred) in cases {
        let expected = Accessibility { requisite: terms(requisite), preferred: terms(preferred) };
        assert_eq!(requirements(class, claim, how), Ok(Some(expected)), "{class:?}, {claim}, {how:?}");
    }
    assert_eq!(requirements("", "c#u 1Gi Pending", LATE), Ok(None), "no requirements without a selected node");
}

#[test]
fn unsatisfiable_requirements_give_upstreams_errors() {
    let why = |error: &str| format!("error generating accessibility requirements: {error}");
    let cases = [
        (
            "wffc",
            "node=gone",
            FREE,
            FailureEffect::Reschedule,
            "failed to get selected CSINode gone: csinode.storage.k8s.io \"gone\" not found".to_owned(),
        ),
        ("wffc", "node=bare", FREE, FailureEffect::NotAttempted, why("no topology key found for node bare")),
        (
            "wffc",
            "node=z-lost",
            FREE,
            FailureEffect::NotAttempted,
            why("error getting node z-lost: node \"z-lost\" not found"),
        ),
        (
            "wffc",
            "node=z-half",
            FREE,
            FailureEffect::NotAttempted,
            why("topology labels from selected node z-half are missing one of [\"zone\"]"),
        ),
        (
            "wffc allow=zone:b",
            "node=n1",
            FREE,
            FailureEffect::NotAttempted,
            why("topology [{rack 1} {zone a}] from selected node \"n1\" is not in requisite: [[{zone b}]]"),
        ),
        (
            "wffc allow=zone:b",
            "node=n1",
            STRICT,
            FailureEffect::NotAttempted,
            why("selected node '\"n1\"' topology '[{rack 1} {zone a}]' is not in allowed topologies: [[{zone b}]]"),
        ),
    ];
    for (class, node, how, after, error) in cases {
        let expected = Err(Failure::new(error).with(after));
        assert_eq!(
            requirements(class, &format!("c#u 1Gi Pending {node}"), how),
            expected,
            "{class:?}, {node}, {how:?}"
        );
    }
    let nowhere = requirements_on("node n1", "", "c#u 1Gi Pending", FREE);
    assert_eq!(nowhere, Err(Failure::new(why("no available topology found")).with(FailureEffect::NotAttempted)));
    let unsupported = requirements_on("csinode n1 driver=d:zone\nnode n1", "", "c#u 1Gi Pending", FREE);
    assert_eq!(
        unsupported,
        Err(Failure::new(why("topology is not supported by any node")).with(FailureEffect::NotAttempted))
    );
}

#[test]
fn topology_of_a_migrated_class_is_translated() {
    let (driver, plugin) = ("ebs.csi.aws.com", "kubernetes.io/aws-ebs");
    let decided = |claim: &str| {
        let zone = "topology.ebs.csi.aws.com/zone";
        let text = format!(
            "node n label={zone}:a\ncsinode n driver={driver}:{zone}\nsc gold {plugin} allow=topology.kubernetes.io/zone:a|b\n{claim}"
        );
        let topology = Some(TopologyConfig { strict: false, immediate: true });
        let config = Config { aliases: vec![plugin.into()], topology, ..Config::new(driver) };
        let known = cache_of(&notation::parse(&text), &[]);
        let key = ClaimKey::new("default", "c-0").into();
        Provisioner::new(config).decide(&known, &key, &LiveReads::default()).action
    };
    let migrated = format!("pvc c-0#u 1Gi Pending class=gold sp={plugin} migrated={driver}");
    let Action::Request(Request::RunOperation(Operation::Prepare(order))) = decided(&migrated) else {
        panic!("no volume is requested")
    };
    assert_eq!(order.provisioner, plugin);
    let topology = order.topology.expect("topology requirements").expect("some");
    let zone = "topology.ebs.csi.aws.com/zone";
    assert_eq!(topology.requisite, terms(&format!("{zone}:a {zone}:b")));
    assert!(
        matches!(decided(&format!("pvc c-0#u 1Gi Pending class=gold sp={plugin}")), Action::Idle),
        "the class belongs to the in-tree plugin"
    );
}

/// The keys that are woken when the driver is registered on a node.
fn woken(before: &str, node: &str) -> Vec<String> {
    let claims = "sc gold d\nsc other e\npvc any#1 1Gi Pending class=gold sp=d\npvc here#2 1Gi Pending class=gold sp=d node=n2\n\
                  pvc theirs#3 1Gi Pending class=other sp=e";
    let mut cluster = notation::parse(&format!("{claims}\n{before}"));
    let mut known = cache_of(&cluster, &[]);
    notation::add(&mut cluster, node);
    let name = node.split_whitespace().nth(1).unwrap_or_default();
    let (_, nodes) = cluster.list(Kind::CsiNode);
    let changed = nodes.into_iter().find(|object| object.key().name == name).expect("the node");
    let change = known.watched(changed).expect("a change");
    let config = Config { topology: Some(TopologyConfig { strict: false, immediate: true }), ..Config::new("d") };
    let mut woken = vec![];
    Provisioner::new(config).wake(&known, &change, &mut |key| woken.push(key.name.to_string()));
    woken.sort();
    woken
}

#[test]
fn driver_registration_wakes_waiting_claims() {
    assert_eq!(woken("", "csinode n1 driver=d:zone"), ["any", "here"], "no node had the driver");
    assert_eq!(woken("csinode n1 driver=d:zone", "csinode n2 driver=d:zone"), ["here"], "the node is selected");
    assert!(woken("csinode n1 driver=d:zone", "csinode n3 driver=d:zone").is_empty());
    assert!(woken("", "csinode n1 driver=e:zone").is_empty(), "another driver");
    assert!(woken("", "csinode n1").is_empty());
}

#[test]
fn forged_intent_does_not_bypass_the_allowed_topologies() {
    let forged = json!({
        "provisioner": "d", "node": "n1", "attempt": {"instance": "x", "number": 1},
        "topology": {"requisite": [[["zone", "b"]]], "preferred": [[["zone", "b"]]]},
    });
    let decided = |class: &str, claim: &str| {
        let mut cluster = notation::parse(NODES);
        notation::add(
            &mut cluster,
            &format!("sc gold d {class}\npvc {claim} class=gold sp=d fin=bindery.dev/provisioning"),
        );
        let key: ObjectKey = ClaimKey::new("default", "c").into();
        cluster.edit(&key, json!({"metadata": {"annotations": {"bindery.dev/provisioning": forged.to_string()}}}));
        let config = Config { topology: Some(TopologyConfig { strict: false, immediate: true }), ..Config::new("d") };
        Provisioner::new(config).decide(&cache_of(&cluster, &[]), &key, &LiveReads::default())
    };
    let verdict = decided("allow=zone:a", "c#u 1Gi Pending");
    let Action::Request(Request::RunOperation(Operation::Prepare(order))) = verdict.action else {
        panic!("no volume is requested: {:?}", verdict.action)
    };
    assert_eq!(order.topology.map(|topology| topology.map(|topology| topology.requisite)), Ok(Some(terms("zone:a"))));
    assert_eq!(order.node, None, "no node is selected");
    assert_eq!(decided("wffc", "c#u 1Gi Pending").rule.name, "provisioner.claim.waits-for-node");
    assert_eq!(decided("", "c#u 1Gi Bound vol=v").rule.name, "provisioner.claim.legacy-finalizer");
}

#[test]
fn requests_with_many_topology_segments_are_repeated_without_changes() {
    let nodes: Vec<String> =
        (0..500).map(|n| format!("node n{n} label=host:h{n}\ncsinode n{n} driver=d:host")).collect();
    let mut cluster = notation::parse(&nodes.join("\n"));
    notation::add(&mut cluster, "sc gold d\npvc c#u 1Gi Pending class=gold sp=d");
    let mut storage = StorageBackend::default();
    storage.create_responses = vec![Response::DoneAnswerLost; 5].into();
    cluster.storage = Some(storage);
    let topology = Some(TopologyConfig { strict: false, immediate: true });
    let rules = || -> Vec<Box<dyn RuleSet + Send>> {
        vec![Box::new(Provisioner::new(Config { topology, ..Config::new("d") }))]
    };
    let mut run = Run::start(cluster, &rules, Restart::AfterEffect(3));
    run.until_idle();
    // Another node would be another segment.
    notation::add(&mut run.cluster, "node n500 label=host:h500\ncsinode n500 driver=d:host");
    run.until_stable();
    let volume = run.cluster.get(&ObjectKey::volume("pvc-u")).expect("the volume exists");
    let terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().map(Vec::len);
    assert_eq!(terms, Some(500));
    assert_eq!(run.cluster.storage.expect("a storage").conflicting_names, Vec::<String>::new());
}
