//! What is special about kinds, through the API. Wordings and outcomes were read off a kube-apiserver 1.36.4.

use super::*;

#[test]
fn a_volume_is_filled_in_and_protected() {
    let mut world = World::new();
    let mut body = volume("v");
    body["status"] = json!({"phase": "Bound"});
    let made = world.make("persistentvolumes", body);
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
    assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(made["spec"]["volumeMode"], "Filesystem");
    assert_eq!(made["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"}));
}

#[test]
fn a_volume_knows_since_when_it_is_in_its_phase() {
    let mut world = World::new();
    world.make("persistentvolumes", volume("v"));
    world.wait(10);
    let (_, bound) = world.merge("persistentvolumes/v/status", json!({"status": {"phase": "Bound"}}));
    assert_eq!(bound["status"]["lastPhaseTransitionTime"], "2026-01-02T03:04:15Z");
    world.wait(10);
    let (_, noted) = world.merge("persistentvolumes/v/status", json!({"status": {"message": "m"}}));
    assert_eq!(noted["status"]["lastPhaseTransitionTime"], "2026-01-02T03:04:15Z");
}

#[test]
fn a_volume_without_anything_is_refused_for_all_of_it() {
    let mut world = World::new();
    let outcome = world.create("persistentvolumes", json!({"metadata": {"name": "v"}, "spec": {}}));
    let why = "PersistentVolume \"v\" is invalid: [spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: \
               Unsupported value: null: supported values: \"storage\", spec: Required value: must specify a volume type]";
    assert_eq!(refused(&outcome), (422, "Invalid", why));
}

