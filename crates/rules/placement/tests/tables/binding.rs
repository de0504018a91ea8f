//! What is written for a pod on its node, and what comes of it.

use std::sync::Arc;

use bindery_model::{Annotation, Claim, Kind, Volume};
use bindery_placement::{Binding, Found, Plan, Provision, Step, prepare};
use bindery_rules_api::{Edit, Write};

use super::world::World;
use super::{check, saw};

/// Every table, for the test that all rules are exercised.
pub fn tables() -> Vec<fn()> {
    vec![
        what_was_found_is_reserved,
        writes_are_made_in_order,
        bindings_are_awaited,
        volumes_that_moved_to_csi_are_checked,
    ]
}

const NODE: &str = "node node1 nodeKey=node1\npod p\n";

fn world(text: &str) -> World {
    let text = text.replace(';', "\n");
    let node = if text.contains("node node") || text.contains("no-node") { "" } else { "node node1 nodeKey=node1\n" };
    let pod = if text.contains("pod ") { "" } else { "pod p\n" };
    World::new(&format!("{node}{pod}{}", text.replace("no-node", "")))
}

/// A plan for node1, as `claim=volume` for what was found and `+claim` for what is to be made.
fn plan(world: &World, text: &str) -> Plan {
    let mut found = Found::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((claim, volume)) => found.bindings.push(Binding::of(
                world.claim_named(claim),
                world.volumes.get(volume).unwrap_or_else(|| panic!("there is a volume {volume}")),
            )),
            None => {
                let claim = world.claim_named(word.trim_start_matches('+'));
                found.provisions.push(Provision { claim, room: None });
            }
        }
    }
    let node = World::new(NODE).nodes.values().next().cloned().expect("a node");
    Plan::new(world.pod(), &node, &found).expect("nothing is against it")
}

/// A write in words: what it makes of its object.
fn in_words(write: &Write) -> String {
    saw(write.purpose);
    let name = &write.target().name;
    if let Edit::Volume(edit) = write.edit() {
        let mut volume = Volume::default();
        edit.apply(&mut volume);
        let claim = volume.claim_ref.as_ref().map_or("-".into(), |claim| format!("{}/{}", claim.key.name, claim.uid));
        let mark = if volume.annotations.has(Annotation::BoundByController) { " marked" } else { "" };
        return format!("{name}->{claim}{mark}");
    }
    let Edit::Claim(edit) = write.edit() else { panic!("{:?} is not for placement to write", write.edit()) };
    let mut claim = Claim::default();
    edit.apply(&mut claim);
    let node = claim.annotations.get(Annotation::SelectedNode).map(|node| node.as_str()).unwrap_or_default();
    format!("{name}@{node}")
}

fn step_in_words(step: &Step) -> String {
    saw(step.rule());
    match step {
        Step::Write(write) => in_words(write),
        Step::Wait => "wait".into(),
        Step::Done => "done".into(),
        Step::Fail(failure) => failure.to_string(),
    }
}

/// Upstream's cases of assuming, and of what is assumed being out of date. What is not written is not there to be reverted.
#[test]
fn what_was_found_is_reserved() {
    let found = "claim unbound 1G wait; claim larger 5G wait; claim new 1Gi made
        volume node1a 5G wait at=node1; volume node1b 10G wait at=node1";
    let cases = [
        ("nothing was found", "", found, ""),
        ("one volume", "unbound=node1a", found, "node1a->unbound/uid-unbound marked"),
        (
            "two volumes",
            "unbound=node1a larger=node1b",
            found,
            "node1a->unbound/uid-unbound marked, node1b->larger/uid-larger marked",
        ),
        ("it is the claim's already", "unbound=node1a", "claim unbound 1G wait; volume node1a 5G wait for=unbound", ""),
        (
            "it was reserved by name: the user's choice is not marked",
            "unbound=node1a",
            "claim unbound 1G wait; volume node1a 5G wait for=unbound named-only",
            "node1a->unbound/uid-unbound",
        ),
        (
            "one volume, and one to be made",
            "unbound=node1a +new",
            found,
            "node1a->unbound/uid-unbound marked, new@node1",
        ),
        ("it has the node already", "+new", "claim new 1Gi made node=node1", ""),
    ];
    let writes = |plan: &Plan, world: &World| match plan.writes(world) {
        Ok(writes) => writes.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Err(failure) => {
            saw(failure.rule());
            failure.to_string()
        }
    };
    check(cases.map(|(name, text, found, wanted)| {
        let world = world(found);
        (name, writes(&plan(&world, text), &world), wanted.to_owned())
    }));
    let changed = [
        (
            "a volume is gone",
            "unbound=node1a larger=node1b",
            "claim unbound 1G wait; claim larger 5G wait; volume node1a 5G wait at=node1",
            "\"node1b\" is out of sync (stored: 0, assume: 1)",
        ),
        (
            "a claim has changed",
            "unbound=node1a +new",
            "claim unbound 1G wait; claim new 1Gi made v=2; volume node1a 5G wait at=node1",
            "\"testns/new\" is out of sync (stored: 2, assume: 1)",
        ),
    ];
    check(
        changed.map(|(name, text, now, wanted)| {
            (name, writes(&plan(&world(found), text), &world(now)), wanted.to_owned())
        }),
    );
    let bound = world("class wait wait; pod p claims=a; claim a 1G wait bound=v; volume v 1G wait for=a");
    assert!(prepare(&bound, bound.pod()).expect("it can be placed").is_bound(), "nothing is to be reserved");
}

