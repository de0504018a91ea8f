//! Running controllers as the leader: at once, or after leader election is won.

use std::future::Future;
use std::time::Duration;

use bindery_runtime::{EngineHost, Lease, shutdown_signal};

/// Client-go requires the renew deadline to be longer than the retry period by this factor.
const JITTER_FACTOR: f64 = 1.2;

/// How long requests that were sent may take at shutdown. Work that is not done by then is resumed
/// by the next leader.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs controllers until SIGTERM or SIGINT, as the leader, together with background work that only
/// the leader does and that never ends. Losing the lease is an error, and so is the unexpected end
/// of a task.
pub async fn run_as_leader(
    lease: Option<Lease>,
    mut host: EngineHost,
    background: impl Future<Output = ()>,
) -> Result<(), String> {
    let (mut stop, mut background) = (std::pin::pin!(shutdown_signal()), std::pin::pin!(background));
    let background_ended = || "the leader's background work ended unexpectedly".to_owned();
    let Some(mut lease) = lease else {
        tracing::info!("leader election is disabled");
        host.set_leader(true)?;
        let ended = tokio::select! {
            stopped = &mut stop => stopped,
            failed = host.task_failure() => Err(failed),
            () = &mut background => Err(background_ended()),
        };
        host.stop(DRAIN).await;
        return ended;
    };
    tokio::select! {
        stopped = &mut stop => return stopped,
        failed = host.task_failure() => return Err(failed),
        () = lease.acquire() => host.set_leader(true)?,
    }
    let lost = |lease: &Lease| Err(format!("lost the lease {}: another instance may be the leader now", lease.name()));
    let ended = tokio::select! {
        stopped = &mut stop => stopped,
        failed = host.task_failure() => Err(failed),
        () = &mut background => Err(background_ended()),
        () = lease.hold() => {
            host.stop(Duration::ZERO).await;
            return lost(&lease);
        }
    };
    // Nothing is sent after the lease is released, and it is renewed until then.
    tokio::select! {
        () = host.stop(DRAIN) => {}
        () = lease.hold() => return lost(&lease),
    }
    lease.release().await;
    ended
}

/// Checks the times of leader election, as client-go does. The flags start with `prefix`.
pub fn check_times(prefix: &str, lease: Duration, deadline: Duration, retry: Duration) -> Result<(), String> {
    if lease <= deadline || deadline <= retry.mul_f64(JITTER_FACTOR) || retry.is_zero() {
        return Err(format!(
            "{prefix}-lease-duration must be longer than {prefix}-renew-deadline, and that longer than \
             {JITTER_FACTOR} times {prefix}-retry-period"
        ));
    }
    Ok(())
}

/// The name of this host, which identifies an instance in its lease.
pub fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "unknown".into());
    host.trim().to_owned()
}
