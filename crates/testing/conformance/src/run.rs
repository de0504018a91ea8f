//! Runs a shape on one server: sends its requests in order, and records the responses.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use json_patch::merge;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::endpoint::{Answer, Endpoint};
use crate::normalise::{Normaliser, drop_bookmarks};
use crate::notation::{Library, RequestSpec, Shape, Step};
use crate::rng::{Rng, hash};
use crate::values::Values;

/// The normalised responses to the requests of a run.
#[derive(Clone, Debug, Default)]
pub struct Transcript(pub Vec<Exchange>);

/// A request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request line.
    pub request: String,
    /// The response: status, some headers, body.
    pub answer: Value,
}

/// A shape with a seed, which determines its names and quantities.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The shape.
    pub shape: &'a Shape,
    /// The seed.
    pub seed: u64,
    /// Distinguishes the names of several runs on the same servers.
    pub series: &'a str,
    /// Multiplies all waits and the duration of watches.
    pub time_factor: u64,
}

/// The headers that are compared; others depend on the transport or the server.
const HEADERS: [&str; 4] = ["content-type", "retry-after", "allow", "location"];

/// How often to check that an object is deleted, and how many times.
const DELETED_POLL_INTERVAL: Duration = Duration::from_millis(100);
const DELETED_POLLS_MAX: u32 = 300;

/// Sizes in every notation of quantities, none below a byte.
const SIZES: [&str; 8] = ["1Gi", "500Mi", "2G", "1500M", "3e9", "1073741824", "0.5Gi", "4Ti"];
const MODES: [&str; 3] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"];
/// Characters that must be escaped in a URL.
const UNSAFE_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'#');
const WORDS: [&str; 6] = ["red", "blue", "Green-1", "a.b", "x_y", "0"];

impl Run<'_> {
    /// Executes the run.
    pub async fn on(self, server: &Endpoint, library: &Library) -> Transcript {
        let mut state = State {
            server,
            library,
            time_factor: self.time_factor,
            values: self.values(),
            normaliser: Normaliser::default(),
            watches: BTreeMap::new(),
            transcript: Transcript::default(),
        };
        let steps = self.steps(library);
        if self.needs_namespace(library, &steps) {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "$ns"}});
            let spec = RequestSpec {
                verb: "POST".to_owned(),
                target: "/api/v1/namespaces".to_owned(),
                body: Some(namespace),
                ..RequestSpec::default()
            };
            state.request(&spec).await;
        }
        for step in &steps {
            match step {
                Step::Request(spec) => state.request(spec).await,
                Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(*millis * self.time_factor)).await,
                Step::Collect(name) => state.collect(name).await,
                Step::Deleted(target) => state.wait_until_deleted(target).await,
                Step::Walk(_) => {}
            }
        }
        state.transcript
    }

    fn rng(self) -> Rng {
        Rng::from_text(&format!("{}/{}", self.shape.name, self.seed))
    }

    /// The steps, with random walks expanded.
    fn steps(self, library: &Library) -> Vec<Step> {
        let values = self.values();
        let spelled_out = |step: &Step| match step {
            Step::Walk(kind) => library.walk(&values.text(kind), &mut self.rng()),
            Step::Request(_) | Step::Wait(_) | Step::Collect(_) | Step::Deleted(_) => vec![step.clone()],
        };
        self.shape.steps.iter().flat_map(spelled_out).collect()
    }

    /// The initial variables. They depend only on the shape, the seed and the series.
    fn values(self) -> Values {
        let mut values = Values::default();
        let mut rng = self.rng();
        let name = format!("t{:07x}{}", hash(&format!("{}/{}", self.series, self.shape.name)) & 0xfff_ffff, self.seed);
        values.set("n", name.as_str());
        values.set("ns", format!("{name}-ns"));
        values.set("size", rng.pick(&SIZES));
        values.set("mode", rng.pick(&MODES));
        values.set("word", rng.pick(&WORDS));
        values.set("number", 1 + rng.below(60));
        for (name, value) in &self.shape.values {
            values.set(name, value.clone());
        }
        values
    }

    fn needs_namespace(self, library: &Library, steps: &[Step]) -> bool {
        let namespaced = |target: &str| {
            let target = self.values().text(target);
            let kind = target.split(['/', '?']).next().unwrap_or_default();
            let path = library.kinds.get(kind).and_then(Value::as_str).unwrap_or(target.as_str());
            path.contains("$ns") || path.contains("-ns/")
        };
        let is_namespaced = |step: &Step| match step {
            Step::Request(spec) => namespaced(&spec.target),
            Step::Wait(_) | Step::Collect(_) | Step::Deleted(_) | Step::Walk(_) => false,
        };
        steps.iter().any(is_namespaced)
    }
}

