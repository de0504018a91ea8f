//! Local disks for real: ext4, XFS, btrfs and a bare device are discovered, bound through pods, written to, released, cleaned and
//! offered again, on the embedded API server and, under the role that it is deployed with, on a real one; and the provisioner is killed at every step of the way. What was
//! written is there for as long as somebody has it, and is gone before anybody else could.

mod machine;
#[path = "../servers/mod.rs"]
mod servers;
mod world;

use bindery_local_disks::discover::Shape;
use bindery_local_disks::disk;
use servers::ApiServer;
use world::World;

/// Killed after each line that it logs, from the first to the one after which all is done.
#[test]
fn disks_go_round_though_the_provisioner_is_killed_at_every_step() {
    go_round(ApiServer::Embedded, 1);
}

/// The same on a real API server, at every third step: it takes its time.
#[test]
fn disks_go_round_on_a_real_api_server() {
    go_round(ApiServer::Real, 3);
}

fn go_round(api_server: ApiServer, stride: usize) {
    let Some(mut world) = World::start(api_server, "") else { return };
    // First they are found, one after the other, by provisioners that do not live long.
    let mut steps = 1;
    while world.provisioner_until(steps) {
        steps += stride;
    }
    let found = steps;
    world.all_are_offered();
    // Then they are had, written to and released again and again, and cleaned by provisioners that do not live long.
    let mut steps = 1;
    loop {
        world.bind_and_write();
        world.release();
        let was_killed = world.provisioner_until(steps);
        world.all_are_offered();
        if !was_killed {
            break;
        }
        steps += stride;
    }
    // Five decisions and two live reads for each volume, the cleaning and the offer: if there were fewer steps, this tests nothing.
    assert!(found > 1 && steps > 20, "there are steps to be killed at: {found} and {steps}");
}

/// Whoever holds a disk cleans or offers it, be it in another process: meanwhile it is neither cleaned nor offered by anybody else.
#[test]
fn a_disk_that_somebody_holds_is_left_alone() {
    let Some(mut world) = World::start(ApiServer::Embedded, "") else { return };
    let [file_systems, _] = world.machine.directories.clone();
    let hold = || disk::lock(&file_systems, "xfs", Shape::Directory).expect("opened").expect("held");
    let held = hold();
    drop(world.provisioner_that_says("local.discovery.create-volume"));
    let provisioner = world.provisioner();
    world.eventually("the others are offered", |world| world.offered() == ["btrfs", "device", "ext4"]);
    drop((held, provisioner));
    world.all_are_offered();

    world.bind_and_write();
    world.release();
    let held = hold();
    let provisioner = world.provisioner_that_says("locked by another process");
    assert!(world.machine.is_whole(&file_systems.join("xfs")), "it is not cleaned");
    drop((held, provisioner));
    world.all_are_offered();
}

/// What lies on a disk that no volume is known of may be somebody's: a class can want it left alone.
#[test]
fn a_class_may_want_only_what_is_empty() {
    let Some(mut world) = World::start(ApiServer::Embedded, ", onlyEmpty: true") else { return };
    let [file_systems, devices] = world.machine.directories.clone();
    world.machine.write(&file_systems.join("ext4"));
    world.machine.write(&devices.join("device"));
    let provisioner = world.provisioner();
    world.eventually("what is empty is offered", |world| world.offered() == ["btrfs", "xfs"]);
    drop(provisioner);
    let provisioner = world.provisioner_that_says("local.discovery.not-empty");
    drop(provisioner);
    assert!(world.machine.is_whole(&file_systems.join("ext4")) && world.machine.is_whole(&devices.join("device")));
    world.machine.empty(&file_systems.join("ext4"));
    world.machine.empty(&devices.join("device"));
    world.all_are_offered();
}
