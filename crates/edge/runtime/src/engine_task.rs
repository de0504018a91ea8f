//! The task that owns the engine: it passes inputs one at a time and carries out the outputs.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Engine, Input, Moment, Output};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::caller::Caller;
use crate::decision_log::DecisionLog;
use crate::events::EventSink;
use crate::observer::Observer;

/// A message to the engine task.
pub enum Message {
    /// An input for the engine.
    Input(Input),
    /// A query about the engine's state.
    Query(EngineQuery),
    /// Stop the task.
    Stop,
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

/// The task that owns the engine.
pub struct EngineTask {
    engine: Engine,
    caller: Caller,
    events: EventSink,
    inbox: UnboundedReceiver<Message>,
    /// Sends answers to the inbox.
    outbox: UnboundedSender<Message>,
    observer: Arc<dyn Observer>,
    decisions: DecisionLog,
}

/// Longer than the process runs.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl EngineTask {
    /// A task for an engine. `outbox` sends to `inbox`.
    pub fn new(
        engine: Engine,
        caller: Caller,
        events: EventSink,
        (outbox, inbox): (UnboundedSender<Message>, UnboundedReceiver<Message>),
        observer: Arc<dyn Observer>,
    ) -> EngineTask {
        EngineTask { engine, caller, events, inbox, outbox, observer, decisions: DecisionLog::default() }
    }

    /// Runs until [`Message::Stop`].
    pub async fn run(mut self) {
        let start = Instant::now();
        let mut tick_at = start + FOREVER;
        loop {
            let message = tokio::select! {
                message = self.inbox.recv() => message,
                () = sleep_until(tick_at) => Some(Message::Input(Input::Tick)),
            };
            match message {
                None | Some(Message::Stop) => return,
                Some(Message::Query(EngineQuery(look))) => look(&self.engine),
                Some(Message::Input(input)) => {
                    if matches!(input, Input::Tick) {
                        tick_at = start + FOREVER;
                    }
                    let now = start.elapsed();
                    let outputs = self.engine.handle(Moment(now), input);
                    self.observer.handled(start.elapsed().saturating_sub(now));
                    for output in outputs {
                        self.carry_out(output, start, &mut tick_at);
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, output: Output, start: Instant, tick_at: &mut Instant) {
        match output {
            Output::Send(id, request) => {
                let (caller, outbox) = (self.caller.clone(), self.outbox.clone());
                tokio::spawn(async move {
                    let answer = caller.send(request).await;
                    // The engine task may have stopped.
                    let _ = outbox.send(Message::Input(Input::Answered(id, answer)));
                });
            }
            Output::Publish(event) => self.events.publish(event),
            Output::TickAt(moment) => *tick_at = start + moment.0,
            Output::Decided(decided) => {
                self.decisions.log(&decided);
                self.observer.decided(decided);
            }
            Output::Measured(measured) => self.observer.measured(&measured),
            Output::Rejected(rejection) => {
                let status = rejection.error.status();
                tracing::warn!(
                    controller = rejection.set,
                    object = %rejection.key,
                    target = %rejection.target,
                    step = rejection.step,
                    status,
                    error = %rejection.error,
                    failures = rejection.failures,
                    retry_in = ?rejection.retry_in,
                    "request rejected"
                );
            }
        }
    }
}
