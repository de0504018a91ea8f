//! Calls to the API server, with a deadline and a rate limit.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection_error::connection_error;

/// A connection to an API server.
pub struct Api {
    client: Client,
    /// How long a call may take.
    deadline: Duration,
    rate: Option<Rate>,
    /// Whether calls that wait for the rate limit are cancelled.
    stops: watch::Sender<bool>,
}

/// A response.
pub struct Reply {
    /// The HTTP status.
    pub status: StatusCode,
    /// The Retry-After header.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// The fields of a `Status` that are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
}

impl Reply {
    /// The message of the `Status`, or the HTTP status.
    pub fn message(&self) -> String {
        let status: Status = serde_json::from_slice(&self.body).unwrap_or_default();
        if status.message.is_empty() { self.status.to_string() } else { status.message }
    }

    /// The reason of the `Status`: `AlreadyExists`, `Conflict`.
    pub fn reason(&self) -> String {
        serde_json::from_slice::<Status>(&self.body).unwrap_or_default().reason
    }
}

/// There was no response. The request may have been carried out.
#[derive(Debug)]
pub struct Lost(pub String);

/// The default deadline of a call.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Why an object could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetError {
    /// The object does not exist.
    NotFound(String),
    /// The server returned this HTTP status and error, or an unreadable response.
    Rejected(u16, String),
    /// There was no response.
    Lost(String),
}

impl std::fmt::Display for GetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GetError::NotFound(error) | GetError::Rejected(_, error) | GetError::Lost(error) => f.write_str(error),
        }
    }
}

impl Api {
    /// The object at a path as JSON, read live.
    pub async fn get(&self, path: &str) -> Result<Value, GetError> {
        let request = http::Request::get(path).body(Vec::new());
        self.object(request.map_err(|error| GetError::Rejected(0, error.to_string()))?).await
    }

    /// Sends a request whose response is an object.
    pub async fn object(&self, request: http::Request<Vec<u8>>) -> Result<Value, GetError> {
        let reply = self.call(request).await.map_err(|Lost(error)| GetError::Lost(error))?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(GetError::NotFound(reply.message())),
            status if !status.is_success() => Err(GetError::Rejected(status.as_u16(), reply.message())),
            status => serde_json::from_slice(&reply.body).map_err(|error| {
                GetError::Rejected(status.as_u16(), format!("the response is not an object: {error}"))
            }),
        }
    }

    /// Calls through a client, with an optional rate limit in calls per second and burst.
    pub fn new(client: Client, deadline: Duration, rate: Option<(f64, f64)>) -> Api {
        let rate = rate.map(|(per_second, burst)| Rate::new(per_second, burst));
        Api { client, deadline, rate, stops: watch::Sender::new(false) }
    }

    /// The client, for watches.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The deadline of a call.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Cancels the calls that wait for the rate limit, now and later. Those that were sent go on.
    pub(crate) fn cancel_waiting(&self) {
        self.stops.send_replace(true);
    }

    /// Sends a request and waits for the response.
    pub async fn call(&self, request: http::Request<Vec<u8>>) -> Result<Reply, Lost> {
        self.admit().await?;
        self.call_admitted(request).await
    }

    /// Waits until the rate limit admits a call. Fails if the program stops before.
    pub async fn admit(&self) -> Result<(), Lost> {
        if let Some(rate) = &self.rate {
            let mut stops = self.stops.subscribe();
            tokio::select! {
                () = sleep_until(rate.slot(Instant::now())) => {}
                _ = stops.wait_for(|stops| *stops) => return Err(Lost("the program is stopping".into())),
            }
        }
        Ok(())
    }

    /// Sends a request that the rate limit has admitted, and waits for the response.
    pub async fn call_admitted(&self, request: http::Request<Vec<u8>>) -> Result<Reply, Lost> {
        let call = async {
            let response =
                self.client.send(request.map(Body::from)).await.map_err(|error| Lost(connection_error(&error)))?;
            let retry_after = response
                .headers()
                .get(http::header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok().map(Duration::from_secs));
            let status = response.status();
            let body = response.into_body().collect_bytes().await.map_err(|error| Lost(connection_error(&error)))?;
            Ok(Reply { status, retry_after, body })
        };
        timeout(self.deadline, call)
            .await
            .unwrap_or_else(|_| Err(Lost(format!("no response within {:?}", self.deadline))))
    }
}

/// A token bucket, stored as the time when it is full again.
struct Rate {
    interval: Duration,
    burst: Duration,
    full_at: Mutex<Option<Instant>>,
}

impl Rate {
    fn new(per_second: f64, burst: f64) -> Rate {
        let interval = Duration::from_secs_f64(1.0 / per_second.max(1e-6));
        Rate { interval, burst: interval.mul_f64(burst.max(1.0) - 1.0), full_at: Mutex::new(None) }
    }

    /// Takes a token, and returns when the call may be made.
    fn slot(&self, now: Instant) -> Instant {
        let mut full_at = self.full_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let full = full_at.unwrap_or(now).max(now);
        *full_at = Some(full + self.interval);
        now.max(full.checked_sub(self.burst).unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_after_a_burst_are_delayed() {
        let (rate, now) = (Rate::new(10.0, 3.0), Instant::now());
        let waits: Vec<u128> = (0..6).map(|_| (rate.slot(now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(10);
        assert_eq!(rate.slot(later), later, "the bucket is full again");
    }
}
