//! Content negotiation: the response that a client accepts, and the format of its body.

use crate::api::{Format, PatchType};
use crate::status::Status;

/// The format and the form of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept {
    /// JSON or YAML.
    pub format: Format,
    /// The form of objects.
    pub shape: Shape,
    /// Whether the media type requests indentation.
    pub pretty: bool,
}

/// The form in which objects are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The objects themselves.
    Plain,
    /// A table, in a version of `meta.k8s.io`.
    Table(&'static str),
    /// The metadata of an object only.
    Partial(&'static str),
    /// The metadata of the objects of a list only.
    PartialList(&'static str),
    /// All groups, versions and resources in one document.
    Discovery(&'static str),
}

/// The kind of endpoint, which determines the supported media types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Objects: also as tables or metadata.
    Objects,
    /// A stream of events: like objects, but not in YAML.
    Events,
    /// Discovery: also as one aggregated document.
    Discovery,
}

const PLAIN: Accept = Accept { format: Format::Json, shape: Shape::Plain, pretty: false };

impl Accept {
    /// Parses an Accept header: the first supported clause with the highest weight.
    pub fn parse(header: Option<&str>, endpoint: Endpoint) -> Result<Accept, Status> {
        let header = match header {
            None | Some("" | "application/json" | "*/*" | "application/json, */*") => return Ok(PLAIN),
            Some(header) => header,
        };
        let mut wanted: Vec<(u16, &str)> = header.split(',').map(|clause| (weight(clause), clause.trim())).collect();
        // The sort is stable: clauses of equal weight keep their order.
        wanted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let first = |endpoint: Endpoint| wanted.iter().find_map(|(_, clause)| served(clause, endpoint));
        match (first(endpoint), endpoint) {
            (Some(accept), _) => Ok(accept),
            (None, Endpoint::Events) if first(Endpoint::Objects).is_some() => Err(unsupported_type(STREAM)),
            // The media type is supported, but not the form of the objects.
            (None, _) if wanted.iter().any(|(_, clause)| format(clause, Endpoint::Objects).is_some()) => {
                Err(unsupported_type(WHOLE))
            }
            (None, _) => Err(not_acceptable(endpoint)),
        }
    }

    /// The format of an error response.
    pub fn error_format(header: Option<&str>) -> Format {
        Accept::parse(header, Endpoint::Objects).map_or(Format::Json, |accept| accept.format)
    }
}

/// A clause's `q`, in thousandths.
fn weight(clause: &str) -> u16 {
    let q = clause.split(';').skip(1).find_map(|param| param.trim().strip_prefix("q="));
    let q = q.and_then(|q| q.trim().parse::<f32>().ok()).filter(|q| (0.0..=1.0).contains(q)).unwrap_or(1.0);
    // In range by the filter above.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let thousandths = (q * 1000.0) as u16;
    thousandths
}

/// The format of a clause's media type, without its parameters.
fn format(clause: &str, endpoint: Endpoint) -> Option<Format> {
    match clause.split(';').next()?.trim() {
        "application/json" | "*/*" => Some(Format::Json),
        "application/yaml" if endpoint != Endpoint::Events => Some(Format::Yaml),
        _ => None,
    }
}

fn served(clause: &str, endpoint: Endpoint) -> Option<Accept> {
    let format = format(clause, endpoint)?;
    let parts = clause.split(';').skip(1).map(str::trim);
    let (mut kind, mut group, mut version, mut pretty) = ("", "", "", false);
    for (name, value) in parts.filter_map(|param| param.split_once('=')) {
        match name {
            "as" => kind = value,
            "g" => group = value,
            "v" => version = value,
            "pretty" => pretty = value == "1",
            "charset" if !value.eq_ignore_ascii_case("utf-8") => return None,
            "stream" if value != "watch" => return None,
            _ => {}
        }
    }
    Some(Accept { format, shape: shape(kind, group, version, endpoint)?, pretty })
}

fn shape(kind: &str, group: &str, version: &str, endpoint: Endpoint) -> Option<Shape> {
    let version = match version {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        "v2" => "v2",
        "v2beta1" => "v2beta1",
        _ => "",
    };
    match (kind, group, version, endpoint) {
        ("", ..) => Some(Shape::Plain),
        ("Table", "meta.k8s.io", "v1" | "v1beta1", Endpoint::Objects | Endpoint::Events) => Some(Shape::Table(version)),
        ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1", Endpoint::Objects | Endpoint::Events) => {
            Some(Shape::Partial(version))
        }
        ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1", Endpoint::Objects) => {
            Some(Shape::PartialList(version))
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2", Endpoint::Discovery) => Some(Shape::Discovery(version)),
        _ => None,
    }
}

const WHOLE: &str = "application/json, application/yaml";
/// Watches support fewer media types than other requests.
const STREAM: &str = "application/json;stream=watch";

fn unsupported_type(kinds: &str) -> Status {
    Status::failure(406, "NotAcceptable", format!("only the following media types are accepted: {kinds}"))
}

fn not_acceptable(endpoint: Endpoint) -> Status {
    let kinds = match endpoint {
        Endpoint::Objects | Endpoint::Events => "application/json, application/yaml, application/json;stream=watch",
        Endpoint::Discovery => "application/json, application/yaml",
    };
    let message = format!("406: Not Acceptable\n\nAvailable representations: {kinds}");
    Status::failure(406, "NotAcceptable", message).with(crate::status::Details::default())
}

/// The format of an object in a request body.
pub fn body_format(content_type: Option<&str>) -> Result<Format, Status> {
    match media_type(content_type) {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        _ => Err(Status::failure(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
        )),
    }
}

/// The type of a patch in a request body.
pub fn patch_type(content_type: Option<&str>) -> Result<PatchType, Status> {
    match media_type(content_type) {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" => Ok(PatchType::Apply),
        _ => Err(Status::failure(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with(crate::status::Details::default())),
    }
}

fn media_type(content_type: Option<&str>) -> &str {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(header: &str) -> Result<Shape, u16> {
        Accept::parse(Some(header), Endpoint::Objects).map(|accept| accept.shape).map_err(|status| status.http_code())
    }

    #[test]
    fn kubectl_gets_a_table() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(shape_of(header), Ok(Shape::Table("v1")));
    }

    #[test]
    fn an_unsupported_clause_falls_back_to_the_next() {
        assert_eq!(shape_of("application/vnd.kubernetes.protobuf,application/json"), Ok(Shape::Plain));
        assert_eq!(shape_of("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json"), Ok(Shape::Plain));
        assert_eq!(
            shape_of(
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
            ),
            Ok(Shape::Partial("v1"))
        );
        assert_eq!(
            shape_of("application/json;q=0.1, text/html, application/json;as=Table;v=v1;g=meta.k8s.io;q=0.2"),
            Ok(Shape::Table("v1"))
        );
    }

    #[test]
    fn protobuf_alone_is_not_acceptable() {
        assert_eq!(shape_of("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(shape_of("text/html"), Err(406));
        assert_eq!(
            body_format(Some("application/vnd.kubernetes.protobuf")).expect_err("it is rejected").http_code(),
            415
        );
    }

    #[test]
    fn watches_do_not_support_yaml() {
        let refused = Accept::parse(Some("application/yaml"), Endpoint::Events).expect_err("it is rejected");
        assert_eq!(refused.message, "only the following media types are accepted: application/json;stream=watch");
        assert!(Accept::parse(Some("application/yaml"), Endpoint::Objects).is_ok());
    }

    #[test]
    fn parameters_of_a_content_type_are_ignored() {
        assert_eq!(body_format(Some("application/json; charset=utf-8")), Ok(Format::Json));
        assert_eq!(body_format(None), Ok(Format::Json));
        assert_eq!(patch_type(Some("application/apply-patch+yaml")), Ok(PatchType::Apply));
    }
}
