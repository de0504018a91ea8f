//! Measures the time of writes and the memory of objects: `cargo run --release -p bindery-apiserver
//! --example measure [COUNT]`.

use bindery_apiserver::api::{Body, Settings};
use bindery_apiserver::{
    Answer, Api, Kind, Options, Request, RequestContext, Target, Verb, api::AnswerBody, api::PatchType,
};
use std::time::{Duration, Instant};

struct Bench {
    api: Api,
    seed: u128,
    spent: Duration,
}

impl Bench {
    fn send(&mut self, verb: Verb, plural: &str, name: &str, subresource: &str, body: String) -> Answer {
        let kind = Kind::of_path("", "v1", plural).expect("a served kind");
        let namespace = if kind.namespaced { "default".to_owned() } else { String::new() };
        let request = Request {
            verb,
            target: Target { kind, namespace, name: name.to_owned(), subresource: subresource.to_owned() },
            options: Options::default(),
            body: Body { bytes: body.into(), ..Body::default() },
            user_agent: "measure/1".to_owned(),
        };
        self.seed += 1;
        let context = RequestContext { now: jiff::Timestamp::now(), seed: self.seed << 40 };
        let start = Instant::now();
        let answer = self.api.handle(&context, &request);
        self.spent += start.elapsed();
        answer.unwrap_or_else(|status| panic!("{}", status.message))
    }

    fn report(&mut self, what: &str, count: usize) {
        let each = self.spent.as_secs_f64() * 1e6 / count as f64;
        println!("{what:<28} {each:7.1} us each, {:4} MiB resident", resident_mib());
        self.spent = Duration::ZERO;
    }
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let start = Instant::now();
    let context = RequestContext { now: jiff::Timestamp::now(), seed: 7 };
    let mut bench = Bench { api: Api::new(Settings::default(), &context), seed: 1, spent: Duration::ZERO };
    println!("an empty server starts in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let merge = Verb::Patch(PatchType::Merge);
    let mut revisions = Vec::with_capacity(count);
    for n in 0..count {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"volume-{n:06}"}},"spec":{{"capacity":{{"storage":"10Gi"}},"accessModes":["ReadWriteOnce"],"storageClassName":"fast","csi":{{"driver":"example.com","volumeHandle":"handle-{n:06}"}}}}}}"#
        );
        revisions.push(bench.send(Verb::Create, "persistentvolumes", "", "", body).revision);
    }
    bench.report("create a volume", count);
    for n in 0..count {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{{"name":"claim-{n:06}"}},"spec":{{"storageClassName":"fast","accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"10Gi"}}}}}}}}"#
        );
        bench.send(Verb::Create, "persistentvolumeclaims", "", "", body);
    }
    bench.report("create a claim", count);
    for (n, revision) in revisions.iter().enumerate() {
        let body = format!(
            r#"{{"metadata":{{"resourceVersion":"{revision}","annotations":{{"pv.kubernetes.io/bound-by-controller":"yes"}}}},"spec":{{"claimRef":{{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":"default","name":"claim-{n:06}","uid":"u","resourceVersion":"1"}}}}}}"#
        );
        bench.send(merge, "persistentvolumes", &format!("volume-{n:06}"), "", body);
    }
    bench.report("reserve a volume (patch)", count);
    for n in 0..count {
        bench.send(
            merge,
            "persistentvolumes",
            &format!("volume-{n:06}"),
            "status",
            r#"{"status":{"phase":"Bound"}}"#.to_owned(),
        );
    }
    bench.report("mark it bound (status)", count);
    for n in 0..count {
        let body = format!(
            r#"{{"metadata":{{"annotations":{{"pv.kubernetes.io/bind-completed":"yes"}}}},"spec":{{"volumeName":"volume-{n:06}"}}}}"#
        );
        bench.send(merge, "persistentvolumeclaims", &format!("claim-{n:06}"), "", body);
    }
    bench.report("bind a claim to it (patch)", count);
    for n in 0..count {
        let body =
            r#"{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"10Gi"}}}"#.to_owned();
        bench.send(merge, "persistentvolumeclaims", &format!("claim-{n:06}"), "status", body);
    }
    bench.report("mark the claim (status)", count);
    for _ in 0..1000 {
        bench.send(Verb::Get, "persistentvolumes", "volume-000000", "", String::new());
    }
    bench.report("get", 1000);
    let answer = bench.send(Verb::List, "persistentvolumes", "", "", String::new());
    bench.report("list all volumes", 1);
    if let AnswerBody::List(list) = answer.body {
        let bytes: usize = list.items.iter().map(bytes::Bytes::len).sum();
        println!("a bound volume takes {} bytes of JSON", bytes / list.items.len().max(1));
    }
}
