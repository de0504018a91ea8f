//! VolumeZone, VolumeRestrictions and NodeVolumeLimits.

use bindery_placement::{NodeRejection, PodRejection, VolumePlacement, limits, restrictions, zone};

use super::world::World;
use super::{check, or_rejected, rejection_text, volumes_text};

/// The result of a test for the only node of a cluster.
fn outcome(text: &str, test: fn(&World) -> Result<Option<NodeRejection>, PodRejection>) -> String {
    match test(&World::new(&text.replace(';', "\n"))) {
        Ok(None) => String::new(),
        Ok(Some(rejection)) => rejection.to_string(),
        Err(rejection) => rejection_text(&rejection),
    }
}

fn zones(text: &str) -> String {
    outcome(text, |world| {
        let zones = or_rejected(|rejected| zone::prepare(&world.cache, world.pod(), rejected))?;
        Ok(zones.check(world.node()))
    })
}

fn sharing(text: &str) -> String {
    outcome(text, |world| {
        let restrictions = or_rejected(|rejected| restrictions::prepare(&world.cache, world.pod(), rejected))?;
        Ok(restrictions.check(&world.cache, world.node()))
    })
}

fn counting(text: &str) -> String {
    outcome(text, |world| Ok(limits::prepare(&world.cache, world.pod()).check(&world.cache, world.node())))
}

const WRONG_ZONE: &str = "node(s) had no available volume zone";

