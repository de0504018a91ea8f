//! How shapes are written, and read.
//!
//! A file holds shapes by name. A shape is a list of steps, or `{do: steps, cases: …, each: …, alone: true, chores: true, seeds: 2}`:
//!
//! - A step is a request line (`GET pvc/$n`), or a map with one (`POST pvc: body`) and how the request differs from the plain
//!   one. The line's first word is a method or one of the patch types `MERGE`, `STRATEGIC`, `JSONPATCH`, `APPLY`; then comes a
//!   path, or a kind's short name (`shapes/kinds.yaml`) with an object's name, a subresource and a query.
//! - The body is an object, or the name of a template in `shapes/objects.yaml`, or a variable such as `$last`.
//! - Beside it: `with` (a merge patch laid over the body), `raw` (a body as text), `type` (content type), `accept`, `headers`,
//!   `save` (a variable for the answer, unless it is a refusal; `$last` always holds it), `open` (a watch that goes on beside the next steps until
//!   `collect`), `pad` (adds an annotation of so many bytes).
//! - `wait: 500` gives a server's caches that many milliseconds. `{collect: w}` ends a watch that was opened. `{gone: pvc/$n}`
//!   waits until there is no such object. `{walk: pvc}` makes requests at random ([`walk`]).
//! - `cases` make one shape each: a case is laid over the steps that are marked `vary: true`; its `query` is appended.
//! - `each: {kind: [pvc, pv]}` makes one shape for each value, with the variable set.

use std::path::Path;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::values::overlay;
use crate::walk;

/// A named kind of request in a situation.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name, unique among all.
    pub name: String,
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// Variables of its own, from `each`.
    pub values: Vec<(String, Value)>,
    /// Whether it would disturb others, or be disturbed.
    pub alone: bool,
    /// How many runs it is good for.
    pub seeds: u64,
    /// Whether it is about what is done behind clients' backs: garbage, and the contents of namespaces. For these a real API
    /// server needs kube-controller-manager beside it.
    pub chores: bool,
}

/// One thing that a run does.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request.
    Request(Box<Call>),
    /// Nothing, for some milliseconds.
    Wait(u64),
    /// The end of a watch that was opened under this name.
    Collect(String),
    /// Until an object is there no more.
    Gone(String),
    /// Requests at random about objects of a kind.
    Walk(String),
}

/// A request as it is written: variables are replaced when it is sent.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The method, or a patch type.
    pub verb: String,
    /// A path, or a kind's short name and what follows.
    pub target: String,
    /// An object, a template's name, or a variable.
    pub body: Option<Value>,
    /// Laid over the body.
    pub with: Option<Value>,
    /// The body as text.
    pub raw: Option<String>,
    /// The content type, where it is not what the verb says.
    pub content_type: Option<String>,
    /// What is asked for, where it is not JSON.
    pub accept: Option<String>,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// The variable that gets the answer.
    pub save: Option<String>,
    /// The name under which the answer is collected later.
    pub open: Option<String>,
    /// The size of an annotation that makes the body big.
    pub pad: usize,
}

/// Everything that the files say.
pub struct Library {
    /// All shapes, by name.
    pub shapes: Vec<Shape>,
    /// Templates of objects by name.
    pub objects: Map<String, Value>,
    /// Paths of collections by short name.
    pub kinds: Map<String, Value>,
    /// What walks change, by short name.
    pub changes: Map<String, Value>,
}

const VERBS: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "HEAD", "MERGE", "STRATEGIC", "JSONPATCH", "APPLY"];
/// Files that hold something else.
const NO_SHAPES: [&str; 3] = ["objects", "kinds", "changes"];
const PATCH: &str = "PATCH";

