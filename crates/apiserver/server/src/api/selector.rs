//! Label selectors and field selectors.

use crate::kinds::Kind;
use crate::names;
use crate::status::Status;
use crate::store::Stored;
use serde_json::Value;

/// A label selector and a field selector for objects of one kind.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone)]
struct LabelTerm {
    key: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

#[derive(Debug, Clone)]
struct FieldTerm {
    of: Field,
    value: String,
    wanted: bool,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Name,
    Namespace,
    Own(fn(&Value) -> String),
}

impl Selection {
    /// Parses both selectors of a request.
    pub fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = LabelParser { tokens: tokens(labels), at: 0 }.parse().map_err(Status::bad_request)?;
        Ok(Self { labels, fields: parse_fields(kind, fields).map_err(Status::bad_request)? })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Restricts the selection to one name.
    pub fn only_named(&mut self, name: &str) {
        self.fields.push(FieldTerm { of: Field::Name, value: name.to_owned(), wanted: true });
    }

    /// Whether an object is selected.
    pub fn selects(&self, key: &str, object: &Stored) -> bool {
        self.labels.iter().all(|term| term.matches(object)) && self.fields_match(key, object)
    }

    fn fields_match(&self, key: &str, object: &Stored) -> bool {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let mut decoded: Option<Value> = None;
        self.fields.iter().all(|term| {
            let equal = match term.of {
                Field::Name => name == term.value,
                Field::Namespace => namespace == term.value,
                Field::Own(read) => {
                    let value = decoded.get_or_insert_with(|| super::decoded(object));
                    read(value) == term.value
                }
            };
            equal == term.wanted
        })
    }
}

impl LabelTerm {
    fn matches(&self, object: &Stored) -> bool {
        let found = object.labels.iter().find(|(key, _)| **key == *self.key).map(|(_, value)| &**value);
        let number = || found.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => found.is_some(),
            Test::Absent => found.is_none(),
            Test::In(values) => found.is_some_and(|value| values.iter().any(|one| one == value)),
            Test::NotIn(values) => found.is_none_or(|value| values.iter().all(|one| one != value)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldTerm>, String> {
    let mut terms = Vec::new();
    for part in split_unescaped(text) {
        if part.is_empty() {
            continue;
        }
        let (name, value, wanted) =
            split_operator(&part).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
        let own = kind.strategy.selectable_fields();
        let of = match name {
            "" if value.is_empty() => continue,
            "metadata.name" => Field::Name,
            // A kind with its own selectable fields lists all of them, and cluster-scoped kinds
            // omit the namespace.
            "metadata.namespace" if own.is_empty() || kind.namespaced => Field::Namespace,
            _ => match own.iter().find(|(known, _)| *known == name) {
                Some((_, read)) => Field::Own(*read),
                None if own.is_empty() => {
                    let known = "only \"metadata.name\", \"metadata.namespace\"";
                    return Err(format!("{name:?} is not a known field selector: {known}"));
                }
                None => return Err(format!("field label not supported: {name}")),
            },
        };
        terms.push(FieldTerm { of, value: unescape(value)?, wanted });
    }
    Ok(terms)
}

fn split_unescaped(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut escaped) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        if letter == ',' && !escaped {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        escaped = letter == '\\' && !escaped;
        part.push(letter);
    }
    parts.push(part);
    parts
}

fn split_operator(part: &str) -> Option<(&str, &str, bool)> {
    for (at, _) in part.char_indices() {
        let (name, rest) = part.split_at(at);
        for (operator, wanted) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((name, value, wanted));
            }
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let other = other.map_or(String::new(), String::from);
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(letter);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            _ => out.push(letter),
        }
    }
    Ok(out)
}

/// The characters that are tokens, or start one.
fn is_special(letter: char) -> bool {
    "=!(),><".contains(letter)
}

fn tokens(text: &str) -> Vec<String> {
    // Upstream skips no other whitespace: it is part of a name, which is then invalid.
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\r' | '\n');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let length = if is_special(first) {
            if ["==", "!="].iter().any(|two| rest.starts_with(two)) { 2 } else { 1 }
        } else {
            rest.find(|letter: char| is_special(letter) || is_space(letter)).unwrap_or(rest.len())
        };
        let (token, more) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = more.trim_start_matches(is_space);
    }
    tokens
}

