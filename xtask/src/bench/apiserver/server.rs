//! The API servers that are compared.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bindery_test_cluster::TestCluster;

use super::folder;
use super::wire::Endpoint;
use crate::bench::binder::{cpu_seconds, memory};

/// The maximum time to a server's first response.
const UP_WITHIN: Duration = Duration::from_secs(30);

/// An API server to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// kube-apiserver with etcd.
    Real,
    /// The embedded server, in memory.
    Memory,
    /// The embedded server, with --data-dir.
    Disk,
}

impl Kind {
    /// All servers; the real one is first, because the others are compared with it.
    pub const ALL: [Kind; 3] = [Kind::Real, Kind::Memory, Kind::Disk];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Real => "kube-apiserver with etcd",
            Kind::Memory => "embedded, in memory",
            Kind::Disk => "embedded, with --data-dir",
        }
    }
}

/// A running server, stopped on drop.
pub struct Server {
    running: Running,
    took: Duration,
}

enum Running {
    Real(Box<TestCluster>),
    Embedded { process: Child, folder: PathBuf },
}

impl Server {
    /// Starts an empty server.
    pub async fn start(kind: Kind, bindery: &Path) -> Result<Server, String> {
        let began = Instant::now();
        if kind == Kind::Real {
            return Ok(Server { running: Running::Real(Box::new(TestCluster::start()?)), took: began.elapsed() });
        }
        let folder = folder(kind.name().rsplit(' ').next().unwrap_or_default());
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new(bindery);
        command.args(["apiserver", "--listen", "127.0.0.1:0", "--write-kubeconfig"]).arg(folder.join("kubeconfig"));
        if kind == Kind::Disk {
            command.arg("--data-dir").arg(folder.join("data"));
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.map_err(|error| format!("{}: {error}", bindery.display()))?;
        let mut server = Server { running: Running::Embedded { process, folder }, took: Duration::ZERO };
        while !server.answers().await {
            if began.elapsed() > UP_WITHIN {
                return Err(format!("{} does not answer", kind.name()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.took = began.elapsed();
        Ok(server)
    }

    async fn answers(&self) -> bool {
        let Ok(endpoint) = Endpoint::of(&self.kubeconfig()).await else { return false };
        let Ok(mut wire) = endpoint.connect().await else { return false };
        wire.send("GET", "/readyz", "application/json", String::new()).await.is_ok()
    }

    /// The path of its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.running {
            Running::Real(cluster) => cluster.kubeconfig().to_owned(),
            Running::Embedded { folder, .. } => folder.join("kubeconfig"),
        }
    }

    /// The time from its start to its first response.
    pub fn took_to_start(&self) -> Duration {
        self.took
    }

    /// Processor time so far of the API server, including etcd.
    pub fn cpu_seconds(&self) -> f64 {
        self.pids().into_iter().map(cpu_seconds).sum()
    }

    /// Its current memory.
    pub fn memory_mib(&self) -> f64 {
        self.pids().into_iter().map(|pid| memory(pid).now).sum()
    }

    fn pids(&self) -> Vec<u32> {
        match &self.running {
            Running::Real(cluster) => cluster.pids()[..2].to_vec(),
            Running::Embedded { process, .. } => vec![process.id()],
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Running::Embedded { process, folder } = &mut self.running {
            let _ = process.kill();
            let _ = process.wait();
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
