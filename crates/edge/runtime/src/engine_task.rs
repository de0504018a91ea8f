//! The task that owns the engine: it passes inputs one at a time and carries out the outputs.

use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Answer, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_rules_api::Request;
use futures::FutureExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until, timeout};

use crate::caller::Caller;
use crate::change_queue::ChangeReceiver;
use crate::decision_log::DecisionLog;
use crate::events::EventSink;
use crate::observer::Observer;
use crate::rejection_log::{self, RejectionLog};

/// A message to the engine task.
pub enum Message {
    /// This instance is the leader, or no longer.
    Leader(bool),
    /// A query about the engine's state. Callers limit how many of them wait.
    Query(EngineQuery),
    /// Stop the task: send nothing more, and wait this long for answers.
    Stop {
        /// How long requests that were sent may take.
        drain: Duration,
    },
}

/// A read-only query of the engine.
pub struct EngineQuery(Box<dyn FnOnce(&Engine) + Send>);

impl EngineQuery {
    /// A query, and the receiver of its result.
    pub fn new<T: Send + 'static>(
        look: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> (EngineQuery, oneshot::Receiver<T>) {
        let (send, receive) = oneshot::channel();
        let query = move |engine: &Engine| {
            // The receiver may have been dropped.
            let _ = send.send(look(engine));
        };
        (EngineQuery(Box::new(query)), receive)
    }
}

/// The task that owns the engine. Dropping it cancels its requests.
pub struct EngineTask {
    engine: Engine,
    caller: Caller,
    events: EventSink,
    inbox: UnboundedReceiver<Message>,
    changes: ChangeReceiver,
    /// The requests that were sent. The engine limits their number.
    calls: JoinSet<(RequestId, Answer)>,
    observer: Arc<dyn Observer>,
    decisions: DecisionLog,
    rejections: RejectionLog,
}

/// Longer than the process runs.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Waits until a time. If it has come, other tasks and inputs still get their turn: the engine asks
/// to be called at once while it works in slices, and a timer would round that up to a millisecond.
async fn reach(time: Instant) {
    if time > Instant::now() {
        sleep_until(time).await;
    } else {
        yield_now().await;
    }
}

impl EngineTask {
    /// A task for an engine, which gets messages and what watches report.
    pub fn new(
        engine: Engine,
        caller: Caller,
        events: EventSink,
        inbox: UnboundedReceiver<Message>,
        changes: ChangeReceiver,
        observer: Arc<dyn Observer>,
    ) -> EngineTask {
        // Instances that are rejected at the same time must not retry at the same time.
        let engine = engine.with_jitter(RandomState::new().hash_one(()));
        let (calls, decisions, rejections) = (JoinSet::new(), DecisionLog::default(), RejectionLog::default());
        EngineTask { engine, caller, events, inbox, changes, calls, observer, decisions, rejections }
    }

    /// Runs until [`Message::Stop`].
    pub async fn run(mut self) {
        let start = Instant::now();
        let mut tick_at = start + FOREVER;
        loop {
            let input = tokio::select! {
                message = self.inbox.recv() => match message {
                    None => return self.stop(Duration::ZERO).await,
                    Some(Message::Stop { drain }) => return self.stop(drain).await,
                    Some(Message::Query(EngineQuery(look))) => {
                        look(&self.engine);
                        continue;
                    }
                    Some(Message::Leader(is_leader)) => Input::Leader(is_leader),
                },
                change = self.changes.next() => change.into(),
                Some(answered) = self.calls.join_next() => match answered {
                    Ok((id, answer)) => Input::Answered(id, answer),
                    Err(error) => {
                        tracing::error!(%error, "request task failed");
                        continue;
                    }
                },
                () = reach(tick_at) => {
                    tick_at = start + FOREVER;
                    Input::Tick
                }
            };
            let now = start.elapsed();
            let outputs = self.engine.handle(Moment(now), input);
            self.observer.handled(start.elapsed().saturating_sub(now));
            for output in outputs {
                self.carry_out(output, start, &mut tick_at);
            }
        }
    }

    fn carry_out(&mut self, output: Output, start: Instant, tick_at: &mut Instant) {
        match output {
            Output::Send(id, request) => {
                let caller = self.caller.clone();
                self.calls.spawn(async move { (id, answer(&caller, request).await) });
            }
            Output::Publish(event) => self.events.publish(event),
            Output::TickAt(moment) => *tick_at = start + moment.0,
            Output::Decided(decided) => {
                self.decisions.log(&decided);
                self.observer.decided(decided);
            }
            Output::Measured(measured) => self.observer.measured(&measured),
            Output::Rejected(rejection) => {
                let is_reported = self.rejections.log(&rejection);
                if let Some(event) = rejection_log::event(&self.engine, &rejection).filter(|_| is_reported) {
                    self.events.publish(event);
                }
                self.observer.rejected(&rejection);
            }
        }
    }

    /// Cancels the requests that wait for the rate limit, waits for those that were sent, and
    /// cancels them if they take too long. The engine is given no more inputs, so it sends nothing
    /// more. What a cancelled request has changed is found by the next leader, as after a crash.
    async fn stop(mut self, drain: Duration) {
        self.caller.cancel_waiting();
        let drained = timeout(drain, async { while self.calls.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::info!(requests = self.calls.len(), "requests without a response cancelled");
        }
        self.calls.shutdown().await;
    }
}

/// Sends a request. A panic affects only this request: its outcome is unknown.
async fn answer(caller: &Caller, request: Request) -> Answer {
    AssertUnwindSafe(caller.send(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("request failed with a panic");
        Answer::Rejected(RequestError::Lost)
    })
}
