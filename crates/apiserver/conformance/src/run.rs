//! One run of a shape on one server: requests are made of what is written, sent in order, and their answers kept.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::dice::{Dice, hash};
use crate::endpoint::{Answer, Endpoint};
use crate::normalise::{Normaliser, drop_bookmarks};
use crate::notation::{Call, Library, Shape, Step};
use crate::values::{Values, overlay};

/// What a server answered to each request of a run, without what must differ between servers.
#[derive(Clone, Debug, Default)]
pub struct Transcript(pub Vec<Exchange>);

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request's line, for people.
    pub request: String,
    /// The answer: status, some headers, body.
    pub answer: Value,
}

/// A shape with a seed: names and quantities of its own.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What is done.
    pub shape: &'a Shape,
    /// Which variant.
    pub seed: u64,
    /// Keeps apart the names of runs on the same servers.
    pub series: &'a str,
    /// So many times as long as is written does it wait, and do watches last.
    pub pace: u64,
}

/// Headers that are compared; all others are the transport's, or each server's own.
const HEADERS: [&str; 4] = ["content-type", "retry-after", "allow", "location"];

/// How often, and how many times, an object is looked for that is to go.
const GONE_ASKED_EVERY: Duration = Duration::from_millis(100);
const GONE_ASKED_MAX: u32 = 300;

/// Sizes as people write them: every notation of quantities, none below a byte.
const SIZES: [&str; 8] = ["1Gi", "500Mi", "2G", "1500M", "3e9", "1073741824", "0.5Gi", "4Ti"];
const MODES: [&str; 3] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"];
const WORDS: [&str; 6] = ["red", "blue", "Green-1", "a.b", "x_y", "0"];

impl Run<'_> {
    /// Carries it out.
    pub async fn on(self, server: &Endpoint, library: &Library) -> Transcript {
        let mut state = State {
            server,
            library,
            pace: self.pace,
            values: self.values(),
            normaliser: Normaliser::default(),
            watches: BTreeMap::new(),
            transcript: Transcript::default(),
        };
        let steps = self.steps(library);
        if self.needs_namespace(library, &steps) {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "$ns"}});
            let call = Call {
                verb: "POST".to_owned(),
                target: "/api/v1/namespaces".to_owned(),
                body: Some(namespace),
                ..Call::default()
            };
            state.request(&call).await;
        }
        for step in &steps {
            match step {
                Step::Request(call) => state.request(call).await,
                Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(*millis * self.pace)).await,
                Step::Collect(name) => state.collect(name).await,
                Step::Gone(target) => state.wait_until_gone(target).await,
                Step::Walk(_) => {}
            }
        }
        state.transcript
    }

    fn dice(self) -> Dice {
        Dice::of_text(&format!("{}/{}", self.shape.name, self.seed))
    }

    /// What is done, with walks spelled out.
    fn steps(self, library: &Library) -> Vec<Step> {
        let values = self.values();
        let spelled_out = |step: &Step| match step {
            Step::Walk(kind) => library.walk(&values.text(kind), &mut self.dice()),
            Step::Request(_) | Step::Wait(_) | Step::Collect(_) | Step::Gone(_) => vec![step.clone()],
        };
        self.shape.steps.iter().flat_map(spelled_out).collect()
    }

    /// The variables that a run begins with. They depend on nothing but the shape, the seed and the series.
    fn values(self) -> Values {
        let mut values = Values::default();
        let mut dice = self.dice();
        let name = format!("t{:07x}{}", hash(&format!("{}/{}", self.series, self.shape.name)) & 0xfff_ffff, self.seed);
        values.set("n", name.as_str());
        values.set("ns", format!("{name}-ns"));
        values.set("size", dice.of(&SIZES));
        values.set("mode", dice.of(&MODES));
        values.set("word", dice.of(&WORDS));
        values.set("number", 1 + dice.below(60));
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
        let in_it = |step: &Step| match step {
            Step::Request(call) => namespaced(&call.target),
            Step::Wait(_) | Step::Collect(_) | Step::Gone(_) | Step::Walk(_) => false,
        };
        steps.iter().any(in_it)
    }
}

struct State<'a> {
    server: &'a Endpoint,
    library: &'a Library,
    pace: u64,
    values: Values,
    normaliser: Normaliser,
    watches: BTreeMap<String, (String, JoinHandle<Result<Answer, String>>)>,
    transcript: Transcript,
}

