//! Records of all nodes: profiles that agents write, and records that others send.

use std::sync::Arc;

use super::{world::World, *};
use crate::{
    api::batch::StoredRecord,
    limits::{RECORD_AHEAD_MAX, RECORDS_COMPARE_EVERY},
    name::{id::MeshId, key::KeySecret},
    records::profile::{self, Card, Field, Profile, ProfileUpdate},
    wire::{
        record::{Draft, Record, Space, Stamp},
        signatures::testing::secret,
    },
};

/// Minted at the first node of each world here.
pub(super) const MINTED: KeyPrint = PRINTS[2];
const AGENT: &str = "scout";

pub(super) fn signer(key: KeyPrint) -> Option<Arc<KeySecret>> {
    let nth = PRINTS.iter().position(|print| *print == key)?;
    Some(Arc::new(KeySecret::of(&format!("{nth:0>32}"))))
}

pub(super) fn names(text: &str) -> ProfileUpdate {
    ProfileUpdate { fields: vec![(Field::Name, Some(text.to_owned()))], cards: None }
}

pub(super) fn set(caller: &Caller, update: ProfileUpdate) -> Command {
    let (caller, update) = (caller.clone(), Box::new(update));
    Command::SetProfile { signer: signer(caller.key), caller, update }
}

/// As somebody with this key may sign it, whenever.
fn signed(mesh: MeshId, key: KeyPrint, text: &str, at: Stamp) -> Record {
    let draft: Draft = names(text).drafts(AGENT, &[]).remove(0);
    draft.sign(secret(key).expect("it is one of these"), mesh, at).expect("it is long enough")
}

impl Node {
    /// The record rows that it has made durable.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut rows = std::collections::BTreeMap::new();
        for row in &self.rows {
            if let Change::Record { space, collection, key, record, .. } = row {
                let place = (*space, *collection, *key);
                match record {
                    Some(record) => rows.insert(place, Record::clone(record)),
                    None => rows.remove(&place),
                };
            }
        }
        rows.into_values().collect()
    }

    fn profile(&self, agent: &str) -> Profile {
        let places = profile::places(agent);
        let named = |record: &Record| {
            let place = |(kind, first): &(_, [u8; 8])| {
                record.collection == *kind && record.id.0.starts_with(first)
            };
            places.iter().any(place)
        };
        let records: Vec<Record> = self.records().into_iter().filter(named).collect();
        profile::read(agent, &records, |key| self.engine.proofs().owns(key, agent))
    }

    fn name(&self) -> Option<String> {
        let fields = self.profile(AGENT).fields;
        fields.into_iter().find(|(field, _)| *field == Field::Name).map(|(_, text)| text)
    }

    pub(super) fn mints(&mut self, key: KeyPrint) {
        let new = self.new_key(key, Tier::High, false);
        self.ask(Command::MintKey(new)).expect("it is new");
    }

    pub(super) fn hear_record(&mut self, record: Record) {
        self.hear_records(&[record]);
    }

    pub(super) fn hear_records(&mut self, records: &[Record]) {
        let message = Message::Records(records.to_vec()).verify(self.secret.mesh_id());
        let message = message.expect("they are signed");
        self.give(Input::Message { from: identity(9).node_id(), message });
    }

    pub(super) fn now_stamp(&self) -> Stamp {
        Stamp::at(self.now.wall_us)
    }
}

/// A node at which a key was minted, and an agent of that key.
fn minted_here() -> (Node, Caller) {
    let mut node = Node::new(1);
    node.mints(MINTED);
    let caller = node.attach(AGENT, true, MINTED).expect("it is free");
    (node, caller)
}

pub(super) fn of_two() -> (World, Caller) {
    let mut world = World::new(2);
    world.link();
    world.nodes[0].mints(MINTED);
    world.carry();
    let caller = world.nodes[0].attach(AGENT, true, MINTED).expect("it is free");
    world.carry();
    (world, caller)
}

