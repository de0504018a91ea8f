//! The fuzzer's target `fields`, with a fixed number of generated inputs.

#[path = "../../../../fuzz/entries/fields.rs"]
mod entry;

use proptest::prelude::*;
use proptest::sample::select;

/// Fragments of objects and patches that reach deep into the code.
const FRAGMENTS: [&str; 44] = [
    r#"{"metadata":{"name":"a","labels":{"a":"b"},"finalizers":["a.b/c"]},"data":{"a":"1"}}"#,
    r#"{"spec":{"containers":[{"name":"a","env":[{"name":"b","value":"c"}]}],"tolerations":[]}}"#,
    r#"{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"csi":{"driver":"d"}}}"#,
    r#"[{"op":"copy","from":"/metadata","path":"/x"}]"#,
    r#"[{"op":"add","path":"/metadata/finalizers/-1","value":"é"}]"#,
    r#"[{"op":"move","from":"/data","path":"/metadata/labels"}]"#,
    r#"[{"op":"test","path":"/data/a","value":null}]"#,
    r#"{"metadata":{"$patch":"replace"},"$retainKeys":["a"]}"#,
    r#"{"metadata":{"$setElementOrder/finalizers":["x"],"$deleteFromPrimitiveList/finalizers":["é"]}}"#,
    r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:é":{"k:{}":{}}}}],"creationTimestamp":"2026-01-02T03:04:05é"}}"#,
    "\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u00e9",
    "\\ud800",
    "é",
    "\u{1f600}",
    "null",
    "-1",
    "1e400",
    "99999999999999999999",
    "\"1.5é\"",
    "\"1Ki\"",
    "\"-0.1e-9\"",
    "\"metadata\":",
    "\"spec\":",
    "\"status\":",
    "\"capacity\":{\"storage\":",
    "\"data\":",
    "\"binaryData\":{\"a\":\"=é\"}",
    "\"op\":\"copy\"",
    "\"from\":\"/metadata\"",
    "\"path\":\"/metadata/labels/~1é\"",
    "\"value\":",
    "\"$patch\":\"delete\"",
    "---\n",
    "&a *a",
    "<<: ",
];

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => select(&FRAGMENTS[..]).prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<[u8; 2]>().prop_map(|bytes| bytes.to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_bytes_break_decoding_or_patching(parts in prop::collection::vec(fragment(), 0..12)) {
        entry::check(&parts.concat());
    }

    #[test]
    fn no_bytes_break_patching_a_valid_object(object in 0..3_usize, parts in prop::collection::vec(fragment(), 0..8)) {
        entry::check(&[FRAGMENTS[object].as_bytes(), b"\n", &parts.concat()].concat());
    }

    #[test]
    fn no_changed_byte_breaks_a_valid_patch(object in 0..3_usize, patch in 3..10_usize, at in 0..200_usize, byte in any::<u8>()) {
        let mut patch = FRAGMENTS[patch].as_bytes().to_vec();
        let at = at % patch.len();
        patch[at] = byte;
        entry::check(&[FRAGMENTS[object].as_bytes(), b"\n", &patch].concat());
    }
}
