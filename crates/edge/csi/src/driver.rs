//! A driver on a unix socket: connecting, getting to know it, and one call at a time within a deadline.
//!
//! A driver that was restarted may be another: with other abilities, or with no memory of what it was asked. So a connection that is
//! lost is not made again; whoever holds it is told by [`Driver::lost`], and ends.

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

use crate::proto::controller_client::ControllerClient;
use crate::proto::identity_client::IdentityClient;
use crate::proto::node_client::NodeClient;
use crate::proto::{
    ControllerGetCapabilitiesRequest, CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest,
    GetCapacityRequest, GetCapacityResponse, GetPluginCapabilitiesRequest, GetPluginInfoRequest, NodeGetInfoRequest,
    NodeGetInfoResponse, ProbeRequest,
};
use crate::refusal;
use crate::setup::Abilities;
use crate::wire::Wire;

/// How long a driver may take to open its socket.
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);
/// How often it is tried meanwhile, and asked whether it is ready.
const TRIED_EVERY: Duration = Duration::from_secs(1);

/// A call that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// Its full name.
    pub method: &'static str,
    /// The code that it was answered with.
    pub code: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Whether it was about a volume of the in-tree plugin that the driver has taken over from.
    pub is_migrated: bool,
}

/// Hears of every call, to count it. Nothing waits for it.
pub trait Calls: Send + Sync + 'static {
    /// The driver has said what it is called.
    fn met(&self, driver: &str);
    /// A call is over.
    fn called(&self, called: Called);
}

/// NoObserver counts.
impl Calls for () {
    fn met(&self, _: &str) {}
    fn called(&self, _: Called) {}
}

/// A driver.
#[derive(Clone)]
pub struct Driver {
    channel: Channel,
    timeout: Duration,
    calls: Arc<dyn Calls>,
    gone: watch::Receiver<bool>,
    is_migrated: bool,
}

/// What a driver says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it can do.
    pub abilities: Abilities,
}

impl Driver {
    /// Connects to a driver's socket, waiting a while for it. Calls get so much time each.
    pub async fn connect(address: &str, timeout: Duration, calls: Arc<dyn Calls>) -> Result<Driver, String> {
        let path = socket(address)?;
        let until = Instant::now() + CONNECTS_WITHIN;
        let mut was_told = false;
        loop {
            let (tell, gone) = watch::channel(false);
            match channel(&path, Arc::new(tell)).await {
                Ok(channel) => return Ok(Driver { channel, timeout, calls, gone, is_migrated: false }),
                Err(error) if Instant::now() + TRIED_EVERY > until => {
                    return Err(format!("cannot connect to the CSI driver at {address}: {error}"));
                }
                Err(error) if was_told => tracing::debug!(address, error, "the driver cannot be reached yet"),
                Err(error) => {
                    was_told = true;
                    tracing::info!(address, error, within = ?CONNECTS_WITHIN, "waits for the driver to open its socket");
                }
            }
            sleep(TRIED_EVERY).await;
        }
    }

    /// Waits until the driver is ready, and has it introduce itself.
    pub async fn meet(&self) -> Result<Introduction, String> {
        self.ready().await?;
        let failed = |what: &'static str| move |status: Status| format!("{what}: {}", refusal::said(&status));
        let info = self.plugin_info().await.map_err(failed("GetPluginInfo"))?;
        if info.name.is_empty() {
            return Err("the CSI driver has no name".into());
        }
        self.calls.met(&info.name);
        let identity =
            |channel, request| async move { IdentityClient::new(channel).get_plugin_capabilities(request).await };
        let plugin =
            self.call("/csi.v1.Identity/GetPluginCapabilities", GetPluginCapabilitiesRequest {}, identity).await;
        let plugin = plugin.map_err(failed("GetPluginCapabilities"))?.capabilities;
        let controller =
            |channel, request| async move { ControllerClient::new(channel).controller_get_capabilities(request).await };
        let asked = ControllerGetCapabilitiesRequest {};
        let controller = self.call("/csi.v1.Controller/ControllerGetCapabilities", asked, controller).await;
        let controller = controller.map_err(failed("ControllerGetCapabilities"))?.capabilities;
        Ok(Introduction {
            name: info.name,
            version: info.vendor_version,
            abilities: Abilities::of(&plugin, &controller),
        })
    }

    /// Waits until the driver says that it is ready. One that says nothing about it is.
    async fn ready(&self) -> Result<(), String> {
        loop {
            let probe = |channel, request| async move { IdentityClient::new(channel).probe(request).await };
            match self.call("/csi.v1.Identity/Probe", ProbeRequest {}, probe).await {
                Ok(answer) if answer.ready != Some(false) => return Ok(()),
                Ok(_) => tracing::info!("the driver is not ready yet"),
                Err(status) if status.code() == Code::DeadlineExceeded => {
                    tracing::info!("the driver does not answer yet")
                }
                Err(status) => return Err(format!("the CSI driver failed its probe: {}", refusal::said(&status))),
            }
            sleep(TRIED_EVERY).await;
        }
    }

