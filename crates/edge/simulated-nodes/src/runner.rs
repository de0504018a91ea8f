//! Carries out what the simulated kubelet decides, one action at a time for each pod.

use std::sync::Arc;
use std::time::Duration;

use bindery_cache::Change;
use bindery_engine::Input;
use bindery_model::{Kind, Name, Object, Pod, PodKey};
use bindery_runtime::{ChangeReceiver, WatchStatus, change_queue, watch};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::addresses::Addresses;
use crate::client::{ApiClient, CallError, Patch, now};
use crate::heartbeat::{self, NodeInfo, RETRY_DELAY};
use crate::kubelet::{Kubelet, PodAction};
use crate::pod_status::{self, PodAddresses};

/// How long the termination of a pod takes. Nothing has to stop, but observers should see the pod
/// Terminating.
const TERMINATION_TIME: Duration = Duration::from_secs(1);
/// The delay before a retry after a conflict.
const CONFLICT_DELAY: Duration = Duration::from_millis(50);
const PODS: &str = "/api/v1/pods";

/// A finished task.
enum Finished {
    /// A node was reported Ready; `None` if it does not exist.
    Node(Name, Option<NodeInfo>),
    /// An action for a pod has ended; with the pod if it was written.
    Pod(PodKey, Option<Object>),
}

/// Simulates the kubelets of all simulated nodes.
pub struct KubeletRunner {
    client: Arc<ApiClient>,
    changes: ChangeReceiver,
    kubelet: Kubelet,
    addresses: Addresses,
    /// The simulated nodes.
    nodes: FxHashMap<Name, RunningNode>,
    /// Pods with an action in progress.
    busy: FxHashSet<PodKey>,
    work: JoinSet<Finished>,
    /// Heartbeats and watches.
    background: JoinSet<()>,
}

struct RunningNode {
    uid: Name,
    info: Option<NodeInfo>,
    heartbeat_task: Option<AbortHandle>,
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        if let Some(heartbeat_task) = &self.heartbeat_task {
            heartbeat_task.abort();
        }
    }
}

impl KubeletRunner {
    /// Starts with the current state of the API server.
    pub async fn new(client: Arc<ApiClient>) -> KubeletRunner {
        let addresses = existing_addresses(&client).await;
        let (sender, changes) = change_queue();
        let status = WatchStatus::default();
        let mut background = JoinSet::new();
        for kind in [Kind::Node, Kind::Claim, Kind::Pod] {
            background.spawn(watch(client.api().clone(), kind, sender.clone(), status.clone()));
        }
        let (nodes, busy) = (FxHashMap::default(), FxHashSet::default());
        KubeletRunner {
            client,
            changes,
            kubelet: Kubelet::default(),
            addresses,
            nodes,
            busy,
            work: JoinSet::new(),
            background,
        }
    }

    /// Runs forever. Returns only after an internal error.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                change = self.changes.next() => self.apply(change.into()),
                Some(done) = self.work.join_next() => match done {
                    Ok(Finished::Node(name, info)) => self.node_ready(&name, info),
                    Ok(Finished::Pod(pod, written)) => self.pod_finished(&pod, written),
                    Err(error) => return tracing::error!(%error, "simulated kubelet failed"),
                },
                Some(ended) = self.background.join_next() => match ended {
                    Err(error) if !error.is_cancelled() => return tracing::error!(%error, "simulated kubelet failed"),
                    Ok(()) | Err(_) => {}
                },
            }
        }
    }

    fn apply(&mut self, input: Input) {
        for change in self.kubelet.apply(input) {
            match (&change.before, &change.after) {
                (Some(Object::Node(_)), _) | (_, Some(Object::Node(_))) => self.node_changed(&change),
                (Some(Object::Pod(pod)), None) => self.addresses.release(&pod.key()),
                (_, _) => {}
            }
            for pod in self.kubelet.affected_pods(&change) {
                self.handle_pod(&pod);
            }
        }
    }

    /// Starts the kubelet of a new node, and stops it if the node was deleted, replaced or is no
    /// longer simulated.
    fn node_changed(&mut self, change: &Change) {
        let name = change.key().name;
        let uid = self.kubelet.simulated(&name).map(|node| node.meta.uid.clone());
        if uid == self.nodes.get(&name).map(|node| node.uid.clone()) {
            return;
        }
        self.nodes.remove(&name);
        if let Some(uid) = uid {
            self.nodes.insert(name.clone(), RunningNode { uid, info: None, heartbeat_task: None });
            self.start_node(name);
        }
    }

    fn start_node(&mut self, name: Name) {
        let client = self.client.clone();
        self.work.spawn(async move {
            let info = heartbeat::mark_ready(&client, &name).await;
            Finished::Node(name, info)
        });
    }

    /// Starts the heartbeat of a node, and handles its pods.
    fn node_ready(&mut self, name: &Name, info: Option<NodeInfo>) {
        let Some(info) = info else { return };
        match self.nodes.get_mut(name) {
            Some(node) if node.uid == info.uid => {
                let heartbeat_task =
                    heartbeat::run_heartbeat(self.client.clone(), info.clone(), heartbeat::offset(name));
                node.heartbeat_task = Some(self.background.spawn(heartbeat_task));
                node.info = Some(info);
            }
            // The node was deleted or replaced in the meantime.
            Some(_) | None => return,
        }
        for pod in self.kubelet.pods_on(name) {
            self.handle_pod(&pod);
        }
    }

    /// Starts the next action for a pod, unless one is in progress: then it follows that one.
    fn handle_pod(&mut self, key: &PodKey) {
        if self.busy.contains(key) {
            return;
        }
        let next = self.kubelet.next(key);
        let (client, pod_key) = (self.client.clone(), key.clone());
        match next {
            PodAction::Nothing => return,
            PodAction::WaitForClaim(claim) => {
                tracing::debug!(pod = %key, %claim, "waiting for claim to be bound");
                return;
            }
            PodAction::Start(pod) => {
                let Some(info) = self.nodes.get(&pod.node).and_then(|node| node.info.as_ref()) else { return };
                let address = info.range.and_then(|range| self.addresses.allocate(key, range));
                let addresses = PodAddresses { host: info.host.clone(), pod: address };
                self.work.spawn(async move {
                    let started = attempt(&pod_key, "start", start(&client, &pod, &addresses)).await;
                    Finished::Pod(pod_key, started)
                })
            }
            PodAction::Remove(pod) => self.work.spawn(async move {
                sleep(TERMINATION_TIME).await;
                let removed = attempt(&pod_key, "end", remove(&client, &pod)).await;
                Finished::Pod(pod_key, removed)
            }),
        };
        self.busy.insert(key.clone());
    }

    fn pod_finished(&mut self, key: &PodKey, written: Option<Object>) {
        self.busy.remove(key);
        if let Some(pod) = written {
            self.kubelet.apply_write(pod);
        }
        self.handle_pod(key);
    }
}

