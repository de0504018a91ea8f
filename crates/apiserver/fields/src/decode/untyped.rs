//! Decoding without a schema: patches, and the `apiVersion` and `kind` of a body.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::reader::STRICT_ERRORS_MAX;

/// Decodes JSON text, and lists its duplicate fields. The error is that of Go's scanner.
pub(crate) fn untyped(text: &[u8]) -> Result<(Value, Vec<String>), String> {
    let text = super::valid_utf8(text);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let (mut path, mut strict_errors) = (String::new(), Vec::new());
    let read = Untyped { path: &mut path, strict_errors: &mut strict_errors }.deserialize(&mut deserializer).and_then(
        |value| {
            deserializer.end()?;
            Ok(value)
        },
    );
    read.map(|value| (value, strict_errors)).map_err(|_| super::syntax::syntax_error(text.as_bytes()))
}

struct Untyped<'a> {
    path: &'a mut String,
    strict_errors: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Untyped<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Untyped<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Value, E> {
        Ok(is.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (mut list, length) = (Vec::new(), self.path.len());
        loop {
            self.path.push_str(&format!("[{}]", list.len()));
            let item = access.next_element_seed(Untyped { path: self.path, strict_errors: self.strict_errors })?;
            self.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (mut map, length) = (Map::new(), self.path.len());
        while let Some(key) = access.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if map.contains_key(&key) && self.strict_errors.len() < STRICT_ERRORS_MAX {
                let error = format!("duplicate field {:?}", self.path);
                if !self.strict_errors.contains(&error) {
                    self.strict_errors.push(error);
                }
            }
            let value = access.next_value_seed(Untyped { path: self.path, strict_errors: self.strict_errors })?;
            self.path.truncate(length);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The `apiVersion` and `kind` of a body, and type errors in them.
#[derive(Default)]
pub(super) struct Types {
    pub api_version: String,
    pub kind: String,
    /// The JSON type of the body, if it is not an object.
    pub other: Option<&'static str>,
    /// The field that is not a string, and its JSON type.
    pub mismatch: Option<(&'static str, &'static str)>,
}

impl Types {
    pub fn read<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        self.other = deserializer.deserialize_any(Body { types: self })?;
        Ok(())
    }
}

/// Reads the body; returns its JSON type if it is not an object.
struct Body<'a> {
    types: &'a mut Types,
}

impl<'de> Visitor<'de> for Body<'_> {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some("bool"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some("number"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Some("number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some("number"))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Some("string"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some("array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        while let Some(key) = access.next_key::<std::borrow::Cow<'_, str>>()? {
            let (name, target) = match key.as_ref() {
                "apiVersion" => ("apiVersion", &mut self.types.api_version),
                "kind" => ("kind", &mut self.types.kind),
                _ => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let given = match access.next_value::<Value>()? {
                Value::String(text) => {
                    *target = text;
                    continue;
                }
                Value::Null => continue,
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            self.types.mismatch.get_or_insert((name, given));
        }
        Ok(None)
    }
}
