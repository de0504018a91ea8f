//! Entries of several servers and of others, and files that cannot be changed.

use std::net::TcpListener;

use super::*;

fn access(address: SocketAddr, in_memory: bool) -> Access {
    let keys = Keys::create(&super::super::names::ServerNames::default(), None).expect("keys");
    Access::new(address, &keys, in_memory)
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("bindery-kubeconfig-{name}-{}", std::process::id()));
        create_private_dir(&dir).expect("the directory is created");
        Scratch(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join("config")
    }

    fn config(&self) -> Config {
        parse(&std::fs::read_to_string(self.file()).expect("the file exists")).expect("a kubeconfig")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FOREIGN: &str = r##"apiVersion: v1
kind: Config
preferences: {colors: true}
unknown: [1, 0.5, null, {deep: 'yes'}]
clusters:
- {name: prod, cluster: {server: 'https://prod:6443', insecure-skip-tls-verify: true}}
- {name: bindery, cluster: {server: 'https://elsewhere:6443'}}
users:
- name: admin
  user: {exec: {command: get-token, args: [--no, "on", "1e3", "0o7", "# x"], apiVersion: client.authentication.k8s.io/v1}}
contexts:
- {name: "on", context: {cluster: prod, user: admin, namespace: "1"}}
current-context: "on"
"##;

#[test]
fn entries_of_others_are_kept() {
    let scratch = Scratch::new("foreign");
    std::fs::write(scratch.file(), FOREIGN).expect("the file is written");
    let (_listener, address) = listener();
    let name = access(address, false).add_to(&scratch.file()).expect("entries are added");
    assert_eq!(name, format!("bindery-{}", address.port()), "`bindery` belongs to someone else");
    let (before, mut after) = (parse(FOREIGN).expect("a kubeconfig"), scratch.config());
    assert_eq!(after["current-context"], name.as_str());
    remove(&mut after, &name);
    after.insert("current-context".to_owned(), "on".into());
    assert_eq!(after, before);
    assert!(!scratch.0.join("config.lock").exists(), "the lock is released");
}

#[test]
fn each_server_has_its_own_entries_and_replaces_only_them() {
    let scratch = Scratch::new("two");
    let ((_first, at_first), (_second, at_second)) = (listener(), listener());
    let (first, second) = (access(at_first, true), access(at_second, false));
    assert_eq!(first.add_to(&scratch.file()).as_deref(), Ok("bindery"));
    let second_name = second.add_to(&scratch.file()).expect("entries are added");
    assert_eq!(second_name, format!("bindery-{}", at_second.port()));
    assert_eq!(first.add_to(&scratch.file()).as_deref(), Ok("bindery"), "a restart finds its own name");
    // A new in-memory server at the same address replaces the old one, whose keys are lost.
    assert_eq!(access(at_first, true).add_to(&scratch.file()).as_deref(), Ok("bindery"));
    assert_eq!(items(&scratch.config(), "users").len(), 2);
    // The old one, which may end later, does not remove the entries of the new one.
    first.remove_from(&scratch.file(), "bindery").expect("nothing is removed");
    assert_eq!(items(&scratch.config(), "users").len(), 2);
    // A server with a data directory keeps its entries wherever it listens.
    let moved = Access { address: at_first, ..second };
    assert_eq!(moved.add_to(&scratch.file()).as_deref(), Ok(second_name.as_str()));
    let config = scratch.config();
    assert_eq!(items(&config, "clusters").len(), 2);
    assert_eq!(find(&config, "clusters", &second_name).expect("it exists")["cluster"]["server"], moved.server());
}

#[test]
fn entries_of_in_memory_servers_are_removed_when_they_end() {
    let scratch = Scratch::new("ended");
    let (listener, address) = listener();
    let stopped = access(address, true);
    let name = stopped.add_to(&scratch.file()).expect("entries are added");
    stopped.remove_from(&scratch.file(), &name).expect("entries are removed");
    assert_eq!(items(&scratch.config(), "clusters").len(), 0);
    assert_eq!(scratch.config()["current-context"], "");
    // One that was killed is removed by the next server, which also bounds their number.
    let killed = access(address, true);
    killed.add_to(&scratch.file()).expect("entries are added");
    drop(listener);
    let (_listener, address) = self::listener();
    assert_eq!(access(address, false).add_to(&scratch.file()).as_deref(), Ok("bindery"));
    assert_eq!(items(&scratch.config(), "contexts").len(), 1);
}

#[test]
fn a_file_that_is_no_kubeconfig_is_left_as_it_is() {
    let scratch = Scratch::new("invalid");
    let (_listener, address) = listener();
    for text in ["[]", "a: [", "clusters: {}", "users: [{user: {}}]", "kind: Pod", "text", "a: 1\n---\nb: 2\n"] {
        std::fs::write(scratch.file(), text).expect("the file is written");
        let error = access(address, true).add_to(&scratch.file()).expect_err("it is rejected");
        assert!(error.contains("is not a valid kubeconfig") && error.contains("--write-kubeconfig"), "{error}");
        assert_eq!(std::fs::read_to_string(scratch.file()).expect("it exists"), text);
    }
    for text in ["", "\n", "# nothing\n", "{}"] {
        std::fs::write(scratch.file(), text).expect("the file is written");
        assert_eq!(access(address, true).add_to(&scratch.file()).as_deref(), Ok("bindery"), "{text:?}");
    }
}

#[test]
fn a_locked_file_is_not_changed() {
    let scratch = Scratch::new("locked");
    std::fs::write(scratch.0.join("config.lock"), "").expect("the file is written");
    let (_listener, address) = listener();
    let error = access(address, true).add_to(&scratch.file()).expect_err("it is locked");
    assert!(error.contains("is locked by another program") && error.contains("config.lock"), "{error}");
    assert!(!scratch.file().exists());
}

#[test]
fn a_symbolic_link_stays_one() {
    let scratch = Scratch::new("link");
    let target = scratch.0.join("target");
    std::fs::write(&target, FOREIGN).expect("the file is written");
    std::os::unix::fs::symlink(&target, scratch.file()).expect("a link");
    let (_listener, address) = listener();
    access(address, true).add_to(&scratch.file()).expect("entries are added");
    assert!(scratch.file().is_symlink());
    assert_ne!(std::fs::read_to_string(target).expect("it exists"), FOREIGN);
}

#[test]
fn a_server_that_listens_on_all_addresses_is_reached_on_loopback() {
    for (address, reached) in [
        ("0.0.0.0:6443", "127.0.0.1:6443"),
        ("[::]:6443", "[::1]:6443"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("10.0.0.7:6443", "10.0.0.7:6443"),
    ] {
        let address: SocketAddr = address.parse().expect("an address");
        assert_eq!(client_address(address).to_string(), reached);
    }
}
