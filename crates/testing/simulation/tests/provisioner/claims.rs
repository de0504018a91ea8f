//! For which claims a volume is made, and for which not.

use bindery_model::{ClaimKey, ObjectKey};
use serde_json::json;

use crate::case::{Case, case};

const CLAIM: &str = "sc  gold csi.example.com
                     pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
const MADE: &str = "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                    pvc c#u1 1Gi Pending class=gold sp=csi.example.com";

pub fn cases() -> Vec<Case> {
    [wanted(), not_wanted(), sources()].into_iter().flatten().collect()
}

fn wanted() -> Vec<Case> {
    vec![
        case("a claim that asks for a volume gets one").before(CLAIM).end(MADE).events(&[
            "Normal Provisioning External provisioner is provisioning volume for claim \"default/c\"",
            "Normal ProvisioningSucceeded Successfully provisioned volume pvc-u1",
        ]),
        case("the older annotation will do")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp-beta=csi.example.com",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp-beta=csi.example.com",
            ),
        case("a name of its own, and without a guard")
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
        case("a claim that somebody deleted is served to the end, so that nothing is left behind")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com guarded deleting",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com guarded deleting",
            ),
        case("a node was chosen")
            .before(
                "sc  gold csi.example.com wffc
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            )
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1",
            ),
        case("a class that appears later")
            .before("pvc c#u1 1Gi Pending class=gold sp=csi.example.com")
            .then(|world| bindery_simulation::notation::add(world, "sc gold csi.example.com"))
            .end(MADE),
    ]
}

fn not_wanted() -> Vec<Case> {
    let nothing = |name, before| case(name).before(before).unchanged().events(&[]);
    vec![
        nothing(
            "it names a volume",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com vol=v",
        ),
        nothing(
            "another provisioner was asked",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=other.example.com",
        ),
        nothing(
            "nobody was asked",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold",
        ),
        nothing("there is no class", "pvc c#u1 1Gi Pending class=gold sp=csi.example.com"),
        nothing(
            "the class is another's",
            "sc  gold other.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
        ),
        nothing(
            "no node was chosen, and the older annotation does not count here",
            "sc  gold csi.example.com wffc
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com alpha-node=n1",
        ),
        nothing(
            "a claim that cannot be understood",
            "sc  gold csi.example.com
             pvc c#u1 1Gi Pending class=gold sp=csi.example.com modes=bad",
        ),
        case("it wants a block device, and there is none")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com mode=Block",
            )
            .config(|config| config.supports_block = false)
            .unchanged()
            .events(&["Warning ProvisioningFailed csi.example.com does not support block volume provisioning"]),
        case("its volume is there")
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Bound ->c#u1 class=gold source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            )
            .unchanged()
            .events(&[]),
        case("a volume of its name is another claim's")
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Bound ->other#u9 class=gold source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed volume pvc-u1 already exists and belongs to another claim"]),
        case("it is gone").then(|world| bindery_simulation::notation::add(world, CLAIM)).then(|world| {
            world.delete(&ClaimKey::new("default", "c").into());
        })
        .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
    ]
}

/// Claims from which others are filled.
fn sources() -> Vec<Case> {
    const SOURCE: &str = "fin=provisioner.storage.kubernetes.io/cloning-protection";
    assert!(SOURCE.ends_with(bindery_model::finalizer::CLONING));
    vec![
        case("a source stays while another claim is filled from it, and goes then")
            .config(|config| config.supports_cloning = true)
            .before(
                "pvc source#u1 1Gi Bound vol=v fin=provisioner.storage.kubernetes.io/cloning-protection deleting
                 pvc copy#u2 1Gi Pending source=PersistentVolumeClaim",
            )
            .then(|world| {
                assert!(world.get(&ClaimKey::new("default", "source").into()).is_some(), "it is needed");
                let copy: ObjectKey = ClaimKey::new("default", "copy").into();
                world.edit(&copy, json!({"status": {"phase": "Bound"}}));
            })
            .end("pvc copy#u2 1Gi Bound source=PersistentVolumeClaim got=nothing"),
        case("a source that nobody deleted keeps its guard")
            .config(|config| config.supports_cloning = true)
            .before("pvc source#u1 1Gi Bound vol=v fin=provisioner.storage.kubernetes.io/cloning-protection")
            .unchanged(),
        case("a source without clones goes at once, and other finalizers stay")
            .config(|config| config.supports_cloning = true)
            .before("pvc source#u1 1Gi Bound vol=v fin=a/b fin=provisioner.storage.kubernetes.io/cloning-protection deleting")
            .end("pvc source#u1 1Gi Bound vol=v fin=a/b deleting"),
    ]
}
