//! A member that floods the places for records of another node's keys: it has some of these, and signs with each as much as one
//! may own.

use mesh::{
    Input,
    api::{
        agenda::NewKey,
        command::{Command, Outcome},
    },
    name::{
        id::{KeyPrint, RoomId},
        key::KeySecret,
    },
    records::shared::{TAKEN, Taken},
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        message::Message,
        record::{Record, Space, Stamp},
    },
};
use store::records::{Shelf, find};

use super::probing::{ask, run};
use crate::sim::{keys, plan::Plan, world::World};

/// The node that minted all keys.
const MINTED: usize = 0;
const OTHER: usize = 1;
/// The node that floods.
const FLOODS: usize = 2;
/// Keys that it has.
const FLOODING: usize = 4;
/// Records in one message.
const AT_ONCE: usize = 1_000;

fn mint(world: &mut World, secret: &KeySecret) {
    let minted = KeyMinted::sign(secret, &world.cluster.log_of(MINTED), KeyTerms::of(Tier::High));
    let minted = Box::new(minted.expect("keys of worlds are long enough"));
    let mint = Command::MintKey(NewKey { minted, local: false });
    assert!(matches!(ask(world, MINTED, mint), Outcome::Done));
}

/// A key was taken out of a room, at this time.
fn taken(world: &World, by: &KeySecret, room: usize, at: u64) -> Record {
    let mut group = RoomId([7; 16]);
    group.0[..8].copy_from_slice(&(room as u64).to_be_bytes());
    let draft = Taken { group, key: by.print() }.draft();
    let mesh = world.cluster.secret.mesh_id();
    draft.sign(by, mesh, Stamp::at(at)).expect("keys of worlds are long enough")
}

fn tell(world: &mut World, node: usize, records: &[Record]) {
    let from = world.cluster.nodes[FLOODS].id;
    let bytes = Message::Records(records.to_vec()).encode();
    let message = world.cluster.read(&bytes).expect("it is signed");
    world.cluster.give(node, Input::Message { from, message });
}

/// On the disk of a node: how many there are, and how many of one key.
fn kept(world: &World, node: usize, by: KeyPrint) -> (usize, usize) {
    let running = world.cluster.nodes[node].running.as_ref().expect("it runs");
    let mesh = world.cluster.secret.mesh_id();
    let shelf = Shelf { mesh, space: Space::Mesh, collection: TAKEN.number };
    // So many are read at once, and not all.
    let part = |first: u8| find(&running.reader, &shelf, &[first], |_| true);
    let parts = (0..=u8::MAX).flat_map(|first| part(first).expect("a sound store reads"));
    let records: Vec<Record> = parts.collect();
    (records.len(), records.iter().filter(|record| record.owner() == by).count())
}

/// With the old rule, by which of all keys of one node the oldest record fell out (of these the newest), not one would stay.
#[test]
fn keys_of_one_node_leave_another_one_its_places_however_much_they_sign() {
    let mut world = World::new(3, Plan::quiet(3), false).expect("it starts");
    world.cluster.quiet = true;
    run(&mut world, 2).expect("calm");
    let honest = keys::secret("an honest one's");
    let flooding: Vec<_> =
        (0..FLOODING).map(|n| keys::secret(&format!("a flooder's {n}"))).collect();
    flooding.iter().chain([&honest]).for_each(|secret| mint(&mut world, secret));
    run(&mut world, 2).expect("calm");
    let share = TAKEN.node_kept() / (FLOODING + 1);
    let own: Vec<Record> = (0..share).map(|n| taken(&world, &honest, n, 1_000_000)).collect();
    let (before, after) = own.split_at(share / 2);
    tell(&mut world, MINTED, before);
    run(&mut world, 2).expect("no promise is broken");
    for secret in &flooding {
        let records: Vec<Record> =
            (0..TAKEN.owner_kept()).map(|n| taken(&world, secret, n, 1)).collect();
        // Each node hears another half: the rest they have of each other.
        for (part, to) in records.chunks(AT_ONCE).zip([MINTED, OTHER].into_iter().cycle()) {
            tell(&mut world, to, part);
        }
        run(&mut world, 1).expect("no promise is broken");
    }
    tell(&mut world, OTHER, after);
    run(&mut world, 20).expect("no promise is broken");
    let full = TAKEN.node_kept();
    assert!(FLOODING * TAKEN.owner_kept() >= full, "they would fill all places");
    for node in [MINTED, OTHER, FLOODS] {
        assert_eq!(kept(&world, node, honest.print()), (full, share), "node{node}");
    }
    let digest =
        |node: usize| world.cluster.nodes[node].running.as_ref()?.pulse.map(|it| it.records);
    assert!(digest(MINTED).is_some());
    assert_eq!([OTHER, FLOODS].map(digest), [digest(MINTED); 2], "all keep the same");
}
