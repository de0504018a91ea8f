//! What is said about pods that wait for a node, and about those that have one.

use super::explain;

#[test]
fn look() {
    let state = r#"
        sc local kubernetes.io/no-provisioner wffc
        sc make example.com wffc
        node n1 taint=gpu:yes:NoSchedule
        node n2
        node n3 cpu=1
        node n4 cordoned
        node n5 cordoned
        node n6 cordoned
        pv v1 1Gi Available class=local on=n1
        pv v2 500Mi Available class=local on=n2
        pv data 1Gi Bound ->d#d
        pvc d#d 1Gi Bound vol=data bc
        pvc c#c 1Gi Pending class=local
        pvc e#e 1Gi Pending class=make
        pod p claim=c claim=d claim=e cpu=2
        pod q node=n2 claim=d
        pod r cpu=1 sel=disk:ssd
    "#;
    println!("{}", explain(state, "pod/p"));
    println!("{}", explain(state, "pod/q"));
    println!("{}", explain(state, "pod/r"));
    panic!()
}
