//! What is said about pods that wait for a node, and about those that have one.

use bindery_explain::{LINES, explain_pod};
use bindery_model::{ClaimKey, Kind, ObjectKey, PodKey};
use bindery_simulation::run::mirror_of;
use bindery_simulation::{World, notation};
use serde_json::json;

use super::{check, explain_in};

/// The table and the sentence behind it.
fn table(world: &World, pod: &str) -> String {
    let text = explain_in(world, &format!("pod/{pod}"));
    let from = text.find("\n  node ").unwrap_or_else(|| panic!("there is no table:\n{text}"));
    text[from..].to_owned()
}

fn check_table(state: &str, pod: &str, expected: &str) {
    check_table_in(&notation::parse(state), pod, expected);
}

/// Columns are two spaces or more apart; how they are lined up is another test's business.
fn check_table_in(world: &World, pod: &str, expected: &str) {
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ");
    let lines = |text: &str| text.trim().lines().map(columns).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&table(world, pod)), lines(expected));
}

/// The last sentence: what to do.
fn advice(state: &str) -> String {
    advice_in(&notation::parse(state))
}

fn advice_in(world: &World) -> String {
    explain_in(world, "pod/p").lines().last().unwrap_or_default().to_owned()
}

fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, name)
}

#[test]
fn a_pod_that_waits_is_told_of_every_node_and_claim() {
    check(
        "
            sc local kubernetes.io/no-provisioner wffc
            sc make example.com wffc
            node n1 taint=gpu:yes:NoSchedule
            node n2
            node n3 cpu=1
            pv v1 1Gi Available class=local on=n1
            pv v2 500Mi Available class=local on=n2
            pv disk 1Gi Bound ->data#d
            pvc data#d 1Gi Bound vol=disk bc
            pvc logs#l 1Gi Pending class=local
            pvc tmp#t 1Gi Pending class=make
            pod p claim=logs claim=data claim=tmp cpu=2
        ",
        "pod/p",
        "
            default/p is waiting for a node   [schedule.unschedulable]
            No node is suitable. The reasons are published with the number of nodes they apply to, and the pod is retried when one of them changes.
              event  FailedScheduling: 0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't find available persistent volumes to bind, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.
              next   writes Pod default/p
              logs   volume logs; Pending: see bindery explain pvc/logs
              data   volume data; Bound to disk
              tmp    volume tmp; Pending: see bindery explain pvc/tmp
              node  claim logs                                    claim data               claim tmp             beside its claims
              n1    would take v1                                 bound to disk, in reach  would be provisioned  taint gpu=yes:NoSchedule
              n2    no matching volume; v2: needs 1Gi, has 500Mi  bound to disk, in reach  would be provisioned  fits
              n3    no matching volume                            bound to disk, in reach  would be provisioned  cpu: needs 2, 1 free of 1
            Smallest change: remove the taint gpu=yes:NoSchedule from node n1, or tolerate it. Then it can be placed on node n1.
        ",
    );
}

#[test]
fn a_pod_that_has_its_node_is_told_of_its_volumes_there() {
    check(
        "
            node n1 cordoned
            pv disk 1Gi Bound ->data#d on=n1
            pvc data#d 1Gi Bound vol=disk bc
            pod p claim=data node=n1
        ",
        "pod/p",
        "
            default/p is on node n1   [schedule.assigned]
            The pod is assigned to a node, which never changes.
              next  nothing, until something changes
              data  volume data; Bound to disk
              node  claim data               beside its claims
              n1    bound to disk, in reach  fits
        ",
    );
    check_table(
        "
            node n1
            pv disk 1Gi Bound ->data#d on=n2
            pvc data#d 1Gi Bound vol=disk bc
            pod p claim=data node=n1
        ",
        "p",
        "
            node  claim data                             beside its claims
            n1    bound to disk: node affinity conflict  fits
        ",
    );
}

