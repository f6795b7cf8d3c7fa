//! The secret of the mesh's connections, as it changes.

use super::{world::World, *};
use crate::{
    api::{boundary::Alarm, command::Drawn},
    limits::{
        ABOUT_EVERY, EXPELLED_NAMED_MAX, SECRET_HELD_BACK_FOR, SECRETS_TAKEN_MAX,
        SECRETS_TAKEN_WITHIN,
    },
    name::identity::{Epoch, LinkSecret},
    wire::{
        entry::Parting,
        message::{About, Handed, Signed},
    },
};

fn rotate(world: &mut World, n: usize, byte: u8, force: bool) -> Result<Outcome, Refused> {
    world.ask(n, Command::RotateSecret { drawn: Drawn::new([byte; 32]), force })
}

fn epoch(world: &World, n: usize) -> Epoch {
    world.nodes[n].engine.known.config.secret.epoch()
}

/// What a node's driver was told to use, the last one.
fn told(world: &World, n: usize) -> Option<Epoch> {
    world.secrets[n].last().map(LinkSecret::epoch)
}

fn id(world: &World, n: usize) -> NodeId {
    world.nodes[n].engine.known.cx.me
}

fn expel(world: &mut World, by: usize, node: usize) {
    let node = id(world, node);
    let command = Command::Part { node, why: Parting::Expelled, force: false };
    world.ask(by, command).expect("any member may");
}

#[test]
fn all_members_get_the_new_secret_and_say_so() {
    let mut world = World::new(3);
    let away = rotate(&mut world, 1, 5, false);
    let Err(Refused::Impossible(text)) = away else { panic!("nobody is connected: {away:?}") };
    assert!(text.starts_with("2 of the members") && text.contains("--force"), "{text}");
    world.link();
    rotate(&mut world, 1, 5, false).expect("all members are there");
    let new = LinkSecret::new(1, [5; 32]).epoch();
    for n in 0..3 {
        assert_eq!((epoch(&world, n), told(&world, n)), (new, Some(new)), "{n}");
        let Ok(Outcome::Members(members)) = world.ask(n, Command::Members) else { panic!("lists") };
        let epochs = members.iter().map(|it| it.about.as_ref().map(|it| it.epoch));
        assert!(epochs.eq([Some(new); 3]), "{members:?}");
        assert_eq!(members.iter().filter(|it| it.founder).count(), 1);
    }
}

#[test]
fn a_stranger_gets_no_secret_and_brings_none() {
    let mut world = World::new(2);
    world.link();
    let stranger = identity(77);
    let me = stranger.node_id();
    let node = &mut world.nodes[0];
    node.give(Input::PeerUp(me));
    node.effects.clear();
    let (mesh, theirs) = (node.secret.mesh_id(), LinkSecret::new(9, [9; 32]));
    let handed = Handed { by: me, secret: theirs.clone() };
    let old = Epoch { number: 0, print: [0; 16] };
    let about = About { node: me, epoch: old, version: String::new() };
    for message in [
        Message::Secret(Signed::new(mesh, &stranger, handed)),
        Message::About(Signed::new(mesh, &stranger, about)),
    ] {
        let message = message.verify(mesh).expect("it is well signed");
        node.give(Input::Message { from: me, message });
    }
    let given = |it: &Effect| matches!(it, Effect::Send { message: Message::Secret(_), .. });
    assert!(!node.effects.iter().any(given));
    assert_eq!(epoch(&world, 0).number, 0);
    // Nor does a member bring what another has said, or one that leaves no number for the next.
    let (from, mesh) = (id(&world, 1), world.nodes[0].secret.mesh_id());
    let before = world.nodes[0].engine.known.cx.faults.stray;
    for (by, secret) in [(me, theirs), (from, LinkSecret::new(u64::MAX, [9; 32]))] {
        let signer = if by == me { &stranger } else { &identity(2) };
        let message = Message::Secret(Signed::new(mesh, signer, Handed { by, secret }));
        let message = message.verify(mesh).expect("it is well signed");
        world.nodes[0].give(Input::Message { from, message });
    }
    assert_eq!(world.nodes[0].engine.known.cx.faults.stray, before + 2);
    assert_eq!(epoch(&world, 0).number, 0);
}

#[test]
fn who_is_expelled_does_not_get_the_secret_that_follows() {
    let mut world = World::new(4);
    world.link();
    expel(&mut world, 0, 3);
    for n in 0..3 {
        assert_eq!(epoch(&world, n).number, 1, "it follows by itself");
        assert_eq!(world.nodes[n].engine.known.config.secret.without(), [id(&world, 3)]);
    }
    assert_eq!((epoch(&world, 3).number, told(&world, 3)), (0, None));
}

