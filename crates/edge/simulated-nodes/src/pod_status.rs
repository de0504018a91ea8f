//! The status of a running pod.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// The addresses in a pod's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodAddresses {
    /// The node's address.
    pub host: Option<String>,
    /// The pod's address.
    pub pod: Option<Ipv4Addr>,
}

/// The patch that reports a pod Running and Ready.
pub fn running(pod: &Value, addresses: &PodAddresses, now: &str) -> Value {
    let generation = &pod["metadata"]["generation"];
    let mut status = json!({
        "phase": "Running",
        "observedGeneration": generation,
        "startTime": pod["status"]["startTime"].as_str().unwrap_or(now),
        "conditions": conditions(pod, now),
        "containerStatuses": containers(pod, "containers").map(|one| container(pod, one, true, now)).collect::<Vec<_>>(),
    });
    let first: Vec<Value> =
        containers(pod, "initContainers").map(|one| container(pod, one, is_sidecar(one), now)).collect();
    if !first.is_empty() {
        status["initContainerStatuses"] = first.into();
    }
    if let Some(host) = &addresses.host {
        status["hostIP"] = host.as_str().into();
        status["hostIPs"] = json!([{"ip": host}]);
    }
    let shares_host = pod["spec"]["hostNetwork"] == true;
    let own = addresses.pod.map(|address| address.to_string()).filter(|_| !shares_host);
    if let Some(address) = own.or(addresses.host.clone()) {
        status["podIP"] = address.as_str().into();
        status["podIPs"] = json!([{"ip": address}]);
    }
    json!({"status": status})
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// Whether an init container is a sidecar, which keeps running.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// All conditions of a running pod. One that was True before keeps its transition time.
fn conditions(pod: &Value, now: &str) -> Value {
    let before = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = |kind: &str| {
        let same = before.iter().find(|one| one["type"] == kind && one["status"] == "True");
        let since = same.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({
            "type": kind, "status": "True", "reason": null, "message": null, "lastProbeTime": null,
            "lastTransitionTime": since, "observedGeneration": pod["metadata"]["generation"],
        })
    };
    // A pod created with a nodeName has no PodScheduled condition from a scheduler.
    let all = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    all.into_iter().map(condition).collect()
}

/// The status of a running or completed container.
fn container(pod: &Value, container: &Value, is_running: bool, now: &str) -> Value {
    let name = container["name"].as_str().unwrap_or_default();
    let id = format!("fake://{}-{name}", pod["metadata"]["uid"].as_str().unwrap_or_default());
    let done = json!({"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "containerID": id});
    json!({
        "name": name,
        "image": container["image"],
        "imageID": "",
        "containerID": id,
        "ready": true,
        "started": is_running,
        "restartCount": 0,
        "lastState": {},
        "state": if is_running { json!({"running": {"startedAt": now}}) } else { json!({"terminated": done}) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn pod() -> Value {
        json!({
            "metadata": {"name": "app", "uid": "u-1", "generation": 2},
            "spec": {
                "initContainers": [
                    {"name": "prepare", "image": "i"},
                    {"name": "proxy", "image": "p", "restartPolicy": "Always"},
                ],
                "containers": [{"name": "main", "image": "m"}, {"name": "side", "image": "s"}],
            },
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "2025-12-31T00:00:00Z"},
            ]},
        })
    }

    fn addresses() -> PodAddresses {
        PodAddresses { host: Some("172.16.0.1".into()), pod: Some(Ipv4Addr::new(10, 128, 0, 2)) }
    }

    #[test]
    fn containers_run_and_init_containers_are_completed() {
        let status = running(&pod(), &addresses(), NOW)["status"].clone();
        assert_eq!((&status["phase"], &status["startTime"]), (&json!("Running"), &json!(NOW)));
        let states = |list: &str| -> Vec<(String, bool, String)> {
            let states = status[list].as_array().into_iter().flatten();
            let state = |one: &Value| one["state"].as_object().and_then(|state| state.keys().next().cloned());
            let text = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
            states.map(|one| (text(one), one["ready"] == true, state(one).unwrap_or_default())).collect()
        };
        let expected = |name: &str, state: &str| (name.to_owned(), true, state.to_owned());
        assert_eq!(states("containerStatuses"), [expected("main", "running"), expected("side", "running")]);
        assert_eq!(states("initContainerStatuses"), [expected("prepare", "terminated"), expected("proxy", "running")]);
    }

    #[test]
    fn all_conditions_are_true_and_keep_their_transition_times() {
        let conditions = running(&pod(), &addresses(), NOW)["status"]["conditions"].clone();
        let conditions = conditions.as_array().expect("conditions");
        assert!(conditions.iter().all(|one| one["status"] == "True"), "{conditions:?}");
        let since =
            |kind: &str| conditions.iter().find(|one| one["type"] == kind).map(|one| one["lastTransitionTime"].clone());
        assert_eq!(since("PodScheduled"), Some(json!("2025-12-31T00:00:00Z")));
        for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
            assert_eq!(since(kind), Some(json!(NOW)), "{kind}");
        }
    }

    #[test]
    fn pod_has_its_own_address_unless_it_uses_the_host_network() {
        let reported = |pod: &Value, addresses: &PodAddresses| {
            let status = running(pod, addresses, NOW)["status"].clone();
            [status["hostIP"].clone(), status["podIP"].clone(), status["podIPs"][0]["ip"].clone()]
        };
        assert_eq!(reported(&pod(), &addresses()), ["172.16.0.1", "10.128.0.2", "10.128.0.2"]);
        let mut sharing = pod();
        sharing["spec"]["hostNetwork"] = true.into();
        assert_eq!(reported(&sharing, &addresses()), ["172.16.0.1", "172.16.0.1", "172.16.0.1"]);
        assert_eq!(reported(&pod(), &PodAddresses::default()), [Value::Null, Value::Null, Value::Null]);
    }
}
