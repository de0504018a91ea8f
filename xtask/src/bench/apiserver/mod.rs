//! Compares API servers: a real one with etcd, and the embedded one, in memory and on disk. Clients
//! that decide nothing send the four writes of a bind.

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
    /// The number of pairs of a volume and a claim to bind.
    #[arg(long, default_value_t = 3_000)]
    pub pairs: usize,
    /// The number of concurrent connections.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// The number of rounds; the table shows the run of median speed.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// The number of claims, and of volumes, at which the embedded server's memory is measured.
    #[arg(long, default_value_t = 100_000)]
    pub held: usize,
}

impl Options {
    /// These options as arguments.
    pub fn to_args(&self) -> Vec<String> {
        vec![
            format!("--pairs={}", self.pairs),
            format!("--connections={}", self.connections),
            format!("--rounds={}", self.rounds),
            format!("--held={}", self.held),
        ]
    }
}

fn progress_line(what: &str) {
    eprintln!("bench: {what}");
}

struct Measured {
    kind: Kind,
    binds_per_second: f64,
    cpu_ms: f64,
    start: Duration,
}

/// Runs the measurements and returns the tables.
pub fn measure(options: &Options, bindery: &Path) -> Result<String, String> {
    let runtime = Runtime::new().map_err(|error| format!("cannot start the async runtime: {error}"))?;
    let mut all: Vec<Vec<Measured>> = Kind::ALL.map(|_| Vec::new()).into();
    for _ in 0..options.rounds.max(1) {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            progress_line(&format!("{}: binding {} pairs", kind.name(), options.pairs));
            let measured = runtime.block_on(binds(options, kind, bindery))?;
            progress_line(&format!("{}: {:.0} binds per second", kind.name(), measured.binds_per_second));
            all[place].push(measured);
        }
    }
    let mut page = String::from(
        "| API server | binds/s | to the real one | CPU ms a bind | start-up ms |\n|---|---|---|---|---|\n",
    );
    let medians: Vec<Measured> = all.into_iter().filter_map(median).collect();
    let real = medians.first().map_or(f64::NAN, |real| real.binds_per_second);
    for one in &medians {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {} | {:.0} | {:.2} | {:.2} | {} |",
            one.kind.name(),
            one.binds_per_second,
            one.binds_per_second / real,
            one.cpu_ms,
            one.start.as_millis()
        );
    }
    if options.held > 0 {
        progress_line(&format!("{}: {} claims and as many volumes", Kind::Memory.name(), options.held));
        let mib = runtime.block_on(held(options, bindery))?;
        let _ = writeln!(page, "\n{} claims and as many volumes are held in {mib:.0} MiB.", options.held);
    }
    Ok(page)
}

fn median(mut all: Vec<Measured>) -> Option<Measured> {
    all.sort_by(|a, b| a.binds_per_second.total_cmp(&b.binds_per_second));
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| all.swap_remove(middle))
}

/// Creates pairs, then binds them; only the binding is measured.
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
    Ok(Measured { kind, binds_per_second: pairs / took, cpu_ms: cpu * 1_000.0 / pairs, start: server.took_to_start() })
}

/// Distributes numbers over connections, and runs all connections concurrently.
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

/// The embedded server's memory with many claims and volumes, in MiB.
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

/// The benchmark's temporary folder.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bindery-bench-{}-{name}", std::process::id()))
}
