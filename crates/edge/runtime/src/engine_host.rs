//! Everything that runs for an engine: its task, its watches and its event sink.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::Engine;
use bindery_model::Kind;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::watch::watch_claims;
use crate::{
    Api, Caller, EngineTask, EventSink, Message, Observer, RecordTask, Records, RunOperation, WatchStatus, change_queue,
};

/// The running tasks of an engine. Dropping it stops them.
pub struct EngineHost {
    /// Where to send messages to the engine.
    pub outbox: UnboundedSender<Message>,
    /// Where the engine's events are published.
    pub events: EventSink,
    /// How current the watches are.
    pub watches: WatchStatus,
    /// The tasks. None of them ends unless it fails.
    pub tasks: JoinSet<&'static str>,
}

/// The name of the engine's task.
const ENGINE: &str = "the engine";
/// How long the engine may take to notice that it is stopped.
const STOP_MAX: Duration = Duration::from_secs(1);

impl EngineHost {
    /// Starts an engine on an API server. It watches, but makes no decisions until it is the
    /// leader. `worker` returns what runs its operations, and may publish events to the given sink.
    pub fn start(
        api: &Arc<Api>,
        engine: Engine,
        observer: &Arc<dyn Observer>,
        worker: impl FnOnce(EventSink) -> Arc<dyn RunOperation>,
    ) -> EngineHost {
        EngineHost::start_with_records(api, engine, observer, worker, None)
    }

    /// The same for an engine that provisions. Its records are stored by the given task.
    pub fn start_with_records(
        api: &Arc<Api>,
        engine: Engine,
        observer: &Arc<dyn Observer>,
        worker: impl FnOnce(EventSink) -> Arc<dyn RunOperation>,
        records: Option<(Records, RecordTask)>,
    ) -> EngineHost {
        let (records, record_task) = records.unzip();
        let pending = records.as_ref().map(|records: &Records| records.pending_claims().clone());
        let (outbox, inbox) = unbounded_channel();
        let (events, write_events) = EventSink::new(api.clone());
        let caller = Caller::new(api.clone(), worker(events.clone())).with_records(records);
        let kinds = engine.watches().to_vec();
        let (sender, changes) = change_queue();
        let task = EngineTask::new(engine, caller, events.clone(), inbox, changes, observer.clone());
        let mut host = EngineHost { outbox, events, watches: WatchStatus::default(), tasks: JoinSet::new() };
        if let Some(task) = record_task {
            host.spawn("the provisioning records", task.run(sender.clone(), host.watches.clone()));
        }
        for kind in kinds.into_iter().filter(|kind| kind.is_served()) {
            let pending = pending.clone().filter(|_| kind == Kind::Claim);
            host.spawn("a watch", watch_claims(api.clone(), kind, sender.clone(), host.watches.clone(), pending));
        }
        host.spawn(ENGINE, task.run());
        host.spawn("the event sink", write_events);
        host
    }

    /// Runs another task with the engine.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            task.await;
            name
        });
    }

    /// Makes this instance the leader, or not.
    pub fn set_leader(&self, leader: bool) -> Result<(), String> {
        self.outbox.send(Message::Leader(leader)).map_err(|_| "the engine has stopped".to_owned())
    }

    /// Stops all tasks. Nothing new is sent from now on; requests that were sent may take this long
    /// before they are cancelled. Afterwards nothing is written any more.
    pub async fn stop(mut self, drain: Duration) {
        if self.outbox.send(Message::Stop { drain }).is_ok() {
            let stopped = async { while !matches!(self.tasks.join_next().await, None | Some(Ok(ENGINE))) {} };
            if timeout(drain + STOP_MAX, stopped).await.is_err() {
                tracing::warn!("the engine does not stop");
            }
        }
        self.tasks.shutdown().await;
    }

    /// Waits until one of the tasks ends, which is always an error. Returns which one.
    pub async fn task_failure(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(task)) => format!("{task} ended unexpectedly"),
            Some(Err(error)) => format!("a task ended unexpectedly: {error}"),
            None => "all tasks ended unexpectedly".into(),
        }
    }
}

/// Waits for SIGTERM or SIGINT. Signals count from the call, not only once the result is awaited.
pub fn shutdown_signal() -> impl Future<Output = Result<(), String>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let (terminate, interrupt) = (listen(SignalKind::terminate()), listen(SignalKind::interrupt()));
    async {
        let (mut terminate, mut interrupt) = (terminate?, interrupt?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down");
        Ok(())
    }
}
