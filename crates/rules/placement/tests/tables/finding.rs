//! What a node has for a pod's claims: without and with making volumes, with CSI migration, by capacity.

use bindery_placement::prepare;

use super::world::World;
use super::{check, in_words, refusal_in_words, saw};

/// Every table, for the test that all rules are exercised.
pub fn tables() -> Vec<fn()> {
    vec![
        volumes_are_found,
        volumes_can_be_made,
        a_driver_that_tells_capacity_must_have_room,
        volumes_that_moved_to_csi_are_where_their_labels_say,
        room_is_looked_for,
        a_pod_is_refused_for_its_claims,
        what_cannot_be_said,
    ]
}

const CLASSES: &str = "
    class wait wait
    class now now
    class made wait by=test-provisioner
    class elsewhere wait by=test-provisioner in=nodeKey:other
    node node1 nodeKey=node1";

/// What comes of asking the only node of a world.
pub fn outcome(text: &str) -> String {
    let world = World::new(text);
    let prepared = match prepare(&world, world.pod()) {
        Ok(prepared) => prepared,
        Err(refusal) => return refusal_in_words(&refusal),
    };
    let node = world.nodes.values().next().expect("a node");
    match prepared.find(node) {
        Ok(found) => in_words(&found),
        Err(fault) => {
            saw(fault.rule());
            format!("fault: {fault}")
        }
    }
}

fn run<'c>(more: &str, cases: impl IntoIterator<Item = (&'c str, &'c str, &'c str)>) {
    check(cases.into_iter().map(|(name, world, wanted)| {
        (name, outcome(&format!("{CLASSES}\n{more}\n{}", world.replace(';', "\n"))), wanted.to_owned())
    }));
}

const NOTHING: &str = "!node(s) didn't find available persistent volumes to bind";
const UNREACHABLE: &str = "!node(s) didn't match PersistentVolume's node affinity";
const MISSING: &str = "!node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const NO_ROOM: &str = "!node(s) did not have enough free storage";
const UNBOUND: &str = "refused: pod has unbound immediate PersistentVolumeClaims";

#[test]
fn volumes_are_found() {
    let partial = format!("unbound=node1a {NOTHING}");
    let cases = [
        ("no volumes", "pod p", ""),
        ("no claims", "pod p scratch", ""),
        ("a claim that is not there", "pod p claims=bound", "refused: persistentvolumeclaim \"bound\" not found"),
        ("a bound claim", "pod p claims=bound; claim bound 1G wait bound=v; volume v 1G wait at=node1 for=bound", ""),
        ("a bound claim, its volume gone", "pod p claims=bound; claim bound 1G wait bound=v", MISSING),
        (
            "a claim that names its volume",
            "pod p claims=named; claim named 1G wait named=v; volume v 5G wait at=node1 for=named",
            UNBOUND,
        ),
        (
            "the volume is on the node",
            "pod p claims=unbound; claim unbound 1G wait
             volume node2 1G wait at=node2; volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            "unbound=node1a",
        ),
        (
            "the volume is on another node",
            "pod p claims=unbound; claim unbound 1G wait; volume node2 1G wait at=node2",
            NOTHING,
        ),
        (
            "two claims",
            "pod p claims=unbound,larger; claim unbound 1G wait; claim larger 5G wait
             volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            "unbound=node1a larger=node1b",
        ),
        (
            "two claims, who asks for least chooses first",
            "pod p claims=larger,unbound; claim unbound 1G wait; claim larger 5G wait
             volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            "unbound=node1a larger=node1b",
        ),
        (
            "two claims, one volume",
            "pod p claims=unbound,larger; claim unbound 1G wait; claim larger 5G wait; volume node1a 5G wait at=node1",
            &partial,
        ),
        (
            "one bound, one not",
            "pod p claims=unbound,bound; claim unbound 1G wait; claim bound 1G wait bound=v
             volume v 1G wait at=node1 for=bound; volume node1a 5G wait at=node1",
            "unbound=node1a",
        ),
        (
            "one bound, one without a match",
            "pod p claims=unbound,bound; claim unbound 1G wait; claim bound 1G wait bound=v
             volume v 1G wait at=node1 for=bound; volume node2 1G wait at=node2",
            NOTHING,
        ),
        (
            "one named, one unbound",
            "pod p claims=unbound,named; claim unbound 1G wait; claim named 1G wait named=node1a
             volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            UNBOUND,
        ),
        ("bound at once", "pod p claims=data; claim data 1G now bound=v; volume v 1G now at=node1 for=data", ""),
        (
            "bound at once, out of reach",
            "pod p claims=data; claim data 1G now bound=v; volume v 1G now at=node2 for=data",
            UNREACHABLE,
        ),
        ("unbound, to be bound at once", "pod p claims=data; claim data 1G now", UNBOUND),
        (
            "unbound, to be bound at once, and one bound",
            "pod p claims=data,bound; claim data 1G now; claim bound 1G wait bound=v
             volume v 1G wait at=node1 for=bound",
            UNBOUND,
        ),
        (
            "unbound, to be bound at once, and one delayed",
            "pod p claims=data,unbound; claim data 1G now; claim unbound 1G wait",
            UNBOUND,
        ),
        (
            "an ephemeral volume without its claim",
            "pod p own=scratch",
            "refused: waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-scratch\"",
        ),
        (
            "an ephemeral volume with its claim",
            "pod p own=scratch; claim p-scratch 1G now bound=v owner=uid-p; volume v 1G now at=node1 for=p-scratch",
            "",
        ),
        (
            "an ephemeral volume with another's claim",
            "pod p own=scratch; claim p-scratch 1G now bound=v; volume v 1G now at=node1 for=p-scratch",
            "refused: PVC testns/p-scratch was not created for pod testns/p (pod is not owner)",
        ),
    ];
    for driver in ["", "driver test-provisioner tells", "driver test-provisioner"] {
        run(driver, cases);
    }
}

