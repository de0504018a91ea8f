//! Carrying out a binding plan.

use std::sync::Arc;

use bindery_model::{Annotation, Claim, Kind, Object, Volume};
use bindery_placement::{Binding, BindingPlan, NewVolume, NodeVolumes, Step, VolumePlacement};
use bindery_rules_api::{Edit, Write};

use super::world::World;
use super::{check, saw};

/// Every table, for the test that all rules are exercised.
pub fn tables() -> Vec<fn()> {
    vec![
        volumes_are_reserved_and_nodes_selected,
        writes_are_made_in_order,
        plan_is_done_when_all_claims_are_bound,
        migrated_volumes_are_checked,
    ]
}

const NODE: &str = "node node1 nodeKey=node1\npod p\n";

fn world(text: &str) -> World {
    let text = text.replace(';', "\n");
    let node = if text.contains("node node") || text.contains("no-node") { "" } else { "node node1 nodeKey=node1\n" };
    let pod = if text.contains("pod ") { "" } else { "pod p\n" };
    World::new(&format!("{node}{pod}{}", text.replace("no-node", "")))
}

/// A plan for node1: `claim=volume` to reserve, and `+claim` to provision.
fn plan(world: &World, text: &str) -> BindingPlan {
    let mut found = NodeVolumes::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((claim, volume)) => found.bindings.push(Binding::of(
                world.claim_named(claim),
                world.volumes.get(volume).unwrap_or_else(|| panic!("no volume {volume}")),
            )),
            None => {
                let claim = world.claim_named(word.trim_start_matches('+'));
                found.new_volumes.push(NewVolume { claim, capacity: None });
            }
        }
    }
    BindingPlan::new(world.pod(), World::new(NODE).node(), &found).expect("a suitable node")
}

/// A write as text: the resulting object.
fn write_text(write: &Write) -> String {
    saw(write.purpose);
    let name = &write.target().name;
    if let Edit::Volume(edit) = write.edit() {
        let mut volume = Volume::default();
        edit.apply(&mut volume);
        let claim = volume.claim_ref.as_ref().map_or("-".into(), |claim| format!("{}/{}", claim.key.name, claim.uid));
        let mark = if volume.annotations.has(Annotation::BoundByController) { " marked" } else { "" };
        return format!("{name}->{claim}{mark}");
    }
    let Edit::Claim(edit) = write.edit() else { panic!("unexpected write: {:?}", write.edit()) };
    let mut claim = Claim::default();
    edit.apply(&mut claim);
    let node = claim.annotations.get(Annotation::SelectedNode).map(|node| node.as_str()).unwrap_or_default();
    format!("{name}@{node}")
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Write(write) => write_text(write),
        Step::Wait => "wait".into(),
        Step::Done => "done".into(),
        Step::Fail(error) => error.to_string(),
    }
}

/// Upstream's cases of assuming volumes, and of assumed objects being out of date.
#[test]
fn volumes_are_reserved_and_nodes_selected() {
    let found = "claim unbound 1G wait; claim larger 5G wait; claim new 1Gi made
        volume node1a 5G wait at=node1; volume node1b 10G wait at=node1";
    let cases = [
        ("nothing was found", "", found, "done"),
        ("one volume", "unbound=node1a", found, "node1a->unbound/uid-unbound marked, wait"),
        (
            "two volumes",
            "unbound=node1a larger=node1b",
            found,
            "node1a->unbound/uid-unbound marked, node1b->larger/uid-larger marked, wait",
        ),
        ("already reserved", "unbound=node1a", "claim unbound 1G wait; volume node1a 5G wait for=unbound", "wait"),
        (
            "reserved by name: the user's choice is not marked",
            "unbound=node1a",
            "claim unbound 1G wait; volume node1a 5G wait for=unbound named-only",
            "node1a->unbound/uid-unbound, wait",
        ),
        (
            "one volume, and one to provision",
            "unbound=node1a +new",
            found,
            "node1a->unbound/uid-unbound marked, new@node1, wait",
        ),
        ("node already selected", "+new", "claim new 1Gi made node=node1", "wait"),
    ];
    check(cases.map(|(name, text, found, wanted)| {
        let (mut seen, mut server) = (world(found), world(found));
        let plan = plan(&seen, text);
        (name, take_steps(&plan, &mut seen, &mut server), wanted.to_owned())
    }));
    let changed = [
        (
            "a volume was deleted",
            "larger=node1b",
            "claim unbound 1G wait; claim larger 5G wait; volume node1a 5G wait at=node1",
            "failed to check binding: persistentvolume \"node1b\" not found",
        ),
        (
            "a claim has changed: it is not written",
            "unbound=node1a +new",
            "claim unbound 1G wait; claim new 1Gi made v=2; volume node1a 5G wait at=node1",
            "node1a->unbound/uid-unbound marked, wait",
        ),
    ];
    check(changed.map(|(name, text, now, wanted)| {
        let (mut seen, mut server) = (world(now), world(now));
        (name, take_steps(&plan(&world(found), text), &mut seen, &mut server), wanted.to_owned())
    }));
    let bound = world("class wait wait; pod p claims=a; claim a 1G wait bound=v; volume v 1G wait for=a");
    let placement = VolumePlacement::prepare(&bound.cache, bound.pod()).expect("a schedulable pod");
    let found = placement.find(bound.node()).expect("no error");
    assert!(found.bindings.is_empty() && found.new_volumes.is_empty(), "nothing to reserve");
}

