//! A scriptable CSI driver for tests, which records every call and stores nothing.
//!
//! The class parameter `create=A,B,…` scripts the answers to the first, second, … CreateVolume call
//! for one volume; the last one repeats. `delete=A,B,…` scripts DeleteVolume:
//!
//! | answer | meaning |
//! |---|---|
//! | `ok` | as requested |
//! | `small` | one byte smaller than requested |
//! | `zero` | created, with a size of 0 (unknown) |
//! | `nosource` | created, without a content source in the response |
//! | `hang` | done, but never answered |
//! | `drop` | done, but the connection is closed instead of an answer |
//! | `unsure` | done, but answered with `UNAVAILABLE` |
//! | `twice` | done, and the response message is sent twice |
//! | a gRPC code such as `ABORTED` | not done |
//!
//! A volume's handle is `vol-` followed by its name (the parameter `handle` replaces `vol-`). The
//! volume is accessible from the first preferred topology segment.

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

/// Longer than any client waits.
const FOREVER: Duration = Duration::from_secs(3600);

/// A scriptable CSI driver.
pub struct FakeDriver {
    name: String,
    log: Option<PathBuf>,
    capacity: i64,
    node: BTreeMap<String, String>,
    publishes_volumes: bool,
    state: Mutex<State>,
    hold: Hold,
    cut: Notify,
}

#[derive(Default)]
struct State {
    calls: Vec<Value>,
    /// The GetCapacity calls since they were last taken.
    capacity_calls: Vec<Value>,
    /// How many CreateVolume and DeleteVolume calls each volume has received.
    attempts: BTreeMap<(&'static str, String), usize>,
    volumes: BTreeMap<String, FakeVolume>,
    /// The script for DeleteVolume, for every volume ever created.
    delete_scripts: BTreeMap<String, String>,
}

/// A volume of the fake driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeVolume {
    /// The name from the request.
    pub name: String,
    /// The size in bytes.
    pub bytes: i64,
    /// The topology segment from which it is accessible.
    pub topology: Option<BTreeMap<String, String>>,
}

impl FakeDriver {
    /// A driver with this name and unlimited capacity.
    pub fn new(name: &str) -> FakeDriver {
        FakeDriver {
            name: name.to_owned(),
            log: None,
            capacity: i64::MAX,
            node: BTreeMap::new(),
            publishes_volumes: false,
            state: Mutex::default(),
            hold: Hold::default(),
            cut: Notify::new(),
        }
    }

    /// Appends every call to a file, as a line of JSON.
    pub fn logging_to(self, file: PathBuf) -> FakeDriver {
        FakeDriver { log: Some(file), ..self }
    }

    /// Limits the capacity, and reports this topology in NodeGetInfo.
    pub fn on_node(self, capacity: i64, segment: &[(&str, &str)]) -> FakeDriver {
        let node = segment.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        FakeDriver { capacity, node, ..self }
    }

    /// Reports that volumes are attached to nodes.
    pub fn attaching(self) -> FakeDriver {
        FakeDriver { publishes_volumes: true, ..self }
    }

    /// All CreateVolume and DeleteVolume calls so far.
    pub fn calls(&self) -> Vec<Value> {
        self.state().calls.clone()
    }

    /// Takes the parameters and topology segments of the GetCapacity calls so far.
    pub fn take_capacity_calls(&self) -> Vec<Value> {
        std::mem::take(&mut self.state().capacity_calls)
    }

    /// The existing volumes, by handle.
    pub fn volumes(&self) -> BTreeMap<String, FakeVolume> {
        self.state().volumes.clone()
    }

    /// The remaining capacity in bytes.
    pub fn available(&self) -> i64 {
        let used: i64 = self.state().volumes.values().map(|volume_record| volume_record.bytes).sum();
        self.capacity.saturating_sub(used).max(0)
    }

    /// Holds the n-th call from now on (of any kind, counted from one): it is never answered.
    pub fn hold(&self, nth: usize, when: When) {
        self.hold.set(nth, when);
    }

    /// Whether a call is being held.
    pub fn is_holding(&self) -> bool {
        self.hold.is_holding()
    }

    /// How many calls arrived since the last `hold`.
    pub fn arrived(&self) -> usize {
        self.hold.arrived()
    }

    /// Closes all connections, as if the driver had died.
    pub fn cut(&self) {
        self.cut.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, method: &str, request: Value) {
        let call = json!({"method": method, "request": request});
        if let Some(file) = &self.log {
            let line = format!("{call}\n");
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
            let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
            written.expect("the log file of the test is writable");
        }
        self.state().calls.push(call);
    }

