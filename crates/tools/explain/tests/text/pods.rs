//! Explanations of pods with and without a node.

use bindery_explain::{LINES, explain_pod};
use bindery_model::{ClaimKey, Kind, ObjectKey, PodKey};
use bindery_simulation::run::cache_of;
use bindery_simulation::{SimulatedCluster, notation};
use serde_json::json;

use super::{check, explain_in};

/// The table and the sentence after it.
fn table(cluster: &SimulatedCluster, pod: &str) -> String {
    let text = explain_in(cluster, &format!("pod/{pod}"));
    let from = text.find("\n  node ").unwrap_or_else(|| panic!("no table:\n{text}"));
    text[from..].to_owned()
}

fn check_table(state: &str, pod: &str, expected: &str) {
    check_table_in(&notation::parse(state), pod, expected);
}

/// Columns are separated by two spaces or more; their alignment is not compared.
fn check_table_in(cluster: &SimulatedCluster, pod: &str, expected: &str) {
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ");
    let lines = |text: &str| text.trim().lines().map(columns).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&table(cluster, pod)), lines(expected));
}

/// The last sentence.
fn advice(state: &str) -> String {
    advice_in(&notation::parse(state))
}

fn advice_in(cluster: &SimulatedCluster) -> String {
    explain_in(cluster, "pod/p").lines().last().unwrap_or_default().to_owned()
}

fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, name)
}

#[test]
fn waiting_pod_shows_every_node_and_claim() {
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
              next   updates Pod default/p
              logs   volume logs; Pending: see bindery explain pvc/logs
              data   volume data; Bound to disk
              tmp    volume tmp; Pending: see bindery explain pvc/tmp
              node  claim logs                                    claim data                claim tmp             other checks
              n1    would use v1                                  bound to disk, reachable  would be provisioned  taint gpu=yes:NoSchedule
              n2    no matching volume; v2: needs 1Gi, has 500Mi  bound to disk, reachable  would be provisioned  fits
              n3    no matching volume                            bound to disk, reachable  would be provisioned  cpu: needs 2, 1 free of 1
            Smallest change: remove the taint gpu=yes:NoSchedule from node n1, or tolerate it. Then it can be scheduled on node n1.
        ",
    );
}

#[test]
fn assigned_pod_shows_its_volumes_on_the_node() {
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
              node  claim data                other checks
              n1    bound to disk, reachable  fits
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
            node  claim data                             other checks
            n1    bound to disk: node affinity conflict  fits
        ",
    );
}

#[test]
fn schedulable_pod_shows_its_node() {
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
            node  claim c             other checks
            n2    would use v2       fits
            n1    no matching volume  fits
            It is assigned to node n2 when claim c is bound.
        ",
    );
}

#[test]
fn similar_nodes_share_a_row() {
    let mut state = String::from(
        "sc local kubernetes.io/no-provisioner wffc\npvc c#c 1Gi Pending class=local\npod p claim=c cpu=2\n",
    );
    for n in 0..1_300 {
        state += &format!("node a{n:04} cpu=1\npv v{n:04} 1Gi Available class=local on=a{n:04}\n");
    }
    for n in 0..12 {
        state += &format!("node b{n:04} cordoned cpu=1 label=zone:z{n}\n");
    }
    let cluster = notation::parse(&state);
    check_table_in(
        &cluster,
        "p",
        "
            node                         claim c             other checks
            a0000 and 1,299 similar nodes  would use v0000    cpu: needs 2, 1 free of 1
            b0000 and 11 similar nodes     no matching volume  cordoned; cpu: needs 2, 1 free of 1
            Smallest change: request 1 less cpu, or add as much to node a0000. Then it can be scheduled on node a0000.
        ",
    );
    let key = PodKey { namespace: "default".into(), name: "p".into() };
    let all = explain_pod(&cache_of(&cluster, &[]), &key, usize::MAX).expect("the pod exists");
    assert_eq!(all.matrix.expect("a table").rows.len(), 1_312, "every node has a row");
    let few = explain_pod(&cache_of(&cluster, &[]), &key, 1).expect("the pod exists").matrix.expect("a table");
    assert_eq!((few.rows.len(), few.hidden), (1, 12));
}

