//! Restarts, crashes and damage.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::api::{Answer, AnswerBody, Body, Options, Request, Target, Verb};
use crate::http::Journal as _;
use crate::kinds::Kind;
use crate::status::Status;

/// A directory for one test, not created yet.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("bindery-disk-{}-{number}", std::process::id())))
    }

    fn store(&self) -> PathBuf {
        self.0.join("store.redb")
    }

    fn open(&self) -> Result<Cluster, String> {
        let context = RequestContext { now: "2026-01-02T03:04:05Z".parse().expect("a time"), seed: 7 };
        let (mut api, disk) = open(&self.0, Settings::default(), &context)?;
        disk.append(api.take_records());
        Ok(Cluster { api, disk, context })
    }

    fn rejection(&self) -> String {
        self.open().err().expect("it is rejected")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Cluster {
    api: Api,
    disk: Disk,
    context: RequestContext,
}

fn request(verb: Verb, name: &str, body: &Value) -> Request {
    let kind = Kind::of_path("", "v1", "configmaps").expect("a kind");
    Request {
        verb,
        target: Target { kind, namespace: "default".into(), name: name.into(), subresource: String::new() },
        options: Options::default(),
        body: Body { bytes: if body.is_null() { Bytes::new() } else { body.to_string().into() }, ..Body::default() },
        user_agent: "test".into(),
    }
}

impl Cluster {
    fn send(&mut self, verb: Verb, name: &str, body: &Value) -> Result<Answer, Status> {
        let answer = self.decide(verb, name, body);
        self.disk.append(self.api.take_records());
        answer
    }

    /// Makes a change without appending it to the journal.
    fn decide(&mut self, verb: Verb, name: &str, body: &Value) -> Result<Answer, Status> {
        self.context.seed += 1 << 32;
        self.api.handle(&self.context, &request(verb, name, body))
    }

    fn make(&mut self, name: &str) -> Bytes {
        let created =
            self.send(Verb::Create, "", &json!({"metadata": {"name": name}, "data": {"of": name.repeat(100)}}));
        object(created.expect("it is created"))
    }

    fn get(&self, name: &str) -> Option<Bytes> {
        self.api.read(&request(Verb::Get, name, &Value::Null)).ok().map(object)
    }

    async fn synced(&self) {
        self.disk.persisted(self.api.revision()).await.expect("it is made durable");
    }
}

fn object(answer: Answer) -> Bytes {
    let AnswerBody::Object(object) = answer.body else { panic!("not an object: {answer:?}") };
    object
}

fn watch_from(cluster: &Cluster, plural: &str, revision: u64) -> Result<usize, u16> {
    let kind = Kind::of_path("", "v1", plural).expect("a kind");
    let changes = cluster.api.changes_after(kind, revision, u64::MAX, 10);
    changes.map(|changes| changes.len()).map_err(|status| status.http_code())
}

#[tokio::test]
async fn a_restart_restores_objects_and_revision() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new directory");
    let load_or_create = cluster.make("kept");
    cluster.make("gone");
    cluster.send(Verb::Delete, "gone", &Value::Null).expect("it is deleted");
    cluster.synced().await;
    let left = cluster.api.revision();
    drop(cluster);

    let again = scratch.open().expect("the same directory");
    assert_eq!(again.api.revision(), left, "a restart writes nothing, and the deletion has a revision, too");
    assert_eq!(again.get("kept"), Some(load_or_create), "byte for byte, including the UID");
    assert_eq!(again.get("gone"), None);
    assert_eq!(watch_from(&again, "configmaps", left), Ok(0));
    assert_eq!(watch_from(&again, "configmaps", left - 1), Err(410), "history is not persisted");
    assert_eq!(watch_from(&again, "secrets", left - 1), Err(410), "there may have been changes");
    again.synced().await;
}

#[tokio::test]
async fn every_restart_continues_from_the_last() {
    let scratch = Scratch::new();
    let mut created = Vec::new();
    for name in ["a", "b", "c"] {
        let mut cluster = scratch.open().expect("the directory");
        created.push((name, cluster.make(name)));
        cluster.synced().await;
    }
    let cluster = scratch.open().expect("the directory");
    for (name, object) in created {
        assert_eq!(cluster.get(name), Some(object));
    }
}

