//! The client of a CSI driver on a Unix socket: connecting, identifying the driver, and calls with
//! a deadline.
//!
//! A restarted driver may be a different one: it may have other capabilities, or no memory of
//! earlier requests. So a lost connection is not re-established: [`Driver::lost`] returns, and the
//! process exits.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::connection::Connection;
use crate::grpc_status;
use crate::proto::controller_client::ControllerClient;
use crate::proto::identity_client::IdentityClient;
use crate::proto::node_client::NodeClient;
use crate::proto::{
    ControllerGetCapabilitiesRequest, CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest,
    GetCapacityRequest, GetCapacityResponse, GetPluginCapabilitiesRequest, GetPluginInfoRequest, NodeGetInfoRequest,
    NodeGetInfoResponse, ProbeRequest,
};
use crate::setup::Capabilities;

/// How long to wait for the driver to open its socket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to retry connecting and probing.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A finished call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedCall {
    /// The full gRPC method name.
    pub method: &'static str,
    /// The gRPC status code.
    pub code: &'static str,
    /// How long the call took.
    pub took: Duration,
    /// Whether the call was about a volume of the in-tree plugin that the driver replaces.
    pub is_migrated: bool,
}

/// Observes every call, for metrics. Must not block.
pub trait CallObserver: Send + Sync + 'static {
    /// The driver has reported its name.
    fn identified(&self, driver: &str);
    /// A call has finished.
    fn finished(&self, called: FinishedCall);
}

/// Ignores all calls.
impl CallObserver for () {
    fn identified(&self, _: &str) {}
    fn finished(&self, _: FinishedCall) {}
}

/// A connected CSI driver.
#[derive(Clone)]
pub struct Driver {
    channel: Channel,
    timeout: Duration,
    calls: Arc<dyn CallObserver>,
    closed: watch::Receiver<bool>,
    is_migrated: bool,
}

/// What a driver reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// The driver's name.
    pub name: String,
    /// The driver's vendor version.
    pub version: String,
    /// The driver's capabilities.
    pub capabilities: Capabilities,
}

impl Driver {
    /// Connects to a driver's socket and waits for it to appear. `timeout` is the deadline of each
    /// later call.
    pub async fn connect(address: &str, timeout: Duration, calls: Arc<dyn CallObserver>) -> Result<Driver, String> {
        let path = socket(address)?;
        let until = Instant::now() + CONNECT_TIMEOUT;
        let mut was_logged = false;
        loop {
            let (closed_sender, closed) = watch::channel(false);
            match channel(&path, Arc::new(closed_sender)).await {
                Ok(channel) => return Ok(Driver { channel, timeout, calls, closed, is_migrated: false }),
                Err(error) if Instant::now() + RETRY_INTERVAL > until => {
                    return Err(format!("cannot connect to the CSI driver at {address}: {error}"));
                }
                Err(error) if was_logged => tracing::debug!(address, error, "CSI driver not reachable yet"),
                Err(error) => {
                    was_logged = true;
                    tracing::info!(address, error, within = ?CONNECT_TIMEOUT, "waiting for CSI driver socket");
                }
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Waits until the driver is ready, and asks for its name, version and capabilities.
    pub async fn identify(&self) -> Result<DriverInfo, String> {
        self.ready().await?;
        let failed = |what: &'static str| move |status: Status| format!("{what}: {}", grpc_status::message(&status));
        let info = self.plugin_info().await.map_err(failed("GetPluginInfo"))?;
        if info.name.is_empty() {
            return Err("the CSI driver at the socket reports an empty name in GetPluginInfo".into());
        }
        self.calls.identified(&info.name);
        let identity =
            |channel, request| async move { IdentityClient::new(channel).get_plugin_capabilities(request).await };
        let plugin =
            self.call("/csi.v1.Identity/GetPluginCapabilities", GetPluginCapabilitiesRequest {}, identity).await;
        let plugin = plugin.map_err(failed("GetPluginCapabilities"))?.capabilities;
        let controller =
            |channel, request| async move { ControllerClient::new(channel).controller_get_capabilities(request).await };
        let request = ControllerGetCapabilitiesRequest {};
        let controller = self.call("/csi.v1.Controller/ControllerGetCapabilities", request, controller).await;
        let controller = controller.map_err(failed("ControllerGetCapabilities"))?.capabilities;
        Ok(DriverInfo {
            name: info.name,
            version: info.vendor_version,
            capabilities: Capabilities::of(&plugin, &controller),
        })
    }

    /// Waits until the driver's Probe reports ready. A response without the field counts as ready.
    async fn ready(&self) -> Result<(), String> {
        loop {
            let probe = |channel, request| async move { IdentityClient::new(channel).probe(request).await };
            match self.call("/csi.v1.Identity/Probe", ProbeRequest {}, probe).await {
                Ok(answer) if answer.ready != Some(false) => return Ok(()),
                Ok(_) => tracing::info!("CSI driver not ready yet"),
                Err(status) if status.code() == Code::DeadlineExceeded => {
                    tracing::info!("CSI driver did not answer Probe in time")
                }
                Err(status) => {
                    return Err(format!("the CSI driver failed its probe: {}", grpc_status::message(&status)));
                }
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn plugin_info(&self) -> Result<crate::proto::GetPluginInfoResponse, Status> {
        let send = |channel, request| async move { IdentityClient::new(channel).get_plugin_info(request).await };
        self.call("/csi.v1.Identity/GetPluginInfo", GetPluginInfoRequest {}, send).await
    }

    /// The same driver, with calls recorded as being for a migrated in-tree volume or not.
    #[must_use]
    pub fn migrated(&self, is_migrated: bool) -> Driver {
        Driver { is_migrated, ..self.clone() }
    }

    /// Calls CreateVolume.
    pub async fn create_volume(&self, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).create_volume(request).await };
        self.call("/csi.v1.Controller/CreateVolume", request, send).await
    }

    /// Calls DeleteVolume.
    pub async fn delete_volume(&self, request: DeleteVolumeRequest) -> Result<(), Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).delete_volume(request).await };
        self.call("/csi.v1.Controller/DeleteVolume", request, send).await.map(drop)
    }

    /// Calls GetCapacity.
    pub async fn get_capacity(&self, request: GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).get_capacity(request).await };
        self.call("/csi.v1.Controller/GetCapacity", request, send).await
    }

    /// Calls NodeGetInfo.
    pub async fn node_info(&self) -> Result<NodeGetInfoResponse, Status> {
        let send = |channel, request| async move { NodeClient::new(channel).node_get_info(request).await };
        self.call("/csi.v1.Node/NodeGetInfo", NodeGetInfoRequest {}, send).await
    }

    /// The deadline of each call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns when the connection is lost.
    pub async fn lost(&self) {
        let mut closed = self.closed.clone();
        // The connector owns the sender, so an error also means that the connection is closed.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Makes one call. A broken connection is reported as UNAVAILABLE: the call may have been
    /// carried out.
    async fn call<Q, A, F>(
        &self,
        method: &'static str,
        request: Q,
        send: impl FnOnce(Channel, Request<Q>) -> F,
    ) -> Result<A, Status>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let began = Instant::now();
        let mut request = Request::new(request);
        request.set_timeout(self.timeout);
        let late = || Status::deadline_exceeded("context deadline exceeded");
        let answer = match timeout(self.timeout, send(self.channel.clone(), request)).await {
            Err(_) => Err(late()),
            Ok(Err(status)) if began.elapsed() >= self.timeout && status.code() == Code::Cancelled => Err(late()),
            Ok(Err(status)) if is_from_transport(&status) => Err(Status::unavailable(status.message())),
            Ok(answer) => answer,
        };
        let code = grpc_status::code_name(answer.as_ref().err().map_or(Code::Ok, Status::code));
        tracing::debug!(method, code, took = ?began.elapsed(), "CSI call finished");
        self.calls.finished(FinishedCall { method, code, took: began.elapsed(), is_migrated: self.is_migrated });
        answer.map(Response::into_inner)
    }
}

