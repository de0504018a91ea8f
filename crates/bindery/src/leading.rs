//! Leader: at once, or when the lease is had.

use std::future::Future;
use std::sync::Arc;

use bindery_runtime::{Api, EngineHost, Lease, LeaseConfig, Observer, shutdown_signal};

/// Leads until told to stop, at once or when the lease is had, and sees to its duties meanwhile, which never end. It is an error
/// when the lease is lost, or when anything ends that should not.
pub async fn lead(
    lease: Option<LeaseConfig>,
    api: Arc<Api>,
    observer: Arc<dyn Observer>,
    mut hosted: EngineHost,
    duties: impl Future<Output = ()>,
) -> Result<(), String> {
    let (mut stop, mut duties) = (std::pin::pin!(shutdown_signal()), std::pin::pin!(duties));
    let neglected = || "what a leader has to see to ended unexpectedly".to_owned();
    let Some(lease) = lease else {
        hosted.set_leader(true)?;
        return tokio::select! {
            stopped = &mut stop => stopped,
            failed = hosted.task_failure() => Err(failed),
            () = &mut duties => Err(neglected()),
        };
    };
    let mut lease = Lease::new(api, lease, observer);
    tokio::select! {
        stopped = &mut stop => return stopped,
        failed = hosted.task_failure() => return Err(failed),
        () = lease.acquire() => hosted.set_leader(true)?,
    }
    let ended = tokio::select! {
        stopped = &mut stop => stopped,
        failed = hosted.task_failure() => Err(failed),
        () = &mut duties => Err(neglected()),
        () = lease.hold() => return Err("the lease was lost: another instance may lead now".into()),
    };
    // First nothing more is sent, then another may lead.
    hosted.set_leader(false)?;
    lease.release().await;
    ended
}
