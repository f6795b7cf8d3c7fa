//! Files of sealed rooms, for nodes that are never up together: their bytes go by a third node, too.

use super::{
    carrying::{
        ALL, ANN, ANN_AWAY, BOB, BOB_AWAY, THIRD, carried, heard_from, sharing_world, with_room,
    },
    files::{file, put, remove},
    pairs::Two,
    world::{STEP, World},
    *,
};
use crate::{
    api::status::RecordStatus,
    limits::{CARRY_ASKED_AGAIN, CARRY_RECHECKED, CARRY_SHARES_MIN, FILE_BYTES_MAX},
    wire::carry::{Load, Parcel},
};

const SECRET: &str = "for few eyes";

/// Bytes of all files that the third node carries.
fn file_bytes(world: &World) -> usize {
    let loads = world.nodes[THIRD].loads().into_values();
    let bytes = loads.map(|load| match load {
        Load::Whole(whole) => whole.bytes.len(),
        Load::Run(..) | Load::Record(_) => 0,
    });
    bytes.sum()
}

fn left_out(world: &World, n: usize) -> usize {
    world.nodes[n].engine.carrying.add_to(RecordStatus::default()).files_left_out
}

#[test]
fn a_file_reaches_the_other_by_a_third_alone_with_its_bytes() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    let text = SECRET.repeat(2_000);
    world.ask(ANN, put(&ann, room, file("notes.md", text.as_bytes()))).expect("it is hers");
    world.pass(STEP * 30);
    assert!(file_bytes(&world) > text.len(), "sealed, it is longer");
    let shows = |bytes: &Vec<u8>| bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
    assert!(!carried(&world, ANN).iter().any(shows), "and not readable");
    // Ann's laptop is closed, and the third node restarts.
    world.meet(&[1, 2, 0]);
    let before = carried(&world, ANN);
    world.restart_reading(THIRD);
    assert_eq!(carried(&world, ANN), before);
    world.meet(&ANN_AWAY);
    world.pass(STEP * 30);
    assert_eq!(world.nodes[BOB].bytes(room, "notes.md").as_deref(), Some(text.as_bytes()));
    assert!(carried(&world, ANN).is_empty(), "he has said that he has it");
    let told = world.told_to.iter().any(|(_, bytes)| shows(bytes));
    assert!(!told, "sealed on its way");
}

#[test]
fn a_file_of_a_direct_room_comes_back_by_the_third_too() {
    let (mut two, room) = Two::talking();
    let bob = two.bob.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&ANN_AWAY);
    two.world.ask(BOB, put(&bob, room, file("plan", b"by Bob"))).expect("he may");
    two.world.pass(STEP * 30);
    two.world.meet(&BOB_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(two.world.nodes[ANN].bytes(room, "plan").as_deref(), Some(&b"by Bob"[..]));
    assert!(carried(&two.world, BOB).is_empty());
}

#[test]
fn many_files_go_by_the_third_part_by_part() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    for n in 0..7 {
        let bytes = vec![n; FILE_BYTES_MAX];
        world.ask(ANN, put(&ann, room, file(&format!("f{n}"), &bytes))).expect("it is hers");
    }
    world.pass(STEP * 100);
    world.meet(&ANN_AWAY);
    world.pass(STEP * 100);
    for n in 0..7 {
        let bytes = world.nodes[BOB].bytes(room, &format!("f{n}"));
        assert_eq!(bytes, Some(vec![n; FILE_BYTES_MAX]), "f{n}");
    }
    assert!(carried(&world, ANN).is_empty());
}

#[test]
fn of_a_file_the_latest_state_alone_is_carried_and_of_a_deleted_one_nothing() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    for text in ["one", "two!", "three"] {
        world.ask(ANN, put(&ann, room, file("notes", text.as_bytes()))).expect("it is hers");
        world.ask(ANN, put(&ann, room, file("gone", text.as_bytes()))).expect("it is hers");
        world.pass(STEP * 30);
    }
    world.ask(ANN, remove(&ann, room, "gone")).expect("it is there");
    world.pass(STEP * 30);
    let sealed = file_bytes(&world);
    assert!((5..50).contains(&sealed), "the last three words, sealed: {sealed}");
    world.meet(&ANN_AWAY);
    world.pass(STEP * 30);
    assert_eq!(world.nodes[BOB].bytes(room, "notes").as_deref(), Some(&b"three"[..]));
    assert_eq!(world.nodes[BOB].bytes(room, "gone"), None);
    assert_eq!(world.nodes[BOB].contents().len(), 1);
    assert!(carried(&world, ANN).is_empty(), "of what was replaced nobody needs the bytes");
}

