//! Files of rooms: records whose contents travel apart.

use super::{
    records::{MINTED, signer},
    world::{STEP, World},
    *,
};
use crate::{
    api::command::{FileAct, FileChange, Inherited, SignAnew},
    limits::{CONTENT_ASKED_AGAIN, FILE_BYTES_MAX, FILES_PER_ROOM_MAX, ROOM_FILES_BYTES_MAX},
    records::{
        details::DetailsUpdate,
        files::{self, FileView, NewFile},
        place::{RoomPlace, showing},
        writers::WritersUpdate,
    },
    wire::{
        contents::{Content, SentContents, WantedContents},
        cover::Cover,
        record::{Apart, Draft, Record, RecordKey, Space, Stamp},
    },
};

/// Part of all that is private.
const SECRET: &str = "for few eyes";

pub(super) fn file(path: &str, bytes: &[u8]) -> NewFile {
    NewFile { path: path.to_owned(), media: None, bytes: bytes.to_vec() }
}

fn changes(caller: &Caller, room: RoomId, act: FileAct) -> FileChange {
    let (key, agent) = (caller.key, Some(caller.agent.clone()));
    FileChange { room, key, agent, signer: signer(key), act }
}

pub(super) fn put(caller: &Caller, room: RoomId, file: NewFile) -> Command {
    let act = FileAct::Put(file, Encryption::None);
    Command::ChangeFile(Box::new(changes(caller, room, act)))
}

pub(super) fn remove(caller: &Caller, room: RoomId, path: &str) -> Command {
    Command::ChangeFile(Box::new(changes(caller, room, FileAct::Remove(path.to_owned()))))
}

impl Node {
    /// Bytes apart that it has made durable.
    pub(super) fn contents(&self) -> std::collections::BTreeMap<(Space, RecordKey), Vec<u8>> {
        let mut rows = std::collections::BTreeMap::new();
        for row in &self.rows {
            if let Change::Content { space, key, bytes, .. } = row {
                match bytes {
                    Some(bytes) => rows.insert((*space, *key), bytes.to_vec()),
                    None => rows.remove(&(*space, *key)),
                };
            }
        }
        rows
    }

    pub(super) fn place(&self, room: RoomId) -> RoomPlace {
        self.engine.known.rooms[&room].replica.record.place_of_records(room).expect("permanent")
    }

    /// A file as it shows, and its bytes, if they are here.
    fn file(&self, room: RoomId, path: &str) -> Option<(FileView, Option<Vec<u8>>)> {
        if !self.engine.known.rooms.contains_key(&room) {
            return None;
        }
        let at = self.place(room);
        let owners = self.records().into_iter().map(|record| record.owner());
        let keys = self.engine.proofs().file_keys(room, owners);
        let (id, records) = (files::id(&at, path), self.records());
        let states = records.iter().filter(|record| record.id == id);
        let record = *showing(states, &keys, self.secret.mesh_id()).first()?;
        let (view, key) = (files::read(&at, record, &keys)?, record.owner());
        let place = (at.space, RecordKey { id, owner: Some(key) });
        let bytes = self.contents().get(&place).cloned();
        let bytes = bytes.and_then(|bytes| at.cover.read_apart(&files::apart_name(id, key), bytes));
        Some((view, bytes))
    }

    pub(super) fn bytes(&self, room: RoomId, path: &str) -> Option<Vec<u8>> {
        self.file(room, path)?.1
    }
}

impl World {
    fn with_room(&mut self, public: bool) -> (Vec<Caller>, RoomId) {
        let callers = self.presents(&[0, 1]);
        let room = self.makes(0, &callers[0], super::room_records::new_room("hall", public, false));
        (callers, room)
    }
}

