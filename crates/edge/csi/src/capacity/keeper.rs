//! Keeping what is told about room true.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bindery_runtime::Api;
use futures::StreamExt;
use futures::stream::iter;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::plan::{Deed, Identity, Room, plan};
use super::segments::Place;
use crate::driver::Driver;
use crate::fields::texts;
use crate::path;
use crate::proto::{GetCapacityRequest, Topology};
use crate::refusal;

/// How often it is looked whether classes or places have changed.
const LOOKED_EVERY: Duration = Duration::from_secs(1);

/// What is to be told: for every class, and for every place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The driver's classes, by name.
    pub classes: BTreeSet<String>,
    /// Its places.
    pub places: BTreeSet<Place>,
}

/// How many objects there are to be and are, for whoever counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// For every class and place one.
    pub goal: AtomicI64,
    /// Those that are there already.
    pub current: AtomicI64,
    /// Those that are there and should not be.
    pub obsolete: AtomicI64,
}

/// Who keeps what is told about room true.
pub struct Keeper {
    /// The API server, with a rate of its own.
    pub api: Arc<Api>,
    /// The driver.
    pub driver: Driver,
    /// Whose objects they are.
    pub identity: Identity,
    /// How often the driver is asked.
    pub poll: Duration,
    /// How many calls of it may be under way at once.
    pub calls_max: usize,
    /// PublishedEvents when a volume was made or removed.
    pub changed: Arc<Notify>,
    /// Where it is noted how many objects there are.
    pub counts: Arc<Counts>,
}

impl Keeper {
    /// Keeps it true, for ever: when it is time, when classes or places have changed, and when a volume was made or removed.
    pub async fn keep<F>(self, wanted: impl Fn() -> F)
    where
        F: Future<Output = Option<Wanted>>,
    {
        let (mut told, mut due) = (None, Instant::now());
        loop {
            tokio::select! {
                () = sleep(LOOKED_EVERY) => {}
                () = self.changed.notified() => due = Instant::now(),
            }
            let Some(wanted) = wanted().await else { continue };
            if Instant::now() < due && told.as_ref() == Some(&wanted) {
                continue;
            }
            match self.tell(&wanted).await {
                Ok(()) => (told, due) = (Some(wanted), Instant::now() + self.poll),
                Err(error) => tracing::warn!(error, "how much room there is cannot be told"),
            }
        }
    }

    /// Asks the driver about every class and place, and writes what is not told yet. What fails is done by the next round.
    async fn tell(&self, wanted: &Wanted) -> Result<(), String> {
        let mut rooms = BTreeMap::new();
        for class in &wanted.classes {
            let at = path::class(class)?;
            let Ok(class_object) = self.api.get(&at).await else { continue };
            let parameters = texts(&class_object, "/parameters");
            let ask = |place: &'_ Place| {
                let (place, parameters) = (place.clone(), parameters.clone());
                async move { (place.clone(), self.ask(place, parameters).await) }
            };
            let asked: Vec<_> = iter(&wanted.places).map(ask).buffer_unordered(self.calls_max.max(1)).collect().await;
            rooms.extend(asked.into_iter().map(|(place, room)| ((class.clone(), place), room)));
        }
        let existing = self.existing().await?;
        let (mut there, mut obsolete) = (existing.len() as i64, 0);
        for deed in plan(&self.identity, &rooms, &existing) {
            match (self.carry_out(&deed).await, &deed) {
                (Ok(()), Deed::Create(_)) => there += 1,
                (Ok(()), Deed::Delete { .. }) => there -= 1,
                (Ok(()), Deed::Change(_)) => {}
                (Err(error), deed) => {
                    tracing::warn!(error, "how much room there is cannot be told");
                    obsolete += i64::from(matches!(deed, Deed::Delete { .. }));
                }
            }
        }
        self.counts.goal.store(rooms.len() as i64, Ordering::Relaxed);
        self.counts.current.store(there - obsolete, Ordering::Relaxed);
        self.counts.obsolete.store(obsolete, Ordering::Relaxed);
        Ok(())
    }

    async fn ask(&self, place: Place, parameters: BTreeMap<String, String>) -> Room {
        let accessible_topology = (!place.is_empty()).then_some(Topology { segments: place });
        let request = GetCapacityRequest { volume_capabilities: vec![], parameters, accessible_topology };
        match self.driver.get_capacity(request).await {
            Ok(answer) => Room::Known { bytes: answer.available_capacity, largest: answer.maximum_volume_size },
            Err(status) => {
                tracing::warn!(error = refusal::said(&status), "the driver does not say how much room there is");
                Room::Unknown
            }
        }
    }

    async fn existing(&self) -> Result<Vec<Value>, String> {
        let labels = self.identity.labels().map(|(key, value)| format!("{key}%3D{value}")).join("%2C");
        let at = format!("{}?labelSelector={labels}", self.identity.collection());
        let mut list = self.api.get(&at).await.map_err(|error| error.to_string())?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    async fn carry_out(&self, deed: &Deed) -> Result<(), String> {
        let (method, path, media, body) = match deed {
            Deed::Create(object) => {
                (http::Method::POST, self.identity.collection(), "application/json", object.clone())
            }
            Deed::Change(patch) => {
                (http::Method::PATCH, patch.path.clone(), "application/merge-patch+json", patch.body.clone())
            }
            Deed::Delete { path, preconditions } => {
                (http::Method::DELETE, path.clone(), "application/json", json!({"preconditions": preconditions}))
            }
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, media)
            .body(body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        self.api.object(request).await.map(drop).map_err(|error| error.to_string())
    }
}
