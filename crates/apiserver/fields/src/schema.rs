//! The schemas of all kinds, from `table.txt`.

use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

mod parse;

static TABLE: LazyLock<Table> = LazyLock::new(|| parse::table(include_str!("table.txt")));

/// All kinds and all structs.
#[derive(Debug)]
pub(crate) struct Table {
    /// Sorted by kind, group and version.
    pub schemas: Vec<Schema>,
    pub structs: Vec<Struct>,
}

/// The table, parsed once.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// The schema of one kind in one version.
#[derive(Debug)]
pub struct Schema {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    root: usize,
    go_type: &'static str,
    /// An empty object, as Go's encoder prints it.
    empty: OnceLock<Value>,
}

impl Schema {
    /// The schema of a kind, if it is known. `Status` and `DeleteOptions` are in the group
    /// `meta.k8s.io`.
    pub fn of(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
        let schemas = &table().schemas;
        let position = schemas.binary_search_by(|schema| {
            schema.kind.cmp(kind).then_with(|| schema.group.cmp(group)).then_with(|| schema.version.cmp(version))
        });
        position.ok().map(|position| &schemas[position])
    }

    /// `v1` or `storage.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// An empty object of the kind in canonical form: the fields that are always printed, such as
    /// `status: {}`.
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
    pub openapi_name: &'static str,
    /// Whether it is applied as a whole, unless a field overrides this.
    pub atomic: bool,
    /// Sorted by name.
    pub fields: Vec<Field>,
    /// The indices of the fields that are printed even if they are not set.
    pub always_printed: Vec<u8>,
}

impl Struct {
    /// The index of a field, and the field.
    pub fn find(&self, name: &str) -> Option<(usize, &Field)> {
        let position = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        Some((position, &self.fields[position]))
    }
}

/// What Go's encoder omits.
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
    /// The struct that it is inlined from, which Go's errors name.
    pub inlined: Option<&'static str>,
    pub strategy: Strategy,
    /// Applied field by field, although its type is atomic elsewhere.
    pub granular: bool,
    pub values: Vec<&'static str>,
    pub default: Option<Value>,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// Lists are merged, not replaced.
    pub merge: bool,
    /// `$retainKeys` is supported.
    pub retain_keys: bool,
    /// The merge key of a list; `None` for a list of scalars.
    pub key: Option<&'static str>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Scalar(Scalar),
    Struct { index: u16, atomic: bool },
    List { item: &'static Shape, topology: Topology },
    Map { value: &'static Shape, atomic: bool },
}

impl Shape {
    /// The struct, if this is one.
    pub fn as_struct(&self) -> Option<&'static Struct> {
        match self {
            Shape::Struct { index, .. } => Some(&table().structs[usize::from(*index)]),
            Shape::Scalar(_) | Shape::List { .. } | Shape::Map { .. } => None,
        }
    }

    /// Whether it has no parts that different managers could own.
    pub fn is_leaf(&self) -> bool {
        match self {
            Shape::Scalar(_) => true,
            Shape::Struct { atomic, .. } | Shape::Map { atomic, .. } => *atomic,
            Shape::List { topology, .. } => matches!(topology, Topology::Atomic),
        }
    }

    /// What Go's encoder prints for the zero value.
    pub fn zero(&self) -> Value {
        match self {
            Shape::Scalar(scalar) => scalar.zero(),
            Shape::Struct { .. } => self.as_struct().map_or(Value::Null, Struct::zero),
            Shape::List { .. } | Shape::Map { .. } => Value::Null,
        }
    }
}

impl Struct {
    /// The empty struct, as Go's encoder prints it.
    pub fn zero(&self) -> Value {
        let always_printed = self.fields.iter().filter(|field| field.is_always_printed());
        Value::Object(always_printed.map(|field| (field.name.to_owned(), field.zero())).collect())
    }
}

impl Field {
    /// Whether Go's encoder prints it even if it is not set: `omitempty` has no effect on structs
    /// that are not pointers.
    pub fn is_always_printed(&self) -> bool {
        match self.omit {
            Omit::Nothing => true,
            Omit::Zero => false,
            Omit::Empty => {
                let is_struct = matches!(
                    self.shape,
                    Shape::Struct { .. }
                        | Shape::Scalar(Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString)
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

/// How the items of a list are identified: its `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Topology {
    Atomic,
    Set,
    Keys(&'static [&'static str]),
}

/// A value without fields or items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int32,
    Int64,
    Bool,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Bytes,
    Any,
}

impl Scalar {
    fn zero(self) -> Value {
        match self {
            Scalar::String => Value::from(""),
            Scalar::Quantity => Value::from("0"),
            Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString => Value::from(0),
            Scalar::Bool => Value::from(false),
            Scalar::Time | Scalar::MicroTime | Scalar::Bytes | Scalar::Any => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_found_by_group_version_and_kind() {
        let kinds = [
            ("", "Pod"),
            ("storage.k8s.io", "CSINode"),
            ("events.k8s.io", "Event"),
            ("", "Event"),
            ("meta.k8s.io", "Status"),
        ];
        for (group, kind) in kinds {
            let schema = Schema::of(group, "v1", kind).expect("a known kind");
            assert_eq!((schema.group, schema.kind, schema.root().name), (group, kind, kind));
        }
        assert!(Schema::of("", "v1", "StorageClass").is_none());
        assert!(Schema::of("", "v2", "Pod").is_none());
    }

    #[test]
    fn empty_objects_are_printed_as_in_go() {
        let empty = |group, kind| Schema::of(group, "v1", kind).expect("a known kind").empty().clone();
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
    fn list_and_map_types_match_the_openapi_document() {
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
