//! The lives of simulated nodes and their pods: what the fake kubelet decides is carried out, one thing at a time for each pod.

use std::sync::Arc;
use std::time::Duration;

use bindery_cache::Change;
use bindery_engine::Input;
use bindery_model::{Kind, Name, Object, Pod, PodKey};
use bindery_runtime::{Message, watch};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::addresses::Addresses;
use crate::calls::{Calls, Patch, Refused, now};
use crate::heartbeat::{self, AGAIN, Met};
use crate::kubelet::{Kubelet, Next};
use crate::status::{self, Place};

/// How long a deleted pod takes to end. There is nothing in it that would have to; but who watches shall see it go.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait before trying again what came too late.
const SOON: Duration = Duration::from_millis(50);
const PODS: &str = "/api/v1/pods";

/// What came to an end.
enum Done {
    /// A node was met; none if it is gone.
    Met(Name, Option<Met>),
    /// Something was tried about a pod; the pod as it was written, if it was.
    Tried(PodKey, Option<Object>),
}

/// All simulated nodes.
pub struct Life {
    calls: Arc<Calls>,
    inbox: UnboundedReceiver<Message>,
    kubelet: Kubelet,
    addresses: Addresses,
    /// Nodes that are met or being met: which node of that name, and what is known once it is met.
    nodes: FxHashMap<Name, Known>,
    /// Pods that something is being done about.
    busy: FxHashSet<PodKey>,
    work: JoinSet<Done>,
    /// Heartbeats, and the watches.
    pulse: JoinSet<()>,
}

/// A simulated node.
struct Known {
    uid: Name,
    met: Option<Met>,
    beats: Option<AbortHandle>,
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(beats) = &self.beats {
            beats.abort();
        }
    }
}

impl Life {
    /// Begins with what there is.
    pub async fn new(calls: Arc<Calls>) -> Life {
        let addresses = taken_addresses(&calls).await;
        let (tell, inbox) = unbounded_channel();
        let mut pulse = JoinSet::new();
        for kind in [Kind::Node, Kind::Claim, Kind::Pod] {
            pulse.spawn(watch(calls.api().clone(), kind, tell.clone()));
        }
        let (nodes, busy) = (FxHashMap::default(), FxHashSet::default());
        Life { calls, inbox, kubelet: Kubelet::default(), addresses, nodes, busy, work: JoinSet::new(), pulse }
    }

    /// Lives for ever. Ends only if a part of it fails, which should never happen.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(Message::Input(input)) => self.happened(input),
                    Some(Message::Query(_)) => {}
                    Some(Message::Stop) | None => return,
                },
                Some(done) = self.work.join_next() => match done {
                    Ok(Done::Met(name, met)) => self.met(&name, met),
                    Ok(Done::Tried(pod, written)) => self.tried(&pod, written),
                    Err(error) => return tracing::error!(%error, "the fake kubelet failed"),
                },
                Some(ended) = self.pulse.join_next() => match ended {
                    Err(error) if !error.is_cancelled() => return tracing::error!(%error, "the fake kubelet failed"),
                    Ok(()) | Err(_) => {}
                },
            }
        }
    }

    fn happened(&mut self, input: Input) {
        for change in self.kubelet.take(input) {
            match (&change.before, &change.after) {
                (Some(Object::Node(_)), _) | (_, Some(Object::Node(_))) => self.node_changed(&change),
                (Some(Object::Pod(pod)), None) => self.addresses.free(&pod.key()),
                (_, _) => {}
            }
            for pod in self.kubelet.concerned(&change) {
                self.look_at(&pod);
            }
        }
    }

    /// Meets a node that is new, and forgets one that is gone, is another, or is simulated no more.
    fn node_changed(&mut self, change: &Change) {
        let name = change.key().name;
        let uid = self.kubelet.simulated(&name).map(|node| node.meta.uid.clone());
        if uid == self.nodes.get(&name).map(|known| known.uid.clone()) {
            return;
        }
        self.nodes.remove(&name);
        if let Some(uid) = uid {
            self.nodes.insert(name.clone(), Known { uid, met: None, beats: None });
            self.meet(name);
        }
    }

    fn meet(&mut self, name: Name) {
        let calls = self.calls.clone();
        self.work.spawn(async move {
            let met = heartbeat::meet(&calls, &name).await;
            Done::Met(name, met)
        });
    }

    /// From now on a node lives, and its pods are looked at.
    fn met(&mut self, name: &Name, met: Option<Met>) {
        let Some(met) = met else { return };
        match self.nodes.get_mut(name) {
            Some(known) if known.uid == met.uid => {
                let beats = heartbeat::beat(self.calls.clone(), met.clone(), heartbeat::offset(name));
                known.beats = Some(self.pulse.spawn(beats));
                known.met = Some(met);
            }
            // It is another by now, which is being met too; or it is gone.
            Some(_) | None => return,
        }
        for pod in self.kubelet.pods_on(name) {
            self.look_at(&pod);
        }
    }

    /// Does what is to be done about a pod, unless something is being done about it: then it is looked at again after that.
    fn look_at(&mut self, key: &PodKey) {
        if self.busy.contains(key) {
            return;
        }
        let next = self.kubelet.next(key);
        let (calls, pod_key) = (self.calls.clone(), key.clone());
        match next {
            Next::Rest => return,
            Next::WaitsFor(claim) => {
                tracing::debug!(pod = %key, %claim, "the fake kubelet waits for a claim to be bound");
                return;
            }
            Next::Start(pod) => {
                let Some(met) = self.nodes.get(&pod.node).and_then(|known| known.met.as_ref()) else { return };
                let address = met.range.and_then(|range| self.addresses.take(key, range));
                let place = Place { host: met.host.clone(), pod: address };
                self.work.spawn(async move {
                    let started = attempt(&pod_key, "start", start(&calls, &pod, &place)).await;
                    Done::Tried(pod_key, started)
                })
            }
            Next::Remove(pod) => self.work.spawn(async move {
                sleep(ENDS_WITHIN).await;
                let removed = attempt(&pod_key, "end", remove(&calls, &pod)).await;
                Done::Tried(pod_key, removed)
            }),
        };
        self.busy.insert(key.clone());
    }

    fn tried(&mut self, key: &PodKey, written: Option<Object>) {
        self.busy.remove(key);
        if let Some(pod) = written {
            self.kubelet.wrote(pod);
        }
        self.look_at(key);
    }
}