impl State<'_> {
    async fn request(&mut self, call: &Call) {
        let path = self.path(&call.target);
        let line = format!("{} {path}", call.verb);
        let (method, content_type) = method(&call.verb);
        let body = self.body(call);
        if let Some(prefix) = body.as_deref().and_then(generate_name) {
            self.normaliser.expect_generated(&prefix);
        }
        let headers = self.headers(call, content_type, body.is_some());
        let begun = self.server.begin(method, &path, &headers, body.unwrap_or_default()).await;
        match (begun, &call.open) {
            // A watch that has begun is read beside what follows.
            (Ok(begun), Some(name)) => {
                self.watches.insert(name.clone(), (line, tokio::spawn(begun.finish())));
            }
            (Ok(begun), None) => {
                let answer = begun.finish().await;
                self.keep(line, answer, call.save.as_deref());
            }
            (Err(error), _) => self.keep(line, Err(error), None),
        }
    }

    async fn collect(&mut self, name: &str) {
        if let Some((line, handle)) = self.watches.remove(name) {
            let answer = handle.await.unwrap_or_else(|error| Err(error.to_string()));
            self.keep(line, answer, Some(name));
        }
    }

    /// Asks again and again; only the last answer is kept.
    async fn wait_until_gone(&mut self, target: &str) {
        let path = self.path(target);
        let headers = self.headers(&Call::default(), "", false);
        let mut asked = 0;
        let answer = loop {
            let answer = match self.server.begin(Method::GET, &path, &headers, Vec::new()).await {
                Ok(begun) => begun.finish().await,
                Err(error) => Err(error),
            };
            asked += 1;
            match &answer {
                Ok(found) if found.status == StatusCode::OK && asked < GONE_ASKED_MAX => {}
                _ => break answer,
            }
            tokio::time::sleep(GONE_ASKED_EVERY).await;
        };
        self.keep(format!("gone {path}"), answer, None);
    }

    fn keep(&mut self, request: String, answer: Result<Answer, String>, save: Option<&str>) {
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

    /// A path with its query, from a kind's short name or as it stands.
    fn path(&self, target: &str) -> String {
        let target = lasting(&self.values.text(target), self.pace);
        let end = target.find(['/', '?']).unwrap_or(target.len());
        let path = match self.library.kinds.get(&target[..end]).and_then(Value::as_str) {
            Some(collection) => format!("{}{}", self.values.text(collection), &target[end..]),
            None => target,
        };
        path.chars()
            .map(|c| if c.is_ascii_graphic() && !"\"<>\\^`{|}#".contains(c) { c.to_string() } else { escaped(c) })
            .collect()
    }

    fn body(&self, call: &Call) -> Option<Vec<u8>> {
        if let Some(raw) = &call.raw {
            return Some(self.values.text(raw).into_bytes());
        }
        let body = call.body.as_ref()?;
        let mut body = match (body.as_str(), self.values.value(body)) {
            // What is still a text after that is the name of a template.
            (Some(_), Value::String(template)) => self.values.value(self.library.objects.get(&template)?),
            (_, object) => object,
        };
        if let Some(with) = &call.with {
            overlay(&mut body, &self.values.value(with));
        }
        if call.pad > 0 {
            overlay(&mut body, &json!({"metadata": {"annotations": {"pad": "x".repeat(call.pad)}}}));
        }
        Some(body.to_string().into_bytes())
    }

    fn headers(&self, call: &Call, content_type: &str, has_body: bool) -> Vec<(String, String)> {
        let accept = match call.accept.as_deref() {
            None => "application/json",
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("partial") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("partial-list") => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some(other) => other,
        };
        let mut headers = vec![("accept".to_owned(), accept.to_owned())];
        match call.content_type.as_deref() {
            Some("none") => {}
            Some(other) => headers.push(("content-type".to_owned(), other.to_owned())),
            None if has_body => headers.push(("content-type".to_owned(), content_type.to_owned())),
            None => {}
        }
        if !call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            headers.push(("user-agent".to_owned(), "conformance/1".to_owned()));
        }
        headers.extend(call.headers.iter().map(|(name, value)| (name.clone(), self.values.text(value))));
        headers
    }
}

/// The same path, where what lasts so many seconds lasts so many times longer.
fn lasting(path: &str, times: u64) -> String {
    const SECONDS: &str = "timeoutSeconds=";
    let Some(at) = path.find(SECONDS).map(|at| at + SECONDS.len()) else { return path.to_owned() };
    let digits = path[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(path.len() - at);
    match path[at..at + digits].parse::<u64>() {
        Ok(seconds) => format!("{}{}{}", &path[..at], seconds.saturating_mul(times), &path[at + digits..]),
        Err(_) => path.to_owned(),
    }
}

/// The method and the content type that a verb stands for.
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

fn escaped(c: char) -> String {
    c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A body as JSON where it is, or as what its YAML says; a stream of them as `events`; else as text.
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
    use super::lasting;

    #[test]
    fn what_lasts_longer_is_what_says_how_long() {
        assert_eq!(lasting("cm?timeoutSeconds=2&watch=true", 4), "cm?timeoutSeconds=8&watch=true");
        assert_eq!(lasting("cm?watch=true&timeoutSeconds=1", 16), "cm?watch=true&timeoutSeconds=16");
        for same in ["cm?limit=2", "cm?timeoutSeconds=", "cm?timeoutSeconds=x"] {
            assert_eq!(lasting(same, 4), same);
        }
    }
}
