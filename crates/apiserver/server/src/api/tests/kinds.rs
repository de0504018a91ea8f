//! What is special about kinds, through the API. Messages and results are those of a kube-apiserver
//! v1.36.4.

use super::*;

#[test]
fn a_new_volume_gets_defaults_and_a_protection_finalizer() {
    let mut server = TestServer::new();
    let mut body = volume("v");
    body["status"] = json!({"phase": "Bound"});
    let created = server.make("persistentvolumes", body);
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
    assert_eq!(created["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(created["spec"]["volumeMode"], "Filesystem");
    assert_eq!(created["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"}));
}

#[test]
fn a_volume_records_its_last_phase_transition() {
    let mut server = TestServer::new();
    server.make("persistentvolumes", volume("v"));
    server.wait(10);
    let (_, bound) = server.merge("persistentvolumes/v/status", json!({"status": {"phase": "Bound"}}));
    assert_eq!(bound["status"]["lastPhaseTransitionTime"], "2026-01-02T03:04:15Z");
    server.wait(10);
    let (_, noted) = server.merge("persistentvolumes/v/status", json!({"status": {"message": "m"}}));
    assert_eq!(noted["status"]["lastPhaseTransitionTime"], "2026-01-02T03:04:15Z");
}

#[test]
fn an_empty_volume_is_rejected_with_all_errors() {
    let mut server = TestServer::new();
    let outcome = server.create("persistentvolumes", json!({"metadata": {"name": "v"}, "spec": {}}));
    let why = "PersistentVolume \"v\" is invalid: [spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: \
               Unsupported value: null: supported values: \"storage\", spec: Required value: must specify a volume type]";
    assert_eq!(rejected(&outcome), (422, "Invalid", why));
}

#[test]
fn the_source_of_a_volume_is_immutable() {
    let mut server = TestServer::new();
    server.make("persistentvolumes", volume("v"));
    let (code, status) = server.merge("persistentvolumes/v", json!({"spec": {"hostPath": {"path": "/y"}}}));
    assert_eq!(code, 422);
    assert!(
        text(&status, &["message"]).contains("spec.persistentvolumesource is immutable after creation\n@@ "),
        "{status}"
    );
    let claim = json!({"spec": {"claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "s", "capacity": {"storage": "5Gi"}}});
    assert_eq!(server.merge("persistentvolumes/v", claim).0, 200);
}

#[test]
fn a_claim_without_class_gets_the_newest_default_class() {
    let mut server = TestServer::new();
    let class = |name: &str| json!({"metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"});
    assert_eq!(server.make("persistentvolumeclaims/default", claim("before"))["spec"].get("storageClassName"), None);
    server.make("storageclasses.storage.k8s.io", class("b"));
    server.make("storageclasses.storage.k8s.io", class("c"));
    assert_eq!(server.make("persistentvolumeclaims/default", claim("one"))["spec"]["storageClassName"], "b");
    server.wait(1);
    server.make("storageclasses.storage.k8s.io", class("z"));
    assert_eq!(server.make("persistentvolumeclaims/default", claim("two"))["spec"]["storageClassName"], "z");
    let mut none = claim("three");
    none["spec"]["storageClassName"] = "".into();
    assert_eq!(server.make("persistentvolumeclaims/default", none)["spec"]["storageClassName"], "");
}

#[test]
fn only_a_bound_claim_of_an_expandable_class_can_grow() {
    let mut server = TestServer::new();
    server.make(
        "storageclasses.storage.k8s.io",
        json!({"metadata": {"name": "s"}, "provisioner": "p", "allowVolumeExpansion": true}),
    );
    let mut body = claim("c");
    body["spec"]["storageClassName"] = "s".into();
    server.make("persistentvolumeclaims/default", body);
    let path = "persistentvolumeclaims/default/c";
    assert_eq!(server.merge(path, json!({"spec": {"volumeName": "v"}})).0, 200);
    assert_eq!(server.merge(path, json!({"spec": {"volumeName": "w"}})).0, 422);
    let grow = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    assert_eq!(server.merge(path, grow("2Gi")).0, 422, "not bound");
    server.merge(
        "persistentvolumeclaims/default/c/status",
        json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
    );
    assert_eq!(server.merge(path, grow("4Gi")).0, 200);
    assert_eq!(server.merge(path, grow("2Gi")).0, 200, "it can shrink, but not below its capacity");
    let outcome = server.merge(path, grow("1Gi"));
    let why = "PersistentVolumeClaim \"c\" is invalid: spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    assert_eq!(rejected(&outcome), (422, "Invalid", why));
    server.merge("storageclasses.storage.k8s.io/s", json!({"allowVolumeExpansion": false}));
    let outcome = server.merge(path, grow("3Gi"));
    let why = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that \
               provisions the pvc must support resize";
    assert_eq!(rejected(&outcome), (403, "Forbidden", why));
}

#[test]
fn data_source_and_data_source_ref_are_kept_in_sync() {
    let mut server = TestServer::new();
    let mut body = claim("c");
    body["spec"]["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": "x"});
    let created = server.make("persistentvolumeclaims/default", body);
    assert_eq!(
        created["spec"]["dataSourceRef"],
        json!({"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "x"})
    );
    let mut body = claim("d");
    body["spec"]["dataSource"] = json!({"apiGroup": "g.h", "kind": "Odd", "name": "x"});
    assert_eq!(server.make("persistentvolumeclaims/default", body)["spec"].get("dataSource"), None);
}

#[test]
fn the_parameters_of_classes_are_immutable() {
    let mut server = TestServer::new();
    let created = server.make("storageclasses.storage.k8s.io", json!({"metadata": {"name": "s"}, "provisioner": "p"}));
    assert_eq!((&created["reclaimPolicy"], &created["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
    let outcome = server.create(
        "storageclasses.storage.k8s.io",
        json!({"metadata": {"name": "t"}, "provisioner": "p", "volumeBindingMode": ""}),
    );
    let why = "StorageClass.storage.k8s.io \"t\" is invalid: volumeBindingMode: Unsupported value: \"\": supported values: \"Immediate\", \
               \"WaitForFirstConsumer\"";
    assert_eq!(rejected(&outcome), (422, "Invalid", why), "an empty mode differs from a missing one");
    let outcome = server.merge("storageclasses.storage.k8s.io/s", json!({"provisioner": "q"}));
    let why = "StorageClass.storage.k8s.io \"s\" is invalid: provisioner: Invalid value: \"q\": field is immutable";
    assert_eq!(rejected(&outcome), (422, "Invalid", why));
    let attributes = json!({"metadata": {"name": "a"}, "driverName": "d", "parameters": {"k": "v"}});
    server.make("volumeattributesclasses.storage.k8s.io", attributes);
    let outcome = server.merge("volumeattributesclasses.storage.k8s.io/a", json!({"parameters": {"k": "w"}}));
    assert!(rejected(&outcome).2.ends_with("parameters: Forbidden: updates to parameters are forbidden."));
}

#[test]
fn secrets_accept_string_data_and_can_be_immutable() {
    let mut server = TestServer::new();
    let created =
        server.make("secrets/default", json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}, "immutable": true}));
    assert_eq!(
        (&created["data"], created.get("stringData"), &created["type"]),
        (&json!({"a": "Yg=="}), None, &json!("Opaque"))
    );
    let outcome = server.merge("secrets/default/s", json!({"stringData": {"a": "c"}}));
    assert_eq!(
        rejected(&outcome).2,
        "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
    );
}

#[test]
fn a_new_pod_gets_defaults_and_is_bound_once() {
    let mut server = TestServer::new();
    let created = server.make("pods/default", pod("p"));
    assert_eq!(created["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(created["spec"]["tolerations"].as_array().map(Vec::len), Some(2));
    assert_eq!(created["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    let binding = |node: &str| json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    assert_eq!(server.create("pods/default/p/binding", binding("n")).0, 201);
    let (_, bound) = server.get("pods/default/p");
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let outcome = server.create("pods/default/p/binding", binding("m"));
    let why = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"";
    assert_eq!(rejected(&outcome), (409, "Conflict", why));
    assert_eq!(server.names("pods?fieldSelector=spec.nodeName=n"), ["p"]);
}

#[test]
fn both_event_groups_serve_the_same_events() {
    let mut server = TestServer::new();
    let body = json!({"metadata": {"name": "e"}, "regarding": {"namespace": "default", "kind": "Pod", "name": "x"},
        "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "A",
        "reason": "R", "note": "m", "type": "Normal"});
    server.make("events.events.k8s.io/default", body);
    let (_, core) = server.get("events/default/e");
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"], &core["reportingComponent"]),
        (&json!("m"), &json!("x"), &json!("a.b/c"))
    );
    assert_eq!(server.names("events/default?fieldSelector=involvedObject.name=x,reason=R"), ["e"]);
    let outcome = server.merge("events.events.k8s.io/default/e", json!({"note": "z"}));
    assert_eq!(rejected(&outcome).2, "Event \"e\" is invalid: message: Invalid value: \"z\": field is immutable");
}

#[test]
fn every_kind_has_as_many_cells_as_columns_and_a_schema_if_it_can_be_created() {
    for kind in crate::kinds::all() {
        let is_made = kind.verbs.contains(&"create");
        let schema = bindery_fields::Schema::of(kind.group, kind.version, kind.kind);
        assert_eq!(schema.is_some(), is_made, "{}", kind.kind);
        let context = crate::kinds::PrintContext { now: Timestamp::UNIX_EPOCH, default_class: None };
        assert_eq!(
            (kind.cells)(&json!({"metadata": {"name": "x"}}), &context).len(),
            kind.columns.len(),
            "{}",
            kind.kind
        );
    }
}
