//! Finding volumes for a pod's claims on a node: existing and new ones, with CSI migration and
//! capacity.

use bindery_placement::prepare::prepare;

use super::world::World;
use super::{check, or_rejected, rejection_text, volumes_text};

const CLASSES: &str = "
    class wait wait
    class now now
    class made wait by=test-provisioner
    class elsewhere wait by=test-provisioner in=nodeKey:other
    node node1 nodeKey=node1";

/// The result for the only node of a cluster.
pub fn outcome(text: &str) -> String {
    let world = World::new(text);
    let prepared = match or_rejected(|rejected| prepare(&world.cache, world.pod(), rejected)) {
        Ok(prepared) => prepared,
        Err(rejection) => return rejection_text(&rejection),
    };
    match prepared.find(world.node()) {
        Ok(found) => volumes_text(&found),
        Err(error) => format!("error: {error}"),
    }
}

fn run<'c>(more: &str, cases: impl IntoIterator<Item = (&'c str, &'c str, &'c str)>) {
    check(cases.into_iter().map(|(name, world, wanted)| {
        (name, outcome(&format!("{CLASSES}\n{more}\n{}", world.replace(';', "\n"))), wanted.to_owned())
    }));
}

const NO_VOLUME: &str = "!node(s) didn't find available persistent volumes to bind";
const UNREACHABLE: &str = "!node(s) didn't match PersistentVolume's node affinity";
const MISSING: &str = "!node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const NO_CAPACITY: &str = "!node(s) did not have enough free storage";
const UNBOUND: &str = "rejected: pod has unbound immediate PersistentVolumeClaims";

#[test]
fn volumes_are_found() {
    let partial = format!("unbound=node1a {NO_VOLUME}");
    let cases = [
        ("no volumes", "pod p", ""),
        ("no claims", "pod p scratch", ""),
        ("missing claim", "pod p claims=bound", "rejected: persistentvolumeclaim \"bound\" not found"),
        ("a bound claim", "pod p claims=bound; claim bound 1G wait bound=v; volume v 1G wait at=node1 for=bound", ""),
        ("bound claim, missing volume", "pod p claims=bound; claim bound 1G wait bound=v", MISSING),
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
            NO_VOLUME,
        ),
        (
            "two claims",
            "pod p claims=unbound,larger; claim unbound 1G wait; claim larger 5G wait
             volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            "unbound=node1a larger=node1b",
        ),
        (
            "two claims, the smaller request chooses first",
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
            NO_VOLUME,
        ),
        (
            "one named, one unbound",
            "pod p claims=unbound,named; claim unbound 1G wait; claim named 1G wait named=node1a
             volume node1a 5G wait at=node1; volume node1b 10G wait at=node1",
            UNBOUND,
        ),
        (
            "immediate binding, bound",
            "pod p claims=data; claim data 1G now bound=v; volume v 1G now at=node1 for=data",
            "",
        ),
        (
            "immediate binding, unreachable volume",
            "pod p claims=data; claim data 1G now bound=v; volume v 1G now at=node2 for=data",
            UNREACHABLE,
        ),
        ("immediate binding, unbound", "pod p claims=data; claim data 1G now", UNBOUND),
        (
            "immediate binding, unbound, and a bound claim",
            "pod p claims=data,bound; claim data 1G now; claim bound 1G wait bound=v
             volume v 1G wait at=node1 for=bound",
            UNBOUND,
        ),
        (
            "immediate binding, unbound, and a delayed claim",
            "pod p claims=data,unbound; claim data 1G now; claim unbound 1G wait",
            UNBOUND,
        ),
        (
            "an ephemeral volume without its claim",
            "pod p own=scratch",
            "rejected: waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-scratch\"",
        ),
        (
            "an ephemeral volume with its claim",
            "pod p own=scratch; claim p-scratch 1G now bound=v owner=uid-p; volume v 1G now at=node1 for=p-scratch",
            "",
        ),
        (
            "an ephemeral volume, claim not owned by the pod",
            "pod p own=scratch; claim p-scratch 1G now bound=v; volume v 1G now at=node1 for=p-scratch",
            "rejected: PVC testns/p-scratch was not created for pod testns/p (pod is not owner)",
        ),
    ];
    for driver in ["", "driver test-provisioner capacity", "driver test-provisioner"] {
        run(driver, cases);
    }
}