/// Makes a write on an object of a world, if it is as the write demands.
fn apply(world: &mut World, write: &Write) -> Result<(), String> {
    let refused = |is: u64| format!("refused: {} is at {is}", write.target().name);
    match (write.target().kind, write.edit()) {
        (Kind::Volume, Edit::Volume(edit)) => {
            let volume = Arc::make_mut(world.volumes.get_mut(&write.target().name).expect("a volume"));
            if volume.meta.version != write.version() {
                return Err(refused(volume.meta.version));
            }
            edit.apply(volume);
            volume.meta.version += 1;
        }
        (Kind::Claim, Edit::Claim(edit)) => {
            let claim = Arc::make_mut(world.claims.get_mut(&write.target().claim_key()).expect("a claim"));
            if claim.meta.version != write.version() {
                return Err(refused(claim.meta.version));
            }
            edit.apply(claim);
            claim.meta.version += 1;
        }
        other => panic!("{other:?} is not for placement to write"),
    }
    Ok(())
}

/// Takes the steps of a plan, one after another: each is made on the server, and then seen.
fn take_steps(plan: &Plan, seen: &mut World, server: &mut World) -> String {
    let mut steps = Vec::new();
    loop {
        let step = plan.next(seen);
        steps.push(step_in_words(&step));
        let Step::Write(write) = step else { return steps.join(", ") };
        if let Err(refused) = apply(server, &write) {
            steps.push(refused);
            return steps.join(", ");
        }
        apply(seen, &write).expect("what is seen is what the write was made from");
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
            "it was written already",
            "unbound=node1a",
            "claim unbound 1G wait; volume node1a 5G wait at=node1 for=unbound",
            "claim unbound 1G wait; volume node1a 5G wait at=node1 for=unbound",
            "wait",
        ),
        (
            "the second is refused",
            "unbound=node1a larger=node1b",
            seen,
            &taken,
            "node1a->unbound/uid-unbound marked, node1b->larger/uid-larger marked, refused: node1b is at 2",
        ),
        ("one to be made", "+new", seen, seen, "new@node1, wait"),
        (
            "the second to be made is refused",
            "+new +newer",
            seen,
            &newer,
            "new@node1, newer@node1, refused: newer is at 2",
        ),
        (
            "a volume, then one to be made, then a refusal",
            "unbound=node1a +new +newer",
            seen,
            &newer,
            "node1a->unbound/uid-unbound marked, new@node1, newer@node1, refused: newer is at 2",
        ),
    ];
    check(cases.map(|(name, text, seen, server, wanted)| {
        let (mut seen, mut server) = (world(seen), world(server));
        let plan = plan(&seen, text);
        (name, take_steps(&plan, &mut seen, &mut server), wanted.to_owned())
    }));
}

