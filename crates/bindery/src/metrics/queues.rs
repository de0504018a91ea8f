//! What was counted of the queues, under the names that client-go's work queues give it.

use std::fmt;

use bindery_engine::{Engine, Histogram, Queue};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Labels;

/// Has the queues collected: how long they are, what came in, and how long it took.
pub fn collect(engine: &Engine, registry: &mut Registry) {
    let (depth, adds, retries) = (
        Family::<Labels, Gauge>::default(),
        Family::<Labels, Counter>::default(),
        Family::<Labels, Counter>::default(),
    );
    let mut times = Vec::new();
    for (name, queue, waiting) in engine.queues() {
        let labels = vec![("name", name.to_owned())];
        depth.get_or_create(&labels).set(i64::try_from(waiting).unwrap_or(i64::MAX));
        adds.get_or_create(&labels).inc_by(queue.adds);
        retries.get_or_create(&labels).inc_by(queue.retries);
        times.push((labels, queue));
    }
    registry.register("workqueue_depth", "Keys that wait to be decided about", depth);
    registry.register("workqueue_adds", "Times that a key was put in the queue", adds);
    registry.register("workqueue_retries", "Times that it was so after a failure", retries);
    registry.register_collector(Box::new(Times(times)));
}

#[derive(Debug)]
struct Times(Vec<(Labels, Queue)>);

impl Collector for Times {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut family = |name, help, of: fn(&Queue) -> &Histogram| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (labels, queue) in &self.0 {
                let spread = of(queue);
                let bounds = Histogram::BOUNDS.into_iter().chain([f64::MAX]);
                let above = spread.count - spread.buckets.iter().sum::<u64>();
                let counts = spread.buckets.into_iter().chain([above]);
                let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
                family.encode_family(labels)?.encode_histogram::<NoLabelSet>(
                    spread.sum.as_secs_f64(),
                    spread.count,
                    &buckets,
                    None,
                )?;
            }
            Ok(())
        };
        family("workqueue_queue_duration_seconds", "How long keys waited to be decided about", |queue| &queue.waited)?;
        family("workqueue_work_duration_seconds", "How long it took from there until they were at rest", |queue| {
            &queue.worked
        })
    }
}
