//! Work queue metrics, under client-go's names.

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

/// Registers depth, additions, retries and durations of the engine's queues.
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
    registry.register("workqueue_depth", "Keys waiting in the queue", depth);
    registry.register("workqueue_adds", "Keys added to the queue", adds);
    registry.register("workqueue_retries", "Keys added to the queue after a failure", retries);
    registry.register_collector(Box::new(Times(times)));
}

#[derive(Debug)]
struct Times(Vec<(Labels, Queue)>);

impl Collector for Times {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut family = |name, help, of: fn(&Queue) -> &Histogram| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (labels, queue) in &self.0 {
                let histogram = of(queue);
                let bounds = Histogram::BOUNDS.into_iter().chain([f64::INFINITY]);
                let above = histogram.count - histogram.buckets.iter().sum::<u64>();
                let counts = histogram.buckets.into_iter().chain([above]);
                let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
                family.encode_family(labels)?.encode_histogram::<NoLabelSet>(
                    histogram.sum.as_secs_f64(),
                    histogram.count,
                    &buckets,
                    None,
                )?;
            }
            Ok(())
        };
        family("workqueue_queue_duration_seconds", "Time that keys waited in the queue", |queue| &queue.waited)?;
        family(
            "workqueue_work_duration_seconds",
            "Time from leaving the queue until all resulting requests were done",
            |queue| &queue.worked,
        )
    }
}
