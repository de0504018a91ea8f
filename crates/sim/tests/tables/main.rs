//! Upstream's own table cases, by their numbers, run three ways: once, until stable, and with a restart after every write.

mod case;

mod binder;
mod delete;
mod provision;
mod recycle;
mod rest;

use case::Case;

/// Every case of every table.
fn all() -> Vec<Case> {
    [binder::cases(), delete::cases(), recycle::cases(), provision::cases(), rest::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_case_ends_as_it_should() {
    let failures: Vec<String> = all().iter().filter_map(|case| case::check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}