#[test]
fn what_an_agent_says_of_itself_is_durable_and_shows_at_all_nodes() {
    let (mut world, caller) = of_two();
    let card = |name: &str| Card {
        name: name.to_owned(),
        text: "does it".to_owned(),
        tags: Vec::new(),
        visibility: None,
    };
    let update = ProfileUpdate { cards: Some(vec![card("dig"), card("map")]), ..names("Scout") };
    world.ask(0, set(&caller, update)).expect("it is its own");
    for node in &world.nodes {
        assert_eq!(node.name(), Some("Scout".to_owned()));
        assert_eq!(node.profile(AGENT).cards, [card("dig"), card("map")]);
    }
    let update =
        ProfileUpdate { fields: vec![(Field::Name, None)], cards: Some(vec![card("map")]) };
    world.ask(0, set(&caller, update)).expect("it is its own");
    for node in &world.nodes {
        assert_eq!(node.name(), None);
        assert_eq!(node.profile(AGENT).cards, [card("map")]);
        assert_eq!(node.records().len(), 3, "two of them say that something is deleted");
    }
    assert_eq!(world.nodes[0].engine.records.digest(), world.nodes[1].engine.records.digest());
}

/// More than one comparison brings. Those that follow do not wait for a beacon.
#[test]
fn a_node_that_has_no_records_gets_many_without_a_pause() {
    let mut world = World::new(2);
    let keys = [MINTED, PRINTS[3]];
    for key in keys {
        world.nodes[0].mints(key);
    }
    world.carry();
    let (mesh, at) = (world.nodes[0].secret.mesh_id(), world.nodes[0].now_stamp());
    for key in keys {
        let secret = secret(key).expect("it is one of these");
        let record = |n: usize| {
            let draft: Draft = names("many").drafts(&format!("agent {n}"), &[]).remove(0);
            draft.sign(secret, mesh, at).expect("it is long enough")
        };
        for n in 0..3_000 {
            world.nodes[0].hear_record(record(n));
        }
    }
    let count = |node: &Node| node.records().len();
    assert_eq!([0, 1].map(|n| count(&world.nodes[n])), [6_000, 0]);
    world.link();
    world.pass(Duration::from_millis(400));
    assert_eq!(count(&world.nodes[1]), 6_000);
    assert_eq!(world.nodes[0].engine.records.digest(), world.nodes[1].engine.records.digest());
}

#[test]
fn records_that_gossip_has_lost_come_by_comparing() {
    let (mut world, caller) = of_two();
    world.groups = vec![0, 1];
    world.ask(0, set(&caller, names("Scout"))).expect("it is its own");
    assert_eq!(world.nodes[1].name(), None);
    world.held.clear();
    world.groups = vec![0, 0];
    world.pass(RECORDS_COMPARE_EVERY * 3);
    assert_eq!(world.nodes[1].name(), Some("Scout".to_owned()));
    // The other way round: the one that lacks it begins.
    let mut world = of_two().0;
    let record =
        signed(world.nodes[0].secret.mesh_id(), MINTED, "Other", world.nodes[1].now_stamp());
    world.nodes[1].hear_record(record);
    world.pass(RECORDS_COMPARE_EVERY * 3);
    assert_eq!(world.nodes[0].name(), Some("Other".to_owned()));
}

#[test]
fn a_profile_is_refused_to_whoever_cannot_prove_that_it_is_its_own() {
    let (mut node, caller) = minted_here();
    let refused = |node: &mut Node, command| match node.ask(command) {
        Err(Refused::Impossible(text)) => text,
        other => panic!("{other:?}"),
    };
    // A key that was minted for this node alone, and of which the node has not said that it was shown it.
    let unheard = registers(&crate::name::agent::drawn([1; 6], PRINTS[3]), (PRINTS[3], false));
    let agent = unheard.agent.clone();
    let call = CallId(1_000);
    let input = Input::Command { call, command: Command::Attach(unheard) };
    node.engine.handle(node.now, input);
    node.turn();
    let Some(Ok(Outcome::Attached(it))) = node.reply(call) else { panic!("it is free") };
    let unheard = Caller { agent, key: PRINTS[3], registration: it.registration };
    assert!(refused(&mut node, set(&unheard, names("x"))).contains("not in the mesh's directory"));
    // An id that is claimed by nobody.
    let other = node.attach("other", false, MINTED).expect("it is free");
    assert!(refused(&mut node, set(&other, names("x"))).contains("does not own"));
    // No key, and another one.
    for signer in [None, signer(KEY)] {
        let command =
            Command::SetProfile { caller: caller.clone(), signer, update: Box::new(names("x")) };
        assert!(refused(&mut node, command).contains("checks no keys"));
    }
    // A drawn id is its key's without a claim.
    let drawn = crate::name::agent::drawn([1; 6], MINTED);
    let drawn = node.attach(&drawn, false, MINTED).expect("it is free");
    node.ask(set(&drawn, names("Drawn"))).expect("it is its own");
    assert_eq!(node.profile(&drawn.agent).fields, [(Field::Name, "Drawn".to_owned())]);
    let long = ProfileUpdate { fields: vec![(Field::Emoji, Some("x".repeat(17)))], cards: None };
    assert!(matches!(node.ask(set(&caller, long)), Err(Refused::Field(_))));
    node.ask(Command::Detach { caller: caller.clone(), seen: Vec::new() }).expect("it is attached");
    assert_eq!(node.ask(set(&caller, names("x"))).err(), Some(Refused::Superseded));
    assert_eq!(node.records().len(), 1);
}

