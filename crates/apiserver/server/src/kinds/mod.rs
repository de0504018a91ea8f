//! What is special about each kind: names, scope, verbs, columns, defaults, validation. One file
//! per kind.

mod config_map;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod empty;
pub(crate) mod event;
mod events_k8s_io;
mod lease;
pub(crate) mod namespace;
mod node;
pub(crate) mod persistent_volume;
mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_defaults;
mod pod_update;
mod pod_validation;
pub mod print;
mod secret;
pub(crate) mod selectors;
mod service_account;
pub(crate) mod storage_class;
pub(crate) mod strategy;
mod volume_attachment;
mod volume_attributes_class;
mod volume_source;

pub(crate) use strategy::{DefaultStrategy, Selectable, Strategy, WriteContext};

use jiff::Timestamp;
use serde_json::Value;

/// A kind in one version of one group. [`all`] lists them.
#[derive(Debug)]
pub struct Kind {
    /// `""` for the core group.
    pub group: &'static str,
    /// Such as `v1`.
    pub version: &'static str,
    /// Such as `PersistentVolume`.
    pub kind: &'static str,
    /// Such as `persistentvolumes`.
    pub plural: &'static str,
    /// Such as `pv`.
    pub short_names: &'static [&'static str],
    /// Such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// The verbs in discovery, sorted.
    pub verbs: &'static [&'static str],
    /// The subresources.
    pub subresources: &'static [Subresource],
    /// The columns of a table.
    pub columns: &'static [Column],
    /// The cells of a row, one per column.
    pub cells: fn(&Value, &PrintContext<'_>) -> Vec<Value>,
    /// Defaults, admission and validation.
    pub(crate) strategy: &'static dyn Strategy,
    /// Other differences between kinds.
    pub(crate) behavior: Behavior,
}

/// Other differences between kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behavior {
    /// Whether a PUT may omit the resourceVersion.
    pub unconditional_update: bool,
    /// Whether a PUT can create an object.
    pub create_on_update: bool,
    /// Whether a delete returns the deleted object.
    pub shows_deleted: bool,
    /// Whether garbage collection applies.
    pub collected: bool,
    /// Whether a new object is stored without all its defaults. Upstream stores claims without a
    /// phase and returns them with one, so that the first update is always a change.
    pub starts_as_draft: bool,
    /// The conversion, if the kind is a view of another.
    pub view: Option<View>,
}

/// Conversion between a kind and the stored form of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Converts from the stored form.
    pub show: fn(&mut Value),
    /// Converts to the stored form.
    pub store: fn(&mut Value),
}

/// The behavior of most kinds.
pub(crate) const DEFAULT_BEHAVIOR: Behavior = Behavior {
    unconditional_update: true,
    create_on_update: false,
    shows_deleted: false,
    collected: true,
    starts_as_draft: false,
    view: None,
};

/// A cluster-scoped kind of the core group, with a name and an age in tables.
pub(crate) const DEFAULT_KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, AGE],
    cells: print::name_and_age,
    strategy: &DefaultStrategy,
    behavior: DEFAULT_BEHAVIOR,
};

/// The verbs of most kinds.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// All served kinds, in the order of discovery.
pub fn all() -> &'static [&'static Kind] {
    static ALL: [&Kind; 25] = [
        &config_map::KIND,
        &event::KIND,
        &namespace::KIND,
        &node::KIND,
        &persistent_volume_claim::KIND,
        &persistent_volume::KIND,
        &pod::KIND,
        &secret::KIND,
        &service_account::KIND,
        &lease::KIND,
        &events_k8s_io::KIND,
        &csi_driver::KIND,
        &csi_node::KIND,
        &csi_storage_capacity::KIND,
        &storage_class::KIND,
        &volume_attachment::KIND,
        &volume_attributes_class::KIND,
        &empty::SERVICE,
        &empty::REPLICATION_CONTROLLER,
        &empty::REPLICA_SET,
        &empty::STATEFUL_SET,
        &empty::DISRUPTION_BUDGET,
        &empty::DEVICE_CLASS,
        &empty::RESOURCE_CLAIM,
        &empty::RESOURCE_SLICE,
    ];
    &ALL
}

/// A `status` subresource of a kind.
pub(crate) const fn status_of(group: &'static str, kind: &'static str) -> Subresource {
    Subresource { name: "status", kind: (group, "v1", kind), verbs: &["get", "patch", "update"] }
}

/// A column of text.
pub(crate) const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0 }
}

/// A column of text that is only shown with `-o wide`.
pub(crate) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 1 }
}

/// The column with the name.
pub(crate) const NAME: Column =
    Column { name: "Name", kind: "string", format: "name", description: "The object's name.", priority: 0 };

/// The column with the age.
pub(crate) const AGE: Column = column("Age", "How long ago the object was created.");

impl Kind {
    /// `v1`, or `storage.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `persistentvolumes`, or `storageclasses.storage.k8s.io`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The name in discovery for a single object.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Where the store keeps the objects. Kinds with the same plural are views of the same objects.
    pub(crate) fn bucket(&self) -> &'static str {
        self.plural
    }

    /// The kind of a path.
    pub fn of_path(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        all().iter().copied().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The kind of an object.
    pub fn of_object(api_version: &str, kind: &str) -> Option<&'static Kind> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        all().iter().copied().find(|known| known.group == group && known.version == version && known.kind == kind)
    }
}

/// A path below an object, such as `status`.
#[derive(Debug)]
pub struct Subresource {
    /// Such as `status`.
    pub name: &'static str,
    /// The group, version and kind of its body.
    pub kind: (&'static str, &'static str, &'static str),
    /// The supported verbs, sorted.
    pub verbs: &'static [&'static str],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its title.
    pub name: &'static str,
    /// Its type, such as `string`.
    pub kind: &'static str,
    /// Its format, such as `name`.
    pub format: &'static str,
    /// Its description.
    pub description: &'static str,
    /// 0, or 1 for `-o wide`.
    pub priority: u8,
}

/// What cells depend on besides the object.
#[derive(Debug, Clone, Copy)]
pub struct PrintContext<'a> {
    /// The current time, for ages.
    pub now: Timestamp,
    /// The class that is marked as the default; only in lists.
    pub default_class: Option<&'a str>,
}
