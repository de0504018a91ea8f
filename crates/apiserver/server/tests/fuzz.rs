//! The fuzzer's target `requests`, with a fixed number of generated inputs.

#[path = "../../../../fuzz/entries/requests.rs"]
mod entry;

use proptest::prelude::*;
use proptest::sample::select;

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];
const PATHS: [&str; 24] = [
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/finalize",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/status",
    "/api/v1/namespaces/default/pods/a/binding",
    "/api/v1/namespaces/default/persistentvolumeclaims/a",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumes/a",
    "/api/v1/watch/nodes",
    "/api/v1/nodes/%C3%A9",
    "/api/v1/nodes/a%2fb",
    "/api/v1/%",
    "/apis/storage.k8s.io/v1/storageclasses/%00",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/openapi/v3/é",
    "/metrics",
    "/snapshot",
    "/apis",
];
const QUERIES: [&str; 20] = [
    "",
    "labelSelector=%C3%A9",
    "labelSelector=a+in+(%C3%A9,",
    "labelSelector=!%F0%9F%98%80",
    "labelSelector=a%3E99999999999999999999",
    "fieldSelector=%C3%A9!%3D%5C",
    "fieldSelector=metadata.name%3D%C3%A9%5C,",
    "fieldSelector=spec.nodeName%3D%2C",
    "continue=%C3%A9",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL8OpXHUwMDAwIn0&limit=1",
    "limit=-1&resourceVersion=18446744073709551615",
    "limit=1&resourceVersion=1&resourceVersionMatch=Exact",
    "watch=1&timeoutSeconds=-9223372036854775808",
    "watch=1&resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "gracePeriodSeconds=9223372036854775807",
    "fieldManager=%C3%A9&force=true",
    "fieldValidation=Strict&dryRun=All",
    "pretty=%C3%A9",
    "includeObject=Object",
    "%=%&&=",
];
const HEADERS: [&str; 14] = [
    "content-type: application/json",
    "content-type: application/yaml",
    "content-type: application/json-patch+json",
    "content-type: application/merge-patch+json",
    "content-type: application/strategic-merge-patch+json",
    "content-type: application/apply-patch+yaml",
    "content-type: application/vnd.kubernetes.protobuf",
    "content-type: \u{fc}",
    "accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    "accept: application/yaml;q=é",
    "accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "accept: ;;,=;q=",
    "impersonate-group: é",
    "user-agent: \u{7f}é/",
];
const BODIES: [&str; 18] = [
    "",
    "{}",
    r#"{"metadata":{"name":"a"}}"#,
    r#"{"metadata":{"generateName":"éé-"}}"#,
    r#"{"metadata":{"name":"a"},"data":{"é":"1"}}"#,
    r#"{"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"x"}]}}"#,
    r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}],"volumes":[{"name":"é"}]}}"#,
    r#"{"metadata":{"name":"a"},"spec":{"capacity":{"storage":"é"},"accessModes":[]}}"#,
    r#"{"metadata":{"name":"a"},"target":{"kind":"Node","name":"é"}}"#,
    r#"[{"op":"copy","from":"/metadata","path":"/metadata/labels"}]"#,
    r#"[{"op":"replace","path":"/metadata/managedFields","value":[{"fieldsType":"FieldsV1","fieldsV1":{"f:é":1}}]}]"#,
    r#"{"metadata":{"managedFields":[{"manager":"é","operation":"Apply","fieldsV1":{"é":{}}}]}}"#,
    r#"{"propagationPolicy":"Foreground","gracePeriodSeconds":-9223372036854775808,"preconditions":{"uid":"é"}}"#,
    r#"{"spec":{"token":"é","resourceAttributes":{"verb":"é"}}}"#,
    "metadata: {name: a, annotations: {a: *b}}",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: é}",
    "k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12\x05",
    "k8s\0\x7f\u{ff}",
];

fn request() -> impl Strategy<Value = Vec<u8>> {
    let headers = prop::collection::vec(select(&HEADERS[..]), 0..3);
    let parts = (select(&METHODS[..]), select(&PATHS[..]), select(&QUERIES[..]), headers, select(&BODIES[..]));
    parts.prop_map(|(method, path, query, headers, body)| {
        let headers: String = headers.iter().map(|header| format!("\n{header}")).collect();
        format!("{method} {path}?{query}{headers}\n\n{body}").into_bytes()
    })
}

/// Requests, of which one byte may be changed.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let changed = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    (prop::collection::vec(request(), 1..6), changed).prop_map(|(requests, changed)| {
        let mut bytes = requests.join(&0x1e);
        if let Some((at, byte)) = changed {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_request_makes_the_server_panic(bytes in requests()) {
        entry::check(&bytes);
    }
}