#[test]
fn bindings_are_awaited() {
    let found = "claim unbound 1G wait; claim larger 5G wait; claim new 1Gi made
        volume node1a 5G wait at=node1; volume node1b 10G wait at=node1";
    let node1a = "volume node1a 5G wait at=node1 for=unbound v=2; ";
    let bound = "claim unbound 1G wait bound=node1a v=2; ";
    let cases = [
        ("nothing to bind", "", "", "done"),
        ("it is bound", "unbound=node1a", &format!("{node1a}{bound}"), "done"),
        ("the claim only names it", "unbound=node1a", &format!("{node1a}claim unbound 1G wait named=node1a"), "wait"),
        ("the claim does not know it yet", "unbound=node1a", &format!("{node1a}claim unbound 1G wait"), "wait"),
        (
            "the claim is gone",
            "unbound=node1a",
            node1a,
            "failed to check binding: persistentvolumeclaim \"unbound\" not found",
        ),
        (
            "the claim is another of its name",
            "unbound=node1a",
            &format!("{node1a}claim unbound 1G wait uid=other"),
            "failed to check binding: persistentvolumeclaim \"unbound\" not found",
        ),
        (
            "the volume is gone",
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
            "the volume is for any claim of the name",
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
            "the volume moved",
            "unbound=node1a",
            &format!("volume node1a 5G wait at=node2 for=unbound v=2; {bound}"),
            "pv \"node1a\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms",
        ),
        (
            "what was made is bound",
            "+new",
            "claim new 1Gi made node=node1 bound=v v=2; volume v 1Gi made at=node1 for=new",
            "done",
        ),
        ("it is not made yet", "+new", "claim new 1Gi made node=node1 v=2", "wait"),
        (
            "the claim it is made for is gone",
            "+new",
            "",
            "failed to check provisioning pvc: persistentvolumeclaim \"new\" not found",
        ),
        ("the node was taken away", "+new", "claim new 1Gi made v=3", "provisioning failed for PVC \"new\""),
        ("the node is another", "+new", "claim new 1Gi made node=node2 v=3", "provisioning failed for PVC \"new\""),
        (
            "a volume is bound, another is not made yet",
            "unbound=node1a +new",
            &format!("{node1a}{bound}claim new 1Gi made node=node1 v=2"),
            "wait",
        ),
        ("what was made was not seen yet", "+new", "claim new 1Gi made node=node1 bound=v v=2", "wait"),
        (
            "what was made is elsewhere",
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
        ("the node is gone", "unbound=node1a", "no-node", "failed to get node \"node1\": node \"node1\" not found"),
        (
            "the pod is gone",
            "unbound=node1a",
            &format!("pod q; {node1a}{bound}"),
            "pod does not exist any more: pod \"p\" not found",
        ),
        (
            "the pod is another of its name",
            "unbound=node1a",
            &format!("pod p uid=other; {node1a}{bound}"),
            "pod does not exist any more: pod \"p\" not found",
        ),
        (
            "the claim was bound before it was written: the volume is left alone",
            "unbound=node1a",
            "claim unbound 1G wait bound=node1b v=2; volume node1a 5G wait at=node1",
            "ClaimRef got reset for pv \"node1a\"",
        ),
    ];
    check(cases.map(|(name, text, now, wanted)| {
        let planned = plan(&world(found), text);
        (name, step_in_words(&planned.next(&world(now))), wanted.to_owned())
    }));
}

#[test]
fn volumes_that_moved_to_csi_are_checked() {
    let label = "label=failure-domain.beta.kubernetes.io/zone:us-east-1";
    let found = format!("claim a 1G wait; claim new 1G made; volume v 1G wait source=gce:disk {label}");
    let csi = "csi node1 migrated=kubernetes.io/gce-pd";
    let here = "node node1 topology.gke.io/zone=us-east-1";
    let there = "node node1 topology.gke.io/zone=us-east-2";
    let reserved = format!("claim a 1G wait; volume v 1G wait for=a v=2 source=gce:disk {label}");
    let made = format!("claim new 1G made node=node1 bound=w v=2; volume w 1G made for=new source=gce:disk {label}");
    let elsewhere = "pv \"v\" node affinity doesn't match node \"node1\": no matching NodeSelectorTerms";
    let cases = [
        ("what was made is bound", "+new", format!("{here}; {csi}; {made}"), "done"),
        ("it is in the node's zone", "a=v", format!("{here}; {csi}; {reserved}"), "wait"),
        ("nothing is known of drivers on the node", "a=v", format!("{here}; {reserved}"), "wait"),
        ("it did not move on the node", "a=v", format!("{here}; csi node1; {reserved}"), "wait"),
        ("it is in another zone", "a=v", format!("{there}; {csi}; {reserved}"), elsewhere),
        (
            "its plugin never moves",
            "a=v",
            format!("{there}; {csi}; {}", reserved.replace("source=gce:disk", "source=rbd:m/disk")),
            "wait",
        ),
        (
            "it cannot be translated",
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
        (name, step_in_words(&planned.next(&world(&now))), wanted.to_owned())
    }));
}

/// What was found once is found again once it is reserved, however equal another may be.
#[test]
fn what_is_reserved_is_found_again() {
    let text = |node1a: &str| {
        format!(
            "class wait wait; pod p claims=a; claim a 1G wait; volume node2 1G wait at=node2
            volume node1b 5G wait at=node1 {node1a}; volume node1c 5G wait at=node1"
        )
    };
    let (free, reserved) = (world(&text("")), world(&text("for=a v=2")));
    for (world, writes) in [(&free, 1), (&reserved, 0)] {
        let prepared = prepare(world, world.pod()).expect("it can be placed");
        let node = world.nodes.values().next().expect("a node");
        let found = prepared.find(node).expect("no fault");
        assert_eq!(super::in_words(&found), "a=node1b");
        let plan = Plan::new(world.pod(), node, &found).expect("nothing is against it");
        assert_eq!(plan.writes(world).map(|writes| writes.len()), Ok(writes));
    }
}
