//! Reports: what the controllers beside the binder say in a claim's status. Only the parts that are given are written, and
//! conditions of other types stay as they are.

use bindery_model::{Claim, ClaimChange, Condition, Quantity};
use serde_json::{Map, Value, json};

use crate::edit::{AnnotationEdits, apply_annotations, metadata};

/// A part of a claim's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimReport {
    /// Annotations to set or remove, by way of the status.
    pub annotations: AnnotationEdits,
    /// Conditions to set or remove.
    pub conditions: Vec<ConditionEdit>,
    /// How much it got.
    pub capacity: Option<Quantity>,
    /// How its growing goes.
    pub growth: Option<Growth>,
}

/// How the growing of a claim goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The size that is being made.
    pub allocated: Quantity,
    /// How far it has come; `None` when it is done.
    pub status: Option<&'static str>,
}

/// The conditions of claims that rules write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// No pod refers to it.
    Unused,
    /// Its volume grows.
    Resizing,
    /// Its file system has yet to grow, on a node.
    FileSystemResizePending,
    /// Its volume could not be made to grow.
    ControllerResizeError,
    /// Its file system could not be made to grow.
    NodeResizeError,
}

impl ConditionType {
    /// The name on the wire.
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
    /// It holds, or does not, from now on.
    Set {
        /// Which.
        condition: ConditionType,
        /// Whether it holds.
        holds: bool,
        /// Why, in a word.
        reason: &'static str,
        /// Why, in words.
        message: &'static str,
    },
    /// It is removed.
    Remove(ConditionType),
}

impl ConditionEdit {
    fn patch(&self, now: &str) -> Value {
        match self {
            ConditionEdit::Remove(condition) => json!({"$patch": "delete", "type": condition.as_str()}),
            ConditionEdit::Set { condition, holds, reason, message } => {
                let or_absent = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
                json!({
                    "type": condition.as_str(),
                    "status": if *holds { "True" } else { "False" },
                    "reason": or_absent(reason),
                    "message": or_absent(message),
                    "lastTransitionTime": now,
                })
            }
        }
    }

    fn apply(&self, claim: &mut Claim) {
        let (condition, value) = match self {
            ConditionEdit::Set { condition, holds: true, .. } => (condition, Condition::True),
            ConditionEdit::Set { condition, holds: false, .. } => (condition, Condition::False),
            ConditionEdit::Remove(condition) => (condition, Condition::Absent),
        };
        match condition {
            ConditionType::Unused => claim.status.unused = value,
            ConditionType::Resizing => claim.status.change.get_or_insert_default().resizing = value,
            ConditionType::FileSystemResizePending => {
                claim.status.change.get_or_insert_default().file_system_pending = value;
            }
            // NoObserver reads them.
            ConditionType::ControllerResizeError | ConditionType::NodeResizeError => {}
        }
    }
}

impl ClaimReport {
    /// A report of one condition.
    pub fn condition(
        condition: ConditionType,
        holds: bool,
        reason: &'static str,
        message: &'static str,
    ) -> ClaimReport {
        let edit = ConditionEdit::Set { condition, holds, reason, message };
        ClaimReport { conditions: vec![edit], ..ClaimReport::default() }
    }

    /// Makes the changes on a claim.
    pub fn apply(&self, claim: &mut Claim) {
        apply_annotations(&mut claim.annotations, &self.annotations);
        for condition in &self.conditions {
            condition.apply(claim);
        }
        if let Some(capacity) = &self.capacity {
            claim.status.capacity = Some(capacity.clone());
        }
        if let Some(growth) = &self.growth {
            let change = claim.status.change.get_or_insert_default();
            change.allocated = Some(growth.allocated.clone());
            change.resize_status = growth.status.unwrap_or_default().into();
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
        if let Some(growth) = &self.growth {
            status.insert("allocatedResources".into(), json!({"storage": growth.allocated.as_str()}));
            status.insert("allocatedResourceStatuses".into(), json!({"storage": growth.status}));
        }
        let mut patch = Map::from_iter([("metadata".into(), metadata(&self.annotations).into())]);
        if !status.is_empty() {
            patch.insert("status".into(), status.into());
        }
        patch
    }
}
