//! The query of a request, and what it says of lists, watches and writes.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};

use crate::api::Options;
use crate::status::Status;

/// The parameters of a query: what is not about objects only looks at a few of them.
pub struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// The query of a URL, without its question mark.
    pub fn new(query: Option<&'a str>) -> Query<'a> {
        Query(query.unwrap_or_default())
    }

    /// Names and values in the order in which they came. A pair that is no text is left out, as Go leaves it out.
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

/// What a query says besides the options of the API itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// `watch`
    pub watch: bool,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<i64>,
    /// `pretty`
    pub pretty: Option<bool>,
    /// `includeObject`
    pub include_object: String,
}

/// Which parameters count: upstream reads numbers only where they mean something, and refuses there what is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those of a list.
    pub list: bool,
    /// Those of a delete.
    pub delete: bool,
}

/// Reads the parameters. What no one knows is no error.
pub fn options(query: &Query<'_>, counts: Counts) -> Result<(Options, Manner), Status> {
    let mut options = Options::default();
    let mut manner = Manner::default();
    let mut limit = None;
    for (name, value) in query.pairs() {
        // Go's decoder of parameters takes the first of several.
        match name.as_ref() {
            "resourceVersion" => first(&mut options.resource_version, value),
            "resourceVersionMatch" => first(&mut options.resource_version_match, value),
            "limit" if counts.list => set_number(&mut limit, &value)?,
            "continue" => first(&mut options.continue_token, value),
            "labelSelector" => first(&mut options.label_selector, value),
            "fieldSelector" => first(&mut options.field_selector, value),
            "sendInitialEvents" => options.send_initial_events = Some(go_bool(&value)),
            "allowWatchBookmarks" => options.allow_watch_bookmarks = go_bool(&value),
            "fieldManager" => first(&mut options.field_manager, value),
            "fieldValidation" => first(&mut options.field_validation, value),
            "force" => options.force = Some(go_bool(&value)),
            "dryRun" => options.dry_run.push(value.into_owned()),
            "gracePeriodSeconds" if counts.delete => set_number(&mut options.grace_period_seconds, &value)?,
            "propagationPolicy" => options.propagation_policy = Some(value.into_owned()),
            "orphanDependents" => options.orphan_dependents = Some(go_bool(&value)),
            "watch" if counts.list => manner.watch = go_bool(&value),
            "timeoutSeconds" if counts.list => set_number(&mut manner.timeout_seconds, &value)?,
            "pretty" => manner.pretty = Some(go_bool(&value)),
            "includeObject" => first(&mut manner.include_object, value),
            _ => {}
        }
    }
    options.limit = limit.unwrap_or_default();
    Ok((options, manner))
}

fn first(slot: &mut String, value: Cow<'_, str>) {
    if slot.is_empty() {
        *slot = value.into_owned();
    }
}

/// A flag without a value is set; only these words clear it.
fn go_bool(value: &str) -> bool {
    !matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False")
}

/// The first of several counts.
fn set_number(slot: &mut Option<i64>, value: &str) -> Result<(), Status> {
    if slot.is_some() {
        return Ok(());
    }
    let refuse = |what: &str| Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: {what}"));
    let is_too_large =
        |error: &ParseIntError| matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
    *slot = Some(
        value
            .parse::<i64>()
            .map_err(|error| refuse(if is_too_large(&error) { "value out of range" } else { "invalid syntax" }))?,
    );
    Ok(())
}

/// A segment of a path without its escapes. What is no escape, or no text, stays as it is.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    if text.contains('%') { decoded(text, false).map_or(Cow::Borrowed(text), Cow::Owned) } else { Cow::Borrowed(text) }
}

fn form_decoded(text: &str) -> Option<Cow<'_, str>> {
    if text.contains(['%', '+']) { decoded(text, true).map(Cow::Owned) } else { Some(Cow::Borrowed(text)) }
}

fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(&byte) = bytes.get(place) {
        place += 1;
        match byte {
            b'%' => {
                let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (high, low) = (digit(place)?, digit(place + 1)?);
                out.push(u8::try_from(high * 16 + low).ok()?);
                place += 2;
            }
            b'+' if plus_is_space => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Counts = Counts { list: true, delete: false };

    #[test]
    fn selectors_are_unescaped() {
        let query = Query::new(Some("labelSelector=a%20in+(b%2Cc)&limit=5&watch&dryRun=All&dryRun=x&unknown=1"));
        let (options, manner) = options(&query, LIST).expect("all of it makes sense");
        assert_eq!(options.label_selector, "a in (b,c)");
        assert_eq!(options.limit, 5);
        assert_eq!(options.dry_run, ["All", "x"]);
        assert!(manner.watch);
    }

    #[test]
    fn a_pair_with_a_broken_escape_is_left_out() {
        let (options, _) =
            options(&Query::new(Some("labelSelector=%%&fieldSelector=a%3Db")), LIST).expect("the rest is fine");
        assert_eq!((options.label_selector.as_str(), options.field_selector.as_str()), ("", "a=b"));
    }

    #[test]
    fn where_nothing_is_listed_a_limit_is_nobodys_concern() {
        assert!(options(&Query::new(Some("limit=x&gracePeriodSeconds=x")), Counts::default()).is_ok());
    }

    #[test]
    fn what_is_no_number_is_refused_in_the_words_of_go() {
        let error = |query| options(&Query::new(Some(query)), LIST).expect_err("it is refused").message;
        assert_eq!(error("limit=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        let large = "99999999999999999999";
        assert_eq!(
            error("timeoutSeconds=99999999999999999999"),
            format!("strconv.ParseInt: parsing {large:?}: value out of range")
        );
    }
}
