//! A driver that answers as the request's parameters tell it to, and remembers every call. For tests.
//!
//! `create=A,B,…` in a class's parameters is the answer to the first, second, … call for one volume, and the last one repeats;
//! `delete=A,B,…` is likewise for its removal:
//!
//! | | |
//! |---|---|
//! | `ok` | as asked |
//! | `small` | a byte less than was asked for |
//! | `zero` | done, and nobody knows how large |
//! | `nosource` | done, and nothing is said of what it was filled from |
//! | `hang` | done, and no answer |
//! | `drop` | done, and the connection is cut instead of an answer |
//! | `unsure` | done, and answered with `UNAVAILABLE` |
//! | `twice` | done, and answered two times over |
//! | a gRPC code such as `ABORTED` | not done |
//!
//! A volume's handle is `vol-` and its name (`handle` in the parameters is put in the place of `vol-`), and it is reachable from the
//! first place that was preferred.

mod answer;
mod hold;
mod json;
mod serve;
mod twice;

pub use hold::When;
pub use serve::Serving;

use std::collections::BTreeMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use crate::proto::controller_service_capability::{Rpc, Type as ControllerType, rpc};
use crate::proto::plugin_capability::{Service, Type as PluginType, service};
use crate::proto::{
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse, ControllerServiceCapability,
    CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest, DeleteVolumeResponse, GetCapacityRequest,
    GetCapacityResponse, GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, NodeGetInfoRequest, NodeGetInfoResponse, PluginCapability, ProbeRequest, ProbeResponse,
    Topology, Volume, controller_server, identity_server, node_server,
};
use answer::Answer;
use hold::Hold;

/// Longer than anybody waits.
const HANGS: Duration = Duration::from_secs(3600);

/// A driver that answers as told.
pub struct Fake {
    name: String,
    log: Option<PathBuf>,
    room: i64,
    node: BTreeMap<String, String>,
    attaches: bool,
    state: Mutex<State>,
    hold: Hold,
    cut: Notify,
}

#[derive(Default)]
struct State {
    calls: Vec<Value>,
    /// How often each volume was asked for, and its removal.
    asked: BTreeMap<(&'static str, String), usize>,
    volumes: BTreeMap<String, Made>,
    /// What the removal of each volume that ever was is answered with.
    removals: BTreeMap<String, String>,
}

/// A volume that a fake driver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub name: String,
    /// How large it is.
    pub bytes: i64,
    /// From where it is reachable.
    pub topology: Option<BTreeMap<String, String>>,
}

impl Fake {
    /// A driver of that name.
    pub fn new(name: &str) -> Fake {
        Fake {
            name: name.to_owned(),
            log: None,
            room: i64::MAX,
            node: BTreeMap::new(),
            attaches: false,
            state: Mutex::default(),
            hold: Hold::default(),
            cut: Notify::new(),
        }
    }

    /// The same, which also puts every call down in a file, as a line of JSON.
    pub fn logging_to(self, file: PathBuf) -> Fake {
        Fake { log: Some(file), ..self }
    }

    /// The same, with so much room, on a node in that place.
    pub fn on_node(self, room: i64, place: &[(&str, &str)]) -> Fake {
        let node = place.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Fake { room, node, ..self }
    }

    /// The same, which says that its volumes are attached to nodes.
    pub fn attaching(self) -> Fake {
        Fake { attaches: true, ..self }
    }

    /// Every call to make or to remove a volume so far.
    pub fn calls(&self) -> Vec<Value> {
        self.state().calls.clone()
    }

    /// The volumes that there are, by their handles.
    pub fn volumes(&self) -> BTreeMap<String, Made> {
        self.state().volumes.clone()
    }

    /// How much room is left.
    pub fn left(&self) -> i64 {
        let used: i64 = self.state().volumes.values().map(|made| made.bytes).sum();
        self.room.saturating_sub(used).max(0)
    }

    /// Holds the n-th call from now on, counted from one, of whatever kind it is: it is never answered.
    pub fn hold(&self, nth: usize, when: When) {
        self.hold.set(nth, when);
    }

    /// Whether a call is held.
    pub fn is_holding(&self) -> bool {
        self.hold.is_holding()
    }

    /// How many calls there were since it was last told to hold one.
    pub fn arrived(&self) -> usize {
        self.hold.arrived()
    }

    /// Cuts all connections, as if the driver had died.
    pub fn cut(&self) {
        self.cut.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, method: &str, request: Value) {
        let call = json!({"method": method, "request": request});
        if let Some(file) = &self.log {
            let line = format!("{call}\n");
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
            let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
            written.expect("a test's own file can be written");
        }
        self.state().calls.push(call);
    }

    /// What this call is to be answered with.
    fn told(&self, what: &'static str, of: &str, script: &str) -> Answer {
        let mut state = self.state();
        let asked = state.asked.entry((what, of.to_owned())).or_default();
        *asked += 1;
        Answer::nth(script, *asked)
    }