/// Returns the pod as it was written. After a failure it waits, and returns `None`.
async fn attempt(
    pod: &PodKey,
    what: &str,
    action: impl Future<Output = Result<Option<Value>, CallError>>,
) -> Option<Object> {
    match action.await {
        Ok(written) => {
            let text = written?.to_string();
            Object::from_json(Kind::Pod, text.as_bytes()).ok()
        }
        Err(error) => {
            tracing::debug!(%pod, what, %error, "pod action failed, will be retried");
            let wait = match error {
                // The pod was written concurrently or deleted: the watch will deliver it shortly.
                CallError::Conflict | CallError::NotFound => CONFLICT_DELAY,
                CallError::Error(_) => RETRY_DELAY,
            };
            sleep(wait).await;
            None
        }
    }
}

fn path(pod: &Pod) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.meta.namespace, pod.meta.name)
}

/// Reports a pod Running, if it is still the same pod on the same node and not being deleted.
async fn start(client: &ApiClient, pod: &Pod, addresses: &PodAddresses) -> Result<Option<Value>, CallError> {
    let live = client.read(&path(pod)).await?;
    let is_same = live["metadata"]["uid"] == pod.meta.uid.as_str() && live["spec"]["nodeName"] == pod.node.as_str();
    let is_over = ["Succeeded", "Failed"].iter().any(|phase| live["status"]["phase"] == *phase);
    if !is_same || is_over || live["metadata"]["deletionTimestamp"].is_string() {
        return Err(CallError::Conflict);
    }
    let change = pod_status::running(&live, addresses, &now());
    let written = client.patch(&format!("{}/status", path(pod)), &live, Patch::Strategic, change).await?;
    tracing::info!(pod = %pod.key(), node = %pod.node, "pod reported Running");
    Ok(Some(written))
}

/// Completes the deletion of a pod. Returns the pod if finalizers still keep it.
async fn remove(client: &ApiClient, pod: &Pod) -> Result<Option<Value>, CallError> {
    let answer = client.remove_pod(&path(pod), &pod.meta.uid).await?;
    tracing::info!(pod = %pod.key(), node = %pod.node, "pod deletion completed");
    Ok(Some(answer).filter(|answer| answer["kind"] == "Pod"))
}

/// The addresses of existing pods, from an earlier run.
async fn existing_addresses(client: &ApiClient) -> Addresses {
    let list = loop {
        match client.read(PODS).await {
            Ok(list) => break list,
            Err(error) => tracing::warn!(%error, "cannot list pods"),
        }
        sleep(RETRY_DELAY).await;
    };
    let mut addresses = Addresses::default();
    for pod in list["items"].as_array().into_iter().flatten() {
        let text = |field: &str| Name::from(pod["metadata"][field].as_str().unwrap_or_default());
        let shares_host = pod["spec"]["hostNetwork"] == true;
        let address = pod["status"]["podIP"].as_str().filter(|_| !shares_host).and_then(|text| text.parse().ok());
        if let Some(address) = address {
            addresses.record(PodKey { namespace: text("namespace"), name: text("name") }, address);
        }
    }
    addresses
}
