//! Scores of nodes by their volumes for a pod's claims.

use bindery_placement::{ShapePoint, UtilizationShape, VolumePlacement};

use super::check;
use super::world::World;

/// The scores of all nodes, by name; `-` for unsuitable nodes.
fn scores(text: &str, shape: &UtilizationShape) -> String {
    let world = World::new(&text.replace(';', "\n"));
    let placement = VolumePlacement::prepare(&world.cache, world.pod()).expect("a schedulable pod");
    let score = |node: &std::sync::Arc<bindery_model::Node>| {
        let found = placement.find(node).expect("no error");
        if found.rejections.is_empty() { shape.score(&found).to_string() } else { "-".into() }
    };
    world.nodes.values().map(score).collect::<Vec<_>>().join(" ")
}

#[test]
fn nodes_are_scored_by_utilization() {
    let classes = "class wait wait; class hdd wait; class made wait by=d; driver d capacity; ";
    let nodes = "node a nodeKey=a; node b nodeKey=b; node c nodeKey=c; ";
    let local = "volume a-0 200Gi wait at=a; volume a-1 200Gi wait at=a; volume b-0 100Gi wait at=b; volume b-1 100Gi wait at=b; ";
    let more =
        "volume a-2 200Gi hdd at=a; volume a-3 200Gi hdd at=a; volume b-2 100Gi hdd at=b; volume b-3 100Gi hdd at=b; ";
    let zones =
        "node a1 region=ra zone=za; node a2 region=ra zone=za; node b1 region=rb zone=zb; node c1 region=rc zone=zc; ";
    let zonal =
        "volume a-0 200Gi wait in=zone:za; volume a-1 200Gi wait in=zone:za; volume b-0 100Gi wait in=zone:zb; ";
    let capacity = "capacity a made 100Gi in=nodeKey:a; capacity b made 50Gi in=nodeKey:b; ";
    let one = "pod p claims=x; claim x 50Gi wait";
    let shape = UtilizationShape::new(
        &[(0, 0), (50, 3), (100, 5)].map(|(utilization, score)| ShapePoint { utilization, score }),
    );
    let custom = &shape.expect("a shape");
    let default = &UtilizationShape::default();
    let cases = [
        ("local volumes", format!("{nodes}{local}{one}"), default, "75 50 -"),
        (
            "local volumes of two classes",
            format!("{nodes}{local}{more}pod p claims=x,y; claim x 50Gi wait; claim y 100Gi hdd"),
            default,
            "63 25 -",
        ),
        ("volumes of zones", format!("{zones}{zonal}{one}"), default, "75 75 50 -"),
        ("another shape", format!("{nodes}{local}{one}"), custom, "15 30 -"),
        ("nothing to bind", format!("{nodes}pod p scratch"), default, "0 0 0"),
        ("capacity", format!("{nodes}{capacity}pod p claims=x; claim x 50Gi made"), default, "50 0 -"),
        (
            "capacity for two",
            format!("{nodes}{capacity}pod p claims=x,y; claim x 30Gi made; claim y 20Gi made"),
            default,
            "50 0 -",
        ),
        (
            "capacity is ignored if a volume was found",
            format!("{nodes}{capacity}{local}pod p claims=x,y; claim x 50Gi wait; claim y 40Gi made"),
            default,
            "75 50 -",
        ),
        (
            "capacity without a total",
            format!("{nodes}capacity a made - max=200Gi in=nodeKey:a; pod p claims=x; claim x 50Gi made"),
            default,
            "75 - -",
        ),
    ];
    check(
        cases
            .map(|(name, world, shape, wanted)| (name, scores(&format!("{classes}{world}"), shape), wanted.to_owned())),
    );
}
