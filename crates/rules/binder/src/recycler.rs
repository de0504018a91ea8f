//! The recycler pod that scrubs a volume.

use bindery_model::{Source, Volume};
use bindery_rules_api::Recycle;
use serde_json::{Value, json};

use crate::RecyclerConfig;

const IMAGE: &str = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6";

/// Deletes everything below the mount point, and fails if anything is left.
const SCRIPT: &str = "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";

/// The pod for a volume, from the configured template or the built-in one.
pub(crate) fn pod(volume: &Volume, config: &RecyclerConfig) -> Value {
    let mut pod = config.pod_template.clone().unwrap_or_else(built_in);
    let seconds = deadline_seconds(volume, config);
    let source = match &volume.source {
        Source::HostPath(path) => json!({"hostPath": {"path": path.as_str()}}),
        Source::Nfs(export) => json!({"nfs": {"server": export.0.as_str(), "path": export.1.as_str()}}),
        Source::Csi(_) | Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => json!({}),
    };
    let name = pod["spec"]["volumes"][0]["name"].clone();
    let mut replaced = source;
    replaced["name"] = if name.is_string() { name } else { "vol".into() };
    if !pod["metadata"]["namespace"].is_string() {
        pod["metadata"]["namespace"] = "default".into();
    }
    pod["metadata"]["name"] = format!("recycler-for-{}", volume.name()).into();
    // The garbage collector deletes the pod if the volume is deleted first.
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "name": volume.name().as_str(),
        "uid": volume.meta.uid.as_str(),
    }]);
    pod["spec"]["activeDeadlineSeconds"] = seconds.into();
    hold_back(&mut pod["spec"]);
    if let Some(volumes) = pod["spec"]["volumes"].as_array_mut().filter(|volumes| !volumes.is_empty()) {
        volumes[0] = replaced;
    } else {
        pod["spec"]["volumes"] = json!([replaced]);
    }
    pod
}

/// Adds the scheduling gate. The API server rejects a gate together with a node, so a node that the
/// template names is required by node affinity instead.
fn hold_back(spec: &mut Value) {
    push(&mut spec["schedulingGates"], json!({"name": Recycle::GATE}));
    let Some(node) = spec["nodeName"].take().as_str().map(str::to_owned) else { return };
    let requirement = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms =
        &mut spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    if terms.as_array().is_none_or(Vec::is_empty) {
        *terms = json!([{}]);
    }
    for term in terms.as_array_mut().into_iter().flatten() {
        push(&mut term["matchFields"], requirement.clone());
    }
}

/// Adds an item to a list, which may be missing.
fn push(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().into_iter().for_each(|list| list.push(item.clone()));
}

/// The deadline grows with the capacity and has a minimum.
fn deadline_seconds(volume: &Volume, config: &RecyclerConfig) -> u64 {
    let gibs = u64::try_from(volume.size().whole_units(1 << 30)).unwrap_or(0);
    gibs.saturating_mul(config.timeout_per_gib_seconds).max(config.timeout_min_seconds).min(i64::MAX as u64)
}

fn built_in() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{"name": "vol"}],
            "containers": [{
                "name": "pv-recycler",
                "image": IMAGE,
                "command": ["/bin/sh"],
                "args": ["-c", SCRIPT],
                "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}],
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn volume(json: Value) -> Volume {
        Volume::from_json(json.to_string().as_bytes()).expect("a volume")
    }

    #[test]
    fn pod_mounts_the_volumes_source_with_the_plugins_deadline() {
        let config = Config::default();
        let nfs = volume(json!({
            "metadata": {"name": "a"},
            "spec": {"capacity": {"storage": "20Gi"}, "nfs": {"server": "192.0.2.1", "path": "/a"}},
        }));
        let scrub = pod(&nfs, &config.recycler_nfs);
        assert_eq!(scrub["metadata"]["name"], "recycler-for-a");
        assert_eq!(scrub["metadata"]["namespace"], "default");
        assert_eq!(scrub["spec"]["volumes"][0], json!({"name": "vol", "nfs": {"server": "192.0.2.1", "path": "/a"}}));
        assert_eq!(scrub["spec"]["activeDeadlineSeconds"], 600);

        let small = volume(json!({
            "metadata": {"name": "b"},
            "spec": {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/b"}},
        }));
        let scrub = pod(&small, &config.recycler_host_path);
        assert_eq!(scrub["spec"]["volumes"][0]["hostPath"]["path"], "/tmp/b");
        assert_eq!(scrub["spec"]["activeDeadlineSeconds"], 60);
    }

    #[test]
    fn pod_is_gated_and_gets_the_templates_node_by_affinity() {
        let required = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        let on_n1 = json!([{"key": "metadata.name", "operator": "In", "values": ["n1"]}]);
        let gate = |spec: Value| {
            let template = json!({"spec": spec});
            let config =
                RecyclerConfig { pod_template: Some(template), timeout_min_seconds: 1, timeout_per_gib_seconds: 1 };
            pod(&volume(json!({"metadata": {"name": "a", "uid": "u"}})), &config)
        };
        let scrub = gate(json!({"nodeName": "n1", "schedulingGates": [{"name": "mine"}]}));
        assert_eq!(scrub["spec"]["schedulingGates"], json!([{"name": "mine"}, {"name": Recycle::GATE}]));
        assert_eq!(scrub["spec"]["nodeName"], Value::Null);
        assert_eq!(scrub["spec"]["affinity"], required(json!([{"matchFields": on_n1}])));
        assert_eq!(scrub["metadata"]["ownerReferences"][0]["uid"], "u");

        let labels = json!([{"key": "disk", "operator": "Exists"}]);
        let scrub =
            gate(json!({"nodeName": "n1", "affinity": required(json!([{"matchExpressions": labels.clone()}]))}));
        let both = json!([{"matchExpressions": labels, "matchFields": on_n1}]);
        assert_eq!(scrub["spec"]["affinity"], required(both));
        assert_eq!(gate(json!({}))["spec"].get("affinity"), None);
    }

    #[test]
    fn template_fields_are_kept_except_the_first_volume() {
        let template = json!({
            "metadata": {"namespace": "scrubbers", "labels": {"a": "b"}},
            "spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "tools"}]},
        });
        let config =
            RecyclerConfig { pod_template: Some(template), timeout_min_seconds: 1, timeout_per_gib_seconds: 1 };
        let host = volume(json!({"metadata": {"name": "a"}, "spec": {"hostPath": {"path": "/tmp/a"}}}));
        let scrub = pod(&host, &config);
        assert_eq!(scrub["metadata"]["namespace"], "scrubbers");
        assert_eq!(scrub["metadata"]["labels"]["a"], "b");
        assert_eq!(
            scrub["spec"]["volumes"],
            json!([{"name": "data", "hostPath": {"path": "/tmp/a"}}, {"name": "tools"}])
        );
    }
}