/// Claims for which volumes are provisioned, if capacity does not matter or is sufficient.
const PROVISIONED: [(&str, &str, &str); 5] = [
    ("one new volume", "pod p claims=new; claim new 1Gi made", "+new"),
    (
        "one existing, one new volume",
        "pod p claims=unbound,new; claim unbound 1G wait; claim new 1Gi made; volume node1a 5G wait at=node1",
        "unbound=node1a +new",
    ),
    (
        "one bound, one new volume",
        "pod p claims=bound,new; claim bound 1G wait bound=v; claim new 1Gi made; volume v 1G wait at=node1 for=bound",
        "+new",
    ),
    (
        "one bound, one with a selected node",
        "pod p claims=bound,new; claim bound 1G wait bound=v; claim new 1Gi made node=node1
         volume v 1G wait at=node1 for=bound",
        "+new",
    ),
    (
        "one immediate and bound, one new volume",
        "pod p claims=data,new; claim data 1G now bound=v; claim new 1Gi made; volume v 1G now at=node1 for=data",
        "+new",
    ),
];

#[test]
fn volumes_are_provisioned() {
    let others = [
        ("immediate binding, unbound", "pod p claims=data; claim data 1G now", UNBOUND),
        ("class without provisioner", "pod p claims=data; claim data 1Gi wait", NO_VOLUME),
        ("allowed topologies exclude the node", "pod p claims=data; claim data 1Gi elsewhere", NO_VOLUME),
        ("another node is selected", "pod p claims=data; claim data 1Gi made node=node2", NO_VOLUME),
        ("an empty node is selected", "pod p claims=data; claim data 1Gi made node=", NO_VOLUME),
        (
            "the node is selected: an existing volume is not used",
            "pod p claims=data; claim data 1Gi made node=node1; volume v 1Gi made at=node1",
            "+data",
        ),
        (
            "claims with a selected node come first",
            "pod p claims=a,b; claim a 1Gi made; claim b 2Gi made node=node1",
            "+b +a",
        ),
        (
            "all volumes are provisioned, or none",
            "pod p claims=a,b,c; claim a 1Gi made; claim b 2Gi wait; claim c 3Gi made; volume v 3Gi made at=node1",
            "a=v !node(s) didn't find available persistent volumes to bind",
        ),
        (
            "all volumes are provisioned, or none, in any order",
            "pod p claims=a,b; claim a 1Gi made; claim b 2Gi wait",
            NO_VOLUME,
        ),
    ];
    for driver in ["", "driver test-provisioner"] {
        run(driver, PROVISIONED);
        run(driver, others);
    }
}

#[test]
fn driver_that_publishes_capacity_needs_enough() {
    let cases = PROVISIONED.map(|(name, world, wanted)| {
        let found = wanted.strip_suffix("+new").unwrap_or_default();
        (name, world, format!("{found}{NO_CAPACITY}"))
    });
    run("driver test-provisioner capacity", cases.iter().map(|(name, world, wanted)| (*name, *world, wanted.as_str())));
}

#[test]
fn zone_labels_apply_to_volumes_migrated_to_csi() {
    const BOUND: &str = "pod p claims=data; claim data 1G wait bound=v
        volume v 1G wait for=data source=gce:disk label=failure-domain.beta.kubernetes.io/zone:us-east-1";
    let csi = "csi node1 migrated=kubernetes.io/gce-pd";
    let cases = [
        ("migrated, same zone", "us-east-1", csi, ""),
        ("not migrated on the node", "us-east-1", "csi node1", ""),
        ("no CSINode", "us-east-1", "", ""),
        ("migrated, another zone", "us-east-2", csi, UNREACHABLE),
        ("not migrated, the label does not apply", "us-east-2", "csi node1", ""),
    ];
    check(cases.map(|(name, zone, csi, wanted)| {
        let world =
            format!("class wait wait\nnode node1 topology.gke.io/zone={zone}\n{csi}\n{}", BOUND.replace(';', "\n"));
        (name, outcome(&world), wanted.to_owned())
    }));
}

