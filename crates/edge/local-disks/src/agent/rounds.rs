//! Rounds of discovery: every class's directory is looked at, and what nobody has is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bindery_model::{Class, Name, Node};
use bindery_provisioner_sdk::class_path;
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink, GetError};
use serde_json::Value;

use super::{Cleanings, Hears, Knowledge};
use crate::config::{ClassConfig, Config};
use crate::discover::{Finding, Known, Looked, Named, Outcome, Owner, Scene, Shape, discover, is_meant};
use crate::{clean, disk};

/// What was seen of a class, and beside it of all.
struct Look<'a> {
    name: &'a str,
    class: &'a ClassConfig,
    entries: &'a [Looked],
    all: &'a [Named],
}

/// Which disks the entries of a class are.
fn named(class: &str, entries: &[Looked]) -> Vec<Named> {
    let disks = entries.iter().flatten().filter_map(|seen| Some((seen.name.clone(), seen.identity?)));
    disks.map(|(entry, identity)| Named { class: class.to_owned(), entry, identity }).collect()
}

/// Rounds of discovery on a node.
pub struct Rounds {
    /// The API server, on which volumes are created.
    pub api: Arc<Api>,
    /// What is configured.
    pub config: Arc<Config>,
    /// The node.
    pub node: Arc<Node>,
    /// Whose volumes are ours.
    pub owner: Owner,
    /// All volumes.
    pub knowledge: Knowledge,
    /// What is being cleaned.
    pub cleanings: Cleanings,
    /// Where events go.
    pub events: EventSink,
    /// Who they are from.
    pub component: &'static str,
    /// Who counts.
    pub hears: Arc<dyn Hears>,
    /// What was last said about an entry: what has not changed is not said again.
    pub said: BTreeMap<(String, Option<String>), String>,
    /// What could not be done in the last round, for the same reason.
    pub failed: BTreeSet<String>,
}

impl Rounds {
    /// Looks at everything once. Yields what is wrong; nothing when all is well.
    pub async fn round(&mut self) -> Vec<String> {
        let Some(volumes) = self.knowledge.volumes().await else {
            return vec!["not all volumes are known yet".into()];
        };
        let known = Known::new(&self.node, volumes);
        self.tell_policies(&known);
        let config = self.config.clone();
        let (mut problems, mut failed, mut looks) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (name, class) in &config.classes {
            match look(class.clone()).await {
                Ok(entries) => looks.push((name, class, entries)),
                Err(problem) => drop(failed.insert(format!("class {name:?}: {problem}"))),
            }
        }
        let named: Vec<Named> = looks.iter().flat_map(|(name, _, entries)| named(name, entries)).collect();
        for (name, class, entries) in &looks {
            let look = Look { name, class, entries, all: &named };
            match self.look_at(&look, &known, &mut problems).await {
                Ok(refused) => failed.extend(refused),
                Err(problem) => drop(failed.insert(format!("class {name:?}: {problem}"))),
            }
        }
        for problem in failed.difference(&self.failed) {
            tracing::warn!(problem, "cannot be done, and is tried again");
        }
        problems.extend(failed.iter().cloned());
        self.failed = failed;
        problems
    }

    /// Looks at a class. Yields the offers that could not be made.
    async fn look_at(
        &mut self,
        look: &Look<'_>,
        known: &Known,
        problems: &mut Vec<String>,
    ) -> Result<Vec<String>, String> {
        let class = self.class(look.name).await?;
        let began = Instant::now();
        let cleaning = self.cleanings.running();
        let config = self.config.clone();
        let mut refused = Vec::new();
        let scene = Scene {
            config: &config,
            class_name: look.name,
            class_config: look.class,
            class: class.as_ref(),
            node: &self.node,
            owner: &self.owner,
            known,
            cleaning: &cleaning,
            entries: look.all,
        };
        for finding in discover(&scene, look.entries) {
            self.tell(look.name, &finding);
            match &finding.outcome {
                Outcome::Leave => {}
                Outcome::Fail => problems.push(format!("class {:?}: {}", look.name, finding.note)),
                Outcome::Offer(volume) => {
                    let entry = finding.entry.as_deref().unwrap_or_default();
                    match self.offer(look.class, entry, look.entries, volume).await {
                        Ok(false) => {}
                        Ok(true) => self.hears.offered(look.class.volume_mode, began.elapsed()),
                        Err(problem) => refused.push(format!("class {:?}: {entry:?}: {problem}", look.name)),
                    }
                }
            }
        }
        Ok(refused)
    }