#[test]
fn a_file_is_durable_when_it_is_answered_and_comes_to_all_nodes() {
    for public in [true, false] {
        let mut world = World::new(3);
        let (callers, room) = world.with_room(public);
        let text = SECRET.repeat(3_000);
        let call = world.begin(0, put(&callers[0], room, file("a/b.txt", text.as_bytes())));
        assert!(matches!(world.reply(0, call), Some(Ok(Outcome::Done))));
        let (view, bytes) = world.nodes[0].file(room, "a/b.txt").expect("it is there");
        assert_eq!(bytes.as_deref(), Some(text.as_bytes()), "before anybody else has it");
        assert_eq!((view.length, view.by.as_deref()), (36_000, Some("holder0")));
        world.carry();
        assert_eq!(world.nodes[1].bytes(room, "a/b.txt").as_deref(), Some(text.as_bytes()));
        let third = world.nodes[2].bytes(room, "a/b.txt").map(|bytes| bytes.len());
        assert_eq!(third, public.then_some(36_000));
        let is_told = |(_, bytes): &(usize, Vec<u8>)| {
            bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        };
        assert_eq!(world.told_to.iter().any(is_told), public, "sealed on its way");
        let kept = world.nodes[1].contents();
        let is_plain = |bytes: &Vec<u8>| bytes.starts_with(SECRET.as_bytes());
        assert_eq!(kept.values().any(is_plain), public, "and kept so");
        // What is replaced or deleted is gone at every node.
        world.ask(1, put(&callers[1], room, file("a/b.txt", b"next"))).expect("its key");
        for n in [0, 1] {
            assert_eq!(world.nodes[n].bytes(room, "a/b.txt").as_deref(), Some(&b"next"[..]));
            assert_eq!(world.nodes[n].contents().len(), 1);
        }
        world.ask(0, remove(&callers[0], room, "a/b.txt")).expect("it is there");
        for node in &world.nodes {
            assert_eq!(node.file(room, "a/b.txt"), None);
            assert!(node.contents().is_empty());
        }
        let again = world.ask(0, remove(&callers[0], room, "a/b.txt"));
        assert_eq!(again.err(), Some(Refused::NoFile));
        world.ask(0, put(&callers[0], room, file("empty", b""))).expect("its key");
        assert_eq!(world.nodes[1].file(room, "empty").map(|(view, _)| view.length), Some(0));
        assert!(world.nodes[1].contents().is_empty(), "there is nothing to send");
    }
}

#[test]
fn many_files_come_by_and_by_and_a_restart_goes_on() {
    let mut world = World::new(2);
    let (callers, room) = world.with_room(false);
    world.groups = vec![0, 1];
    let large = |n: u8| vec![n; FILE_BYTES_MAX];
    for n in 0..7 {
        let name = format!("f{n}");
        world.ask(0, put(&callers[0], room, file(&name, &large(n)))).expect("its key");
    }
    world.ask(0, remove(&callers[0], room, "f6")).expect("it is there");
    world.held.clear();
    world.groups = vec![0, 0];
    for _ in 0..200 {
        world.pass(STEP);
        if world.nodes[1].file(room, "f0").is_some() {
            break;
        }
    }
    assert_eq!(world.nodes[1].file(room, "f0").map(|(view, _)| view.length), Some(262_144));
    world.restart_reading(1);
    world.pass(CONTENT_ASKED_AGAIN * 3);
    for n in 0..6 {
        let bytes = world.nodes[1].bytes(room, &format!("f{n}"));
        assert_eq!(bytes.as_deref(), Some(&large(n)[..]), "f{n}");
    }
    assert_eq!(world.nodes[1].contents().len(), 6);
    // Nothing is asked for any more.
    world.told_to.clear();
    world.pass(CONTENT_ASKED_AGAIN * 3);
    let wants = |(_, bytes): &(usize, Vec<u8>)| {
        matches!(Message::decode(bytes), Ok(Message::WantContents(_)))
    };
    assert!(!world.told_to.iter().any(wants));
}

