//! What an object of a kind is made of.

/// The schema of one kind in one version.
#[derive(Debug)]
pub struct Schema {
    /// The group, empty for the core.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

impl Schema {
    /// The schema of a kind, if it is known.
    pub fn of(_group: &str, _version: &str, _kind: &str) -> Option<&'static Schema> {
        todo!()
    }

    /// `v1` or `storage.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}