/// Applies a write to a cluster, if the object has the version that the write requires.
fn apply(world: &mut World, write: &Write) -> Result<(), String> {
    let conflict = |is: u64| format!("conflict: {} is at {is}", write.target().name);
    match (write.target().kind, write.edit()) {
        (Kind::Volume, Edit::Volume(edit)) => {
            let mut volume = Volume::clone(world.volumes.get(&write.target().name).expect("a volume"));
            if volume.meta.version != write.version() {
                return Err(conflict(volume.meta.version));
            }
            edit.apply(&mut volume);
            volume.meta.version += 1;
            world.put(Object::Volume(Arc::new(volume)));
        }
        (Kind::Claim, Edit::Claim(edit)) => {
            let mut claim = Claim::clone(world.claim_named(&write.target().name));
            if claim.meta.version != write.version() {
                return Err(conflict(claim.meta.version));
            }
            edit.apply(&mut claim);
            claim.meta.version += 1;
            world.put(Object::Claim(Arc::new(claim)));
        }
        other => panic!("unexpected write: {other:?}"),
    }
    Ok(())
}

/// Takes the steps of a plan: each write is made on the server, and then seen.
fn take_steps(plan: &BindingPlan, seen: &mut World, server: &mut World) -> String {
    let mut steps = Vec::new();
    loop {
        let step = plan.next(&seen.cache);
        steps.push(step_text(&step));
        let Step::Write(write) = step else { return steps.join(", ") };
        if let Err(conflict) = apply(server, &write) {
            steps.push(conflict);
            return steps.join(", ");
        }
        apply(seen, &write).expect("the write is based on the seen state");
    }
}

#[test]
fn writes_are_made_in_order() {
    let seen = "claim unbound 1G wait; claim larger 5G wait; claim new 1Gi made; claim newer 1Gi made
        volume node1a 5G wait at=node1; volume node1b 10G wait at=node1";
    let newer = format!("{}; claim newer 1Gi made v=2", seen.replace("claim newer 1Gi made\n", "\n"));
    let taken = seen.replace("node1b 10G wait", "node1b 10G wait v=2 for=larger");
    let cases = [
        ("nothing to bind", "", seen, seen, "done"),
        ("one volume", "unbound=node1a", seen, seen, "node1a->unbound/uid-unbound marked, wait"),
        (
            "two volumes",
            "unbound=node1a larger=node1b",
            seen,
            seen,
            "node1a->unbound/uid-unbound marked, node1b->larger/uid-larger marked, wait",
        ),
        (
            "already written",
            "unbound=node1a",
            "claim unbound 1G wait; volume node1a 5G wait at=node1 for=unbound",
            "claim unbound 1G wait; volume node1a 5G wait at=node1 for=unbound",
            "wait",
        ),
        (
            "the second conflicts",
            "unbound=node1a larger=node1b",
            seen,
            &taken,
            "node1a->unbound/uid-unbound marked, node1b->larger/uid-larger marked, conflict: node1b is at 2",
        ),
        ("one to provision", "+new", seen, seen, "new@node1, wait"),
        (
            "the second to provision conflicts",
            "+new +newer",
            seen,
            &newer,
            "new@node1, newer@node1, conflict: newer is at 2",
        ),
        (
            "a volume, then one to provision, then a conflict",
            "unbound=node1a +new +newer",
            seen,
            &newer,
            "node1a->unbound/uid-unbound marked, new@node1, newer@node1, conflict: newer is at 2",
        ),
    ];
    check(cases.map(|(name, text, seen, server, wanted)| {
        let (mut seen, mut server) = (world(seen), world(server));
        let plan = plan(&seen, text);
        (name, take_steps(&plan, &mut seen, &mut server), wanted.to_owned())
    }));
}

