//! How a lab is to be: its users and its API server's flags; and how a test comes by one.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use crate::guard::Home;
use crate::keys::Keys;
use crate::lab::Lab;
use crate::running::Running;
use crate::users::{ADMIN, User, write_kubeconfig, write_tokens};
use crate::{assets, etcd};

/// Another program may take the port between our look at it and the API server's: how often another is tried.
const PORTS_TRIED: u32 = 3;

/// A lab to be.
#[derive(Default)]
pub struct Builder {
    users: Vec<(String, Vec<String>)>,
    api_server_flags: Vec<String>,
}

impl Builder {
    /// Adds a user, who may do what RBAC grants to its name and groups; a service account is
    /// `system:serviceaccount:NAMESPACE:NAME`, of the group `system:serviceaccounts`.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push((name.to_owned(), groups.iter().map(|&group| group.to_owned()).collect()));
        self
    }

    /// Adds a flag for kube-apiserver. It comes after the lab's own, and so outweighs them.
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }

    /// Starts it, and returns when it is ready. It is an error if the programs are not there.
    pub fn start(&self) -> Result<Lab, String> {
        let folder = assets::find()?.ok_or_else(assets::none)?;
        let mut tries = 1;
        loop {
            match self.start_on(&folder, free_port()?) {
                Err(error) if error.contains("address already in use") && tries < PORTS_TRIED => tries += 1,
                done => return done,
            }
        }
    }

    /// Starts it for a test, or gives `None` where [`Lab::skips_test`].
    ///
    /// # Panics
    ///
    /// If a lab cannot be started, or if `BINDERY_REQUIRE_LAB` is set and the programs are not there.
    pub fn for_test(&self) -> Option<Lab> {
        if Lab::skips_test() {
            return None;
        }
        match self.start() {
            Ok(lab) => Some(lab),
            Err(error) => panic!("the lab did not start: {error}"),
        }
    }

    fn start_on(&self, programs: &Path, port: u16) -> Result<Lab, String> {
        let home = Arc::new(Home::create()?);
        let folder = home.folder();
        let etcd = Running::start(&home, &programs.join("etcd"), etcd::args(folder))?;
        let keys = Keys::create(folder)?;
        let users = self.all_users();
        let mut flags = api_server_flags(folder, &keys, &write_tokens(folder, &users)?, port);
        flags.extend_from_slice(&self.api_server_flags);
        let server_url = format!("https://127.0.0.1:{port}");
        let kubeconfig = write_kubeconfig(&folder.join("kubeconfig"), &server_url, &keys.ca, &users[0].token)?;
        let api_server = Running::start(&home, &programs.join("kube-apiserver"), &flags)?;
        let mut lab = Lab {
            api_server,
            etcd,
            api_server_flags: flags,
            port,
            server_url,
            kubeconfig,
            ca: keys.ca,
            users,
            programs: programs.to_path_buf(),
            home,
        };
        lab.wait_until_ready()?;
        Ok(lab)
    }

    /// The administrator, and then those that were asked for.
    fn all_users(&self) -> Vec<User> {
        let asked = self
            .users
            .iter()
            .map(|(name, groups)| User::new(name, &groups.iter().map(String::as_str).collect::<Vec<_>>()));
        std::iter::once(User::new(ADMIN, &["system:masters"])).chain(asked).collect()
    }
}

fn api_server_flags(folder: &Path, keys: &Keys, tokens: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=unix://{}", etcd::socket(folder).display()),
        "--bind-address=127.0.0.1".to_owned(),
        // Told, it need not look for a network, which a machine that tests may lack; and nobody asks for endpoints.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", keys.certificate.display()),
        format!("--tls-private-key-file={}", keys.key.display()),
        format!("--cert-dir={}", folder.join("certificates").display()),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", keys.service_accounts_public.display()),
        format!("--service-account-signing-key-file={}", keys.service_accounts.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // Nobody makes service accounts here, so pods must do without.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // What is tested and measured is the client, so the server does not hold it back.
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
    ]
}

/// A port that nobody listens on, below those that systems give to outgoing connections: it stays free while an API server
/// that was stopped is away.
fn free_port() -> Result<u16, String> {
    let dice = RandomState::new();
    (0_u32..100)
        .map(|throw| 20_000 + u16::try_from(dice.hash_one(throw) % 10_000).unwrap_or_default())
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .ok_or_else(|| "no port of a hundred between 20000 and 30000 is free".to_owned())
}