#[test]
fn a_volume_keeps_its_source_and_may_change_the_rest() {
    let mut world = World::new();
    world.make("persistentvolumes", volume("v"));
    let (code, status) = world.merge("persistentvolumes/v", json!({"spec": {"hostPath": {"path": "/y"}}}));
    assert_eq!(code, 422);
    assert!(
        text(&status, &["message"]).contains("spec.persistentvolumesource is immutable after creation\n@@ "),
        "{status}"
    );
    let claim = json!({"spec": {"claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "s", "capacity": {"storage": "5Gi"}}});
    assert_eq!(world.merge("persistentvolumes/v", claim).0, 200);
}

#[test]
fn a_claim_gets_the_newest_default_class_unless_it_says_otherwise() {
    let mut world = World::new();
    let class = |name: &str| json!({"metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"});
    assert_eq!(world.make("persistentvolumeclaims/default", claim("before"))["spec"].get("storageClassName"), None);
    world.make("storageclasses.storage.k8s.io", class("b"));
    world.make("storageclasses.storage.k8s.io", class("c"));
    assert_eq!(world.make("persistentvolumeclaims/default", claim("one"))["spec"]["storageClassName"], "b");
    world.wait(1);
    world.make("storageclasses.storage.k8s.io", class("z"));
    assert_eq!(world.make("persistentvolumeclaims/default", claim("two"))["spec"]["storageClassName"], "z");
    let mut none = claim("three");
    none["spec"]["storageClassName"] = "".into();
    assert_eq!(world.make("persistentvolumeclaims/default", none)["spec"]["storageClassName"], "");
}

#[test]
fn a_claim_is_bound_once_and_grows_only_if_bound_and_allowed() {
    let mut world = World::new();
    world.make(
        "storageclasses.storage.k8s.io",
        json!({"metadata": {"name": "s"}, "provisioner": "p", "allowVolumeExpansion": true}),
    );
    let mut body = claim("c");
    body["spec"]["storageClassName"] = "s".into();
    world.make("persistentvolumeclaims/default", body);
    let path = "persistentvolumeclaims/default/c";
    assert_eq!(world.merge(path, json!({"spec": {"volumeName": "v"}})).0, 200);
    assert_eq!(world.merge(path, json!({"spec": {"volumeName": "w"}})).0, 422);
    let grow = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    assert_eq!(world.merge(path, grow("2Gi")).0, 422, "not bound");
    world.merge(
        "persistentvolumeclaims/default/c/status",
        json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
    );
    assert_eq!(world.merge(path, grow("4Gi")).0, 200);
    assert_eq!(world.merge(path, grow("2Gi")).0, 200, "back, but not below what it has");
    let outcome = world.merge(path, grow("1Gi"));
    let why = "PersistentVolumeClaim \"c\" is invalid: spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    assert_eq!(refused(&outcome), (422, "Invalid", why));
    world.merge("storageclasses.storage.k8s.io/s", json!({"allowVolumeExpansion": false}));
    let outcome = world.merge(path, grow("3Gi"));
    let why = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that \
               provisions the pvc must support resize";
    assert_eq!(refused(&outcome), (403, "Forbidden", why));
}

#[test]
fn a_claims_two_sources_are_one() {
    let mut world = World::new();
    let mut body = claim("c");
    body["spec"]["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": "x"});
    let made = world.make("persistentvolumeclaims/default", body);
    assert_eq!(made["spec"]["dataSourceRef"], json!({"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "x"}));
    let mut body = claim("d");
    body["spec"]["dataSource"] = json!({"apiGroup": "g.h", "kind": "Odd", "name": "x"});
    assert_eq!(world.make("persistentvolumeclaims/default", body)["spec"].get("dataSource"), None);
}

#[test]
fn classes_do_not_change_what_volumes_were_made_by() {
    let mut world = World::new();
    let made = world.make("storageclasses.storage.k8s.io", json!({"metadata": {"name": "s"}, "provisioner": "p"}));
    assert_eq!((&made["reclaimPolicy"], &made["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
    let outcome = world.create(
        "storageclasses.storage.k8s.io",
        json!({"metadata": {"name": "t"}, "provisioner": "p", "volumeBindingMode": ""}),
    );
    let why = "StorageClass.storage.k8s.io \"t\" is invalid: volumeBindingMode: Unsupported value: \"\": supported values: \"Immediate\", \
               \"WaitForFirstConsumer\"";
    assert_eq!(refused(&outcome), (422, "Invalid", why), "an empty mode is not the same as none");
    let outcome = world.merge("storageclasses.storage.k8s.io/s", json!({"provisioner": "q"}));
    let why = "StorageClass.storage.k8s.io \"s\" is invalid: provisioner: Invalid value: \"q\": field is immutable";
    assert_eq!(refused(&outcome), (422, "Invalid", why));
    let attributes = json!({"metadata": {"name": "a"}, "driverName": "d", "parameters": {"k": "v"}});
    world.make("volumeattributesclasses.storage.k8s.io", attributes);
    let outcome = world.merge("volumeattributesclasses.storage.k8s.io/a", json!({"parameters": {"k": "w"}}));
    assert!(refused(&outcome).2.ends_with("parameters: Forbidden: updates to parameters are forbidden."));
}

#[test]
fn secrets_take_plain_text_and_may_be_sealed() {
    let mut world = World::new();
    let made =
        world.make("secrets/default", json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}, "immutable": true}));
    assert_eq!((&made["data"], made.get("stringData"), &made["type"]), (&json!({"a": "Yg=="}), None, &json!("Opaque")));
    let outcome = world.merge("secrets/default/s", json!({"stringData": {"a": "c"}}));
    assert_eq!(
        refused(&outcome).2,
        "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
    );
}

#[test]
fn a_pod_is_filled_in_and_bound_once() {
    let mut world = World::new();
    let made = world.make("pods/default", pod("p"));
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(made["spec"]["tolerations"].as_array().map(Vec::len), Some(2));
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    let binding = |node: &str| json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    assert_eq!(world.create("pods/default/p/binding", binding("n")).0, 201);
    let (_, bound) = world.get("pods/default/p");
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let outcome = world.create("pods/default/p/binding", binding("m"));
    let why = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"";
    assert_eq!(refused(&outcome), (409, "Conflict", why));
    assert_eq!(world.names("pods?fieldSelector=spec.nodeName=n"), ["p"]);
}

#[test]
fn both_groups_show_the_same_events() {
    let mut world = World::new();
    let body = json!({"metadata": {"name": "e"}, "regarding": {"namespace": "default", "kind": "Pod", "name": "x"},
        "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "A",
        "reason": "R", "note": "m", "type": "Normal"});
    world.make("events.events.k8s.io/default", body);
    let (_, core) = world.get("events/default/e");
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"], &core["reportingComponent"]),
        (&json!("m"), &json!("x"), &json!("a.b/c"))
    );
    assert_eq!(world.names("events/default?fieldSelector=involvedObject.name=x,reason=R"), ["e"]);
    let outcome = world.merge("events.events.k8s.io/default/e", json!({"note": "z"}));
    assert_eq!(refused(&outcome).2, "Event \"e\" is invalid: message: Invalid value: \"z\": field is immutable");
}

#[test]
fn every_kind_that_can_be_made_has_a_schema_and_each_as_many_cells_as_columns() {
    for kind in crate::kinds::all() {
        let is_made = kind.verbs.contains(&"create");
        let schema = bindery_fields::Schema::of(kind.group, kind.version, kind.kind);
        assert_eq!(schema.is_some(), is_made, "{}", kind.kind);
        let sight = crate::kinds::Sight { now: Timestamp::UNIX_EPOCH, default_class: None };
        assert_eq!(
            (kind.cells)(&json!({"metadata": {"name": "x"}}), &sight).len(),
            kind.columns.len(),
            "{}",
            kind.kind
        );
    }
}
