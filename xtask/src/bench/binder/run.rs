//! One measurement: a new API server, a scenario, and one binder in it.

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
use super::{cluster, delay, say};

/// How long a binder may take to come up.
const UP_WITHIN: Duration = Duration::from_secs(60);
/// FailureEffect it has come up: its start is over.
const CALM: Duration = Duration::from_secs(3);
/// No claim became Bound for so long: none will. Longer than a binder's resync, which comes every 15 seconds.
const TIMEOUT: Duration = Duration::from_secs(25);
/// How long a binder's memory is left alone before it is read: long enough for a resync.
const MEMORY_AFTER: Duration = Duration::from_secs(20);
/// How many pairs memory is measured at.
pub const MEMORY_PAIRS: usize = 10_000;

/// What was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The scenario.
    pub scenario: String,
    /// Who.
    pub contender: Contender,
    /// How many claims there were.
    pub claims: usize,
    /// How many of them became Bound.
    pub bound: usize,
    /// From the start (of the binder, or of the creation of claims) to the last claim Bound.
    pub seconds: f64,
    /// Claims a second: from the binder's first write if it started on them, else from the start.
    pub per_second: f64,
    /// Processor time, in milliseconds a claim.
    pub cpu_ms: f64,
    /// Writes carried out and refused, a claim.
    pub writes: Writes,
    /// The binder's memory at the end.
    pub memory: Memory,
    /// What it made beside, where pods' claims are measured.
    pub made: Option<Made>,
}

/// What was made of pods.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// Claims that there are at the end, without the canary.
    pub claims: usize,
    /// Events that there are.
    pub events: usize,
    /// The most events about one object.
    pub events_max: u64,
}

/// Measures one binder in one scenario.
pub fn bind(runtime: &Runtime, setup: &Setup, contender: Contender, programs: &Programs) -> Result<Measured, String> {
    let progress = |what: &str| say(&format!("{}: {}: {what}", setup.name, contender.name()));
    progress(&format!("making {} volumes and {} claims", setup.volumes, setup.claims));
    let lab = TestCluster::start()?;
    let kubeconfig = runtime.block_on(kubeconfig(&lab, setup.delay))?;
    let client = runtime.block_on(client(lab.kubeconfig()))?;
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
    let mut running = contender.start(&lab, &kubeconfig, programs, setup.by_pods)?;
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
            tokio::spawn(async move { create(&client, path, asked).await.inspect_err(|error| say(error)) });
        }
        let step = (setup.claims / 4).max(1);
        let tell = |bound| {
            if bound % step == 0 {
                progress(&format!("{bound} bound after {:.1} s", start.elapsed().as_secs_f64()));
            }
        };
        Ok::<Sight, String>(witness.wait(setup.claims, TIMEOUT, pid, tell).await)
    });
    let seen = seen.map_err(|error| format!("{error}; its last words:\n{}", last_words(&running.log())))?;
    if let Some(status) = running.ended() {
        return Err(format!("{} ended ({status}):\n{}", running.name(), last_words(&running.log())));
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

/// Looks at what there is after pods were made.
async fn made(client: &Client) -> Result<Made, String> {
    // Events are written off the binding path: those that are to come have come by then.
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

/// Measures the memory of binders that start on pairs that are bound already, one after the other.
pub fn memory_of(
    runtime: &Runtime,
    contenders: &[Contender],
    programs: &Programs,
) -> Result<Vec<(Contender, Memory)>, String> {
    say(&format!("mem: making and binding {MEMORY_PAIRS} pairs"));
    let lab = TestCluster::start()?;
    let client = runtime.block_on(client(lab.kubeconfig()))?;
    let witness = runtime.block_on(async {
        create_classes(&client).await?;
        create(&client, cluster::VOLUMES, (0..MEMORY_PAIRS).map(volume).collect()).await?;
        create(&client, CLAIMS, (0..MEMORY_PAIRS).map(claim).collect()).await?;
        Witness::start(&client).await
    })?;
    let mut limit = Contender::Limit.start(&lab, lab.kubeconfig(), programs, false)?;
    let tell = |bound| {
        if bound % 2_000 == 0 {
            say(&format!("mem: {bound} bound"));
        }
    };
    let seen = runtime.block_on(witness.wait(MEMORY_PAIRS, TIMEOUT, limit.pid(), tell));
    limit.kill()?;
    if seen.bound < MEMORY_PAIRS {
        return Err(format!("mem: only {} claims of {MEMORY_PAIRS} were bound", seen.bound));
    }
    let mut all = Vec::new();
    for &contender in contenders {
        say(&format!("mem: {}", contender.name()));
        let mut running = contender.start(&lab, lab.kubeconfig(), programs, false)?;
        std::thread::sleep(MEMORY_AFTER);
        let memory = memory(running.pid());
        if let Some(status) = running.ended() {
            return Err(format!("{} ended ({status}):\n{}", running.name(), last_words(&running.log())));
        }
        running.kill()?;
        all.push((contender, memory));
    }
    Ok(all)
}

/// The kubeconfig for the binder: straight to the API server, or by the slow road.
async fn kubeconfig(lab: &TestCluster, delay: Option<Duration>) -> Result<PathBuf, String> {
    let Some(delay) = delay else { return Ok(lab.kubeconfig().to_owned()) };
    let port =
        lab.server_url().rsplit(':').next().and_then(|port| port.parse().ok()).ok_or("the server has no port")?;
    let slow = delay::forward(port, delay).await.map_err(|error| format!("the slow road: {error}"))?;
    let failed = |error: std::io::Error| format!("a kubeconfig for the slow road: {error}");
    let text = std::fs::read_to_string(lab.kubeconfig()).map_err(failed)?;
    let path = lab.folder().join("kubeconfig-slow");
    std::fs::write(&path, text.replace(lab.server_url(), &format!("https://127.0.0.1:{slow}"))).map_err(failed)?;
    Ok(path)
}

/// `BINDERY_BENCH_LOGS` names a folder where the logs of binders are kept: they go with the lab otherwise.
fn keep_log(scenario: &str, contender: Contender, log: &Path) {
    if let Some(folder) = std::env::var_os("BINDERY_BENCH_LOGS") {
        let name = format!("{scenario}, {}.log", contender.name());
        if let Err(error) = std::fs::copy(log, Path::new(&folder).join(name)) {
            say(&format!("a log could not be kept: {error}"));
        }
    }
}

fn last_words(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
