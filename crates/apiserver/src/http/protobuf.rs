//! Just enough protobuf to read a review: kubectl sends those in no other way.

use serde_json::{Map, Value};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What Kubernetes puts before every message.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a message that is to be read; all others are passed over.
pub struct Field {
    /// Its number.
    pub number: u64,
    /// Its name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub content: Content,
}

/// What a field holds.
pub enum Content {
    /// A text.
    Text,
    /// Many texts.
    Texts,
    /// A message.
    Message(&'static [Field]),
}

/// Reads the message in an envelope, as JSON. None if it is no such message.
pub fn read(sent: &[u8], fields: &[Field]) -> Option<Value> {
    let envelope = sent.strip_prefix(MAGIC)?;
    // Of the envelope only the message itself matters: its kind is known from the path.
    let message = Reader(envelope).find(|field| field.as_ref().is_none_or(|(number, _)| *number == 2))??.1;
    message_of(message, fields)
}

fn message_of(message: &[u8], fields: &[Field]) -> Option<Value> {
    let mut object = Map::new();
    for read in Reader(message) {
        let (number, bytes) = read?;
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        let text = || String::from_utf8(bytes.to_vec()).ok().map(Value::from);
        match field.content {
            Content::Text => {
                object.insert(field.name.to_owned(), text()?);
            }
            Content::Texts => {
                let texts = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                texts.as_array_mut()?.push(text()?);
            }
            Content::Message(fields) => {
                object.insert(field.name.to_owned(), message_of(bytes, fields)?);
            }
        }
    }
    Some(Value::Object(object))
}

/// The fields of a message, by number; those that are not of a length of their own are empty. A last `None` for a message that is broken.
struct Reader<'a>(&'a [u8]);

impl<'a> Iterator for Reader<'a> {
    type Item = Option<(u64, &'a [u8])>;

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
    fn field(&mut self) -> Option<(u64, &'a [u8])> {
        let tag = self.varint()?;
        let bytes = match tag & 7 {
            0 => {
                self.varint()?;
                &[]
            }
            1 => {
                self.take(8)?;
                &[]
            }
            2 => {
                let length = self.varint()?;
                self.take(usize::try_from(length).ok()?)?
            }
            5 => {
                self.take(4)?;
                &[]
            }
            _ => return None,
        };
        Some((tag >> 3, bytes))
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

    /// An envelope of a TokenReview with a token, an audience, and a field that nobody knows.
    const SENT: &[u8] = b"k8s\0\x0a\x04\x0a\x02v1\x12\x0c\x12\x0a\x0a\x03abc\x12\x01x\x18\x05";

    #[test]
    fn a_review_is_read() {
        assert_eq!(read(SENT, FIELDS), Some(json!({"spec": {"token": "abc", "audiences": ["x"]}})));
    }

    #[test]
    fn what_is_broken_is_no_message() {
        assert_eq!(read(b"", FIELDS), None);
        for length in 0..SENT.len() {
            let cut = read(&SENT[..length], FIELDS);
            assert_eq!(cut, None, "{length}");
        }
    }
}
