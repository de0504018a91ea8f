//! Measures how fast a volume is chosen for a claim, for a given pool size.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_binder::Binder;
use bindery_cache::Cache;
use bindery_model::{Object, ObjectKey};
use bindery_rules_api::{LiveReads, RuleSet};

use super::objects::{claim, size_gib, volume};

const CLAIMS: usize = 1_000;
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 7;

/// Decisions per second in a pool of `volumes`: the best of several rounds.
pub fn decisions_per_second(volumes: usize) -> f64 {
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    for n in 0..volumes {
        known.watched(Object::Volume(Arc::new(volume(n, size_gib(n), false))));
    }
    let keys: Vec<ObjectKey> = (0..CLAIMS)
        .map(|n| {
            let claim = claim(n, size_gib(n * 31), false);
            let key = claim.key().into();
            known.watched(Object::Claim(Arc::new(claim)));
            key
        })
        .collect();
    let (binder, live_reads) = (Binder::default(), LiveReads::default());
    let round = || {
        let (start, mut decisions) = (Instant::now(), 0_u32);
        while start.elapsed() < ROUND {
            for key in &keys {
                black_box(binder.decide(&known, key, &live_reads));
            }
            decisions += keys.len() as u32;
        }
        f64::from(decisions) / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}
