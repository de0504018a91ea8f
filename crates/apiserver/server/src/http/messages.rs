//! The kinds that are accepted as protobuf: those that `kubectl create` generates, which it sends
//! in no other format.

use serde_json::Value;

use super::protobuf::{self, Content, Field};
use crate::kinds::Kind;
use crate::status::Status;

const fn field(number: u64, name: &'static str, content: Content) -> Field {
    Field { number, name, content }
}

const fn text(number: u64, name: &'static str) -> Field {
    field(number, name, Content::Text)
}

/// The metadata that a client can set; other fields are ignored.
const METADATA: Field = field(
    1,
    "metadata",
    Content::Message(&[
        text(1, "name"),
        text(2, "generateName"),
        text(3, "namespace"),
        text(5, "uid"),
        text(6, "resourceVersion"),
        field(11, "labels", Content::TextMap),
        field(12, "annotations", Content::TextMap),
        field(
            13,
            "ownerReferences",
            Content::Messages(&[
                text(1, "kind"),
                text(3, "name"),
                text(4, "uid"),
                text(5, "apiVersion"),
                field(6, "controller", Content::Flag),
                field(7, "blockOwnerDeletion", Content::Flag),
            ]),
        ),
        field(14, "finalizers", Content::Texts),
    ]),
);

const NAMESPACE: &[Field] = &[METADATA, field(2, "spec", Content::Message(&[field(1, "finalizers", Content::Texts)]))];

const CONFIG_MAP: &[Field] = &[
    METADATA,
    field(2, "data", Content::TextMap),
    field(3, "binaryData", Content::BytesMap),
    field(4, "immutable", Content::Flag),
];

const SECRET: &[Field] = &[
    METADATA,
    field(2, "data", Content::BytesMap),
    text(3, "type"),
    field(4, "stringData", Content::TextMap),
    field(5, "immutable", Content::Flag),
];

const SERVICE_ACCOUNT: &[Field] = &[
    METADATA,
    field(
        2,
        "secrets",
        Content::Messages(&[
            text(1, "kind"),
            text(2, "namespace"),
            text(3, "name"),
            text(4, "uid"),
            text(5, "apiVersion"),
            text(6, "resourceVersion"),
            text(7, "fieldPath"),
        ]),
    ),
    field(3, "imagePullSecrets", Content::Messages(&[text(1, "name")])),
    field(4, "automountServiceAccountToken", Content::Flag),
];

/// Converts a new object from protobuf to JSON. `None` if the kind is not accepted as protobuf.
pub fn read(kind: &Kind, sent: &[u8]) -> Option<Result<Value, Status>> {
    let fields = match (kind.group, kind.kind) {
        ("", "Namespace") => NAMESPACE,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Secret") => SECRET,
        ("", "ServiceAccount") => SERVICE_ACCOUNT,
        _ => return None,
    };
    let object = || {
        let mut object = protobuf::read(sent, fields)?;
        object.as_object_mut()?.extend(protobuf::read_type(sent)?.as_object()?.clone());
        Some(object)
    };
    Some(object().ok_or_else(|| Status::bad_request("the request body is not a valid protobuf message")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(plural: &str) -> &'static Kind {
        Kind::of_path("", "v1", plural).expect("it is served")
    }

    #[test]
    fn a_secret_is_decoded() {
        let mut sent = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x29".to_vec();
        sent.extend(b"\x0a\x0f\x0a\x01s\x12\0\x5a\x06\x0a\x01a\x12\x01b\x42\0");
        sent.extend(b"\x12\x08\x0a\x01k\x12\x03\xff\x00\x41\x12\x03\x0a\x01e\x1a\x06Opaque\x28\x01");
        let length = u8::try_from(sent.len() - 20).expect("it is short");
        sent[19] = length;
        let read = read(kind("secrets"), &sent).expect("it is understood").expect("it is well-formed");
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "generateName": "", "labels": {"a": "b"}},
            "data": {"k": "/wBB", "e": ""},
            "type": "Opaque",
            "immutable": true,
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn malformed_protobuf_is_rejected() {
        let read = read(kind("namespaces"), b"k8s\0\x0a\x7f").expect("it is understood");
        assert_eq!(read.expect_err("it is rejected").http_code(), 400);
    }

    #[test]
    fn other_kinds_are_not_accepted_as_protobuf() {
        assert!(read(kind("pods"), b"").is_none());
    }
}
