//! Partial claim status updates, written by the lifecycle controllers. Only the given fields are
//! written; other conditions are left unchanged.

use bindery_model::{Claim, ClaimChange, Condition, Quantity};
use serde_json::{Map, Value, json};

use crate::edit::{AnnotationEdits, apply_annotations, metadata};

/// A partial update of a claim's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimReport {
    /// Annotations to set or remove through the status subresource.
    pub annotations: AnnotationEdits,
    /// Conditions to set or remove.
    pub conditions: Vec<ConditionEdit>,
    /// The claim's capacity.
    pub capacity: Option<Quantity>,
    /// The progress of an expansion.
    pub expansion: Option<Expansion>,
}

/// The progress of an expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The size that the volume is being expanded to.
    pub allocated: Quantity,
    /// `allocatedResourceStatuses`; `None` once the expansion is complete.
    pub status: Option<&'static str>,
}

/// The claim conditions that rules write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// No pod refers to the claim.
    Unused,
    /// The volume is being expanded.
    Resizing,
    /// The file system is yet to be expanded on a node.
    FileSystemResizePending,
    /// Expanding the volume failed.
    ControllerResizeError,
    /// Expanding the file system failed.
    NodeResizeError,
}

impl ConditionType {
    /// The condition type as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionType::Unused => "Unused",
            ConditionType::Resizing => "Resizing",
            ConditionType::FileSystemResizePending => "FileSystemResizePending",
            ConditionType::ControllerResizeError => "ControllerResizeError",
            ConditionType::NodeResizeError => "NodeResizeError",
        }
    }
}

/// A condition to set or to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionEdit {
    /// Set the condition.
    Set {
        /// The condition.
        condition: ConditionType,
        /// The status: True or False.
        status: bool,
        /// The reason.
        reason: &'static str,
        /// The message.
        message: &'static str,
    },
    /// Remove the condition.
    Remove(ConditionType),
}

impl ConditionEdit {
    fn patch(&self, now: &str) -> Value {
        match self {
            ConditionEdit::Remove(condition) => json!({"$patch": "delete", "type": condition.as_str()}),
            ConditionEdit::Set { condition, status, reason, message } => {
                let or_absent = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
                json!({
                    "type": condition.as_str(),
                    "status": if *status { "True" } else { "False" },
                    "reason": or_absent(reason),
                    "message": or_absent(message),
                    "lastTransitionTime": now,
                })
            }
        }
    }

    fn apply(&self, claim: &mut Claim) {
        let (condition, value) = match self {
            ConditionEdit::Set { condition, status: true, .. } => (condition, Condition::True),
            ConditionEdit::Set { condition, status: false, .. } => (condition, Condition::False),
            ConditionEdit::Remove(condition) => (condition, Condition::Absent),
        };
        match condition {
            ConditionType::Unused => claim.status.unused = value,
            ConditionType::Resizing => claim.status.change.get_or_insert_default().resizing = value,
            ConditionType::FileSystemResizePending => {
                claim.status.change.get_or_insert_default().file_system_pending = value;
            }
            // No rule reads these.
            ConditionType::ControllerResizeError | ConditionType::NodeResizeError => {}
        }
    }
}

impl ClaimReport {
    /// Sets one condition.
    pub fn condition(
        condition: ConditionType,
        status: bool,
        reason: &'static str,
        message: &'static str,
    ) -> ClaimReport {
        let edit = ConditionEdit::Set { condition, status, reason, message };
        ClaimReport { conditions: vec![edit], ..ClaimReport::default() }
    }

    /// Applies the update to a claim.
    pub fn apply(&self, claim: &mut Claim) {
        apply_annotations(&mut claim.annotations, &self.annotations);
        for condition in &self.conditions {
            condition.apply(claim);
        }
        if let Some(capacity) = &self.capacity {
            claim.status.capacity = Some(capacity.clone());
        }
        if let Some(expansion) = &self.expansion {
            let change = claim.status.change.get_or_insert_default();
            change.allocated = Some(expansion.allocated.clone());
            change.resize_status = expansion.status.unwrap_or_default().into();
        }
        if claim.status.change.as_deref() == Some(&ClaimChange::default()) {
            claim.status.change = None;
        }
    }

    pub(crate) fn patch(&self, now: &str) -> Map<String, Value> {
        let mut status = Map::new();
        if !self.conditions.is_empty() {
            let conditions: Vec<Value> = self.conditions.iter().map(|condition| condition.patch(now)).collect();
            status.insert("conditions".into(), conditions.into());
        }
        if let Some(capacity) = &self.capacity {
            status.insert("capacity".into(), json!({"storage": capacity.as_str()}));
        }
        if let Some(expansion) = &self.expansion {
            status.insert("allocatedResources".into(), json!({"storage": expansion.allocated.as_str()}));
            status.insert("allocatedResourceStatuses".into(), json!({"storage": expansion.status}));
        }
        let mut patch = Map::from_iter([("metadata".into(), metadata(&self.annotations).into())]);
        if !status.is_empty() {
            patch.insert("status".into(), status.into());
        }
        patch
    }
}
