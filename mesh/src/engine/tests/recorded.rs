//! What clients are told of records: at all nodes that have them, once for each turn, and nothing that does not show.

use super::{
    records::{MINTED, of_two, signer},
    room_records::{new_room, set, title},
    world::World,
    *,
};
use crate::{
    api::event::AgentEvent,
    records::{
        details::{DetailsUpdate, RoomState},
        news::{AgentNote, RoomNote},
        profile::{Card, Field, ProfileUpdate},
        threads::ThreadUpdate,
    },
    wire::record::{Draft, Stamp},
};

impl World {
    /// What a node has told of rooms since the last time.
    fn rooms_told(&mut self, n: usize) -> Vec<Vec<RoomNote>> {
        let told = std::mem::take(&mut self.told[n]).into_iter();
        let notes = told.filter_map(|event| {
            let RoomEvent::Recorded(notes) = event else { return None };
            Some(notes.to_vec())
        });
        notes.collect()
    }

    /// The same of agents.
    fn agents_told(&mut self, n: usize) -> Vec<(String, Vec<AgentNote>)> {
        let told = std::mem::take(&mut self.tells[n]).into_iter();
        let notes = told.filter_map(|event| {
            let AgentEvent::Recorded { agent, notes } = event else { return None };
            Some((agent.to_string(), notes.to_vec()))
        });
        notes.collect()
    }
}

fn details() -> DetailsUpdate {
    DetailsUpdate {
        description: Some(Some("where ships come in".to_owned())),
        state: Some(Some(RoomState::Active)),
        settings: vec![("theme".to_owned(), Some("1".to_owned()))],
        ..title("Harbour")
    }
}

#[test]
fn what_a_key_says_of_its_room_is_told_once_at_each_node_that_reads_it() {
    for (public, reads) in [(true, [1, 1, 1]), (false, [1, 1, 0])] {
        let mut world = World::new(3);
        let callers = world.presents(&[0, 1]);
        let room = world.makes(0, &callers[0], new_room("hall", public, false));
        world.ask(0, set(&callers[0], room, details())).expect("its key");
        let all = vec![
            RoomNote::Title,
            RoomNote::Description,
            RoomNote::State,
            RoomNote::Setting(Some("theme".to_owned())),
        ];
        for (n, times) in (0..).zip(reads) {
            assert_eq!(world.rooms_told(n), vec![all.clone(); times], "{public}: node {n}");
        }
        let gone = DetailsUpdate {
            title: Some(None),
            settings: vec![("theme".to_owned(), None)],
            ..DetailsUpdate::default()
        };
        world.ask(1, set(&callers[1], room, gone)).expect("its key");
        let gone = vec![RoomNote::Title, RoomNote::Setting(None)];
        for (n, times) in (0..).zip(reads) {
            assert_eq!(world.rooms_told(n), vec![gone.clone(); times], "{public}: node {n}");
        }
    }
}

#[test]
fn facts_of_threads_are_told_with_their_thread_and_their_key() {
    let mut world = World::new(2);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    let facts = |value: Option<&str>| {
        let facts = vec![("label".to_owned(), value.map(str::to_owned))];
        let threads = vec![ThreadUpdate { thread: "one".to_owned(), facts }];
        DetailsUpdate { threads, ..DetailsUpdate::default() }
    };
    for (value, thread) in [(Some("1"), Some("one".to_owned())), (None, None)] {
        world.ask(0, set(&callers[0], room, facts(value))).expect("its key");
        let note = RoomNote::Thread { key: MINTED, thread };
        assert_eq!(world.rooms_told(1), [[note.clone()]]);
        assert_eq!(world.rooms_told(0), [[note]]);
    }
}

#[test]
fn what_an_agents_key_says_of_it_is_told_at_all_nodes_and_what_others_say_is_not() {
    let (mut world, caller) = of_two();
    let agent = caller.agent.to_string();
    let says = |fields: &[(Field, Option<&str>)], cards: Option<Vec<Card>>| {
        let fields = fields.iter().map(|(field, text)| (*field, text.map(str::to_owned)));
        let update = Box::new(ProfileUpdate { fields: fields.collect(), cards });
        Command::SetProfile { signer: signer(MINTED), caller: caller.clone(), update }
    };
    let card = Card {
        name: "dig".to_owned(),
        text: "digs".to_owned(),
        tags: Vec::new(),
        visibility: None,
    };
    let named = [(Field::Name, Some("Scout")), (Field::Emoji, Some("🦀"))];
    let (name, emoji) = (AgentNote::Field(Field::Name), AgentNote::Field(Field::Emoji));
    for (says, notes) in [
        (says(&named, Some(vec![card])), vec![name, emoji, AgentNote::Cards]),
        (says(&[(Field::Emoji, None)], None), vec![emoji]),
        (says(&[], Some(Vec::new())), vec![AgentNote::Cards]),
    ] {
        world.ask(0, says).expect("it is its own");
        let told = (agent.clone(), notes);
        assert_eq!([0, 1].map(|n| world.agents_told(n)), [vec![told.clone()], vec![told]]);
    }
    // Another key, of an agent that is not its own.
    let node = &mut world.nodes[0];
    let stamp = Stamp(node.now_stamp().0 + 1);
    let other = signer(KEY).expect("it is one of these");
    for text in [Some("Lie".to_owned()), None] {
        let update = ProfileUpdate { fields: vec![(Field::Name, text)], cards: None };
        let draft: Draft = update.drafts(&agent, &[]).remove(0);
        let record = draft.sign(&other, node.secret.mesh_id(), stamp).expect("it is long enough");
        node.hear_record(record);
    }
    world.carry();
    assert!(world.agents_told(0).is_empty());
}

#[test]
fn what_another_key_says_of_a_room_is_not_told() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    world.rooms_told(0);
    let node = &mut world.nodes[0];
    let at = node.engine.known.rooms[&room].replica.record.place_of_records(room).expect("there");
    let draft: Draft = title("Lie").drafts(&at).remove(0);
    let other = signer(KEY).expect("it is one of these");
    let (mesh, stamp) = (node.secret.mesh_id(), Stamp(node.now_stamp().0 + 1));
    node.hear_record(draft.sign(&other, mesh, stamp).expect("it is long enough"));
    world.carry();
    assert!(world.rooms_told(0).is_empty());
    world.ask(0, set(&callers[0], room, title("Harbour"))).expect("its key");
    assert_eq!(world.rooms_told(0), [[RoomNote::Title]]);
}
