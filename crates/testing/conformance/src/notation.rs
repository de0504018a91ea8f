//! The notation of shapes, and its parser.
//!
//! A file maps names to shapes. A shape is a list of steps, or `{do: steps, cases: …, each: …,
//! alone: true, controllers: true, seeds: 2}`:
//!
//! - A step is a request line (`GET pvc/$n`), or a map with a request line and a body (`POST pvc:
//!   body`) and further fields. The line starts with a method or one of the patch types `MERGE`,
//!   `STRATEGIC`, `JSONPATCH`, `APPLY`, followed by a path, or by a kind's short name
//!   (`shapes/kinds.yaml`) with an object's name, a subresource and a query.
//! - The body is an object, the name of a template in `shapes/objects.yaml`, or a variable such as
//!   `$last`.
//! - Further fields: `with` (a merge patch for the body), `raw` (a body as text), `type` (content
//!   type), `accept`, `headers`, `save` (a variable for a successful response; `$last` always has
//!   it), `open` (a watch that stays open during the next steps until `collect`), `pad` (adds an
//!   annotation with so many bytes).
//! - `wait: 500` waits that many milliseconds for a server's caches. `{collect: w}` ends an open
//!   watch. `{deleted: pvc/$n}` waits until the object is deleted. `{walk: pvc}` sends random
//!   requests ([`walk`]).
//! - `cases` creates one shape per case: the case is merged into the steps with `vary: true`, and
//!   its `query` is appended.
//! - `each: {kind: [pvc, pv]}` creates one shape per value, with the variable set.

use std::path::Path;

use json_patch::merge;
use serde_json::{Map, Value};

use crate::rng::Rng;
use crate::walk;

/// A named sequence of requests.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name, which is unique.
    pub name: String,
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// Its own variables, from `each`.
    pub values: Vec<(String, Value)>,
    /// Whether it must not run concurrently with others.
    pub alone: bool,
    /// The number of runs.
    pub seeds: u64,
    /// Whether it depends on the garbage collector or the namespace controller. kube-apiserver
    /// needs kube-controller-manager for these.
    pub controllers: bool,
}

/// A step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request.
    Request(Box<RequestSpec>),
    /// Wait for some milliseconds.
    Wait(u64),
    /// End the watch that was opened under this name.
    Collect(String),
    /// Wait until an object is deleted.
    Deleted(String),
    /// Random requests for objects of a kind.
    Walk(String),
}

/// A request as written, before variables are replaced.
#[derive(Clone, Debug, Default)]
pub struct RequestSpec {
    /// The method, or a patch type.
    pub verb: String,
    /// A path, or a kind's short name and the rest of the path.
    pub target: String,
    /// An object, a template's name, or a variable.
    pub body: Option<Value>,
    /// Merged into the body.
    pub with: Option<Value>,
    /// The body as text.
    pub raw: Option<String>,
    /// The content type, if it is not that of the verb.
    pub content_type: Option<String>,
    /// The accepted media type, if it is not JSON.
    pub accept: Option<String>,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// The variable for the response.
    pub save: Option<String>,
    /// The name under which the response is collected later.
    pub open: Option<String>,
    /// The size of an annotation that makes the body large.
    pub pad: usize,
}

/// The contents of all files.
pub struct Library {
    /// All shapes, by name.
    pub shapes: Vec<Shape>,
    /// Templates of objects, by name.
    pub objects: Map<String, Value>,
    /// Paths of collections, by short name.
    pub kinds: Map<String, Value>,
    /// The patches of random walks, by short name.
    pub changes: Map<String, Value>,
}

const VERBS: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "HEAD", "MERGE", "STRATEGIC", "JSONPATCH", "APPLY"];
/// Files that contain something else.
const OTHER_FILES: [&str; 3] = ["objects", "kinds", "changes"];
const PATCH: &str = "PATCH";

impl Library {
    /// Reads a directory of shapes.
    pub fn read(directory: &Path) -> Result<Library, String> {
        let mut library = Library {
            shapes: Vec::new(),
            objects: map(read_yaml(&directory.join("objects.yaml"))?)?,
            kinds: map(read_yaml(&directory.join("kinds.yaml"))?)?,
            changes: map(read_yaml(&directory.join("changes.yaml"))?)?,
        };
        let entries = std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if file.extension().is_some_and(|ending| ending == "yaml") && !OTHER_FILES.contains(&stem) {
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
            Some(pair) => Err(format!("duplicate shape {}", pair[0].name)),
            None => Ok(library),
        }
    }

