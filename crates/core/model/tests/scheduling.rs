//! Decoding of the scheduling fields of a pod.

use bindery_model::{Name, Pod, ResourceRequests, Taint, TaintEffect};
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    let pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "a"}}, "spec": spec});
    let pod = Pod::from_json(pod.to_string().as_bytes()).expect("a pod");
    assert_eq!(pod.field_error, None);
    pod
}

fn requesting(cpu: &str, memory: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

fn requests(spec: Value) -> (i128, i128) {
    let ResourceRequests { cpu_millis, memory_bytes, .. } = pod(spec).scheduling.requests;
    (cpu_millis, memory_bytes)
}

#[test]
fn containers_are_summed_and_init_containers_count_if_larger() {
    assert_eq!(requests(json!({"containers": [requesting("100m", "1Ki"), requesting("1", "2Ki"), {}]})), (1100, 3072));
    let init = requesting("2", "1Ki");
    assert_eq!(requests(json!({"containers": [requesting("1", "2Ki")], "initContainers": [init]})), (2000, 2048));
    let mut sidecar = requesting("500m", "1Ki");
    sidecar["restartPolicy"] = "Always".into();
    let containers = json!([requesting("1", "2Ki")]);
    assert_eq!(
        requests(json!({"containers": containers, "initContainers": [sidecar]})),
        (1500, 3072),
        "a sidecar runs with the containers"
    );
    let first = json!([sidecar, requesting("2", "1Ki")]);
    assert_eq!(
        requests(json!({"containers": containers, "initContainers": first})),
        (2500, 3072),
        "and with later init containers"
    );
    let pod_level = json!({"requests": {"cpu": "3"}});
    let overhead = json!({"cpu": "100m", "memory": "1Ki"});
    let spec = json!({"containers": containers, "resources": pod_level, "overhead": overhead});
    assert_eq!(requests(spec), (3100, 3072), "pod-level requests take precedence, and the overhead is added");
    assert_eq!(requests(json!({})), (0, 0));
    let nonzero = ResourceRequests { cpu_millis: 100, memory_bytes: 200 * 1024 * 1024, ..ResourceRequests::default() };
    assert_eq!(ResourceRequests::default().nonzero(), nonzero);
}

#[test]
fn other_resources_are_summed_likewise() {
    let requesting =
        |gpu: u8, disk: &str| json!({"resources": {"requests": {"example.com/gpu": gpu, "ephemeral-storage": disk}}});
    let spec = json!({
        "containers": [requesting(1, "1Ki"), requesting(1, "2Ki"), {}],
        "initContainers": [{"resources": {"requests": {"ephemeral-storage": "4Ki", "hugepages-2Mi": null}}}],
        "overhead": {"ephemeral-storage": "1Ki"},
    });
    let others = pod(spec).scheduling.requests.others;
    let found: Vec<_> = others.iter().map(|(what, amount)| (what.as_str(), amount)).collect();
    assert_eq!(found, [("ephemeral-storage", 5120), ("example.com/gpu", 2)]);
    assert_eq!((others.of("example.com/gpu"), others.of("other")), (2, 0));
    let malformed = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"resources": {"requests": {"x/y": "many"}}}]}});
    let error = Pod::from_json(malformed.to_string().as_bytes()).expect("a pod").field_error.map(|error| error.field);
    assert_eq!(error.as_deref(), Some("spec.containers.resources.requests.x/y"));
}

