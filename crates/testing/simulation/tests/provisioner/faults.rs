//! Failures and lost answers of the storage backend: no storage is leaked.

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

/// Removes all scripted failures.
pub fn recover(cluster: &mut SimulatedCluster) {
    if let Some(storage) = &mut cluster.storage {
        storage.create_responses.clear();
        storage.delete_responses.clear();
    }
}

pub fn cases() -> Vec<Case> {
    [answers(), records(), saving(), users()].into_iter().flatten().collect()
}

fn answers() -> Vec<Case> {
    vec![
        case("creation fails twice, then succeeds")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Nothing), Response::Fails(FailureEffect::Nothing)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed scripted failure",
                "Normal Provisioning",
                "Warning ProvisioningFailed scripted failure",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("the first call is not answered, then creation succeeds")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Unknown), Response::Fails(FailureEffect::Unknown)].into())
            .end(MADE),
        case("the request is outdated: no failure is reported")
            .before(CLAIM)
            .storage(|storage| {
                storage.prepare_responses = [FailureEffect::Stale].into();
                storage.create_responses = [Response::Fails(FailureEffect::Stale)].into();
            })
            .end(MADE)
            .events(&["Normal Provisioning", "Normal ProvisioningSucceeded"]),
        case("creation succeeds, and the answer is lost")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::DoneAnswerLost, Response::DoneAnswerLost].into())
            .end(MADE),
        case("creation succeeds without an answer, and later calls are not possible: the record is kept")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                recover(cluster);
                if let Some(storage) = &mut cluster.storage {
                    storage.prepare_responses =
                        [FailureEffect::Nothing, FailureEffect::Reschedule, FailureEffect::Infeasible, FailureEffect::NotOurs, FailureEffect::NotAttempted].into();
                }
                cluster.delete(&ClaimKey::new("default", "c").into());
            })
            .end("pv pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("creation succeeds without an answer, and later a volume with other parameters is reported: the record is kept")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                recover(cluster);
                if let Some(storage) = &mut cluster.storage {
                    storage.create_responses = vec![Response::Fails(FailureEffect::NameTaken); 3].into();
                }
                cluster.delete(&ClaimKey::new("default", "c").into());
            })
            .end("pv pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("a volume of that name exists with other parameters")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::NameTaken)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed scripted failure",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("preparation fails for a while")
            .before(CLAIM)
            .storage(|storage| storage.prepare_responses = [FailureEffect::NotAttempted, FailureEffect::NotAttempted].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed scripted failure",
                "Normal Provisioning",
                "Warning ProvisioningFailed scripted failure",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("the storage backend is unreachable: nothing was requested, and no record is left")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::NotAttempted)].into())
            .end(MADE),
        case("creation succeeds without an answer, and later the storage backend is unreachable")
            .before(CLAIM)
            .storage(|storage| {
                storage.create_responses = [Response::DoneAnswerLost, Response::Fails(FailureEffect::NotAttempted)].into();
            })
            .end(MADE)
            .with_one_leader(),
        case("creation is infeasible: it is retried rarely")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Infeasible)].into())
            .end(MADE)
            .events(&[
                "Normal Provisioning",
                "Warning ProvisioningFailed Volume provisioning failed with infeasible error. Retries will be delayed. scripted failure",
                "Normal Provisioning",
                "Normal ProvisioningSucceeded",
            ]),
        case("a populator's")
            .before(CLAIM)
            .storage(|storage| storage.prepare_responses = vec![FailureEffect::NotOurs; 99].into())
            .end(UNMADE)
            .retries_forever(),
        case("the claim belongs to another provisioner after all")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::Fails(FailureEffect::NotOurs); 99].into())
            .end(UNMADE)
            .retries_forever()
            .leaves_record()
            .with_one_leader(),
        case("no capacity on the node: it is rescheduled")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::Fails(FailureEffect::Reschedule); 9].into())
            .end(UNMADE)
            .events(&["Normal Provisioning", "Warning ProvisioningFailed scripted failure"]),
        case("no capacity on the node, found during preparation")
            .before(CHOSEN)
            .storage(|storage| storage.prepare_responses = vec![FailureEffect::Reschedule; 9].into())
            .end(UNMADE),
        case("no capacity, and no node is selected: it is retried")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = [Response::Fails(FailureEffect::Reschedule)].into())
            .end(MADE),
        case("unknown outcome, then no capacity: only then it is rescheduled")
            .before(CHOSEN)
            .storage(|storage| {
                storage.create_responses = vec![Response::Fails(FailureEffect::Reschedule); 9].into();
                storage.create_responses.push_front(Response::Fails(FailureEffect::Unknown));
            })
            .end(UNMADE),
        case("unknown outcome on one node, and another is selected: the first is finished")
            .before(CHOSEN)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                recover(cluster);
                let claim: ObjectKey = ClaimKey::new("default", "c").into();
                cluster.edit(&claim, json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n2"}}}));
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                  pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n2"),
    ]
}