/// Claims for which volumes are made, and what comes of it where there is room, or nobody asks whether there is.
const MADE: [(&str, &str, &str); 5] = [
    ("one is made", "pod p claims=new; claim new 1Gi made", "+new"),
    (
        "one is found, one is made",
        "pod p claims=unbound,new; claim unbound 1G wait; claim new 1Gi made; volume node1a 5G wait at=node1",
        "unbound=node1a +new",
    ),
    (
        "one is bound, one is made",
        "pod p claims=bound,new; claim bound 1G wait bound=v; claim new 1Gi made; volume v 1G wait at=node1 for=bound",
        "+new",
    ),
    (
        "one is bound, one has its node",
        "pod p claims=bound,new; claim bound 1G wait bound=v; claim new 1Gi made node=node1
         volume v 1G wait at=node1 for=bound",
        "+new",
    ),
    (
        "one was bound at once, one is made",
        "pod p claims=data,new; claim data 1G now bound=v; claim new 1Gi made; volume v 1G now at=node1 for=data",
        "+new",
    ),
];

#[test]
fn volumes_can_be_made() {
    let others = [
        ("one to be bound at once", "pod p claims=data; claim data 1G now", UNBOUND),
        ("nobody makes them", "pod p claims=data; claim data 1Gi wait", NOTHING),
        ("they are made elsewhere", "pod p claims=data; claim data 1Gi elsewhere", NOTHING),
        ("its node is another", "pod p claims=data; claim data 1Gi made node=node2", NOTHING),
        ("its node is nowhere", "pod p claims=data; claim data 1Gi made node=", NOTHING),
        (
            "it has its node: it is not given a volume there",
            "pod p claims=data; claim data 1Gi made node=node1; volume v 1Gi made at=node1",
            "+data",
        ),
        ("what has its node is made first", "pod p claims=a,b; claim a 1Gi made; claim b 2Gi made node=node1", "+b +a"),
        (
            "all or none is made",
            "pod p claims=a,b,c; claim a 1Gi made; claim b 2Gi wait; claim c 3Gi made; volume v 3Gi made at=node1",
            "a=v !node(s) didn't find available persistent volumes to bind",
        ),
        ("all or none is made, in whatever order", "pod p claims=a,b; claim a 1Gi made; claim b 2Gi wait", NOTHING),
    ];
    for driver in ["", "driver test-provisioner"] {
        run(driver, MADE);
        run(driver, others);
    }
}

#[test]
fn a_driver_that_tells_capacity_must_have_room() {
    let cases = MADE.map(|(name, world, wanted)| {
        let found = wanted.strip_suffix("+new").unwrap_or_default();
        (name, world, format!("{found}{NO_ROOM}"))
    });
    run("driver test-provisioner tells", cases.iter().map(|(name, world, wanted)| (*name, *world, wanted.as_str())));
}

