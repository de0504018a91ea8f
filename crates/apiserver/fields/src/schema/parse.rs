//! Parses the table. `table/main.go` documents the notation.

use std::sync::OnceLock;

use super::{Field, Omit, Scalar, Schema, Shape, Strategy, Struct, Table, Topology};

/// Parses the table. It is part of the program, so an error in it is a bug, and panics.
pub(super) fn table(text: &'static str) -> Table {
    let atomic: Vec<bool> =
        text.lines().filter(|line| line.starts_with("type ")).map(|line| line.ends_with(" atomic")).collect();
    let mut table = Table { schemas: Vec::new(), structs: Vec::new() };
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            table.structs.last_mut().expect("a field follows its type").fields.push(field(rest, &atomic));
        } else if let Some(rest) = line.strip_prefix("kind ") {
            table.schemas.push(schema(rest));
        } else if let Some(rest) = line.strip_prefix("type ") {
            let mut words = rest.split(' ');
            let (name, openapi_name) = (words.next().expect("a name"), words.next().expect("an OpenAPI name"));
            table.structs.push(Struct {
                name,
                openapi_name,
                atomic: line.ends_with(" atomic"),
                fields: Vec::new(),
                always_printed: Vec::new(),
            });
        }
    }
    for each in &mut table.structs {
        each.fields.sort_by_key(|field| field.name);
        let positions = (0..).zip(&each.fields);
        each.always_printed =
            positions.filter(|(_, field)| field.is_always_printed()).map(|(position, _)| position).collect();
    }
    table.schemas.sort_by_key(|schema| (schema.kind, schema.group, schema.version));
    table
}

fn schema(text: &'static str) -> Schema {
    let mut words = text.split(' ');
    let mut word = || words.next().expect("four words for a kind");
    let (group, version, kind) = (word().trim_matches('"'), word(), word());
    let root = word().parse().expect("the number of a type");
    let go_type = String::leak(format!("{version}.{kind}"));
    Schema { group, version, kind, root, go_type, empty: OnceLock::new() }
}

fn field(text: &'static str, atomic: &[bool]) -> Field {
    let mut words = text.splitn(5, ' ');
    let mut word = || words.next().expect("four words for a field");
    let (name, shape_text, marks, go_type) = (word(), word(), word().as_bytes(), word());
    let mut field = Field {
        name,
        shape: shape(shape_text, atomic),
        omit: match marks[0] {
            b'e' => Omit::Empty,
            b'z' => Omit::Zero,
            _ => Omit::Nothing,
        },
        pointer: marks[1] == b'*',
        required: false,
        go_type,
        inlined: None,
        strategy: Strategy::default(),
        granular: false,
        values: Vec::new(),
        default: None,
    };
    for attribute in words.next().unwrap_or_default().split(' ') {
        set_attribute(&mut field, attribute);
    }
    field
}

fn set_attribute(field: &mut Field, attribute: &'static str) {
    let (what, of) = attribute.split_once('=').unwrap_or((attribute, ""));
    match (what, &mut field.shape) {
        ("required", _) => field.required = true,
        ("in", _) => field.inlined = Some(of),
        ("granular", Shape::Struct { atomic, .. }) => {
            *atomic = false;
            field.granular = true;
        }
        ("atomic", Shape::Struct { atomic, .. } | Shape::Map { atomic, .. }) => *atomic = true,
        ("set", Shape::List { topology, .. }) => *topology = Topology::Set,
        ("keys", Shape::List { topology, .. }) => {
            let mut keys: Vec<&str> = of.split(',').collect();
            keys.sort_unstable();
            *topology = Topology::Keys(Vec::leak(keys));
        }
        ("patch", _) => {
            field.strategy.merge = of.split(',').any(|word| word == "merge");
            field.strategy.retain_keys = of.split(',').any(|word| word == "retainKeys");
        }
        ("by", _) => field.strategy.key = Some(of),
        ("enum", _) => field.values = of.split('|').collect(),
        ("default", _) => field.default = Some(serde_json::from_str(of).expect("a default is JSON")),
        _ => {}
    }
}

/// Item types live as long as the table: forever.
fn shape(text: &str, whole: &[bool]) -> Shape {
    if let Some(item) = text.strip_prefix('[') {
        return Shape::List { item: Box::leak(Box::new(shape(item, whole))), topology: Topology::Atomic };
    }
    if let Some(value) = text.strip_prefix('{') {
        return Shape::Map { value: Box::leak(Box::new(shape(value, whole))), atomic: false };
    }
    if let Some(index) = text.strip_prefix('@') {
        let index: u16 = index.parse().expect("the number of a type");
        return Shape::Struct { index, atomic: whole[usize::from(index)] };
    }
    Shape::Scalar(match text {
        "s" => Scalar::String,
        "i" => Scalar::Int32,
        "l" => Scalar::Int64,
        "b" => Scalar::Bool,
        "q" => Scalar::Quantity,
        "o" => Scalar::IntOrString,
        "t" => Scalar::Time,
        "u" => Scalar::MicroTime,
        "y" => Scalar::Bytes,
        "a" => Scalar::Any,
        unknown => unreachable!("unknown shape {unknown}"),
    })
}