struct State<'a> {
    server: &'a Endpoint,
    library: &'a Library,
    time_factor: u64,
    values: Values,
    normaliser: Normaliser,
    watches: BTreeMap<String, (String, JoinHandle<Result<Answer, String>>)>,
    transcript: Transcript,
}

impl State<'_> {
    async fn request(&mut self, spec: &RequestSpec) {
        let path = self.path(&spec.target);
        let line = format!("{} {path}", spec.verb);
        let (method, content_type) = method(&spec.verb);
        let body = self.body(spec);
        if let Some(prefix) = body.as_deref().and_then(generate_name) {
            self.normaliser.expect_generated(&prefix);
        }
        let headers = self.headers(spec, content_type, body.is_some());
        let pending = self.server.send(method, &path, &headers, body.unwrap_or_default()).await;
        match (pending, &spec.open) {
            // An open watch is read concurrently with the next steps.
            (Ok(pending), Some(name)) => {
                self.watches.insert(name.clone(), (line, tokio::spawn(pending.finish())));
            }
            (Ok(pending), None) => {
                let answer = pending.finish().await;
                self.record(line, answer, spec.save.as_deref());
            }
            (Err(error), _) => self.record(line, Err(error), None),
        }
    }

    async fn collect(&mut self, name: &str) {
        if let Some((line, handle)) = self.watches.remove(name) {
            let answer = handle.await.unwrap_or_else(|error| Err(error.to_string()));
            self.record(line, answer, Some(name));
        }
    }

    /// Polls until the object is deleted; only the last response is recorded.
    async fn wait_until_deleted(&mut self, target: &str) {
        let path = self.path(target);
        let headers = self.headers(&RequestSpec::default(), "", false);
        let mut polls = 0;
        let answer = loop {
            let answer = match self.server.send(Method::GET, &path, &headers, Vec::new()).await {
                Ok(pending) => pending.finish().await,
                Err(error) => Err(error),
            };
            polls += 1;
            match &answer {
                Ok(found) if found.status == StatusCode::OK && polls < DELETED_POLLS_MAX => {}
                _ => break answer,
            }
            tokio::time::sleep(DELETED_POLL_INTERVAL).await;
        };
        self.record(format!("deleted {path}"), answer, None);
    }

    fn record(&mut self, request: String, answer: Result<Answer, String>, save: Option<&str>) {
        let answer = match answer {
            Ok(answer) => {
                let mut body = decode(&answer);
                if request.contains("allowWatchBookmarks=true") {
                    drop_bookmarks(&mut body);
                }
                self.values.set("last", body.clone());
                if let Some(name) = save.filter(|_| answer.status.is_success()) {
                    self.values.set(name, body.clone());
                }
                json!({"status": answer.status.as_u16(), "headers": headers_of(&answer.headers), "body": body})
            }
            Err(error) => json!({"failed": error}),
        };
        let answer = self.normaliser.normalise(answer);
        self.transcript.0.push(Exchange { request, answer });
    }

    /// A path with its query, where a kind's short name is replaced.
    fn path(&self, target: &str) -> String {
        let target = with_longer_timeout(&self.values.text(target), self.time_factor);
        let end = target.find(['/', '?']).unwrap_or(target.len());
        let path = match self.library.kinds.get(&target[..end]).and_then(Value::as_str) {
            Some(collection) => format!("{}{}", self.values.text(collection), &target[end..]),
            None => target,
        };
        utf8_percent_encode(&path, UNSAFE_IN_PATH).to_string()
    }

    fn body(&self, spec: &RequestSpec) -> Option<Vec<u8>> {
        if let Some(raw) = &spec.raw {
            return Some(self.values.text(raw).into_bytes());
        }
        let body = spec.body.as_ref()?;
        let mut body = match (body.as_str(), self.values.value(body)) {
            // A remaining text is the name of a template.
            (Some(_), Value::String(template)) => self.values.value(self.library.objects.get(&template)?),
            (_, object) => object,
        };
        if let Some(with) = &spec.with {
            merge(&mut body, &self.values.value(with));
        }
        if spec.pad > 0 {
            merge(&mut body, &json!({"metadata": {"annotations": {"pad": "x".repeat(spec.pad)}}}));
        }
        Some(body.to_string().into_bytes())
    }

    fn headers(&self, spec: &RequestSpec, content_type: &str, has_body: bool) -> Vec<(String, String)> {
        let accept = match spec.accept.as_deref() {
            None => "application/json",
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("partial") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("partial-list") => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some(other) => other,
        };
        let mut headers = vec![("accept".to_owned(), accept.to_owned())];
        match spec.content_type.as_deref() {
            Some("none") => {}
            Some(other) => headers.push(("content-type".to_owned(), other.to_owned())),
            None if has_body => headers.push(("content-type".to_owned(), content_type.to_owned())),
            None => {}
        }
        if !spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            headers.push(("user-agent".to_owned(), "conformance/1".to_owned()));
        }
        headers.extend(spec.headers.iter().map(|(name, value)| (name.clone(), self.values.text(value))));
        headers
    }
}