/// Failures of writing records.
fn records() -> Vec<Case> {
    let injected =
        |verb, error: RequestError, is_applied| InjectedError { verb, kind: Kind::Record, error, is_applied };
    let lost = |verb, is_applied| injected(verb, RequestError::Lost, is_applied);
    vec![
        case("the record cannot be written for a while: the storage is not called")
            .before(CLAIM)
            .error(injected("create", RequestError::Error(500, "etcd is on fire".into()), false))
            .error(injected("create", RequestError::Error(500, "etcd is on fire".into()), false))
            .end(MADE),
        case("the answer to writing the record is lost").before(CLAIM).error(lost("create", true)).end(MADE),
        case("the request to write the record is lost").before(CLAIM).error(lost("create", false)).end(MADE),
        case("the answer to removing the record is lost").before(CLAIM).error(lost("write", true)).end(MADE),
        case("the request to remove the record is lost").before(CLAIM).error(lost("write", false)).end(MADE),
        case("an error after an unknown outcome does not end the record: the claim is deleted, and nothing is leaked")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .storage(|storage| {
                storage.create_responses = vec![Response::Fails(FailureEffect::Nothing); 40].into();
                storage.create_responses.push_front(Response::DoneAnswerLost);
            })
            .then(|cluster| {
                cluster.delete(&ClaimKey::new("default", "c").into());
                assert!(cluster.get(&ClaimKey::new("default", "c").into()).is_none(), "the claim is deleted at once");
                recover(cluster);
            })
            .end("")
            .with_one_leader(),
    ]
}

fn saving() -> Vec<Case> {
    let injected =
        |error: RequestError, is_applied| InjectedError { verb: "create", kind: Kind::Volume, error, is_applied };
    let no = || injected(RequestError::Error(500, "etcd is on fire".into()), false);
    vec![
        case("the PersistentVolume cannot be created for a while: the storage is kept")
            .before(CLAIM)
            .error(no())
            .error(no())
            .error(no())
            .end(MADE),
        case("the answer to creating the PersistentVolume is lost")
            .before(CLAIM)
            .error(injected(RequestError::Lost, true))
            .end(MADE),
        case("a PersistentVolume of that name is created in the meantime with other storage: the unused storage is deleted")
            .before(CLAIM)
            .storage(|storage| {
                storage.create_responses = vec![Response::Fails(FailureEffect::Nothing); 99].into();
                storage.delete_responses = [Response::Fails(FailureEffect::Nothing)].into();
            })
            .then(|cluster| {
                // The watch event of the volume is late: its creation is rejected first.
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
        case("its volume is being deleted: another is created afterwards")
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
        case("the claim is deleted while the outcome is unknown: it is gone at once, and its storage becomes a volume")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                cluster.delete(&ClaimKey::new("default", "c").into());
                recover(cluster);
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("the claim and its class are deleted while the outcome is unknown: the same call is repeated")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                cluster.delete(&ClaimKey::new("default", "c").into());
                cluster.delete(&ObjectKey::cluster(Kind::Class, "gold"));
                recover(cluster);
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("the class has other parameters while the outcome is unknown: the recorded ones are used")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                cluster.edit(&ObjectKey::cluster(Kind::Class, "gold"), json!({"parameters": {"tier": "other"}}));
                recover(cluster);
            })
            .end(MADE),
        case("a forged intent does nothing, and its finalizer is removed once the volume exists")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com fin=bindery.dev/provisioning",
            )
            .end(MADE),
        case("the finalizer of an earlier version is removed from a claim that is bound")
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Bound class=gold sp=csi.example.com vol=v fin=bindery.dev/provisioning",
            )
            .end("pvc c#u1 1Gi Bound class=gold sp=csi.example.com vol=v"),
        case("its volume is saved without an answer, and then reserved for no claim: the record is removed")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                // As if the claim was bound to another volume in the meantime.
                let lines = "pv pvc-u1 1Gi Available class=gold source=csi:csi.example.com by=csi.example.com";
                bindery_simulation::notation::add(cluster, lines);
                let handle = cluster.storage.as_ref().map(|storage| storage.handles["pvc-u1"].clone());
                let csi = json!({"csi": {"volumeHandle": handle}});
                cluster.edit(&ObjectKey::volume("pvc-u1"), json!({"spec": csi}));
                recover(cluster);
            })
            .end(
                "pv  pvc-u1 1Gi Available class=gold source=csi:csi.example.com by=csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com",
            ),
        case("the claim is bound manually while the outcome is unknown: the PersistentVolume is created anyway")
            .before(CLAIM)
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                recover(cluster);
                let claim: ObjectKey = ClaimKey::new("default", "c").into();
                cluster.edit(&claim, json!({"spec": {"volumeName": "mine"}}));
            })
            .end("pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                  pvc c#u1 1Gi Pending class=gold sp=csi.example.com vol=mine"),
    ]
}
