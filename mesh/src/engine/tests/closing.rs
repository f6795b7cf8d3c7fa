//! Rooms that their keys close, for ever.

use super::{
    PRINTS,
    room_records::{new_room, set},
    world::{STEP, World},
};
use crate::{
    api::{
        command::{Caller, Command, Outcome, Refused},
        event::RoomEvent,
    },
    name::id::RoomId,
    records::{closing, details::DetailsUpdate},
    wire::record::Space,
};

fn close(caller: &Caller, room: RoomId) -> Command {
    set(caller, room, DetailsUpdate { closes: true, ..DetailsUpdate::default() })
}

fn names(world: &mut World, n: usize, caller: &Caller) -> Vec<String> {
    let list = Command::ListRooms { by: caller.reader(), parent: None };
    match world.ask(n, list) {
        Ok(Outcome::Rooms(rooms)) => rooms.iter().map(|room| room.name.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

/// The answer when others were asked, too.
fn in_the_end(world: &mut World, n: usize, command: Command) -> Result<(), Refused> {
    let call = world.begin(n, command);
    world.pass(STEP * 40);
    world.reply(n, call).expect("it is answered").map(drop)
}

fn was_destroyed(world: &mut World, n: usize) -> bool {
    let told = std::mem::take(&mut world.told[n]);
    told.iter().any(|event| matches!(event, RoomEvent::Destroyed { .. }))
}

#[test]
fn a_closed_room_is_nowhere_any_more_and_its_name_stays_taken() {
    for public in [true, false] {
        let mut world = World::new(3);
        let callers = world.presents(&[0, 1]);
        let room = world.makes(0, &callers[0], new_room("hall", public, false));
        world.pass(STEP * 10);
        assert!(names(&mut world, 1, &callers[1]).contains(&"hall".to_owned()));
        // Another agent of the key, at another node.
        world.ask(1, close(&callers[1], room)).expect("its key");
        world.pass(STEP * 10);
        for (n, caller) in callers.iter().enumerate() {
            assert!(was_destroyed(&mut world, n), "node {n} tells those who saw it");
            assert_eq!(names(&mut world, n, caller), ["lobby"]);
            let join = Command::Join { caller: caller.clone(), room };
            assert_eq!(in_the_end(&mut world, n, join), Err(Refused::NoRoom));
        }
        let again = in_the_end(&mut world, 0, close(&callers[0], room));
        assert_eq!(again, Err(Refused::NoRoom));
        let new = new_room("hall", public, false);
        let taken = Command::CreateRoom { caller: callers[0].clone(), room: new };
        let taken = in_the_end(&mut world, 0, taken);
        assert!(matches!(taken, Err(Refused::NameTaken(_))), "{taken:?}");
        world.restart_reading(0);
        assert!(!world.nodes[0].engine.known.told.contains_key(&room), "nor after a start");
        if !public {
            assert_eq!(world.nodes[2].records(), [], "nobody else learns of it");
        }
    }
}

#[test]
fn nobody_but_the_key_that_made_a_room_closes_it() {
    let mut world = World::new(2);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    world.pass(STEP * 10);
    let other = world.callers[1].clone();
    assert_eq!(world.ask(1, close(&other, room)).map(drop), Err(Refused::NotYours));
    // What the other key says all the same is kept, and closes nothing.
    let engine = &mut world.nodes[1].engine;
    let at = engine.known.rooms[&room].replica.record.place_of_records(room).expect("permanent");
    engine.known.closings.insert((Space::Mesh, closing::id(&at), other.key));
    engine.known.tell_of_closed(Space::Mesh, closing::id(&at));
    assert!(world.nodes[1].engine.known.told.contains_key(&room));
    let lobby = world.lobby();
    let lobby = world.ask(0, close(&callers[0], lobby)).map(drop);
    assert!(matches!(lobby, Err(Refused::Impossible(_))), "{lobby:?}");
}

#[test]
fn the_word_of_a_key_that_was_replaced_closes_nothing() {
    let mut world = World::new(2);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    world.pass(STEP * 10);
    let (old, new) = (callers[0].key, PRINTS[3]);
    world.nodes[0].mints(new);
    world.nodes[0].replaces(old, new).expect("it is there");
    world.pass(STEP * 10);
    // As a thief of the old key signs it at a node of his own.
    let known = &mut world.nodes[1].engine.known;
    let at = known.rooms[&room].replica.record.place_of_records(room).expect("permanent");
    known.closings.insert((Space::Mesh, closing::id(&at), old));
    known.tell_of_closed(Space::Mesh, closing::id(&at));
    assert!(known.told.contains_key(&room));
    known.closings.insert((Space::Mesh, closing::id(&at), new));
    known.tell_of_closed(Space::Mesh, closing::id(&at));
    assert!(!known.told.contains_key(&room), "its successor closes it");
}
