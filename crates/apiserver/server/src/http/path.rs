//! Routing: what a path refers to.

use std::borrow::Cow;

use super::query::percent_decoded;

/// What a path refers to.
#[derive(Debug, PartialEq, Eq)]
pub enum Path<'a> {
    /// `/`
    Root,
    /// `/version`
    Version,
    /// `/metrics`
    Metrics,
    /// `/snapshot`: the whole store, for a backup.
    Snapshot,
    /// `/healthz`, `/livez`, `/readyz`, and one of their checks.
    Health(&'a str, Option<&'a str>),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(&'a str),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Resources(&'a str, &'a str),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/PATH`, with the path of a group version.
    OpenApi(&'a str),
    /// Objects.
    Objects(ResourcePath<'a>),
    /// Nothing that is served.
    Unknown,
}

/// A collection, an object, or a subresource.
#[derive(Debug, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// `""` for the core group.
    pub group: &'a str,
    /// Such as `v1`.
    pub version: &'a str,
    /// Whether the path is a legacy one below `/watch/`.
    pub watch: bool,
    /// Empty for none.
    pub namespace: Cow<'a, str>,
    /// The plural.
    pub resource: Cow<'a, str>,
    /// Empty for the collection.
    pub name: Cow<'a, str>,
    /// Empty for the object itself.
    pub subresource: Cow<'a, str>,
}

/// Subresources of a namespace; any other segment after its name is a resource in it.
const PARTS_OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl<'a> Path<'a> {
    /// The collection, object or subresource, if it is one.
    pub fn resource(&self) -> Option<&ResourcePath<'a>> {
        if let Path::Objects(resource) = self { Some(resource) } else { None }
    }

    /// Parses a path, which starts with a slash.
    pub fn parse(path: &'a str) -> Path<'a> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        match (first, rest) {
            ("", None) => Path::Root,
            ("version", None | Some("")) => Path::Version,
            ("metrics", None) => Path::Metrics,
            ("snapshot", None) => Path::Snapshot,
            ("healthz" | "livez" | "readyz", None) => Path::Health(first, None),
            ("healthz" | "livez" | "readyz", Some(check)) if !check.is_empty() => Path::Health(first, Some(check)),
            ("api", None | Some("")) => Path::CoreVersions,
            ("api", Some(rest)) => below_version("", rest),
            ("apis", None | Some("")) => Path::Groups,
            ("apis", Some(rest)) => match rest.split_once('/') {
                None | Some((_, "")) => Path::Group(rest.trim_end_matches('/')),
                Some((group, rest)) => below_version(group, rest),
            },
            ("openapi", Some("v2")) => Path::OpenApiV2,
            ("openapi", Some("v3" | "v3/")) => Path::OpenApiIndex,
            ("openapi", Some(rest)) => rest.strip_prefix("v3/").map_or(Path::Unknown, Path::OpenApi),
            _ => Path::Unknown,
        }
    }
}

fn below_version<'a>(group: &'a str, rest: &'a str) -> Path<'a> {
    let (version, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if rest.is_empty() {
        return Path::Resources(group, version);
    }
    let (watch, rest) = match rest.strip_prefix("watch/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut segments = rest.trim_end_matches('/').split('/').map(percent_decoded);
    let mut next = || segments.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    let in_namespace = first == "namespaces"
        && !third.is_empty()
        && !PARTS_OF_NAMESPACES.contains(&third.as_ref())
        && !second.is_empty();
    let (namespace, resource, name, subresource) =
        if in_namespace { (second, third, next(), next()) } else { (Cow::Borrowed(""), first, second, third) };
    // A nested subresource is not served, but its path belongs to the group.
    let subresource = match next() {
        more if more.is_empty() => subresource,
        more => Cow::Owned(format!("{subresource}/{more}")),
    };
    // The legacy path for bindings, which name their pods themselves.
    let of_pods = group.is_empty() && resource == "bindings" && !namespace.is_empty() && name.is_empty();
    let (resource, subresource) = if of_pods { ("pods".into(), "binding".into()) } else { (resource, subresource) };
    Path::Objects(ResourcePath { group, version, watch, namespace, resource, name, subresource })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_path<'a>(
        group: &'a str,
        watch: bool,
        [namespace, resource, name, subresource]: [&'a str; 4],
    ) -> Path<'a> {
        Path::Objects(ResourcePath {
            group,
            version: "v1",
            watch,
            namespace: namespace.into(),
            resource: resource.into(),
            name: name.into(),
            subresource: subresource.into(),
        })
    }

    #[test]
    fn resource_paths_are_parsed() {
        for (path, expected) in [
            ("/api/v1/nodes", resource_path("", false, ["", "nodes", "", ""])),
            ("/api/v1/nodes/n/", resource_path("", false, ["", "nodes", "n", ""])),
            ("/api/v1/nodes/n/status", resource_path("", false, ["", "nodes", "n", "status"])),
            ("/api/v1/namespaces", resource_path("", false, ["", "namespaces", "", ""])),
            ("/api/v1/namespaces/a", resource_path("", false, ["", "namespaces", "a", ""])),
            ("/api/v1/namespaces/a/status", resource_path("", false, ["", "namespaces", "a", "status"])),
            ("/api/v1/namespaces/a/finalize", resource_path("", false, ["", "namespaces", "a", "finalize"])),
            ("/api/v1/namespaces/a/pods", resource_path("", false, ["a", "pods", "", ""])),
            ("/api/v1/namespaces/a/bindings", resource_path("", false, ["a", "pods", "", "binding"])),
            ("/api/v1/namespaces/a/pods/p/binding", resource_path("", false, ["a", "pods", "p", "binding"])),
            ("/api/v1/namespaces/a/pods/p/a/b", resource_path("", false, ["a", "pods", "p", "a/b"])),
            ("/api/v1/watch/namespaces/a/pods/p", resource_path("", true, ["a", "pods", "p", ""])),
            ("/api/v1/watch/nodes", resource_path("", true, ["", "nodes", "", ""])),
            (
                "/apis/storage.k8s.io/v1/storageclasses/a%2Fb",
                resource_path("storage.k8s.io", false, ["", "storageclasses", "a/b", ""]),
            ),
        ] {
            assert_eq!(Path::parse(path), expected, "{path}");
        }
    }

    #[test]
    fn other_paths_are_parsed() {
        for (path, expected) in [
            ("/", Path::Root),
            ("/version", Path::Version),
            ("/version/", Path::Version),
            ("/versions", Path::Unknown),
            ("/metrics", Path::Metrics),
            ("/metrics/", Path::Unknown),
            ("/snapshot", Path::Snapshot),
            ("/readyz", Path::Health("readyz", None)),
            ("/readyz/", Path::Unknown),
            ("/livez/ping", Path::Health("livez", Some("ping"))),
            ("/api", Path::CoreVersions),
            ("/api/", Path::CoreVersions),
            ("/api/v1", Path::Resources("", "v1")),
            ("/api/v1/", Path::Resources("", "v1")),
            ("/apis", Path::Groups),
            ("/apis/g", Path::Group("g")),
            ("/apis/g/", Path::Group("g")),
            ("/apis/g/v1", Path::Resources("g", "v1")),
            ("/openapi/v2", Path::OpenApiV2),
            ("/openapi/v3", Path::OpenApiIndex),
            ("/openapi/v3/apis/g/v1", Path::OpenApi("apis/g/v1")),
            ("/openapi/v4", Path::Unknown),
            ("", Path::Root),
        ] {
            assert_eq!(Path::parse(path), expected, "{path}");
        }
    }
}
