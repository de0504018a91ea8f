//! Table cases of the binder.

use bindery_binder::Config;
use bindery_model::{ClaimKey, ObjectKey};
use bindery_simulation::table;

pub use bindery_simulation::table::check;

/// A case of the binder.
pub type Case = table::Case<Config>;

/// A case that syncs a claim.
pub fn claim(name: &'static str, claim: &str) -> Case {
    case(name, Some(claim_key(claim)))
}

/// A case that syncs a volume.
pub fn volume(name: &'static str, volume: &str) -> Case {
    case(name, Some(ObjectKey::volume(volume)))
}

/// A case of which only the final state is checked.
pub fn multi(name: &'static str) -> Case {
    case(name, None)
}

/// The key of a claim in the default namespace.
pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

fn case(name: &'static str, sync: Option<ObjectKey>) -> Case {
    // As in upstream's tests, the in-tree host-path provisioner is enabled.
    Case::new(name, sync, Config { host_path_provisioner: true, ..Config::default() })
}
