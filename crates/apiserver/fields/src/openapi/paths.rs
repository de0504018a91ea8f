//! The paths of the served kinds, as far as clients use them: the kind of each path, and the
//! parameters of each verb.

use serde_json::{Map, Value, json};

use crate::Schema;
use crate::schema::Struct;

/// The served group versions.
pub(super) const GROUPS: [(&str, &str); 4] =
    [("", "v1"), ("coordination.k8s.io", "v1"), ("events.k8s.io", "v1"), ("storage.k8s.io", "v1")];

/// A kind and how its paths are formed.
pub(super) struct Resource {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    /// Subresources whose body is the kind itself.
    pub subresources: &'static [&'static str],
}

const fn resource(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    subresources: &'static [&'static str],
) -> Resource {
    Resource { group, kind, plural, namespaced, subresources }
}

const STORAGE: &str = "storage.k8s.io";

pub(super) const RESOURCES: &[Resource] = &[
    resource("", "ConfigMap", "configmaps", true, &[]),
    resource("", "Event", "events", true, &[]),
    resource("", "Namespace", "namespaces", false, &["status", "finalize"]),
    resource("", "Node", "nodes", false, &["status"]),
    resource("", "PersistentVolume", "persistentvolumes", false, &["status"]),
    resource("", "PersistentVolumeClaim", "persistentvolumeclaims", true, &["status"]),
    resource("", "Pod", "pods", true, &["status"]),
    resource("", "Secret", "secrets", true, &[]),
    resource("", "ServiceAccount", "serviceaccounts", true, &[]),
    resource("coordination.k8s.io", "Lease", "leases", true, &[]),
    resource("events.k8s.io", "Event", "events", true, &[]),
    resource(STORAGE, "CSIDriver", "csidrivers", false, &[]),
    resource(STORAGE, "CSINode", "csinodes", false, &[]),
    resource(STORAGE, "CSIStorageCapacity", "csistoragecapacities", true, &[]),
    resource(STORAGE, "StorageClass", "storageclasses", false, &[]),
    resource(STORAGE, "VolumeAttachment", "volumeattachments", false, &["status"]),
    resource(STORAGE, "VolumeAttributesClass", "volumeattributesclasses", false, &[]),
];

/// The kinds of a group version.
pub(super) fn of(group: &str, version: &str) -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().filter(move |resource| resource.group == group && version == "v1")
}

impl Resource {
    /// The structs of the kind and of its list.
    pub fn structs(&self) -> impl Iterator<Item = &'static Struct> {
        let list = format!("{}List", self.kind);
        [self.kind, &list]
            .into_iter()
            .filter_map(|kind| Schema::of(self.group, "v1", kind))
            .map(Schema::root)
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn prefix(&self) -> String {
        if self.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}/v1", self.group) }
    }

    /// The path of the collection.
    fn collection(&self) -> String {
        let scope = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{scope}/{}", self.prefix(), self.plural)
    }

    /// `CoreV1NamespacedPod`, as in operation IDs.
    fn identity(&self) -> String {
        let group = self.group.split('.').next().unwrap_or_default();
        let group = if group.is_empty() { "core" } else { group };
        let capital: String = group[..1].to_uppercase() + &group[1..];
        format!("{capital}V1{}{}", if self.namespaced { "Namespaced" } else { "" }, self.kind)
    }

    fn tag(&self) -> String {
        format!("{}_v1", if self.group.is_empty() { "core" } else { self.group.split('.').next().unwrap_or_default() })
    }
}