/// Multiplies `timeoutSeconds` of a path.
fn with_longer_timeout(path: &str, times: u64) -> String {
    const SECONDS: &str = "timeoutSeconds=";
    let Some(at) = path.find(SECONDS).map(|at| at + SECONDS.len()) else { return path.to_owned() };
    let digits = path[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(path.len() - at);
    match path[at..at + digits].parse::<u64>() {
        Ok(seconds) => format!("{}{}{}", &path[..at], seconds.saturating_mul(times), &path[at + digits..]),
        Err(_) => path.to_owned(),
    }
}

/// The method and the content type of a verb.
fn method(verb: &str) -> (Method, &'static str) {
    let json = "application/json";
    match verb {
        "MERGE" => (Method::PATCH, "application/merge-patch+json"),
        "STRATEGIC" => (Method::PATCH, "application/strategic-merge-patch+json"),
        "JSONPATCH" => (Method::PATCH, "application/json-patch+json"),
        "APPLY" => (Method::PATCH, "application/apply-patch+yaml"),
        other => (Method::from_bytes(other.as_bytes()).unwrap_or(Method::GET), json),
    }
}

fn generate_name(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body.pointer("/metadata/generateName")?.as_str().map(str::to_owned)
}

/// A body as JSON, as decoded YAML, as a list of `events`, or as text.
fn decode(answer: &Answer) -> Value {
    if answer.body.is_empty() {
        return Value::Null;
    }
    let text = String::from_utf8_lossy(&answer.body);
    let is_yaml = answer.headers.get("content-type").is_some_and(|kind| kind.as_bytes().ends_with(b"yaml"));
    if is_yaml && let Ok(value) = serde_saphyr::from_str::<Value>(&text) {
        return json!({"yaml": value});
    }
    if let Ok(value) = serde_json::from_str(&text) {
        let is_event = |value: &Value| value.get("type").is_some() && value.get("object").is_some();
        return if is_event(&value) { json!({"events": [value]}) } else { value };
    }
    match text.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>() {
        Ok(events) => json!({"events": events}),
        Err(_) => Value::String(text.into_owned()),
    }
}

fn headers_of(headers: &HeaderMap) -> Value {
    let mut out = Map::new();
    for name in HEADERS {
        if let Some(value) = headers.get(name) {
            out.insert(name.to_owned(), Value::String(String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    let warnings: Vec<_> = headers.get_all("warning").iter().map(|w| String::from_utf8_lossy(w.as_bytes())).collect();
    if !warnings.is_empty() {
        out.insert("warning".to_owned(), json!(warnings));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::with_longer_timeout;

    #[test]
    fn only_timeout_seconds_is_multiplied() {
        assert_eq!(with_longer_timeout("cm?timeoutSeconds=2&watch=true", 4), "cm?timeoutSeconds=8&watch=true");
        assert_eq!(with_longer_timeout("cm?watch=true&timeoutSeconds=1", 16), "cm?watch=true&timeoutSeconds=16");
        for same in ["cm?limit=2", "cm?timeoutSeconds=", "cm?timeoutSeconds=x"] {
            assert_eq!(with_longer_timeout(same, 4), same);
        }
    }
}
