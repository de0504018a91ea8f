//! What an object of a kind is made of: the table of facts, read once.

use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

mod parse;

static TABLE: LazyLock<Table> = LazyLock::new(|| parse::table(include_str!("table.txt")));

/// All kinds and all structs.
#[derive(Debug)]
pub(crate) struct Table {
    /// Sorted by group, version and kind.
    pub schemas: Vec<Schema>,
    pub structs: Vec<Struct>,
}

/// The table of facts.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// The schema of one kind in one version.
#[derive(Debug)]
pub struct Schema {
    /// The group, empty for the core.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    root: usize,
    go_type: &'static str,
    /// An object with nothing in it, as Go's encoder prints it.
    empty: OnceLock<Value>,
}

impl Schema {
    /// The schema of a kind, if it is known. What belongs to no kind's group (`Status`, `DeleteOptions`) is found in `meta.k8s.io`.
    pub fn of(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
        let schemas = &table().schemas;
        let place = schemas.binary_search_by(|schema| {
            schema.kind.cmp(kind).then_with(|| schema.group.cmp(group)).then_with(|| schema.version.cmp(version))
        });
        place.ok().map(|place| &schemas[place])
    }

    /// `v1` or `storage.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// An object of the kind with nothing in it, in canonical form: what is printed even if nothing is set, such as `status: {}`.
    pub fn empty(&self) -> &Value {
        self.empty.get_or_init(|| self.root().zero())
    }

    /// `v1.PersistentVolume`.
    pub(crate) fn go_type(&self) -> &'static str {
        self.go_type
    }

    pub(crate) fn root(&self) -> &'static Struct {
        &table().structs[self.root]
    }

    /// The shape of an object of the kind.
    pub(crate) fn shape(&self) -> Shape {
        Shape::Struct { index: self.root as u16, atomic: false }
    }
}

/// A struct of the API.
#[derive(Debug)]
pub(crate) struct Struct {
    /// `PersistentVolumeSpec`.
    pub name: &'static str,
    /// `io.k8s.api.core.v1.PersistentVolumeSpec`.
    pub public: &'static str,
    /// Whether it is applied as a whole, unless a field says otherwise.
    pub atomic: bool,
    /// Sorted by name.
    pub fields: Vec<Field>,
    /// The places of the fields that are printed even if they are not set.
    pub always: Vec<u8>,
}

impl Struct {
    /// The field's place and the field.
    pub fn find(&self, name: &str) -> Option<(usize, &Field)> {
        let place = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        Some((place, &self.fields[place]))
    }
}

/// What Go's encoder leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omit {
    Nothing,
    Empty,
    Zero,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub omit: Omit,
    pub pointer: bool,
    pub required: bool,
    /// `v1.PersistentVolumeMode`.
    pub go_type: &'static str,
    /// The struct that it is inlined from, which Go names in its errors.
    pub inlined: Option<&'static str>,
    pub strategy: Strategy,
    /// Applied part by part, though its type is applied as a whole elsewhere.
    pub granular: bool,
    pub values: Vec<&'static str>,
    pub default: Option<Value>,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// Lists are merged, not replaced.
    pub merge: bool,
    /// `$retainKeys` is looked at.
    pub retain_keys: bool,
    /// The field that tells the items of a list apart; none for a list of plain values.
    pub key: Option<&'static str>,
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Plain(Plain),
    Struct { index: u16, atomic: bool },
    List { item: &'static Shape, topology: Topology },
    Map { value: &'static Shape, atomic: bool },
}

impl Shape {
    /// The struct that this is, if it is one.
    pub fn as_struct(&self) -> Option<&'static Struct> {
        match self {
            Shape::Struct { index, .. } => Some(&table().structs[usize::from(*index)]),
            Shape::Plain(_) | Shape::List { .. } | Shape::Map { .. } => None,
        }
    }

    /// Whether it has no parts that could be owned by different managers.
    pub fn is_leaf(&self) -> bool {
        match self {
            Shape::Plain(_) => true,
            Shape::Struct { atomic, .. } | Shape::Map { atomic, .. } => *atomic,
            Shape::List { topology, .. } => matches!(topology, Topology::Atomic),
        }
    }

    /// What Go's encoder prints for the zero value.
    pub fn zero(&self) -> Value {
        match self {
            Shape::Plain(plain) => plain.zero(),
            Shape::Struct { .. } => self.as_struct().map_or(Value::Null, Struct::zero),
            Shape::List { .. } | Shape::Map { .. } => Value::Null,
        }
    }
}

