//! One measurement: a new API server, a scenario, and one binder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bindery_test_cluster::TestCluster;
use kube::Client;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::cluster::{
    CLAIMS, Writes, canaries, claim, client, create, create_available, create_classes, volume, writes,
};
use super::contender::{Contender, Programs};
use super::process::{Memory, cpu_seconds, memory};
use super::scenario::Setup;
use super::witness::{Sight, Witness};
use super::{cluster, delay, progress_line};

/// The maximum time for a binder to start.
const UP_WITHIN: Duration = Duration::from_secs(60);
/// The pause after the binder has started, before the measurement.
const CALM: Duration = Duration::from_secs(3);
/// If no claim becomes Bound for this long, none will. Longer than a binder's resync of 15 seconds.
const TIMEOUT: Duration = Duration::from_secs(25);
/// The pause before a binder's memory is read: long enough for a resync.
const MEMORY_AFTER: Duration = Duration::from_secs(20);
/// The number of pairs at which memory is measured.
pub const MEMORY_PAIRS: usize = 10_000;

/// The measurements.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The scenario.
    pub scenario: String,
    /// The binder.
    pub contender: Contender,
    /// The number of claims.
    pub claims: usize,
    /// The number of claims that became Bound.
    pub bound: usize,
    /// The time from the start (of the binder or of the creation of claims) to the last claim
    /// Bound.
    pub seconds: f64,
    /// Claims per second, from the binder's first write if the claims existed before it, otherwise
    /// from the start.
    pub per_second: f64,
    /// Processor time in milliseconds per claim.
    pub cpu_ms: f64,
    /// Successful and rejected writes per claim.
    pub writes: Writes,
    /// The binder's memory at the end.
    pub memory: Memory,
    /// The objects it created, if pods' claims are measured.
    pub made: Option<Made>,
}

/// The objects created for pods.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// Claims at the end, without the canary.
    pub claims: usize,
    /// Events at the end.
    pub events: usize,
    /// The maximum number of events about one object.
    pub events_max: u64,
}

/// Measures one binder in one scenario.
pub fn bind(runtime: &Runtime, setup: &Setup, contender: Contender, programs: &Programs) -> Result<Measured, String> {
    let progress = |what: &str| progress_line(&format!("{}: {}: {what}", setup.name, contender.name()));
    progress(&format!("creating {} volumes and {} claims", setup.volumes, setup.claims));
    let cluster = TestCluster::start()?;
    let kubeconfig = runtime.block_on(kubeconfig(&cluster, setup.delay))?;
    let client = runtime.block_on(client(cluster.kubeconfig()))?;
    let volumes = (0..setup.volumes).map(volume).collect();
    let (path, asked): (_, Vec<_>) = match setup.by_pods {
        true => (cluster::PODS, (0..setup.claims).map(cluster::pod).collect()),
        false => (CLAIMS, (0..setup.claims).map(claim).collect()),
    };
    runtime.block_on(async {
        create_classes(&client).await?;
        if setup.is_cold {
            create(&client, cluster::VOLUMES, volumes).await?;
            create(&client, path, asked.clone()).await
        } else {
            let (volume, claim) = canaries();
            create_available(&client, volumes).await?;
            create_available(&client, vec![volume]).await?;
            create(&client, CLAIMS, vec![claim]).await
        }
    })?;
    let mut witness = runtime.block_on(Witness::start(&client))?;
    progress("starting");
    let mut before = runtime.block_on(writes(&client))?;
    let mut start = Instant::now();
    let mut running = contender.start(&cluster, &kubeconfig, programs, setup.by_pods)?;
    let pid = running.pid();
    let mut cpu_before = 0.0;
    let seen = runtime.block_on(async {
        if !setup.is_cold {
            witness.canary(UP_WITHIN).await?;
            tokio::time::sleep(CALM).await;
            before = writes(&client).await?;
            cpu_before = cpu_seconds(pid);
            start = Instant::now();
            let client = client.clone();
            tokio::spawn(async move { create(&client, path, asked).await.inspect_err(|error| progress_line(error)) });
        }
        let step = (setup.claims / 4).max(1);
        let report = |bound| {
            if bound % step == 0 {
                progress(&format!("{bound} bound after {:.1} s", start.elapsed().as_secs_f64()));
            }
        };
        Ok::<Sight, String>(witness.wait(setup.claims, TIMEOUT, pid, report).await)
    });
    let seen = seen.map_err(|error| format!("{error}; its last words:\n{}", log_tail(&running.log())))?;
    if let Some(status) = running.ended() {
        return Err(format!("{} ended ({status}):\n{}", running.name(), log_tail(&running.log())));
    }
    let after = runtime.block_on(writes(&client))?;
    let made = setup.by_pods.then(|| runtime.block_on(made(&client))).transpose()?;
    let memory = memory(pid);
    keep_log(&setup.name, contender, running.log_file());
    running.kill()?;
    let from = if setup.is_cold { seen.first } else { start };
    let each = 1.0 / seen.bound.max(1) as f64;
    Ok(Measured {
        scenario: setup.name.clone(),
        contender,
        claims: setup.claims,
        bound: seen.bound,
        seconds: (seen.last - start).as_secs_f64(),
        per_second: seen.bound as f64 / (seen.last - from).as_secs_f64().max(1e-9),
        cpu_ms: (seen.cpu - cpu_before) * 1_000.0 * each,
        writes: Writes { done: (after.done - before.done) * each, refused: (after.refused - before.refused) * each },
        memory,
        made,
    })
}

