//! `bindery explain`: why a claim, volume or pod is in its state.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use bindery_binder::Binder;
use bindery_cache::Cache;
use bindery_explain::{Explanation, LINES, explain_claim, explain_pod, explain_volume, provisioning};
use bindery_model::{ClaimKey, Kind, Name, PodKey};
use serde_json::Value;

use crate::cluster::ClusterFlags;
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
    let explanation = explain(&known, &events, &args, namespace)?;
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
    if let Target::Claim(name) = &args.target {
        let namespace = args.namespace.as_deref().unwrap_or(&default_namespace);
        snapshot.events = snapshot::events_about(client, namespace, name).await;
    }
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