#[test]
fn node_affinity_is_translated_to_csi() {
    let (zone, old_zone) = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone");
    let old_region = "failure-domain.beta.kubernetes.io/region";
    let gce = "topology.gke.io/zone=a";
    let cases = [
        ("the zone", "gce:d", format!("in={zone}:a"), gce, ""),
        ("another zone", "gce:d", format!("in={zone}:b"), gce, UNREACHABLE),
        ("the old zone", "gce:d", format!("in={old_zone}:a"), gce, ""),
        (
            "the node does not have the label of the driver",
            "gce:d",
            format!("in={zone}:a"),
            "topology.kubernetes.io/zone=a",
            UNREACHABLE,
        ),
        ("several zones of a label", "gce:d", format!("label={zone}:x-y-b__x-y-a"), "topology.gke.io/zone=x-y-a", ""),
        (
            "node affinity takes precedence over the label",
            "gce:d",
            format!("in={zone}:b label={zone}:a"),
            gce,
            UNREACHABLE,
        ),
        (
            "a label in addition to other affinity",
            "gce:d",
            format!("in=rack:1 label={zone}:b"),
            "rack=1 topology.gke.io/zone=a",
            UNREACHABLE,
        ),
        ("one of two terms", "gce:d", format!("in={zone}:b,rack:1"), "rack=1", ""),
        (
            "a beta region is translated with a beta zone",
            "gce:d",
            format!("in={old_region}:w label={old_zone}:a"),
            "topology.gke.io/zone=a topology.kubernetes.io/region=w",
            "",
        ),
        (
            "a beta region is not translated with a stable zone",
            "gce:d",
            format!("in={old_region}:w label={zone}:a"),
            "topology.gke.io/zone=a topology.kubernetes.io/region=w",
            UNREACHABLE,
        ),
        ("EBS", "aws:vol-1", format!("in={zone}:a"), "topology.ebs.csi.aws.com/zone=a", ""),
        ("EBS, by URL", "aws:aws://a/vol-1", format!("in={zone}:a"), "topology.ebs.csi.aws.com/zone=a", ""),
        ("Cinder", "cinder:1", format!("in={zone}:a"), "topology.cinder.csi.openstack.org/zone=a", ""),
        ("Azure disks are not translated", "azure:1", format!("in={zone}:a"), "topology.kubernetes.io/zone=a", ""),
        (
            "zones of several regions",
            "gce:d",
            format!("label={zone}:x-y-a__x-z-a"),
            gce,
            "error: could not translate pv: failed to get region from zones: \"x-y-a__x-z-a\" are not of one region",
        ),
        (
            "a URL without a volume ID",
            "aws:aws://a/disk",
            String::new(),
            gce,
            "error: could not translate pv: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://a/disk)",
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
fn capacity_is_found() {
    let node = "class made wait by=test-provisioner\nnode node1 nodeKey=node1\npod p claims=new\nclaim new 1Gi made";
    let cases = [
        ("for all nodes", "capacity net made 1Gi", "+new@net"),
        ("for the node", "capacity net made 1Gi in=nodeKey:node1", "+new@net"),
        (
            "several, the first by name",
            "capacity a made 1Gi in=nodeKey:node2; capacity c made 1Gi; capacity b made 1Gi in=nodeKey:node1",
            "+new@b",
        ),
        ("none published", "", NO_CAPACITY),
        ("for another node", "capacity net made 1Gi in=nodeKey:node2", NO_CAPACITY),
        ("for another class", "capacity net wait 1Gi in=nodeKey:node1", NO_CAPACITY),
        ("too small", "capacity net made 1Mi in=nodeKey:node1", NO_CAPACITY),
        ("too small for one volume", "capacity net made 1Gi max=1Mi in=nodeKey:node1", NO_CAPACITY),
        ("zero", "capacity net made 0Mi in=nodeKey:node1", NO_CAPACITY),
        ("zero for one volume", "capacity net made - max=0Mi in=nodeKey:node1", NO_CAPACITY),
        ("unspecified", "capacity net made - in=nodeKey:node1", NO_CAPACITY),
        ("for no nodes", "capacity net made 1Gi lost", NO_CAPACITY),
        ("enough for one volume, regardless of the total", "capacity net made 1Mi max=1Gi", "+new@net"),
    ];
    for (driver, is_used) in [("driver test-provisioner capacity", true), ("driver test-provisioner", false)] {
        check(cases.map(|(name, capacity, wanted)| {
            let wanted = if is_used { wanted } else { "+new" };
            (name, outcome(&format!("{node}\n{driver}\n{}", capacity.replace(';', "\n"))), wanted.to_owned())
        }));
    }
    let unsized_claim = "claim new - made no-request\nclass made wait by=test-provisioner\nnode n\npod p claims=new";
    check([(
        "a claim without a request needs no capacity",
        outcome(&format!("{unsized_claim}\ndriver test-provisioner tells")),
        "+new".into(),
    )]);
}

#[test]
fn pod_is_rejected_because_of_its_claims() {
    run(
        "",
        [
            (
                "one claim is missing",
                "pod p claims=a,b; claim a 1G wait bound=v",
                "rejected: persistentvolumeclaim \"b\" not found",
            ),
            (
                "the claim is lost",
                "pod p claims=a; claim a 1G wait bound=v lost",
                "rejected: persistentvolumeclaim \"a\" bound to non-existent persistentvolume \"v\"",
            ),
            (
                "the claim is being deleted",
                "pod p claims=a; claim a 1G wait bound=v deleting; volume v 1G wait for=a",
                "rejected: persistentvolumeclaim \"a\" is being deleted",
            ),
            (
                "the claim cannot be read",
                "pod p claims=a; claim a much wait",
                "rejected: persistentvolumeclaim \"a\" cannot be read: spec.resources.requests.storage: \"much\": it is not a number",
            ),
            (
                "one volume is unreachable, and none matches another claim: both are reported, in this order",
                "pod p claims=a,b; claim a 1G wait bound=v; claim b 1G wait; volume v 1G wait at=node2 for=a",
                "!node(s) didn't match PersistentVolume's node affinity !node(s) didn't find available persistent volumes to bind",
            ),
            (
                "one volume is missing, and capacity for another: in this order",
                "pod p claims=a,b; claim a 1G wait bound=v; claim b 1G made; driver test-provisioner capacity",
                "!node(s) did not have enough free storage !node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ),
            (
                "only the first unusable bound volume is reported",
                "pod p claims=a,b; claim a 1G wait bound=gone; claim b 1G wait bound=v; volume v 1G wait at=node2 for=b",
                MISSING,
            ),
        ],
    );
    // Whether binding is delayed: upstream's five cases.
    let cases = [
        ("no class", "claim a 1G -", UNBOUND),
        ("missing class", "claim a 1G nowhere", UNBOUND),
        (
            "class without binding mode",
            "claim a 1G unset; class unset unset",
            "rejected: VolumeBindingMode not set for StorageClass \"unset\"",
        ),
        ("immediate binding", "claim a 1G now", UNBOUND),
        ("delayed binding", "claim a 1G wait", NO_VOLUME),
        ("delayed binding, class by annotation", "claim a 1G wait beta", NO_VOLUME),
    ];
    run("pod p claims=a", cases);
}

#[test]
fn invalid_objects_are_errors() {
    run(
        "pod p claims=a",
        [
            (
                "invalid selector",
                "claim a 1G wait selector=disk:",
                "error: error creating internal label selector for claim: testns/a: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                "a volume that cannot be migrated",
                "claim a 1G wait bound=v; volume v 1G wait for=a source=blob:d; csi node1 migrated=kubernetes.io/azure-disk",
                "error: could not translate pv: only managed disks are supported in csi migration",
            ),
        ],
    );
}