#[tokio::test]
async fn appended_records_are_persisted_on_close() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new directory");
    let created: Vec<Bytes> = (0..100).map(|number| cluster.make(&format!("m{number}"))).collect();
    cluster.disk.close();
    let late = cluster.api.revision() + 1;
    cluster.make("late");
    assert_eq!(cluster.disk.persisted(late).await, Err("the server is stopped".to_owned()));
    let again = scratch.open().expect("closing the journal unlocks the directory");
    assert_eq!((0..100).filter_map(|number| again.get(&format!("m{number}"))).collect::<Vec<_>>(), created);
    assert_eq!(again.get("late"), None);
}

#[test]
fn a_data_directory_is_locked_by_one_server() {
    let scratch = Scratch::new();
    let first = scratch.open().expect("a new directory");
    let expected = format!("{} is in use by another server (process {})", scratch.0.display(), std::process::id());
    assert_eq!(scratch.rejection(), expected);
    drop(first);
    scratch.open().expect("the directory is unlocked");
}

#[test]
fn only_the_owner_can_read_the_data_directory() {
    let scratch = Scratch::new();
    let _cluster = scratch.open().expect("a new directory");
    let mode = |path: PathBuf| std::fs::metadata(path).expect("the file exists").permissions().mode() & 0o777;
    assert_eq!(mode(scratch.0.clone()), 0o700);
    assert_eq!(mode(scratch.store()), 0o600);
    assert_eq!(mode(scratch.0.join("lock")), 0o600);
}

#[test]
fn a_directory_with_foreign_files_is_rejected_unchanged() {
    for (name, io_error) in [
        ("notes.txt", "contains notes.txt, which this server did not write"),
        ("ca.key", "contains ca.key but no store.redb: restore store.redb"),
    ] {
        let scratch = Scratch::new();
        std::fs::create_dir(&scratch.0).expect("a directory");
        std::fs::write(scratch.0.join(name), "mine").expect("a file");
        let rejection = scratch.rejection();
        assert!(rejection.contains(io_error), "{rejection}");
        assert!(rejection.contains(&*scratch.0.to_string_lossy()), "{rejection}");
        assert_eq!(std::fs::read_dir(&scratch.0).expect("a directory").count(), 1);
    }
}

#[test]
fn an_unfinished_database_is_created_again() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).expect("a directory");
    std::fs::write(scratch.0.join("store.redb.new"), "half").expect("a file");
    scratch.open().expect("nothing in it was acknowledged");
    assert!(!scratch.0.join("store.redb.new").exists());
}

#[test]
fn a_file_that_is_not_a_database_is_rejected_unchanged() {
    let long = vec![b'x'; 1 << 20];
    for content in [&b""[..], b"not a database", &long] {
        let scratch = Scratch::new();
        std::fs::create_dir(&scratch.0).expect("a directory");
        std::fs::write(scratch.store(), content).expect("a file");
        let rejection = scratch.rejection();
        assert!(rejection.starts_with(&*scratch.store().to_string_lossy()), "{rejection}");
        assert_eq!(std::fs::read(scratch.store()).expect("the file exists"), content);
    }
}

