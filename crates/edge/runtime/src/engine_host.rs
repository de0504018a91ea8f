//! Controllers and what they run on: an engine, its watches, its events, and the task that owns it.

use std::sync::Arc;

use bindery_engine::{Engine, Input};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::{Api, Caller, EngineTask, EventSink, InTreeOperations, Message, Observer, RunOperation, watch};

/// Controllers that run. They end when this is dropped.
pub struct EngineHost {
    /// Where they are told what happens.
    pub outbox: UnboundedSender<Message>,
    /// Where their events go.
    pub events: EventSink,
    /// Everything that has to run for as long as they do.
    pub tasks: JoinSet<&'static str>,
}

impl EngineHost {
    /// Starts controllers on an API server. They watch, and decide nothing until they lead. What they order outside the API is
    /// done on this host.
    pub fn start(api: &Arc<Api>, engine: Engine, observer: &Arc<dyn Observer>) -> EngineHost {
        let on_this_host =
            |events| Arc::new(InTreeOperations::new(api.clone(), events, observer.clone())) as Arc<dyn RunOperation>;
        EngineHost::start_with(api, engine, observer, on_this_host)
    }

    /// The same, with somebody who does what is ordered outside the API, and who may publish events.
    pub fn start_with(
        api: &Arc<Api>,
        engine: Engine,
        observer: &Arc<dyn Observer>,
        operator: impl FnOnce(EventSink) -> Arc<dyn RunOperation>,
    ) -> EngineHost {
        let (outbox, inbox) = unbounded_channel();
        let (events, write_events) = EventSink::new(api.clone());
        let caller = Caller::new(api.clone(), operator(events.clone()));
        let kinds = engine.sees().to_vec();
        let brain = EngineTask::new(engine, caller, events.clone(), (outbox.clone(), inbox), observer.clone());
        let mut hosted = EngineHost { outbox, events, tasks: JoinSet::new() };
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
        let told = self.outbox.send(Message::Happened(Input::Leader(leading)));
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
pub async fn shutdown_signal() -> Result<(), String> {
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
