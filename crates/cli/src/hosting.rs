//! Controllers and what they run on: an engine, its watches, its events, and the task that owns it.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Engine, Input};
use bindery_runtime::{Api, Brain, Caller, EventSink, Message, Observer, Operator, watch};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// How long a call of the API server may take.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Controllers that run. They end when this is dropped.
pub struct Hosted {
    /// Where they are told what happens.
    pub outbox: UnboundedSender<Message>,
    /// Where their events go.
    pub events: EventSink,
    /// Everything that has to run for as long as they do.
    pub tasks: JoinSet<&'static str>,
}

impl Hosted {
    /// Starts controllers on an API server. They watch, and decide nothing until they lead.
    pub fn start(api: &Arc<Api>, engine: Engine, observer: &Arc<dyn Observer>) -> Hosted {
        let (outbox, inbox) = unbounded_channel();
        let (events, write_events) = EventSink::new(api.clone());
        let caller = Caller::new(api.clone(), Operator::new(api.clone(), events.clone(), observer.clone()));
        let kinds = engine.sees().to_vec();
        let brain = Brain::new(engine, caller, events.clone(), (outbox.clone(), inbox), observer.clone());
        let mut hosted = Hosted { outbox, events, tasks: JoinSet::new() };
        for kind in kinds {
            hosted.run("a watch", watch(api.clone(), kind, hosted.outbox.clone()));
        }
        hosted.run("the brain", brain.run());
        hosted.run("the event sink", write_events);
        hosted
    }

    /// Has one thing more run beside them.
    pub fn run(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            task.await;
            name
        });
    }

    /// Has them lead, or lead no more.
    pub fn lead(&self, leading: bool) -> Result<(), String> {
        let told = self.outbox.send(Message::Happened(Input::Leading(leading)));
        told.map_err(|_| "the brain is gone".to_owned())
    }

    /// Waits for something that should never happen: one of the tasks ends. Says which.
    pub async fn failed(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(task)) => format!("{task} ended unexpectedly"),
            Some(Err(error)) => format!("a task ended unexpectedly: {error}"),
            None => "all tasks ended unexpectedly".into(),
        }
    }
}

/// Waits until the process is told to stop, by SIGTERM or SIGINT.
pub async fn told_to_stop() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let error = |error: std::io::Error| format!("cannot listen for signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(error)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(error)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("told to stop");
    Ok(())
}
