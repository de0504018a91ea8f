//! Which claims get a volume, and which do not.

use bindery_model::{ClaimKey, ObjectKey};
use serde_json::json;

use crate::case::{Case, case};

const CLAIM: &str = "sc  gold csi.example.com
                     pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
const MADE: &str = "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                    pvc c#u1 1Gi Pending class=gold sp=csi.example.com";

pub fn cases() -> Vec<Case> {
    [provisioned(), not_provisioned(), sources()].into_iter().flatten().collect()
}

fn provisioned() -> Vec<Case> {
    vec![
        case("a claim for the provisioner gets a volume").before(CLAIM).end(MADE).events(&[
            "Normal Provisioning External provisioner is provisioning volume for claim \"default/c\"",
            "Normal ProvisioningSucceeded Successfully provisioned volume pvc-u1",
        ]),
        case("the beta annotation is accepted")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp-beta=csi.example.com",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp-beta=csi.example.com",
            ),
        case("another name prefix, and no finalizer")
            .before(CLAIM)
            .config(|config| {
                config.prefix = "vol".into();
                config.uid_length = Some(1);
                config.adds_finalizer = false;
            })
            .end(
                "pv  vol-u 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            ),
        case("provisioning of a deleted claim is finished, so that no storage is leaked")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com protected deleting",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com protected deleting",
            ),
        case("a node is selected")
            .before(
                "sc  gold csi.example.com wffc
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            ),
        case("the class is created later")
            .before("pvc c#u1 1Gi Pending class=gold sp=csi.example.com")
            .then(|cluster| bindery_simulation::notation::add(cluster, "sc gold csi.example.com"))
            .end(MADE),
    ]
}

fn not_provisioned() -> Vec<Case> {
    let nothing = |name, before| case(name).before(before).unchanged().events(&[]);
    vec![
        nothing(
            "the claim names a volume",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com vol=v",
        ),
        nothing(
            "the claim is for another provisioner",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=other.example.com",
        ),
        nothing(
            "the claim has no provisioner",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold",
        ),
        nothing("there is no class", "pvc c#u1 1Gi Pending class=gold sp=csi.example.com"),
        nothing(
            "the class belongs to another provisioner",
            "sc  gold other.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
        ),
        nothing(
            "no node is selected, and the alpha annotation is ignored",
            "sc  gold csi.example.com wffc
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com alpha-node=n1",
        ),
        nothing(
            "a malformed claim",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com modes=bad",
        ),
        case("a block device is requested, but not supported")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com mode=Block",
            )
            .config(|config| config.supports_block = false)
            .unchanged()
            .events(&["Warning ProvisioningFailed csi.example.com does not support block volume provisioning"]),
        case("its volume exists")
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Bound ->c#u1 class=gold source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            )
            .unchanged()
            .events(&[]),
        case("a volume of its name belongs to another claim")
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Bound ->other#u9 class=gold source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed volume pvc-u1 already exists and belongs to another claim"]),
        case("the claim is created and deleted").then(|cluster| bindery_simulation::notation::add(cluster, CLAIM)).then(|cluster| {
            cluster.delete(&ClaimKey::new("default", "c").into());
        })
        .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
    ]
}

/// Claims that are cloned.
fn sources() -> Vec<Case> {
    const SOURCE: &str = "fin=provisioner.storage.kubernetes.io/cloning-protection";
    assert!(SOURCE.ends_with(bindery_model::finalizer::CLONING));
    vec![
        case("a source is kept while another claim is cloned from it")
            .config(|config| config.supports_cloning = true)
            .before(
                "pvc source#u1 1Gi Bound vol=v fin=provisioner.storage.kubernetes.io/cloning-protection deleting
                 pvc copy#u2 1Gi Pending source=PersistentVolumeClaim",
            )
            .then(|cluster| {
                assert!(cluster.get(&ClaimKey::new("default", "source").into()).is_some(), "it is needed");
                let copy: ObjectKey = ClaimKey::new("default", "copy").into();
                cluster.edit(&copy, json!({"status": {"phase": "Bound"}}));
            })
            .end("pvc copy#u2 1Gi Bound source=PersistentVolumeClaim got=nothing"),
        case("a source that is not being deleted keeps its finalizer")
            .config(|config| config.supports_cloning = true)
            .before("pvc source#u1 1Gi Bound vol=v fin=provisioner.storage.kubernetes.io/cloning-protection")
            .unchanged(),
        case("a source without clones is unprotected at once, and other finalizers are kept")
            .config(|config| config.supports_cloning = true)
            .before("pvc source#u1 1Gi Bound vol=v fin=a/b fin=provisioner.storage.kubernetes.io/cloning-protection deleting")
            .end("pvc source#u1 1Gi Bound vol=v fin=a/b deleting"),
    ]
}
