//! OpenAPI documents of the served kinds, from the same table as everything else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

mod descriptions;
mod paths;
mod schemas;

use paths::{GROUPS, Resource};
use schemas::Dialect;

/// The document of a group version, as served at `/openapi/v3/api/v1` and
/// `/openapi/v3/apis/<group>/<version>`.
pub fn v3(group: &str, version: &str) -> Option<Value> {
    let resources: Vec<&Resource> = paths::of(group, version).collect();
    if resources.is_empty() {
        return None;
    }
    let mut found: Map<String, Value> = Map::new();
    for resource in &resources {
        found.extend(paths::v3(resource));
    }
    let security = json!({"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}});
    Some(json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": found,
        "components": {"schemas": schemas::of(resources.iter().copied(), Dialect::V3), "securitySchemes": security},
    }))
}

/// The document served at `/openapi/v2`.
pub fn v2() -> Value {
    let mut found: Map<String, Value> = Map::new();
    for resource in paths::RESOURCES {
        found.extend(paths::v2(resource));
    }
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": found,
        "definitions": schemas::of(paths::RESOURCES.iter(), Dialect::V2),
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}},
        "security": [{"BearerToken": []}],
    })
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "1.36"})
}

static V3: LazyLock<Vec<(&'static str, &'static str, String)>> = LazyLock::new(|| {
    let document =
        |(group, version): &(&'static str, &'static str)| Some((*group, *version, v3(group, version)?.to_string()));
    GROUPS.iter().filter_map(document).collect()
});

static V2: LazyLock<String> = LazyLock::new(|| v2().to_string());

/// [`v3`] as text, created once.
pub fn v3_text(group: &str, version: &str) -> Option<&'static str> {
    V3.iter().find(|(each, of, _)| (*each, *of) == (group, version)).map(|(_, _, text)| text.as_str())
}

/// [`v2`] as text, created once.
pub fn v2_text() -> &'static str {
    &V2
}

/// The hash of a document, by which clients cache it. It is the same in every process.
pub fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

/// The index served at `/openapi/v3`, with a hash in each URL.
pub fn index() -> Value {
    let mut paths = Map::new();
    for (group, version, text) in V3.iter() {
        let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let url = format!("/openapi/v3/{path}?hash={}", hash(text));
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}
