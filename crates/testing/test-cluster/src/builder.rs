//! Configures and starts a test cluster: API server, flags, users.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::assets;
use crate::port::Port;
use crate::server::Serving;
use crate::test_cluster::TestCluster;
use crate::users::{ADMIN, User};
use crate::watchdog::Workspace;

/// How many ports are tried, because another program may bind the port before the API server does.
const PORTS_TRIED: u32 = 3;

/// Builds a [`TestCluster`].
#[derive(Default)]
pub struct Builder {
    users: Vec<(String, Vec<String>)>,
    api_server_flags: Vec<String>,
    embedded: Option<PathBuf>,
}

impl Builder {
    /// Uses the API server embedded in `program`, a `bindery` binary, instead of kube-apiserver and
    /// etcd. It has no users except the administrator, and no RBAC: see
    /// [`TestCluster::kubeconfig_of`].
    pub fn embedded(mut self, program: impl Into<PathBuf>) -> Self {
        self.embedded = Some(program.into());
        self
    }

    /// Adds a user with the rights that RBAC grants to its name and groups. A service account is
    /// `system:serviceaccount:NAMESPACE:NAME` in the group `system:serviceaccounts`.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push((name.to_owned(), groups.iter().map(|&group| group.to_owned()).collect()));
        self
    }

    /// Adds a flag of the API server, which overrides the default ones.
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }

    /// Starts the test cluster, and returns when it is ready.
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

    /// Starts the test cluster for a test; `None` if [`TestCluster::skip_test`].
    ///
    /// # Panics
    ///
    /// If it cannot be started, or if `BINDERY_REQUIRE_TEST_CLUSTER` is set and binaries are
    /// missing.
    pub fn for_test(&self) -> Option<TestCluster> {
        if TestCluster::skip_test() {
            return None;
        }
        match self.start() {
            Ok(cluster) => Some(cluster),
            Err(error) => panic!("cannot start the test cluster: {error}"),
        }
    }

    fn start_on(&self, programs: &Path, port: Port) -> Result<TestCluster, String> {
        let workspace = Arc::new(Workspace::create()?);
        let server_url = format!("https://127.0.0.1:{}", port.number);
        let Serving { api_server, backend, program, flags, kubeconfig } = match &self.embedded {
            Some(program) => Serving::embedded(&workspace, program, port.number, &self.api_server_flags)?,
            None => Serving::kubernetes(&workspace, programs, port.number, &self.api_server_flags, self.all_users())?,
        };
        let mut cluster = TestCluster {
            api_server,
            backend,
            api_server_program: program,
            api_server_flags: flags,
            port,
            server_url,
            kubeconfig,
            programs: programs.to_path_buf(),
            workspace,
        };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// The administrator, and the added users.
    fn all_users(&self) -> Vec<User> {
        let added = self
            .users
            .iter()
            .map(|(name, groups)| User::new(name, &groups.iter().map(String::as_str).collect::<Vec<_>>()));
        std::iter::once(User::new(ADMIN, &["system:masters"])).chain(added).collect()
    }
}
