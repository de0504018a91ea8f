//! Discovery: scans every class's directory and creates volumes for new disks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Class, Name, Node};
use bindery_provisioner_sdk::class_path;
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink, GetError};
use serde_json::Value;

use super::{Cleanings, DiskObserver, DiskProblem, EngineVolumes, Problems};
use crate::config::{ClassConfig, Config};
use crate::discover::{
    ClassContext, Decision, EntryDisk, ExistingVolumes, Outcome, Owner, ScanResult, Shape, discover, matches_pattern,
};
use crate::{clean, disk};

/// The entries of one class, and the disks of all classes.
struct ClassScan<'a> {
    name: &'a str,
    class: &'a ClassConfig,
    entries: &'a [ScanResult],
    all: &'a [EntryDisk],
}

/// The disks of a class's entries.
fn disks(class: &str, entries: &[ScanResult]) -> Vec<EntryDisk> {
    let disks = entries.iter().flatten().filter_map(|seen| Some((seen.name.clone(), seen.identity?)));
    disks.map(|(entry, identity)| EntryDisk { class: class.to_owned(), entry, identity }).collect()
}

/// Discovery on a node.
pub struct Discovery {
    /// The API server.
    pub api: Arc<Api>,
    /// The configuration.
    pub config: Arc<Config>,
    /// The node.
    pub node: Arc<Node>,
    /// Identifies the volumes of this node's provisioner.
    pub owner: Owner,
    /// The volumes in the engine's cache.
    pub engine_volumes: EngineVolumes,
    /// The state of all cleanings.
    pub cleanings: Cleanings,
    /// Publishes events.
    pub events: EventSink,
    /// The component in events.
    pub component: &'static str,
    /// For metrics.
    pub observer: Arc<dyn DiskObserver>,
    /// The last message logged about each entry; it is not repeated until it changes.
    pub logged: BTreeMap<(String, Option<String>), String>,
    /// The problems of the last round; they are not logged again until they change.
    pub failed: BTreeSet<String>,
}

impl Discovery {
    /// Scans all classes once. Returns all problems.
    pub async fn run_once(&mut self) -> Problems {
        let mut problems = Problems::default();
        let Some(volumes) = self.engine_volumes.list().await else {
            problems.general.push("the cache of volumes is not synced yet".into());
            return problems;
        };
        let known = ExistingVolumes::new(&self.node, volumes);
        self.report_policies(&known);
        let config = self.config.clone();
        let (mut failed, mut scans) = (BTreeSet::new(), Vec::new());
        for (name, class) in &config.classes {
            match scan(class.clone()).await {
                Ok(entries) => scans.push((name, class, entries)),
                Err(problem) => drop(failed.insert(format!("class {name:?}: {problem}"))),
            }
        }
        let disks: Vec<EntryDisk> = scans.iter().flat_map(|(name, _, entries)| disks(name, entries)).collect();
        for (name, class, entries) in &scans {
            let scan = ClassScan { name, class, entries, all: &disks };
            match self.scan_entry(&scan, &known, &mut problems).await {
                Ok(failures) => failed.extend(failures),
                Err(problem) => drop(failed.insert(format!("class {name:?}: {problem}"))),
            }
        }
        for problem in failed.difference(&self.failed) {
            tracing::warn!(problem, "discovery failed, will be retried");
        }
        problems.general.extend(failed.iter().cloned());
        self.failed = failed;
        self.observer.scanned(&problems.disks);
        problems
    }

    /// Scans one class. Returns the volumes that could not be created.
    async fn scan_entry(
        &mut self,
        scan: &ClassScan<'_>,
        known: &ExistingVolumes,
        problems: &mut Problems,
    ) -> Result<Vec<String>, String> {
        let class = self.class(scan.name).await?;
        let began = Instant::now();
        let cleaning = self.cleanings.running();
        let config = self.config.clone();
        let mut failures = Vec::new();
        let context = ClassContext {
            config: &config,
            class_name: scan.name,
            class_config: scan.class,
            class: class.as_ref(),
            node: &self.node,
            owner: &self.owner,
            existing: known,
            cleaning: &cleaning,
            entries: scan.all,
        };
        for decision in discover(&context, scan.entries) {
            self.report(scan.name, &decision);
            match &decision.outcome {
                Outcome::Skip => {}
                Outcome::Fail => match decision.entry {
                    None => problems.general.push(format!("class {:?}: {}", scan.name, decision.note)),
                    Some(_) => problems.disks.push(DiskProblem {
                        class: scan.name.to_owned(),
                        rule: decision.rule,
                        note: decision.note.clone(),
                    }),
                },
                Outcome::Create(volume) => {
                    let entry = decision.entry.as_deref().unwrap_or_default();
                    match self.create(scan.class, entry, scan.entries, volume).await {
                        Ok(false) => {}
                        Ok(true) => self.observer.discovered(scan.class.volume_mode, began.elapsed()),
                        Err(problem) => failures.push(format!("class {:?}: {entry:?}: {problem}", scan.name)),
                    }
                }
            }
        }
        Ok(failures)
    }

