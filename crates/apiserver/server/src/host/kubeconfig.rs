//! The administrator's kubeconfig: a cluster, a user and a context in a file that may have others.
//!
//! As kind does, entries of other programs are kept as they are, the file is locked as client-go
//! locks it, and the new context becomes the current one. A server replaces only its own entries:
//! those with its certificate authority, and those of in-memory servers that no longer run.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::files::{create_private_dir, read_private, write_private};
use super::keys::Keys;

/// The name of the cluster and of the context, unless another server uses it.
const NAME: &str = "bindery";
/// How many names are tried.
const NAMES_MAX: usize = 100;
/// The extension that marks our entries.
const MARKER: &str = "bindery.dev/server";
/// How long to wait for another program that changes the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Only loopback addresses are probed, which respond at once.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

type Config = Map<String, Value>;

/// How the administrator reaches a server. Contains secrets.
#[derive(Clone)]
pub struct Access {
    address: SocketAddr,
    authority: String,
    certificate: String,
    key: String,
    token: String,
    /// Whether the keys are lost when the server ends.
    in_memory: bool,
}

impl Access {
    /// Access to a server that listens on `address`.
    pub fn new(address: SocketAddr, keys: &Keys, in_memory: bool) -> Access {
        let data = |pem: &str| STANDARD.encode(pem);
        Access {
            address: client_address(address),
            authority: data(&keys.authority),
            certificate: data(&keys.admin.certificate),
            key: data(&keys.admin.key),
            token: keys.token.clone(),
            in_memory,
        }
    }

    /// A kubeconfig with nothing else.
    pub fn text(&self) -> Result<String, String> {
        let mut config = Config::new();
        self.add(&mut config, NAME);
        render(config)
    }

    /// Adds entries to a file, or replaces those of this server. Returns the name of the context.
    pub fn add_to(&self, file: &Path) -> Result<String, String> {
        if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            create_private_dir(dir)?;
        }
        change(file, |config| {
            remove_ended(config);
            let name = self.free_name(config, file)?;
            remove(config, &name);
            self.add(config, &name);
            Ok(name)
        })
    }

    /// Removes the entries of this server from a file, if they cannot be used again.
    pub fn remove_from(&self, file: &Path, name: &str) -> Result<(), String> {
        if !self.in_memory || !file.exists() {
            return Ok(());
        }
        change(file, |config| {
            if find(config, "clusters", name).is_some_and(|entry| self.is_same(&entry["cluster"])) {
                remove(config, name);
            }
            Ok(())
        })
    }

    fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Whether a cluster is this server.
    fn is_same(&self, cluster: &Value) -> bool {
        cluster["certificate-authority-data"] == self.authority.as_str()
    }

    /// Whether a cluster is a server that had the same address, and whose keys were in memory.
    fn succeeds(&self, cluster: &Value) -> bool {
        is_in_memory(cluster) && cluster["server"] == self.server()
    }

    /// The name of this server, wherever it listened before; otherwise that of the server that it
    /// succeeds, or the first name that nothing uses.
    fn free_name(&self, config: &Config, file: &Path) -> Result<String, String> {
        let is_free = |name: &str| {
            let taken = [("clusters", name.to_owned()), ("contexts", name.to_owned()), ("users", user_of(name))];
            taken.iter().all(|(list, name)| find(config, list, name).is_none())
        };
        let port = self.address.port();
        let others = (1..NAMES_MAX).map(|number| match number {
            1 => format!("{NAME}-{port}"),
            _ => format!("{NAME}-{port}-{number}"),
        });
        let name_of = |is_searched: &dyn Fn(&Value) -> bool| {
            let entries = items(config, "clusters").iter().filter(|entry| is_searched(&entry["cluster"]));
            entries.filter_map(|entry| entry["name"].as_str()).find(|name| is_ours(name)).map(str::to_owned)
        };
        let own = name_of(&|cluster| self.is_same(cluster)).or_else(|| name_of(&|cluster| self.succeeds(cluster)));
        let mut names = std::iter::once(NAME.to_owned()).chain(others);
        own.or_else(|| names.find(|name| is_free(name))).ok_or_else(|| {
            format!(
                "{} has {NAMES_MAX} contexts of bindery: delete some of them, or name another file with --write-kubeconfig",
                file.display()
            )
        })
    }

    fn add(&self, config: &mut Config, name: &str) {
        let storage = if self.in_memory { "memory" } else { "disk" };
        let cluster = json!({
            "server": self.server(),
            "certificate-authority-data": self.authority,
            "extensions": [{"name": MARKER, "extension": {"storage": storage}}],
        });
        let user = json!({
            "client-certificate-data": self.certificate,
            "client-key-data": self.key,
            "token": self.token,
        });
        let context = json!({"cluster": name, "user": user_of(name)});
        push(config, "clusters", json!({"name": name, "cluster": cluster}));
        push(config, "users", json!({"name": user_of(name), "user": user}));
        push(config, "contexts", json!({"name": name, "context": context}));
        config.insert("current-context".to_owned(), name.into());
        for (field, value) in [("apiVersion", "v1"), ("kind", "Config")] {
            config.entry(field).or_insert_with(|| value.into());
        }
    }
}

/// Whether a name has the form of those that are given to servers: a copy that a user has named
/// differently is the user's.
fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(NAME);
    rest.is_some_and(|rest| rest.chars().all(|one| one == '-' || one.is_ascii_digit()))
}