#[test]
fn a_content_is_taken_from_who_has_it_and_only_if_it_is_the_records() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], super::room_records::new_room("hall", true, false));
    let node = &mut world.nodes[0];
    let (one, two) = (identity(7).node_id(), identity(8).node_id());
    for peer in [one, two] {
        node.give(Input::PeerUp(peer));
    }
    let at = node.place(room);
    let (bytes, key) = (b"hello".to_vec(), signer(MINTED).expect("it is one of these"));
    let draft = files::draft(&at, &file("x", &bytes), None);
    let (space, collection, id) = (at.space, draft.collection, draft.id);
    let stamp = Stamp(node.now_stamp().0 + 1);
    let record = draft.sign_with(Some(Apart::of(&bytes)), &key, node.secret.mesh_id(), stamp);
    node.effects.clear();
    node.hear_record(record.expect("it is long enough"));
    let record_key = RecordKey { id, owner: Some(MINTED) };
    assert_eq!(node.file(room, "x").map(|(_, bytes)| bytes), Some(None), "it is not here yet");
    let asked = |node: &mut Node| {
        let effects = std::mem::take(&mut node.effects);
        let to = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { to, message: Message::WantContents(wanted) } => {
                assert_eq!(wanted, WantedContents { space, collection, keys: vec![record_key] });
                Some(to)
            }
            _ => None,
        });
        to.collect::<Vec<_>>()
    };
    let sends = |node: &mut Node, from: NodeId, contents: Vec<Content>, lacking| {
        let sent = SentContents { space, collection, contents, lacking };
        let message = Message::Contents(sent).verify(node.secret.mesh_id());
        let message = message.expect("the hash is that of the bytes");
        node.give(Input::Message { from, message });
    };
    let first = asked(node);
    assert_eq!(first.len(), 1, "one peer at a time");
    // It lacks it, and the other is asked at once; that one sends something else.
    sends(node, first[0], Vec::new(), vec![record_key]);
    let second = asked(node);
    assert!(second.len() == 1 && second != first, "{second:?}");
    sends(node, second[0], vec![Content::of(record_key, b"other")], Vec::new());
    assert!(asked(node).is_empty() && node.bytes(room, "x").is_none(), "all were asked");
    // Nobody's content is taken without having been asked for.
    sends(node, first[0], vec![Content::of(record_key, &bytes)], Vec::new());
    assert_eq!(node.bytes(room, "x"), None);
    node.now.mono += CONTENT_ASKED_AGAIN;
    node.give(Input::Timeout);
    let third = asked(node);
    assert_eq!(third, first, "the round begins again");
    sends(node, third[0], Vec::new(), vec![record_key]);
    assert_eq!(asked(node), second);
    sends(node, second[0], Vec::new(), vec![record_key]);
    node.now.mono += CONTENT_ASKED_AGAIN;
    node.give(Input::Timeout);
    assert!(asked(node).is_empty(), "what nobody has is asked for less and less");
    let new = identity(9).node_id();
    node.give(Input::PeerUp(new));
    node.give(Input::Timeout);
    let fourth = asked(node);
    assert_eq!(fourth.len(), 1, "a peer has come that may have it");
    sends(node, fourth[0], vec![Content::of(record_key, &bytes)], Vec::new());
    assert_eq!(node.bytes(room, "x"), Some(bytes));
    let forged = Content { bytes: b"forged".to_vec().into(), ..Content::of(record_key, b"hello") };
    let sent = SentContents { space, collection, contents: vec![forged], lacking: Vec::new() };
    assert!(Message::Contents(sent).verify(node.secret.mesh_id()).is_err(), "a strike");
}

#[test]
fn a_peer_is_given_no_contents_of_a_space_that_it_does_not_have() {
    let mut world = World::new(3);
    let (callers, room) = world.with_room(false);
    world.ask(0, put(&callers[0], room, file("x", b"hello"))).expect("its key");
    let record: Record = world.nodes[0].records().remove(0);
    let key = RecordKey { id: record.id, owner: Some(MINTED) };
    let ids: Vec<NodeId> = world.nodes.iter().map(|node| node.engine.known.cx.me).collect();
    for (from, given) in [(1, true), (2, false)] {
        let node = &mut world.nodes[0];
        node.effects.clear();
        let (space, collection) = (record.space, record.collection);
        let wanted = WantedContents { space, collection, keys: vec![key] };
        let message = Message::WantContents(wanted);
        node.give(Input::Message { from: ids[from], message });
        let is_given = |effect: &Effect| matches!(effect, Effect::SendContents { .. });
        assert_eq!(node.effects.iter().any(is_given), given);
    }
}

