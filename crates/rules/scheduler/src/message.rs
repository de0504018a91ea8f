//! The message for a pod that cannot be scheduled, as upstream words it.

use std::collections::BTreeMap;

use crate::reason::Reason;

/// Counts the nodes to which each reason applies.
#[derive(Default)]
pub(crate) struct ReasonCounts {
    nodes: usize,
    reasons: BTreeMap<String, usize>,
    /// Nodes on which the eviction of other pods could help.
    preemptible: usize,
}

impl ReasonCounts {
    /// Adds a node and the reasons against it.
    pub fn add(&mut self, reasons: &[Reason]) {
        self.nodes += 1;
        for reason in reasons {
            *self.reasons.entry(reason.to_string()).or_default() += 1;
        }
        self.preemptible += usize::from(reasons.iter().all(Reason::could_preemption_help));
    }

    /// Upstream's message. Preemption is not supported, but reported as upstream does when it does
    /// not help.
    pub fn message(&self) -> String {
        let all = self.nodes;
        let available = format!("0/{all} nodes are available");
        let reasons = listed(self.reasons.iter().map(|(reason, count)| (*count, reason.as_str())));
        let preemption = listed([
            (self.preemptible, "No preemption victims found for incoming pod"),
            (all - self.preemptible, "Preemption is not helpful for scheduling"),
        ]);
        format!("{available}: {reasons}. no new claims to deallocate, preemption: {available}: {preemption}.")
    }
}

/// Upstream's message for a pod that is rejected for all nodes.
pub(crate) fn rejected(nodes: usize, why: &dyn std::fmt::Display) -> String {
    format!("0/{nodes} nodes are available: {why}. not found")
}

fn listed<'a>(counts: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = counts.map(|(count, reason)| format!("{count} {reason}")).collect();
    lines.sort_unstable();
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_placement::NodeRejection;

    #[test]
    fn nodes_are_counted_by_reason() {
        let mut counts = ReasonCounts::default();
        for _ in 0..35 {
            counts.add(&[Reason::Unschedulable]);
        }
        for _ in 0..476 {
            counts.add(&[Reason::NodeAffinity { labels: Vec::new(), is_by_affinity: true }]);
        }
        counts.add(&[Reason::Volumes(NodeRejection::ClaimInUse)]);
        assert_eq!(
            counts.message(),
            "0/512 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
             already in-use by another pod, 35 node(s) were unschedulable, 476 node(s) didn't match Pod's node \
             affinity/selector. no new claims to deallocate, preemption: 0/512 nodes are available: 1 No preemption victims \
             found for incoming pod, 511 Preemption is not helpful for scheduling."
        );
        let why = "pod has unbound immediate PersistentVolumeClaims";
        assert_eq!(rejected(512, &why), format!("0/512 nodes are available: {why}. not found"));
    }
}
