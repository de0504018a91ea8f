//! The storage with a fake driver on a socket.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::*;
use crate::driver::{CallObserver, FinishedCall};
use crate::facts::{Patch, WriteResult};
use crate::fake::{FakeDriver, Serving};
use bindery_provisioner_sdk::ProvisionRequest;
use serde_json::json;

mod migrated;

/// Objects by path.
#[derive(Default)]
struct Map(BTreeMap<String, Value>);

impl ObjectClient for Map {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, ReadResult> {
        let found = self.0.get(path).cloned();
        Box::pin(async move { found.map_or_else(|| ReadResult::Missing("not found".into()), ReadResult::Object) })
    }

    fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, WriteResult> {
        Box::pin(async move { WriteResult::Failed(format!("{} is not written in these tests", patch.path)) })
    }
}

/// Records calls.
#[derive(Default)]
struct RecordedCalls(Mutex<Vec<(&'static str, &'static str)>>);

impl CallObserver for RecordedCalls {
    fn identified(&self, _: &str) {}

    fn finished(&self, called: FinishedCall) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((called.method, called.code));
    }
}

/// A storage, its fake driver, and the recorded calls.
struct Bench {
    csi: Csi,
    fake: Arc<FakeDriver>,
    recorded: Arc<RecordedCalls>,
    _serving: Serving,
}

fn socket() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("bindery-csi-{}-{n}.sock", std::process::id()))
}

async fn bench(timeout: Duration) -> Bench {
    bench_of("d.example.com", timeout).await
}

async fn bench_of(driver_name: &str, timeout: Duration) -> Bench {
    let fake = Arc::new(FakeDriver::new(driver_name));
    let serving = fake.serve(&socket()).expect("served");
    let recorded = Arc::new(RecordedCalls::default());
    let driver =
        Driver::connect(&serving.socket().display().to_string(), timeout, recorded.clone()).await.expect("there");
    let introduced = driver.identify().await.expect("introduced");
    assert_eq!((introduced.name.as_str(), introduced.version.as_str()), (driver_name, "1"));
    let setup = Setup { driver: introduced.name, capabilities: introduced.capabilities, ..Setup::default() };
    let secret = json!({"data": {"user": "YWRtaW4="}});
    let class = json!({"parameters": {
        "csi.storage.k8s.io/provisioner-secret-name": "${pvc.name}",
        "csi.storage.k8s.io/provisioner-secret-namespace": "ns",
    }});
    let objects = Map(BTreeMap::from([
        ("/api/v1/namespaces/ns/secrets/c".to_owned(), secret),
        ("/apis/storage.k8s.io/v1/storageclasses/k".to_owned(), class),
    ]));
    Bench { csi: Csi::new(setup, driver, Arc::new(objects)), fake, recorded, _serving: serving }
}

const PLENTY: Duration = Duration::from_secs(60);

