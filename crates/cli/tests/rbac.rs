//! The role that deploy/ grants is enough, and no more than enough: shown with the binary on a real API server that authorizes
//! by RBAC, and by that server's audit log, which says what was asked for and what was refused.

mod service_account;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_lab::{Lab, Running, eventually};
use serde_json::Value;

const WITHIN: &str = "--timeout=60s";

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: ['system:serviceaccount:kube-system:bindery']}
  - {level: None}
";

/// A folder under /tmp, where the host-path deleter may delete. It goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = PathBuf::from(format!("/tmp/bindery-rbac-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deleted/deep")).expect("a folder");
        std::fs::write(folder.join("deleted/deep/file"), "data").expect("a file");
        std::fs::write(folder.join("policy.yaml"), AUDIT_POLICY).expect("a file");
        Folder(folder)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A lab in which the manifests are applied, and an audit log of all that the service account does.
fn lab(folder: &Folder) -> Option<Lab> {
    service_account::lab(
        Lab::builder()
            // A server without streaming lists asks for more rights: everything is listed first.
            .api_server_flag("--feature-gates=WatchList=false")
            // Who says that a pod is to wait for its claims must be allowed to hold the pod back.
            .api_server_flag("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
            .api_server_flag(format!("--audit-policy-file={}", folder.at("policy.yaml")))
            .api_server_flag(format!("--audit-log-path={}", folder.at("audit.log"))),
    )
}

fn json(lab: &Lab, args: &[&str]) -> Value {
    let text = lab.kubectl([args, &["-o", "json"]].concat()).expect("kubectl answers");
    serde_json::from_str(&text).expect("JSON")
}

fn start_bindery(lab: &Lab) -> Running {
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(lab).display());
    // -v, because an event or a lease that is refused is not worth a line otherwise.
    let args = ["controller", &kubeconfig, "--listen=127.0.0.1:0", "--enable-hostpath-provisioner", "-v"];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

fn volume(name: &str, policy: &str, path: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
         accessModes: [ReadWriteOnce]\n  persistentVolumeReclaimPolicy: {policy}\n  storageClassName: {name}\n  \
         hostPath: {{path: {path}}}\n---\n"
    )
}

fn class(name: &str, provisioner: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\nprovisioner: {provisioner}\n---\n"
    )
}

fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  \
         accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n  storageClassName: {name}\n---\n"
    )
}

/// A pod on a node that does not exist, with an ephemeral volume.
const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  nodeName: nowhere
  containers: [{name: c, image: none}]
  volumes:
    - name: scratch
      ephemeral:
        volumeClaimTemplate:
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: pod-scratch}
---
";

const ATTRIBUTES_CLASS: &str = "apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: quick}
driverName: example.com
parameters: {iops: '7'}
";

/// What works beside the binder: an ephemeral volume gets its claim, a claim in use stays, an attributes class goes.
fn have_companions(lab: &Lab, folder: &Folder) {
    let objects = volume("pod-scratch", "Retain", &folder.at("scratch")) + POD + ATTRIBUTES_CLASS;
    lab.kubectl_reading(&objects, ["apply", "-f", "-"]).expect("objects are made");
    eventually("the ephemeral volume's claim is bound and in use", || {
        let condition = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Unused\")].status}";
        lab.kubectl(["get", "pvc/pod-scratch", "-o", condition]).is_ok_and(|found| found == "Bound False")
    });
    lab.kubectl(["delete", "--wait=false", "pvc/pod-scratch"]).expect("it is deleted");
    lab.kubectl(["get", "pvc/pod-scratch"]).expect("and is held by its pod");
    lab.kubectl(["delete", "--force", "--grace-period=0", "pod/pod"]).expect("the pod is gone");
    lab.kubectl(["wait", "--for=delete", WITHIN, "pvc/pod-scratch"]).expect("and so is the claim");
    lab.kubectl(["delete", WITHIN, "volumeattributesclass/quick", "pv/pod-scratch"]).expect("they go");
}

/// Granted for what this test does not bring about: a write whose answer is lost, and a check that leaves no line in the audit log.
const UNSEEN: [(&str, &str); 2] = [("get", "volumeattributesclasses"), ("update", "pods/finalizers")];

