//! What a client wants to be answered with, and how it wrote what it sent.

use crate::api::{Format, PatchType};
use crate::status::Status;

/// How an answer is written, and what is made of it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept {
    /// JSON or YAML.
    pub format: Format,
    /// What is made of objects.
    pub shape: Shape,
    /// Whether the media type itself asks for line breaks.
    pub pretty: bool,
}

/// What is made of objects before they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Plain,
    /// A table, of a version of `meta.k8s.io`.
    Table(&'static str),
    /// The metadata of an object alone.
    Partial(&'static str),
    /// The metadata of the objects of a list.
    PartialList(&'static str),
    /// All groups, versions and resources in one document.
    Discovery(&'static str),
}

/// Where an answer is to be given, and so what may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// For objects: tables and metadata too.
    Objects,
    /// For a stream of events: the same, but there is no YAML.
    Events,
    /// For discovery: all in one document too.
    Discovery,
}

const PLAIN: Accept = Accept { format: Format::Json, shape: Shape::Plain, pretty: false };

impl Accept {
    /// Reads an Accept header: the first that can be served, of those that are wanted most.
    pub fn parse(header: Option<&str>, place: Place) -> Result<Accept, Status> {
        let header = match header {
            None | Some("" | "application/json" | "*/*" | "application/json, */*") => return Ok(PLAIN),
            Some(header) => header,
        };
        let mut wanted: Vec<(u16, &str)> = header.split(',').map(|clause| (weight(clause), clause.trim())).collect();
        // Stable: clauses of one weight stay in the order in which they came.
        wanted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let first = |place: Place| wanted.iter().find_map(|(_, clause)| served(clause, place));
        match (first(place), place) {
            (Some(accept), _) => Ok(accept),
            (None, Place::Events) if first(Place::Objects).is_some() => Err(no_such_form(STREAM)),
            // The media type would do, but not what is to be made of objects.
            (None, _) if wanted.iter().any(|(_, clause)| format(clause, Place::Objects).is_some()) => {
                Err(no_such_form(WHOLE))
            }
            (None, _) => Err(not_acceptable(place)),
        }
    }

    /// How those want to be answered whose request is refused.
    pub fn of_refusals(header: Option<&str>) -> Format {
        Accept::parse(header, Place::Objects).map_or(Format::Json, |accept| accept.format)
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

/// The format of a clause's media type, whatever its parameters.
fn format(clause: &str, place: Place) -> Option<Format> {
    match clause.split(';').next()?.trim() {
        "application/json" | "*/*" => Some(Format::Json),
        "application/yaml" if place != Place::Events => Some(Format::Yaml),
        _ => None,
    }
}

fn served(clause: &str, place: Place) -> Option<Accept> {
    let format = format(clause, place)?;
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
    Some(Accept { format, shape: shape(kind, group, version, place)?, pretty })
}

fn shape(kind: &str, group: &str, version: &str, place: Place) -> Option<Shape> {
    let version = match version {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        "v2" => "v2",
        "v2beta1" => "v2beta1",
        _ => "",
    };
    match (kind, group, version, place) {
        ("", ..) => Some(Shape::Plain),
        ("Table", "meta.k8s.io", "v1" | "v1beta1", Place::Objects | Place::Events) => Some(Shape::Table(version)),
        ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1", Place::Objects | Place::Events) => {
            Some(Shape::Partial(version))
        }
        ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1", Place::Objects) => {
            Some(Shape::PartialList(version))
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2", Place::Discovery) => Some(Shape::Discovery(version)),
        _ => None,
    }
}

const WHOLE: &str = "application/json, application/yaml";
/// What can be had at once cannot always be had as a stream.
const STREAM: &str = "application/json;stream=watch";

fn no_such_form(kinds: &str) -> Status {
    Status::failure(406, "NotAcceptable", format!("only the following media types are accepted: {kinds}"))
}

fn not_acceptable(place: Place) -> Status {
    let kinds = match place {
        Place::Objects | Place::Events => "application/json, application/yaml, application/json;stream=watch",
        Place::Discovery => "application/json, application/yaml",
    };
    let message = format!("406: Not Acceptable\n\nAvailable representations: {kinds}");
    Status::failure(406, "NotAcceptable", message).with(crate::status::Details::default())
}

/// How an object that was sent is written.
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

/// How a patch that was sent is written.
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
        Accept::parse(Some(header), Place::Objects).map(|accept| accept.shape).map_err(|status| status.http_code())
    }

    #[test]
    fn what_kubectl_asks_for_is_a_table() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(shape_of(header), Ok(Shape::Table("v1")));
    }

    #[test]
    fn what_cannot_be_served_falls_to_the_next() {
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
            body_format(Some("application/vnd.kubernetes.protobuf")).expect_err("it is refused").http_code(),
            415
        );
    }

    #[test]
    fn there_are_no_streams_of_yaml() {
        let refused = Accept::parse(Some("application/yaml"), Place::Events).expect_err("it is refused");
        assert_eq!(refused.message, "only the following media types are accepted: application/json;stream=watch");
        assert!(Accept::parse(Some("application/yaml"), Place::Objects).is_ok());
    }

    #[test]
    fn parameters_of_a_content_type_do_not_matter() {
        assert_eq!(body_format(Some("application/json; charset=utf-8")), Ok(Format::Json));
        assert_eq!(body_format(None), Ok(Format::Json));
        assert_eq!(patch_type(Some("application/apply-patch+yaml")), Ok(PatchType::Apply));
    }
}
