//! Discovery: groups, versions and resources, in one document or in several. All are encoded at the
//! start.

use std::net::SocketAddr;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG, VARY};
use ring::digest::{SHA512, digest};
use serde_json::{Map, Value, json};

use super::accept::{Accept, Shape};
use super::body::Body;
use super::reply::{OutputFormat, Reply, document, reply};
use super::reviews::REVIEWS;
use crate::kinds;

const AGGREGATED: HeaderValue =
    HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

/// A resource, as in all discovery documents.
struct Resource {
    name: &'static str,
    singular: String,
    kind: &'static str,
    namespaced: bool,
    verbs: &'static [&'static str],
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    subresources: Vec<Subresource>,
}

struct Subresource {
    name: &'static str,
    /// Group and version, if they differ from those of the resource.
    foreign: Option<(&'static str, &'static str)>,
    kind: &'static str,
    verbs: &'static [&'static str],
}

/// One version of a group.
struct GroupVersion {
    group: &'static str,
    version: &'static str,
    resources: Vec<Resource>,
}

/// A document with an ETag.
struct Hashed {
    bytes: Bytes,
    etag: HeaderValue,
}

/// All documents, encoded.
pub struct Documents {
    root: Bytes,
    core_versions: Bytes,
    groups: Bytes,
    core_aggregated: Hashed,
    groups_aggregated: Hashed,
    group: Vec<(&'static str, Bytes)>,
    resources: Vec<(&'static str, &'static str, Bytes)>,
}

impl Documents {
    /// Encodes all documents for a server at this address.
    pub fn new(address: SocketAddr) -> Documents {
        let all = group_versions();
        let core: Vec<&GroupVersion> = all.iter().filter(|version| version.group.is_empty()).collect();
        let named: Vec<&GroupVersion> = all.iter().filter(|version| !version.group.is_empty()).collect();
        let groups: Vec<Value> = named.iter().map(|version| group(version)).collect();
        let with_type = |mut group: Value| {
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            group
        };
        Documents {
            root: encoded(&root(&all)),
            core_versions: encoded(&json!({
                "kind": "APIVersions",
                "versions": core.iter().map(|version| version.version).collect::<Vec<_>>(),
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address.to_string()}],
            })),
            groups: encoded(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})),
            core_aggregated: hashed(&aggregated(&core)),
            groups_aggregated: hashed(&aggregated(&named)),
            group: named
                .iter()
                .zip(groups)
                .map(|(version, group)| (version.group, encoded(&with_type(group))))
                .collect(),
            resources: all
                .iter()
                .map(|version| (version.group, version.version, encoded(&resource_list(version))))
                .collect(),
        }
    }

    /// Whether any resource of a group is served.
    pub fn serves(&self, group: &str) -> bool {
        self.resources.iter().any(|(served, _, _)| *served == group)
    }

    /// `/`
    pub fn root(&self, output: OutputFormat) -> Reply {
        document(200, self.root.clone(), OutputFormat { pretty: true, ..output })
    }

    /// `/api`
    pub fn core(&self, accept: Accept, output: OutputFormat, known: Option<&str>) -> Reply {
        either(&self.core_versions, &self.core_aggregated, accept, output, known)
    }

    /// `/apis`
    pub fn groups(&self, accept: Accept, output: OutputFormat, known: Option<&str>) -> Reply {
        either(&self.groups, &self.groups_aggregated, accept, output, known)
    }

    /// `/apis/GROUP`
    pub fn group(&self, group: &str, output: OutputFormat) -> Option<Reply> {
        let (_, bytes) = self.group.iter().find(|(served, _)| *served == group)?;
        Some(document(200, bytes.clone(), output))
    }

    /// `/api/v1`, `/apis/GROUP/VERSION`
    pub fn resources(&self, group: &str, version: &str, output: OutputFormat) -> Option<Reply> {
        let found = self.resources.iter().find(|(served, in_version, _)| *served == group && *in_version == version);
        found.map(|(_, _, bytes)| document(200, bytes.clone(), output))
    }
}

fn either(plain: &Bytes, aggregated: &Hashed, accept: Accept, output: OutputFormat, known: Option<&str>) -> Reply {
    let Shape::Discovery(_) = accept.shape else {
        let mut reply = document(200, plain.clone(), output);
        reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        return reply;
    };
    let is_known = known.is_some_and(|known| known.as_bytes() == aggregated.etag.as_bytes());
    let (code, body) = if is_known { (304, Body::empty()) } else { (200, Body::Whole(aggregated.bytes.clone())) };
    let mut reply = reply(code, AGGREGATED, body);
    let headers = reply.headers_mut();
    headers.insert(ETAG, aggregated.etag.clone());
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    reply
}