/// Counts the objects created for pods.
async fn made(client: &Client) -> Result<Made, String> {
    // Events are written asynchronously; the pause gives the last ones time to arrive.
    tokio::time::sleep(CALM).await;
    let claims = cluster::list(client, CLAIMS).await?;
    let events = cluster::list(client, cluster::EVENTS).await?;
    let mut about: BTreeMap<String, u64> = BTreeMap::new();
    for event in &events {
        *about.entry(event["involvedObject"]["uid"].to_string()).or_default() += event["count"].as_u64().unwrap_or(1);
    }
    let is_canary = |claim: &&Value| claim["metadata"]["name"] == cluster::CANARY;
    let claims = claims.len() - claims.iter().filter(is_canary).count();
    Ok(Made { claims, events: events.len(), events_max: about.values().max().copied().unwrap_or_default() })
}

/// Measures the memory of binders that start on bound pairs, one binder after the other.
pub fn memory_of(
    runtime: &Runtime,
    contenders: &[Contender],
    programs: &Programs,
) -> Result<Vec<(Contender, Memory)>, String> {
    progress_line(&format!("mem: creating and binding {MEMORY_PAIRS} pairs"));
    let cluster = TestCluster::start()?;
    let client = runtime.block_on(client(cluster.kubeconfig()))?;
    let witness = runtime.block_on(async {
        create_classes(&client).await?;
        create(&client, cluster::VOLUMES, (0..MEMORY_PAIRS).map(volume).collect()).await?;
        create(&client, CLAIMS, (0..MEMORY_PAIRS).map(claim).collect()).await?;
        Witness::start(&client).await
    })?;
    let mut baseline = Contender::Baseline.start(&cluster, cluster.kubeconfig(), programs, false)?;
    let report = |bound| {
        if bound % 2_000 == 0 {
            progress_line(&format!("mem: {bound} bound"));
        }
    };
    let seen = runtime.block_on(witness.wait(MEMORY_PAIRS, TIMEOUT, baseline.pid(), report));
    baseline.kill()?;
    if seen.bound < MEMORY_PAIRS {
        return Err(format!("mem: only {} claims of {MEMORY_PAIRS} were bound", seen.bound));
    }
    let mut all = Vec::new();
    for &contender in contenders {
        progress_line(&format!("mem: {}", contender.name()));
        let mut running = contender.start(&cluster, cluster.kubeconfig(), programs, false)?;
        std::thread::sleep(MEMORY_AFTER);
        let memory = memory(running.pid());
        if let Some(status) = running.ended() {
            return Err(format!("{} ended ({status}):\n{}", running.name(), log_tail(&running.log())));
        }
        running.kill()?;
        all.push((contender, memory));
    }
    Ok(all)
}

/// The kubeconfig for the binder: directly to the API server, or through the delaying proxy.
async fn kubeconfig(cluster: &TestCluster, delay: Option<Duration>) -> Result<PathBuf, String> {
    let Some(delay) = delay else { return Ok(cluster.kubeconfig().to_owned()) };
    let port =
        cluster.server_url().rsplit(':').next().and_then(|port| port.parse().ok()).ok_or("the server has no port")?;
    let slow =
        delay::forward(port, delay).await.map_err(|error| format!("cannot start the delaying proxy: {error}"))?;
    let failed = |error: std::io::Error| format!("a kubeconfig for cannot start the delaying proxy: {error}");
    let text = std::fs::read_to_string(cluster.kubeconfig()).map_err(failed)?;
    let path = cluster.folder().join("kubeconfig-slow");
    std::fs::write(&path, text.replace(cluster.server_url(), &format!("https://127.0.0.1:{slow}"))).map_err(failed)?;
    Ok(path)
}

/// If `BINDERY_BENCH_LOGS` names a folder, the binders' logs are kept there; otherwise they are
/// deleted with the test cluster.
fn keep_log(scenario: &str, contender: Contender, log: &Path) {
    if let Some(folder) = std::env::var_os("BINDERY_BENCH_LOGS") {
        let name = format!("{scenario}, {}.log", contender.name());
        if let Err(error) = std::fs::copy(log, Path::new(&folder).join(name)) {
            progress_line(&format!("cannot keep a log: {error}"));
        }
    }
}

fn log_tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