#[test]
fn plan_is_done_when_all_claims_are_bound() {
    let found = "claim unbound 1G wait; claim larger 5G wait; claim new 1Gi made
        volume node1a 5G wait at=node1; volume node1b 10G wait at=node1";
    let node1a = "volume node1a 5G wait at=node1 for=unbound v=2; ";
    let bound = "claim unbound 1G wait bound=node1a v=2; ";
    let cases = [
        ("nothing to bind", "", "", "done"),
        ("bound", "unbound=node1a", &format!("{node1a}{bound}"), "done"),
        ("the claim only names it", "unbound=node1a", &format!("{node1a}claim unbound 1G wait named=node1a"), "wait"),
        ("the claim does not name it yet", "unbound=node1a", &format!("{node1a}claim unbound 1G wait"), "wait"),
        (
            "the claim was deleted",
            "unbound=node1a",
            node1a,
            "failed to check binding: persistentvolumeclaim \"unbound\" not found",
        ),
        (
            "another claim with the name",
            "unbound=node1a",
            &format!("{node1a}claim unbound 1G wait uid=other"),
            "failed to check binding: persistentvolumeclaim \"unbound\" not found",
        ),
        (
            "the volume was deleted",
            "unbound=node1a",
            bound,
            "failed to check binding: persistentvolume \"node1a\" not found",
        ),
        (
            "the volume is free again",
            "unbound=node1a",
            &format!("volume node1a 5G wait at=node1 v=2; {bound}"),
            "ClaimRef got reset for pv \"node1a\"",
        ),
        (
            "the volume is reserved by name only",
            "unbound=node1a",
            &format!("volume node1a 5G wait at=node1 v=2 for=unbound named-only; {bound}"),
            "ClaimRef got reset for pv \"node1a\"",
        ),
        (
            "one is bound, one is not",
            "unbound=node1a larger=node1b",
            &format!("{node1a}{bound}volume node1b 10G wait at=node1 for=larger v=2; claim larger 5G wait"),
            "wait",
        ),
        (
            "the claim was bound to another volume",
            "unbound=node1a",
            &format!("{node1a}claim unbound 1G wait bound=node1b v=2"),
            "pvc \"unbound\" was bound to another pv \"node1b\"",
        ),
        (
            "the volume is unreachable",
            "unbound=node1a",
            &format!("volume node1a 5G wait at=node2 for=unbound v=2; {bound}"),
            "pv \"node1a\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms",
        ),
        (
            "the provisioned volume is bound",
            "+new",
            "claim new 1Gi made node=node1 bound=v v=2; volume v 1Gi made at=node1 for=new",
            "done",
        ),
        ("not provisioned yet", "+new", "claim new 1Gi made node=node1 v=2", "wait"),
        (
            "the claim to provision for was deleted",
            "+new",
            "",
            "failed to check provisioning pvc: persistentvolumeclaim \"new\" not found",
        ),
        ("the selected node was removed", "+new", "claim new 1Gi made v=3", "provisioning failed for PVC \"new\""),
        (
            "another node was selected",
            "+new",
            "claim new 1Gi made node=node2 v=3",
            "provisioning failed for PVC \"new\"",
        ),
        (
            "one bound, another not provisioned yet",
            "unbound=node1a +new",
            &format!("{node1a}{bound}claim new 1Gi made node=node1 v=2"),
            "wait",
        ),
        ("the provisioned volume was not seen yet", "+new", "claim new 1Gi made node=node1 bound=v v=2", "wait"),
        (
            "the provisioned volume is unreachable",
            "+new",
            "claim new 1Gi made node=node1 bound=v v=2; volume v 1Gi made at=node2 for=new",
            "pv \"v\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms",
        ),
        (
            "the node has lost its labels",
            "unbound=node1a",
            &format!("node node1; {node1a}{bound}"),
            "pv \"node1a\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms",
        ),
        ("the node was deleted", "unbound=node1a", "no-node", "failed to get node \"node1\": node \"node1\" not found"),
        (
            "the pod was deleted",
            "unbound=node1a",
            &format!("pod q; {node1a}{bound}"),
            "pod does not exist any more: pod \"p\" not found",
        ),
        (
            "another pod with the name",
            "unbound=node1a",
            &format!("pod p uid=other; {node1a}{bound}"),
            "pod does not exist any more: pod \"p\" not found",
        ),
        (
            "the claim was bound before the write: the volume is not written",
            "unbound=node1a",
            "claim unbound 1G wait bound=node1b v=2; volume node1a 5G wait at=node1",
            "ClaimRef got reset for pv \"node1a\"",
        ),
    ];
    check(cases.map(|(name, text, now, wanted)| {
        let planned = plan(&world(found), text);
        (name, step_text(&planned.next(&world(now).cache)), wanted.to_owned())
    }));
}