/// All group versions, those of objects first, with their resources sorted by name.
fn group_versions() -> Vec<GroupVersion> {
    let mut all: Vec<GroupVersion> = Vec::new();
    let mut add = |group, version, resource| {
        match all.iter_mut().find(|known| known.group == group && known.version == version) {
            Some(known) => known.resources.push(resource),
            None => all.push(GroupVersion { group, version, resources: vec![resource] }),
        };
    };
    for kind in kinds::all() {
        add(kind.group, kind.version, of_kind(kind));
    }
    for review in &REVIEWS {
        add(review.group, "v1", review_resource(review));
    }
    // Upstream sorts groups by priority, not by name.
    all.sort_by_key(|version| version.group == "coordination.k8s.io" || version.group == "discovery.k8s.io");
    for version in &mut all {
        version.resources.sort_by_key(|resource| resource.name);
    }
    all
}

fn of_kind(kind: &kinds::Kind) -> Resource {
    let mut subresources: Vec<Subresource> = kind
        .subresources
        .iter()
        .map(|part| {
            let (group, version, name) = part.kind;
            let foreign = ((group, version) != (kind.group, kind.version)).then_some((group, version));
            Subresource { name: part.name, foreign, kind: name, verbs: part.verbs }
        })
        .collect();
    subresources.sort_by_key(|part| part.name);
    Resource {
        name: kind.plural,
        singular: kind.singular(),
        kind: kind.kind,
        namespaced: kind.namespaced,
        verbs: kind.verbs,
        short_names: kind.short_names,
        categories: kind.categories,
        subresources,
    }
}

fn review_resource(review: &super::reviews::Review) -> Resource {
    Resource {
        name: review.plural,
        singular: review.kind.to_lowercase(),
        kind: review.kind,
        namespaced: review.namespaced,
        verbs: &["create"],
        short_names: &[],
        categories: &[],
        subresources: Vec::new(),
    }
}

fn root(all: &[GroupVersion]) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(String::from)
            .into();
    for version in all {
        match version.group {
            "" => paths.push(format!("/api/{}", version.version)),
            group => paths.extend([format!("/apis/{group}"), format!("/apis/{group}/{}", version.version)]),
        }
    }
    paths.sort();
    json!({"paths": paths})
}

fn group(version: &GroupVersion) -> Value {
    let only = json!({"groupVersion": group_version(version), "version": version.version});
    json!({"name": version.group, "versions": [only.clone()], "preferredVersion": only})
}

fn group_version(version: &GroupVersion) -> String {
    match version.group {
        "" => version.version.to_owned(),
        group => format!("{group}/{}", version.version),
    }
}

fn resource_list(version: &GroupVersion) -> Value {
    let mut resources = Vec::new();
    for resource in &version.resources {
        let mut entry = json!({
            "name": resource.name,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        if let Some(entry) = entry.as_object_mut() {
            add_names(entry, resource);
        }
        resources.push(entry);
        for part in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.name, part.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": part.kind,
                "verbs": part.verbs,
            });
            if let Some((group, version)) = part.foreign {
                entry["group"] = json!(group);
                entry["version"] = json!(version);
            }
            resources.push(entry);
        }
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version(version), "resources": resources});
    if !version.group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    list
}

fn add_names(entry: &mut Map<String, Value>, resource: &Resource) {
    for (name, values) in [("shortNames", resource.short_names), ("categories", resource.categories)] {
        if !values.is_empty() {
            entry.insert(name.to_owned(), json!(values));
        }
    }
}

/// The aggregated document. Groups and versions of kinds are empty where they equal those of the
/// resource.
fn aggregated(versions: &[&GroupVersion]) -> Value {
    let items: Vec<Value> = versions
        .iter()
        .map(|version| {
            let metadata = if version.group.is_empty() { json!({}) } else { json!({"name": version.group}) };
            let resources: Vec<Value> = version.resources.iter().map(aggregated_resource).collect();
            json!({
                "metadata": metadata,
                "versions": [{"version": version.version, "resources": resources, "freshness": "Current"}],
            })
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.name,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if let Some(entry) = entry.as_object_mut() {
        add_names(entry, resource);
    }
    if !resource.subresources.is_empty() {
        let parts = resource.subresources.iter().map(|part| {
            let (group, version) = part.foreign.unwrap_or_default();
            json!({
                "subresource": part.name,
                "responseKind": {"group": group, "version": version, "kind": part.kind},
                "verbs": part.verbs,
            })
        });
        entry["subresources"] = parts.collect();
    }
    entry
}

fn encoded(value: &Value) -> Bytes {
    value.to_string().into()
}

fn hashed(value: &Value) -> Hashed {
    let bytes = encoded(value);
    let etag =
        HeaderValue::try_from(format!("\"{}\"", hash(&bytes))).expect("hexadecimal digits are a valid header value");
    Hashed { bytes, etag }
}

/// The SHA-512 of a document in upper case hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    digest(&SHA512, bytes).as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}