impl Library {
    /// Reads a folder of shapes.
    pub fn read(folder: &Path) -> Result<Library, String> {
        let mut library = Library {
            shapes: Vec::new(),
            objects: map(read_yaml(&folder.join("objects.yaml"))?)?,
            kinds: map(read_yaml(&folder.join("kinds.yaml"))?)?,
            changes: map(read_yaml(&folder.join("changes.yaml"))?)?,
        };
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if file.extension().is_some_and(|ending| ending == "yaml") && !NO_SHAPES.contains(&stem) {
                let of_file = |error| format!("{}: {error}", file.display());
                for (name, shape) in map(read_yaml(&file)?).map_err(of_file)? {
                    library.shapes.extend(shapes(&name, &shape).map_err(of_file)?);
                }
            }
        }
        library.shapes.sort_by(|a, b| a.name.cmp(&b.name));
        for shape in &library.shapes {
            library.check(shape).map_err(|error| format!("{}: {error}", shape.name))?;
        }
        match library.shapes.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(format!("there are two shapes {}", pair[0].name)),
            None => Ok(library),
        }
    }

    /// Finds names that mean nothing: a request with one would be answered alike by all servers, and test nothing.
    fn check(&self, shape: &Shape) -> Result<(), String> {
        for step in &shape.steps {
            let Step::Request(call) = step else { continue };
            let kind = call.target.split(['/', '?']).next().unwrap_or_default();
            if !call.target.starts_with(['/', '$']) && !self.kinds.contains_key(kind) {
                return Err(format!("there is no kind {kind:?}"));
            }
            match &call.body {
                Some(Value::String(name)) if !name.starts_with('$') && !self.objects.contains_key(name) => {
                    return Err(format!("there is no template {name:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The steps of a walk.
    pub fn walk(&self, kind: &str, dice: &mut Dice) -> Vec<Step> {
        let changes = self.changes.get(kind).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let steps = walk::steps(kind, changes, dice);
        steps.iter().map(|value| step(value).expect("walks are well written")).collect()
    }

    /// The library that comes with this crate.
    pub fn own() -> Result<Library, String> {
        Library::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("shapes"))
    }
}

fn read_yaml(file: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    // A name may be `n` or `on`.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| format!("{}: {error}", file.display()))
}

fn map(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("not a map: {value}"))
        }
    }
}

/// One entry of a file: a shape, or as many as its cases and values make.
fn shapes(name: &str, entry: &Value) -> Result<Vec<Shape>, String> {
    let of_shape = |error| format!("{name}: {error}");
    let steps = entry.get("do").unwrap_or(entry);
    let steps = steps.as_array().ok_or_else(|| of_shape("no steps".to_owned()))?;
    let mut made = Vec::new();
    match entry.get("cases").and_then(Value::as_object) {
        None => made.push((name.to_owned(), varied(steps, &Value::Null))),
        Some(cases) => made.extend(cases.iter().map(|(case, vary)| (format!("{name}.{case}"), varied(steps, vary)))),
    }
    let mut shapes = Vec::new();
    for (name, steps) in made {
        let shape = Shape {
            steps: steps.iter().map(step).collect::<Result<_, _>>().map_err(|error| format!("{name}: {error}"))?,
            name,
            values: Vec::new(),
            alone: entry.get("alone").is_some_and(|alone| alone == &Value::Bool(true)),
            chores: entry.get("chores").is_some_and(|chores| chores == &Value::Bool(true)),
            seeds: entry.get("seeds").and_then(Value::as_u64).unwrap_or(DEFAULT_SEEDS),
        };
        match entry.get("each").and_then(Value::as_object).and_then(|each| each.iter().next()) {
            None => shapes.push(shape),
            Some((variable, list)) => {
                for value in list.as_array().into_iter().flatten() {
                    let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let mut shape = shape.clone();
                    shape.name = format!("{}.{word}", shape.name);
                    shape.values.push((variable.clone(), value.clone()));
                    shapes.push(shape);
                }
            }
        }
    }
    Ok(shapes)
}

/// Runs of each shape, where it does not say.
const DEFAULT_SEEDS: u64 = 2;

/// The steps with a case laid over those that vary.
fn varied(steps: &[Value], case: &Value) -> Vec<Value> {
    let vary = |step: &Value| {
        let mut step = step.clone();
        if step.get("vary").is_some_and(|vary| vary == &Value::Bool(true))
            && let Value::Object(fields) = &mut step
            && let Value::Object(case) = case
        {
            for (field, value) in case {
                match field.as_str() {
                    "query" | "body" | "verb" => change_line(fields, field, value),
                    // A case adds to what the step lays over the body already.
                    "with" => overlay_with(fields, value),
                    _ => {
                        fields.insert(field.clone(), value.clone());
                    }
                }
            }
        }
        step
    };
    steps.iter().map(vary).collect()
}

fn overlay_with(fields: &mut Map<String, Value>, patch: &Value) {
    let with = fields.entry("with").or_insert_with(|| Value::Object(Map::new()));
    // Not by the rules of merge patches: a null in the patch has to stay one.
    merge_keeping_nulls(with, patch);
}

fn merge_keeping_nulls(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                match base.get_mut(key) {
                    Some(inner) if inner.is_object() && value.is_object() => merge_keeping_nulls(inner, value),
                    _ => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, patch) => overlay(base, patch),
    }
}

