//! What a list or a watch asks for: revisions, pages, and what makes no sense.

use super::Options;
use crate::invalid::FieldErrors;
use crate::status::Status;
use serde_json::Value;

/// A revision that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// None: the latest.
    Latest,
    /// `0`: whichever is at hand.
    Any,
    /// This one, or a later.
    At(u64),
}

/// Reads a revision.
pub fn revision(text: &str) -> Result<Revision, String> {
    match text {
        "" => Ok(Revision::Latest),
        "0" => Ok(Revision::Any),
        _ => text.parse().map(Revision::At).map_err(|_| {
            format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {}", flaw(text))
        }),
    }
}

/// What Go's number parser finds wrong.
pub fn flaw(text: &str) -> &'static str {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    }
}

/// Refuses options of a list that make no sense together.
pub fn check_list(options: &Options) -> Result<(), Status> {
    let mut flaws = FieldErrors::default();
    if options.send_initial_events.is_some() {
        flaws.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    let path = "resourceVersionMatch";
    match options.resource_version_match.as_str() {
        "" => {}
        matching => {
            if options.resource_version.is_empty() {
                flaws.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !options.continue_token.is_empty() {
                flaws.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                flaws.unsupported(path, matching, &["Exact", "NotOlderThan", ""]);
            }
            if matching == "Exact" && options.resource_version == "0" {
                flaws.forbidden(path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
    }
    flaws.refuse_as("meta.k8s.io", "ListOptions", "")
}

/// Refuses options of a watch that make no sense together.
pub fn check_watch(options: &Options) -> Result<(), Status> {
    let mut flaws = FieldErrors::default();
    let path = "resourceVersionMatch";
    let matching = options.resource_version_match.as_str();
    if options.send_initial_events.is_some() && matching != "NotOlderThan" {
        flaws.forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if options.send_initial_events.is_none() && !matching.is_empty() {
        flaws.forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if !options.continue_token.is_empty() {
        flaws.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
    }
    if !matches!(matching, "" | "NotOlderThan") {
        flaws.unsupported(path, matching, &["NotOlderThan"]);
    }
    flaws.refuse_as("meta.k8s.io", "ListOptions", "")
}

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the first page; none if that is no longer held, and the rest is shown as it is now.
    pub revision: Option<u64>,
    /// The first key that may come, without the prefix that the path gives.
    pub start: String,
}

impl Continue {
    /// As clients are given it.
    pub fn encode(&self) -> String {
        let revision = self.revision.map_or(Value::from(-1), Value::from);
        let start = serde_json::to_string(&format!("/{}\0", self.start)).unwrap_or_default();
        base64(format!(r#"{{"v":"meta.k8s.io/v1","rv":{revision},"start":{start}}}"#).as_bytes())
    }

    /// As clients bring it back.
    pub fn decode(token: &str) -> Result<Self, Status> {
        let bad =
            |flaw: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {flaw}"));
        let bytes = unbase64(token).ok_or_else(|| bad("illegal base64 data at input byte 0"))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad(&bindery_fields::decode::mistake(&bytes)))?;
        if value.get("v").and_then(Value::as_str) != Some("meta.k8s.io/v1") {
            let said = value.get("v").and_then(Value::as_str).unwrap_or_default();
            return Err(bad(format!("server does not recognize this encoded version {said}").trim_end()));
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

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, byte| (group << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(LETTERS[(group >> (18 - 6 * place)) as usize & 63]));
        }
    }
    out
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let digits: Option<Vec<u32>> =
        text.bytes().map(|byte| LETTERS.iter().position(|letter| *letter == byte).map(|at| at as u32)).collect();
    for chunk in digits?.chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let group = chunk.iter().fold(0u32, |group, digit| (group << 6) | digit) << (6 * (4 - chunk.len()));
        out.extend((0..chunk.len() - 1).map(|place| (group >> (16 - 8 * place)) as u8));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_upstream_would_give() {
        let token = Continue { revision: Some(343), start: "a".to_owned() };
        assert_eq!(token.encode(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MzQzLCJzdGFydCI6Ii9hXHUwMDAwIn0");
        let back = Continue::decode(&token.encode()).expect("its own token");
        assert_eq!((back.revision, back.start.as_str()), (Some(343), "a\0"));
        assert_eq!(
            Continue::decode(&Continue { revision: None, ..token }.encode()).expect("its own token").revision,
            None
        );
        let flaw = Continue::decode("abc").expect_err("no token").message;
        assert_eq!(
            flaw,
            "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"
        );
    }
}