#[test]
fn a_pod_that_can_be_placed_is_told_where() {
    check_table(
        "
            sc local kubernetes.io/no-provisioner wffc
            node n1
            node n2
            pv v2 1Gi Available class=local on=n2
            pvc c#c 1Gi Pending class=local
            pod p claim=c
        ",
        "p",
        "
            node  claim c             beside its claims
            n2    would take v2       fits
            n1    no matching volume  fits
            It is given node n2 when claim c is bound.
        ",
    );
}

#[test]
fn nodes_of_one_sort_are_one_row() {
    let mut state = String::from(
        "sc local kubernetes.io/no-provisioner wffc\npvc c#c 1Gi Pending class=local\npod p claim=c cpu=2\n",
    );
    for n in 0..1_300 {
        state += &format!("node a{n:04} cpu=1\npv v{n:04} 1Gi Available class=local on=a{n:04}\n");
    }
    for n in 0..12 {
        state += &format!("node b{n:04} cordoned cpu=1 label=zone:z{n}\n");
    }
    let world = notation::parse(&state);
    check_table_in(
        &world,
        "p",
        "
            node                         claim c             beside its claims
            a0000 and 1,299 nodes like it  would take v0000    cpu: needs 2, 1 free of 1
            b0000 and 11 nodes like it     no matching volume  cordoned; cpu: needs 2, 1 free of 1
            Smallest change: ask for 1 less cpu, or give node a0000 as much more. Then it can be placed on node a0000.
        ",
    );
    let key = PodKey { namespace: "default".into(), name: "p".into() };
    let all = explain_pod(&mirror_of(&world, &[]), &key, usize::MAX).expect("there is such a pod");
    assert_eq!(all.matrix.expect("a table").rows.len(), 1_312, "each has a row when all are asked for");
    let few = explain_pod(&mirror_of(&world, &[]), &key, 1).expect("there is such a pod").matrix.expect("a table");
    assert_eq!((few.rows.len(), few.hidden), (1, 12));
}

#[test]
fn what_holds_of_one_node_is_not_said_of_others() {
    // The volume on n1 is too small; the others have none.
    check_table(
        "
            sc local kubernetes.io/no-provisioner wffc
            node n1
            node n2
            node n3
            node n4
            pv v1 1Gi Available class=local on=n1
            pvc c#c 2Gi Pending class=local
            pod p claim=c
        ",
        "p",
        "
            node                   claim c                                     beside its claims
            n1                     no matching volume; v1: needs 2Gi, has 1Gi  fits
            n2 and 2 nodes like it  no matching volume                         fits
            Smallest change: create a volume of class \"local\" with 2Gi or more for ReadWriteOnce and ReadOnlyMany that node n1 reaches. Then it can be placed on node n1.
        ",
    );
    check_table(
        "
            sc local kubernetes.io/no-provisioner wffc
            node n1
            pv v1 2Gi Available class=local on=n1 modes=ROX
            pvc c#c 2Gi Pending class=local modes=RWO
            pod p claim=c
        ",
        "p",
        "
            node  claim c                                      beside its claims
            n1    no matching volume; v1: lacks ReadWriteOnce  fits
            Smallest change: create a volume of class \"local\" with 2Gi or more for ReadWriteOnce that node n1 reaches. Then it can be placed on node n1.
        ",
    );
}

