//! Who may talk to a lab's API server: users with tokens, and a kubeconfig for each.

use std::path::{Path, PathBuf};

use crate::guard::random;
use crate::keys::write_private;

/// The user that may do everything.
pub(crate) const ADMIN: &str = "admin";

/// A user as the API server's token file knows it.
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

/// Writes the file that `--token-auth-file` reads.
pub(crate) fn write_tokens(folder: &Path, users: &[User]) -> Result<PathBuf, String> {
    let line = |user: &User| format!("{},{},{},\"{}\"\n", user.token, user.name, user.name, user.groups.join(","));
    write_private(&folder.join("tokens.csv"), &users.iter().map(line).collect::<String>())
}

/// Writes a kubeconfig for whoever holds the token.
pub(crate) fn write_kubeconfig(file: &Path, server: &str, ca: &Path, token: &str) -> Result<PathBuf, String> {
    let text = format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: lab, cluster: {{server: {server:?}, certificate-authority: {ca:?}}}}}]\n\
         users: [{{name: lab, user: {{token: {token:?}}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: lab, user: lab}}}}]\n\
         current-context: lab\n"
    );
    write_private(file, &text)
}
