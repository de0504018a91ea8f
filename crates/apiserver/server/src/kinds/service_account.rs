//! ServiceAccount.

use super::{Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind};

pub(crate) static KIND: Kind = Kind {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    short_names: &["sa"],
    namespaced: true,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};
