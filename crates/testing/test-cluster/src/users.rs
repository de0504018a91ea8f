//! The users of a test cluster: tokens and kubeconfigs.

use std::path::{Path, PathBuf};

use crate::keys::write_private;
use crate::watchdog::random;

/// The name of the administrator.
pub(crate) const ADMIN: &str = "admin";

/// A user in the token file of the API server.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// A user with a new token.
    pub(crate) fn new(name: &str, groups: &[&str]) -> Self {
        Self { name: name.to_owned(), token: random(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
    }
}

/// Writes the file for `--token-auth-file`.
pub(crate) fn write_tokens(folder: &Path, users: &[User]) -> Result<PathBuf, String> {
    let line = |user: &User| format!("{},{},{},\"{}\"\n", user.token, user.name, user.name, user.groups.join(","));
    write_private(&folder.join("tokens.csv"), &users.iter().map(line).collect::<String>())
}

/// Writes a kubeconfig with a token.
pub(crate) fn write_kubeconfig(file: &Path, server: &str, ca: &Path, token: &str) -> Result<PathBuf, String> {
    let text = format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: test-cluster, cluster: {{server: {server:?}, certificate-authority: {ca:?}}}}}]\n\
         users: [{{name: test-cluster, user: {{token: {token:?}}}}}]\n\
         contexts: [{{name: test-cluster, context: {{cluster: test-cluster, user: test-cluster}}}}]\n\
         current-context: test-cluster\n"
    );
    write_private(file, &text)
}
