//! What the fake kubelet says of a pod that runs.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// Where a pod runs, as its status says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The node's address, if it has one.
    pub host: Option<String>,
    /// The pod's own address.
    pub pod: Option<Ipv4Addr>,
}

/// The change to the status of a pod that has come to run: everything in it is ready.
pub fn running(pod: &Value, place: &Place, now: &str) -> Value {
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
    if let Some(host) = &place.host {
        status["hostIP"] = host.as_str().into();
        status["hostIPs"] = json!([{"ip": host}]);
    }
    let shares_host = pod["spec"]["hostNetwork"] == true;
    let own = place.pod.map(|address| address.to_string()).filter(|_| !shares_host);
    if let Some(address) = own.or(place.host.clone()) {
        status["podIP"] = address.as_str().into();
        status["podIPs"] = json!([{"ip": address}]);
    }
    json!({"status": status})
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// Whether an init container goes on running beside the others.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// All conditions of a pod that runs. One that held before keeps the moment since when.
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
    // A pod that was made with its node has had no scheduler to say so.
    let all = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    all.into_iter().map(condition).collect()
}

/// A container that runs, or one that has done its work.
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

    fn place() -> Place {
        Place { host: Some("172.16.0.1".into()), pod: Some(Ipv4Addr::new(10, 128, 0, 2)) }
    }

    #[test]
    fn every_container_runs_and_those_that_come_first_are_done() {
        let status = running(&pod(), &place(), NOW)["status"].clone();
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
    fn every_condition_holds_and_one_that_held_before_has_held_since_then() {
        let conditions = running(&pod(), &place(), NOW)["status"]["conditions"].clone();
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
    fn a_pod_has_an_address_of_its_own_unless_it_shares_its_hosts() {
        let addresses = |pod: &Value, place: &Place| {
            let status = running(pod, place, NOW)["status"].clone();
            [status["hostIP"].clone(), status["podIP"].clone(), status["podIPs"][0]["ip"].clone()]
        };
        assert_eq!(addresses(&pod(), &place()), ["172.16.0.1", "10.128.0.2", "10.128.0.2"]);
        let mut sharing = pod();
        sharing["spec"]["hostNetwork"] = true.into();
        assert_eq!(addresses(&sharing, &place()), ["172.16.0.1", "172.16.0.1", "172.16.0.1"]);
        assert_eq!(addresses(&pod(), &Place::default()), [Value::Null, Value::Null, Value::Null]);
    }
}
