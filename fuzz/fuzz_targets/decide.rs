//! Interprets bytes as the objects of a small cluster: one JSON document per line. Documents before
//! the first empty line exist from the start; those after it are applied later.
//!
//! Nothing may panic, the same state must give the same verdict, no two requests may change one
//! object concurrently, and the engine must become idle.

#![no_main]

mod cluster;

use bindery_binder::Binder;
use bindery_cache::Cache;
use bindery_model::{Kind, Object};
use bindery_rules_api::{LiveReads, RuleSet};
use bindery_simulation::run::lifecycle_controllers;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

use cluster::Cluster;

/// Few enough for the fuzzer to run many clusters, enough for claims to compete.
const DOCUMENTS_MAX: usize = 12;

fuzz_target!(|bytes: &[u8]| {
    let mut documents = Vec::new();
    let mut is_later = false;
    for line in bytes.split(|byte| *byte == b'\n').take(DOCUMENTS_MAX) {
        if line.is_empty() {
            is_later = true;
            continue;
        }
        for kind in Kind::ALL {
            let _ = Object::from_json(kind, line);
        }
        documents.extend(kind_of(line).map(|(kind, json)| (kind, json, is_later)));
    }
    decide_once(&documents);
    Cluster::run(documents, bytes);
});

/// The object of a document, if it has a name. Without a kind it is a claim if it has a namespace,
/// and a volume otherwise, so that the fuzzer does not have to find the word.
fn kind_of(line: &[u8]) -> Option<(Kind, Value)> {
    let mut json: Value = serde_json::from_slice(line).ok()?;
    let kind = json["kind"]
        .as_str()
        .and_then(Kind::parse)
        .unwrap_or_else(|| if json["metadata"]["namespace"].is_null() { Kind::Volume } else { Kind::Claim });
    // Versions are stored in the metadata, so it has to be an object.
    let is_kept = json["metadata"].is_object() && Object::from_json(kind, line).is_ok();
    if is_kept && !matches!(kind, Kind::Claim | Kind::Pod) {
        // All other kinds are cluster-scoped.
        json["metadata"]["namespace"] = Value::Null;
    }
    is_kept.then_some((kind, json))
}

/// Shows a cache all objects as written, including invalid and decreasing versions. All rules are
/// evaluated after each document. At the end, everything is deleted.
fn decide_once(documents: &[(Kind, Value, bool)]) {
    let binder: Box<dyn RuleSet + Send> = Box::new(Binder::default());
    let sets: Vec<_> = std::iter::once(binder).chain(lifecycle_controllers()).collect();
    let live_reads = LiveReads::default();
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    for (kind, json, _) in documents {
        let object = Object::from_json(*kind, json.to_string().as_bytes()).expect("it was decoded before");
        known.watched(object);
        for rules in &sets {
            for key in rules.profile().decides().flat_map(|kind| known.keys(kind)) {
                let verdict = rules.decide(&known, &key, &live_reads);
                assert!(verdict == rules.decide(&known, &key, &live_reads), "two verdicts about {key}");
            }
        }
    }
    for kind in Kind::ALL {
        for key in known.keys(kind) {
            let asked_at = known.seen_version(&key);
            known.answered_not_found(&key, asked_at);
        }
        assert_eq!(known.count(kind), 0, "something is left of {}", kind.as_str());
    }
}
