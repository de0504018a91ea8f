//! Real local disks: ext4, XFS, btrfs and a raw device are discovered, bound by pods, written to,
//! released, cleaned and published again, on the embedded API server and on a real one under the
//! deployed role. The provisioner is killed at every step. Data is kept while its claim exists, and
//! deleted before the disk is published again.

mod machine;
#[path = "../servers/mod.rs"]
mod servers;
mod world;

use bindery_local_disks::discover::Shape;
use bindery_local_disks::disk;
use servers::ApiServer;
use world::World;

/// Killed after every line it logs.
#[test]
fn disks_are_reused_although_the_provisioner_is_killed_at_every_step() {
    reuse_disks(ApiServer::Embedded, 1);
}

/// The same on a real API server, at every third step to save time.
#[test]
fn disks_are_reused_on_a_real_api_server() {
    reuse_disks(ApiServer::Real, 3);
}

fn reuse_disks(api_server: ApiServer, stride: usize) {
    let Some(mut world) = World::start(api_server, "") else { return };
    // First they are discovered, by provisioners that are killed.
    let mut steps = 1;
    while world.provisioner_until(steps) {
        steps += stride;
    }
    let found = steps;
    world.publish_all();
    // Then they are bound, written to and released repeatedly, and cleaned by provisioners that are
    // killed.
    let mut steps = 1;
    loop {
        world.bind_and_write();
        world.release();
        let was_killed = world.provisioner_until(steps);
        world.publish_all();
        if !was_killed {
            break;
        }
        steps += stride;
    }
    // Each volume takes five decisions, two live reads, cleaning and publishing.
    assert!(found > 1 && steps > 20, "too few steps: {found} and {steps}");
}

/// A locked disk is neither cleaned nor published by another process.
#[test]
fn a_locked_disk_is_left_alone() {
    let Some(mut world) = World::start(ApiServer::Embedded, "") else { return };
    let [file_systems, _] = world.machine.directories.clone();
    let hold = || disk::lock(&file_systems, "xfs", Shape::Directory).expect("opened").expect("held");
    let held = hold();
    drop(world.provisioner_that_logs("local.discovery.create-volume"));
    let provisioner = world.provisioner();
    world.eventually("the others are published", |world| world.published() == ["btrfs", "device", "ext4"]);
    drop((held, provisioner));
    world.publish_all();

    world.bind_and_write();
    world.release();
    let held = hold();
    let provisioner = world.provisioner_that_logs("locked by another process");
    assert!(world.machine.is_intact(&file_systems.join("xfs")), "it must not be cleaned");
    drop((held, provisioner));
    world.publish_all();
}

/// A directory whose disk is not mounted is reported, and neither the other disks nor the rollout
/// to other nodes wait for it.
#[test]
fn one_bad_disk_leaves_the_provisioner_ready() {
    let Some(mut world) = World::start(ApiServer::Embedded, "") else { return };
    let [file_systems, _] = world.machine.directories.clone();
    std::fs::create_dir(file_systems.join("unmounted")).expect("created");
    let provisioner = world.provisioner();
    let problem = format!(
        "class \"disks\": {}/unmounted is not an actual mountpoint [local.discovery.not-mounted]",
        file_systems.display()
    );
    let ready = format!("ok, except for\n{problem}\n");
    world.eventually("it is ready", |_| provisioner.page("/ready").is_ok_and(|page| page == ready));
    world.eventually("the others are published", |world| world.published() == ["btrfs", "device", "ext4", "xfs"]);
    let metric = r#"local_volume_provisioner_disk_problems{class="disks",rule="local.discovery.not-mounted"} 1"#;
    assert!(provisioner.page("/metrics").expect("a page").contains(metric));
    let event = format!("LocalDiskUnavailable Node/n1: {problem}");
    world.eventually("it is reported in the events of the node", |world| world.events().contains(&event));
}

/// A class can require that disks with unknown data are left alone.
#[test]
fn a_class_can_require_empty_disks() {
    let Some(mut world) = World::start(ApiServer::Embedded, ", onlyEmpty: true") else { return };
    let [file_systems, devices] = world.machine.directories.clone();
    world.machine.write(&file_systems.join("ext4"));
    world.machine.write(&devices.join("device"));
    let provisioner = world.provisioner();
    world.eventually("empty disks are published", |world| world.published() == ["btrfs", "xfs"]);
    drop(provisioner);
    let provisioner = world.provisioner_that_logs("local.discovery.not-empty");
    drop(provisioner);
    assert!(world.machine.is_intact(&file_systems.join("ext4")) && world.machine.is_intact(&devices.join("device")));
    world.machine.empty(&file_systems.join("ext4"));
    world.machine.empty(&devices.join("device"));
    world.publish_all();
}