/// The pod as it was written. What failed is told, and tried again after a while, if it is still to be done then.
async fn attempt(
    pod: &PodKey,
    what: &str,
    trying: impl Future<Output = Result<Option<Value>, Refused>>,
) -> Option<Object> {
    match trying.await {
        Ok(written) => {
            let text = written?.to_string();
            Object::from_json(Kind::Pod, text.as_bytes()).ok()
        }
        Err(why) => {
            tracing::debug!(%pod, what, %why, "the fake kubelet tries again");
            let wait = match why {
                // Somebody else was quicker, or the pod is gone: the watch tells in a moment.
                Refused::Conflict | Refused::NotFound => SOON,
                Refused::Error(_) => AGAIN,
            };
            sleep(wait).await;
            None
        }
    }
}

fn path(pod: &Pod) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.meta.namespace, pod.meta.name)
}

/// Says of a pod that it runs, if it is still to: this very pod, on the same node, and nobody has deleted it.
async fn start(calls: &Calls, pod: &Pod, place: &Place) -> Result<Option<Value>, Refused> {
    let live = calls.read(&path(pod)).await?;
    let is_same = live["metadata"]["uid"] == pod.meta.uid.as_str() && live["spec"]["nodeName"] == pod.node.as_str();
    let is_over = ["Succeeded", "Failed"].iter().any(|phase| live["status"]["phase"] == *phase);
    if !is_same || is_over || live["metadata"]["deletionTimestamp"].is_string() {
        return Err(Refused::Conflict);
    }
    let change = status::running(&live, place, &now());
    let written = calls.patch(&format!("{}/status", path(pod)), &live, Patch::Strategic, change).await?;
    tracing::info!(pod = %pod.key(), node = %pod.node, "the fake kubelet says that it runs");
    Ok(Some(written))
}

/// Lets go of a pod that was deleted. It is gone, unless finalizers hold it: then the answer is the pod as it is.
async fn remove(calls: &Calls, pod: &Pod) -> Result<Option<Value>, Refused> {
    let answer = calls.remove_pod(&path(pod), &pod.meta.uid).await?;
    tracing::info!(pod = %pod.key(), node = %pod.node, "the fake kubelet has let go of it");
    Ok(Some(answer).filter(|answer| answer["kind"] == "Pod"))
}

/// The addresses that pods have, from an earlier run.
async fn taken_addresses(calls: &Calls) -> Addresses {
    let list = loop {
        match calls.read(PODS).await {
            Ok(list) => break list,
            Err(why) => tracing::warn!(%why, "the fake kubelet cannot list pods"),
        }
        sleep(AGAIN).await;
    };
    let mut addresses = Addresses::default();
    for pod in list["items"].as_array().into_iter().flatten() {
        let text = |field: &str| Name::from(pod["metadata"][field].as_str().unwrap_or_default());
        let shares_host = pod["spec"]["hostNetwork"] == true;
        let address = pod["status"]["podIP"].as_str().filter(|_| !shares_host).and_then(|text| text.parse().ok());
        if let Some(address) = address {
            addresses.note(PodKey { namespace: text("namespace"), name: text("name") }, address);
        }
    }
    addresses
}
