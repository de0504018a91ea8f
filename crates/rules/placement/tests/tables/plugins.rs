//! The tests beside that of claims: zones, what must not be shared, and how many volumes there can be.

use bindery_placement::{Placing, limits, restrictions, zone};

use super::world::World;
use super::{check, in_words, refusal_in_words, saw};

/// Every table, for the test that all rules are exercised.
pub fn tables() -> Vec<fn()> {
    vec![
        volumes_are_in_the_zone_of_the_node,
        unbound_claims_have_no_zone,
        disks_are_not_shared,
        claims_for_one_pod_are_not_shared,
        volumes_of_a_driver_are_counted,
        drivers_are_installed,
        tests_are_made_in_order,
    ]
}

/// What a test has against the only node of a world.
fn outcome(
    text: &str,
    test: fn(&World) -> Result<Option<bindery_placement::Obstacle>, bindery_placement::Refusal>,
) -> String {
    match test(&World::new(&text.replace(';', "\n"))) {
        Ok(None) => String::new(),
        Ok(Some(obstacle)) => {
            saw(obstacle.rule());
            obstacle.to_string()
        }
        Err(refusal) => refusal_in_words(&refusal),
    }
}

fn zones(text: &str) -> String {
    outcome(text, |world| {
        let node = world.nodes.values().next().expect("a node");
        zone::prepare(world, world.pod()).map(|zones| zones.check(node))
    })
}

fn sharing(text: &str) -> String {
    outcome(text, |world| {
        let node = world.nodes.values().next().expect("a node");
        restrictions::prepare(world, world.pod()).map(|restrictions| restrictions.check(world, node))
    })
}

fn counting(text: &str) -> String {
    outcome(text, |world| {
        let node = world.nodes.values().next().expect("a node");
        Ok(limits::prepare(world, world.pod()).check(world, node))
    })
}

const OTHER_ZONE: &str = "node(s) had no available volume zone";

#[test]
fn volumes_are_in_the_zone_of_the_node() {
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let (old_zone, old_region) = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region");
    let at = |key: &str, value: &str| format!("{key}={value}");
    let has = |key: &str, value: &str| format!("{key}:{value}");
    let cases = [
        ("no volume", String::new(), at(old_zone, "a"), ""),
        ("the node has no labels", has(old_zone, "a"), String::new(), ""),
        ("the old zone", has(old_zone, "a"), at(old_zone, "a"), ""),
        ("the old region", has(old_region, "w"), at(old_region, "w"), ""),
        ("another old region", has(old_region, "w"), at(old_region, "e"), OTHER_ZONE),
        ("another old zone", has(old_zone, "a"), at(old_zone, "b"), OTHER_ZONE),
        ("the zone", has(zone, "a"), at(zone, "a"), ""),
        ("the region", has(region, "w"), at(region, "w"), ""),
        ("another region", has(region, "w"), at(region, "e"), OTHER_ZONE),
        ("another zone", has(zone, "a"), at(zone, "b"), OTHER_ZONE),
        ("zone and region, the node has only the zone", format!("{zone}:a,{region}:a"), at(zone, "a"), OTHER_ZONE),
        ("the zone, the node has the old one", has(zone, "a"), at(old_zone, "a"), OTHER_ZONE),
        ("the old zone, the node has the new one", has(old_zone, "a"), at(zone, "a"), ""),
        ("the old zone, the node has another new one", has(old_zone, "a"), at(zone, "b"), OTHER_ZONE),
        ("several zones, the node has no labels", has(old_zone, "c__a"), String::new(), ""),
        ("several old zones, one is the node's", has(old_zone, "c__a"), at(old_zone, "a"), ""),
        ("several zones, one is the node's", has(zone, "c__a"), at(zone, "a"), ""),
        ("several zones, none is the node's", has(zone, "c__a"), at(zone, "b"), OTHER_ZONE),
        ("several zones, one is empty: they count for nothing", has(zone, "c__"), at(zone, "b"), ""),
    ];
    check(cases.map(|(name, volume, node, wanted)| {
        let claim = if volume.is_empty() { "" } else { "claims=a" };
        let text = format!(
            "pod p {claim}; claim a 1G wait bound=v; volume v 1G wait label={volume}; node n {node} other=none"
        );
        (name, zones(&text), wanted.to_owned())
    }));
}