/// Whether a status was made by the client: because of a transport error, or because the response
/// cannot be decoded. A driver that reports a status with the same message is treated the same way.
fn is_from_transport(status: &Status) -> bool {
    let unreadable = ["failed to decode", "Missing response message", "Error, decoded message length too large"];
    std::error::Error::source(status).is_some() || unreadable.iter().any(|word| status.message().starts_with(word))
}

/// Parses an address: a socket path, optionally with the scheme `unix:`.
fn socket(address: &str) -> Result<PathBuf, String> {
    let path = address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:")).unwrap_or(address);
    if path.is_empty() || address.contains("://") && !address.starts_with("unix://") {
        return Err(format!("{address:?} is not a Unix socket: expected a path or unix:///path"));
    }
    Ok(Path::new(path).to_owned())
}

/// A channel that connects once. When the connection closes, `closed_sender` is set and no new one
/// is made.
async fn channel(path: &Path, closed_sender: Arc<watch::Sender<bool>>) -> Result<Channel, String> {
    let (path, was_made) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
    let connector = tower::service_fn(move |_: http::Uri| {
        let (path, was_made, closed_sender) = (path.clone(), was_made.clone(), closed_sender.clone());
        async move {
            if was_made.load(Ordering::Acquire) {
                return Err(std::io::Error::other("the connection to the CSI driver is lost"));
            }
            let stream = UnixStream::connect(path).await?;
            was_made.store(true, Ordering::Release);
            Ok(TokioIo::new(Connection::new(stream, closed_sender)))
        }
    });
    // The host name is a placeholder: the connector always uses the socket.
    let endpoint = Endpoint::from_static("http://localhost");
    endpoint.connect_with_connector(connector).await.map_err(|error| {
        let why = std::error::Error::source(&error).map(ToString::to_string);
        why.unwrap_or_else(|| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_errors_and_undecodable_responses_are_not_answers() {
        let broken = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the pipe broke");
        assert!(is_from_transport(&Status::from_error(Box::new(broken))));
        assert!(is_from_transport(&Status::internal("failed to decode Protobuf message: invalid tag value: 0")));
        assert!(!is_from_transport(&Status::internal("the disk is on fire")));
    }

    #[test]
    fn address_is_a_path_with_optional_unix_scheme() {
        for address in ["/run/csi/socket", "unix:///run/csi/socket", "unix:/run/csi/socket"] {
            assert_eq!(socket(address), Ok(PathBuf::from("/run/csi/socket")));
        }
        assert!(socket("").is_err() && socket("unix://").is_err() && socket("tcp://somewhere:1").is_err());
    }
}
