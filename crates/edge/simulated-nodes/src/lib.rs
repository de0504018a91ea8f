//! Simulated nodes, and a fake kubelet that plays theirs.
//!
//! No machine stands behind a simulated node, and no container runs in its pods: they are objects of the API that look as if.
//! A node is simulated if it bears the label [`SIMULATED`], whoever made it; nodes without it, and their pods, are never touched.
//!
//! - [`shape`](self): what a simulated node and its lease look like.
//! - `kubelet`: what the fake kubelet does next about a pod. Synchronous, and without a client.
//! - `status`: what it says of a pod that runs; `addresses`: which address it gives to whom.
//! - `heartbeat`, `life`: the calls that follow.
//! - `driver`: a simulated CSI driver, which serves the default class from storage that is not there; `rooms`: who has how much of
//!   it; `offer`: what it puts into the API.
//!
//! This room does not know any rule of volumes, and binds nothing: it sees whether a claim is bound, as a kubelet does.

mod addresses;
mod calls;
mod driver;
mod heartbeat;
mod kubelet;
mod life;
mod offer;
mod rooms;
mod shape;
mod status;

use std::sync::Arc;

use bindery_runtime::Api;

pub use driver::Driver;
pub use offer::{CLASS, DRIVER};
pub use shape::{MOST, SIMULATED};

/// Makes the nodes `node-1` to `node-<count>` where there are none of these names, and plays the kubelet of every simulated
/// node, for ever.
pub async fn run(api: Arc<Api>, count: u32) {
    let calls = Arc::new(calls::Calls::new(api));
    heartbeat::make_nodes(&calls, count).await;
    life::Life::new(calls).await.run().await;
}
