//! `bindery explain`: why a claim, volume or pod is in its state.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use bindery_binder::Binder;
use bindery_cache::Cache;
use bindery_explain::{Explanation, LINES, RejectedRequest, explain_claim, explain_pod, explain_volume, provisioning};
use bindery_model::event::Reason;
use bindery_model::{ClaimKey, Kind, Name, PodKey};
use bindery_runtime::{Api, CALL_DEADLINE};
use serde_json::Value;

use crate::cluster::{Cluster, ClusterFlags, parse_url};
use crate::snapshot::{self, Snapshot};
use crate::stdout::{self, OutputFormat};

/// Flags of `bindery explain`.
#[derive(clap::Args)]
pub struct Args {
    /// Object to explain: pvc/NAME, pv/NAME or pod/NAME.
    #[arg(value_name = "KIND/NAME", value_parser = parse_target)]
    target: Target,
    /// Namespace of the claim or pod [default: that of the kubeconfig context, else "default"].
    #[arg(short, long)]
    namespace: Option<String>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
    /// Print a line for every candidate and every node, without grouping.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Address of a running controller, scheduler or provisioner (its --listen). Also shows the
    /// last request about the object that the API server rejected, as that program knows it.
    #[arg(long, value_name = "HOST:PORT")]
    controller: Option<String>,
    /// Read files instead of a cluster, - for standard input. May be repeated.
    ///
    /// Accepts the output of `kubectl get pv,pvc,sc,vac,pods,nodes,events -A -o yaml` (or json). To
    /// explain pods that depend on CSI capacity or attach limits, add
    /// csidrivers,csinodes,csistoragecapacities,volumeattachments.
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
}

#[derive(Clone)]
enum Target {
    Claim(Name),
    Volume(Name),
    Pod(Name),
}

fn parse_target(text: &str) -> Result<Target, String> {
    match text.split_once('/') {
        Some((_, "")) | None => Err("expected pvc/NAME, pv/NAME or pod/NAME".into()),
        Some(("pvc" | "persistentvolumeclaim" | "persistentvolumeclaims", name)) => Ok(Target::Claim(name.into())),
        Some(("pv" | "persistentvolume" | "persistentvolumes", name)) => Ok(Target::Volume(name.into())),
        Some(("po" | "pod" | "pods", name)) => Ok(Target::Pod(name.into())),
        Some((kind, _)) => Err(format!("cannot explain {kind:?}: expected pvc/NAME, pv/NAME or pod/NAME")),
    }
}

/// Reads the objects, and prints the explanation.
pub async fn run(args: Args) -> Result<(), String> {
    let (Snapshot { known, warnings, events }, default_namespace) = read(&args).await?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let namespace = args.namespace.as_deref().unwrap_or(&default_namespace);
    let mut explanation = explain(&known, &events, &args, namespace)?;
    explanation.rejected = match &args.controller {
        Some(address) => ask_controller(address, &args.target, namespace).await?,
        None => rejected_event(&events, &explanation),
    };
    stdout::print(&match args.output {
        OutputFormat::Text if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() => {
            format!("{explanation:#}")
        }
        OutputFormat::Text => explanation.to_string(),
        OutputFormat::Json => stdout::pretty_json(&explanation)?,
    })
}

/// The objects, and the namespace that applies without `--namespace`.
async fn read(args: &Args) -> Result<(Snapshot, String), String> {
    if !args.files.is_empty() {
        return Ok((snapshot::of_files(&args.files)?, "default".to_owned()));
    }
    let cluster = args.cluster.load().await?;
    let client = cluster.client()?;
    // One quick request distinguishes an unreachable server from a kind that cannot be listed.
    cluster.version(&client).await?;
    let default_namespace = cluster.config.default_namespace.clone();
    let mut snapshot = snapshot::of_cluster(client.clone()).await?;
    let namespace = args.namespace.as_deref().unwrap_or(&default_namespace);
    let (namespace, name) = match &args.target {
        Target::Claim(name) | Target::Pod(name) => (namespace, name),
        // Events about cluster-scoped objects are in the namespace `default`.
        Target::Volume(name) => ("default", name),
    };
    snapshot.events = snapshot::events_about(client, namespace, name).await;
    Ok((snapshot, default_namespace))
}

