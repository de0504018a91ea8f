//! The task that owns the engine: takes in what happens, one thing at a time, and has done what the engine orders.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Engine, Input, Moment, Output};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::decision_log::DecisionLog;
use crate::events::EventSink;
use crate::observe::Observer;
use crate::send::Caller;

/// What the brain is told.
pub enum Message {
    /// Something happened.
    Happened(Input),
    /// Somebody asks how it goes.
    Asked(Ask),
    /// It is to stop.
    Stop,
}

/// A question to the brain: looks at the engine, and sends what it saw.
pub struct Ask(Box<dyn FnOnce(&Engine) + Send>);

impl Ask {
    /// A question, and where its answer arrives.
    pub fn new<T: Send + 'static>(look: impl FnOnce(&Engine) -> T + Send + 'static) -> (Ask, oneshot::Receiver<T>) {
        let (send, receive) = oneshot::channel();
        let ask = move |engine: &Engine| {
            // Whoever asked may have gone.
            let _ = send.send(look(engine));
        };
        (Ask(Box::new(ask)), receive)
    }
}

/// Owns the engine.
pub struct EngineTask {
    engine: Engine,
    caller: Caller,
    events: EventSink,
    inbox: UnboundedReceiver<Message>,
    /// Where answers are sent: to itself.
    outbox: UnboundedSender<Message>,
    observer: Arc<dyn Observer>,
    decisions: DecisionLog,
}

/// A wait that is over when the process is.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl EngineTask {
    /// A brain with all that it needs. The observer hears how it goes.
    pub fn new(
        engine: Engine,
        caller: Caller,
        events: EventSink,
        (outbox, inbox): (UnboundedSender<Message>, UnboundedReceiver<Message>),
        observer: Arc<dyn Observer>,
    ) -> EngineTask {
        EngineTask { engine, caller, events, inbox, outbox, observer, decisions: DecisionLog::default() }
    }

    /// Runs until it is told to stop.
    pub async fn run(mut self) {
        let start = Instant::now();
        let mut tick_at = start + FOR_EVER;
        loop {
            let message = tokio::select! {
                message = self.inbox.recv() => message,
                () = sleep_until(tick_at) => Some(Message::Happened(Input::Tick)),
            };
            match message {
                None | Some(Message::Stop) => return,
                Some(Message::Asked(Ask(look))) => look(&self.engine),
                Some(Message::Happened(input)) => {
                    if matches!(input, Input::Tick) {
                        tick_at = start + FOR_EVER;
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
                    let answer = caller.carry_out(request).await;
                    // When the brain is gone, nobody waits for an answer.
                    let _ = outbox.send(Message::Happened(Input::Answered(id, answer)));
                });
            }
            Output::Publish(notice) => self.events.publish(notice),
            Output::TickAt(moment) => *tick_at = start + moment.0,
            Output::Decided(decided) => {
                self.decisions.log(&decided);
                self.observer.decided(decided);
            }
            Output::Measured(measured) => self.observer.measured(&measured),
        }
    }
}
