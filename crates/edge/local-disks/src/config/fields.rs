//! Typed access to configuration fields, with errors that say where the field is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bindery_model::names::{is_label_key, is_label_name};
use serde_json::{Map, Value};

use super::{ConfigError, UnknownFile};

/// The files of a configuration, or the fields of one class.
pub struct Fields {
    /// The file and class, for fields of a class.
    of_class: Option<(String, String)>,
    fields: Map<String, Value>,
    known: BTreeSet<String>,
}

type Outcome<T> = Result<T, ConfigError>;

impl Fields {
    /// Parses the files of a configuration: each contains one value as YAML.
    pub fn of_files(files: &BTreeMap<String, String>) -> Outcome<Fields> {
        let mut fields = Map::new();
        for (file, text) in files {
            let value = if text.trim().is_empty() {
                Value::Null
            } else {
                let options = serde_saphyr::options! { strict_booleans: true };
                serde_saphyr::from_str_with_options(text, options).map_err(|error| ConfigError {
                    file: file.clone(),
                    class: None,
                    key: None,
                    problem: format!("invalid YAML: {error}"),
                })?
            };
            fields.insert(file.clone(), value);
        }
        Ok(Fields { of_class: None, fields, known: BTreeSet::new() })
    }

    /// An error about one of these fields.
    pub fn error(&self, key: &str, problem: &str) -> ConfigError {
        match &self.of_class {
            None => ConfigError { file: key.to_owned(), class: None, key: None, problem: problem.to_owned() },
            Some((file, class)) => self.error_in(file, class, Some(key), problem),
        }
    }

    /// An error about a field of a class.
    pub fn error_of(&self, file: &str, class: &str, key: &str, problem: &str) -> ConfigError {
        self.error_in(file, class, Some(key), problem)
    }

    fn error_in(&self, file: &str, class: &str, key: Option<&str>, problem: &str) -> ConfigError {
        ConfigError {
            file: file.to_owned(),
            class: Some(class.to_owned()),
            key: key.map(str::to_owned),
            problem: problem.to_owned(),
        }
    }

    /// The files that were not read.
    pub fn unknown(&self) -> impl Iterator<Item = UnknownFile> {
        self.fields.keys().filter(|key| !self.known.contains(*key)).map(|key| UnknownFile {
            name: key.clone(),
            meant: nearest(key, self.known.iter().map(String::as_str)).map(str::to_owned),
        })
    }

    /// Fails if there are other keys than these.
    pub fn only(&self, known: &[&str]) -> Outcome<()> {
        let Some(unknown) = self.fields.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        let meant = match nearest(unknown, known.iter().copied()) {
            Some(meant) => format!("did you mean {meant}? Known keys"),
            None => "known keys".to_owned(),
        };
        Err(self.error(unknown, &format!("unknown key; {meant}: {}", known.join(", "))))
    }

    /// Ignores keys of upstream that have no effect here.
    pub fn skip(&mut self, keys: &[&str]) {
        self.known.extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// Reads a field; `None` if it is missing or null.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.known.insert(key.to_owned());
        self.fields.get(key).filter(|value| !value.is_null()).cloned()
    }

    fn typed<T>(&mut self, key: &str, wanted: &str, read: impl FnOnce(Value) -> Option<T>) -> Outcome<Option<T>> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => {
                let shown = value.to_string();
                read(value).map(Some).ok_or_else(|| self.error(key, &format!("expected {wanted}, found {shown}")))
            }
        }
    }

    /// A boolean, also in quotes; `false` if it is missing.
    pub fn flag(&mut self, key: &str) -> Outcome<bool> {
        let read = |value: Value| match value {
            Value::Bool(flag) => Some(flag),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        Ok(self.typed(key, "true or false", read)?.unwrap_or_default())
    }

    /// A string.
    pub fn text(&mut self, key: &str) -> Outcome<Option<String>> {
        self.typed(key, "a string", plain)
    }

    /// One of a set of strings.
    pub fn word<T>(&mut self, key: &str, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Outcome<Option<T>> {
        let read = |value: Value| plain(value).and_then(|word| parse(&word));
        self.typed(key, wanted, read)
    }

    /// A duration such as `5m0s`.
    pub fn duration(&mut self, key: &str) -> Outcome<Option<Duration>> {
        let parse = |text: &str| Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok();
        self.word(key, "a duration such as 5m0s", parse)
    }

    /// A list of strings.
    pub fn texts(&mut self, key: &str) -> Outcome<Option<Vec<String>>> {
        let read = |value: Value| match value {
            Value::Array(items) => items.into_iter().map(plain).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
        };
        self.typed(key, "a list of strings", read)
    }

    /// Labels that are valid in Kubernetes.
    pub fn labels(&mut self, key: &str) -> Outcome<BTreeMap<String, String>> {
        let labels = self.text_map(key)?;
        let is_fine =
            |(name, value): &(&String, &String)| is_label_key(name) && (value.is_empty() || is_label_name(value));
        match labels.iter().find(|label| !is_fine(label)) {
            None => Ok(labels),
            Some((name, value)) => {
                Err(self.error(key, &format!("{name:?}: {value:?} is not a valid Kubernetes label")))
            }
        }
    }

    /// A map of strings.
    fn text_map(&mut self, key: &str) -> Outcome<BTreeMap<String, String>> {
        let read = |value: Value| match value {
            Value::Object(map) => map.into_iter().map(|(key, value)| Some((key, plain(value)?))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        };
        Ok(self.typed(key, "a map of strings", read)?.unwrap_or_default())
    }

    /// A list of objects.
    pub fn objects(&mut self, key: &str) -> Outcome<Vec<Value>> {
        let read = |value: Value| match value {
            Value::Array(items) => items.iter().all(Value::is_object).then_some(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
        };
        Ok(self.typed(key, "a list of objects", read)?.unwrap_or_default())
    }

    /// A required absolute path. A trailing slash is removed.
    pub fn directory(&mut self, key: &str) -> Outcome<String> {
        let text = self.text(key)?.ok_or_else(|| self.error(key, "this key is required"))?;
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let is_plain =
            text.starts_with('/') && !parts.is_empty() && !parts.iter().any(|part| matches!(*part, "." | ".."));
        match is_plain {
            true => Ok(format!("/{}", parts.join("/"))),
            false => Err(self.error(key, &format!("{text:?} is not an absolute path below /"))),
        }
    }

    /// A map of classes: the fields of each.
    pub fn maps(&mut self, file: &str) -> Outcome<Vec<(String, Fields)>> {
        let read = |value: Value| match value {
            Value::Object(map) => Some(map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        };
        let maps = self.typed(file, "a map of classes", read)?.unwrap_or_default();
        let fields = |(class, value): (String, Value)| match value {
            Value::Object(fields) => {
                let of_class = Some((file.to_owned(), class.clone()));
                Ok((class, Fields { of_class, fields, known: BTreeSet::new() }))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(self.error_in(file, &class, None, "expected a map"))
            }
        };
        maps.into_iter().map(fields).collect()
    }
}

/// The known key that an unknown one resembles most: at most a third of its letters differ, apart
/// from upper and lower case, dashes and underscores.
fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |key: &str| key.to_lowercase().replace(['-', '_'], "");
    let wanted = letters(unknown);
    let nearest = known.map(|key| (distance(&wanted, &letters(key)), key)).min();
    nearest.filter(|(distance, key)| distance * 3 <= key.len()).map(|(_, key)| key)
}

/// The number of letters to insert, remove or replace to turn one text into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

/// A scalar as a string: `namePattern: 1` means the string.
fn plain(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
