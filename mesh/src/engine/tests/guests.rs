//! Guests: members that hear and write, to whom no turn passes, and who neither vote nor lead.

use super::{world::World, *};
use crate::{
    api::{agenda::NewVote, command::RoomInfo},
    engine::turn_token,
    name::id::AgentId,
};

fn vote(room: RoomId) -> NewVote {
    NewVote {
        room,
        title: "what".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        duration_secs: None,
    }
}

fn guest(caller: &Caller, room: RoomId) -> Command {
    Command::JoinAsGuest { caller: caller.clone(), room }
}

fn member(caller: &Caller, room: RoomId) -> Command {
    Command::Join { caller: caller.clone(), room }
}

/// Whose turn a node says that it is.
fn holders(world: &World, room: RoomId) -> Vec<Option<AgentId>> {
    let nodes = world.nodes.iter();
    nodes.map(|node| turn_token::holder(&node.engine.known, room)).collect()
}

/// The members of a room, and whether each is a guest.
fn members(world: &mut World, n: usize, room: RoomId) -> Vec<(String, bool)> {
    let info = world.ask(n, Command::RoomInfo { by: KEY.into(), room });
    let Ok(Outcome::RoomInfo(info)) = info else { panic!("anybody may: {info:?}") };
    let RoomInfo { agents, .. } = info;
    agents.iter().map(|view| (view.agent.to_string(), view.guest)).collect()
}

/// The order that members were told last.
fn order(world: &World, n: usize) -> Option<Vec<String>> {
    world.told[n].iter().rev().find_map(|event| match event {
        RoomEvent::Turn { order, .. } => Some(order.iter().map(|it| it.to_string()).collect()),
        _ => None,
    })
}

fn says(world: &mut World, n: usize, caller: &Caller) {
    let say = rooms::words(world.lobby(), "hi".to_owned());
    let call = world.begin(n, Command::Say { caller: caller.clone(), say });
    world.carry();
    assert!(matches!(world.reply(n, call), Some(Ok(Outcome::Said(_)))));
}

#[test]
fn no_turn_passes_to_a_guest_at_any_node() {
    let mut world = World::new(2);
    let (room, callers) = (world.lobby(), world.callers.clone());
    let eve = world.nodes[0].attach("eve", false, KEY).expect("free");
    world.ask(0, guest(&eve, room)).expect("public");
    world.carry();
    // The guest stands between the two.
    let leave = Command::Leave { caller: callers[0].clone(), room };
    world.ask(0, leave).expect("a member");
    world.ask(0, member(&callers[0], room)).expect("public");
    world.carry();
    for n in 0..2 {
        let all = [("agent1", false), ("eve", true), ("agent0", false)];
        assert_eq!(members(&mut world, n, room), all.map(|(agent, is)| (agent.to_owned(), is)));
    }
    for (speaker, next) in [(0, "agent1"), (1, "agent0"), (0, "agent1"), (1, "agent0")] {
        says(&mut world, speaker, &callers[speaker]);
        assert_eq!(holders(&world, room), [Some(next.into()), Some(next.into())]);
        assert_eq!(order(&world, 1).expect("they are told"), ["agent1", "agent0"]);
    }
    // Its words are heard, and leave the turn where it is.
    world.told.iter_mut().for_each(Vec::clear);
    world.nodes[0].say(&eve, room).expect("guests write");
    world.carry();
    assert_eq!(holders(&world, room), [Some("agent0".into()), Some("agent0".into())]);
    let hears = |told: &Vec<RoomEvent>| told.iter().any(|it| matches!(it, RoomEvent::Message(_)));
    assert!(world.told.iter().all(hears), "members at all nodes hear it");
    // A member that becomes a guest has no turn any more, and all are told.
    world.ask(0, guest(&callers[0], room)).expect("a member");
    world.carry();
    assert_eq!(holders(&world, room), [Some("agent1".into()), Some("agent1".into())]);
    assert_eq!(order(&world, 1).expect("they are told"), ["agent1"]);
    world.ask(0, member(&eve, room)).expect("a member");
    says(&mut world, 1, &callers[1]);
    assert_eq!(
        holders(&world, room),
        [Some("eve".into()), Some("eve".into())],
        "no guest any more"
    );
}

#[test]
fn guests_are_neither_asked_to_vote_nor_to_lead() {
    let mut world = World::new(2);
    let (room, callers) = (world.lobby(), world.callers.clone());
    let eve = world.nodes[0].attach("eve", false, KEY).expect("free");
    world.ask(0, guest(&eve, room)).expect("public");
    world.carry();
    // It may have others vote.
    let opened = world.ask(0, Command::CreateVote { caller: eve.clone(), vote: vote(room) });
    let Ok(Outcome::Vote(view)) = opened else { panic!("{opened:?}") };
    assert_eq!(view.eligible, 2);
    world.carry();
    let casts =
        |caller: &Caller| Command::CastVote { caller: caller.clone(), vote: view.vote, option: 0 };
    assert_eq!(world.ask(0, casts(&eve)).expect_err("a guest"), Refused::NotEligible);
    world.ask(1, casts(&callers[1])).expect("eligible");
    let elects = world.ask(1, Command::ElectLeader { caller: callers[1].clone(), room });
    let Ok(Outcome::Candidates(candidates)) = elects else { panic!("{elects:?}") };
    assert_eq!(candidates, ["agent0", "agent1"].map(AgentId::from));
    // Where there is nobody else, nobody votes and nobody leads.
    let alone = rooms::make(&mut world.nodes[0], &eve, rooms::new("alone", false)).expect("new");
    world.ask(0, guest(&eve, alone)).expect("public");
    let refused = world.ask(0, Command::CreateVote { caller: eve.clone(), vote: vote(alone) });
    assert_eq!(refused.expect_err("nobody"), Refused::GuestsAlone);
    let refused = world.ask(0, Command::ElectLeader { caller: eve.clone(), room: alone });
    assert_eq!(refused.expect_err("nobody"), Refused::GuestsAlone);
    assert_eq!(turn_token::holder(&world.nodes[0].engine.known, alone), None);
}

#[test]
fn people_are_guests_wherever_they_sit_and_guests_stay_guests_when_they_come_back() {
    let mut world = World::new(1);
    let room = world.lobby();
    let id = format!("u-{}-ada", &KEY.to_string()[..16]);
    let ada = world.nodes[0].attach(&id, true, KEY).expect("free");
    world.ask(0, member(&ada, room)).expect("public");
    let eve = world.nodes[0].attach("eve", true, KEY).expect("free");
    world.ask(0, guest(&eve, room)).expect("public");
    let all: [(&str, bool); 3] = [("agent0", false), (&*id, true), ("eve", true)];
    let all = all.map(|(agent, is)| (agent.to_owned(), is));
    assert_eq!(members(&mut world, 0, room), all);
    let eve = world.nodes[0].attach("eve", true, KEY).expect("her own");
    assert_eq!(members(&mut world, 0, room), all);
    // Writing changes nothing of that.
    world.nodes[0].say(&eve, room).expect("guests write");
    assert_eq!(members(&mut world, 0, room), all);
    world.ask(0, member(&eve, room)).expect("a guest");
    assert_eq!(members(&mut world, 0, room).last(), Some(&("eve".to_owned(), false)));
}
