//! What is special about each kind: names, scope, verbs, columns, defaults, validation. One small file for each.

pub(crate) mod affinity;
mod bare;
mod config_map;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
pub(crate) mod event;
mod event_new;
mod lease;
pub(crate) mod namespace;
mod node;
pub(crate) mod persistent_volume;
mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_defaults;
mod pod_parts;
mod pod_update;
pub mod print;
pub(crate) mod rules;
mod secret;
mod service_account;
pub(crate) mod storage_class;
mod volume_attachment;
mod volume_attributes_class;
mod volume_source;

pub(crate) use rules::{Rules, Scene, Selectable};

use jiff::Timestamp;
use serde_json::Value;

/// A kind as one version of one group serves it. There is one static entry for each, in [`all`].
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
    /// Such as `persistentvolume`.
    pub singular: &'static str,
    /// Such as `pv`.
    pub short_names: &'static [&'static str],
    /// Such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with it, as discovery tells, in alphabetical order.
    pub verbs: &'static [&'static str],
    /// Paths below an object.
    pub subresources: &'static [Subresource],
    /// What a table shows of it.
    pub columns: &'static [Column],
    /// A row's cells, one for each column.
    pub cells: fn(&Value, &Sight<'_>) -> Vec<Value>,
    /// Where objects are stored: the plural, except where two kinds are two views of the same objects.
    pub(crate) space: &'static str,
    /// How its objects get into the store.
    pub(crate) rules: &'static dyn Rules,
    /// How it differs in small ways.
    pub(crate) manners: Manners,
}

/// Small ways in which kinds differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// Whether a PUT may come without a resourceVersion.
    pub unconditional_update: bool,
    /// Whether a PUT makes what is not there.
    pub create_on_update: bool,
    /// Whether a delete is answered with what was deleted.
    pub shows_deleted: bool,
    /// Whether the garbage collector cares for it.
    pub collected: bool,
    /// Whether a new object is stored before all of its defaults are, as upstream does with claims, which are stored without a phase
    /// and shown with one. The first update is then always a change.
    pub starts_as_draft: bool,
    /// Whether it is shown in another form than it is stored in.
    pub view: Option<View>,
}

/// How a kind is shown that is stored as another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// From the stored form to the shown.
    pub show: fn(&mut Value),
    /// From the shown form to the stored.
    pub store: fn(&mut Value),
}

/// How most kinds are.
pub(crate) const MANNERS: Manners = Manners {
    unconditional_update: true,
    create_on_update: false,
    shows_deleted: false,
    collected: true,
    starts_as_draft: false,
    view: None,
};

/// What may be done with most kinds.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// All kinds that are served, in the order in which discovery shows them.
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
        &event_new::KIND,
        &csi_driver::KIND,
        &csi_node::KIND,
        &csi_storage_capacity::KIND,
        &storage_class::KIND,
        &volume_attachment::KIND,
        &volume_attributes_class::KIND,
        &bare::SERVICE,
        &bare::REPLICATION_CONTROLLER,
        &bare::REPLICA_SET,
        &bare::STATEFUL_SET,
        &bare::DISRUPTION_BUDGET,
        &bare::DEVICE_CLASS,
        &bare::RESOURCE_CLAIM,
        &bare::RESOURCE_SLICE,
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

/// A column of text that only wide tables show.
pub(crate) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 1 }
}

/// The column of names.
pub(crate) const NAME: Column =
    Column { name: "Name", kind: "string", format: "name", description: "The object's name.", priority: 0 };

/// The column of ages.
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

    /// The kind that a path names.
    pub fn of_path(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        all().iter().copied().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The kind that an object names.
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
    /// What is sent and answered there, as (group, version, kind).
    pub kind: (&'static str, &'static str, &'static str),
    /// What may be done with it, in alphabetical order.
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
    /// What is shown there.
    pub description: &'static str,
    /// 0, or 1 for `-o wide`.
    pub priority: u8,
}

/// What a row shows besides its object.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// To tell ages.
    pub now: Timestamp,
    /// The class to be marked as the default; only in lists.
    pub default_class: Option<&'a str>,
}
