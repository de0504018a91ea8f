//! API servers side by side: a real one with etcd, and the embedded one, in memory and on disk. What is measured is the four
//! writes of a bind, by clients that decide nothing.

mod server;
mod wire;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;

use self::server::{Kind, Server};
use self::wire::{Endpoint, Meta, Wire};
use super::binder::{CLAIMS, VOLUMES, claim, volume};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many pairs of a volume and a claim are bound.
    #[arg(long, default_value_t = 3_000)]
    pub pairs: usize,
    /// How many connections bind at once.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// How often everything is measured; the table has the run of median speed.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// How many claims, and as many volumes, the embedded server's memory is measured with.
    #[arg(long, default_value_t = 100_000)]
    pub held: usize,
}

impl Options {
    /// The arguments that say the same.
    pub fn to_args(&self) -> Vec<String> {
        vec![
            format!("--pairs={}", self.pairs),
            format!("--connections={}", self.connections),
            format!("--rounds={}", self.rounds),
            format!("--held={}", self.held),
        ]
    }
}

fn say(what: &str) {
    eprintln!("bench: {what}");
}

struct Measured {
    kind: Kind,
    binds_a_second: f64,
    cpu_ms: f64,
    start: Duration,
}

/// Measures, and returns the tables.
pub fn measure(options: &Options, bindery: &Path) -> Result<String, String> {
    let runtime = Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    let mut all: Vec<Vec<Measured>> = Kind::ALL.map(|_| Vec::new()).into();
    for _ in 0..options.rounds.max(1) {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            say(&format!("{}: binding {} pairs", kind.name(), options.pairs));
            let measured = runtime.block_on(binds(options, kind, bindery))?;
            say(&format!("{}: {:.0} binds a second", kind.name(), measured.binds_a_second));
            all[place].push(measured);
        }
    }
    let mut page = String::from(
        "| API server | binds/s | to the real one | CPU ms a bind | start-up ms |\n|---|---|---|---|---|\n",
    );
    let medians: Vec<Measured> = all.into_iter().filter_map(median).collect();
    let real = medians.first().map_or(f64::NAN, |real| real.binds_a_second);
    for one in &medians {
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| {} | {:.0} | {:.2} | {:.2} | {} |",
            one.kind.name(),
            one.binds_a_second,
            one.binds_a_second / real,
            one.cpu_ms,
            one.start.as_millis()
        );
    }
    if options.held > 0 {
        say(&format!("{}: holding {} claims and as many volumes", Kind::Memory.name(), options.held));
        let mib = runtime.block_on(held(options, bindery))?;
        let _ = writeln!(page, "\n{} claims and as many volumes are held in {mib:.0} MiB.", options.held);
    }
    Ok(page)
}

fn median(mut all: Vec<Measured>) -> Option<Measured> {
    all.sort_by(|a, b| a.binds_a_second.total_cmp(&b.binds_a_second));
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| all.swap_remove(middle))
}

/// Makes pairs, then binds them, and measures the binding alone.
async fn binds(options: &Options, kind: Kind, bindery: &Path) -> Result<Measured, String> {
    let server = Server::start(kind, bindery).await?;
    let endpoint = Endpoint::of(&server.kubeconfig()).await?;
    let made = spread(options.connections, options.pairs, &endpoint, |mut wire, numbers| async move {
        let mut made = Vec::new();
        for n in numbers {
            made.push((n, wire.create(VOLUMES, &volume(n)).await?, wire.create(CLAIMS, &claim(n)).await?));
        }
        Ok((wire, made))
    })
    .await?;
    let (cpu, start) = (server.cpu_seconds(), Instant::now());
    let tasks = made.into_iter().map(|(mut wire, pairs)| {
        tokio::spawn(async move {
            for (n, volume, claim) in pairs {
                bind(&mut wire, n, volume, claim).await?;
            }
            Ok::<(), String>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.map_err(|error| error.to_string())??;
    }
    let (took, cpu) = (start.elapsed().as_secs_f64(), server.cpu_seconds() - cpu);
    let pairs = options.pairs as f64;
    Ok(Measured { kind, binds_a_second: pairs / took, cpu_ms: cpu * 1_000.0 / pairs, start: server.took_to_start() })
}

/// Spreads numbers over connections, and runs all of them at once.
async fn spread<T: Send + 'static, F: Future<Output = Result<T, String>> + Send + 'static>(
    connections: usize,
    count: usize,
    endpoint: &Endpoint,
    work: impl Fn(Wire, Vec<usize>) -> F,
) -> Result<Vec<T>, String> {
    let mut tasks = Vec::new();
    for first in 0..connections {
        let wire = endpoint.connect().await?;
        tasks.push(tokio::spawn(work(wire, (first..count).step_by(connections).collect())));
    }
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.map_err(|error| error.to_string())??);
    }
    Ok(done)
}

/// The four writes of a bind.
async fn bind(wire: &mut Wire, n: usize, volume: Meta, claim: Meta) -> Result<(), String> {
    let (volume_name, claim_name) = (format!("pv-{n:06}"), format!("c-{n:06}"));
    let (volume_path, claim_path) = (format!("{VOLUMES}/{volume_name}"), format!("{CLAIMS}/{claim_name}"));
    let by_us = "pv.kubernetes.io/bound-by-controller";
    let seen = |meta: &Meta, annotations: serde_json::Value| json!({"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations});
    let reserve = json!({
        "metadata": seen(&volume, json!({by_us: "yes"})),
        "spec": {"claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim_name,
            "uid": claim.uid, "resourceVersion": claim.resource_version,
        }},
    });
    let reserved = wire.patch(&volume_path, &reserve).await?;
    let mark = json!({"metadata": seen(&reserved, json!({})), "status": {"phase": "Bound"}});
    wire.patch(&format!("{volume_path}/status"), &mark).await?;
    let point = json!({
        "metadata": seen(&claim, json!({by_us: "yes", "pv.kubernetes.io/bind-completed": "yes"})),
        "spec": {"volumeName": volume_name},
    });
    let pointed = wire.patch(&claim_path, &point).await?;
    let status = json!({
        "metadata": seen(&pointed, json!({})),
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    });
    wire.patch(&format!("{claim_path}/status"), &status).await.map(drop)
}

/// How much memory the embedded server takes with so many claims and volumes, in MiB.
async fn held(options: &Options, bindery: &Path) -> Result<f64, String> {
    let server = Server::start(Kind::Memory, bindery).await?;
    let endpoint = Endpoint::of(&server.kubeconfig()).await?;
    spread(options.connections, options.held, &endpoint, |mut wire, numbers| async move {
        for n in numbers {
            wire.create(VOLUMES, &volume(n)).await?;
            wire.create(CLAIMS, &claim(n)).await?;
        }
        Ok(())
    })
    .await?;
    Ok(server.memory_mib())
}

/// Where a benchmark keeps its files, for as long as it runs.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bindery-bench-{}-{name}", std::process::id()))
}