    /// Reads a class; `None` if it does not exist.
    async fn class(&self, name: &str) -> Result<Option<Class>, String> {
        match self.api.get(&class_path(&Name::new(name))).await {
            Ok(class) => Class::from_json(class.to_string().as_bytes()).map(Some).map_err(|error| error.to_string()),
            Err(GetError::NotFound(_)) => Ok(None),
            Err(GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        }
    }

    /// Creates a volume while its disk is locked. Returns whether it was created.
    async fn create(
        &self,
        class: &ClassConfig,
        entry: &str,
        entries: &[ScanResult],
        volume: &Value,
    ) -> Result<bool, String> {
        let (directory, name) = (PathBuf::from(&class.mount_dir), entry.to_owned());
        let shape = entries.iter().flatten().find(|seen| seen.name == entry).map_or(Shape::Other, |seen| seen.shape);
        let locked = tokio::task::spawn_blocking(move || disk::lock(&directory, &name, shape));
        let locked = locked.await.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())?;
        // The disk is being cleaned, or another process creates its volume: try again in the next
        // round.
        let Some(_lock) = locked else { return Ok(false) };
        let request = http::Request::post("/api/v1/persistentvolumes")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(volume.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let started = Instant::now();
        let result = self.api.object(request).await;
        self.observer.create_finished(started.elapsed(), result.is_ok());
        let volume = Name::new(volume["metadata"]["name"].as_str().unwrap_or_default());
        match result {
            Ok(_) => {
                self.cleanings.forget(&volume);
                tracing::info!(volume = volume.as_str(), entry, "volume created");
                Ok(true)
            }
            // The volume was created by another process, or by us and the response was lost: the
            // next round sees it.
            Err(GetError::Rejected(409, _)) => Ok(false),
            Err(GetError::NotFound(error) | GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        }
    }

    /// Publishes an event, once each, for released volumes whose reclaim policy is not supported.
    fn report_policies(&mut self, known: &ExistingVolumes) {
        let ours = known.volumes().filter(|volume| self.owner.owns(volume));
        for event in ours.filter_map(|volume| clean::unsupported_policy_event(volume)) {
            let key = (String::new(), Some(event.about.name.to_string()));
            if self.logged.insert(key, event.message.clone()).as_ref() != Some(&event.message) {
                self.events.publish(Event { component: self.component, ..event });
            }
        }
    }

    /// Publishes and logs a decision, if it has changed.
    fn report(&mut self, class: &str, decision: &Decision) {
        if let Some(event) = &decision.event {
            self.events.publish(Event { component: self.component, ..event.clone() });
        }
        let (key, rule) = ((class.to_owned(), decision.entry.clone()), decision.rule.name);
        let logged = format!("{rule}: {}", decision.note);
        let entry = decision.entry.as_deref().unwrap_or_default();
        if self.logged.insert(key, logged.clone()) == Some(logged) {
            tracing::debug!(class, entry, rule, decision.note, "entry unchanged");
        } else if matches!(decision.outcome, Outcome::Fail) {
            tracing::warn!(class, entry, rule, decision.note, "cannot create volume for entry");
            if decision.entry.is_some() {
                let message = format!("class {class:?}: {} [{rule}]", decision.note);
                let event = Event::node(&self.node, EventType::Warning, Reason::LocalDiskUnavailable, message);
                self.events.publish(Event { component: self.component, ..event });
            }
        } else {
            tracing::info!(class, entry, rule, decision.note, "entry scanned");
        }
    }
}

async fn scan(class: ClassConfig) -> Result<Vec<ScanResult>, String> {
    let scan =
        move || disk::scan(&PathBuf::from(&class.mount_dir), |name| matches_pattern(&class, name), class.only_empty);
    tokio::task::spawn_blocking(scan).await.map_err(|panic| panic.to_string())?
}
