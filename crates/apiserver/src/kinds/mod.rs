//! What is special about each kind: names, scope, verbs, columns, defaults, validation. One small file for each.

use jiff::Timestamp;
use serde_json::Value;

/// A kind as one version of one group serves it. There is one static entry for each, in [`all`].
#[derive(Debug)]
pub struct Kind {
    /// `""` for the core group.
    pub group: &'static str,
    /// Such as `v1`.
    pub version: &'static str,
    /// Such as `PersistentVolume`.
    pub kind: &'static str,
    /// Such as `persistentvolumes`.
    pub plural: &'static str,
    /// Such as `persistentvolume`.
    pub singular: &'static str,
    /// Such as `pv`.
    pub short_names: &'static [&'static str],
    /// Such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with it, as discovery tells, in alphabetical order.
    pub verbs: &'static [&'static str],
    /// Paths below an object.
    pub subresources: &'static [Subresource],
    /// What a table shows of it.
    pub columns: &'static [Column],
    /// A row's cells, one for each column.
    pub cells: fn(&Value, &Sight<'_>) -> Vec<Value>,
}

/// A path below an object, such as `status`.
#[derive(Debug)]
pub struct Subresource {
    /// Such as `status`.
    pub name: &'static str,
    /// What is sent and answered there, as (group, version, kind).
    pub kind: (&'static str, &'static str, &'static str),
    /// What may be done with it, in alphabetical order.
    pub verbs: &'static [&'static str],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its title.
    pub name: &'static str,
    /// Its type, such as `string`.
    pub kind: &'static str,
    /// Its format, such as `name`.
    pub format: &'static str,
    /// What is shown there.
    pub description: &'static str,
    /// 0, or 1 for `-o wide`.
    pub priority: u8,
}

/// What a row shows besides its object.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// To tell ages.
    pub now: Timestamp,
    /// The class to be marked as the default; only in lists.
    pub default_class: Option<&'a str>,
}