    /// A class, as it is now; `None` when there is none.
    async fn class(&self, name: &str) -> Result<Option<Class>, String> {
        match self.api.get(&class_path(&Name::new(name))).await {
            Ok(class) => Class::from_json(class.to_string().as_bytes()).map(Some).map_err(|flaw| flaw.to_string()),
            Err(GetError::NotFound(_)) => Ok(None),
            Err(GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        }
    }

    /// Creates a volume, while its disk is held. Says whether it was created just now.
    async fn offer(
        &self,
        class: &ClassConfig,
        entry: &str,
        entries: &[Looked],
        volume: &Value,
    ) -> Result<bool, String> {
        let (directory, name) = (PathBuf::from(&class.mount_dir), entry.to_owned());
        let shape = entries.iter().flatten().find(|seen| seen.name == entry).map_or(Shape::Other, |seen| seen.shape);
        let held = tokio::task::spawn_blocking(move || disk::hold(&directory, &name, shape));
        let held = held.await.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())?;
        // Whoever holds it cleans or offers it: it is looked at again in the next round.
        let Some(_held) = held else { return Ok(false) };
        let request = http::Request::post("/api/v1/persistentvolumes")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(volume.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let asked = Instant::now();
        let answer = self.api.object(request).await;
        self.hears.created(asked.elapsed(), answer.is_ok());
        let volume = Name::new(volume["metadata"]["name"].as_str().unwrap_or_default());
        match answer {
            Ok(_) => {
                self.cleanings.forget(&volume);
                tracing::info!(volume = volume.as_str(), entry, "offered");
                Ok(true)
            }
            // Somebody was faster, or an answer of ours was lost: it will be seen in the next round what it is.
            Err(GetError::Rejected(409, _)) => Ok(false),
            Err(GetError::NotFound(error) | GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        }
    }

    /// Tells of volumes that are released and can be neither cleaned nor kept, once each.
    fn tell_policies(&mut self, known: &Known) {
        let ours = known.volumes().filter(|volume| self.owner.owns(volume));
        for notice in ours.filter_map(|volume| clean::policy_flaw(volume)) {
            let key = (String::new(), Some(notice.about.name.to_string()));
            if self.said.insert(key, notice.message.clone()).as_ref() != Some(&notice.message) {
                self.events.publish(Event { component: self.component, ..notice });
            }
        }
    }

    /// Says what was found, if it is news.
    fn tell(&mut self, class: &str, finding: &Finding) {
        if let Some(notice) = &finding.notice {
            self.events.publish(Event { component: self.component, ..notice.clone() });
        }
        let (key, rule) = ((class.to_owned(), finding.entry.clone()), finding.rule.name);
        let said = format!("{rule}: {}", finding.note);
        let entry = finding.entry.as_deref().unwrap_or_default();
        if self.said.insert(key, said.clone()) == Some(said) {
            tracing::debug!(class, entry, rule, finding.note, "found as before");
        } else if matches!(finding.outcome, Outcome::Fail) {
            tracing::warn!(class, entry, rule, finding.note, "cannot be offered");
        } else {
            tracing::info!(class, entry, rule, finding.note, "found");
        }
    }
}

async fn look(class: ClassConfig) -> Result<Vec<Looked>, String> {
    let look = move || disk::look(&PathBuf::from(&class.mount_dir), |name| is_meant(&class, name), class.is_only_empty);
    tokio::task::spawn_blocking(look).await.map_err(|panic| panic.to_string())?
}