#[test]
fn a_file_that_does_not_fit_is_not_carried_and_this_is_said_and_all_else_is() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    let share = 64 * 1_024;
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * share);
    two.world.meet(&BOB_AWAY);
    let large = vec![7; 40 * 1_024];
    two.world.ask(ANN, put(&ann, room, file("large", &large))).expect("it is hers");
    two.world.ask(ANN, put(&ann, room, file("small", b"few"))).expect("it is hers");
    two.world.pass(STEP * 30);
    assert_eq!(left_out(&two.world, ANN), 1);
    // It is not handed over again and again.
    let told = two.world.told_to.len();
    two.world.pass(CARRY_ASKED_AGAIN * 3);
    let again = two.world.told_to[told..].iter().filter(|(to, bytes)| {
        let message = Message::decode(bytes).expect("it was sent");
        *to == THIRD && matches!(message, Message::Parcel(Parcel { of: None, .. }))
    });
    assert_eq!(again.count(), 0);
    // And keeps nothing that is said from being carried at once.
    two.says(ANN, &ann, room, "said later");
    two.world.pass(STEP * 20);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["said later"]), ["said later"]);
    assert_eq!(two.world.nodes[BOB].bytes(room, "small").as_deref(), Some(&b"few"[..]));
    assert_eq!(two.world.nodes[BOB].bytes(room, "large"), None);
    // When they meet he gets it.
    two.world.meet(&ALL);
    two.world.pass(STEP * 60);
    assert_eq!(two.world.nodes[BOB].bytes(room, "large"), Some(large));
}

#[test]
fn files_that_fit_go_though_newer_ones_do_not() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * 256 * 1_024);
    two.world.meet(&[0, 1, 2]);
    for n in 0..8 {
        two.world.ask(ANN, put(&ann, room, file(&format!("s{n}"), &[n; 512]))).expect("hers");
        two.world.pass(STEP);
    }
    for n in 0..2 {
        let large = vec![n; FILE_BYTES_MAX];
        two.world.ask(ANN, put(&ann, room, file(&format!("l{n}"), &large))).expect("it is hers");
        two.world.pass(STEP);
    }
    two.world.meet(&BOB_AWAY);
    two.world.pass(CARRY_RECHECKED * 3);
    assert_eq!(left_out(&two.world, ANN), 2);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    for n in 0..8 {
        assert_eq!(two.world.nodes[BOB].bytes(room, &format!("s{n}")), Some(vec![n; 512]));
    }
}

#[test]
fn a_file_that_is_written_again_takes_the_room_of_its_old_state() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * 64 * 1_024);
    two.world.meet(&BOB_AWAY);
    for n in 0..3 {
        two.world.ask(ANN, put(&ann, room, file("notes", &[n; 16 * 1_024]))).expect("it is hers");
        two.world.pass(STEP * 30);
    }
    assert_eq!(left_out(&two.world, ANN), 0);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(two.world.nodes[BOB].bytes(room, "notes"), Some(vec![2; 16 * 1_024]));
}

#[test]
fn files_leave_half_of_a_share_to_what_is_said() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    let share = 64 * 1_024;
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * share);
    two.world.meet(&BOB_AWAY);
    for n in 0..20 {
        let bytes = [n; 4 * 1_024];
        two.world.ask(ANN, put(&ann, room, file(&format!("f{n}"), &bytes))).expect("it is hers");
    }
    two.world.pass(CARRY_RECHECKED * 2);
    let held = file_bytes(&two.world) as u64;
    assert!(held > share / 8 && held < share / 2, "{held}");
    assert!(left_out(&two.world, ANN) > 0);
    two.says(ANN, &ann, room, "said later");
    two.world.pass(STEP * 20);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["said later"]), ["said later"]);
}

#[test]
fn bytes_that_the_owner_has_not_signed_are_no_parcel() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    world.ask(ANN, put(&ann, room, file("notes.md", b"signed"))).expect("it is hers");
    world.pass(STEP * 30);
    let loads = world.nodes[THIRD].loads().into_values();
    let mut wholes = loads.filter_map(|load| match load {
        Load::Whole(whole) => Some(whole),
        Load::Run(..) | Load::Record(_) => None,
    });
    let whole = wholes.next().expect("it is carried");
    let mesh = world.nodes[THIRD].secret.mesh_id();
    let sent = |whole| {
        let parcel = Parcel { contents: vec![whole], ..super::world::parcel(None, room) };
        Message::decode(&Message::Parcel(parcel).encode()).expect("it is short").verify(mesh)
    };
    assert!(sent(whole.clone()).is_ok());
    let mut other = whole.clone();
    other.bytes[20] ^= 1;
    assert!(sent(other).is_err());
    let mut other = whole;
    other.record.apart = None;
    assert!(sent(other).is_err());
}
