//! `bindery apiserver snapshot`: a backup of a running server.

use std::path::PathBuf;

use bindery_apiserver::disk::SnapshotWriter;
use bindery_runtime::connection_error;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;

use crate::cluster::ClusterFlags;
use crate::stdout;

/// Flags of `bindery apiserver snapshot`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Directory to write, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// Writes a snapshot of a running server into a directory.
pub async fn run(args: Args) -> Result<(), String> {
    let cluster = args.cluster.load().await?;
    let failed = |error: &dyn std::fmt::Display| format!("cannot read a snapshot from {cluster}: {error}");
    let request = Request::get("/snapshot").body(Vec::new()).map_err(|error| failed(&error))?;
    let stream = cluster.client()?.request_stream(request).await.map_err(|error| {
        let is_other_server = matches!(&error, kube::Error::Api(status) if status.code == 404);
        if is_other_server { failed(&"it is not an API server of bindery") } else { failed(&connection_error(&error)) }
    })?;
    let mut lines = stream.lines();
    let mut next = async || lines.next().await.transpose().map_err(|error| failed(&error));
    let first = next().await?.unwrap_or_default();
    let mut writer = SnapshotWriter::create(&args.output, &first)?;
    while let Some(line) = next().await? {
        writer.add(&line)?;
    }
    let (objects, revision) = writer.finish()?;
    let dir = args.output.display();
    stdout::print(&format!("wrote {objects} objects at revision {revision} to {dir}\n"))
}
