//! A command of `bindery` under the role it is deployed with, and the API server's audit log of its
//! requests.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bindery_test_cluster::{Running, TIMEOUT, TestCluster, eventually, wait_until};
use serde_json::Value;

use crate::service_account;

/// A folder under /tmp, where the host-path deleter may delete. Removed with the test.
pub struct Folder(PathBuf);

impl Folder {
    fn new(command: &str) -> Folder {
        let folder = PathBuf::from(format!("/tmp/bindery-rbac-{command}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deleted/deep")).expect("a folder");
        std::fs::write(folder.join("deleted/deep/file"), "data").expect("a file");
        let policy = format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n  \
             - {{level: Metadata, users: ['{}']}}\n  - {{level: None}}\n",
            service_account::user(command)
        );
        std::fs::write(folder.join("policy.yaml"), policy).expect("a file");
        Folder(folder)
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running command in a cluster with the manifests applied, and an audit log of its service
/// account.
pub struct Audited {
    program: Running,
    /// Its lease, if it uses leader election.
    lease: Option<String>,
    pub test_cluster: TestCluster,
    pub folder: Folder,
}

impl Audited {
    /// Starts it, or returns `None` if the test is skipped.
    pub fn start(command: &str, flags: &[&str]) -> Option<Audited> {
        Audited::start_by(command, Some(&format!("bindery-{command}")), |test_cluster, kubeconfig| {
            // -v=4 logs rejected events and leases, too.
            let args = [&[command, kubeconfig, "--listen=127.0.0.1:0", "-v=4"], flags].concat();
            test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
        })
    }

    /// The same with another lease or none, started by a function that gets the kubeconfig flag.
    pub fn start_by(
        command: &str,
        lease: Option<&str>,
        start: impl FnOnce(&TestCluster, &str) -> Running,
    ) -> Option<Audited> {
        let folder = Folder::new(command);
        let test_cluster = service_account::cluster(
            TestCluster::builder()
                // Without streaming lists more rights are needed: everything is listed first.
                .api_server_flag("--feature-gates=WatchList=false")
                // Requires rights on the finalizers of owners.
                .api_server_flag("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
                .api_server_flag(format!("--audit-policy-file={}", folder.at("policy.yaml")))
                .api_server_flag(format!("--audit-log-path={}", folder.at("audit.log"))),
        )?;
        let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&test_cluster, command).display());
        let program = start(&test_cluster, &kubeconfig);
        let audited = Audited { program, lease: lease.map(str::to_owned), test_cluster, folder };
        eventually("it is the leader", || {
            audited.leader().is_none_or(|leader| leader.is_ok_and(|leader| !leader.is_empty()))
        });
        Some(audited)
    }

    /// The holder of the lease, if there is a lease.
    fn leader(&self) -> Option<Result<String, String>> {
        let lease = self.lease.as_deref()?;
        Some(self.test_cluster.kubectl(["get", "lease", "-n=kube-system", lease, "-o=jsonpath={.spec.holderIdentity}"]))
    }

    /// Stops it gracefully. No request was rejected, and every right that the roles grant was used,
    /// except for those in `unseen`.
    pub fn end(mut self, roles: &[Value], unseen: &[(&str, &str)]) {
        self.program.terminate().expect("it is signalled");
        let status = self.program.wait(TIMEOUT).expect("it stops");
        let log = self.program.log();
        assert!(status.success(), "{status}:\n{log}");
        let forbidden: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden: User")).collect();
        assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
        assert!(self.leader().is_none_or(|leader| leader.as_deref() == Ok("")), "the lease is released");

        // The last requests may be logged after their response.
        let mut useless = Vec::new();
        wait_until(|| {
            useless = self.useless(roles, unseen);
            useless.is_empty()
        });
        assert!(useless.is_empty(), "granted, but never used: {useless:?}");
        let rejected: Vec<_> = asked(&self.folder).into_iter().filter(|(_, allowed)| !allowed).collect();
        assert!(rejected.is_empty(), "rejected: {rejected:?}");
    }

    /// The rights that the roles grant and that were not used, except for those in `unseen`.
    fn useless(&self, roles: &[Value], unseen: &[(&str, &str)]) -> Vec<Right> {
        let asked = asked(&self.folder);
        let matches = |right: &Right, asked: &Right| {
            let fits = |granted: &str, asked: &str| granted.is_empty() || granted == asked;
            (&right.0, &right.1, &right.2) == (&asked.0, &asked.1, &asked.2)
                && fits(&right.3, &asked.3)
                && fits(&right.4, &asked.4)
        };
        let is_seen = |right: &Right| !unseen.contains(&(right.0.as_str(), right.2.as_str()));
        let is_used = |right: &Right| asked.iter().any(|(asked, _)| matches(right, asked));
        roles.iter().flat_map(granted).filter(|right| is_seen(right) && !is_used(right)).collect()
    }
}

/// Starts the controllers under their service account: they bind claims and remove finalizers.
pub fn start_controller(test_cluster: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(test_cluster, "controller").display());
    let args = ["controller", &kubeconfig, "--listen=127.0.0.1:0"];
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// Creates objects as the administrator.
pub fn make(test_cluster: &TestCluster, objects: &str) {
    test_cluster.kubectl_with_input(objects, ["create", "-f", "-"]).expect("objects are created");
}

/// A field of an object; empty if it is missing.
pub fn field(test_cluster: &TestCluster, object: &str, path: &str) -> String {
    test_cluster.kubectl(["get", object, "-o", &format!("jsonpath={{{path}}}")]).unwrap_or_default()
}

/// The count of the event with this reason and these words in its message.
pub fn event_count(test_cluster: &TestCluster, reason: &str, words: &str) -> u64 {
    let events =
        json(test_cluster, &["get", "events", "--all-namespaces", &format!("--field-selector=reason={reason}")]);
    let has_words = |event: &&Value| event["message"].as_str().is_some_and(|message| message.contains(words));
    let matching = events["items"].as_array().into_iter().flatten().filter(has_words);
    matching.filter_map(|event| event["count"].as_u64()).max().unwrap_or_default()
}

/// The JSON output of kubectl.
pub fn json(test_cluster: &TestCluster, args: &[&str]) -> Value {
    let text = test_cluster.kubectl([args, &["-o", "json"]].concat()).expect("kubectl answers");
    serde_json::from_str(&text).expect("JSON")
}

/// A right: a verb, an API group, a resource, and the namespace and name it is restricted to.
type Right = (String, String, String, String, String);

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// All rights of a role.
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

/// The rights used by the service account according to the audit log, and whether each was granted.
fn asked(folder: &Folder) -> BTreeSet<(Right, bool)> {
    let log = std::fs::read_to_string(folder.at("audit.log")).expect("an audit log");
    // An incomplete last line is still being written.
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let asked = whole.lines().map(|line| {
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