#[test]
fn only_required_topology_spread_constraints_are_decoded() {
    let spread = json!([
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app", "none"],
         "labelSelector": {"matchLabels": {"x": "y"}}, "nodeTaintsPolicy": "Honor"},
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3, "nodeAffinityPolicy": "Ignore"},
    ]);
    let pod = pod(json!({"topologySpreadConstraints": spread}));
    let [zone, host] = &*pod.scheduling.topology_spread else {
        panic!("expected two constraints: {:?}", pod.scheduling.topology_spread)
    };
    assert_eq!((zone.topology_key.as_str(), zone.skew_max, zone.domains_min), ("zone", 2, 1));
    assert!(!zone.ignores_node_affinity && !zone.ignores_taints);
    let selects = |labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect();
        zone.pods.as_ref().is_some_and(|pods| pods.matches(&labels))
    };
    assert!(selects(&[("x", "y"), ("app", "a")]) && !selects(&[("x", "y"), ("app", "b")]));
    assert_eq!((host.topology_key.as_str(), host.domains_min, &host.pods), ("host", 3, &None));
    assert!(host.ignores_node_affinity && host.ignores_taints);
    assert!(!pod.scheduling.has_device_claims);
    assert!(self::pod(json!({"resourceClaims": [{"name": "gpu"}]})).scheduling.has_device_claims);
}

#[test]
fn tolerations_match_as_documented() {
    let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoSchedule };
    let cases = [
        (json!({"key": "k", "value": "v", "effect": "NoSchedule"}), true),
        (json!({"key": "k", "operator": "Equal", "value": "v"}), true),
        (json!({"key": "k", "value": "other"}), false),
        (json!({"key": "k", "operator": "Exists"}), true),
        (json!({"key": "other", "operator": "Exists"}), false),
        (json!({"operator": "Exists"}), true),
        (json!({"operator": "Exists", "effect": "NoExecute"}), false),
    ];
    for (toleration, expected) in cases {
        let pod = pod(json!({"tolerations": [toleration]}));
        assert_eq!(pod.scheduling.tolerations[0].tolerates(&taint), expected, "{toleration}");
    }
}

#[test]
fn other_scheduling_fields_are_decoded() {
    let term = json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone", "namespaces": ["x"]});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let preferred = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
    let pod = pod(json!({
        "schedulerName": "mine", "priority": 7, "schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"},
        "affinity": {
            "podAffinity": required, "podAntiAffinity": required,
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": preferred}]},
        },
        "containers": [{"ports": [{"containerPort": 1}, {"containerPort": 1, "hostPort": 80}]}],
    }));
    let scheduling = &pod.scheduling;
    assert_eq!((scheduling.scheduler.as_str(), scheduling.priority, scheduling.is_gated), ("mine", 7, true));
    assert_eq!(*scheduling.node_selector, [(Name::from("a"), Name::from("b"))]);
    assert_eq!((scheduling.affinity.len(), scheduling.anti_affinity.len()), (1, 1));
    let term = &scheduling.affinity[0];
    assert!(term.pods.as_ref().is_some_and(|pods| pods.matches(&scheduling.labels)));
    assert_eq!((&*term.namespaces, term.topology_key.as_str()), (&[Name::from("x")][..], "zone"));
    let ssd = [(Name::from("disk"), Name::from("ssd"))].into_iter().collect();
    assert!(
        scheduling.preferred_nodes.len() == 1
            && scheduling.preferred_nodes[0].0 == 5
            && scheduling.preferred_nodes[0].1.matches(&ssd, None)
    );
    assert_eq!(*scheduling.ports, [(Name::from("TCP"), Name::from("0.0.0.0"), 80)]);
    let plain = self::pod(json!({}));
    assert_eq!(plain.scheduling.scheduler, "default-scheduler");
    assert_eq!(plain.scheduling.unschedulable, None);
}

#[test]
fn scheduling_results_are_decoded_from_the_status() {
    let pod = json!({"metadata": {"name": "p", "uid": "u"}, "status": {
        "nominatedNodeName": "n", "conditions": [{"type": "PodScheduled", "status": "False", "message": "why"}]}});
    let pod = Pod::from_json(pod.to_string().as_bytes()).expect("a pod");
    assert_eq!((pod.scheduling.nominated_node.as_str(), pod.scheduling.unschedulable.as_deref()), ("n", Some("why")));
}