#[test]
fn the_reason_of_each_claim_is_told() {
    let world = {
        let mut world = notation::parse(
            "
                sc local kubernetes.io/no-provisioner wffc
                sc make example.com wffc
                sc full full.example.com wffc
                node n1 label=zone:a
                pv far 1Gi Bound ->bound#b on=n9
                pv kept 1Gi Available ->kept#k class=local on=n9
                pvc bound#b 1Gi Bound vol=far bc
                pvc kept#k 1Gi Pending class=local
                pvc pinned#p 1Gi Pending class=make
                pvc full#f 1Gi Pending class=full
                pvc zone#z 1Gi Pending class=zonal
                pod p claim=bound claim=kept claim=pinned claim=full claim=zone
            ",
        );
        world.put(
            Kind::Class,
            json!({"metadata": {"name": "zonal", "uid": "zonal"}, "provisioner": "example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]}),
        );
        world.put(
            Kind::CsiDriver,
            json!({"metadata": {"name": "full.example.com", "uid": "d"}, "spec": {"storageCapacity": true}}),
        );
        let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n9"}}});
        world.edit(&ClaimKey::new("default", "pinned").into(), selected);
        world
    };
    let key = PodKey { namespace: "default".into(), name: "p".into() };
    let explained = explain_pod(&mirror_of(&world, &[]), &key, LINES).expect("there is such a pod");
    let matrix = explained.matrix.expect("a table");
    let cells: Vec<&str> = matrix.rows[0].claims.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(
        cells,
        [
            "bound to far: node affinity conflict",
            "kept is reserved for it: node affinity conflict",
            "to be provisioned on n9",
            "not enough free storage",
            "class topology: none is provisioned here",
        ]
    );
    assert!(!matrix.rows[0].fits && matrix.rows[0].claims.iter().all(|cell| !cell.fits));
    assert_eq!(explained.change, None, "a volume does not move");
    assert_eq!(explained.waits_for.as_deref(), Some("No small change was found that would let it be placed."));
}

#[test]
fn claims_that_keep_a_pod_from_every_node_are_told_in_every_row() {
    check_table(
        "
            sc local kubernetes.io/no-provisioner wffc
            node n1
            node n2
            pv v1 1Gi Available class=local on=n1
            pvc c#c 1Gi Pending class=local
            pvc now#n 1Gi Pending class=
            pod p claim=c claim=gone claim=now
        ",
        "p",
        r#"
            node  claim c             claim gone                                claim now                                         beside its claims
            n1    would take v1       persistentvolumeclaim "gone" not found    pod has unbound immediate PersistentVolumeClaims  fits
            n2    no matching volume  persistentvolumeclaim "gone" not found    pod has unbound immediate PersistentVolumeClaims  fits
            Smallest change: create claim gone; and have claim now bound (see bindery explain pvc/now). Then it can be placed on node n1.
        "#,
    );
}

/// A state, what is advised, and following it.
type Advised = (String, &'static str, fn(&mut World));

/// What stands against the only node, and what is advised; following the advice, the pod is given the node.
#[test]
fn the_smallest_change_places_the_pod() {
    let claim = "sc local kubernetes.io/no-provisioner wffc\npvc c#c 10Gi Pending class=local\n";
    let then = " Then it can be placed on node n1.";
    let cases: [Advised; 11] = [
        ("node n1\npod p sel=disk:ssd".into(), "label node n1 with disk=ssd.", |world| {
            world.edit(&node_key("n1"), json!({"metadata": {"labels": {"disk": "ssd"}}}));
        }),
        ("node n1 cordoned\npod p".into(), "uncordon node n1.", |world| {
            world.edit(&node_key("n1"), json!({"spec": {"unschedulable": null}}));
        }),
        (
            "node n1 cpu=4\npod a cpu=3 node=n1\npod p cpu=2".into(),
            "free 1 of cpu on node n1, or ask for as much less.",
            |world| {
                world.edit(&node_key("n1"), json!({"status": {"allocatable": {"cpu": "5"}}}));
            },
        ),
        (
            "node n1\npod p other=example.com/gpu:1".into(),
            "ask for 1 less example.com/gpu, or give node n1 as much more.",
            |world| world.edit(&node_key("n1"), json!({"status": {"allocatable": {"example.com/gpu": "1"}}})),
        ),
        (
            "node n1 label=zone:a\nnode n2 label=zone:b cpu=1\npod a label=app:db node=n1\n\
             pod p label=app:db spread=app:db@zone:1 cpu=2"
                .into(),
            "let zone=a have more pods of its kind than others, by a larger maxSkew.",
            |world| notation::add(world, "pod p label=app:db spread=app:db@zone:2 cpu=2"),
        ),
        (
            "node n1\npod p label=app:db spread=app:db@zone:1".into(),
            "drop the pod's spread over zone, or give node n1 that label.",
            |world| world.edit(&node_key("n1"), json!({"metadata": {"labels": {"zone": "a"}}})),
        ),
        ("node n1\npod a port=80 node=n1\npod p port=80".into(), "end pod default/a.", |world| {
            world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "a".into() });
        }),
        ("node n1\npod a label=app:db node=n1\npod p apart=app:db".into(), "end pod default/a.", |world| {
            world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "a".into() });
        }),
        (
            format!("{claim}node n1\npod p claim=c"),
            "create a volume of class \"local\" with 10Gi or more for ReadWriteOnce and ReadOnlyMany that node n1 reaches.",
            |world| notation::add(world, "pv new 10Gi Available class=local on=n1"),
        ),
        (
            "sc make example.com wffc\npvc c#c 1Gi Pending class=make node=n9\nnode n1\npod p claim=c".into(),
            "remove the annotation volume.kubernetes.io/selected-node from claim c.",
            |world| {
                let unselected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": null}}});
                world.edit(&ClaimKey::new("default", "c").into(), unselected);
            },
        ),
        ("node n1\npod p gate=wait".into(), "remove its scheduling gates.", |world| {
            notation::add(world, "pod p");
        }),
    ];
    for (state, expected, follow) in cases {
        let mut world = notation::parse(&state);
        assert_eq!(advice_in(&world), format!("Smallest change: {expected}{then}"), "{state}");
        follow(&mut world);
        assert!(advice_in(&world).starts_with("It is given node n1"), "{state}: {}", advice_in(&world));
    }
}