/// Ends the pod that scrubs a volume, as a kubelet would report it, and returns once the binder has removed it.
fn end_scrub(lab: &Lab, pod: &str, phase: &str) {
    let uid = || lab.kubectl(["get", pod, "-o", "jsonpath={.metadata.uid}"]).ok();
    eventually("a scrub is under way", || uid().is_some());
    let scrub = uid();
    let status = format!(r#"{{"status": {{"phase": "{phase}", "message": "as told by the test"}}}}"#);
    lab.kubectl(["patch", pod, "--subresource=status", "--type=merge", "-p", &status]).expect("the pod has ended");
    eventually("the pod is removed", || uid() != scrub);
}

/// The life of volumes of each policy: bound, released, and deleted or scrubbed.
fn live_through_everything(lab: &Lab, folder: &Folder) {
    let objects = [
        volume("deleted", "Delete", &folder.at("deleted")),
        volume("recycled", "Recycle", &folder.at("recycled")),
        class("provisioned", "kubernetes.io/host-path"),
        claim("deleted") + &claim("recycled") + &claim("provisioned") + &claim("waiting"),
    ];
    lab.kubectl_reading(&objects.concat(), ["apply", "-f", "-"]).expect("objects are made");
    let claims = ["pvc/deleted", "pvc/recycled", "pvc/provisioned"];
    let bound = ["wait", "--for=jsonpath={.status.phase}=Bound", WITHIN];
    lab.kubectl([&bound[..], &claims].concat()).expect("claims are bound");
    let provisioned = lab.kubectl(["get", "pvc/provisioned", "-o", "jsonpath={.spec.volumeName}"]).expect("a claim");

    lab.kubectl([&["delete", WITHIN], &claims[..]].concat()).expect("claims are gone");
    lab.kubectl(["wait", "--for=delete", WITHIN, "pv/deleted", &format!("pv/{provisioned}")])
        .expect("volumes are gone");
    assert!(!Path::new(&folder.at("deleted")).exists(), "and so is what was behind them");

    for phase in ["Failed", "Succeeded"] {
        end_scrub(lab, "pod/recycler-for-recycled", phase);
    }
    let available = ["wait", "--for=jsonpath={.status.phase}=Available", WITHIN, "pv/recycled"];
    lab.kubectl(available).expect("the volume was scrubbed");
}

/// Events about one claim: the same news twice, with other news in between, is one event that is counted.
fn come_and_go(lab: &Lab) {
    let told = |reason: &str| {
        let about = "--field-selector=involvedObject.name=waiting";
        let events = json(lab, &["get", "events", about]);
        let of_reason = |event: &&Value| event["reason"] == reason;
        events["items"].as_array().into_iter().flatten().find(of_reason).and_then(|event| event["count"].as_u64())
    };
    eventually("the lack of a class is told", || told("ProvisioningFailed") == Some(1));
    let class = class("waiting", "example.com/nobody");
    lab.kubectl_reading(&class, ["apply", "-f", "-"]).expect("a class is made");
    eventually("the wait for a provisioner is told", || told("ExternalProvisioning").is_some());
    lab.kubectl(["delete", "storageclass", "waiting"]).expect("the class is gone");
    eventually("the lack of a class is counted", || told("ProvisioningFailed") == Some(2));
}

/// One thing that may be done: a verb, an API group and a resource, and the namespace and name that it is confined to.
type Right = (String, String, String, String, String);

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// All that a role grants, one by one.
fn granted(role: &Value) -> BTreeSet<Right> {
    let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        let names =
            if rule["resourceNames"].is_array() { strings(&rule["resourceNames"]) } else { vec![String::new()] };
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    for name in &names {
                        let (group, resource) = (group.clone(), resource.clone());
                        rights.insert((verb.clone(), group, resource, namespace.to_owned(), name.clone()));
                    }
                }
            }
        }
    }
    rights
}

/// What the service account has asked for, by the audit log: verb, group, resource, namespace, name; and whether it was let.
fn asked(folder: &Folder) -> BTreeSet<(Right, bool)> {
    let log = std::fs::read_to_string(folder.at("audit.log")).expect("an audit log");
    let asked = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &line["objectRef"];
        let subresource = text(&object["subresource"]);
        let slash = if subresource.is_empty() { "" } else { "/" };
        let resource = text(&object["resource"]) + slash + &subresource;
        let right = (
            text(&line["verb"]),
            text(&object["apiGroup"]),
            resource,
            text(&object["namespace"]),
            text(&object["name"]),
        );
        (right, line["annotations"]["authorization.k8s.io/decision"] == "allow")
    });
    asked.collect()
}