#[test]
fn files_are_refused_by_name_and_bound() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let (holder, own) = (&callers[0], world.callers[0].clone());
    let room = world.makes(0, holder, super::room_records::new_room("hall", true, false));
    let lobby = world.lobby();
    let node = &mut world.nodes[0];
    let bad = node.ask(put(holder, room, file("../x", b"x")));
    assert!(matches!(bad, Err(Refused::Field(_))), "{bad:?}");
    let large = node.ask(put(holder, room, file("x", &vec![0; FILE_BYTES_MAX + 1])));
    assert!(matches!(large, Err(Refused::Field(_))), "{large:?}");
    assert_eq!(node.ask(put(&own, room, file("x", b"x"))).err(), Some(Refused::NotYours));
    assert!(matches!(node.ask(put(holder, lobby, file("x", b"x"))), Err(Refused::Impossible(_))));
    let act = FileAct::Put(file("x", b"x"), Encryption::None);
    let other = FileChange { agent: Some("agent0".into()), ..changes(holder, room, act) };
    let refused = node.ask(Command::ChangeFile(Box::new(other)));
    let Err(Refused::Impossible(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("no agent of this key"), "{text}");
    // So many files, and one more if another one goes.
    for n in 0..FILES_PER_ROOM_MAX {
        node.ask(put(holder, room, file(&n.to_string(), b"x"))).expect("not full");
    }
    let full = |node: &mut Node, path: &str, bytes: &[u8]| match node.ask(put(
        holder,
        room,
        file(path, bytes),
    )) {
        Err(Refused::Full(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(full(node, "one more", b"x").contains("1000 files"));
    node.ask(put(holder, room, file("7", b"yy"))).expect("it replaces one");
    node.ask(remove(holder, room, "7")).expect("it is there");
    let most = usize::try_from(ROOM_FILES_BYTES_MAX).expect("it fits") / FILE_BYTES_MAX;
    let large = vec![0; FILE_BYTES_MAX];
    for n in 0..most - 1 {
        node.ask(put(holder, room, file(&(n + 10).to_string(), &large))).expect("not full");
    }
    assert!(full(node, "900", &large).contains("bytes"));
    node.ask(put(holder, room, file("10", &large))).expect("it replaces one of its size");
}

#[test]
fn an_encrypted_room_takes_no_plain_file() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let new = super::room_records::new_room("hall", true, false);
    let room = world.makes(0, &callers[0], NewRoom { encrypted: true, ..new });
    let node = &mut world.nodes[0];
    let plain = node.ask(put(&callers[0], room, file("x", b"x")));
    assert_eq!(plain.err(), Some(Refused::Plaintext));
    let act = FileAct::Put(file("x", b"clw1:AAAA"), Encryption::EndToEnd);
    let sealed = Command::ChangeFile(Box::new(changes(&callers[0], room, act)));
    node.ask(sealed).expect("a client has sealed it");
}

/// The keys that write files of a room.
fn let_write(caller: &Caller, room: RoomId, writers: WritersUpdate) -> Command {
    let update = DetailsUpdate { writers, ..DetailsUpdate::default() };
    super::room_records::set(caller, room, update)
}

fn named(keys: &[KeyPrint]) -> WritersUpdate {
    WritersUpdate { named: Some(Some(keys.iter().copied().collect())), anyone: None }
}

#[test]
fn keys_that_the_maker_names_write_files_and_the_latest_shows() {
    let mut world = World::new(3);
    let (callers, room) = world.with_room(true);
    let other = world.presents_another(2);
    let shown = |world: &World, n: usize| world.nodes[n].bytes(room, "x").unwrap_or_default();
    world.ask(0, put(&callers[0], room, file("x", b"maker"))).expect("its room");
    world.pass(STEP * 3);
    let refused = world.ask(2, put(&other, room, file("x", b"other"))).err();
    assert_eq!(refused, Some(Refused::NotYours));
    // Its node may lie: what it writes shows nowhere.
    let draft = files::draft(&world.nodes[2].place(room), &file("x", b"forged"), None);
    let lies = world.lies(draft, Some(Apart::of(b"forged")));
    for n in 0..3 {
        world.nodes[n].hear_record(lies.clone());
        assert_eq!(shown(&world, n), b"maker");
    }
    world.ask(0, let_write(&callers[0], room, named(&[other.key]))).expect("its room");
    world.pass(STEP * 3);
    world.ask(2, put(&other, room, file("x", b"other"))).expect("it may now");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| shown(&world, n) == b"other"));
    world.ask(1, put(&callers[1], room, file("x", b"again"))).expect("its room");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| shown(&world, n) == b"again"), "later than what the other has written");
    world.ask(2, remove(&other, room, "x")).expect("it may");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| world.nodes[n].file(room, "x").is_none()));
    // What it wrote goes with its leave to write.
    world.ask(2, put(&other, room, file("y", b"other"))).expect("it may");
    world.pass(STEP * 3);
    // A restart knows it from the disk.
    world.restart_reading(1);
    assert_eq!(world.nodes[1].bytes(room, "y").as_deref(), Some(&b"other"[..]));
    let nobody = WritersUpdate { named: Some(None), anyone: None };
    world.ask(0, let_write(&callers[0], room, nobody)).expect("its room");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| world.nodes[n].file(room, "y").is_none()));
    assert!((0..3).all(|n| shown(&world, n) == b"again"), "a deletion that counts no more");
}