#[test]
fn unbound_claims_have_no_zone() {
    let node = "node n failure-domain.beta.kubernetes.io/zone=a; class wait wait; class now now; class unset unset";
    let cases = [
        ("no class", "claim a 1G -", "refused: PersistentVolumeClaim had no pv name and storageClass name"),
        ("its class is not there", "claim a 1G gone", "refused: storageclass.storage.k8s.io \"gone\" not found"),
        ("its class says nothing", "claim a 1G unset", "refused: VolumeBindingMode not set for StorageClass \"unset\""),
        ("it is to be bound at once", "claim a 1G now", "refused: PersistentVolume had no name"),
        ("it waits", "claim a 1G wait", ""),
        ("its volume is not there", "claim a 1G wait bound=v", "refused: persistentvolume \"v\" not found"),
        ("it is not there", "", "refused: persistentvolumeclaim \"a\" not found"),
    ];
    check(
        cases
            .map(|(name, claim, wanted)| (name, zones(&format!("{node}; pod p claims=a; {claim}")), wanted.to_owned())),
    );
}

#[test]
fn disks_are_not_shared() {
    const IN_USE: &str = "node(s) had no available disk";
    let rbd = "rbd:a+b/bar";
    let cases = [
        ("nothing", "", "", ""),
        ("only the other has a disk", "", "disks=gce:foo", ""),
        ("the same disk", "disks=gce:foo", "disks=gce:foo", IN_USE),
        ("another disk", "disks=gce:bar", "disks=gce:foo", ""),
        ("the same disk, both read it", "disks=gce:foo:ro", "disks=gce:foo:ro", ""),
        ("the same disk, one reads it", "disks=gce:foo:ro", "disks=gce:foo", IN_USE),
        ("something that can be shared", "scratch", "", ""),
        ("the same volume at Amazon", "disks=aws:foo", "disks=aws:foo", IN_USE),
        ("the same volume at Amazon, both read it", "disks=aws:foo:ro", "disks=aws:foo:ro", IN_USE),
        ("another volume at Amazon", "disks=aws:bar", "disks=aws:foo", ""),
        ("the same image", &format!("disks={rbd}"), "disks=rbd:b+c/bar", IN_USE),
        ("the same image, both read it", &format!("disks={rbd}:ro"), "disks=rbd:b+c/bar:ro", ""),
        ("another image", "disks=rbd:c+d/foo", "disks=rbd:c+d/bar", ""),
        ("an image of other monitors", &format!("disks={rbd}"), "disks=rbd:c+d/bar", ""),
        ("the same target", "disks=iscsi:iqn.foo", "disks=iscsi:iqn.foo", IN_USE),
        ("the same target, both read it", "disks=iscsi:iqn.foo:ro", "disks=iscsi:iqn.foo:ro", ""),
        ("another target", "disks=iscsi:iqn.bar", "disks=iscsi:iqn.foo", ""),
        ("the same name of another sort", "disks=aws:foo", "disks=gce:foo", ""),
    ];
    check(cases.map(|(name, new, old, wanted)| {
        (name, sharing(&format!("node n; pod p {new}; pod q {old} on=n")), wanted.to_owned())
    }));
}

#[test]
fn claims_for_one_pod_are_not_shared() {
    const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
        another pod";
    let claims = "claim one 1G wait modes=RWOP; claim two 1G wait modes=RWOP; claim many 1G wait modes=RWX; node n";
    let cases = [
        ("nothing", "pod p claims=one", ""),
        ("it is not there", "pod p claims=gone", "refused: persistentvolumeclaim \"gone\" not found"),
        ("another pod uses it", "pod p claims=one; pod q claims=one on=n", IN_USE),
        ("another pod on another node uses it", "pod p claims=one; pod q claims=one on=m", IN_USE),
        ("another pod uses two", "pod p claims=one,two; pod q claims=one,two on=n", IN_USE),
        ("it is for many", "pod p claims=many; pod q claims=many on=n", ""),
    ];
    check(cases.map(|(name, pods, wanted)| (name, sharing(&format!("{claims}; {pods}")), wanted.to_owned())));
}

const FULL: &str = "node(s) exceed max volume count";

