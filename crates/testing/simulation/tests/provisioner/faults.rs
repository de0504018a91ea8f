//! A storage that says no, or nothing; and what nobody must forget meanwhile.

use bindery_engine::RequestError;
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Response;
use bindery_simulation::{InjectedError, SimulatedCluster};
use serde_json::json;

use crate::case::{Case, case};

const CLAIM: &str = "sc  gold csi.example.com
                     pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
const MADE: &str = "pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                    pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
const UNMADE: &str = "pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
const CHOSEN: &str = "sc  gold csi.example.com wffc
                      pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1";

/// The storage is well again.
pub fn heal(cluster: &mut SimulatedCluster) {
    if let Some(storage) = &mut cluster.storage {
        storage.create_responses.clear();
        storage.delete_responses.clear();
    }
}

pub fn cases() -> Vec<Case> {
    [answers(), saving(), users()].into_iter().flatten().collect()
}

fn answers() -> Vec<Case> {
    vec![
        case("it fails twice, then it does")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Nothing), Response::Fails(FailureEffect::Nothing)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed told to fail",
                "Normal Provisioning",
                "Warning ProvisioningFailed told to fail",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("it says nothing, then it does")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Unknown), Response::Fails(FailureEffect::Unknown)].into())
            .end(MADE),
        case("what it is asked for is gone, as far as it can see: nothing has failed")
            .before(CLAIM)
            .storage(|storage| {
                storage.prepare_responses = [FailureEffect::Stale].into();
                storage.create_responses = [Response::Fails(FailureEffect::Stale)].into();
            })
            .end(MADE)
            .events(&["Normal Provisioning", "Normal ProvisioningSucceeded"]),
        case("it does, and nobody hears of it")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::DoneAnswerLost, Response::DoneAnswerLost].into())
            .end(MADE),
        case("it did, and cannot be asked after that, for whatever reason: that there may be something is not forgotten")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                heal(cluster);
                if let Some(storage) = &mut cluster.storage {
                    storage.prepare_responses =
                        [FailureEffect::Nothing, FailureEffect::Elsewhere, FailureEffect::Never, FailureEffect::NotOurs, FailureEffect::Untried].into();
                }
                cluster.delete(&ClaimKey::new("default", "c").into());
            })
            .end("pv pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("it did, and is asked for something else after that: what there is is not forgotten")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                heal(cluster);
                if let Some(storage) = &mut cluster.storage {
                    storage.create_responses = vec![Response::Fails(FailureEffect::Taken); 3].into();
                }
                cluster.delete(&ClaimKey::new("default", "c").into());
            })
            .end("pv pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("there is something else of that name, that it was never asked for")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Taken)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed told to fail",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("it cannot be asked for a while")
            .before(CLAIM)
            .storage(|storage| storage.prepare_responses = [FailureEffect::Untried, FailureEffect::Untried].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed told to fail",
                "Normal Provisioning",
                "Warning ProvisioningFailed told to fail",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("it can be asked, but not reached: nothing was asked, and nothing is left on the claim")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Untried)].into())
            .end(MADE),
        case("it did unheard, and cannot be asked or reached after that")
            .before(CLAIM)
            .storage(|storage| {
                storage.create_responses = [Response::DoneAnswerLost, Response::Fails(FailureEffect::Untried)].into();
            })
            .end(MADE)
            .for_one(),
        case("it will never do: it is asked again, but seldom")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Never)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed Volume provisioning failed with infeasible error. Retries will be delayed. told to fail",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("a populator's")
            .before(CLAIM)
            .storage(|storage| storage.prepare_responses = vec![FailureEffect::NotOurs; 99].into())
            .end(UNMADE)
            .goes_on(),
        case("another's after all")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::Fails(FailureEffect::NotOurs); 99].into())
            .end(UNMADE)
            .goes_on(),
        case("nothing here: another node is asked for")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::Fails(FailureEffect::Elsewhere); 9].into())
            .end(UNMADE)
            .events(&["Normal Provisioning", "Warning ProvisioningFailed told to fail"]),
        case("nothing here, found out before asking")
            .before(CHOSEN)
            .storage(|storage| storage.prepare_responses = vec![FailureEffect::Elsewhere; 9].into())
            .end(UNMADE),
        case("nothing anywhere, and no node was chosen: it is tried again")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Elsewhere)].into())
            .end(MADE),
        case("uncertain, then nothing here: only then is another node asked for")
            .before(CHOSEN)
            .storage(|storage| {
                storage.create_responses = vec![Response::Fails(FailureEffect::Elsewhere); 9].into();
                storage.create_responses.push_front(Response::Fails(FailureEffect::Unknown));
            })
            .end(UNMADE),
        case("uncertain on one node, and somebody chooses another: the first is finished")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                heal(cluster);
                let claim: ObjectKey = ClaimKey::new("default", "c").into();
                cluster.edit(&claim, json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n2"}}}));
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                  pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n2"),
    ]
}