#[test]
fn a_room_that_is_open_takes_files_of_all_keys_and_its_maker_alone_opens_it() {
    let mut world = World::new(3);
    let (callers, room) = world.with_room(true);
    let other = world.presents_another(2);
    let open = |yes| WritersUpdate { named: None, anyone: Some(yes) };
    let refused = world.ask(2, let_write(&other, room, open(true))).err();
    assert_eq!(refused, Some(Refused::NotYours));
    let draft = open(true).drafts(&world.nodes[2].place(room)).remove(0);
    let lie = world.lies(draft, None);
    for n in 0..3 {
        world.nodes[n].hear_record(lie.clone());
    }
    assert!(world.ask(2, put(&other, room, file("x", b"other"))).is_err(), "its word counts not");
    // Keys that the maker names are no others.
    world.ask(0, let_write(&callers[0], room, named(&[PRINTS[1]]))).expect("its room");
    world.pass(STEP * 3);
    let refused = world.ask(2, put(&other, room, file("x", b"other"))).err();
    assert_eq!(refused, Some(Refused::NotYours));
    let draft = files::draft(&world.nodes[2].place(room), &file("x", b"forged"), None);
    let forged = world.lies(draft, Some(Apart::of(b"forged")));
    for n in 0..3 {
        world.nodes[n].hear_record(forged.clone());
        assert!(world.nodes[n].file(room, "x").is_none(), "it is not named");
    }
    world.ask(0, let_write(&callers[0], room, open(true))).expect("its room");
    world.pass(STEP * 3);
    world.ask(2, put(&other, room, file("x", b"other"))).expect("all may");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| world.nodes[n].bytes(room, "x").as_deref() == Some(b"other")));
    world.ask(1, let_write(&callers[1], room, open(false))).expect("its room");
    world.pass(STEP * 3);
    assert!((0..3).all(|n| world.nodes[n].file(room, "x").is_none()));
    // Of a private room nobody else knows.
    let private = world.makes(0, &callers[0], super::room_records::new_room("den", false, false));
    let refused = world.ask(0, let_write(&callers[0], private, open(true))).err();
    assert!(matches!(refused, Some(Refused::Impossible(_))), "{refused:?}");
}

impl World {
    /// An agent of another key, which a node minted.
    fn presents_another(&mut self, n: usize) -> Caller {
        self.nodes[n].mints(OTHER);
        self.pass(STEP * 3);
        let call = self.begin(n, Command::Attach(registers("other", (OTHER, false))));
        self.pass(STEP * 20);
        let reply = self.reply(n, call);
        let Some(Ok(Outcome::Attached(it))) = reply else { panic!("{reply:?}") };
        Caller { agent: "other".into(), key: OTHER, registration: it.registration }
    }

    /// A record that a node signs for a key that it was shown, whatever its engine would say.
    fn lies(&self, draft: Draft, apart: Option<Apart>) -> Record {
        let (node, key) = (&self.nodes[2], signer(OTHER).expect("it is one of the tests'"));
        let stamp = Stamp::at(node.now.wall_us + 1_000_000);
        draft.sign_with(apart, &key, node.secret.mesh_id(), stamp).expect("it is long enough")
    }
}

const OTHER: KeyPrint = PRINTS[3];