#[test]
fn details_of_one_node_are_not_shown_for_a_group() {
    // The volume on n1 is too small; the other nodes have no volume.
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
            node                   claim c                                     other checks
            n1                     no matching volume; v1: needs 2Gi, has 1Gi  fits
            n2 and 2 similar nodes  no matching volume                         fits
            Smallest change: create a volume of class \"local\" with 2Gi or more for ReadWriteOnce and ReadOnlyMany reachable from node n1. Then it can be scheduled on node n1.
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
            node  claim c                                      other checks
            n1    no matching volume; v1: lacks ReadWriteOnce  fits
            Smallest change: create a volume of class \"local\" with 2Gi or more for ReadWriteOnce reachable from node n1. Then it can be scheduled on node n1.
        ",
    );
}

#[test]
fn every_reason_of_a_claim_is_shown() {
    let cluster = {
        let mut cluster = notation::parse(
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
        cluster.put(
            Kind::Class,
            json!({"metadata": {"name": "zonal", "uid": "zonal"}, "provisioner": "example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]}),
        );
        cluster.put(
            Kind::CsiDriver,
            json!({"metadata": {"name": "full.example.com", "uid": "d"}, "spec": {"storageCapacity": true}}),
        );
        let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n9"}}});
        cluster.edit(&ClaimKey::new("default", "pinned").into(), selected);
        cluster
    };
    let key = PodKey { namespace: "default".into(), name: "p".into() };
    let explained = explain_pod(&cache_of(&cluster, &[]), &key, LINES).expect("the pod exists");
    let matrix = explained.matrix.expect("a table");
    let cells: Vec<&str> = matrix.rows[0].claims.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(
        cells,
        [
            "bound to far: node affinity conflict",
            "kept is reserved for it: node affinity conflict",
            "will be provisioned on n9",
            "not enough free storage",
            "cannot be provisioned here (allowedTopologies)",
        ]
    );
    assert!(!matrix.rows[0].fits && matrix.rows[0].claims.iter().all(|cell| !cell.fits));
    assert_eq!(explained.change, None, "a volume cannot be moved");
    assert_eq!(explained.waits_for.as_deref(), Some("No small change was found that would make it schedulable."));
}

#[test]
fn claims_that_block_all_nodes_are_shown_in_every_row() {
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
            node  claim c             claim gone                                claim now                                         other checks
            n1    would use v1       persistentvolumeclaim "gone" not found    pod has unbound immediate PersistentVolumeClaims  fits
            n2    no matching volume  persistentvolumeclaim "gone" not found    pod has unbound immediate PersistentVolumeClaims  fits
            Smallest change: create claim gone; and get claim now bound (see bindery explain pvc/now). Then it can be scheduled on node n1.
        "#,
    );
}

/// A state, the expected advice, and a function that follows it.
type Advised = (String, &'static str, fn(&mut SimulatedCluster));

/// An obstacle of the only node, and the advice. After following it, the pod is assigned to the
/// node.
#[test]
fn smallest_change_makes_the_pod_schedulable() {
    let claim = "sc local kubernetes.io/no-provisioner wffc\npvc c#c 10Gi Pending class=local\n";
    let then = " Then it can be scheduled on node n1.";
    let cases: [Advised; 11] = [
        ("node n1\npod p sel=disk:ssd".into(), "label node n1 with disk=ssd.", |cluster| {
            cluster.edit(&node_key("n1"), json!({"metadata": {"labels": {"disk": "ssd"}}}));
        }),
        ("node n1 cordoned\npod p".into(), "uncordon node n1.", |cluster| {
            cluster.edit(&node_key("n1"), json!({"spec": {"unschedulable": null}}));
        }),
        (
            "node n1 cpu=4\npod a cpu=3 node=n1\npod p cpu=2".into(),
            "free 1 of cpu on node n1, or request as much less.",
            |cluster| {
                cluster.edit(&node_key("n1"), json!({"status": {"allocatable": {"cpu": "5"}}}));
            },
        ),
        (
            "node n1\npod p other=example.com/gpu:1".into(),
            "request 1 less example.com/gpu, or add as much to node n1.",
            |cluster| cluster.edit(&node_key("n1"), json!({"status": {"allocatable": {"example.com/gpu": "1"}}})),
        ),
        (
            "node n1 label=zone:a\nnode n2 label=zone:b cpu=1\npod a label=app:db node=n1\n\
             pod p label=app:db spread=app:db@zone:1 cpu=2"
                .into(),
            "raise maxSkew of the pod's topology spread constraint on zone.",
            |cluster| notation::add(cluster, "pod p label=app:db spread=app:db@zone:2 cpu=2"),
        ),
        (
            "node n1\npod p label=app:db spread=app:db@zone:1".into(),
            "remove the pod's topology spread constraint on zone, or add that label to node n1.",
            |cluster| cluster.edit(&node_key("n1"), json!({"metadata": {"labels": {"zone": "a"}}})),
        ),
        ("node n1\npod a port=80 node=n1\npod p port=80".into(), "delete pod default/a.", |cluster| {
            cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "a".into() });
        }),
        ("node n1\npod a label=app:db node=n1\npod p apart=app:db".into(), "delete pod default/a.", |cluster| {
            cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "a".into() });
        }),
        (
            format!("{claim}node n1\npod p claim=c"),
            "create a volume of class \"local\" with 10Gi or more for ReadWriteOnce and ReadOnlyMany reachable from node n1.",
            |cluster| notation::add(cluster, "pv new 10Gi Available class=local on=n1"),
        ),
        (
            "sc make example.com wffc\npvc c#c 1Gi Pending class=make node=n9\nnode n1\npod p claim=c".into(),
            "remove the annotation volume.kubernetes.io/selected-node from claim c.",
            |cluster| {
                let unselected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": null}}});
                cluster.edit(&ClaimKey::new("default", "c").into(), unselected);
            },
        ),
        ("node n1\npod p gate=wait".into(), "remove the pod's scheduling gates.", |cluster| {
            notation::add(cluster, "pod p");
        }),
    ];
    for (state, expected, follow) in cases {
        let mut cluster = notation::parse(&state);
        assert_eq!(advice_in(&cluster), format!("Smallest change: {expected}{then}"), "{state}");
        follow(&mut cluster);
        assert!(advice_in(&cluster).starts_with("It is assigned to node n1"), "{state}: {}", advice_in(&cluster));
    }
}

