//! A single pass over text or a value, guided by the schema, that produces the canonical form.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
    value::MapAccessDeserializer,
};
use serde_json::{Map, Value};

use super::scalar;
use crate::schema::{Field, Omit, Scalar, Shape, Struct};

/// Go's decoder reports no more than this many.
pub(super) const STRICT_ERRORS_MAX: usize = 100;

/// What the reader has found so far, and where it is.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    pub report: bool,
    pub strict_errors: Vec<String>,
    /// The first type error. Like Go's decoder, the reader continues after it.
    pub error: Option<String>,
    path: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Field { name: &'static str, inlined: Option<&'static str> },
    Index(usize),
    Key(String),
}

impl Diagnostics {
    pub fn new(report: bool) -> Diagnostics {
        Diagnostics { report, ..Diagnostics::default() }
    }

    fn strict_error(&mut self, what: &str, name: &str) {
        if !self.report || self.strict_errors.len() >= STRICT_ERRORS_MAX {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Field { name, .. } => join(&mut path, name),
                Step::Key(name) => join(&mut path, name),
            }
        }
        join(&mut path, name);
        let error = format!("{what} field {path:?}");
        if !self.strict_errors.contains(&error) {
            self.strict_errors.push(error);
        }
    }

    fn fail(&mut self, message: String) {
        self.error.get_or_insert(message);
    }

    /// A value of the wrong type. Go's message names the struct, and a path of struct fields only.
    fn mismatch(&mut self, given: &str, owner: &str, wanted: &str) {
        if self.error.is_some() {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            if let Step::Field { name, inlined } = step {
                if let Some(inlined) = inlined {
                    join(&mut path, inlined);
                }
                join(&mut path, name);
            }
        }
        let position = if path.is_empty() { "value".to_owned() } else { format!("struct field {owner}.{path}") };
        self.fail(format!("json: cannot unmarshal {given} into Go {position} of type {wanted}"));
    }
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Reads one value. The result is null if the value is missing or has the wrong type.
pub(super) struct Reader<'a> {
    pub shape: Shape,
    /// The name of the struct that contains it.
    pub owner: &'static str,
    pub go_type: &'static str,
    pub diagnostics: &'a mut Diagnostics,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Reader<'_> {
    fn mismatch(&mut self, given: &str) -> Value {
        let wanted = match self.shape {
            Shape::Scalar(Scalar::Time | Scalar::MicroTime) => "string",
            Shape::Scalar(Scalar::IntOrString) => "int32",
            Shape::Scalar(Scalar::Bytes) => "[]uint8",
            Shape::Scalar(Scalar::Quantity) => {
                // Go passes any JSON to the quantity's own decoder.
                let _ = self.checked(scalar::quantity("{}".to_owned()));
                return Value::Null;
            }
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::List { .. } | Shape::Map { .. } => self.go_type,
        };
        self.diagnostics.mismatch(given, self.owner, wanted);
        Value::Null
    }

    fn checked(&mut self, outcome: Result<String, String>) -> Value {
        match outcome {
            Ok(text) => Value::String(text),
            Err(message) => {
                self.diagnostics.fail(message);
                Value::Null
            }
        }
    }

    fn integer<N: Into<Value>>(mut self, number: N, wide: Option<i64>) -> Value {
        let number: Value = number.into();
        let narrow = wide.and_then(|wide| i32::try_from(wide).ok());
        match self.shape {
            Shape::Scalar(Scalar::Any) => number,
            Shape::Scalar(Scalar::Int64) if wide.is_some() => number,
            Shape::Scalar(Scalar::Int32 | Scalar::IntOrString) if narrow.is_some() => number,
            Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString) => {
                self.mismatch(&format!("number {number}"))
            }
            Shape::Scalar(Scalar::Quantity) => self.checked(scalar::quantity(number.to_string())),
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::List { .. } | Shape::Map { .. } => self.mismatch("number"),
        }
    }

    fn text(mut self, text: String) -> Value {
        match self.shape {
            Shape::Scalar(Scalar::String | Scalar::IntOrString | Scalar::Any) => Value::String(text),
            Shape::Scalar(Scalar::Quantity) => self.checked(scalar::quantity(text)),
            Shape::Scalar(Scalar::Time) => self.checked(scalar::time(text)),
            Shape::Scalar(Scalar::MicroTime) => self.checked(scalar::micro_time(text)),
            Shape::Scalar(Scalar::Bytes) => {
                let error = scalar::base64_error(&text).map(|at| format!("illegal base64 data at input byte {at}"));
                self.checked(error.map_or(Ok(text), Err))
            }
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::List { .. } | Shape::Map { .. } => self.mismatch("string"),
        }
    }

    fn inner<'b>(&'b mut self, shape: Shape, go_type: &'static str) -> Reader<'b> {
        Reader { shape, owner: self.owner, go_type, diagnostics: self.diagnostics }
    }

    fn map<'de, A: MapAccess<'de>>(mut self, value: Shape, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let go_type = element_type(self.go_type);
        // A scalar has no path below it, and Go's errors do not name map keys.
        let is_scalar = matches!(value, Shape::Scalar(_));
        while let Some(key) = access.next_key::<String>()? {
            if !is_scalar {
                self.diagnostics.path.push(Step::Key(key.clone()));
            }
            let read = access.next_value_seed(self.inner(value, go_type))?;
            if !is_scalar {
                self.diagnostics.path.pop();
            }
            if self.diagnostics.report && map.contains_key(&key) {
                self.diagnostics.strict_error("duplicate", &key);
            }
            map.insert(key, if read.is_null() { value.zero() } else { read });
        }
        Ok(Value::Object(map))
    }

    fn fields<'de, A: MapAccess<'de>>(self, of: &'static Struct, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut seen = 0_u64;
        while let Some(key) = access.next_key_seed(Name { of })? {
            let position = match key {
                Key::Known(position) => position,
                Key::Unknown(name) => {
                    self.diagnostics.strict_error("unknown", &name);
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let field = &of.fields[position];
            if seen & (1 << position) != 0 {
                self.diagnostics.strict_error("duplicate", field.name);
            }
            seen |= 1 << position;
            self.diagnostics.path.push(Step::Field { name: field.name, inlined: field.inlined });
            let reader = Reader {
                shape: field.shape,
                owner: of.name,
                go_type: field.go_type,
                diagnostics: &mut *self.diagnostics,
            };
            let value = access.next_value_seed(reader)?;
            self.diagnostics.path.pop();
            if is_printed(field, &value) {
                map.insert(field.name.to_owned(), value);
            }
        }
        for position in &of.always_printed {
            let field = &of.fields[usize::from(*position)];
            if !map.contains_key(field.name) {
                map.insert(field.name.to_owned(), field.zero());
            }
        }
        Ok(Value::Object(map))
    }
}

/// Reads the value of one field. `None` if it is invalid, `Some(None)` if it is valid but not
/// printed.
pub(crate) fn read_field(of: &'static Struct, field: &'static Field, value: Value) -> Option<Option<Value>> {
    let mut diagnostics = Diagnostics::new(true);
    let reader = Reader { shape: field.shape, owner: of.name, go_type: field.go_type, diagnostics: &mut diagnostics };
    let value = reader.deserialize(value).ok()?;
    let is_clean = diagnostics.error.is_none() && diagnostics.strict_errors.is_empty();
    is_clean.then(|| Some(value).filter(|value| is_printed(field, value)))
}

/// Whether Go's encoder prints a value in this field.
fn is_printed(field: &Field, value: &Value) -> bool {
    if value.is_null() {
        return false;
    }
    if field.pointer || field.omit == Omit::Nothing {
        return true;
    }
    match (field.shape, value) {
        (Shape::Struct { .. } | Shape::Scalar(Scalar::IntOrString), _) => true,
        (_, Value::String(text)) => !text.is_empty(),
        (_, Value::Number(number)) => number.as_i64() != Some(0),
        (_, Value::Bool(is)) => *is,
        // An empty list requests a reset of field ownership, which differs from no list.
        (_, Value::Array(list)) => !list.is_empty() || field.name == "managedFields",
        (_, Value::Object(map)) => !map.is_empty(),
        (_, Value::Null) => false,
    }
}

/// The Go type of the items of a list or the values of a map.
fn element_type(go_type: &'static str) -> &'static str {
    if let Some(item) = go_type.strip_prefix("[]") {
        return item.trim_start_matches('*');
    }
    match go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        Some((_, value)) => value.trim_start_matches('*'),
        None if go_type == "v1.ResourceList" => "resource.Quantity",
        None => go_type,
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(mut self, is: bool) -> Result<Value, E> {
        Ok(match self.shape {
            Shape::Scalar(Scalar::Bool | Scalar::Any) => Value::Bool(is),
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::List { .. } | Shape::Map { .. } => self.mismatch("bool"),
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(self.integer(number, Some(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(self.integer(number, i64::try_from(number).ok()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(self.integer(number, None))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(self.text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(self.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let (item, go_type) = match self.shape {
            Shape::List { item, .. } => (*item, element_type(self.go_type)),
            Shape::Scalar(Scalar::Any) => (self.shape, self.go_type),
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => {
                while access.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(self.mismatch("array"));
            }
        };
        let mut list = Vec::new();
        loop {
            self.diagnostics.path.push(Step::Index(list.len()));
            let read = access.next_element_seed(self.inner(item, go_type))?;
            self.diagnostics.path.pop();
            match read {
                Some(Value::Null) => list.push(item.zero()),
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        match self.shape {
            Shape::Map { value, .. } => self.map(*value, access),
            Shape::Scalar(Scalar::Any) => Value::deserialize(MapAccessDeserializer::new(access)),
            Shape::Struct { .. } => match self.shape.as_struct() {
                Some(of) => self.fields(of, access),
                None => Ok(Value::Null),
            },
            Shape::Scalar(_) | Shape::List { .. } => {
                while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(self.mismatch("object"))
            }
        }
    }
}

/// Looks up a field's name without copying it.
struct Name {
    of: &'static Struct,
}

enum Key {
    Known(usize),
    Unknown(String),
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Key;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
        Ok(self.of.find(name).map_or_else(|| Key::Unknown(name.to_owned()), |(position, _)| Key::Known(position)))
    }
}