struct LabelParser {
    tokens: Vec<String>,
    at: usize,
}

fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(|first| !is_special(first))
}

impl LabelParser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    fn parse(&mut self) -> Result<Vec<LabelTerm>, String> {
        let mut terms = Vec::new();
        loop {
            match self.peek() {
                "" => return Ok(terms),
                token if token == "!" || is_word(token) => {
                    terms.push(self.term().map_err(|error| format!("unable to parse requirement: {error}"))?);
                }
                token => return Err(format!("found '{token}', expected: !, identifier, or 'end of string'")),
            }
            match self.next().as_str() {
                "" => return Ok(terms),
                "," => match self.peek() {
                    token if token == "!" || is_word(token) => {}
                    token => return Err(format!("found '{token}', expected: identifier after ','")),
                },
                token => return Err(format!("found '{token}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn term(&mut self) -> Result<LabelTerm, String> {
        let mut key = self.next();
        let absent = key == "!";
        if absent {
            key = self.next();
        }
        if !is_word(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(error) = names::qualified(&key).into_iter().next() {
            // Upstream prints a missing field path as `<nil>`.
            return Err(format!("<nil>: Invalid value: {key:?}: {error}"));
        }
        if absent {
            return Ok(LabelTerm { key, test: Test::Absent });
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(LabelTerm { key, test: Test::Exists });
        }
        let test = self.test(&key)?;
        Ok(LabelTerm { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        let values = match operator.as_str() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | "<" | ">" => vec![self.value()?],
            token => return Err(format!("found '{token}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        for (index, value) in values.iter().enumerate() {
            if let Some(error) = names::label_value(value).into_iter().next() {
                return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {error}"));
            }
        }
        let number = || {
            let text = &values[0];
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            text.parse::<i64>().map_err(|_| format!("values[0]: Invalid value: {text:?}: {detail}"))
        };
        Ok(match operator.as_str() {
            "notin" | "!=" => Test::NotIn(values),
            "<" => Test::Below(number()?),
            ">" => Test::Above(number()?),
            _ => Test::In(values),
        })
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        match self.next() {
            token if is_word(&token) => Ok(token),
            token => Err(format!("found '{token}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            token if token == "(" => {}
            token => return Err(format!("found '{token}' expected: '('")),
        }
        if self.peek() == ")" {
            self.next();
            return Ok(vec![String::new()]);
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                "," | ")" => values.push(String::new()),
                token if is_word(token) => values.push(self.next()),
                token => return Err(format!("found '{token}', expected: ',', or identifier")),
            }
            match self.next().as_str() {
                "," => {}
                ")" => return Ok(values),
                token => return Err(format!("found '{token}', expected: ',' or ')'")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_selector_panics() {
        let kind = &crate::kinds::namespace::KIND;
        let letters = ["é", "\u{a0}", "\u{1f600}", "a", "=", "!", "(", ")", ",", ">", " ", "\\", "in", "notin", ""];
        let mut texts: Vec<String> = vec![String::new()];
        for _ in 0..3 {
            texts = texts.iter().flat_map(|text| letters.iter().map(move |letter| format!("{text}{letter}"))).collect();
        }
        for text in &texts {
            let _ = Selection::parse(kind, text, "");
            let _ = Selection::parse(kind, "", text);
        }
    }

    #[test]
    fn a_label_that_is_not_ascii_is_a_bad_request() {
        let kind = &crate::kinds::namespace::KIND;
        for text in ["é", "a=é", "é=a", "é in (a)", "a in (é)", "!é", "\u{a0}", "a,é"] {
            let status = Selection::parse(kind, text, "").expect_err("labels are ASCII");
            assert_eq!(status.http_code(), 400, "{text}");
        }
    }
}
