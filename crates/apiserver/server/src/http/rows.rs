//! Lists: items are encoded from shared bytes while they are sent, so that a list of any length
//! needs one chunk of memory.

use bytes::Bytes;

use super::shape::{Form, push, write_partial};
use crate::api::List;
use crate::store;

/// A list that is being sent.
pub struct Rows {
    /// The bytes before the items; part of the first chunk.
    head: Vec<u8>,
    items: std::vec::IntoIter<Bytes>,
    form: Form,
    is_first: bool,
    is_over: bool,
}

impl Rows {
    /// A list in the given form.
    pub fn new(list: List, form: Form) -> Rows {
        let head = head(&list, &form);
        Rows { head, items: list.items.into_iter(), form, is_first: true, is_over: false }
    }

    /// The next chunk, of about `size` bytes; `None` after the last.
    pub fn next_chunk(&mut self, size: usize) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut out = std::mem::take(&mut self.head);
        // Upstream returns null for an empty list of metadata.
        if self.is_first && matches!(self.form, Form::Partial(_)) && self.items.len() == 0 {
            out.truncate(out.len() - 1);
            out.extend_from_slice(b"null}\n");
            self.is_over = true;
            return Some(Bytes::from(out));
        }
        while out.len() < size {
            let Some(item) = self.items.next() else {
                out.extend_from_slice(b"]}\n");
                self.is_over = true;
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                out.push(b',');
            }
            match &self.form {
                Form::Plain => {
                    out.push(b'{');
                    out.extend_from_slice(store::item(&item));
                }
                Form::Partial(version) => write_partial(&mut out, version, &item),
                Form::Table(table) => table.write_row(&mut out, &item),
            }
        }
        Some(Bytes::from(out))
    }

    /// The whole list, if it fits into one chunk.
    pub fn whole(mut self, size: usize) -> Result<Bytes, Box<Rows>> {
        let first = self.next_chunk(size).unwrap_or_default();
        if self.is_over {
            return Ok(first);
        }
        self.head = first.into();
        Err(Box::new(self))
    }

    /// The whole list.
    pub fn all(mut self) -> Bytes {
        self.next_chunk(usize::MAX).unwrap_or_default()
    }
}

fn head(list: &List, form: &Form) -> Vec<u8> {
    let mut out = Vec::with_capacity(
        super::body::CHUNK_BYTES.min(512 + list.items.iter().take(64).map(Bytes::len).sum::<usize>()),
    );
    let metadata = metadata(list);
    match form {
        Form::Plain => {
            let kind = list.kind;
            let (group, slash) = if kind.group.is_empty() { ("", "") } else { (kind.group, "/") };
            push(
                &mut out,
                format_args!(
                    r#"{{"kind":"{}List","apiVersion":"{group}{slash}{}","metadata":{metadata},"items":["#,
                    kind.kind, kind.version
                ),
            );
        }
        Form::Partial(version) => push(
            &mut out,
            format_args!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{version}","metadata":{metadata},"items":["#
            ),
        ),
        Form::Table(table) => {
            table.write_head(&mut out, &metadata);
            table.write_columns(&mut out);
            out.extend_from_slice(br#","rows":["#);
        }
    }
    out
}

fn metadata(list: &List) -> String {
    let mut metadata = format!(r#"{{"resourceVersion":"{}""#, list.revision);
    if let Some(token) = &list.continue_token {
        // A token is base64url, which needs no escapes.
        metadata.push_str(&format!(r#","continue":"{token}""#));
    }
    if let Some(remaining) = list.remaining {
        metadata.push_str(&format!(r#","remainingItemCount":{remaining}"#));
    }
    metadata.push('}');
    metadata
}
