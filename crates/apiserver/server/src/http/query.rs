//! The query parameters of a request.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};

use percent_encoding::percent_decode_str;

use crate::api::Options;
use crate::status::Status;

/// The query of a URL.
pub struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// A query, without its question mark.
    pub fn new(query: Option<&'a str>) -> Query<'a> {
        Query(query.unwrap_or_default())
    }

    /// Names and values in their order. As in Go, a malformed pair is dropped.
    pub fn pairs(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        self.0.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((form_decoded(name)?, form_decoded(value)?))
        })
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.pairs().find(|(found, _)| found == name).map(|(_, value)| value)
    }
}

/// The parameters that the API itself does not need.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ViewOptions {
    /// `watch`
    pub watch: bool,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<i64>,
    /// `pretty`
    pub pretty: Option<bool>,
    /// `includeObject`
    pub include_object: String,
}

/// Which numeric parameters are parsed: upstream parses them, and rejects malformed ones, only
/// where they have a meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParameterScope {
    /// Those of a list.
    pub list: bool,
    /// Those of a delete.
    pub delete: bool,
}

/// Parses the parameters. Unknown ones are ignored.
pub fn options(query: &Query<'_>, scope: ParameterScope) -> Result<(Options, ViewOptions), Status> {
    let mut options = Options::default();
    let mut view = ViewOptions::default();
    let mut limit = None;
    for (name, value) in query.pairs() {
        // Of repeated parameters Go's decoder uses the first.
        match name.as_ref() {
            "resourceVersion" => first(&mut options.resource_version, value),
            "resourceVersionMatch" => first(&mut options.resource_version_match, value),
            "limit" if scope.list => set_number(&mut limit, &value)?,
            "continue" => first(&mut options.continue_token, value),
            "labelSelector" => first(&mut options.label_selector, value),
            "fieldSelector" => first(&mut options.field_selector, value),
            "sendInitialEvents" => options.send_initial_events = Some(go_bool(&value)),
            "allowWatchBookmarks" => options.allow_watch_bookmarks = go_bool(&value),
            "fieldManager" => first(&mut options.field_manager, value),
            "fieldValidation" => first(&mut options.field_validation, value),
            "force" => options.force = Some(go_bool(&value)),
            "dryRun" => options.dry_run.push(value.into_owned()),
            "gracePeriodSeconds" if scope.delete => set_number(&mut options.grace_period_seconds, &value)?,
            "propagationPolicy" => options.propagation_policy = Some(value.into_owned()),
            "orphanDependents" => options.orphan_dependents = Some(go_bool(&value)),
            "watch" if scope.list => view.watch = go_bool(&value),
            "timeoutSeconds" if scope.list => set_number(&mut view.timeout_seconds, &value)?,
            "pretty" => view.pretty = Some(go_bool(&value)),
            "includeObject" => first(&mut view.include_object, value),
            _ => {}
        }
    }
    options.limit = limit.unwrap_or_default();
    Ok((options, view))
}

fn first(slot: &mut String, value: Cow<'_, str>) {
    if slot.is_empty() {
        *slot = value.into_owned();
    }
}

/// A boolean parameter without a value is true; only these values are false.
pub fn go_bool(value: &str) -> bool {
    !matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False")
}

/// Of repeated parameters the first is used.
fn set_number(slot: &mut Option<i64>, value: &str) -> Result<(), Status> {
    if slot.is_some() {
        return Ok(());
    }
    let reject = |what: &str| Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: {what}"));
    let is_too_large =
        |error: &ParseIntError| matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
    *slot = Some(
        value
            .parse::<i64>()
            .map_err(|error| reject(if is_too_large(&error) { "value out of range" } else { "invalid syntax" }))?,
    );
    Ok(())
}

/// A segment of a path without its escapes. A malformed segment is returned as it is.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    decoded(text).unwrap_or(Cow::Borrowed(text))
}

fn form_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return decoded(text);
    }
    let text = text.replace('+', " ");
    decoded(&text).map(|decoded| Cow::Owned(decoded.into_owned()))
}

/// Go rejects malformed escapes, `percent_encoding` keeps them as they are.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: ParameterScope = ParameterScope { list: true, delete: false };

    #[test]
    fn selectors_are_unescaped() {
        let query = Query::new(Some("labelSelector=a%20in+(b%2Cc)&limit=5&watch&dryRun=All&dryRun=x&unknown=1"));
        let (options, view) = options(&query, LIST).expect("all of it makes sense");
        assert_eq!(options.label_selector, "a in (b,c)");
        assert_eq!(options.limit, 5);
        assert_eq!(options.dry_run, ["All", "x"]);
        assert!(view.watch);
    }

    #[test]
    fn a_pair_with_a_malformed_escape_is_dropped() {
        let (options, _) =
            options(&Query::new(Some("labelSelector=%%&fieldSelector=a%3Db")), LIST).expect("the rest is fine");
        assert_eq!((options.label_selector.as_str(), options.field_selector.as_str()), ("", "a=b"));
    }

    #[test]
    fn a_malformed_limit_is_ignored_unless_listing() {
        assert!(options(&Query::new(Some("limit=x&gracePeriodSeconds=x")), ParameterScope::default()).is_ok());
    }

    #[test]
    fn malformed_numbers_are_rejected_with_gos_message() {
        let error = |query| options(&Query::new(Some(query)), LIST).expect_err("it is rejected").message;
        assert_eq!(error("limit=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        let large = "99999999999999999999";
        assert_eq!(
            error("timeoutSeconds=99999999999999999999"),
            format!("strconv.ParseInt: parsing {large:?}: value out of range")
        );
    }
}
