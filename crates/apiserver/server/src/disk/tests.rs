//! What is found again, and what is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::api::{Answer, Body, Done, Options, Request, Target, Verb};
use crate::http::Journal as _;
use crate::kinds::Kind;
use crate::status::Status;

/// A folder for one test, which is not made yet.
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
        let moment = Moment { now: "2026-01-02T03:04:05Z".parse().expect("a time"), seed: 7 };
        let (mut api, disk) = open(&self.0, Settings::default(), &moment)?;
        disk.append(api.take_records());
        Ok(Cluster { api, disk, moment })
    }

    fn refusal(&self) -> String {
        self.open().err().expect("it is refused")
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
    moment: Moment,
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

    /// Does something that is not handed to the disk yet.
    fn decide(&mut self, verb: Verb, name: &str, body: &Value) -> Result<Answer, Status> {
        self.moment.seed += 1 << 32;
        self.api.handle(&self.moment, &request(verb, name, body))
    }

    fn make(&mut self, name: &str) -> Bytes {
        let made = self.send(Verb::Create, "", &json!({"metadata": {"name": name}, "data": {"of": name.repeat(100)}}));
        object(made.expect("it is made"))
    }

    fn get(&self, name: &str) -> Option<Bytes> {
        self.api.read(&request(Verb::Get, name, &Value::Null)).ok().map(object)
    }

    async fn synced(&self) {
        self.disk.persisted(self.api.revision()).await.expect("it is made durable");
    }
}

fn object(answer: Answer) -> Bytes {
    let Done::Object(object) = answer.body else { panic!("not an object: {answer:?}") };
    object
}

fn watch_from(cluster: &Cluster, plural: &str, revision: u64) -> Result<usize, u16> {
    let kind = Kind::of_path("", "v1", plural).expect("a kind");
    let changes = cluster.api.changes_after(kind, revision, u64::MAX, 10);
    changes.map(|changes| changes.len()).map_err(|status| status.http_code())
}

#[tokio::test]
async fn a_cluster_is_found_as_it_was_left() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new folder");
    let kept = cluster.make("kept");
    cluster.make("gone");
    cluster.send(Verb::Delete, "gone", &Value::Null).expect("it is deleted");
    cluster.synced().await;
    let left = cluster.api.revision();
    drop(cluster);

    let again = scratch.open().expect("the same folder");
    assert_eq!(again.api.revision(), left, "nothing is written by a restart, and the last deletion counts");
    assert_eq!(again.get("kept"), Some(kept), "to the byte, its UID too");
    assert_eq!(again.get("gone"), None);
    assert_eq!(watch_from(&again, "configmaps", left), Ok(0));
    assert_eq!(watch_from(&again, "configmaps", left - 1), Err(410), "history is not kept");
    assert_eq!(watch_from(&again, "secrets", left - 1), Err(410), "there may have been some");
    again.synced().await;
}

#[tokio::test]
async fn a_restart_goes_on_where_the_last_one_ended() {
    let scratch = Scratch::new();
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        let mut cluster = scratch.open().expect("the folder");
        made.push((name, cluster.make(name)));
        cluster.synced().await;
    }
    let cluster = scratch.open().expect("the folder");
    for (name, object) in made {
        assert_eq!(cluster.get(name), Some(object));
    }
}

#[tokio::test]
async fn what_was_taken_is_kept_though_nobody_waits_for_it() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new folder");
    let made: Vec<Bytes> = (0..100).map(|number| cluster.make(&format!("m{number}"))).collect();
    cluster.disk.close();
    let late = cluster.api.revision() + 1;
    cluster.make("late");
    assert_eq!(cluster.disk.persisted(late).await, Err("the server has stopped".to_owned()));
    let again = scratch.open().expect("the folder is free, though the journal is still there");
    assert_eq!((0..100).filter_map(|number| again.get(&format!("m{number}"))).collect::<Vec<_>>(), made);
    assert_eq!(again.get("late"), None);
}

#[test]
fn two_servers_never_share_a_folder() {
    let scratch = Scratch::new();
    let first = scratch.open().expect("a new folder");
    let expected = format!("{} is in use by another server (process {})", scratch.0.display(), std::process::id());
    assert_eq!(scratch.refusal(), expected);
    drop(first);
    scratch.open().expect("it is free again");
}

#[test]
fn only_the_owner_can_look_inside() {
    let scratch = Scratch::new();
    let _cluster = scratch.open().expect("a new folder");
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(scratch.0.clone()), 0o700);
    assert_eq!(mode(scratch.store()), 0o600);
    assert_eq!(mode(scratch.0.join("lock")), 0o600);
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    for (name, said) in [
        ("notes.txt", "holds notes.txt, which is not of this server"),
        ("ca.key", "holds ca.key, but no store.redb: bring that back"),
    ] {
        let scratch = Scratch::new();
        std::fs::create_dir(&scratch.0).expect("a folder");
        std::fs::write(scratch.0.join(name), "mine").expect("a file");
        let refusal = scratch.refusal();
        assert!(refusal.contains(said), "{refusal}");
        assert!(refusal.contains(&*scratch.0.to_string_lossy()), "{refusal}");
        assert_eq!(std::fs::read_dir(&scratch.0).expect("a folder").count(), 1);
    }
}

