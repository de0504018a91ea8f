//! What serves: a kube-apiserver with its etcd, or the API server that is embedded in `bindery`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::etcd;
use crate::guard::Home;
use crate::keys::Keys;
use crate::running::Running;
use crate::users::{User, write_kubeconfig, write_tokens};

/// What stands behind a lab's API server.
pub(crate) enum Backend {
    /// An etcd, and users that RBAC grants rights to.
    Kubernetes(Kubernetes),
    /// Nothing: the server keeps everything itself.
    Embedded,
}

/// What stands behind a kube-apiserver.
pub(crate) struct Kubernetes {
    etcd: Running,
    ca: PathBuf,
    /// The administrator comes first.
    users: Vec<User>,
}

/// An API server that was started, and all that it takes to start it again.
pub(crate) struct Serving {
    pub(crate) api_server: Running,
    pub(crate) backend: Backend,
    pub(crate) program: PathBuf,
    pub(crate) flags: Vec<String>,
    /// The administrator's.
    pub(crate) kubeconfig: PathBuf,
}

impl Serving {
    /// Starts an etcd and a kube-apiserver. The administrator comes first among the users.
    pub(crate) fn kubernetes(
        home: &Arc<Home>,
        programs: &Path,
        port: u16,
        more_flags: &[String],
        users: Vec<User>,
    ) -> Result<Serving, String> {
        let (folder, program) = (home.folder(), programs.join("kube-apiserver"));
        let etcd = Running::start(home, &programs.join("etcd"), etcd::args(folder))?;
        let keys = Keys::create(folder)?;
        let mut flags = kubernetes_flags(folder, &keys, &write_tokens(folder, &users)?, port);
        flags.extend_from_slice(more_flags);
        let server_url = format!("https://127.0.0.1:{port}");
        let kubeconfig = write_kubeconfig(&folder.join("kubeconfig"), &server_url, &keys.ca, &users[0].token)?;
        let api_server = Running::start(home, &program, &flags)?;
        let backend = Backend::Kubernetes(Kubernetes { etcd, ca: keys.ca, users });
        Ok(Serving { api_server, backend, program, flags, kubeconfig })
    }

    /// Starts the API server that a `bindery` has in it.
    pub(crate) fn embedded(
        home: &Arc<Home>,
        program: &Path,
        port: u16,
        more_flags: &[String],
    ) -> Result<Serving, String> {
        let kubeconfig = home.folder().join("kubeconfig");
        let mut flags = vec![
            "apiserver".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--write-kubeconfig={}", kubeconfig.display()),
        ];
        flags.extend_from_slice(more_flags);
        let api_server = Running::start(home, program, &flags)?;
        Ok(Serving { api_server, backend: Backend::Embedded, program: program.to_path_buf(), flags, kubeconfig })
    }
}

impl Backend {
    /// The etcd, where there is one.
    pub(crate) fn etcd(&self) -> Option<&Running> {
        match self {
            Backend::Kubernetes(kubernetes) => Some(&kubernetes.etcd),
            Backend::Embedded => None,
        }
    }

    /// The same, to be looked after.
    pub(crate) fn etcd_mut(&mut self) -> Option<&mut Running> {
        match self {
            Backend::Kubernetes(kubernetes) => Some(&mut kubernetes.etcd),
            Backend::Embedded => None,
        }
    }
}

impl Kubernetes {
    /// Writes a kubeconfig for a user into a folder.
    pub(crate) fn kubeconfig_of(&self, user: &str, folder: &Path, server_url: &str) -> Result<PathBuf, String> {
        let (number, known) = self
            .users
            .iter()
            .enumerate()
            .find(|(_, known)| known.name == user)
            .ok_or_else(|| format!("the lab knows no user {user:?}: name it when the lab is built"))?;
        // By number, because the name of a service account is none for a file.
        write_kubeconfig(&folder.join(format!("kubeconfig-{number}")), server_url, &self.ca, &known.token)
    }
}

fn kubernetes_flags(folder: &Path, keys: &Keys, tokens: &Path, port: u16) -> Vec<String> {
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
        // NoObserver makes service accounts here, so pods must do without.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // What is tested and measured is the client, so the server does not hold it back.
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
    ]
}