    /// Rejects unknown names: all servers would give the same error, and nothing would be tested.
    fn check(&self, shape: &Shape) -> Result<(), String> {
        for step in &shape.steps {
            let Step::Request(spec) = step else { continue };
            let kind = spec.target.split(['/', '?']).next().unwrap_or_default();
            if !spec.target.starts_with(['/', '$']) && !self.kinds.contains_key(kind) {
                return Err(format!("unknown kind {kind:?}"));
            }
            match &spec.body {
                Some(Value::String(name)) if !name.starts_with('$') && !self.objects.contains_key(name) => {
                    return Err(format!("unknown template {name:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The steps of a walk.
    pub fn walk(&self, kind: &str, rng: &mut Rng) -> Vec<Step> {
        let changes = self.changes.get(kind).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let steps = walk::steps(kind, changes, rng);
        steps.iter().map(|value| step(value).expect("walks have valid steps")).collect()
    }

    /// The library of this crate.
    pub fn bundled() -> Result<Library, String> {
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

/// Parses an entry of a file: a shape, or one for each of its cases and values.
fn shapes(name: &str, entry: &Value) -> Result<Vec<Shape>, String> {
    let of_shape = |error| format!("{name}: {error}");
    let steps = entry.get("do").unwrap_or(entry);
    let steps = steps.as_array().ok_or_else(|| of_shape("it has no steps".to_owned()))?;
    let mut expanded = Vec::new();
    match entry.get("cases").and_then(Value::as_object) {
        None => expanded.push((name.to_owned(), varied(steps, &Value::Null))),
        Some(cases) => {
            expanded.extend(cases.iter().map(|(case, vary)| (format!("{name}.{case}"), varied(steps, vary))))
        }
    }
    let mut shapes = Vec::new();
    for (name, steps) in expanded {
        let shape = Shape {
            steps: steps.iter().map(step).collect::<Result<_, _>>().map_err(|error| format!("{name}: {error}"))?,
            name,
            values: Vec::new(),
            alone: entry.get("alone").is_some_and(|alone| alone == &Value::Bool(true)),
            controllers: entry.get("controllers").is_some_and(|controllers| controllers == &Value::Bool(true)),
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

/// The number of runs, unless the shape sets it.
const DEFAULT_SEEDS: u64 = 2;

/// Merges a case into the steps that vary.
fn varied(steps: &[Value], case: &Value) -> Vec<Value> {
    let vary = |step: &Value| {
        let mut step = step.clone();
        if step.get("vary").is_some_and(|vary| vary == &Value::Bool(true))
            && let Value::Object(fields) = &mut step
            && let Value::Object(case) = case
        {
            for (field, value) in case {
                match field.as_str() {
                    "query" | "body" | "verb" => change_request_line(fields, field, value),
                    // A case adds to the merge patch of the step.
                    "with" => merge_with(fields, value),
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

fn merge_with(fields: &mut Map<String, Value>, patch: &Value) {
    let with = fields.entry("with").or_insert_with(|| Value::Object(Map::new()));
    // Unlike in a merge patch, nulls must be kept.
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
        (base, patch) => merge(base, patch),
    }
}

/// Changes the query, the verb or the body of a request line, which is a key of the step.
fn change_request_line(fields: &mut Map<String, Value>, field: &str, value: &Value) {
    let Some(line) = fields.keys().find(|key| is_request_line(key)).cloned() else { return };
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

fn is_request_line(key: &str) -> bool {
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
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(format!("not a step: {value}"));
        }
    };
    if let Some(wait) = fields.get("wait").and_then(Value::as_u64) {
        return Ok(Step::Wait(wait));
    }
    if let Some(name) = fields.get("collect").and_then(Value::as_str) {
        return Ok(Step::Collect(name.to_owned()));
    }
    if let Some(target) = fields.get("deleted").and_then(Value::as_str) {
        return Ok(Step::Deleted(target.to_owned()));
    }
    if let Some(kind) = fields.get("walk").and_then(Value::as_str) {
        return Ok(Step::Walk(kind.to_owned()));
    }
    let mut spec = RequestSpec::default();
    for (key, value) in &fields {
        let text = || value.as_str().map(str::to_owned);
        match key.as_str() {
            "with" => spec.with = Some(value.clone()),
            "raw" => spec.raw = text(),
            "type" => spec.content_type = text(),
            "accept" => spec.accept = text(),
            "save" => spec.save = text(),
            "open" => spec.open = text(),
            "pad" => spec.pad = value.as_u64().and_then(|pad| usize::try_from(pad).ok()).unwrap_or_default(),
            "vary" => {}
            "headers" => {
                let headers = value.as_object().into_iter().flatten();
                spec.headers = headers
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                    .collect();
            }
            line if is_request_line(line) => {
                let (verb, target) = line.split_once(' ').unwrap_or_default();
                (spec.verb, spec.target) = (verb.to_owned(), target.trim().to_owned());
                spec.body = (!value.is_null()).then(|| value.clone());
            }
            other => return Err(format!("unknown field {other:?} in a step")),
        }
    }
    if spec.verb.is_empty() { Err(format!("no request in {value}")) } else { Ok(Step::Request(Box::new(spec))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bundled_library_is_valid() {
        let library = Library::bundled().expect("valid shapes");
        assert!(library.shapes.len() >= 300);
    }

    #[test]
    fn cases_and_values_are_expanded_into_shapes() {
        let entry = json!({
            "do": [{"POST pv": "pv", "vary": true}, "GET pv/$n"],
            "cases": {"a": {"with": {"spec": null}}, "b": {"query": "dryRun=All"}},
            "each": {"kind": ["x", "y"]},
        });
        let shapes = shapes("s", &entry).expect("valid shapes");
        let names: Vec<_> = shapes.iter().map(|shape| shape.name.as_str()).collect();
        assert_eq!(names, ["s.a.x", "s.a.y", "s.b.x", "s.b.y"]);
        let Step::Request(spec) = &shapes[2].steps[0] else { panic!("a request") };
        assert_eq!((spec.verb.as_str(), spec.target.as_str()), ("POST", "pv?dryRun=All"));
        let Step::Request(spec) = &shapes[0].steps[0] else { panic!("a request") };
        assert_eq!(spec.with, Some(json!({"spec": null})));
    }
}