    /// The scripted answer to this call.
    fn scripted(&self, what: &'static str, of: &str, script: &str) -> Answer {
        let mut state = self.state();
        let attempts = state.attempts.entry((what, of.to_owned())).or_default();
        *attempts += 1;
        Answer::nth(script, *attempts)
    }

    /// Delays or fails the call, as its answer says.
    async fn delay_or_fail(&self, answer: Answer) -> Result<(), Status> {
        match answer {
            Answer::Hang => tokio::time::sleep(FOREVER).await,
            Answer::Drop => {
                self.cut();
                tokio::time::sleep(FOREVER).await;
            }
            Answer::Unsure => return Err(Status::unavailable("unknown outcome")),
            Answer::Code(code) => {
                return Err(Status::new(code, format!("told to answer {}", answer::code_name(code))));
            }
            Answer::Ok | Answer::Small | Answer::Zero | Answer::NoSource | Answer::Twice => {}
        }
        Ok(())
    }

    async fn create(&self, request: CreateVolumeRequest) -> Result<Response<CreateVolumeResponse>, Status> {
        self.record("CreateVolume", json::create(&request));
        let script = |key: &str| request.parameters.get(key).map_or("ok", String::as_str).to_owned();
        let answer = self.scripted("create", &request.name, &script("create"));
        if matches!(answer, Answer::Code(_)) {
            self.delay_or_fail(answer).await?;
        }
        let wanted = request.capacity_range.map_or(0, |range| range.required_bytes);
        let handle = request.parameters.get("handle").map_or("vol-", String::as_str);
        let volume_id = format!("{handle}{}", request.name);
        let is_new = !self.volumes().contains_key(&volume_id);
        if is_new && wanted > self.available() {
            return Err(Status::resource_exhausted("not enough capacity"));
        }
        let preferred = request.accessibility_requirements.and_then(|wanted| wanted.preferred.into_iter().next());
        let volume = Volume {
            capacity_bytes: answer.size(wanted),
            volume_id,
            volume_context: BTreeMap::from([("answered".to_owned(), answer.to_string())]),
            content_source: request.volume_content_source.filter(|_| answer != Answer::NoSource),
            accessible_topology: preferred.into_iter().collect(),
        };
        let volume_record = FakeVolume {
            name: request.name,
            bytes: wanted,
            topology: volume.accessible_topology.first().map(|segment| segment.segments.clone()),
        };
        {
            let mut state = self.state();
            state.volumes.insert(volume.volume_id.clone(), volume_record);
            state.delete_scripts.insert(
                volume.volume_id.clone(),
                request.parameters.get("delete").cloned().unwrap_or_else(|| "ok".into()),
            );
        }
        self.delay_or_fail(answer).await?;
        let response = Response::new(CreateVolumeResponse { volume: Some(volume) });
        Ok(if answer == Answer::Twice { twice::marked(response) } else { response })
    }

    async fn delete(&self, request: DeleteVolumeRequest) -> Result<(), Status> {
        self.record("DeleteVolume", json::delete(&request));
        let script = self.state().delete_scripts.get(&request.volume_id).cloned().unwrap_or_else(|| "ok".into());
        let answer = self.scripted("delete", &request.volume_id, &script);
        if !matches!(answer, Answer::Code(_)) {
            self.state().volumes.remove(&request.volume_id);
        }
        self.delay_or_fail(answer).await
    }
}

#[tonic::async_trait]
impl identity_server::Identity for FakeDriver {
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
impl controller_server::Controller for FakeDriver {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        self.hold.around(self.create(request.into_inner())).await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        self.hold.around(self.delete(request.into_inner())).await.map(|()| Response::new(DeleteVolumeResponse {}))
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let GetCapacityRequest { parameters, accessible_topology, .. } = request.into_inner();
        let segments = accessible_topology.map(|topology| topology.segments);
        self.state().capacity_calls.push(json!({"parameters": parameters, "segments": segments}));
        let available_capacity = self.available();
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
        let publishes_volumes = self.publishes_volumes.then_some(rpc::Type::PublishUnpublishVolume);
        let capabilities = all.into_iter().chain(publishes_volumes).map(able).collect();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }
}

#[tonic::async_trait]
impl node_server::Node for FakeDriver {
    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
        let accessible_topology = (!self.node.is_empty()).then(|| Topology { segments: self.node.clone() });
        Ok(Response::new(NodeGetInfoResponse { node_id: "node".into(), max_volumes_per_node: 0, accessible_topology }))
    }
}