/// Changes a step's request line, which is a key: its query, its verb, or the body that it leads to.
fn change_line(fields: &mut Map<String, Value>, field: &str, value: &Value) {
    let Some(line) = fields.keys().find(|key| is_line(key)).cloned() else { return };
    let body = fields.remove(&line).unwrap_or(Value::Null);
    let text = value.as_str().unwrap_or_default();
    match field {
        "query" => {
            let joint = if line.contains('?') { '&' } else { '?' };
            fields.insert(format!("{line}{joint}{text}"), body);
        }
        "verb" => {
            let target = line.split_once(' ').map_or("", |(_, target)| target);
            fields.insert(format!("{text} {target}"), body);
        }
        _ => {
            fields.insert(line, value.clone());
        }
    }
}

fn is_line(key: &str) -> bool {
    key.split_once(' ').is_some_and(|(verb, _)| VERBS.contains(&verb) || verb == PATCH)
}

fn step(value: &Value) -> Result<Step, String> {
    let fields = match value {
        Value::String(line) => {
            let mut fields = Map::new();
            fields.insert(line.clone(), Value::Null);
            fields
        }
        Value::Object(fields) => fields.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return Err(format!("no step: {value}")),
    };
    if let Some(wait) = fields.get("wait").and_then(Value::as_u64) {
        return Ok(Step::Wait(wait));
    }
    if let Some(name) = fields.get("collect").and_then(Value::as_str) {
        return Ok(Step::Collect(name.to_owned()));
    }
    if let Some(target) = fields.get("gone").and_then(Value::as_str) {
        return Ok(Step::Gone(target.to_owned()));
    }
    if let Some(kind) = fields.get("walk").and_then(Value::as_str) {
        return Ok(Step::Walk(kind.to_owned()));
    }
    let mut call = Call::default();
    for (key, value) in &fields {
        let text = || value.as_str().map(str::to_owned);
        match key.as_str() {
            "with" => call.with = Some(value.clone()),
            "raw" => call.raw = text(),
            "type" => call.content_type = text(),
            "accept" => call.accept = text(),
            "save" => call.save = text(),
            "open" => call.open = text(),
            "pad" => call.pad = value.as_u64().and_then(|pad| usize::try_from(pad).ok()).unwrap_or_default(),
            "vary" => {}
            "headers" => {
                let headers = value.as_object().into_iter().flatten();
                call.headers = headers
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                    .collect();
            }
            line if is_line(line) => {
                let (verb, target) = line.split_once(' ').unwrap_or_default();
                (call.verb, call.target) = (verb.to_owned(), target.trim().to_owned());
                call.body = (!value.is_null()).then(|| value.clone());
            }
            other => return Err(format!("what is {other:?} in a step?")),
        }
    }
    if call.verb.is_empty() { Err(format!("no request in {value}")) } else { Ok(Step::Request(Box::new(call))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_own_library_is_well_written() {
        let library = Library::own().expect("it is well written");
        assert!(library.shapes.len() >= 300);
    }

    #[test]
    fn cases_and_values_make_shapes() {
        let entry = json!({
            "do": [{"POST pv": "pv", "vary": true}, "GET pv/$n"],
            "cases": {"a": {"with": {"spec": null}}, "b": {"query": "dryRun=All"}},
            "each": {"kind": ["x", "y"]},
        });
        let shapes = shapes("s", &entry).expect("it is well written");
        let names: Vec<_> = shapes.iter().map(|shape| shape.name.as_str()).collect();
        assert_eq!(names, ["s.a.x", "s.a.y", "s.b.x", "s.b.y"]);
        let Step::Request(call) = &shapes[2].steps[0] else { panic!("a request") };
        assert_eq!((call.verb.as_str(), call.target.as_str()), ("POST", "pv?dryRun=All"));
        let Step::Request(call) = &shapes[0].steps[0] else { panic!("a request") };
        assert_eq!(call.with, Some(json!({"spec": null})));
    }
}
