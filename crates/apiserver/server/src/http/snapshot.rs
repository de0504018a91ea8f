//! `/snapshot`: all objects as of one revision, and the server's keys, as lines of JSON.
//!
//! The first line is a [`SnapshotHeader`](crate::disk::SnapshotHeader). Each further line is an
//! object: `[bucket, key, object]`. `bindery apiserver snapshot` writes them into a data directory.

use http::HeaderValue;

use super::body::Body;
use super::reply::{Reply, reply};
use super::shared::Shared;
use crate::disk::{SNAPSHOT_FORMAT, SnapshotHeader};
use crate::status::Status;

/// Responds with a snapshot. The store is locked only while references to its objects are copied.
pub async fn answer(shared: &Shared) -> Result<Reply, Status> {
    let (objects, revision) = shared.read(|api| {
        let objects = api.store().everything();
        Ok(objects.map(|(bucket, key, object)| (bucket, key.clone(), object.bytes.clone())).collect::<Vec<_>>())
    });
    let objects = objects?;
    shared.persisted(revision).await?;
    let header =
        SnapshotHeader { format: SNAPSHOT_FORMAT, revision, objects: objects.len() as u64, keys: shared.keys.clone() };
    let mut first = serde_json::to_vec(&header).map_err(Status::internal)?;
    first.push(b'\n');
    let lines = objects.into_iter().map(|(bucket, key, object)| {
        let mut line = format!("[\"{bucket}\",{},", serde_json::Value::from(&*key)).into_bytes();
        line.extend_from_slice(&object);
        line.extend_from_slice(b"]\n");
        line
    });
    let lines = std::iter::once(first).chain(lines);
    Ok(reply(200, HeaderValue::from_static("application/x-ndjson"), Body::Lines(Box::new(lines))))
}
