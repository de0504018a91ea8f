//! Measures how fast pods are placed. Started by `cargo xtask bench placement` as a release build.

use xtask::bench::placement::{Storage, index, place};

const NODES: usize = 5_000;
const VOLUMES: usize = 20_000;

fn main() {
    println!("A pod with 3 delayed claims, {NODES} nodes asked and scored, on one core:");
    let cases = [
        (Storage::Local, "local volumes"),
        (Storage::Zonal, "volumes of three zones"),
        (Storage::ZonalUnfit, "volumes of three zones, none fits"),
        (Storage::Provisioned, "capacity on every node, no volumes"),
    ];
    let only = std::env::args().nth(1);
    for (storage, name) in cases.into_iter().filter(|(_, name)| only.as_ref().is_none_or(|only| name.contains(only))) {
        let placed = place(NODES, VOLUMES, storage);
        println!(
            "  {name:<34} {:>7.2} ms (median {:.2})  {} nodes will do, scores {}",
            placed.best.as_secs_f64() * 1e3,
            placed.median.as_secs_f64() * 1e3,
            placed.nodes,
            placed.scores
        );
    }
    let took = index(NODES, VOLUMES);
    println!("  (the index of {VOLUMES} volumes is made once, in {:.1} ms, and then kept)", took.as_secs_f64() * 1e3);
}
