//! The input of a decision.

use bindery_cache::Cache;
use bindery_rules_api::LiveReads;

use crate::Config;

/// The configuration, the cache, and the live reads for the key.
#[derive(Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub config: &'a Config,
    pub known: &'a Cache,
    pub live_reads: &'a LiveReads,
}
