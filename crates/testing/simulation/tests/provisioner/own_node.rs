//! A provisioner on each node: it creates and deletes volumes of that node only.

use bindery_provisioner::{Config, OwnNode};

use crate::case::{Case, case};

/// The provisioner of node n1.
fn on_n1(config: &mut Config) {
    let place = [("kubernetes.io/hostname".into(), "n1".into())].into_iter().collect();
    config.node = Some(OwnNode { name: "n1".into(), segment: place });
}

pub fn cases() -> Vec<Case> {
    let left = |name, before| case(name).before(before).config(on_n1).unchanged().events(&[]);
    vec![
        case("its own node is selected")
            .before(
                "sc  gold csi.example.com wffc
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            )
            .config(on_n1)
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            ),
        left(
            "another node is selected",
            "sc  gold csi.example.com wffc
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n2",
        ),
        left(
            "immediate binding without a selected node: the claim must be assigned first",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
        ),
        left(
            "a volume of another node",
            "pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com on=n2",
        ),
        left(
            "a bound volume of another node",
            "pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com on=n2",
        ),
        case("a volume of the same node")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com on=n1")
            .config(on_n1)
            .end(""),
        case("a volume without node affinity")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com")
            .config(on_n1)
            .end(""),
    ]
}
