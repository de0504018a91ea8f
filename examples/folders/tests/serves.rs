//! Runs the example against the embedded API server and a binder, and kills it several times.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bindery_apiserver::host::{Config, Server};
use bindery_binder::Binder;
use bindery_engine::Engine;
use bindery_lifecycle::{ClaimProtection, VolumeProtection};
use bindery_provisioner_sdk::InTreeWorker;
use bindery_rules_api::RuleSet;
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, GetError, NoObserver, Observer};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// The running example. Dropping it kills the process.
struct Example(Child);

impl Example {
    fn start(kubeconfig: &Path, root: &Path) -> Example {
        let mut command = Command::new(env!("CARGO_BIN_EXE_folders"));
        command.arg(root).env("KUBECONFIG", kubeconfig).stdout(Stdio::null());
        Example(command.spawn().expect("the example starts"))
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn call(api: &Api, method: &str, path: &str, body: Value) -> Result<Value, GetError> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
    api.object(request.expect("a request")).await
}

/// Waits until a condition holds.
async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    for _ in 0..3000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: not within five minutes");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claim_gets_a_directory_and_none_is_leaked() {
    let folder = std::env::temp_dir().join(format!("bindery-folders-{}", std::process::id()));
    let (root, kubeconfig) = (folder.join("volumes"), folder.join("kubeconfig"));
    std::fs::create_dir_all(&root).expect("a folder");
    let server = Server::start(Config::in_memory()).await.expect("a server");
    std::fs::write(&kubeconfig, server.kubeconfig()).expect("a file");
    let cluster = Kubeconfig::from_yaml(server.kubeconfig()).expect("a kubeconfig");
    let cluster = kube::Config::from_custom_kubeconfig(cluster, &KubeConfigOptions::default()).await;
    let client = bindery_runtime::client(cluster.expect("a configuration")).expect("a client");
    let api = Arc::new(Api::new(client, CALL_DEADLINE, None));
    let observer: Arc<dyn Observer> = Arc::new(NoObserver);
    let binder = Box::new(Binder::new(Default::default()));
    let rules: Vec<Box<dyn RuleSet + Send>> =
        vec![binder, Box::new(ClaimProtection::default()), Box::new(VolumeProtection)];
    let engine = Engine::new(Default::default(), rules);
    let host = EngineHost::start(&api, engine, &observer, |events| {
        Arc::new(InTreeWorker::new(api.clone(), events, observer.clone()))
    });
    host.set_leader(true).expect("the engine runs");

    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "folders"},
        "provisioner": "example.com/folders", "reclaimPolicy": "Delete",
    });
    call(&api, "POST", "/apis/storage.k8s.io/v1/storageclasses", class).await.expect("a class");
    for number in 0..10 {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("claim-{number}")},
            "spec": {
                "storageClassName": "folders", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        call(&api, "POST", CLAIMS, claim).await.expect("a claim");
    }
    // Kill it at arbitrary points.
    for _ in 0..3 {
        let example = Example::start(&kubeconfig, &root);
        tokio::time::sleep(Duration::from_millis(150)).await;
        drop(example);
    }
    let example = Example::start(&kubeconfig, &root);
    let items = async |path: &str| call(&api, "GET", path, Value::Null).await.expect("a list")["items"].clone();
    eventually("every claim is bound", async || {
        let claims = items(CLAIMS).await;
        claims.as_array().is_some_and(|all| all.iter().all(|claim| claim["status"]["phase"] == "Bound"))
    })
    .await;
    let directories = || std::fs::read_dir(&root).expect("the root").count();
    assert_eq!(directories(), 10, "one directory per claim");
    for number in 0..10 {
        call(&api, "DELETE", &format!("{CLAIMS}/claim-{number}"), Value::Null).await.expect("deleted");
    }
    eventually("every volume is deleted", async || items(VOLUMES).await == json!([])).await;
    assert_eq!(directories(), 0, "every directory is deleted");
    drop(example);
    drop(host);
    server.stop().await;
    std::fs::remove_dir_all(&folder).expect("cleaned up");
}