#[test]
fn volumes_must_be_in_the_zone_of_the_node() {
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let (old_zone, old_region) = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region");
    let at = |key: &str, value: &str| format!("{key}={value}");
    let has = |key: &str, value: &str| format!("{key}:{value}");
    let cases = [
        ("no volume", String::new(), at(old_zone, "a"), ""),
        ("the node has no labels", has(old_zone, "a"), String::new(), ""),
        ("the old zone", has(old_zone, "a"), at(old_zone, "a"), ""),
        ("the old region", has(old_region, "w"), at(old_region, "w"), ""),
        ("another old region", has(old_region, "w"), at(old_region, "e"), WRONG_ZONE),
        ("another old zone", has(old_zone, "a"), at(old_zone, "b"), WRONG_ZONE),
        ("the zone", has(zone, "a"), at(zone, "a"), ""),
        ("the region", has(region, "w"), at(region, "w"), ""),
        ("another region", has(region, "w"), at(region, "e"), WRONG_ZONE),
        ("another zone", has(zone, "a"), at(zone, "b"), WRONG_ZONE),
        ("zone and region, the node has only the zone", format!("{zone}:a,{region}:a"), at(zone, "a"), WRONG_ZONE),
        ("the zone, the node has the old one", has(zone, "a"), at(old_zone, "a"), WRONG_ZONE),
        ("the old zone, the node has the new one", has(old_zone, "a"), at(zone, "a"), ""),
        ("the old zone, the node has another new one", has(old_zone, "a"), at(zone, "b"), WRONG_ZONE),
        ("several zones, the node has no labels", has(old_zone, "c__a"), String::new(), ""),
        ("several old zones, one is the node's", has(old_zone, "c__a"), at(old_zone, "a"), ""),
        ("several zones, one is the node's", has(zone, "c__a"), at(zone, "a"), ""),
        ("several zones, none is the node's", has(zone, "c__a"), at(zone, "b"), WRONG_ZONE),
        ("several zones, one is empty: the label is ignored", has(zone, "c__"), at(zone, "b"), ""),
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
fn unbound_claims_must_have_delayed_binding() {
    let node = "node n failure-domain.beta.kubernetes.io/zone=a; class wait wait; class now now; class unset unset";
    let cases = [
        ("no class", "claim a 1G -", "rejected: PersistentVolumeClaim had no pv name and storageClass name"),
        ("missing class", "claim a 1G gone", "rejected: storageclass.storage.k8s.io \"gone\" not found"),
        (
            "class without binding mode",
            "claim a 1G unset",
            "rejected: VolumeBindingMode not set for StorageClass \"unset\"",
        ),
        ("immediate binding", "claim a 1G now", "rejected: PersistentVolume had no name"),
        ("delayed binding", "claim a 1G wait", ""),
        ("missing volume", "claim a 1G wait bound=v", "rejected: persistentvolume \"v\" not found"),
        ("missing claim", "", "rejected: persistentvolumeclaim \"a\" not found"),
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
        ("an emptyDir volume", "scratch", "", ""),
        ("the same volume of EBS", "disks=aws:foo", "disks=aws:foo", IN_USE),
        ("the same volume of EBS, both read it", "disks=aws:foo:ro", "disks=aws:foo:ro", IN_USE),
        ("another volume of EBS", "disks=aws:bar", "disks=aws:foo", ""),
        ("the same image", &format!("disks={rbd}"), "disks=rbd:b+c/bar", IN_USE),
        ("the same image, both read it", &format!("disks={rbd}:ro"), "disks=rbd:b+c/bar:ro", ""),
        ("another image", "disks=rbd:c+d/foo", "disks=rbd:c+d/bar", ""),
        ("an image of other monitors", &format!("disks={rbd}"), "disks=rbd:c+d/bar", ""),
        ("the same target", "disks=iscsi:iqn.foo", "disks=iscsi:iqn.foo", IN_USE),
        ("the same target, both read it", "disks=iscsi:iqn.foo:ro", "disks=iscsi:iqn.foo:ro", ""),
        ("another target", "disks=iscsi:iqn.bar", "disks=iscsi:iqn.foo", ""),
        ("the same name in another plugin", "disks=aws:foo", "disks=gce:foo", ""),
    ];
    check(cases.map(|(name, new, old, wanted)| {
        (name, sharing(&format!("node n; pod p {new}; pod q {old} on=n")), wanted.to_owned())
    }));
}

#[test]
fn read_write_once_pod_claims_are_not_shared() {
    const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
        another pod";
    let claims = "claim one 1G wait modes=RWOP; claim two 1G wait modes=RWOP; claim many 1G wait modes=RWX; node n";
    let cases = [
        ("nothing", "pod p claims=one", ""),
        ("missing claim", "pod p claims=gone", "rejected: persistentvolumeclaim \"gone\" not found"),
        ("another pod uses it", "pod p claims=one; pod q claims=one on=n", IN_USE),
        ("another pod on another node uses it", "pod p claims=one; pod q claims=one on=m", IN_USE),
        ("another pod uses two", "pod p claims=one,two; pod q claims=one,two on=n", IN_USE),
        ("ReadWriteMany", "pod p claims=many; pod q claims=many on=n", ""),
    ];
    check(cases.map(|(name, pods, wanted)| (name, sharing(&format!("{claims}; {pods}")), wanted.to_owned())));
}

const FULL: &str = "node(s) exceed max volume count";

#[test]
fn volumes_count_against_the_limit_of_their_driver() {
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
        ("attached volumes count", "claims=c0", attached(2), max(2), FULL),
        ("attached volumes count, within the limit", "claims=c0", attached(1), max(2), ""),
        (
            "used and attached volumes count once",
            "claims=c0",
            format!("{}; pod q claims=c1 on=n", attached(2)),
            max(3),
            "",
        ),
        (
            "volumes attached to another node do not count",
            "claims=c0",
            "attached a ebs.csi.aws.com m v-c1".into(),
            max(1),
            "",
        ),
        ("within the limit", "claims=c0", running.into(), max(4), ""),
        ("over the limit", "claims=c0", running.into(), max(2), FULL),
        ("no limit", "claims=c0", running.into(), unlimited.clone(), ""),
        ("no CSINode", "claims=c0", running.into(), String::new(), ""),
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
            "a claim with a missing volume counts",
            "claims=c0",
            "pod q claims=lost on=n; pod r claims=c1,c2 on=n".into(),
            max(2),
            FULL,
        ),
        (
            "a claim with a missing class does not count",
            "claims=c0",
            "pod q claims=c3 on=n; pod r claims=classless on=n".into(),
            max(2),
            "",
        ),
        (
            "volumes of other drivers do not count",
            "claims=c0",
            "pod q claims=g1,g2 on=n; pod r claims=c1,c2 on=n".into(),
            max(2),
            FULL,
        ),
        ("volumes of other drivers do not count, the other way", "claims=g1,g2", running.into(), max(2), ""),
        ("migrated volumes count", "claims=t0", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("nothing is migrated without a CSINode", "disks=aws:i", "pod q claims=t1,t2 on=n".into(), String::new(), ""),
        ("unbound claims of migrated plugins count", "claims=treed", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("migrated volumes, no limit", "claims=t0", "pod q claims=t1,t2 on=n".into(), unlimited.clone(), ""),
        ("other volumes do not count", "claims=other", "pod q claims=c1,c2 on=n".into(), max(2), ""),
        ("migrated inline disks count", "disks=aws:i", "pod q claims=t1,t2 on=n".into(), max(2), FULL),
        ("migrated and CSI volumes count together", "claims=t0", "pod q claims=c1,c2 on=n".into(), max(2), FULL),
        (
            "all kinds count together",
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
            "a volume that is already used does not count again",
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
        (
            "migrated and CSI volumes count together, the other way",
            "claims=c0",
            "pod q claims=t1,t2 on=n".into(),
            max(2),
            FULL,
        ),
        ("ephemeral volume, no limit", "own=x", String::new(), unlimited, ""),
        ("ephemeral volume, over the limit", "own=x", running.replace("pod q ", "pod s "), max(2), FULL),
        ("ephemeral volumes count", "claims=c0", "pod s claims=c3 on=n; pod q own=x,y on=n".into(), max(2), FULL),
        (
            "all volumes count",
            "claims=c0",
            "pod s claims=c3 on=n; pod q own=x on=n; pod r claims=c1,c2 on=n".into(),
            max(3),
            FULL,
        ),
        (
            "all volumes count, within the limit",
            "claims=c0",
            "pod s claims=c3 on=n; pod q own=x on=n; pod r claims=c1,c2 on=n".into(),
            max(5),
            "",
        ),
        ("pod without counted volumes", "scratch", running.into(), max(2), ""),
        ("one counted volume and one other", "claims=c0 scratch", String::new(), max(2), ""),
    ];
    check(cases.map(|(name, pod, there, csi, wanted)| {
        (name, counting(&format!("{objects}{csi}; pod p {pod}; {there}")), wanted.to_owned())
    }));
}

#[test]
fn required_drivers_must_be_installed() {
    let objects = "claim a 1G made; class made wait by=d; node n; pod p claims=a";
    let missing = "d CSI driver is not installed on the node";
    let cases = [
        ("installed", "driver d required; csi n drivers=d", ""),
        ("not installed", "driver d required; csi n drivers=e", missing),
        ("no CSINode", "driver d required", missing),
        ("not required", "driver d; csi n drivers=e", ""),
        ("no CSIDriver", "csi n drivers=e", ""),
    ];
    check(cases.map(|(name, drivers, wanted)| (name, counting(&format!("{objects}; {drivers}")), wanted.to_owned())));
}

#[test]
fn tests_run_in_upstream_order() {
    let all = |text: &str| {
        let world = World::new(&text.replace(';', "\n"));
        match VolumePlacement::prepare(&world.cache, world.pod()) {
            Ok(placement) => volumes_text(&placement.find(world.node()).expect("no error")),
            Err(rejection) => rejection_text(&rejection),
        }
    };
    let zone = "topology.kubernetes.io/zone";
    let objects = format!("class wait wait; class made wait by=d; node n {zone}=a");
    let other = format!("claim a 1G wait bound=v; volume v 1G wait for=a csi=d:v label={zone}:b");
    let cases = [
        ("a missing claim is reported first", "pod p claims=a", "rejected: persistentvolumeclaim \"a\" not found"),
        (
            "also of an ephemeral volume",
            "pod p own=x",
            "rejected: waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-x\"",
        ),
        (
            "disks before limits",
            &format!("pod p claims=a disks=gce:x; pod q disks=gce:x on=n; driver d required; {other}"),
            "!node(s) had no available disk",
        ),
        (
            "limits before claims",
            "pod p claims=a,b; claim a 1G made; claim b 1G wait; driver d required",
            "!d CSI driver is not installed on the node",
        ),
        (
            "claims before zones",
            &format!("pod p claims=a,b; claim b 1G wait; {other}"),
            "!node(s) didn't find available persistent volumes to bind",
        ),
        ("zones", &format!("pod p claims=a; {other}"), "!node(s) had no available volume zone"),
        (
            "volumes found are kept",
            &format!("pod p claims=a,b; claim b 1G wait; volume w 1G wait; {other}"),
            "b=w !node(s) had no available volume zone",
        ),
    ];
    check(cases.map(|(name, text, wanted)| (name, all(&format!("{objects}; {text}")), wanted.to_owned())));
}