#[test]
fn volumes_that_moved_to_csi_are_where_their_labels_say() {
    const BOUND: &str = "pod p claims=data; claim data 1G wait bound=v
        volume v 1G wait for=data source=gce:disk label=failure-domain.beta.kubernetes.io/zone:us-east-1";
    let csi = "csi node1 migrated=kubernetes.io/gce-pd";
    let cases = [
        ("it moved, and is in the node's zone", "us-east-1", csi, ""),
        ("it did not move on the node", "us-east-1", "csi node1", ""),
        ("nothing is known of drivers on the node", "us-east-1", "", ""),
        ("it moved, and is in another zone", "us-east-2", csi, UNREACHABLE),
        ("it did not move, and the label says nothing then", "us-east-2", "csi node1", ""),
    ];
    check(cases.map(|(name, zone, csi, wanted)| {
        let world =
            format!("class wait wait\nnode node1 topology.gke.io/zone={zone}\n{csi}\n{}", BOUND.replace(';', "\n"));
        (name, outcome(&world), wanted.to_owned())
    }));
}

#[test]
fn what_volumes_say_of_nodes_is_translated() {
    let (zone, old_zone) = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone");
    let old_region = "failure-domain.beta.kubernetes.io/region";
    let gce = "topology.gke.io/zone=a";
    let cases = [
        ("the zone", "gce:d", format!("in={zone}:a"), gce, ""),
        ("another zone", "gce:d", format!("in={zone}:b"), gce, UNREACHABLE),
        ("the old zone", "gce:d", format!("in={old_zone}:a"), gce, ""),
        (
            "the node says nothing to the driver",
            "gce:d",
            format!("in={zone}:a"),
            "topology.kubernetes.io/zone=a",
            UNREACHABLE,
        ),
        ("several zones of a label", "gce:d", format!("label={zone}:x-y-b__x-y-a"), "topology.gke.io/zone=x-y-a", ""),
        (
            "what it says of nodes comes before its label",
            "gce:d",
            format!("in={zone}:b label={zone}:a"),
            gce,
            UNREACHABLE,
        ),
        (
            "a label beside what it says of others",
            "gce:d",
            format!("in=rack:1 label={zone}:b"),
            "rack=1 topology.gke.io/zone=a",
            UNREACHABLE,
        ),
        ("one of two ways", "gce:d", format!("in={zone}:b,rack:1"), "rack=1", ""),
        (
            "an old region is a new one",
            "gce:d",
            format!("in={old_region}:w label={old_zone}:a"),
            "topology.gke.io/zone=a topology.kubernetes.io/region=w",
            "",
        ),
        (
            "an old region stays beside a new zone",
            "gce:d",
            format!("in={old_region}:w label={zone}:a"),
            "topology.gke.io/zone=a topology.kubernetes.io/region=w",
            UNREACHABLE,
        ),
        ("Amazon's", "aws:vol-1", format!("in={zone}:a"), "topology.ebs.csi.aws.com/zone=a", ""),
        (
            "Amazon's, by its address",
            "aws:aws://a/vol-1",
            format!("in={zone}:a"),
            "topology.ebs.csi.aws.com/zone=a",
            "",
        ),
        ("OpenStack's", "cinder:1", format!("in={zone}:a"), "topology.cinder.csi.openstack.org/zone=a", ""),
        ("Azure's are not translated", "azure:1", format!("in={zone}:a"), "topology.kubernetes.io/zone=a", ""),
        (
            "zones of several regions",
            "gce:d",
            format!("label={zone}:x-y-a__x-z-a"),
            gce,
            "fault: could not translate pv: failed to get region from zones: \"x-y-a__x-z-a\" are not of one region",
        ),
        (
            "an address without a volume",
            "aws:aws://a/disk",
            String::new(),
            gce,
            "fault: could not translate pv: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://a/disk)",
        ),
    ];
    let migrated =
        ["gce-pd", "aws-ebs", "azure-disk", "cinder"].map(|plugin| format!("kubernetes.io/{plugin}")).join(",");
    check(cases.map(|(name, source, volume, node, wanted)| {
        let volume = format!("volume v 1G wait for=a source={source} {volume}");
        let text = format!("class wait wait\nnode n {node}\ncsi n migrated={migrated}\npod p claims=a\nclaim a 1G wait bound=v\n{volume}");
        (name, outcome(&text), wanted.to_owned())
    }));
}

