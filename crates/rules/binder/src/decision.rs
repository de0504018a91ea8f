//! What every decision is made from.

use bindery_cache::Cache;
use bindery_rules_api::LiveReads;

use crate::Config;

/// What is known, what was found out live for the key at hand, and how the binder is set up.
#[derive(Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub config: &'a Config,
    pub known: &'a Cache,
    pub live_reads: &'a LiveReads,
}
