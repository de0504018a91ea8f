//! The schemas of structs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::descriptions;
use super::paths::{GROUPS, Resource};
use crate::Schema;
use crate::schema::{Field, Omit, Scalar, Shape, Struct, Topology, table};

/// The OpenAPI version of the output.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Dialect {
    V2,
    V3,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The schemas of these kinds and of all types that they refer to, by name.
pub(super) fn of<'a>(resources: impl Iterator<Item = &'a Resource>, dialect: Dialect) -> Map<String, Value> {
    let mut found: BTreeMap<&'static str, &'static Struct> = BTreeMap::new();
    let mut ahead: Vec<&'static Struct> = resources.flat_map(Resource::structs).collect();
    ahead.extend(
        ["Status", "DeleteOptions"]
            .into_iter()
            .filter_map(|kind| Schema::of("meta.k8s.io", "v1", kind))
            .map(Schema::root),
    );
    while let Some(each) = ahead.pop() {
        if found.insert(each.openapi_name, each).is_none() {
            ahead.extend(each.fields.iter().filter_map(|field| innermost(&field.shape).as_struct()));
        }
    }
    let mut schemas: Map<String, Value> =
        found.values().map(|each| (each.openapi_name.to_owned(), of_struct(each, dialect))).collect();
    for scalar in [Scalar::Quantity, Scalar::IntOrString, Scalar::Time, Scalar::MicroTime] {
        if let Some((name, schema)) = of_scalar(scalar, dialect) {
            schemas.insert(name.to_owned(), described(schema, descriptions::of_type(name)));
        }
    }
    for name in ["FieldsV1", "Patch"] {
        let name = format!("{META}.{name}");
        let description = descriptions::of_type(&name);
        schemas.insert(name, described(json!({"type": "object"}), description));
    }
    schemas
}

fn innermost(shape: &Shape) -> Shape {
    match shape {
        Shape::List { item: inner, .. } | Shape::Map { value: inner, .. } => innermost(inner),
        Shape::Scalar(_) | Shape::Struct { .. } => *shape,
    }
}

fn described(mut schema: Value, description: Option<&str>) -> Value {
    if let Some(description) = description {
        schema["description"] = Value::from(description);
    }
    schema
}

fn of_struct(each: &'static Struct, dialect: Dialect) -> Value {
    let properties: Map<String, Value> = each
        .fields
        .iter()
        .map(|field| {
            (
                field.name.to_owned(),
                described(of_field(field, dialect), descriptions::of_field(each.openapi_name, field.name)),
            )
        })
        .collect();
    let mut schema = json!({"type": "object"});
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    let required: Vec<&str> = each.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if each.atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    let kinds = kinds(each);
    if !kinds.is_empty() {
        schema["x-kubernetes-group-version-kind"] = Value::Array(kinds);
    }
    described(schema, descriptions::of_type(each.openapi_name))
}

/// The kinds whose schema is this struct. `DeleteOptions` belongs to every group.
fn kinds(each: &'static Struct) -> Vec<Value> {
    let schemas = table().schemas.iter().filter(|schema| std::ptr::eq(schema.root(), each));
    let kind = |group: &str, kind: &str| json!({"group": group, "version": "v1", "kind": kind});
    schemas
        .flat_map(|schema| match schema.group {
            "meta.k8s.io" if schema.kind == "DeleteOptions" => {
                GROUPS.iter().map(|(group, _)| kind(group, schema.kind)).collect()
            }
            "meta.k8s.io" => vec![kind("", schema.kind)],
            group => vec![kind(group, schema.kind)],
        })
        .collect()
}

