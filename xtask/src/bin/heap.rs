//! Measures how much live heap an object takes in the cache. A separate binary, because its
//! allocator counts every allocation.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::Object;
use xtask::bench::objects::{claim, size_gib, volume};
use xtask::bench::placement::local_volume;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const PAIRS: usize = 20_000;

fn live_bytes() -> usize {
    dhat::HeapStats::get().curr_bytes
}

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    let mut fill = |name: &str, bound: bool, from: usize| {
        let before = live_bytes();
        for n in from..from + PAIRS {
            known.watched(Object::Volume(Arc::new(volume(n, size_gib(n), bound))));
        }
        let volumes = live_bytes() - before;
        for n in from..from + PAIRS {
            known.watched(Object::Claim(Arc::new(claim(n, size_gib(n), bound))));
        }
        let claims = live_bytes() - before - volumes;
        println!("{name} volume {}", volumes / PAIRS);
        println!("{name} claim {}", claims / PAIRS);
    };
    fill("bound", true, 0);
    fill("free", false, PAIRS);
    let before = live_bytes();
    for n in 0..PAIRS {
        known.watched(Object::Volume(Arc::new(local_volume(n, PAIRS / 4))));
    }
    println!("local volume {}", (live_bytes() - before) / PAIRS);
}