/// A voucher has both halves of a key, so that one of a node's own need not be minted.
#[test]
fn a_key_that_was_shown_at_a_node_owns_records() {
    let (mut world, _) = of_two();
    let drawn = crate::name::agent::drawn([2; 6], KEY);
    let caller = world.nodes[0].attach(&drawn, false, KEY).expect("it is free");
    world.ask(0, set(&caller, names("Own"))).expect("it is its own");
    world.pass(RECORDS_COMPARE_EVERY * 3);
    let name = vec![(Field::Name, "Own".to_owned())];
    assert_eq!([0, 1].map(|n| world.nodes[n].profile(&drawn).fields), [name.clone(), name]);
    // Both nodes were shown it.
    let lowest = world.nodes.iter().map(|node| node.engine.known.cx.me).min();
    let answers = |n: usize| world.nodes[n].engine.known.directory.answers_for(KEY);
    assert_eq!([0, 1].map(answers), [lowest; 2]);
}

#[test]
fn a_record_of_a_key_that_is_not_known_yet_is_asked_for_again() {
    let (mut world, _) = of_two();
    let late = PRINTS[4];
    let mesh = world.nodes[0].secret.mesh_id();
    world.groups = vec![0, 1];
    world.nodes[0].mints(late);
    let minted = world.nodes[0].runs_sent();
    let at = world.nodes[0].now_stamp();
    world.nodes[0].hear_record(signed(mesh, late, "Late", at));
    world.held.clear();
    world.groups = vec![0, 0];
    // It comes before the key does.
    world.nodes[1].hear_record(signed(mesh, late, "Late", at));
    assert_eq!(world.nodes[1].records(), []);
    world.pass(RECORDS_COMPARE_EVERY * 5);
    assert_eq!(world.nodes[1].records(), [], "the two differ for a while");
    for run in minted {
        world.nodes[1].hear(&run);
    }
    world.pass(RECORDS_COMPARE_EVERY * 6);
    assert_eq!(world.nodes[1].records().len(), 1);
}

#[test]
fn a_record_of_a_time_to_come_is_taken_when_that_is_near() {
    let (mut node, _) = minted_here();
    let mesh = node.secret.mesh_id();
    let ahead = u64::try_from(RECORD_AHEAD_MAX.as_micros()).expect("a day") + 10_000;
    let record = signed(mesh, MINTED, "Tomorrow", Stamp::at(node.now.wall_us + ahead));
    node.hear_record(record.clone());
    assert_eq!(node.name(), None);
    let for_ever = Stamp::at(node.now.wall_us).for_ever();
    for stamp in [Stamp(u64::MAX), for_ever] {
        node.hear_record(signed(mesh, MINTED, "Never", stamp));
        assert_eq!(node.name(), None, "{stamp:?}");
    }
    node.now.wall_us += 10_000;
    node.hear_record(record);
    assert_eq!(node.name(), Some("Tomorrow".to_owned()));
}

#[test]
fn nothing_of_a_revoked_key_shows_and_all_of_it_stays() {
    let (mut node, caller) = minted_here();
    node.ask(set(&caller, names("Scout"))).expect("it is its own");
    node.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    assert_eq!(node.profile(AGENT), Profile::default());
    assert_eq!(node.records().len(), 1);
}

#[test]
fn a_deletion_does_not_come_undone() {
    let (mut node, caller) = minted_here();
    let mesh = node.secret.mesh_id();
    node.ask(set(&caller, names("Scout"))).expect("it is its own");
    let old = node.records().remove(0);
    let update = ProfileUpdate { fields: vec![(Field::Name, None)], cards: None };
    node.ask(set(&caller, update)).expect("it is its own");
    node.hear_record(old.clone());
    // As one that was restored from a backup has it, and one that writes with a clock that is behind.
    node.hear_record(signed(mesh, MINTED, "Older", Stamp(old.stamp.0 - 1)));
    assert_eq!(node.name(), None);
    assert!(node.records()[0].body.is_none());
}

