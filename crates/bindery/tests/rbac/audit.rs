//! A command of `bindery` under the role that it is deployed with, and the API server's account of what it asked for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bindery_test_cluster::{TIMEOUT, Running, TestCluster, wait_until, eventually};
use serde_json::Value;

use crate::service_account;

/// A folder under /tmp, where the host-path deleter may delete. It goes with the test.
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

/// A command at work, in a lab in which the manifests are applied, with an audit log of all that its service account does.
pub struct Audited {
    program: Running,
    /// The lease by which it leads, if it does.
    lease: Option<String>,
    pub lab: TestCluster,
    pub folder: Folder,
}

impl Audited {
    /// Starts it, or nothing where the test is skipped.
    pub fn start(command: &str, flags: &[&str]) -> Option<Audited> {
        Audited::start_by(command, Some(&format!("bindery-{command}")), |lab, kubeconfig| {
            // -v, because an event or a lease that is refused is not worth a line otherwise.
            let args = [&[command, kubeconfig, "--listen=127.0.0.1:0", "-v"], flags].concat();
            lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
        })
    }

    /// The same with a lease of another name or none, started by somebody who gets the flag that says how to reach the API server.
    pub fn start_by(
        command: &str,
        lease: Option<&str>,
        start: impl FnOnce(&TestCluster, &str) -> Running,
    ) -> Option<Audited> {
        let folder = Folder::new(command);
        let lab = service_account::lab(
            TestCluster::builder()
                // A server without streaming lists asks for more rights: everything is listed first.
                .api_server_flag("--feature-gates=WatchList=false")
                // Who says that a pod is to wait for its claims must be allowed to hold the pod back.
                .api_server_flag("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
                .api_server_flag(format!("--audit-policy-file={}", folder.at("policy.yaml")))
                .api_server_flag(format!("--audit-log-path={}", folder.at("audit.log"))),
        )?;
        let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&lab, command).display());
        let program = start(&lab, &kubeconfig);
        let audited = Audited { program, lease: lease.map(str::to_owned), lab, folder };
        eventually("it leads", || audited.leader().is_none_or(|leader| leader.is_ok_and(|leader| !leader.is_empty())));
        Some(audited)
    }

    /// Who leads, where anybody has to.
    fn leader(&self) -> Option<Result<String, String>> {
        let lease = self.lease.as_deref()?;
        Some(self.lab.kubectl(["get", "lease", "-n=kube-system", lease, "-o=jsonpath={.spec.holderIdentity}"]))
    }

    /// Ends it, in good order. Nothing was refused that it has asked for; and whatever the roles grant was asked for, but for what
    /// cannot be seen here.
    pub fn end(mut self, roles: &[Value], unseen: &[(&str, &str)]) {
        self.program.terminate().expect("it is told to stop");
        let status = self.program.wait(TIMEOUT).expect("it stops");
        let log = self.program.log();
        assert!(status.success(), "{status}:\n{log}");
        let forbidden: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden: User")).collect();
        assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
        assert!(self.leader().is_none_or(|leader| leader.as_deref() == Ok("")), "the lease is free for the next");

        // What was asked for last may be put down after it was answered.
        let mut useless = Vec::new();
        wait_until(|| {
            useless = self.useless(roles, unseen);
            useless.is_empty()
        });
        assert!(useless.is_empty(), "granted, but never used: {useless:?}");
        let refused: Vec<_> = asked(&self.folder).into_iter().filter(|(_, allowed)| !allowed).collect();
        assert!(refused.is_empty(), "refused: {refused:?}");
    }

    /// What the roles grant and was not asked for, but for what cannot be seen here.
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

/// Starts the controllers beside it, as their own service account: they bind claims, and let go what nobody uses.
pub fn start_controller(lab: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(lab, "controller").display());
    let args = ["controller", &kubeconfig, "--listen=127.0.0.1:0"];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// Makes objects as the administrator.
pub fn make(lab: &TestCluster, objects: &str) {
    lab.kubectl_with_input(objects, ["create", "-f", "-"]).expect("objects are made");
}

/// A field of an object, or nothing where there is none.
pub fn field(lab: &TestCluster, object: &str, path: &str) -> String {
    lab.kubectl(["get", object, "-o", &format!("jsonpath={{{path}}}")]).unwrap_or_default()
}

/// How often one and the same event was told, of a reason and with these words in it.
pub fn times_told(lab: &TestCluster, reason: &str, words: &str) -> u64 {
    let events = json(lab, &["get", "events", "--all-namespaces", &format!("--field-selector=reason={reason}")]);
    let has_words = |event: &&Value| event["message"].as_str().is_some_and(|message| message.contains(words));
    let told = events["items"].as_array().into_iter().flatten().filter(has_words);
    told.filter_map(|event| event["count"].as_u64()).max().unwrap_or_default()
}

/// What kubectl answers.
pub fn json(lab: &TestCluster, args: &[&str]) -> Value {
    let text = lab.kubectl([args, &["-o", "json"]].concat()).expect("kubectl answers");
    serde_json::from_str(&text).expect("JSON")
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
    // A last line that has no end yet is still being written.
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