fn of_field(field: &Field, dialect: Dialect) -> Value {
    let mut schema = of_shape(&field.shape, dialect);
    if !field.values.is_empty() {
        let values = json!(field.values);
        match schema.get_mut("items") {
            Some(items) => items["enum"] = values,
            None => schema["enum"] = values,
        }
    }
    if dialect == Dialect::V3 {
        let default = match &field.default {
            Some(default) => Some(default.clone()),
            None if field.pointer => None,
            None => default_of(&field.shape)
                .filter(|_| field.omit == Omit::Nothing || matches!(field.shape, Shape::Struct { .. })),
        };
        if let Some(default) = default {
            schema["default"] = default;
        }
    }
    match (&field.shape, field.granular) {
        (Shape::Struct { .. }, true) => schema["x-kubernetes-map-type"] = json!("granular"),
        (Shape::Struct { index, atomic: true }, _) if !table().structs[usize::from(*index)].atomic => {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        (Shape::Map { atomic: true, .. }, _) => schema["x-kubernetes-map-type"] = json!("atomic"),
        _ => {}
    }
    if let Shape::List { topology, .. } = &field.shape {
        match topology {
            Topology::Atomic => schema["x-kubernetes-list-type"] = json!("atomic"),
            Topology::Set => schema["x-kubernetes-list-type"] = json!("set"),
            Topology::Keys(keys) => {
                schema["x-kubernetes-list-map-keys"] = json!(keys);
                schema["x-kubernetes-list-type"] = json!("map");
            }
        }
    }
    let strategy: Vec<&str> = [(field.strategy.merge, "merge"), (field.strategy.retain_keys, "retainKeys")]
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    if !strategy.is_empty() {
        schema["x-kubernetes-patch-strategy"] = json!(strategy.join(","));
    }
    if let Some(key) = field.strategy.key {
        schema["x-kubernetes-patch-merge-key"] = json!(key);
    }
    schema
}

/// The default of a field that is always printed.
fn default_of(shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Struct { .. } => Some(json!({})),
        Shape::Scalar(Scalar::String) => Some(json!("")),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => Some(json!(0)),
        Shape::Scalar(Scalar::Bool) => Some(json!(false)),
        Shape::Scalar(_) | Shape::List { .. } | Shape::Map { .. } => None,
    }
}

fn reference(name: &str, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V2 => json!({"$ref": format!("#/definitions/{name}")}),
        Dialect::V3 => json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]}),
    }
}

fn of_shape(shape: &Shape, dialect: Dialect) -> Value {
    let element = |inner: &Shape| {
        let mut schema = of_shape(inner, dialect);
        if dialect == Dialect::V3 {
            match default_of(inner) {
                Some(default) => schema["default"] = default,
                // Without a default, the reference does not need `allOf`.
                None => {
                    if let Some(reference) = schema.get("allOf").and_then(|list| list.get(0)).cloned() {
                        schema = reference;
                    }
                }
            }
        }
        schema
    };
    match shape {
        Shape::Struct { .. } => shape.as_struct().map_or(Value::Null, |of| reference(of.openapi_name, dialect)),
        Shape::List { item, .. } => json!({"type": "array", "items": element(item)}),
        Shape::Map { value, .. } => json!({"type": "object", "additionalProperties": element(value)}),
        Shape::Scalar(scalar) => match scalar {
            Scalar::String => json!({"type": "string"}),
            Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
            Scalar::Bool => json!({"type": "boolean"}),
            Scalar::Bytes => json!({"type": "string", "format": "byte"}),
            Scalar::Any => reference("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", dialect),
            Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime => {
                of_scalar(*scalar, dialect).map_or(Value::Null, |(name, _)| reference(name, dialect))
            }
        },
    }
}

/// The name and schema of scalars that have their own type in OpenAPI.
fn of_scalar(scalar: Scalar, dialect: Dialect) -> Option<(&'static str, Value)> {
    let v2 = dialect == Dialect::V2;
    match scalar {
        Scalar::Quantity if v2 => Some(("io.k8s.apimachinery.pkg.api.resource.Quantity", json!({"type": "string"}))),
        Scalar::Quantity => Some((
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        )),
        Scalar::IntOrString if v2 => Some((
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!({"type": "string", "format": "int-or-string"}),
        )),
        Scalar::IntOrString => {
            let schema = json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]});
            Some(("io.k8s.apimachinery.pkg.util.intstr.IntOrString", schema))
        }
        Scalar::Time => {
            Some(("io.k8s.apimachinery.pkg.apis.meta.v1.Time", json!({"type": "string", "format": "date-time"})))
        }
        Scalar::MicroTime => {
            Some(("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", json!({"type": "string", "format": "date-time"})))
        }
        Scalar::String | Scalar::Int32 | Scalar::Int64 | Scalar::Bool | Scalar::Bytes | Scalar::Any => None,
    }
}
