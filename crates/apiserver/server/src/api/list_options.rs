//! The options of lists and watches: revisions, continue tokens, and validation.

use super::Options;
use crate::field_errors::FieldErrors;
use crate::status::Status;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde_json::Value;

/// How continue tokens are encoded. Like Go, decoding ignores unused bits at the end.
const TOKEN: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// A requested revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// Not set: the latest.
    Latest,
    /// `0`: any.
    Any,
    /// This one, or a later one.
    At(u64),
}

/// Parses a revision.
pub fn revision(text: &str) -> Result<Revision, String> {
    match text {
        "" => Ok(Revision::Latest),
        "0" => Ok(Revision::Any),
        _ => text.parse().map(Revision::At).map_err(|_| {
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {}",
                parse_error(text)
            )
        }),
    }
}

/// The error of Go's number parser.
pub fn parse_error(text: &str) -> &'static str {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    }
}

/// Rejects contradictory options of a list.
pub fn validate_list(options: &Options) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    if options.send_initial_events.is_some() {
        errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    let path = "resourceVersionMatch";
    match options.resource_version_match.as_str() {
        "" => {}
        matching => {
            if options.resource_version.is_empty() {
                errors.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !options.continue_token.is_empty() {
                errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                errors.unsupported(path, matching, &["Exact", "NotOlderThan", ""]);
            }
            if matching == "Exact" && options.resource_version == "0" {
                errors.forbidden(path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
    }
    errors.into_result_for("meta.k8s.io", "ListOptions", "")
}

/// Rejects contradictory options of a watch.
pub fn validate_watch(options: &Options) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let path = "resourceVersionMatch";
    let matching = options.resource_version_match.as_str();
    if options.send_initial_events.is_some() && matching != "NotOlderThan" {
        errors.forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if options.send_initial_events.is_none() && !matching.is_empty() {
        errors.forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if !options.continue_token.is_empty() {
        errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
    }
    if !matches!(matching, "" | "NotOlderThan") {
        errors.unsupported(path, matching, &["NotOlderThan"]);
    }
    errors.into_result_for("meta.k8s.io", "ListOptions", "")
}

/// Where the next page of a list starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the first page; `None` if history no longer has it, and the rest is listed
    /// at the latest revision.
    pub revision: Option<u64>,
    /// The first key that may be listed, without the prefix of the path.
    pub start: String,
}

impl Continue {
    /// Encodes a token for a client.
    pub fn encode(&self) -> String {
        let revision = self.revision.map_or(Value::from(-1), Value::from);
        let start = serde_json::to_string(&format!("/{}\0", self.start)).unwrap_or_default();
        TOKEN.encode(format!(r#"{{"v":"meta.k8s.io/v1","rv":{revision},"start":{start}}}"#))
    }

    /// Decodes a client's token.
    pub fn decode(token: &str) -> Result<Self, Status> {
        let bad =
            |error: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {error}"));
        let bytes = TOKEN.decode(token).map_err(|_| bad("illegal base64 data at input byte 0"))?;
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|_| bad(&bindery_fields::decode::syntax_error(&bytes)))?;
        if value.get("v").and_then(Value::as_str) != Some("meta.k8s.io/v1") {
            let given = value.get("v").and_then(Value::as_str).unwrap_or_default();
            return Err(bad(format!("server does not recognize this encoded version {given}").trim_end()));
        }
        let revision = value.get("rv").and_then(Value::as_i64).unwrap_or(0);
        if revision == 0 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = value.get("start").and_then(Value::as_str).unwrap_or_default();
        let Some(start) = start.strip_prefix('/') else {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        };
        Ok(Self { revision: u64::try_from(revision).ok(), start: start.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_upstreams_format() {
        let token = Continue { revision: Some(343), start: "a".to_owned() };
        assert_eq!(token.encode(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MzQzLCJzdGFydCI6Ii9hXHUwMDAwIn0");
        let back = Continue::decode(&token.encode()).expect("a valid token");
        assert_eq!((back.revision, back.start.as_str()), (Some(343), "a\0"));
        assert_eq!(
            Continue::decode(&Continue { revision: None, ..token }.encode()).expect("a valid token").revision,
            None
        );
        let error = Continue::decode("abc").expect_err("no token").message;
        assert_eq!(
            error,
            "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"
        );
    }
}