    /// Holds an answer back, where that is what was told.
    async fn held_back(&self, answer: Answer) -> Result<(), Status> {
        match answer {
            Answer::Hang => tokio::time::sleep(HANGS).await,
            Answer::Drop => {
                self.cut();
                tokio::time::sleep(HANGS).await;
            }
            Answer::Unsure => return Err(Status::unavailable("nobody knows")),
            Answer::Code(code) => return Err(Status::new(code, format!("told to answer {}", answer::word(code)))),
            Answer::Ok | Answer::Small | Answer::Zero | Answer::NoSource | Answer::Twice => {}
        }
        Ok(())
    }

    async fn made(&self, request: CreateVolumeRequest) -> Result<Response<CreateVolumeResponse>, Status> {
        self.note("CreateVolume", json::create(&request));
        let script = |word: &str| request.parameters.get(word).map_or("ok", String::as_str).to_owned();
        let answer = self.told("create", &request.name, &script("create"));
        if matches!(answer, Answer::Code(_)) {
            self.held_back(answer).await?;
        }
        let wanted = request.capacity_range.map_or(0, |range| range.required_bytes);
        let handle = request.parameters.get("handle").map_or("vol-", String::as_str);
        let volume_id = format!("{handle}{}", request.name);
        let is_new = !self.volumes().contains_key(&volume_id);
        if is_new && wanted > self.left() {
            return Err(Status::resource_exhausted("there is no room"));
        }
        let preferred = request.accessibility_requirements.and_then(|wanted| wanted.preferred.into_iter().next());
        let volume = Volume {
            capacity_bytes: answer.size(wanted),
            volume_id,
            volume_context: BTreeMap::from([("answered".to_owned(), answer.to_string())]),
            content_source: request.volume_content_source.filter(|_| answer != Answer::NoSource),
            accessible_topology: preferred.into_iter().collect(),
        };
        let made = Made {
            name: request.name,
            bytes: wanted,
            topology: volume.accessible_topology.first().map(|place| place.segments.clone()),
        };
        {
            let mut state = self.state();
            state.volumes.insert(volume.volume_id.clone(), made);
            state.removals.insert(
                volume.volume_id.clone(),
                request.parameters.get("delete").cloned().unwrap_or_else(|| "ok".into()),
            );
        }
        self.held_back(answer).await?;
        let response = Response::new(CreateVolumeResponse { volume: Some(volume) });
        Ok(if answer == Answer::Twice { twice::marked(response) } else { response })
    }

    async fn removed(&self, request: DeleteVolumeRequest) -> Result<(), Status> {
        self.note("DeleteVolume", json::delete(&request));
        let script = self.state().removals.get(&request.volume_id).cloned().unwrap_or_else(|| "ok".into());
        let answer = self.told("delete", &request.volume_id, &script);
        if !matches!(answer, Answer::Code(_)) {
            self.state().volumes.remove(&request.volume_id);
        }
        self.held_back(answer).await
    }
}

#[tonic::async_trait]
impl identity_server::Identity for Fake {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        self.hold.around(ready(())).await;
        let (name, vendor_version) = (self.name.clone(), "1".to_owned());
        Ok(Response::new(GetPluginInfoResponse { name, vendor_version, manifest: BTreeMap::new() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        self.hold.around(ready(())).await;
        let able = |able: service::Type| PluginCapability {
            r#type: Some(PluginType::Service(Service { r#type: able.into() })),
        };
        let capabilities =
            vec![able(service::Type::ControllerService), able(service::Type::VolumeAccessibilityConstraints)];
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.hold.around(ready(())).await;
        Ok(Response::new(ProbeResponse { ready: None }))
    }
}

#[tonic::async_trait]
impl controller_server::Controller for Fake {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        self.hold.around(self.made(request.into_inner())).await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        self.hold.around(self.removed(request.into_inner())).await.map(|()| Response::new(DeleteVolumeResponse {}))
    }

    async fn get_capacity(&self, _: Request<GetCapacityRequest>) -> Result<Response<GetCapacityResponse>, Status> {
        let available_capacity = self.left();
        Ok(Response::new(GetCapacityResponse {
            available_capacity,
            maximum_volume_size: Some(available_capacity),
            minimum_volume_size: None,
        }))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        self.hold.around(ready(())).await;
        let able = |able: rpc::Type| ControllerServiceCapability {
            r#type: Some(ControllerType::Rpc(Rpc { r#type: able.into() })),
        };
        let all = [
            rpc::Type::CreateDeleteVolume,
            rpc::Type::CloneVolume,
            rpc::Type::CreateDeleteSnapshot,
            rpc::Type::SingleNodeMultiWriter,
            rpc::Type::ModifyVolume,
            rpc::Type::GetCapacity,
        ];
        let attaches = self.attaches.then_some(rpc::Type::PublishUnpublishVolume);
        let capabilities = all.into_iter().chain(attaches).map(able).collect();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }
}

#[tonic::async_trait]
impl node_server::Node for Fake {
    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
        let accessible_topology = (!self.node.is_empty()).then(|| Topology { segments: self.node.clone() });
        Ok(Response::new(NodeGetInfoResponse { node_id: "node".into(), max_volumes_per_node: 0, accessible_topology }))
    }
}