#[test]
fn the_smallest_of_several_changes_is_told() {
    // Two things are against n1, one against n2, and what is against n3 cannot be changed.
    let state = "
        node n1 cordoned taint=a:b:NoSchedule
        node n2 taint=a:b:NoExecute
        node n3
        pv disk 1Gi Bound ->c#c label=topology.kubernetes.io/zone:z
        pvc c#c 1Gi Bound vol=disk bc
        pod p claim=c sel=kubernetes.io/hostname:n2
    ";
    let expected = "remove the taint a=b:NoExecute from node n2, or tolerate it. Then it can be placed on node n2.";
    assert_eq!(advice(state), format!("Smallest change: {expected}"));
    let both = state.replace("node n2 taint", "node n2 cordoned taint");
    let expected = "uncordon node n2; and remove the taint a=b:NoExecute from node n2, or tolerate it. Then it can be placed on node n2.";
    assert_eq!(advice(&both), format!("Smallest change: {expected}"));
}

#[test]
fn room_that_a_driver_tells_of_can_be_raised() {
    let mut world = notation::parse("sc make example.com wffc\npvc c#c 3Gi Pending class=make\nnode n1\npod p claim=c");
    world.put(
        Kind::CsiDriver,
        json!({"metadata": {"name": "example.com", "uid": "d"}, "spec": {"storageCapacity": true}}),
    );
    assert_eq!(
        advice_in(&world),
        "Smallest change: raise the capacity for class \"make\" that node n1 reaches to 3Gi or more (as a CSIStorageCapacity \
         tells it). Then it can be placed on node n1."
    );
    let room = json!({"metadata": {"namespace": "default", "name": "room", "uid": "room"}, "storageClassName": "make",
        "capacity": "3Gi", "nodeTopology": {}});
    world.put(Kind::Capacity, room);
    assert_eq!(advice_in(&world), "It is given node n1 when claim c is bound.");
}

#[test]
fn who_goes_first_is_told() {
    let state = "
        node n1 cpu=1
        pod a cpu=1 priority=5
        pod p cpu=1
    ";
    let text = super::explain(state, "pod/p");
    assert!(text.contains("note   to node n1; default/a goes first\n"), "{text}");
}