/// A verb's parameters, body and response.
struct Verb {
    method: &'static str,
    action: &'static str,
    name: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    body: Body,
    list: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Body {
    None,
    Object,
    Patch,
    Options,
}

const WRITE: &[(&str, &str)] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const COLLECTION: [Verb; 3] = [
    Verb { method: "get", action: "list", name: "list", parameters: LIST, body: Body::None, list: true },
    Verb { method: "post", action: "post", name: "create", parameters: WRITE, body: Body::Object, list: false },
    Verb {
        method: "delete",
        action: "deletecollection",
        name: "deleteCollection",
        parameters: DELETE,
        body: Body::Options,
        list: false,
    },
];
const ITEM: [Verb; 4] = [
    Verb { method: "get", action: "get", name: "read", parameters: &[], body: Body::None, list: false },
    Verb { method: "put", action: "put", name: "replace", parameters: WRITE, body: Body::Object, list: false },
    Verb { method: "patch", action: "patch", name: "patch", parameters: PATCH, body: Body::Patch, list: false },
    Verb { method: "delete", action: "delete", name: "delete", parameters: DELETE, body: Body::Options, list: false },
];

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const GIVEN: [&str; 2] = ["application/json", "application/yaml"];

/// The paths of a kind in an OpenAPI v3 document.
pub(super) fn v3(resource: &Resource) -> Map<String, Value> {
    paths(resource, |verb, object| {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let content = |types: &[&str], name: &str| -> Map<String, Value> {
            types.iter().map(|each| ((*each).to_owned(), json!({"schema": reference(name)}))).collect()
        };
        let parameter = |(name, kind): &(&str, &str)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
        let mut operation = json!({
            "parameters": verb.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK", "content": content(&GIVEN, object)}, "401": {"description": "Unauthorized"}},
        });
        if let Some((types, name)) = body(verb, object) {
            operation["requestBody"] = json!({"content": content(types, name), "required": verb.body != Body::Options});
        }
        operation
    })
}

/// The paths of a kind in an OpenAPI v2 document.
pub(super) fn v2(resource: &Resource) -> Map<String, Value> {
    paths(resource, |verb, object| {
        let reference = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
        let parameter =
            |(name, kind): &(&str, &str)| json!({"name": name, "in": "query", "type": kind, "uniqueItems": true});
        let mut parameters: Vec<Value> = verb.parameters.iter().map(parameter).collect();
        let mut consumes = &["*/*"][..];
        if let Some((types, name)) = body(verb, object) {
            consumes = types;
            let required = verb.body != Body::Options;
            parameters.push(json!({"name": "body", "in": "body", "required": required, "schema": reference(name)}));
        }
        json!({
            "consumes": consumes,
            "produces": GIVEN,
            "schemes": ["https"],
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "schema": reference(object)}, "401": {"description": "Unauthorized"}},
        })
    })
}

/// The media types and the schema of a verb's body.
fn body<'a>(verb: &Verb, object: &'a str) -> Option<(&'static [&'static str], &'a str)> {
    match verb.body {
        Body::None => None,
        Body::Object => Some((&["*/*"], object)),
        Body::Options => Some((&["*/*"], "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")),
        Body::Patch => Some((&PATCHES, "io.k8s.apimachinery.pkg.apis.meta.v1.Patch")),
    }
}

/// All paths of a kind. `describe` creates the operation of a verb, and this adds its names.
fn paths(resource: &Resource, describe: impl Fn(&Verb, &str) -> Value) -> Map<String, Value> {
    let structs: Vec<&Struct> = resource.structs().collect();
    let [object, list] = structs.as_slice() else { return Map::new() };
    let status = format!("{META}.Status");
    let verbs = |verbs: &[Verb], suffix: &str, parameters: &[&str]| {
        let mut path = Map::new();
        for verb in verbs {
            let given = match verb.body {
                Body::Options => status.as_str(),
                Body::None | Body::Object | Body::Patch if verb.list => list.openapi_name,
                Body::None | Body::Object | Body::Patch => object.openapi_name,
            };
            let taken = if verb.body == Body::Object { object.openapi_name } else { given };
            let mut operation = describe(verb, taken);
            operation["tags"] = json!([resource.tag()]);
            operation["operationId"] = json!(format!("{}{}{suffix}", verb.name, resource.identity()));
            operation["x-kubernetes-action"] = json!(verb.action);
            operation["x-kubernetes-group-version-kind"] =
                json!({"group": resource.group, "version": "v1", "kind": resource.kind});
            path.insert(verb.method.to_owned(), operation);
        }
        let in_path = |name: &&str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
        path.insert("parameters".to_owned(), parameters.iter().map(in_path).collect());
        Value::Object(path)
    };
    let collection = resource.collection();
    let item = format!("{collection}/{{name}}");
    let (outer, inner): (&[&str], &[&str]) =
        if resource.namespaced { (&["namespace"], &["name", "namespace"]) } else { (&[], &["name"]) };
    let mut paths = Map::new();
    if resource.namespaced {
        paths.insert(
            format!("{}/{}", resource.prefix(), resource.plural),
            verbs(&COLLECTION[..1], "ForAllNamespaces", &[]),
        );
    }
    for subresource in resource.subresources {
        let capital = subresource[..1].to_uppercase() + &subresource[1..];
        paths.insert(format!("{item}/{subresource}"), verbs(&ITEM[..3], &capital, inner));
    }
    paths.insert(item, verbs(&ITEM, "", inner));
    paths.insert(collection, verbs(&COLLECTION, "", outer));
    paths
}
