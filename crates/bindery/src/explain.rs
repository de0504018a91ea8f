//! `bindery explain`: why a claim, a volume or a pod is as it is.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

use bindery_binder::Binder;
use bindery_cache::Cache;
use bindery_explain::{Explanation, LINES, explain_claim, explain_pod, explain_volume, provisioning};
use bindery_model::{ClaimKey, Kind, Name, PodKey};
use serde_json::Value;

use crate::connect;
use crate::snapshot::{self, Snapshot};

/// What to explain, and where.
#[derive(clap::Args)]
pub struct Args {
    /// What to explain: pvc/NAME, pv/NAME or pod/NAME.
    #[arg(value_parser = target)]
    target: Target,
    /// The namespace of the claim or the pod [default: that of the kubeconfig's context, else "default"].
    #[arg(short, long)]
    namespace: Option<String>,
    /// For a person, or for a program.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// A line for every candidate and every node, however many there are.
    #[arg(long)]
    all: bool,
    /// How to reach the API server [default: KUBECONFIG, then ~/.kube/config, then the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Read files instead of a cluster: what `kubectl get pv,pvc,sc,vac,pods,nodes,events -A -o yaml` writes; - for standard input.
    /// Where capacity or limits of CSI drivers count for a pod, add csidrivers,csinodes,csistoragecapacities,volumeattachments.
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with = "kubeconfig")]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone)]
enum Target {
    Claim(Name),
    Volume(Name),
    Pod(Name),
}

fn target(text: &str) -> Result<Target, String> {
    match text.split_once('/') {
        Some((_, "")) | None => Err("it should be pvc/NAME, pv/NAME or pod/NAME".into()),
        Some(("pvc" | "persistentvolumeclaim" | "persistentvolumeclaims", name)) => Ok(Target::Claim(name.into())),
        Some(("pv" | "persistentvolume" | "persistentvolumes", name)) => Ok(Target::Volume(name.into())),
        Some(("po" | "pod" | "pods", name)) => Ok(Target::Pod(name.into())),
        Some((kind, _)) => Err(format!("{kind:?} is neither pvc nor pv nor pod")),
    }
}

/// Reads what there is, and explains.
pub async fn run(args: Args) -> Result<(), String> {
    let (Snapshot { known, warnings, events }, context) = if args.files.is_empty() {
        let config = connect::config(args.kubeconfig.as_deref()).await?;
        let context = config.default_namespace.clone();
        let client = bindery_runtime::client(config)?;
        let mut snapshot = snapshot::of_cluster(client.clone()).await?;
        if let Target::Claim(name) = &args.target {
            let namespace = args.namespace.as_deref().unwrap_or(&context);
            snapshot.events = snapshot::events_about(client, namespace, name).await;
        }
        (snapshot, context)
    } else {
        (snapshot::of_files(&args.files)?, "default".to_owned())
    };
    for warning in warnings {
        eprintln!("bindery: {warning}");
    }
    let explanation = explain(&known, &events, &args, &context)?;
    print(&match args.output {
        Format::Text if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() => {
            format!("{explanation:#}")
        }
        Format::Text => explanation.to_string(),
        Format::Json => {
            let json = serde_json::to_string_pretty(&explanation);
            json.map_err(|error| format!("cannot write JSON: {error}"))? + "\n"
        }
    })
}

fn explain(known: &Cache, events: &[Value], args: &Args, context: &str) -> Result<Explanation, String> {
    let binder = Binder::default();
    let lines_max = if args.all { usize::MAX } else { LINES };
    let namespace = args.namespace.as_deref().unwrap_or(context);
    match &args.target {
        Target::Volume(name) => {
            explain_volume(&binder, known, name, lines_max).map_err(|not_found| not_found.to_string())
        }
        Target::Claim(name) => {
            let key = ClaimKey::new(namespace, name.clone());
            let mut explanation = explain_claim(&binder, known, &key, lines_max)
                .map_err(|not_found| format!("{not_found}{}", elsewhere(known, Kind::Claim, name)))?;
            explanation.provisioning = known.claim(&key).and_then(|claim| provisioning(known, claim, events));
            Ok(explanation)
        }
        Target::Pod(name) => {
            let key = PodKey { namespace: namespace.into(), name: name.clone() };
            explain_pod(known, &key, lines_max)
                .map_err(|not_found| format!("{not_found}{}", elsewhere(known, Kind::Pod, name)))
        }
    }
}

/// Explains a claim, to be read by a person.
pub fn of_claim(known: &Cache, namespace: &str, name: &str) -> Result<String, String> {
    let explanation = explain_claim(&Binder::default(), known, &ClaimKey::new(namespace, name), LINES);
    explanation.map(|explanation| explanation.to_string()).map_err(|not_found| not_found.to_string())
}

/// Where else there is an object of that kind and name.
fn elsewhere(known: &Cache, kind: Kind, name: &Name) -> String {
    let mut namespaces: Vec<Name> =
        known.keys(kind).into_iter().filter(|key| key.name == *name).map(|key| key.namespace).collect();
    namespaces.sort();
    match namespaces.as_slice() {
        [] => String::new(),
        [one] => format!("; there is one of that name in namespace {one}: try -n {one}"),
        several => format!("; there are some of that name in the namespaces {}", several.join(", ")),
    }
}

/// Prints to standard output. Who stops reading has read enough.
pub fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write: {error}")),
        Ok(()) | Err(_) => Ok(()),
    }
}