fn explain(known: &Cache, events: &[Value], args: &Args, namespace: &str) -> Result<Explanation, String> {
    let binder = Binder::default();
    let lines_max = if args.all { usize::MAX } else { LINES };
    match &args.target {
        Target::Volume(name) => {
            explain_volume(&binder, known, name, lines_max).map_err(|not_found| not_found.to_string())
        }
        Target::Claim(name) => {
            let key = ClaimKey::new(namespace, name.clone());
            let mut explanation = explain_claim(&binder, known, &key, lines_max)
                .map_err(|not_found| format!("{not_found}{}", other_namespaces(known, Kind::Claim, name)))?;
            explanation.provisioning = known.claim(&key).and_then(|claim| provisioning(known, claim, events));
            Ok(explanation)
        }
        Target::Pod(name) => {
            let key = PodKey { namespace: namespace.into(), name: name.clone() };
            explain_pod(known, &key, lines_max)
                .map_err(|not_found| format!("{not_found}{}", other_namespaces(known, Kind::Pod, name)))
        }
    }
}

/// The request about the object that was rejected last, according to a running program.
async fn ask_controller(address: &str, target: &Target, namespace: &str) -> Result<Option<RejectedRequest>, String> {
    let query = match target {
        Target::Claim(name) => format!("pvc={namespace}/{name}"),
        Target::Pod(name) => format!("pod={namespace}/{name}"),
        Target::Volume(name) => format!("pv={name}"),
    };
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let program = Cluster::at(parse_url("--controller", &url)?);
    let api = Api::new(program.client()?, CALL_DEADLINE, None);
    let state = api.get(&format!("/debug/state.json?{query}")).await;
    let mut state = state.map_err(|error| format!("cannot ask the program at {url}: {error}"))?;
    serde_json::from_value(state["lastRejection"].take())
        .map_err(|error| format!("cannot understand the program at {url}: {error}"))
}

/// The request about the object that was rejected last, according to events, unless its work is
/// done.
fn rejected_event(events: &[Value], explanation: &Explanation) -> Option<RejectedRequest> {
    let is_about = |event: &&Value| {
        let object = &event["involvedObject"];
        event["reason"] == Reason::RequestRejected.as_str()
            && object["kind"] == explanation.kind
            && object["name"] == explanation.name.as_str()
            && object["namespace"].as_str().unwrap_or_default() == explanation.namespace.as_str()
    };
    let seen = |event: &Value| event["lastTimestamp"].as_str().unwrap_or_default().to_owned();
    let last = events.iter().filter(is_about).max_by_key(|event| seen(event))?;
    let error = last["message"].as_str().unwrap_or_default().to_owned();
    let is_done = explanation.next.action == "nothing";
    (!is_done).then(|| RejectedRequest { error, last_seen: Some(seen(last)), ..RejectedRequest::default() })
}

/// Explains a claim as text.
pub fn claim_as_text(known: &Cache, namespace: &str, name: &str) -> Result<String, String> {
    let explanation = explain_claim(&Binder::default(), known, &ClaimKey::new(namespace, name), LINES);
    explanation.map(|explanation| explanation.to_string()).map_err(|not_found| not_found.to_string())
}

/// A hint if other namespaces have an object of that kind and name.
fn other_namespaces(known: &Cache, kind: Kind, name: &Name) -> String {
    let mut namespaces: Vec<Name> =
        known.keys(kind).into_iter().filter(|key| key.name == *name).map(|key| key.namespace).collect();
    namespaces.sort();
    match namespaces.as_slice() {
        [] => String::new(),
        [one] => format!("; namespace {one} has one with that name: try -n {one}"),
        several => format!("; these namespaces have one with that name: {}", several.join(", ")),
    }
}