#[test]
fn the_role_is_enough_and_no_more() {
    let folder = Folder::new();
    let Some(lab) = lab(&folder) else { return };
    let mut bindery = start_bindery(&lab);
    let holder = ["get", "lease", "-n=kube-system", "bindery-controller", "-o=jsonpath={.spec.holderIdentity}"];
    eventually("it leads", || lab.kubectl(holder).is_ok_and(|holder| !holder.is_empty()));

    live_through_everything(&lab, &folder);
    come_and_go(&lab);
    have_companions(&lab, &folder);
    eventually("what happened is told", || {
        let events = json(&lab, &["get", "events", "--all-namespaces"]);
        let ours = |event: &&Value| event["source"]["component"] == "persistentvolume-controller";
        let events = events["items"].as_array().into_iter().flatten().filter(ours);
        let reasons: BTreeSet<String> = events.map(|event| event["reason"].as_str().unwrap_or("").into()).collect();
        ["ProvisioningSucceeded", "VolumeRecycled", "VolumeFailedRecycle"]
            .iter()
            .all(|&reason| reasons.contains(reason))
    });

    bindery.terminate().expect("it is told to stop");
    let status = bindery.wait(Duration::from_secs(15)).expect("it stops");
    let log = bindery.log();
    assert!(status.success(), "{status}:\n{log}");
    let forbidden: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden: User")).collect();
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
    assert_eq!(lab.kubectl(holder).as_deref(), Ok(""), "the lease is free for the next");

    let asked = asked(&folder);
    let refused: Vec<_> = asked.iter().filter(|(_, allowed)| !allowed).collect();
    assert!(refused.is_empty(), "refused: {refused:?}");
    let matches = |right: &Right, asked: &Right| {
        let fits = |granted: &str, asked: &str| granted.is_empty() || granted == asked;
        (&right.0, &right.1, &right.2) == (&asked.0, &asked.1, &asked.2)
            && fits(&right.3, &asked.3)
            && fits(&right.4, &asked.4)
    };
    let roles = [
        json(&lab, &["get", "clusterrole", "bindery"]),
        json(&lab, &["get", "role", "-n=kube-system", "bindery-lease"]),
        json(&lab, &["get", "role", "-n=default", "bindery-recycler"]),
    ];
    let is_seen = |right: &Right| !UNSEEN.contains(&(right.0.as_str(), right.2.as_str()));
    let is_used = |right: &Right| asked.iter().any(|(asked, _)| matches(right, asked));
    let useless: Vec<Right> =
        roles.iter().flat_map(granted).filter(|right| is_seen(right) && !is_used(right)).collect();
    assert!(useless.is_empty(), "granted, but never used: {useless:?}");
}

#[test]
fn nothing_else_is_allowed() {
    let Some(lab) = service_account::lab(Lab::builder()) else { return };
    lab.kubectl_reading(&claim("precious"), ["apply", "-f", "-"]).expect("a claim is made");
    let kubeconfig = service_account::kubeconfig(&lab);
    let kubectl = |words: &str| lab.kubectl_with(&kubeconfig, words.split(' '), "");

    // That it can be told at all: what is granted takes effect a moment after the role is made.
    eventually("the role holds", || kubectl("get pvc precious").is_ok());
    for words in [
        "patch pvc --all-namespaces",
        "get pods --namespace=default",
        "update leases/bindery-controller -n=kube-system",
    ] {
        assert_eq!(kubectl(&format!("auth can-i {words}")).as_deref(), Ok("yes\n"), "{words}");
    }
    for words in [
        "delete pvc --all-namespaces",
        "update pvc",
        "update pods --namespace=default",
        "delete volumeattributesclasses",
        "get secrets",
        "list secrets --all-namespaces",
        "update nodes",
        "patch nodes",
        "patch nodes --subresource=status",
        "create pods --namespace=kube-system",
        "delete pods --namespace=kube-system",
        "create pods --subresource=exec --namespace=default",
        "list events --namespace=kube-system",
        "update leases/kube-controller-manager -n=kube-system",
        "delete leases/bindery-controller -n=kube-system",
        "create leases --namespace=default",
        "delete storageclasses",
        "create clusterrolebindings",
        "impersonate users",
        "create serviceaccounts --subresource=token --namespace=kube-system",
    ] {
        // kubectl fails when the answer is no; and when it was asked nonsense, which it says.
        let answer = kubectl(&format!("auth can-i {words}"));
        assert!(answer.as_ref().is_err_and(|error| !error.contains("error:")), "{words}: {answer:?}");
    }
    // Not only by its own account: the API server refuses.
    for words in
        ["delete pvc precious", "get secrets --namespace=kube-system", "run intruder --image=none -n=kube-system"]
    {
        let answer = kubectl(words).expect_err("it is refused");
        assert!(answer.contains("forbidden"), "{words}: {answer}");
    }
    lab.kubectl(["get", "pvc", "precious"]).expect("the claim is still there");
}