impl Bench {
    /// Provisions a volume with these parameters and on this node.
    async fn create(&self, parameters: &[(&str, &str)], node: Option<&str>) -> Result<Value, Failure> {
        let order = ProvisionRequest {
            claim: bindery_model::ClaimKey::new("ns", "c"),
            uid: "1".into(),
            class: "k".into(),
            class_version: 0,
            version: 1,
            provisioner: "d.example.com".into(),
            has_finalizer: true,
            volume: "pvc-1".into(),
            node: node.map(Into::into),
            topology: Ok(None),
            attempt: None,
        };
        let claim = json!({
            "metadata": {"name": "c", "namespace": "ns"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let parameters: BTreeMap<_, _> = parameters.iter().copied().collect();
        let class = json!({"metadata": {"name": "k"}, "provisioner": "d.example.com", "parameters": parameters});
        let ask = ProvisionContext { request: &order, claim: &claim, class: &class };
        let prepared = self.csi.prepare(ask).await?;
        self.csi.create(ask, &prepared).await
    }

    fn called(&self) -> Vec<String> {
        self.fake.calls().iter().map(|call| call["method"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[tokio::test]
async fn every_code_is_passed_on_with_its_effect() {
    let bench = bench(PLENTY).await;
    for (node, exhausted) in [(None, FailureEffect::Absent), (Some("n"), FailureEffect::Reschedule)] {
        for (code, word, after) in [
            ("INTERNAL", "Internal", FailureEffect::Nothing),
            ("ABORTED", "Aborted", FailureEffect::Unknown),
            ("UNAVAILABLE", "Unavailable", FailureEffect::Unknown),
            ("INVALID_ARGUMENT", "InvalidArgument", FailureEffect::Infeasible),
            ("RESOURCE_EXHAUSTED", "ResourceExhausted", exhausted),
        ] {
            let failure = bench.create(&[("create", code)], node).await.expect_err("scripted to fail");
            let error = format!("rpc error: code = {word} desc = told to answer {code}");
            assert_eq!(failure, Failure { error, effect: after });
        }
    }
    assert!(bench.fake.volumes().is_empty());
    let recorded = bench.recorded.0.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(recorded.contains(&("/csi.v1.Identity/Probe", "OK")));
    assert!(recorded.contains(&("/csi.v1.Controller/CreateVolume", "ResourceExhausted")));
}

#[tokio::test]
async fn volume_is_created_once_however_often_it_is_requested() {
    let bench = bench(PLENTY).await;
    for answer in ["ok", "zero", "twice", "nosource"] {
        let volume = bench.create(&[("create", answer)], None).await.expect("made");
        assert_eq!(volume["spec"]["csi"]["volumeHandle"], "vol-pvc-1");
        assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
    }
    assert_eq!(bench.fake.volumes().len(), 1);
    assert_eq!(
        bench.fake.calls()[0]["request"],
        json!({
            "name": "pvc-1",
            "capacity_range": {"required_bytes": "1073741824"},
            "parameters": {"create": "ok"},
            "volume_capabilities": [{"access_mode": {"mode": "SINGLE_NODE_MULTI_WRITER"}, "mount": {}}],
        })
    );
}

#[tokio::test]
async fn volume_that_is_too_small_is_deleted() {
    let bench = bench(PLENTY).await;
    let error_message = "created volume capacity 1073741823 less than requested capacity 1073741824";
    let failure = bench.create(&[("create", "small"), ("delete", "INTERNAL,ok")], None).await.expect_err("small");
    assert_eq!(failure, Failure { error: error_message.into(), effect: FailureEffect::Absent });
    assert_eq!(bench.called(), ["CreateVolume", "DeleteVolume", "DeleteVolume"]);
    assert!(bench.fake.volumes().is_empty());
    let failure = bench.create(&[("create", "small"), ("delete", "INTERNAL")], None).await.expect_err("small");
    let why = "rpc error: code = Internal desc = told to answer INTERNAL";
    let error = format!("{error_message}. Cleanup of volume pvc-1 failed, volume is orphaned: {why}");
    assert_eq!(failure, Failure { error, effect: FailureEffect::Unknown });
    assert_eq!(bench.called().len(), 3 + 1 + DELETE_ATTEMPTS);
}

#[tokio::test]
async fn missing_answer_means_unknown_outcome() {
    let bench = bench(Duration::from_secs(3)).await;
    let late = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    let failure = bench.create(&[("create", "hang"), ("delete", "hang")], None).await.expect_err("no answer");
    assert_eq!(failure, Failure { error: late.into(), effect: FailureEffect::Unknown });
    assert_eq!(bench.fake.volumes().len(), 1, "the volume was created nevertheless");
    let volume = json!({"spec": {"csi": {"volumeHandle": "vol-pvc-1"}}});
    let failure = bench.csi.delete(&volume).await.expect_err("no answer");
    assert_eq!(failure, Failure { error: late.into(), effect: FailureEffect::Unknown });
}

#[tokio::test]
async fn cut_connection_means_unknown_outcome_and_is_not_reestablished() {
    let bench = bench(PLENTY).await;
    let failure = bench.create(&[("create", "drop")], None).await.expect_err("cut off");
    assert_eq!(failure.effect, FailureEffect::Unknown, "{}", failure.error);
    assert_eq!(bench.fake.volumes().len(), 1, "the volume was created nevertheless");
    bench.csi.driver.lost().await;
    let failure = bench.create(&[], None).await.expect_err("there is no connection");
    assert_eq!(failure.effect, FailureEffect::Unknown, "{}", failure.error);
    assert_eq!(bench.called(), ["CreateVolume"], "no new connection is made");
}

#[tokio::test]
async fn volume_is_deleted_with_the_secret_that_it_names() {
    let bench = bench(PLENTY).await;
    let annotated = |name: &str, namespace: &str| {
        json!({
            "metadata": {"name": "pv", "annotations": {
                "volume.kubernetes.io/provisioner-deletion-secret-name": name,
                "volume.kubernetes.io/provisioner-deletion-secret-namespace": namespace,
            }},
            "spec": {"csi": {"volumeHandle": "h"}, "storageClassName": "k", "claimRef": {"namespace": "ns", "name": "c"}},
        })
    };
    let mut older = annotated("", "");
    older["metadata"]["annotations"] = json!({});
    let mut classless = older.clone();
    classless["spec"]["storageClassName"] = "gone".into();
    let with = |secrets: Value| json!({"volume_id": "h", "secrets": secrets});
    let admin = with(json!({"user": "admin"}));
    let without = json!({"volume_id": "h"});
    let mut expected = vec![];
    for (volume, request) in [
        (annotated("c", "ns"), &admin),
        (annotated("", ""), &without),
        (annotated("gone", "ns"), &without),
        (older, &admin),
        (classless, &without),
    ] {
        assert_eq!(bench.csi.delete(&volume).await, Ok(()));
        expected.push(json!({"method": "DeleteVolume", "request": request}));
        assert_eq!(bench.fake.calls(), expected);
    }
    let failure = bench.csi.delete(&json!({"spec": {"hostPath": {"path": "/"}}})).await.expect_err("not ours");
    assert_eq!(failure, Failure { error: "invalid CSI PV".into(), effect: FailureEffect::Nothing });
}

#[tokio::test]
async fn secret_deleted_after_preparation_fails_before_the_driver_is_called() {
    let bench = bench(PLENTY).await;
    let secret = SecretRef { name: "gone".into(), namespace: "ns".into() };
    let secrets = prepare::Secrets { provisioner: Some(secret), ..prepare::Secrets::default() };
    let prepared = Prepared { secrets, ..Prepared::default() };
    let prepared = serde_json::to_value(prepared).expect("JSON");
    let order = ProvisionRequest {
        claim: bindery_model::ClaimKey::new("ns", "c"),
        uid: "1".into(),
        class: "k".into(),
        class_version: 0,
        version: 1,
        provisioner: "d.example.com".into(),
        has_finalizer: true,
        volume: "pvc-1".into(),
        node: None,
        topology: Ok(None),
        attempt: None,
    };
    let nothing = json!({});
    let ask = ProvisionContext { request: &order, claim: &nothing, class: &nothing };
    let failure = bench.csi.create(ask, &prepared).await.expect_err("no secret");
    let error = "error getting secret gone in namespace ns: not found".to_owned();
    assert_eq!(failure, Failure { error, effect: FailureEffect::NotAttempted });
    assert!(bench.fake.calls().is_empty());
}