#[test]
fn the_secret_may_come_before_the_news_of_who_is_expelled() {
    let mut world = World::new(3);
    world.link();
    let out = id(&world, 2);
    // Node 1 hears of the secret alone, and that its peer 2 has an older one.
    let secret = LinkSecret::new(1, [5; 32]).leaving_out([out]);
    let (by, mesh) = (id(&world, 0), world.nodes[0].secret.mesh_id());
    let handed = Message::Secret(Signed::new(mesh, &identity(1), Handed { by, secret }));
    let message = handed.verify(mesh).expect("it is well signed");
    world.nodes[1].give(Input::Message { from: by, message });
    assert_eq!(epoch(&world, 1).number, 1);
    world.carry();
    assert_eq!(epoch(&world, 2).number, 0);
    assert_eq!(epoch(&world, 0).number, 1);
}

#[test]
fn a_secret_drawn_by_those_who_did_not_know_of_it_is_followed_by_another() {
    let mut world = World::new(4);
    world.link();
    // Nodes 1 and 3 are apart. 3 is expelled; 1 changes the secret twice, and 3 has it.
    world.groups = vec![0, 1, 0, 1];
    expel(&mut world, 0, 3);
    assert_eq!(epoch(&world, 2).number, 1);
    rotate(&mut world, 1, 6, true).expect("forced");
    rotate(&mut world, 1, 7, true).expect("forced");
    assert_eq!(epoch(&world, 3).number, 2);
    world.groups = vec![0, 0, 0, 1];
    world.link();
    world.pass(Duration::from_secs(3));
    let ends = [0, 1, 2].map(|n| epoch(&world, n));
    assert_eq!(ends, [ends[0]; 3]);
    assert_eq!(ends[0].number, 3, "higher than what the expelled node has");
    assert_eq!(world.nodes[1].engine.known.config.secret.without(), [id(&world, 3)]);
}