/// As a node's store opens what it has of a key, in a room that all can read.
fn inherited(node: &Node, key: KeyPrint) -> Vec<Inherited> {
    let contents = node.contents();
    let own = node
        .records()
        .into_iter()
        .filter(|record| record.owner() == key && record.collection == files::COLLECTION.number);
    own.map(|record| {
        let Record { space, collection, id, stamp: above, .. } = record;
        let bytes = contents.get(&(space, RecordKey { id, owner: Some(key) })).cloned();
        let body = record.content().map(<[u8]>::to_vec);
        Inherited { space, collection, id, cover: Cover::Open, body, bytes, above }
    })
    .collect()
}

#[test]
fn a_successor_says_what_was_said_as_of_then_and_nothing_over_the_later_words_of_others() {
    let mut world = World::new(3);
    let (callers, room) = world.with_room(true);
    let other = world.presents_another(2);
    let open = WritersUpdate { named: None, anyone: Some(true) };
    world.ask(0, let_write(&callers[0], room, open.clone())).expect("its room");
    world.pass(STEP * 3);
    let mut says =
        |caller: &Caller, n: usize, command: fn(&Caller, RoomId, &str) -> Command, path| {
            world.pass(STEP);
            world.ask(n, command(caller, room, path)).expect("all may write");
            world.pass(STEP * 3);
        };
    let puts =
        |caller: &Caller, room, path: &str| put(caller, room, file(path, caller.agent.as_bytes()));
    let removes = |caller: &Caller, room, path: &str| remove(caller, room, path);
    says(&callers[0], 0, puts, "own");
    says(&callers[0], 0, puts, "newer of another");
    says(&other, 2, puts, "newer of another");
    says(&callers[0], 0, puts, "deleted by another");
    says(&other, 2, puts, "deleted by another");
    says(&other, 2, removes, "deleted by another");
    says(&other, 2, puts, "deleted by it");
    says(&callers[0], 0, puts, "deleted by it");
    says(&callers[0], 0, removes, "deleted by it");
    let shown = |world: &World, path: &str| {
        let bytes = world.nodes[1].bytes(room, path);
        bytes.map(|bytes| String::from_utf8(bytes).expect("a name"))
    };
    let before = |world: &World| {
        let paths = ["own", "newer of another", "deleted by another", "deleted by it"];
        paths.map(|path| shown(world, path))
    };
    let (own, others) = (Some("holder0".to_owned()), Some("other".to_owned()));
    assert_eq!(before(&world), [own.clone(), others.clone(), None, None]);

    let new = PRINTS[1];
    let records = inherited(&world.nodes[0], MINTED);
    assert_eq!(records.len(), 4, "a deletion is one of them");
    world.nodes[0].mints(new);
    world.nodes[0].replaces(MINTED, new).expect("this node has minted both");
    world.pass(STEP * 3);
    let signer = signer(new).expect("it is one of the tests'");
    let anew = SignAnew { replaced: MINTED, signer: signer.clone(), records: records.clone() };
    let forged = SignAnew { replaced: OTHER, ..anew.clone() };
    let refused = world.ask(0, Command::SignAnew(Box::new(forged))).err();
    assert_eq!(refused, Some(Refused::NotYours), "it has not come after that key");
    let signed = world.ask(0, Command::SignAnew(Box::new(anew.clone())));
    assert!(matches!(signed, Ok(Outcome::SignedAnew { signed: 4, left: 0 })), "{signed:?}");
    let again = world.ask(0, Command::SignAnew(Box::new(anew)));
    assert!(matches!(again, Ok(Outcome::SignedAnew { signed: 0, left: 0 })), "{again:?}");
    let room_is_open = WritersUpdate { named: None, anyone: Some(true) };
    let draft = room_is_open.drafts(&world.nodes[0].place(room)).remove(0);
    let stamp = world.nodes[0].now_stamp();
    let word = draft.sign_with(None, &signer, world.nodes[0].secret.mesh_id(), stamp);
    let word = word.expect("it is long enough");
    for n in 0..3 {
        world.nodes[n].hear_record(word.clone());
    }
    world.pass(CONTENT_ASKED_AGAIN * 2);
    assert_eq!(before(&world), [own, others, None, None], "at another node");
}
