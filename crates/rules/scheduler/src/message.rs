//! Why no node will do, in a line, as upstream words it.

use std::collections::BTreeMap;

use crate::reason::Reason;

/// Counts for how many nodes each reason holds.
#[derive(Default)]
pub(crate) struct Count {
    nodes: usize,
    reasons: BTreeMap<String, usize>,
    /// Nodes for which the going of other pods could help.
    for_space: usize,
}

impl Count {
    /// Counts a node, and what stands against it.
    pub fn note(&mut self, against: &[Reason]) {
        self.nodes += 1;
        for reason in against {
            *self.reasons.entry(reason.to_string()).or_default() += 1;
        }
        self.for_space += usize::from(against.iter().all(Reason::is_for_lack_of_space));
    }

    /// In a line. NoObserver is ever driven out here; that it would not help is said as upstream says it.
    pub fn line(&self) -> String {
        let all = self.nodes;
        let available = format!("0/{all} nodes are available");
        let reasons = listed(self.reasons.iter().map(|(reason, count)| (*count, reason.as_str())));
        let preemption = listed([
            (self.for_space, "No preemption victims found for incoming pod"),
            (all - self.for_space, "Preemption is not helpful for scheduling"),
        ]);
        format!("{available}: {reasons}. no new claims to deallocate, preemption: {available}: {preemption}.")
    }
}

/// Why no node is even looked at.
pub(crate) fn refused(nodes: usize, why: &dyn std::fmt::Display) -> String {
    format!("0/{nodes} nodes are available: {why}. not found")
}

fn listed<'a>(counts: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let there = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = there.map(|(count, what)| format!("{count} {what}")).collect();
    lines.sort_unstable();
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_placement::Obstacle;

    #[test]
    fn nodes_are_counted_by_reason() {
        let mut count = Count::default();
        for _ in 0..35 {
            count.note(&[Reason::Unschedulable]);
        }
        for _ in 0..476 {
            count.note(&[Reason::NotWanted { labels: Vec::new(), is_by_affinity: true }]);
        }
        count.note(&[Reason::Volumes(Obstacle::ClaimInUse)]);
        assert_eq!(
            count.line(),
            "0/512 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
             already in-use by another pod, 35 node(s) were unschedulable, 476 node(s) didn't match Pod's node \
             affinity/selector. no new claims to deallocate, preemption: 0/512 nodes are available: 1 No preemption victims \
             found for incoming pod, 511 Preemption is not helpful for scheduling."
        );
        let why = "pod has unbound immediate PersistentVolumeClaims";
        assert_eq!(refused(512, &why), format!("0/512 nodes are available: {why}. not found"));
    }
}