#[test]
fn a_writer_whose_clock_is_behind_is_still_heard() {
    let (mut node, caller) = minted_here();
    let mesh = node.secret.mesh_id();
    let hour = 3_600_000_000;
    node.hear_record(signed(mesh, MINTED, "Ahead", Stamp::at(node.now.wall_us + hour)));
    node.ask(set(&caller, names("Now"))).expect("it is its own");
    assert_eq!(node.name(), Some("Now".to_owned()));
}

#[test]
fn a_start_goes_on_where_the_store_ends() {
    let (mut world, caller) = of_two();
    world.ask(0, set(&caller, names("Scout"))).expect("it is its own");
    let before = world.nodes[0].engine.records.digest();
    let stamp = world.nodes[0].records()[0].stamp;
    world.restart(0);
    assert_eq!(world.nodes[0].engine.records.digest(), before);
    let caller = world.nodes[0].attach(AGENT, true, MINTED).expect("it is its own");
    // Its clock was set back meanwhile.
    world.nodes[0].now.wall_us -= 1_000_000_000;
    world.ask(0, set(&caller, names("Again"))).expect("it is its own");
    assert!(world.nodes[0].records()[0].stamp > stamp);
    assert_eq!(world.nodes[1].name(), Some("Again".to_owned()));
}

#[test]
fn records_of_a_key_that_the_directory_has_lost_go() {
    let (mut node, _) = minted_here();
    let other = PRINTS[5];
    // A member mints a key, and is found to have signed two histories of its log from there on.
    let log = SignedLog { node: identity(5).node_id(), ..node.signed_log() };
    let minted = Body::Key(crate::wire::acts::KeyAct::Minted(minted(&log, other, Tier::Low)));
    let directory = RoomId::directory(node.secret.mesh_id());
    let run = log_of(&node, directory, 5, &[minted]);
    node.hear(&run);
    let at = node.now_stamp();
    node.hear_record(signed(node.secret.mesh_id(), other, "Gone", at));
    assert_eq!(node.records().len(), 1);
    let another = log_of(&node, directory, 5, &[Body::Unknown]);
    node.hear(&another);
    assert_eq!(node.records(), []);
    // At a start nothing is taken for known that is not.
    let record = signed(node.secret.mesh_id(), other, "Gone", at);
    let stored = StoredRecord {
        about: None,
        space: Space::Mesh,
        collection: record.collection,
        head: record.head(node.secret.mesh_id()),
        deleted: false,
        apart: None,
        held: false,
        copied: false,
        whole: None,
    };
    let summary = Summary { records: vec![stored], ..super::disk::stored(&node.rows) };
    let again = Node::open(1, summary, node.now);
    let gone = |row: &Change| matches!(row, Change::Record { record: None, .. });
    assert_eq!(again.rows.iter().filter(|row| gone(row)).count(), 1);
}

#[test]
fn a_client_is_refused_at_the_bound_and_others_records_are_kept_a_little_beyond() {
    let (mut node, caller) = minted_here();
    let mesh = node.secret.mesh_id();
    let max = profile::COLLECTION.owner_max;
    let key = secret(MINTED).expect("it is one of these");
    let at = node.now_stamp();
    let drafts = (0..max).map(|n| names("x").drafts(&n.to_string(), &[]).remove(0));
    let records: Vec<Record> =
        drafts.map(|draft| draft.sign(key, mesh, at).expect("it is long enough")).collect();
    for part in records.chunks(1_000) {
        let from = identity(9).node_id();
        node.give(Input::Message { from, message: Message::Records(part.to_vec()) });
    }
    assert_eq!(node.records().len(), max);
    let full = node.ask(set(&caller, names("Scout")));
    let Err(Refused::Full(text)) = full else { panic!("{full:?}") };
    assert!(text.contains("agent.profile") && text.contains(&max.to_string()), "{text}");
    // Another node had room for it.
    node.hear_record(signed(mesh, MINTED, "Scout", at));
    assert_eq!(node.name(), Some("Scout".to_owned()));
    // Now there is one of its own to be replaced.
    node.ask(set(&caller, names("Again"))).expect("it takes no place");
}