impl Struct {
    /// The struct with nothing set, as Go's encoder prints it.
    pub fn zero(&self) -> Value {
        let always = self.fields.iter().filter(|field| field.is_always_printed());
        Value::Object(always.map(|field| (field.name.to_owned(), field.zero())).collect())
    }
}

impl Field {
    /// Whether Go's encoder prints it even if it is not set: omitting what is empty does nothing to structs that are no pointers.
    pub fn is_always_printed(&self) -> bool {
        match self.omit {
            Omit::Nothing => true,
            Omit::Zero => false,
            Omit::Empty => {
                let is_struct = matches!(
                    self.shape,
                    Shape::Struct { .. }
                        | Shape::Plain(Plain::Time | Plain::MicroTime | Plain::Quantity | Plain::IntOrText)
                );
                !self.pointer && is_struct
            }
        }
    }

    /// What is printed if it is not set.
    pub fn zero(&self) -> Value {
        if self.pointer { Value::Null } else { self.shape.zero() }
    }
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Topology {
    Atomic,
    Set,
    Keys(&'static [&'static str]),
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Text,
    Int32,
    Int64,
    Bool,
    Quantity,
    IntOrText,
    Time,
    MicroTime,
    Bytes,
    Any,
}

impl Plain {
    fn zero(self) -> Value {
        match self {
            Plain::Text => Value::from(""),
            Plain::Quantity => Value::from("0"),
            Plain::Int32 | Plain::Int64 | Plain::IntOrText => Value::from(0),
            Plain::Bool => Value::from(false),
            Plain::Time | Plain::MicroTime | Plain::Bytes | Plain::Any => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_kinds_are_found_by_name() {
        let kinds = [
            ("", "Pod"),
            ("storage.k8s.io", "CSINode"),
            ("events.k8s.io", "Event"),
            ("", "Event"),
            ("meta.k8s.io", "Status"),
        ];
        for (group, kind) in kinds {
            let schema = Schema::of(group, "v1", kind).expect("a kind of the table");
            assert_eq!((schema.group, schema.kind, schema.root().name), (group, kind, kind));
        }
        assert!(Schema::of("", "v1", "StorageClass").is_none());
        assert!(Schema::of("", "v2", "Pod").is_none());
    }

    #[test]
    fn empty_objects_are_printed_as_go_prints_them() {
        let empty = |group, kind| Schema::of(group, "v1", kind).expect("a kind of the table").empty().clone();
        assert_eq!(
            empty("", "PersistentVolumeClaim"),
            json!({"metadata": {}, "spec": {"resources": {}}, "status": {}})
        );
        assert_eq!(empty("", "ConfigMap"), json!({"metadata": {}}));
        assert_eq!(
            empty("", "Event"),
            json!({"metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
                "reportingComponent": "", "reportingInstance": ""})
        );
    }

    #[test]
    fn topologies_are_those_of_the_openapi_document() {
        let spec = Schema::of("", "v1", "PersistentVolume").expect("known").root().find("spec").expect("known").1.shape;
        let spec = spec.as_struct().expect("a struct");
        assert!(
            !spec.find("claimRef").expect("known").1.shape.is_leaf(),
            "granular, though references are atomic elsewhere"
        );
        assert!(spec.find("accessModes").expect("known").1.shape.is_leaf());
        assert!(!spec.find("capacity").expect("known").1.shape.is_leaf());
    }
}
