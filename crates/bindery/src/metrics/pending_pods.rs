//! The number of pending pods, by upstream's scheduler queue.

use bindery_cache::{Cache, PodQueue};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Labels;

/// Counts pods without a node.
pub fn collect(known: &Cache, registry: &mut Registry) {
    let pods = Family::<Labels, Gauge>::default();
    // Every queue is reported, also an empty one.
    let queues = [(PodQueue::Active, "active"), (PodQueue::Gated, "gated"), (PodQueue::Unschedulable, "unschedulable")];
    for (queue, name) in queues {
        let count = known.node_pods().queues().of(&queue);
        pods.get_or_create_owned(&vec![("queue", name.to_owned())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("scheduler_pending_pods", "Pods without a node, by queue", pods);
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use bindery_model::{Kind, Object};

    #[test]
    fn pending_pods_are_counted_by_queue() {
        let mut known = Cache::new(bindery_matching::INDEX_POLICY);
        let states = [
            r#""spec":{"schedulingGates":[{"name":"g"}]}"#,
            r#""status":{"conditions":[{"type":"PodScheduled","status":"False","message":"why"}]}"#,
            r#""status":{"nominatedNodeName":"n","conditions":[{"type":"PodScheduled","status":"False","message":"why"}]}"#,
            r#""spec":{}"#,
            r#""spec":{"nodeName":"n"}"#,
        ];
        for (n, state) in states.into_iter().enumerate() {
            let json = format!(r#"{{"metadata":{{"namespace":"d","name":"p{n}","uid":"p{n}"}},{state}}}"#);
            known.watched(Object::from_json(Kind::Pod, json.as_bytes()).expect("a valid pod"));
        }
        let (mut registry, mut page) = (Registry::default(), String::new());
        collect(&known, &mut registry);
        encode(&mut page, &registry).expect("text");
        for (queue, count) in [("active", 2), ("gated", 1), ("unschedulable", 1)] {
            let line = format!("scheduler_pending_pods{{queue=\"{queue}\"}} {count}\n");
            assert!(page.contains(&line), "{line} in {page}");
        }
    }
}