fn user_of(name: &str) -> String {
    format!("{name}-admin")
}

fn items<'a>(config: &'a Config, list: &str) -> &'a [Value] {
    config.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn find<'a>(config: &'a Config, list: &str, name: &str) -> Option<&'a Value> {
    items(config, list).iter().find(|entry| entry["name"] == name)
}

fn push(config: &mut Config, list: &str, entry: Value) {
    match config.get_mut(list) {
        Some(Value::Array(entries)) => entries.push(entry),
        _ => _ = config.insert(list.to_owned(), Value::Array(vec![entry])),
    }
}

/// Removes our cluster, user and context.
fn remove(config: &mut Config, name: &str) {
    for (list, name) in [("clusters", name), ("contexts", name), ("users", &user_of(name))] {
        if let Some(Value::Array(entries)) = config.get_mut(list) {
            entries.retain(|entry| entry["name"] != name);
        }
    }
    if config.get("current-context").is_some_and(|current| current == name) {
        config.insert("current-context".to_owned(), "".into());
    }
}

/// Whether a cluster is one of our servers whose keys were in memory.
fn is_in_memory(cluster: &Value) -> bool {
    let extensions = cluster.get("extensions").and_then(Value::as_array).into_iter().flatten();
    extensions.into_iter().any(|one| one["name"] == MARKER && one["extension"]["storage"] == "memory")
}

/// Removes the entries of in-memory servers on this machine that were killed: nothing listens where
/// they did, so that nothing has their keys.
fn remove_ended(config: &mut Config) {
    let has_ended = |cluster: &Value| {
        let address = cluster["server"].as_str().and_then(|url| url.strip_prefix("https://")?.parse().ok());
        let loopback = address.filter(|address: &SocketAddr| address.ip().is_loopback());
        let refuses = |address| {
            let error = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).err();
            error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        is_in_memory(cluster) && loopback.is_some_and(refuses)
    };
    let ended = items(config, "clusters").iter().filter(|entry| has_ended(&entry["cluster"]));
    let ended: Vec<String> = ended.filter_map(|entry| Some(entry["name"].as_str()?.to_owned())).collect();
    ended.iter().for_each(|name| remove(config, name));
}

/// Changes a file while it is locked. A file that cannot be read as a kubeconfig is not changed.
fn change<T>(file: &Path, edit: impl FnOnce(&mut Config) -> Result<T, String>) -> Result<T, String> {
    // A symbolic link stays one.
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let _lock = Lock::acquire(file)?;
    let text = read_private(file)?.unwrap_or_default();
    let mut config = parse(&text).map_err(|error| {
        format!(
            "{} is not a valid kubeconfig, and is left as it is: {error}. Repair it, or name another file with --write-kubeconfig",
            file.display()
        )
    })?;
    let result = edit(&mut config)?;
    let text = render(config).map_err(|error| format!("{} cannot be changed: {error}", file.display()))?;
    write_private(file, &text)?;
    Ok(result)
}

fn parse(text: &str) -> Result<Config, String> {
    // A context may be called `on`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value = match text.trim() {
        "" => Value::Null,
        text => serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?,
    };
    let config = match value {
        Value::Null => Config::new(),
        Value::Object(config) => config,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("it is not a map".to_owned());
        }
    };
    if let Some(kind) = config.get("kind").filter(|kind| *kind != "Config") {
        return Err(format!("its kind is {kind}, not Config"));
    }
    for list in ["clusters", "users", "contexts"] {
        let is_named = |entry: &Value| entry.get("name").is_some_and(Value::is_string);
        match config.get(list) {
            None | Some(Value::Null) => {}
            Some(Value::Array(entries)) if entries.iter().all(is_named) => {}
            Some(_) => return Err(format!("{list} is not a list of entries with names")),
        }
    }
    Ok(config)
}

/// A kubeconfig as text, which is parsed again to make sure that nothing is lost.
fn render(config: Config) -> Result<String, String> {
    // Certificates are one long line each, as kubectl writes them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&config, options).map_err(|error| error.to_string())?;
    if parse(&text)? != config {
        return Err("its content cannot be written as YAML without loss".to_owned());
    }
    Ok(text)
}

/// client-go's lock of a kubeconfig: a file next to it that must not exist.
struct Lock(PathBuf);

impl Lock {
    fn acquire(file: &Path) -> Result<Lock, String> {
        let mut path = file.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(Lock(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && Instant::now() < until => {
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(format!(
                        "{} is locked by another program. If there is none, remove {}",
                        file.display(),
                        path.display()
                    ));
                }
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The address at which a client on this machine reaches the server: loopback if it listens on all
/// addresses.
fn client_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The default path of the kubeconfig, in a directory that only its owner can read.
pub fn default_path() -> Result<PathBuf, String> {
    let dir = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    dir("XDG_RUNTIME_DIR")
        .or_else(|| dir("XDG_STATE_HOME"))
        .or_else(|| dir("HOME").map(|home| home.join(".local/state")))
        .map(|dir| dir.join("bindery/kubeconfig"))
        .ok_or_else(|| {
            "no directory for the kubeconfig: HOME is not set. Name a file with --write-kubeconfig FILE".to_owned()
        })
}

#[cfg(test)]
mod tests;
