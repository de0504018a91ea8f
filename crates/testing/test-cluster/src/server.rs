//! The API server of a test cluster: kube-apiserver with etcd, or the one embedded in `bindery`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::etcd;
use crate::keys::Keys;
use crate::running::Running;
use crate::users::{User, write_kubeconfig, write_tokens};
use crate::watchdog::Workspace;

/// The storage and the users of an API server.
pub(crate) enum Backend {
    /// etcd, and users with RBAC.
    Kubernetes(Kubernetes),
    /// Part of the API server.
    Embedded,
}

/// The storage and the users of kube-apiserver.
pub(crate) struct Kubernetes {
    etcd: Running,
    ca: PathBuf,
    /// The first user is the administrator.
    users: Vec<User>,
}

/// A started API server, and what is needed to start it again.
pub(crate) struct Serving {
    pub(crate) api_server: Running,
    pub(crate) backend: Backend,
    pub(crate) program: PathBuf,
    pub(crate) flags: Vec<String>,
    /// The kubeconfig of the administrator.
    pub(crate) kubeconfig: PathBuf,
}

impl Serving {
    /// Starts etcd and kube-apiserver. The first user is the administrator.
    pub(crate) fn kubernetes(
        workspace: &Arc<Workspace>,
        programs: &Path,
        port: u16,
        extra_flags: &[String],
        users: Vec<User>,
    ) -> Result<Serving, String> {
        let (folder, program) = (workspace.folder(), programs.join("kube-apiserver"));
        let etcd = Running::start(workspace, &programs.join("etcd"), etcd::args(folder))?;
        let keys = Keys::create(folder)?;
        let mut flags = kubernetes_flags(folder, &keys, &write_tokens(folder, &users)?, port);
        flags.extend_from_slice(extra_flags);
        let server_url = format!("https://127.0.0.1:{port}");
        let kubeconfig = write_kubeconfig(&folder.join("kubeconfig"), &server_url, &keys.ca, &users[0].token)?;
        let api_server = Running::start(workspace, &program, &flags)?;
        let backend = Backend::Kubernetes(Kubernetes { etcd, ca: keys.ca, users });
        Ok(Serving { api_server, backend, program, flags, kubeconfig })
    }

    /// Starts the API server embedded in a `bindery` binary.
    pub(crate) fn embedded(
        workspace: &Arc<Workspace>,
        program: &Path,
        port: u16,
        extra_flags: &[String],
    ) -> Result<Serving, String> {
        let kubeconfig = workspace.folder().join("kubeconfig");
        let mut flags = vec![
            "apiserver".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--write-kubeconfig={}", kubeconfig.display()),
        ];
        flags.extend_from_slice(extra_flags);
        let api_server = Running::start(workspace, program, &flags)?;
        Ok(Serving { api_server, backend: Backend::Embedded, program: program.to_path_buf(), flags, kubeconfig })
    }
}

impl Backend {
    /// The etcd, if there is one.
    pub(crate) fn etcd(&self) -> Option<&Running> {
        match self {
            Backend::Kubernetes(kubernetes) => Some(&kubernetes.etcd),
            Backend::Embedded => None,
        }
    }

    /// The same, mutable.
    pub(crate) fn etcd_mut(&mut self) -> Option<&mut Running> {
        match self {
            Backend::Kubernetes(kubernetes) => Some(&mut kubernetes.etcd),
            Backend::Embedded => None,
        }
    }
}

impl Kubernetes {
    /// Writes a kubeconfig for a user.
    pub(crate) fn kubeconfig_of(&self, user: &str, folder: &Path, server_url: &str) -> Result<PathBuf, String> {
        let (number, known) = self
            .users
            .iter()
            .enumerate()
            .find(|(_, known)| known.name == user)
            .ok_or_else(|| format!("the test cluster has no user {user:?}: add it with Builder::user"))?;
        // By number, because the name of a service account is not a good file name.
        write_kubeconfig(&folder.join(format!("kubeconfig-{number}")), server_url, &self.ca, &known.token)
    }
}

fn kubernetes_flags(folder: &Path, keys: &Keys, tokens: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=unix://{}", etcd::socket(folder).display()),
        "--bind-address=127.0.0.1".to_owned(),
        // Avoids the search for a network interface, which may be missing; endpoints are not used.
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
        // No controller creates service accounts, so pods must do without.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // Clients are tested and measured, so the server must not limit them.
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
    ]
}
