//! How a lab is to be: its API server, the server's flags, its users; and how a test comes by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::assets;
use crate::guard::Home;
use crate::lab::TestCluster;
use crate::port::Port;
use crate::server::Serving;
use crate::users::{ADMIN, User};

/// Another program may take the port between our look at it and the API server's: how often another is tried.
const PORTS_TRIED: u32 = 3;

/// A lab to be.
#[derive(Default)]
pub struct Builder {
    users: Vec<(String, Vec<String>)>,
    api_server_flags: Vec<String>,
    embedded: Option<PathBuf>,
}

impl Builder {
    /// The API server is the one that is embedded in `program`, a `bindery`, instead of a kube-apiserver with its etcd. It knows
    /// no user but the administrator, and grants no rights: see [`TestCluster::kubeconfig_of`].
    pub fn embedded(mut self, program: impl Into<PathBuf>) -> Self {
        self.embedded = Some(program.into());
        self
    }

    /// Adds a user, who may do what RBAC grants to its name and groups; a service account is
    /// `system:serviceaccount:NAMESPACE:NAME`, of the group `system:serviceaccounts`.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push((name.to_owned(), groups.iter().map(|&group| group.to_owned()).collect()));
        self
    }

    /// Adds a flag for the API server. It comes after the lab's own, and so outweighs them.
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }

    /// Starts it, and returns when it is ready. It is an error if the programs are not there.
    pub fn start(&self) -> Result<TestCluster, String> {
        let folder = assets::find()?.ok_or_else(assets::none)?;
        let mut tries = 1;
        loop {
            match self.start_on(&folder, Port::take()?) {
                Err(error) if error.to_lowercase().contains("address already in use") && tries < PORTS_TRIED => {
                    tries += 1
                }
                done => return done,
            }
        }
    }

    /// Starts it for a test, or gives `None` where [`TestCluster::skips_test`].
    ///
    /// # Panics
    ///
    /// If a lab cannot be started, or if `BINDERY_REQUIRE_LAB` is set and the programs are not there.
    pub fn for_test(&self) -> Option<TestCluster> {
        if TestCluster::skips_test() {
            return None;
        }
        match self.start() {
            Ok(lab) => Some(lab),
            Err(error) => panic!("the lab did not start: {error}"),
        }
    }

    fn start_on(&self, programs: &Path, port: Port) -> Result<TestCluster, String> {
        let home = Arc::new(Home::create()?);
        let server_url = format!("https://127.0.0.1:{}", port.number);
        let Serving { api_server, backend, program, flags, kubeconfig } = match &self.embedded {
            Some(program) => Serving::embedded(&home, program, port.number, &self.api_server_flags)?,
            None => Serving::kubernetes(&home, programs, port.number, &self.api_server_flags, self.all_users())?,
        };
        let mut lab = TestCluster {
            api_server,
            backend,
            api_server_program: program,
            api_server_flags: flags,
            port,
            server_url,
            kubeconfig,
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
