//! One call of an API server: within a deadline, within a rate, and with an answer whatever happens.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection_error::connection_error;

/// An API server, as the runtime calls it.
pub struct Api {
    client: Client,
    /// How long a call may take. An API server answers within its own minute at worst; who waits longer waits in vain.
    deadline: Duration,
    rate: Option<Rate>,
}

/// What came back.
pub struct Reply {
    /// The HTTP status.
    pub status: StatusCode,
    /// How long the server asks us to wait, if it does.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// The part of a `Status` that is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
}

impl Reply {
    /// What the server says about it, or the bare status.
    pub fn message(&self) -> String {
        let status: Status = serde_json::from_slice(&self.body).unwrap_or_default();
        if status.message.is_empty() { self.status.to_string() } else { status.message }
    }

    /// The server's reason in a word: `AlreadyExists`, `Conflict`.
    pub fn reason(&self) -> String {
        serde_json::from_slice::<Status>(&self.body).unwrap_or_default().reason
    }
}

/// There was no answer: the call may have been carried out, or not.
#[derive(Debug)]
pub struct Lost(pub String);

/// How long a call may take, unless somebody has a reason to wait longer.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Why an object could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetError {
    /// There is none.
    NotFound(String),
    /// The server said no, or something that cannot be understood.
    Refused(u16, String),
    /// There was no answer.
    Lost(String),
}

impl std::fmt::Display for GetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GetError::NotFound(error) | GetError::Refused(_, error) | GetError::Lost(error) => f.write_str(error),
        }
    }
}

impl Api {
    /// What is at a path, past all caches, as JSON.
    pub async fn get(&self, path: &str) -> Result<Value, GetError> {
        let request = http::Request::get(path).body(Vec::new());
        self.object(request.map_err(|error| GetError::Refused(0, error.to_string()))?).await
    }

    /// Makes a call that is answered with an object.
    pub async fn object(&self, request: http::Request<Vec<u8>>) -> Result<Value, GetError> {
        let reply = self.call(request).await.map_err(|Lost(error)| GetError::Lost(error))?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(GetError::NotFound(reply.message())),
            status if !status.is_success() => Err(GetError::Refused(status.as_u16(), reply.message())),
            status => serde_json::from_slice(&reply.body)
                .map_err(|error| GetError::Refused(status.as_u16(), format!("the answer is no object: {error}"))),
        }
    }

    /// An API server by its client. With a rate, so many calls a second, and a burst of so many.
    pub fn new(client: Client, deadline: Duration, rate: Option<(f64, f64)>) -> Api {
        Api { client, deadline, rate: rate.map(|(a_second, burst)| Rate::new(a_second, burst)) }
    }

    /// The client, for what is not one call and one answer.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How long an answer is waited for.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Calls, and waits for the answer.
    pub async fn call(&self, request: http::Request<Vec<u8>>) -> Result<Reply, Lost> {
        if let Some(rate) = &self.rate {
            sleep_until(rate.slot(Instant::now())).await;
        }
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
        timeout(self.deadline, call).await.unwrap_or_else(|_| Err(Lost(format!("no answer in {:?}", self.deadline))))
    }
}

/// A token bucket, as one moment: when the bucket would be full again.
struct Rate {
    interval: Duration,
    burst: Duration,
    full_at: Mutex<Option<Instant>>,
}

impl Rate {
    fn new(a_second: f64, burst: f64) -> Rate {
        let interval = Duration::from_secs_f64(1.0 / a_second.max(1e-6));
        Rate { interval, burst: interval.mul_f64(burst.max(1.0) - 1.0), full_at: Mutex::new(None) }
    }

    /// When the next call may be made; takes its token.
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
    fn a_burst_is_let_through_and_the_rest_spread_out() {
        let (rate, now) = (Rate::new(10.0, 3.0), Instant::now());
        let waits: Vec<u128> = (0..6).map(|_| (rate.slot(now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(10);
        assert_eq!(rate.slot(later), later, "the bucket is full again");
    }
}