#[test]
fn smallest_of_several_changes_is_shown() {
    // n1 has two obstacles, n2 has one, and the obstacle of n3 has no remedy.
    let state = "
        node n1 cordoned taint=a:b:NoSchedule
        node n2 taint=a:b:NoExecute
        node n3
        pv disk 1Gi Bound ->c#c label=topology.kubernetes.io/zone:z
        pvc c#c 1Gi Bound vol=disk bc
        pod p claim=c sel=kubernetes.io/hostname:n2
    ";
    let expected = "remove the taint a=b:NoExecute from node n2, or tolerate it. Then it can be scheduled on node n2.";
    assert_eq!(advice(state), format!("Smallest change: {expected}"));
    let both = state.replace("node n2 taint", "node n2 cordoned taint");
    let expected = "uncordon node n2; and remove the taint a=b:NoExecute from node n2, or tolerate it. Then it can be scheduled on node n2.";
    assert_eq!(advice(&both), format!("Smallest change: {expected}"));
}

#[test]
fn capacity_of_a_driver_can_be_raised() {
    let mut cluster =
        notation::parse("sc make example.com wffc\npvc c#c 3Gi Pending class=make\nnode n1\npod p claim=c");
    cluster.put(
        Kind::CsiDriver,
        json!({"metadata": {"name": "example.com", "uid": "d"}, "spec": {"storageCapacity": true}}),
    );
    assert_eq!(
        advice_in(&cluster),
        "Smallest change: raise the capacity of class \"make\" for node n1 to 3Gi or more (as reported by \
         CSIStorageCapacity). Then it can be scheduled on node n1."
    );
    let capacity = json!({"metadata": {"namespace": "default", "name": "capacity", "uid": "capacity"}, "storageClassName": "make",
        "capacity": "3Gi", "nodeTopology": {}});
    cluster.put(Kind::Capacity, capacity);
    assert_eq!(advice_in(&cluster), "It is assigned to node n1 when claim c is bound.");
}

#[test]
fn pod_that_is_scheduled_first_is_shown() {
    let state = "
        node n1 cpu=1
        pod a cpu=1 priority=5
        pod p cpu=1
    ";
    let text = super::explain(state, "pod/p");
    assert!(text.contains("note   to node n1; default/a is scheduled first\n"), "{text}");
}