#[test]
fn two_rotations_on_two_sides_come_to_one_when_they_meet() {
    let mut ends = Vec::new();
    for first in [0, 1] {
        let mut world = World::new(2);
        world.link();
        world.groups = vec![0, 1];
        for n in [first, 1 - first] {
            rotate(&mut world, n, if n == 0 { 5 } else { 6 }, true).expect("forced");
        }
        world.held.clear();
        assert_ne!(epoch(&world, 0), epoch(&world, 1));
        world.groups = vec![0, 0];
        world.link();
        assert_eq!(epoch(&world, 0), epoch(&world, 1));
        ends.push(epoch(&world, 0));
    }
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn a_secret_that_was_lost_on_the_way_comes_with_the_next_word() {
    let mut world = World::new(2);
    world.link();
    world.groups = vec![0, 1];
    rotate(&mut world, 0, 5, true).expect("forced");
    world.held.clear();
    world.groups = vec![0, 0];
    world.pass(ABOUT_EVERY);
    assert_eq!(epoch(&world, 1), epoch(&world, 0));
    assert_eq!(epoch(&world, 1).number, 1);
}

/// A member that lies gives another one a secret.
fn hand(world: &mut World, (by, to): (usize, usize), secret: LinkSecret) {
    let (me, mesh) = (id(world, by), world.nodes[by].secret.mesh_id());
    let signer = identity(u8::try_from(by + 1).expect("few"));
    let handed = Message::Secret(Signed::new(mesh, &signer, Handed { by: me, secret }));
    let message = handed.verify(mesh).expect("it is well signed");
    world.nodes[to].give(Input::Message { from: me, message });
}

#[test]
fn no_other_secret_is_the_first_whatever_its_print() {
    let mut world = World::new(2);
    world.link();
    let (first, before) = (epoch(&world, 0), world.nodes[0].engine.known.cx.faults.stray);
    for byte in 0..=255 {
        hand(&mut world, (1, 0), LinkSecret::new(0, [byte; 32]));
    }
    assert_eq!(epoch(&world, 0), first);
    assert_eq!(told(&world, 0), None);
    assert_eq!(world.nodes[0].engine.known.cx.faults.stray, before + 256);
}

#[test]
fn a_secret_that_names_as_many_as_it_may_does_not_keep_an_expelled_node_in() {
    let mut world = World::new(3);
    world.link();
    let made_up = (0..EXPELLED_NAMED_MAX).map(|n| {
        let mut id = [0xee; 32];
        id[..8].copy_from_slice(&(n as u64).to_be_bytes());
        NodeId(id)
    });
    hand(&mut world, (2, 0), LinkSecret::new(1, [9; 32]).leaving_out(made_up));
    assert_eq!(epoch(&world, 0).number, 1, "it is taken");
    world.carry();
    expel(&mut world, 0, 2);
    let out = id(&world, 2);
    for n in 0..2 {
        assert_eq!(epoch(&world, n).number, 2, "{n}");
        assert!(world.nodes[n].engine.known.config.secret.without().contains(&out));
    }
    assert_eq!(epoch(&world, 2).number, 1);
}

#[test]
fn who_is_left_out_without_being_expelled_gets_the_secret_a_little_later() {
    let mut world = World::new(4);
    world.link();
    let victim = id(&world, 2);
    hand(&mut world, (3, 0), LinkSecret::new(1, [9; 32]).leaving_out([victim]));
    world.carry();
    assert_eq!([0, 1, 2].map(|n| epoch(&world, n).number), [1, 1, 0]);
    let alarmed = |world: &World| {
        let alarm = |it: &Effect| {
            matches!(it, Effect::Alarm(Alarm::SecretWithout { node, by })
                if *node == victim && *by == id(world, 3))
        };
        world.nodes[0].effects.iter().any(alarm)
    };
    world.nodes[0].now.mono += SECRET_HELD_BACK_FOR;
    world.nodes[0].give(Input::Timeout);
    assert!(alarmed(&world), "the operator hears of it");
    world.carry();
    assert_eq!(epoch(&world, 2), epoch(&world, 0));
}

#[test]
fn who_was_left_out_and_is_expelled_later_than_that_gets_no_more() {
    let mut world = World::new(4);
    world.link();
    let out = id(&world, 2);
    // Node 1 has the secret without 2, and does not hear that 3 has expelled it.
    world.groups = vec![0, 0, 0, 1];
    expel(&mut world, 3, 2);
    let secret = world.nodes[3].engine.known.config.secret.clone();
    assert_eq!(secret.without(), [out]);
    hand(&mut world, (3, 1), secret);
    world.carry();
    world.pass(SECRET_HELD_BACK_FOR);
    assert_eq!(epoch(&world, 2).number, 1, "nobody it can ask has expelled it");
    world.groups = vec![0; 4];
    world.carry();
    world.pass(ABOUT_EVERY);
    let ends = [0, 1, 3].map(|n| epoch(&world, n));
    assert_eq!(ends, [ends[0]; 3]);
    assert!(ends[0].number > 1, "{ends:?}");
    assert_eq!(epoch(&world, 2).number, 1);
}

#[test]
fn secrets_do_not_change_faster_than_a_disk_and_absent_members_can_bear() {
    let mut world = World::new(3);
    world.link();
    world.groups = vec![0, 0, 1];
    for number in 1..=50 {
        let byte = u8::try_from(number).expect("few");
        hand(&mut world, (1, 0), LinkSecret::new(number, [byte; 32]));
    }
    world.carry();
    assert_eq!(world.secrets[0].len(), SECRETS_TAKEN_MAX);
    // One of its own is none of the others'.
    rotate(&mut world, 0, 200, true).expect("forced");
    assert_eq!(world.secrets[0].len(), SECRETS_TAKEN_MAX + 1);
    // What was not taken comes again.
    for byte in 1..=10 {
        rotate(&mut world, 2, byte, true).expect("forced");
    }
    world.groups = vec![0; 3];
    world.carry();
    world.pass(SECRETS_TAKEN_WITHIN + ABOUT_EVERY * 2);
    let ends = [0, 1, 2].map(|n| epoch(&world, n));
    assert_eq!(ends, [ends[0]; 3]);
}

/// One node is led to a number as high as may be, while others take nothing more: they can follow it.
#[test]
fn nobody_is_left_behind_by_high_numbers() {
    let mut world = World::new(3);
    world.link();
    world.groups = vec![0, 1, 0];
    for number in 1..=5 {
        hand(&mut world, (2, 1), LinkSecret::new(number, [9; 32]));
    }
    let highest = world.nodes[0].now.wall_ms;
    for number in [highest / 4, highest / 2, highest - 1, highest] {
        hand(&mut world, (2, 0), LinkSecret::new(number, [9; 32]));
    }
    rotate(&mut world, 0, 77, true).expect("forced");
    assert_eq!(epoch(&world, 0).number, highest + 1);
    world.groups = vec![0; 3];
    world.carry();
    world.pass(SECRETS_TAKEN_WITHIN + ABOUT_EVERY * 2);
    let ends = [0, 1, 2].map(|n| epoch(&world, n));
    assert_eq!(ends, [ends[0]; 3]);
    assert!(ends[0].number > highest);
}

#[test]
fn a_secret_without_an_expelled_node_is_taken_however_many_came_before() {
    // Whether who expels it has heard before of the highest that it gave to others.
    for heard in [true, false] {
        let mut world = World::new(3);
        world.link();
        world.groups = vec![0, usize::from(!heard), 0];
        for number in 1..=5 {
            hand(&mut world, (2, 0), LinkSecret::new(number, [9; 32]));
            hand(&mut world, (2, 1), LinkSecret::new(number + 10, [9; 32]));
        }
        world.carry();
        expel(&mut world, 0, 2);
        world.groups = vec![0; 3];
        world.carry();
        let (ends, out) = ([0, 1].map(|n| epoch(&world, n)), id(&world, 2));
        assert_eq!(ends, [ends[0]; 2], "{heard}");
        for n in 0..2 {
            assert_eq!(world.nodes[n].engine.known.config.secret.without(), [out], "{heard}");
        }
    }
}

/// What was not taken because there were too many before may be the one without the expelled node.
#[test]
fn a_secret_that_came_before_its_reason_and_was_one_too_many_is_asked_for_again_at_once() {
    let mut world = World::new(3);
    world.link();
    world.groups = vec![0, 1, 0];
    expel(&mut world, 0, 2);
    for byte in 1..=5 {
        rotate(&mut world, 0, byte, true).expect("forced");
    }
    for number in 1..=SECRETS_TAKEN_MAX as u64 {
        hand(&mut world, (2, 1), LinkSecret::new(number, [9; 32]));
    }
    let secret = world.nodes[0].engine.known.config.secret.clone();
    hand(&mut world, (0, 1), secret);
    assert_eq!(epoch(&world, 1).number, SECRETS_TAKEN_MAX as u64, "it is not taken");
    // The reason comes by gossip, and nothing else of what was said does.
    world.carry();
    world.held.retain(|(_, _, it)| matches!(it, Message::Runs(_)));
    world.groups = vec![0; 3];
    world.carry();
    assert_eq!(epoch(&world, 1), epoch(&world, 0));
}

/// What is drawn has to count beside what others took and this node did not.
#[test]
fn a_secret_that_was_one_too_many_is_counted_above_whatever_was_taken_since() {
    let mut world = World::new(4);
    world.link();
    world.groups = vec![0, 0, 1, 1];
    for number in 1..=SECRETS_TAKEN_MAX as u64 {
        hand(&mut world, (2, 0), LinkSecret::new(number, [9; 32]));
    }
    world.carry();
    hand(&mut world, (2, 0), LinkSecret::new(50, [9; 32]));
    assert_eq!(epoch(&world, 0).number, SECRETS_TAKEN_MAX as u64);
    // A lower one, that is needed.
    expel(&mut world, 1, 3);
    assert_eq!(world.nodes[0].engine.known.config.secret.without(), [id(&world, 3)]);
    assert!(epoch(&world, 0).number < 50);
    rotate(&mut world, 0, 77, true).expect("forced");
    assert_eq!(epoch(&world, 0).number, 51);
}

#[test]
fn a_node_says_of_itself_what_it_is_now_and_then_and_of_others_nothing() {
    let mut world = World::new(2);
    world.link();
    let (from, other) = (id(&world, 1), identity(77).node_id());
    let node = &mut world.nodes[0];
    node.effects.clear();
    node.wait(ABOUT_EVERY * 3);
    let said = |it: &&Effect| matches!(it, Effect::Send { message: Message::About(_), .. });
    let count = node.effects.iter().filter(said).count();
    assert!((2..=4).contains(&count), "{count} times");
    let stray = node.engine.known.cx.faults.stray;
    for about in [other, from] {
        let epoch = Epoch { number: 0, print: [0; 16] };
        let it = About { node: about, epoch, version: "9".to_owned() };
        let message = Message::About(Signed { value: it, signature: [0; 64] });
        for from in [from, other] {
            node.give(Input::Message { from, message: message.clone() });
        }
    }
    assert_eq!(node.engine.known.cx.faults.stray, stray + 3, "of itself, and over its own link");
    assert_eq!(node.engine.renewal.about[&from].version, "9");
    assert!(!node.engine.renewal.about.contains_key(&other));
}
