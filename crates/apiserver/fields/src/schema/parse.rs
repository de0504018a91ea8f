//! Reads the table of facts. Its notation is explained where it is written, in `table/main.go`.

use std::sync::OnceLock;

use super::{Field, Omit, Plain, Schema, Shape, Strategy, Struct, Table, Topology};

/// The table. What it says is part of the program, so a mistake in it is a mistake of the program.
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
            let (name, public) = (words.next().expect("a name"), words.next().expect("a public name"));
            table.structs.push(Struct {
                name,
                public,
                atomic: line.ends_with(" atomic"),
                fields: Vec::new(),
                always: Vec::new(),
            });
        }
    }
    for each in &mut table.structs {
        each.fields.sort_by_key(|field| field.name);
        let places = (0..).zip(&each.fields);
        each.always = places.filter(|(_, field)| field.is_always_printed()).map(|(place, _)| place).collect();
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
    for fact in words.next().unwrap_or_default().split(' ') {
        note(&mut field, fact);
    }
    field
}

fn note(field: &mut Field, fact: &'static str) {
    let (what, of) = fact.split_once('=').unwrap_or((fact, ""));
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

/// Shapes of items are kept for good, like the table itself.
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
    Shape::Plain(match text {
        "s" => Plain::Text,
        "i" => Plain::Int32,
        "l" => Plain::Int64,
        "b" => Plain::Bool,
        "q" => Plain::Quantity,
        "o" => Plain::IntOrText,
        "t" => Plain::Time,
        "u" => Plain::MicroTime,
        "y" => Plain::Bytes,
        "a" => Plain::Any,
        unknown => unreachable!("no shape {unknown}"),
    })
}