#[test]
fn room_is_looked_for() {
    let node = "class made wait by=test-provisioner\nnode node1 nodeKey=node1\npod p claims=new\nclaim new 1Gi made";
    let cases = [
        ("on the network", "room net made 1Gi", "+new@net"),
        ("on the node", "room net made 1Gi in=nodeKey:node1", "+new@net"),
        (
            "in several places, the first by name",
            "room a made 1Gi in=nodeKey:node2; room c made 1Gi; room b made 1Gi in=nodeKey:node1",
            "+new@b",
        ),
        ("nowhere", "", NO_ROOM),
        ("on another node", "room net made 1Gi in=nodeKey:node2", NO_ROOM),
        ("for another class", "room net wait 1Gi in=nodeKey:node1", NO_ROOM),
        ("too little", "room net made 1Mi in=nodeKey:node1", NO_ROOM),
        ("too little for one volume", "room net made 1Gi max=1Mi in=nodeKey:node1", NO_ROOM),
        ("none", "room net made 0Mi in=nodeKey:node1", NO_ROOM),
        ("none for one volume", "room net made - max=0Mi in=nodeKey:node1", NO_ROOM),
        ("nothing is said of it", "room net made - in=nodeKey:node1", NO_ROOM),
        ("for no nodes", "room net made 1Gi lost", NO_ROOM),
        ("enough for one volume, whatever there is in all", "room net made 1Mi max=1Gi", "+new@net"),
    ];
    for (driver, is_asked) in [("driver test-provisioner tells", true), ("driver test-provisioner", false)] {
        check(cases.map(|(name, room, wanted)| {
            let wanted = if is_asked { wanted } else { "+new" };
            (name, outcome(&format!("{node}\n{driver}\n{}", room.replace(';', "\n"))), wanted.to_owned())
        }));
    }
    let unsized_claim = "claim new - made no-request\nclass made wait by=test-provisioner\nnode n\npod p claims=new";
    check([(
        "who asks for nothing gets it",
        outcome(&format!("{unsized_claim}\ndriver test-provisioner tells")),
        "+new".into(),
    )]);
}

#[test]
fn a_pod_is_refused_for_its_claims() {
    run(
        "",
        [
            (
                "some claims are not there",
                "pod p claims=a,b; claim a 1G wait bound=v",
                "refused: persistentvolumeclaim \"b\" not found",
            ),
            (
                "the claim is lost",
                "pod p claims=a; claim a 1G wait bound=v lost",
                "refused: persistentvolumeclaim \"a\" bound to non-existent persistentvolume \"v\"",
            ),
            (
                "the claim is being deleted",
                "pod p claims=a; claim a 1G wait bound=v deleting; volume v 1G wait for=a",
                "refused: persistentvolumeclaim \"a\" is being deleted",
            ),
            (
                "the claim cannot be read",
                "pod p claims=a; claim a much wait",
                "refused: persistentvolumeclaim \"a\" cannot be read: spec.resources.requests.storage: \"much\": it is not a number",
            ),
            (
                "one is out of reach, and for another there is nothing: both are told, in this order",
                "pod p claims=a,b; claim a 1G wait bound=v; claim b 1G wait; volume v 1G wait at=node2 for=a",
                "!node(s) didn't match PersistentVolume's node affinity !node(s) didn't find available persistent volumes to bind",
            ),
            (
                "one is missing, and for another there is no room: in this order",
                "pod p claims=a,b; claim a 1G wait bound=v; claim b 1G made; driver test-provisioner tells",
                "!node(s) did not have enough free storage !node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ),
            (
                "the first bound volume that will not do ends it",
                "pod p claims=a,b; claim a 1G wait bound=gone; claim b 1G wait bound=v; volume v 1G wait at=node2 for=b",
                MISSING,
            ),
        ],
    );
    // Whether a claim is delayed: upstream's five cases.
    let cases = [
        ("no class", "claim a 1G -", UNBOUND),
        ("the class is not there", "claim a 1G nowhere", UNBOUND),
        (
            "the class says nothing",
            "claim a 1G unset; class unset unset",
            "refused: VolumeBindingMode not set for StorageClass \"unset\"",
        ),
        ("the class binds at once", "claim a 1G now", UNBOUND),
        ("the class waits", "claim a 1G wait", NOTHING),
        ("the class waits, by the old annotation", "claim a 1G wait beta", NOTHING),
    ];
    run("pod p claims=a", cases);
}

#[test]
fn what_cannot_be_said() {
    run(
        "pod p claims=a",
        [
            (
                "a senseless selector",
                "claim a 1G wait selector=disk:",
                "fault: error creating internal label selector for claim: testns/a: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                "a volume that no driver can take over",
                "claim a 1G wait bound=v; volume v 1G wait for=a source=blob:d; csi node1 migrated=kubernetes.io/azure-disk",
                "fault: could not translate pv: only managed disks are supported in csi migration",
            ),
        ],
    );
}