#[test]
fn a_store_that_was_never_finished_is_begun_anew() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).expect("a folder");
    std::fs::write(scratch.0.join("store.redb.new"), "half").expect("a file");
    scratch.open().expect("nobody was promised anything of it");
    assert!(!scratch.0.join("store.redb.new").exists());
}

#[test]
fn a_file_that_is_no_store_is_named_and_left_alone() {
    let long = vec![b'x'; 1 << 20];
    for content in [&b""[..], b"not a database", &long] {
        let scratch = Scratch::new();
        std::fs::create_dir(&scratch.0).expect("a folder");
        std::fs::write(scratch.store(), content).expect("a file");
        let refusal = scratch.refusal();
        assert!(refusal.starts_with(&*scratch.store().to_string_lossy()), "{refusal}");
        assert_eq!(std::fs::read(scratch.store()).expect("it is there"), content);
    }
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new folder");
    let made: Vec<Bytes> = (0..60).map(|number| cluster.make(&format!("m{number}"))).collect();
    drop(cluster);
    let whole = std::fs::read(scratch.store()).expect("it is there");
    let mut noticed = 0;
    for at in (0..whole.len()).filter(|at| at % 4093 == 0 && whole[*at] != 0) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x11;
        std::fs::write(scratch.store(), damaged).expect("it can be written");
        match scratch.open() {
            Ok(cluster) => {
                let found: Vec<_> = (0..60).filter_map(|number| cluster.get(&format!("m{number}"))).collect();
                assert_eq!(found, made, "a byte was changed at {at}, and nothing was said");
            }
            Err(refusal) => {
                assert!(refusal.starts_with(&*scratch.store().to_string_lossy()), "{refusal}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 0, "no byte of an object was changed");
}

#[test]
fn a_store_that_lost_its_end_is_refused() {
    let scratch = Scratch::new();
    let mut cluster = scratch.open().expect("a new folder");
    (0..60).for_each(|number| drop(cluster.make(&format!("m{number}"))));
    drop(cluster);
    let whole = std::fs::read(scratch.store()).expect("it is there");
    std::fs::write(scratch.store(), &whole[..whole.len() / 2]).expect("it can be written");
    let refusal = scratch.refusal();
    assert!(refusal.starts_with(&*scratch.store().to_string_lossy()), "{refusal}");
}

/// What a disk may hold when the power fails during the commit that led from one image to the next: some sectors are written, some are not.
fn torn(before: &[u8], after: &[u8], chance: &mut u64) -> Vec<u8> {
    const SECTOR: usize = 512;
    let mut image = before.to_vec();
    image.resize(after.len().max(before.len()), 0);
    for (at, written) in after.chunks(SECTOR).enumerate() {
        *chance ^= *chance << 13;
        *chance ^= *chance >> 7;
        *chance ^= *chance << 17;
        if *chance & 1 == 0 {
            image[at * SECTOR..at * SECTOR + written.len()].copy_from_slice(written);
        }
    }
    image
}

#[tokio::test]
async fn a_power_failure_during_a_commit_leaves_all_of_it_or_nothing() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let mut cluster = scratch.open().expect("a new folder");
    let image = || std::fs::read(scratch.store()).expect("it is there");
    let mut chance = 0x9e37_79b9_7f4a_7c15;
    let mut seen = [0, 0];
    for round in 0..8 {
        let first = cluster.make(&format!("first{round}"));
        cluster.synced().await;
        let (before, revision) = (image(), cluster.api.revision());
        cluster.decide(Verb::Delete, &format!("first{round}"), &Value::Null).expect("it is deleted");
        cluster.make(&format!("second{round}"));
        cluster.synced().await;
        let after = image();
        for torn in (0..12).map(|_| torn(&before, &after, &mut chance)).chain([before.clone(), after.clone()]) {
            let _ = std::fs::create_dir(&other.0);
            std::fs::write(other.store(), torn).expect("it can be written");
            let found = other.open().expect("what was synced before is whole");
            let both = (found.get(&format!("first{round}")), found.get(&format!("second{round}")));
            match found.api.revision() - revision {
                0 => assert_eq!(both, (Some(first.clone()), None)),
                2 => assert!(both.0.is_none() && both.1.is_some()),
                part => panic!("{part} of two changes were made"),
            }
            seen[usize::from(found.api.revision() > revision)] += 1;
        }
    }
    assert!(seen[0] > 8 && seen[1] >= 8, "both outcomes are met: {seen:?}");
}