#[test]
fn damage_anywhere_is_detected() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new directory");
    let created: Vec<Bytes> = (0..60).map(|number| cluster.make(&format!("m{number}"))).collect();
    drop(cluster);
    let whole = std::fs::read(scratch.store()).expect("the file exists");
    let mut noticed = 0;
    for at in (0..whole.len()).filter(|at| at % 4093 == 0 && whole[*at] != 0) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x11;
        std::fs::write(scratch.store(), damaged).expect("the file is written");
        match scratch.open() {
            Ok(cluster) => {
                let found: Vec<_> = (0..60).filter_map(|number| cluster.get(&format!("m{number}"))).collect();
                assert_eq!(found, created, "a changed byte at {at} was not detected");
            }
            Err(rejection) => {
                assert!(rejection.starts_with(&*scratch.store().to_string_lossy()), "{rejection}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 0, "no damage was detected");
}

#[test]
fn a_truncated_database_is_rejected() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new directory");
    (0..60).for_each(|number| drop(cluster.make(&format!("m{number}"))));
    drop(cluster);
    let whole = std::fs::read(scratch.store()).expect("the file exists");
    std::fs::write(scratch.store(), &whole[..whole.len() / 2]).expect("the file is written");
    let rejection = scratch.rejection();
    assert!(rejection.starts_with(&*scratch.store().to_string_lossy()), "{rejection}");
}

/// A possible content of the disk after a power failure during a commit: some sectors are written,
/// some are not.
fn torn(before: &[u8], after: &[u8], rng: &mut u64) -> Vec<u8> {
    const SECTOR: usize = 512;
    let mut image = before.to_vec();
    image.resize(after.len().max(before.len()), 0);
    for (at, written) in after.chunks(SECTOR).enumerate() {
        *rng ^= *rng << 13;
        *rng ^= *rng >> 7;
        *rng ^= *rng << 17;
        if *rng & 1 == 0 {
            image[at * SECTOR..at * SECTOR + written.len()].copy_from_slice(written);
        }
    }
    image
}

#[tokio::test]
async fn a_power_failure_during_a_commit_leaves_all_of_it_or_nothing() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let mut cluster = scratch.open().expect("a new directory");
    let image = || std::fs::read(scratch.store()).expect("the file exists");
    let mut rng = 0x9e37_79b9_7f4a_7c15;
    let mut seen = [0, 0];
    for round in 0..8 {
        let first = cluster.make(&format!("first{round}"));
        cluster.synced().await;
        let (before, revision) = (image(), cluster.api.revision());
        cluster.decide(Verb::Delete, &format!("first{round}"), &Value::Null).expect("it is deleted");
        cluster.make(&format!("second{round}"));
        cluster.synced().await;
        let after = image();
        for torn in (0..12).map(|_| torn(&before, &after, &mut rng)).chain([before.clone(), after.clone()]) {
            let _ = std::fs::create_dir(&other.0);
            std::fs::write(other.store(), torn).expect("the file is written");
            let found = other.open().expect("the last synced state is intact");
            let both = (found.get(&format!("first{round}")), found.get(&format!("second{round}")));
            match found.api.revision() - revision {
                0 => assert_eq!(both, (Some(first.clone()), None)),
                2 => assert!(both.0.is_none() && both.1.is_some()),
                part => panic!("{part} of two changes were applied"),
            }
            seen[usize::from(found.api.revision() > revision)] += 1;
        }
    }
    assert!(seen[0] > 8 && seen[1] >= 8, "both outcomes occur: {seen:?}");
}

#[tokio::test]
async fn a_file_that_is_mostly_free_is_compacted_at_the_next_start() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new cluster");
    let filling = "x".repeat(500_000);
    // Each object is in a commit of its own, so that the last is near the end of the file. redb
    // itself removes only free space at the end.
    for number in 0..20 {
        let object = json!({"metadata": {"name": format!("c{number}")}, "data": {"a": filling}});
        cluster.send(Verb::Create, "", &object).expect("it is created");
        cluster.synced().await;
    }
    for number in 0..19 {
        cluster.send(Verb::Delete, &format!("c{number}"), &Value::Null).expect("it is deleted");
    }
    let kept = cluster.get("c19").expect("it exists");
    drop(cluster);
    let size = || std::fs::metadata(scratch.store()).expect("it exists").len();
    let before = size();
    assert!(before > 4 << 20, "redb has already shrunk the file: {before} bytes");
    let cluster = scratch.open().expect("it is restored");
    assert_eq!(cluster.get("c19"), Some(kept.clone()));
    assert_eq!(cluster.get("c1"), None);
    drop(cluster);
    assert!(size() < before / 2, "{before} bytes, and then {}", size());
    let again = scratch.open().expect("the compacted file is restored");
    assert_eq!(again.get("c19"), Some(kept));
}