#[test]
fn migrated_volumes_are_checked() {
    let label = "label=failure-domain.beta.kubernetes.io/zone:us-east-1";
    let found = format!("claim a 1G wait; claim new 1G made; volume v 1G wait source=gce:disk {label}");
    let csi = "csi node1 migrated=kubernetes.io/gce-pd";
    let here = "node node1 topology.gke.io/zone=us-east-1";
    let there = "node node1 topology.gke.io/zone=us-east-2";
    let reserved = format!("claim a 1G wait; volume v 1G wait for=a v=2 source=gce:disk {label}");
    let made = format!("claim new 1G made node=node1 bound=w v=2; volume w 1G made for=new source=gce:disk {label}");
    let elsewhere = "pv \"v\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms";
    let cases = [
        ("the provisioned volume is bound", "+new", format!("{here}; {csi}; {made}"), "done"),
        ("same zone", "a=v", format!("{here}; {csi}; {reserved}"), "wait"),
        ("no CSINode", "a=v", format!("{here}; {reserved}"), "wait"),
        ("not migrated on the node", "a=v", format!("{here}; csi node1; {reserved}"), "wait"),
        ("another zone", "a=v", format!("{there}; {csi}; {reserved}"), elsewhere),
        (
            "plugin without migration",
            "a=v",
            format!("{there}; {csi}; {}", reserved.replace("source=gce:disk", "source=rbd:m/disk")),
            "wait",
        ),
        (
            "cannot be translated",
            "a=v",
            format!(
                "{here}; csi node1 migrated=kubernetes.io/azure-disk; {}",
                reserved.replace("gce:disk", "blob:disk")
            ),
            "failed to translate pv to csi: could not translate pv: only managed disks are supported in csi migration",
        ),
    ];
    check(cases.map(|(name, text, now, wanted)| {
        let planned = plan(&world(&found), text);
        (name, step_text(&planned.next(&world(&now).cache)), wanted.to_owned())
    }));
}

/// A reserved volume is found again, even if another is equally suitable.
#[test]
fn reserved_volume_is_found_again() {
    let text = |node1a: &str| {
        format!(
            "class wait wait; pod p claims=a; claim a 1G wait; volume node2 1G wait at=node2
            volume node1b 5G wait at=node1 {node1a}; volume node1c 5G wait at=node1"
        )
    };
    let (free, reserved) = (world(&text("")), world(&text("for=a v=2")));
    for (world, is_written) in [(&free, true), (&reserved, false)] {
        let placement = VolumePlacement::prepare(&world.cache, world.pod()).expect("a schedulable pod");
        let found = placement.find(world.node()).expect("no error");
        assert_eq!(super::volumes_text(&found), "a=node1b");
        let plan = BindingPlan::new(world.pod(), world.node(), &found).expect("a suitable node");
        assert_eq!(matches!(plan.next(&world.cache), Step::Write(_)), is_written);
    }
}