#[test]
fn volumes_of_a_driver_are_counted() {
    let driver = "ebs.csi.aws.com";
    let bound =
        |name: &str, source: &str| format!("claim {name} 1G ebs bound=v-{name}; volume v-{name} 1G ebs {source}; ");
    let csi = |name: &str| bound(name, &format!("csi={driver}:{name}"));
    let tree = |name: &str| bound(name, &format!("source=aws:{name}"));
    let objects = [
        csi("c0"),
        csi("c1"),
        csi("c2"),
        csi("c3"),
        tree("t0"),
        tree("t1"),
        tree("t2"),
        bound("g1", "csi=pd.csi.storage.gke.io:g1"),
        bound("g2", "csi=pd.csi.storage.gke.io:g2"),
        bound("other", ""),
        "claim pending 1G ebs; claim lost 1G ebs bound=gone; claim classless 1G gone; claim treed 1G tree; ".into(),
        "claim p-x 1G ebs owner=uid-p; claim q-x 1G ebs owner=uid-q; claim q-y 1G ebs owner=uid-q; ".into(),
        format!("class ebs wait by={driver}; class tree wait by=kubernetes.io/aws-ebs; node n; "),
    ]
    .concat();
    let max = |count: u32| format!("csi n drivers={driver}:{count},pd.csi.storage.gke.io:{count}");
    let unlimited = format!("csi n drivers={driver}");
    let running = "pod q claims=c3 on=n; pod r claims=c1,c2 on=n";
    let attached =
        |count: usize| ["attached a ebs.csi.aws.com n v-c0", "attached b ebs.csi.aws.com n v-c1"][..count].join("; ");
    let cases = [
        ("attached ones count", "claims=c0", attached(2), max(2), FULL),
        ("attached ones count, and it fits", "claims=c0", attached(1), max(2), ""),
        (
            "used ones count once when they are attached too",
            "claims=c0",
            format!("{}; pod q claims=c1 on=n", attached(2)),
            max(3),
            "",
        ),
        (
            "what is attached elsewhere does not count",
            "claims=c0",
            "attached a ebs.csi.aws.com m v-c1".into(),
            max(1),
            "",
        ),
        ("it fits", "claims=c0", running.into(), max(4), ""),
        ("it does not fit", "claims=c0", running.into(), max(2), FULL),
        ("there is no limit", "claims=c0", running.into(), unlimited.clone(), ""),
        ("nothing is known of the node", "claims=c0", running.into(), String::new(), ""),
        (
            "unbound claims count",
            "claims=c0",
            "pod q claims=pending on=n; pod r claims=c1,c2 on=n".into(),
            max(2),
            FULL,
        ),
        (
            "an unbound claim of two pods counts once",
            "claims=c0",
            "pod q claims=pending on=n; pod q2 claims=pending on=n; pod r claims=c1,c2 on=n".into(),
            max(4),
            "",
        ),
        (
            "one that lost its volume counts",
            "claims=c0",
            "pod q claims=lost on=n; pod r claims=c1,c2 on=n".into(),
            max(2),
            FULL,
        ),
        (
            "one without a class does not",
            "claims=c0",
            "pod q claims=c3 on=n; pod r claims=classless on=n".into(),
            max(2),
            "",
        ),
        (
            "others' volumes do not count",
            "claims=c0",
            "pod q claims=g1,g2 on=n; pod r claims=c1,c2 on=n".into(),
            max(2),
            FULL,
        ),
        ("others' volumes do not count, the other way", "claims=g1,g2", running.into(), max(2), ""),
        ("volumes that moved count", "claims=t0", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        (
            "nothing moved on a node of which nothing is known",
            "disks=aws:i",
            "pod q claims=t1,t2 on=n".into(),
            String::new(),
            "",
        ),
        ("unbound claims of what moved count", "claims=treed", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("what moved, without a limit", "claims=t0", "pod q claims=t1,t2 on=n".into(), unlimited.clone(), ""),
        ("what never moves does not count", "claims=other", "pod q claims=c1,c2 on=n".into(), max(2), ""),
        ("disks of pods that moved count", "disks=aws:i", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("both sorts count together", "claims=t0", "pod q claims=c1,c2 on=n".into(), max(2), FULL),
        (
            "all sorts count together",
            "disks=aws:i",
            "pod q claims=c1,c2 on=n; pod r claims=t0 on=n".into(),
            max(3),
            FULL,
        ),
        (
            "the same volume in two forms counts once",
            "disks=aws:c1",
            "pod q claims=c1,c2 on=n; pod r claims=t0 on=n".into(),
            max(3),
            "",
        ),
        (
            "a volume that is there already does not count again",
            "claims=c0,c1",
            "pod q claims=c1,c2 on=n".into(),
            max(3),
            "",
        ),
        (
            "a disk of another driver does not count",
            "disks=gce:x claims=c0",
            "pod q claims=c1,c2 on=n".into(),
            max(3),
            "",
        ),
        ("both sorts count together, the other way", "claims=c0", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("an ephemeral volume, without a limit", "own=x", String::new(), unlimited, ""),
        ("an ephemeral volume does not fit", "own=x", running.replace("pod q ", "pod s "), max(2), FULL),
        ("ephemeral volumes count", "claims=c0", "pod s claims=c3 on=n; pod q own=x,y on=n".into(), max(2), FULL),
        (
            "all volumes count",
            "claims=c0",
            "pod s claims=c3 on=n; pod q own=x on=n; pod r claims=c1,c2 on=n".into(),
            max(3),
            FULL,
        ),
        (
            "all volumes count, and it fits",
            "claims=c0",
            "pod s claims=c3 on=n; pod q own=x on=n; pod r claims=c1,c2 on=n".into(),
            max(5),
            "",
        ),
        ("a pod without volumes that count", "scratch", running.into(), max(2), ""),
        ("a volume that counts beside one that does not", "claims=c0 scratch", String::new(), max(2), ""),
    ];
    check(cases.map(|(name, pod, there, csi, wanted)| {
        (name, counting(&format!("{objects}{csi}; pod p {pod}; {there}")), wanted.to_owned())
    }));
}

#[test]
fn drivers_are_installed() {
    let objects = "claim a 1G made; class made wait by=d; node n; pod p claims=a";
    let missing = "d CSI driver is not installed on the node";
    let cases = [
        ("it is installed", "driver d installed; csi n drivers=d", ""),
        ("it is not installed", "driver d installed; csi n drivers=e", missing),
        ("nothing is known of the node", "driver d installed", missing),
        ("it does not demand it", "driver d; csi n drivers=e", ""),
        ("it is no driver", "csi n drivers=e", ""),
    ];
    check(cases.map(|(name, drivers, wanted)| (name, counting(&format!("{objects}; {drivers}")), wanted.to_owned())));
}

#[test]
fn tests_are_made_in_order() {
    let all = |text: &str| {
        let world = World::new(&text.replace(';', "\n"));
        let node = world.nodes.values().next().expect("a node").clone();
        match Placing::prepare(&world, world.pod()) {
            Ok(placing) => in_words(&placing.find(&node).expect("no fault")),
            Err(refusal) => refusal_in_words(&refusal),
        }
    };
    let zone = "topology.kubernetes.io/zone";
    let objects = format!("class wait wait; class made wait by=d; node n {zone}=a");
    let other = format!("claim a 1G wait bound=v; volume v 1G wait for=a csi=d:v label={zone}:b");
    let cases = [
        (
            "a claim that is not there is told of first",
            "pod p claims=a",
            "refused: persistentvolumeclaim \"a\" not found",
        ),
        (
            "so is that of an ephemeral volume",
            "pod p own=x",
            "refused: waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-x\"",
        ),
        (
            "a disk before the number of volumes",
            &format!("pod p claims=a disks=gce:x; pod q disks=gce:x on=n; driver d installed; {other}"),
            "!node(s) had no available disk",
        ),
        (
            "the number of volumes before claims",
            "pod p claims=a,b; claim a 1G made; claim b 1G wait; driver d installed",
            "!d CSI driver is not installed on the node",
        ),
        (
            "claims before zones",
            &format!("pod p claims=a,b; claim b 1G wait; {other}"),
            "!node(s) didn't find available persistent volumes to bind",
        ),
        ("zones", &format!("pod p claims=a; {other}"), "!node(s) had no available volume zone"),
        (
            "what was found stays found",
            &format!("pod p claims=a,b; claim b 1G wait; volume w 1G wait; {other}"),
            "b=w !node(s) had no available volume zone",
        ),
    ];
    check(cases.map(|(name, text, wanted)| (name, all(&format!("{objects}; {text}")), wanted.to_owned())));
}
