//! A minimal protobuf decoder for reviews and for the objects that `kubectl create` generates:
//! kubectl sends these in no other format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of every Kubernetes protobuf message.
const MAGIC: &[u8] = b"k8s\0";

/// A field to be decoded; all others are skipped.
pub struct Field {
    /// Its number.
    pub number: u64,
    /// Its name in JSON.
    pub name: &'static str,
    /// Its type.
    pub content: Content,
}

/// The type of a field.
pub enum Content {
    /// A string.
    Text,
    /// Repeated strings.
    Texts,
    /// A boolean.
    Flag,
    /// A message.
    Message(&'static [Field]),
    /// Repeated messages.
    Messages(&'static [Field]),
    /// A map of strings.
    TextMap,
    /// A map of bytes.
    BytesMap,
}

/// Decodes the message in an envelope to JSON. `None` if it is malformed.
pub fn read(sent: &[u8], fields: &[Field]) -> Option<Value> {
    let envelope = sent.strip_prefix(MAGIC)?;
    let message = Reader(envelope).find(|field| field.as_ref().is_none_or(|(number, _)| *number == 2))??.1;
    message_of(message.bytes(), fields)
}

/// Decodes the type of the message in an envelope: an object with `apiVersion` and `kind`.
pub fn read_type(sent: &[u8]) -> Option<Value> {
    const TYPE: [Field; 2] = [
        Field { number: 1, name: "apiVersion", content: Content::Text },
        Field { number: 2, name: "kind", content: Content::Text },
    ];
    let envelope = sent.strip_prefix(MAGIC)?;
    let message = Reader(envelope).find(|field| field.as_ref().is_none_or(|(number, _)| *number == 1))??.1;
    message_of(message.bytes(), &TYPE)
}

fn message_of(message: &[u8], fields: &[Field]) -> Option<Value> {
    let mut object = Map::new();
    for read in Reader(message) {
        let (number, wire) = read?;
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        let value = value_of(wire, &field.content)?;
        match field.content {
            Content::Text | Content::Flag | Content::Message(_) => {
                object.insert(field.name.to_owned(), value);
            }
            Content::Texts | Content::Messages(_) => {
                let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut()?.push(value);
            }
            Content::TextMap | Content::BytesMap => {
                let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                map.as_object_mut()?.extend(value.as_object()?.clone());
            }
        }
    }
    Some(Value::Object(object))
}

fn value_of(wire: Wire<'_>, content: &Content) -> Option<Value> {
    Some(match content {
        Content::Text | Content::Texts => text(wire)?,
        Content::Flag => wire.number()?.ne(&0).into(),
        Content::Message(fields) | Content::Messages(fields) => message_of(wire.bytes(), fields)?,
        Content::TextMap => entry(wire, text)?,
        Content::BytesMap => entry(wire, |wire| Some(STANDARD.encode(wire.bytes()).into()))?,
    })
}

fn text(wire: Wire<'_>) -> Option<Value> {
    String::from_utf8(wire.bytes().to_vec()).ok().map(Value::from)
}

/// A map entry is a message of two fields, key and value. Either is omitted if it is empty.
fn entry(wire: Wire<'_>, value_of: impl Fn(Wire<'_>) -> Option<Value>) -> Option<Value> {
    let (mut name, mut value) = (Wire::Bytes(&[]), Wire::Bytes(&[]));
    for read in Reader(wire.bytes()) {
        match read? {
            (1, wire) => name = wire,
            (2, wire) => value = wire,
            _ => {}
        }
    }
    let name = String::from_utf8(name.bytes().to_vec()).ok()?;
    Some(Value::Object(Map::from_iter([(name, value_of(value)?)])))
}

/// An encoded field.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// Empty if it is a number.
    fn bytes(self) -> &'a [u8] {
        match self {
            Wire::Number(_) => &[],
            Wire::Bytes(bytes) => bytes,
        }
    }

    fn number(self) -> Option<u64> {
        match self {
            Wire::Number(number) => Some(number),
            Wire::Bytes(_) => None,
        }
    }
}

/// The fields of a message with their numbers. Ends with `None` if the message is malformed.
struct Reader<'a>(&'a [u8]);

impl<'a> Iterator for Reader<'a> {
    type Item = Option<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Reader<'a> {
    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => Wire::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, wire))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[Field] = &[Field {
        number: 2,
        name: "spec",
        content: Content::Message(&[
            Field { number: 1, name: "token", content: Content::Text },
            Field { number: 2, name: "audiences", content: Content::Texts },
        ]),
    }];

    /// The envelope of a TokenReview with a token, an audience, and an unknown field.
    const SENT: &[u8] = b"k8s\0\x0a\x04\x0a\x02v1\x12\x0c\x12\x0a\x0a\x03abc\x12\x01x\x18\x05";

    #[test]
    fn a_review_is_decoded() {
        assert_eq!(read(SENT, FIELDS), Some(json!({"spec": {"token": "abc", "audiences": ["x"]}})));
    }

    #[test]
    fn a_truncated_message_is_rejected() {
        assert_eq!(read(b"", FIELDS), None);
        for length in 0..SENT.len() {
            let cut = read(&SENT[..length], FIELDS);
            assert_eq!(cut, None, "{length}");
        }
    }
}
