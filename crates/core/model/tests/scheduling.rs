//! What decides where a pod runs, read from the pod.

use bindery_model::{Name, Needs, Pod, Taint, TaintEffect};
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    let pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "a"}}, "spec": spec});
    let pod = Pod::from_json(pod.to_string().as_bytes()).expect("a pod");
    assert_eq!(pod.flaw, None);
    pod
}

fn asking(cpu: &str, memory: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

fn needs(spec: Value) -> (i128, i128) {
    let Needs { cpu_millis, memory_bytes, .. } = pod(spec).scheduling.needs;
    (cpu_millis, memory_bytes)
}

#[test]
fn containers_are_added_up_and_those_before_them_count_if_they_need_more() {
    assert_eq!(needs(json!({"containers": [asking("100m", "1Ki"), asking("1", "2Ki"), {}]})), (1100, 3072));
    let before = asking("2", "1Ki");
    assert_eq!(needs(json!({"containers": [asking("1", "2Ki")], "initContainers": [before]})), (2000, 2048));
    let mut beside = asking("500m", "1Ki");
    beside["restartPolicy"] = "Always".into();
    let containers = json!([asking("1", "2Ki")]);
    assert_eq!(
        needs(json!({"containers": containers, "initContainers": [beside]})),
        (1500, 3072),
        "it goes on running"
    );
    let first = json!([beside, asking("2", "1Ki")]);
    assert_eq!(
        needs(json!({"containers": containers, "initContainers": first})),
        (2500, 3072),
        "and runs beside the next"
    );
    let whole = json!({"requests": {"cpu": "3"}});
    let overhead = json!({"cpu": "100m", "memory": "1Ki"});
    let spec = json!({"containers": containers, "resources": whole, "overhead": overhead});
    assert_eq!(needs(spec), (3100, 3072), "what is said of the whole pod counts, and what it takes to run it");
    assert_eq!(needs(json!({})), (0, 0));
    let usual = Needs { cpu_millis: 100, memory_bytes: 200 * 1024 * 1024, ..Needs::default() };
    assert_eq!(Needs::default().usual(), usual);
}

#[test]
fn whatever_else_is_asked_for_is_added_up_likewise() {
    let asking =
        |gpu: u8, disk: &str| json!({"resources": {"requests": {"example.com/gpu": gpu, "ephemeral-storage": disk}}});
    let spec = json!({
        "containers": [asking(1, "1Ki"), asking(1, "2Ki"), {}],
        "initContainers": [{"resources": {"requests": {"ephemeral-storage": "4Ki", "hugepages-2Mi": null}}}],
        "overhead": {"ephemeral-storage": "1Ki"},
    });
    let others = pod(spec).scheduling.needs.others;
    let found: Vec<_> = others.iter().map(|(what, amount)| (what.as_str(), amount)).collect();
    assert_eq!(found, [("ephemeral-storage", 5120), ("example.com/gpu", 2)]);
    assert_eq!((others.of("example.com/gpu"), others.of("other")), (2, 0));
    let flawed = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"resources": {"requests": {"x/y": "many"}}}]}});
    let flaw = Pod::from_json(flawed.to_string().as_bytes()).expect("a pod").flaw.map(|flaw| flaw.field);
    assert_eq!(flaw.as_deref(), Some("spec.containers.resources.requests.x/y"));
}

#[test]
fn demands_of_being_spread_are_read_and_wishes_are_not() {
    let spread = json!([
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app", "none"],
         "labelSelector": {"matchLabels": {"x": "y"}}, "nodeTaintsPolicy": "Honor"},
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3, "nodeAffinityPolicy": "Ignore"},
    ]);
    let pod = pod(json!({"topologySpreadConstraints": spread}));
    let [zone, host] = &*pod.scheduling.spread else { panic!("two demands, not {:?}", pod.scheduling.spread) };
    assert_eq!((zone.topology_key.as_str(), zone.skew_max, zone.places_min), ("zone", 2, 1));
    assert!(!zone.is_over_unwanted && !zone.is_over_tainted);
    let selects = |labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect();
        zone.pods.as_ref().is_some_and(|pods| pods.matches(&labels))
    };
    assert!(selects(&[("x", "y"), ("app", "a")]) && !selects(&[("x", "y"), ("app", "b")]));
    assert_eq!((host.topology_key.as_str(), host.places_min, &host.pods), ("host", 3, &None));
    assert!(host.is_over_unwanted && host.is_over_tainted);
    assert!(!pod.scheduling.has_device_claims);
    assert!(self::pod(json!({"resourceClaims": [{"name": "gpu"}]})).scheduling.has_device_claims);
}

#[test]
fn tolerations_mean_what_they_say() {
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
fn the_rest_is_read_as_far_as_it_is_known() {
    let term = json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone", "namespaces": ["x"]});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let liked = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
    let pod = pod(json!({
        "schedulerName": "mine", "priority": 7, "schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"},
        "affinity": {
            "podAffinity": required, "podAntiAffinity": required,
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": liked}]},
        },
        "containers": [{"ports": [{"containerPort": 1}, {"containerPort": 1, "hostPort": 80}]}],
    }));
    let scheduling = &pod.scheduling;
    assert_eq!((scheduling.scheduler.as_str(), scheduling.priority, scheduling.is_gated), ("mine", 7, true));
    assert_eq!(*scheduling.selector, [(Name::from("a"), Name::from("b"))]);
    assert_eq!((scheduling.near.len(), scheduling.apart.len()), (1, 1));
    let near = &scheduling.near[0];
    assert!(near.pods.as_ref().is_some_and(|pods| pods.matches(&scheduling.labels)));
    assert_eq!((&*near.namespaces, near.topology_key.as_str()), (&[Name::from("x")][..], "zone"));
    let ssd = [(Name::from("disk"), Name::from("ssd"))].into_iter().collect();
    assert!(scheduling.likes.len() == 1 && scheduling.likes[0].0 == 5 && scheduling.likes[0].1.matches(&ssd, None));
    assert_eq!(*scheduling.ports, [(Name::from("TCP"), Name::from("0.0.0.0"), 80)]);
    let plain = self::pod(json!({}));
    assert_eq!(plain.scheduling.scheduler, "default-scheduler");
    assert_eq!(plain.scheduling.unschedulable, None);
}

#[test]
fn what_a_scheduler_said_is_read_from_the_status() {
    let pod = json!({"metadata": {"name": "p", "uid": "u"}, "status": {
        "nominatedNodeName": "n", "conditions": [{"type": "PodScheduled", "status": "False", "message": "why"}]}});
    let pod = Pod::from_json(pod.to_string().as_bytes()).expect("a pod");
    assert_eq!((pod.scheduling.nominated.as_str(), pod.scheduling.unschedulable.as_deref()), ("n", Some("why")));
}