    async fn plugin_info(&self) -> Result<crate::proto::GetPluginInfoResponse, Status> {
        let send = |channel, request| async move { IdentityClient::new(channel).get_plugin_info(request).await };
        self.call("/csi.v1.Identity/GetPluginInfo", GetPluginInfoRequest {}, send).await
    }

    /// The same driver, for calls that are about volumes of the plugin that it has taken over from, or not.
    #[must_use]
    pub fn migrated(&self, is_migrated: bool) -> Driver {
        Driver { is_migrated, ..self.clone() }
    }

    /// Has a volume made.
    pub async fn create_volume(&self, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).create_volume(request).await };
        self.call("/csi.v1.Controller/CreateVolume", request, send).await
    }

    /// Has a volume removed.
    pub async fn delete_volume(&self, request: DeleteVolumeRequest) -> Result<(), Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).delete_volume(request).await };
        self.call("/csi.v1.Controller/DeleteVolume", request, send).await.map(drop)
    }

    /// Asks how much room there is.
    pub async fn get_capacity(&self, request: GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
        let send = |channel, request| async move { ControllerClient::new(channel).get_capacity(request).await };
        self.call("/csi.v1.Controller/GetCapacity", request, send).await
    }

    /// Asks what node this is.
    pub async fn node_info(&self) -> Result<NodeGetInfoResponse, Status> {
        let send = |channel, request| async move { NodeClient::new(channel).node_get_info(request).await };
        self.call("/csi.v1.Node/NodeGetInfo", NodeGetInfoRequest {}, send).await
    }

    /// How long a call may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns when the connection is lost.
    pub async fn lost(&self) {
        let mut gone = self.gone.clone();
        // Whoever would tell is kept by the connector, so an error too means that it is gone.
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// One call. A connection that breaks is no answer, whatever the transport makes of it: the call may have been carried out.
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
        let code = refusal::code(answer.as_ref().err().map_or(Code::Ok, Status::code));
        tracing::debug!(method, code, took = ?began.elapsed(), "the driver was called");
        self.calls.called(Called { method, code, took: began.elapsed(), is_migrated: self.is_migrated });
        answer.map(Response::into_inner)
    }
}

/// Whether a status was made on this side: of an error on the way, or of an answer that cannot be understood. A driver that says the
/// same is taken for one that cannot be understood, either.
fn is_from_transport(status: &Status) -> bool {
    let unreadable = ["failed to decode", "Missing response message", "Error, decoded message length too large"];
    std::error::Error::source(status).is_some() || unreadable.iter().any(|word| status.message().starts_with(word))
}

/// The socket that an address names: a path, with or without a scheme.
fn socket(address: &str) -> Result<PathBuf, String> {
    let path = address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:")).unwrap_or(address);
    if path.is_empty() || address.contains("://") && !address.starts_with("unix://") {
        return Err(format!("{address} is no unix socket"));
    }
    Ok(Path::new(path).to_owned())
}

/// A channel whose one connection, when it goes, is told of and not made again.
async fn channel(path: &Path, tell: Arc<watch::Sender<bool>>) -> Result<Channel, String> {
    let (path, was_made) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
    let connector = tower::service_fn(move |_: http::Uri| {
        let (path, was_made, tell) = (path.clone(), was_made.clone(), tell.clone());
        async move {
            if was_made.load(Ordering::Acquire) {
                return Err(std::io::Error::other("the connection to the CSI driver is lost"));
            }
            let stream = UnixStream::connect(path).await?;
            was_made.store(true, Ordering::Release);
            Ok(TokioIo::new(Wire::new(stream, tell)))
        }
    });
    // What is asked for is a host that exists; who answers is on the socket.
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
    fn what_was_not_said_by_the_driver_is_no_answer() {
        let broken = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the pipe broke");
        assert!(is_from_transport(&Status::from_error(Box::new(broken))));
        assert!(is_from_transport(&Status::internal("failed to decode Protobuf message: invalid tag value: 0")));
        assert!(!is_from_transport(&Status::internal("the disk is on fire")));
    }

    #[test]
    fn an_address_is_a_path_with_or_without_a_scheme() {
        for address in ["/run/csi/socket", "unix:///run/csi/socket", "unix:/run/csi/socket"] {
            assert_eq!(socket(address), Ok(PathBuf::from("/run/csi/socket")));
        }
        assert!(socket("").is_err() && socket("unix://").is_err() && socket("tcp://somewhere:1").is_err());
    }
}