fn saving() -> Vec<Case> {
    let refused =
        |error: RequestError, is_applied| InjectedError { verb: "create", kind: Kind::Volume, error, is_applied };
    let no = || refused(RequestError::Error("etcd is on fire".into()), false);
    vec![
        case("the volume cannot be created for a while: what was made is kept")
            .before(CLAIM)
            .error(no())
            .error(no())
            .error(no())
            .end(MADE),
        case("the volume is created, and the answer lost")
            .before(CLAIM)
            .error(refused(RequestError::Lost, true))
            .end(MADE),
        case("a volume of that name appears meanwhile, with other storage behind it: what was made in vain is removed")
            .before(CLAIM)
            .storage(|storage| {
                storage.create_responses = vec![Response::Fails(FailureEffect::Nothing); 99].into();
                storage.delete_responses = [Response::Fails(FailureEffect::Nothing)].into();
            })
            .then(|cluster| {
                // Word of the volume comes late: its creation is refused first.
                let lines = "pv pvc-u1 1Gi Pending ->c#u1 class=gold source=csi:csi.example.com by=csi.example.com";
                bindery_simulation::notation::add(cluster, lines);
                cluster.pending_events.pop_back();
                if let Some(storage) = &mut cluster.storage {
                    storage.handles.insert("other".into(), "handle".into());
                    storage.create_responses.clear();
                }
            })
            .end(
                "pv  pvc-u1 1Gi Pending ->c#u1 class=gold source=csi:csi.example.com by=csi.example.com
                  pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            ),
        case("its volume is being deleted: another is made once it is gone")
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Bound ->c#u1 class=gold source=csi:csi.example.com by=other fin=a/b deleting
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            )
            .then(|cluster| {
                cluster.remove(&ObjectKey::volume("pvc-u1"));
                if let Some(storage) = &mut cluster.storage {
                    storage.handles.clear();
                }
            })
            .end(MADE),
    ]
}

fn users() -> Vec<Case> {
    vec![
        case("the claim is deleted while nobody knows: it stays until that is known, and what was made becomes a volume")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                cluster.delete(&ClaimKey::new("default", "c").into());
                heal(cluster);
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("somebody writes over the intent")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                heal(cluster);
                let claim: ObjectKey = ClaimKey::new("default", "c").into();
                cluster.edit(&claim, json!({"metadata": {"annotations": {"bindery.dev/provisioning": "{"}}}));
            })
            .end(MADE),
        case("the claim is bound by hand while nobody knows: what was made becomes a volume all the same")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                heal(cluster);
                let claim: ObjectKey = ClaimKey::new("default", "c").into();
                cluster.edit(&claim, json!({"spec": {"volumeName": "mine"}}));
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                  pvc c#u1 1Gi Pending class=gold sp=csi.example.com vol=mine"),
    ]
}
