//! Shared rooms: of agents of three keys, at three nodes, and one that has none of them.

use super::{
    files::{file, put, remove},
    pairs::signer,
    room_records::{set, title},
    world::{STEP, World},
    *,
};
use crate::{
    api::command::{Reader, RoomView, Share, ShareAct},
    directory::shared::SharedRoom,
    limits::SHARED_DESCRIPTION_BYTES_MAX,
    name::group::{Group, Shared},
    records::{
        details::DetailsUpdate,
        profile,
        shared::{self, Ends, Given, Taken},
        threads::{self, ThreadUpdate},
    },
    wire::record::{Draft, Record, Space, Stamp},
};

const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];
const EVES: KeyPrint = PRINTS[4];

/// Ann at the first node has made a room; Bob is at the second one, Eve at the third one.
struct Three {
    world: World,
    ann: Caller,
    bob: Caller,
    eve: Caller,
    room: RoomId,
}

pub(super) fn plans() -> NewRoom {
    NewRoom {
        name: "plans".to_owned(),
        description: Some("of three".to_owned()),
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    }
}

pub(super) fn making(caller: &Caller, room: NewRoom) -> Command {
    Command::CreateShared { caller: caller.clone(), signer: signer(caller.key), room }
}

pub(super) fn sharing(caller: &Caller, room: RoomId, agent: &str, act: ShareAct) -> Command {
    let (caller, signer, agent) = (caller.clone(), signer(caller.key), agent.into());
    Command::Share(Box::new(Share { caller, signer, room, agent, act }))
}

impl Three {
    fn new() -> Three {
        let mut world = World::new(3);
        world.link();
        let ann = world.come(0, "ann", ANNS);
        let bob = world.come(1, "bob", BOBS);
        let eve = world.come(2, "eve", EVES);
        world.pass(STEP * 5);
        let made = world.ask(0, making(&ann, plans())).expect("she may");
        let Outcome::Room(view) = made else { panic!("{made:?}") };
        Three { world, ann, bob, eve, room: view.room }
    }

    fn share(&mut self, agent: &str, act: ShareAct) -> Result<Outcome, Refused> {
        let ann = self.ann.clone();
        let done = self.world.ask(0, sharing(&ann, self.room, agent, act));
        self.world.pass(STEP * 20);
        done
    }

    fn seen(&mut self, n: usize, by: &Reader) -> Vec<RoomView> {
        let rooms = self.world.ask(n, Command::ListRooms { by: by.clone(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("{rooms:?}") };
        rooms.into_iter().filter(|view| view.shared.is_some()).collect()
    }

    fn joins(&mut self, n: usize, caller: &Caller) -> Result<Outcome, Refused> {
        let (caller, room) = (caller.clone(), self.room);
        let joined = self.world.ask(n, Command::Join { caller, room });
        self.world.pass(STEP * 5);
        joined
    }

    fn members(&mut self, n: usize) -> Vec<String> {
        let members = self.world.nodes[n].engine.known.members_of(self.room);
        members.iter().map(|agent| agent.agent.to_string()).collect()
    }
}

#[test]
fn agents_of_the_keys_that_a_room_is_shared_with_have_it_and_nobody_else() {
    let mut three = Three::new();
    let (ann, bob, eve, room) =
        (three.ann.clone(), three.bob.clone(), three.eve.clone(), three.room);
    assert_eq!(three.seen(1, &bob.reader()), []);
    three.joins(0, &ann).expect("it is hers");
    three.world.says(0, &ann, room, "before").expect("it is written");
    three.share("bob", ShareAct::Give).expect("it is hers");
    let seen = three.seen(1, &bob.reader());
    let [view] = &*seen else { panic!("{seen:?}") };
    assert_eq!(
        (view.room, &*view.name, view.description.as_deref()),
        (room, "plans", Some("of three"))
    );
    assert_eq!((view.public, view.sealed, view.owner), (false, true, None));
    assert_eq!(view.shared.as_deref(), Some(&[ANNS, BOBS].into()));
    three.joins(1, &bob).expect("it is shared with his key");
    three.world.says(1, &bob, room, "hello").expect("it is written");
    assert_eq!(three.world.heard(0), ["before", "hello"]);
    assert_eq!(three.world.heard(1), ["before", "hello"]);
    assert_eq!(three.members(0), ["ann", "bob"]);
    // The third node has neither key: it has nothing of the room.
    assert!(!three.world.has_room(2, room));
    assert_eq!(three.seen(2, &eve.reader()), []);
    let call = three.world.begin(2, Command::Join { caller: eve, room });
    three.world.pass(STEP * 40);
    assert_eq!(three.world.reply(2, call).expect("nobody has it").unwrap_err(), Refused::NoRoom);
}

#[test]
fn a_key_that_is_taken_out_is_out_for_ever_and_what_was_said_stays() {
    let mut three = Three::new();
    let (ann, bob, room) = (three.ann.clone(), three.bob.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    three.joins(0, &ann).expect("it is hers");
    three.joins(1, &bob).expect("it is shared");
    three.world.says(1, &bob, room, "hello").expect("it is written");
    three.share("bob", ShareAct::Take).expect("it is hers");
    assert_eq!(three.seen(1, &bob.reader()), []);
    assert_eq!(three.world.says(1, &bob, room, "still?").unwrap_err(), Refused::NotYours);
    assert_eq!(
        (three.members(0), three.members(1)),
        (vec!["ann".to_owned()], vec!["ann".to_owned()])
    );
    let refused = three.share("bob", ShareAct::Give).unwrap_err();
    assert!(matches!(refused, Refused::Impossible(_)), "{refused:?}");
    three.share("bob", ShareAct::Take).expect("once more does nothing");
    assert_eq!(three.world.heard(0), ["hello"]);
}

#[test]
fn a_key_that_is_taken_out_before_it_is_given_the_room_never_has_it() {
    let mut three = Three::new();
    let bob = three.bob.clone();
    // The gift, at another node, may be under way.
    three.share("bob", ShareAct::Take).expect("it is hers");
    let refused = three.share("bob", ShareAct::Give).unwrap_err();
    assert!(matches!(refused, Refused::Impossible(_)), "{refused:?}");
    assert_eq!(three.seen(1, &bob.reader()), []);
}

#[test]
fn only_the_maker_shares_and_only_such_rooms_are_shared() {
    let mut three = Three::new();
    let (ann, bob, room) = (three.ann.clone(), three.bob.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    let by_bob = three.world.ask(1, sharing(&bob, room, "eve", ShareAct::Give));
    assert_eq!(by_bob.unwrap_err(), Refused::NotYours);
    let lobby = three.world.lobby();
    let refused = three.world.ask(0, sharing(&ann, lobby, "eve", ShareAct::Give)).unwrap_err();
    assert!(
        matches!(&refused, Refused::Impossible(text) if text.contains("--shared")),
        "{refused:?}"
    );
    let refused = three.share("nobody", ShareAct::Give).unwrap_err();
    assert_eq!(refused, Refused::NoAgent("nobody".into()));
    let refused = three.share("ann", ShareAct::Take).unwrap_err();
    assert!(matches!(refused, Refused::Impossible(_)), "{refused:?}");
    let long = Some("d".repeat(SHARED_DESCRIPTION_BYTES_MAX + 1));
    let wrong = [
        NewRoom { public: true, ..plans() },
        NewRoom { ephemeral: true, ..plans() },
        NewRoom { parent: Some(lobby), ..plans() },
        NewRoom { description: long, ..plans() },
    ];
    for room in wrong {
        let room = NewRoom { name: "other".to_owned(), ..room };
        let refused = three.world.ask(0, making(&ann, room)).unwrap_err();
        assert!(matches!(refused, Refused::Impossible(_)), "{refused:?}");
    }
    let unsigned = Command::CreateShared { caller: ann.clone(), signer: None, room: plans() };
    assert!(three.world.ask(0, unsigned).is_err());
    let taken = three.world.ask(0, making(&ann, plans()));
    assert_eq!(taken.unwrap_err(), Refused::NameTaken("plans".to_owned()));
}

#[test]
fn a_room_that_was_shared_before_the_key_came_is_there_when_it_comes() {
    let mut three = Three::new();
    let (ann, room) = (three.ann.clone(), three.room);
    three.joins(0, &ann).expect("it is hers");
    three.world.says(0, &ann, room, "before").expect("it is written");
    three.share("bob", ShareAct::Give).expect("it is hers");
    let bea = three.world.come(2, "bea", BOBS);
    assert!(three.world.has_room(2, room));
    three.joins(2, &bea).expect("it is shared with her key");
    assert_eq!(three.world.heard(2), ["before"]);
}

#[test]
fn shared_rooms_outlive_a_restart() {
    let mut three = Three::new();
    let (ann, room) = (three.ann.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    three.joins(0, &ann).expect("it is hers");
    three.world.restart_reading(1);
    three.world.restart_reading(0);
    three.world.link();
    three.world.pass(STEP * 20);
    let (ann, bob) = (three.world.come(0, "ann", ANNS), three.world.come(1, "bob", BOBS));
    three.joins(0, &ann).expect("it is hers");
    three.joins(1, &bob).expect("it is shared with his key");
    assert_eq!((three.members(0).len(), three.members(1).len()), (2, 2));
    three.world.says(1, &bob, room, "after").expect("it is written");
    assert_eq!(three.world.heard(0), ["after"]);
    three.world.ask(1, set(&bob, room, title("his"))).expect("he writes it, too");
    three.world.pass(STEP * 30);
    assert_eq!(three.world.nodes[0].title(room).as_deref(), Some("his"));
}

#[test]
fn a_key_that_was_taken_out_before_it_came_back_or_came_at_all_is_out() {
    let mut three = Three::new();
    let (ann, room) = (three.ann.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    three.world.restart_reading(1);
    three.world.link();
    three.world.pass(STEP * 20);
    three.share("bob", ShareAct::Take).expect("it is hers");
    let bob = three.world.come(1, "bob", BOBS);
    assert_eq!(three.seen(1, &bob.reader()), []);
    let refused = three.world.says(1, &bob, room, "still?").unwrap_err();
    assert!(matches!(refused, Refused::NotYours | Refused::NoRoom), "{refused:?}");
    // A node that never had the room does not open it for the key.
    three.world.come(2, "bea", BOBS);
    three.world.pass(STEP * 20);
    assert!(!three.world.has_room(2, room));
    three.joins(0, &ann).expect("it is hers");
    assert_eq!(three.members(0), ["ann"]);
}

#[test]
fn what_others_write_about_a_room_changes_nothing_of_it() {
    let mut three = Three::new();
    three.share("bob", ShareAct::Give).expect("it is hers");
    let (room, eve) = (three.room, signer(EVES).expect("it is one"));
    let group = three.world.nodes[0].engine.known.directory.shared.room(room).cloned();
    let group = group.expect("it is open").group;
    // Eve takes Bob out, and writes something else under the name of Ann's record.
    let taken = Taken { group: group.id, key: BOBS }.draft();
    let Engine { records, known, .. } = &mut three.world.nodes[2].engine;
    records.write_open(known, (EVES, Some(&eve)), taken).expect("it is her word");
    three.world.pass(STEP * 20);
    let bob = three.bob.clone();
    assert_eq!(three.seen(1, &bob.reader()).len(), 1);
    let ann = signer(ANNS).expect("it is one");
    let given = Taken { group: group.id, key: BOBS }.draft().id;
    three.share("bob", ShareAct::Take).expect("it is hers");
    let known = &three.world.nodes[0].engine.known;
    let gone =
        Draft { space: Space::Mesh, collection: profile::COLLECTION.number, id: given, body: None };
    let (mesh, at) = (known.cx.mesh, Stamp::after(known.cx.now.wall_us, None));
    let gone = gone.sign(&ann, mesh, at).expect("it is long enough");
    three.world.nodes[1].hear_record(gone);
    three.world.pass(STEP * 20);
    assert_eq!(three.seen(1, &bob.reader()), [], "he is out still");
}

#[test]
fn what_is_shared_during_a_split_is_there_after_it() {
    let mut three = Three::new();
    three.world.groups = vec![0, 1, 1];
    three.share("bob", ShareAct::Give).expect("he is known");
    three.world.pass(STEP * 10);
    let bob = three.bob.clone();
    assert_eq!(three.seen(1, &bob.reader()), []);
    three.world.groups = vec![0; 3];
    three.world.pass(STEP * 80);
    assert_eq!(three.seen(1, &bob.reader()).len(), 1);
    // A key that was taken out on one side is out on both.
    three.world.groups = vec![0, 1, 1];
    three.share("bob", ShareAct::Take).expect("he is known");
    three.world.groups = vec![0; 3];
    three.world.pass(STEP * 80);
    assert_eq!(three.seen(1, &bob.reader()), []);
}

#[test]
fn nobody_gives_another_keys_room_away() {
    let mut three = Three::new();
    let (eve, room) = (three.eve.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    // Bob knows the secret, and gives it to Eve: as a room of his, and as the one that it is.
    let known = &mut three.world.nodes[1].engine.known;
    let shared = known.directory.shared.room(room).cloned();
    let SharedRoom { group, facts } = shared.expect("it was given to his key");
    let his = facts.group(known.cx.mesh, BOBS);
    assert_ne!(his.id, group.id);
    let (bobs, to) = (signer(BOBS).expect("it is one"), signer(EVES).expect("it is one").halves());
    for group in [his, Shared { maker: BOBS, ..group }] {
        let mesh = three.world.nodes[1].engine.known.cx.mesh;
        let own = bobs.mailbox().expect("it is long enough");
        let ends = Ends { mesh, own, other: &to.mailbox };
        let given = Given::seal(&ends, group, EVES, &facts).expect("they have a secret").draft();
        let Engine { records, known, .. } = &mut three.world.nodes[1].engine;
        records.write_open(known, (BOBS, Some(&bobs)), given).expect("it is his word");
    }
    three.world.pass(STEP * 20);
    let seen = three.seen(2, &eve.reader());
    assert!(seen.iter().all(|view| view.room != room), "{seen:?}");
    assert_eq!(seen.len(), 1, "the room of his");
    assert!(!three.world.has_room(2, room));
    let sealed = |n: usize| three.world.nodes[n].engine.known.sealed_for(room);
    assert_eq!((sealed(0), sealed(2)), (Some(Group::Shared(group)), None));
}

/// The second node hears of the room from the successor alone, and finds that another key made it.
#[test]
fn a_successor_gives_away_the_rooms_of_the_key_that_it_has_replaced_and_takes_keys_out_of_them() {
    let (old, new, next) = (PRINTS[6], PRINTS[7], PRINTS[8]);
    let mut world = World::new(2);
    world.link();
    [old, new, next].into_iter().for_each(|key| world.nodes[0].mints(key));
    world.carry();
    let bob = world.come(1, "bob", BOBS);
    let ann = world.enters(0, "ann", old);
    world.pass(STEP * 5);
    let made = world.ask(0, making(&ann, plans())).expect("she may");
    let Outcome::Room(view) = made else { panic!("{made:?}") };
    let mut three = Three { world, ann, bob: bob.clone(), eve: bob.clone(), room: view.room };
    for (old, new) in [(old, new), (new, next)] {
        three.world.nodes[0].replaces(old, new).expect("it minted both");
        three.world.carry();
    }
    three.ann = three.world.enters(0, "ann", next);
    three.share("bob", ShareAct::Give).expect("what the key had made is the successor's");
    let seen = three.seen(1, &bob.reader());
    assert_eq!(seen.iter().map(|view| view.room).collect::<Vec<_>>(), [three.room]);
    three.joins(1, &bob).expect("it is shared with his key");
    three.world.says(1, &bob, three.room, "hello").expect("it is written");
    let ann = three.ann.clone();
    three.joins(0, &ann).expect("it is hers");
    assert_eq!(three.members(0), ["bob", "ann"]);
    three.share("bob", ShareAct::Take).expect("so are its keys");
    assert_eq!(three.seen(1, &bob.reader()), []);
}

/// Four keys of Ann's node say that others are out of rooms that there are not, as often as one may, and before Ann did.
#[test]
fn a_key_stays_out_however_much_other_keys_of_the_makers_node_say() {
    let mut three = Three::new();
    let (ann, bob) = (three.ann.clone(), three.bob.clone());
    let flooding = &PRINTS[5..9];
    let flooders: Vec<Caller> = flooding
        .iter()
        .enumerate()
        .map(|(n, key)| three.world.come(0, &format!("flooder {n}"), *key))
        .collect();
    three.share("bob", ShareAct::Give).expect("it is hers");
    three.share("bob", ShareAct::Take).expect("it is hers");
    let mesh = three.world.nodes[0].secret.mesh_id();
    let many = shared::TAKEN.owner_kept();
    for key in flooding {
        let secret = signer(*key).expect("it is one");
        let record = |n: usize| {
            let mut group = RoomId([7; 16]);
            group.0[..8].copy_from_slice(&(n as u64).to_be_bytes());
            let draft = Taken { group, key: BOBS }.draft();
            draft.sign(&secret, mesh, Stamp::at(1 + n as u64)).expect("it is long enough")
        };
        let records: Vec<Record> = (0..many).map(record).collect();
        three.world.nodes[1].hear_records(&records);
        three.world.nodes[0].hear_records(&records);
    }
    three.world.pass(STEP * 20);
    let count = |three: &Three, n: usize| {
        let records = three.world.nodes[n].records();
        let taken = records.iter().filter(|record| record.collection == shared::TAKEN.number);
        let own = taken.clone().filter(|record| record.owner() == ANNS).count();
        (taken.count(), own)
    };
    let full = shared::TAKEN.node_kept();
    assert!(many * flooding.len() >= full, "they would fill all places");
    assert_eq!([0, 1].map(|n| count(&three, n)), [(full, 1); 2]);
    assert_eq!(three.seen(1, &bob.reader()), [], "he is out still");
    // Ann goes on giving and taking; a flooder does not.
    three.share("eve", ShareAct::Give).expect("it is hers");
    three.share("eve", ShareAct::Take).expect("no flood is in her way");
    assert_eq!(three.seen(2, &three.eve.clone().reader()), []);
    assert_eq!([0, 1].map(|n| count(&three, n)), [(full, 2); 2]);
    let digest = |three: &mut Three, n: usize| three.world.nodes[n].engine.records.digest();
    assert_eq!(digest(&mut three, 0), digest(&mut three, 1));
    let flooder = &flooders[0];
    let made = three.world.ask(0, making(flooder, plans())).expect("it has given none");
    let Outcome::Room(view) = made else { panic!("{made:?}") };
    three.world.ask(0, sharing(flooder, view.room, "bob", ShareAct::Give)).expect("nor has it now");
    let refused = three.world.ask(0, sharing(flooder, view.room, "bob", ShareAct::Take));
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    three.joins(0, &ann).expect("it is hers");
    assert_eq!(three.members(0), ["ann"]);
}

#[test]
fn all_keys_of_a_shared_room_write_its_details_and_files_and_the_latest_shows() {
    let mut three = Three::new();
    let (ann, bob, eve, room) =
        (three.ann.clone(), three.bob.clone(), three.eve.clone(), three.room);
    three.share("bob", ShareAct::Give).expect("it is hers");
    let ask = |three: &mut Three, n: usize, command: Command| {
        let call = three.world.begin(n, command);
        three.world.pass(STEP * 40);
        three.world.reply(n, call).expect("it is answered").map(drop)
    };
    let shown = |three: &Three| {
        let nodes = &three.world.nodes[..2];
        let [one, two] =
            [&nodes[0], &nodes[1]].map(|node| (node.title(room), node.bytes(room, "a")));
        assert_eq!(one, two, "both show the same");
        (one.0, one.1.map(|bytes| String::from_utf8(bytes).expect("it is text")))
    };
    let of = |title: &str, text: Option<&str>| (Some(title.to_owned()), text.map(String::from));
    ask(&mut three, 0, set(&ann, room, title("hers"))).expect("she may");
    ask(&mut three, 0, put(&ann, room, file("a", b"hers"))).expect("she may");
    assert_eq!(shown(&three), of("hers", Some("hers")));
    ask(&mut three, 1, set(&bob, room, title("his"))).expect("so may he");
    ask(&mut three, 1, put(&bob, room, file("a", b"his"))).expect("so may he");
    assert_eq!(shown(&three), of("his", Some("his")));
    ask(&mut three, 0, remove(&ann, room, "a")).expect("she deletes what he wrote");
    assert_eq!(shown(&three), of("his", None));
    // He makes room of his own state, which lies beneath hers.
    ask(&mut three, 1, remove(&bob, room, "a")).expect("his is there");
    assert_eq!(ask(&mut three, 1, remove(&bob, room, "a")), Err(Refused::NoFile));
    ask(&mut three, 1, put(&bob, room, file("a", b"again"))).expect("so may he");
    assert_eq!(shown(&three), of("his", Some("again")));
    // A key without the room writes nothing, and its node has nothing.
    assert!(ask(&mut three, 2, put(&eve, room, file("a", b"not hers"))).is_err());
    assert!(!three.world.has_room(2, room));
    // What a key wrote does not show once it is out; what others wrote before shows again.
    three.share("bob", ShareAct::Take).expect("it is hers");
    let node = &three.world.nodes[0];
    assert_eq!((node.title(room).as_deref(), node.bytes(room, "a")), (Some("hers"), None));
    assert_eq!(ask(&mut three, 1, put(&bob, room, file("a", b"x"))), Err(Refused::NotYours));
}

#[test]
fn both_agents_of_a_direct_room_write_its_files() {
    let mut three = Three::new();
    let (ann, bob) = (three.ann.clone(), three.bob.clone());
    let room = three.world.open(0, &ann, "bob").expect("he is known").room;
    three.world.pass(STEP * 20);
    for (n, by, text) in [(0, &ann, "hers"), (1, &bob, "his")] {
        three.world.ask(n, put(by, room, file("a", text.as_bytes()))).expect("both may");
        three.world.pass(STEP * 30);
        let bytes = |n: usize| three.world.nodes[n].bytes(room, "a");
        assert_eq!((bytes(0), bytes(1)), (Some(text.into()), Some(text.into())));
    }
}

#[test]
fn facts_of_threads_are_with_both_sides_of_a_direct_room_and_each_key_has_its_own() {
    let mut three = Three::new();
    let (ann, bob) = (three.ann.clone(), three.bob.clone());
    let room = three.world.open(0, &ann, "bob").expect("he is known").room;
    three.world.pass(STEP * 20);
    let update = |label: &str| {
        let facts = vec![("label".to_owned(), Some(label.to_owned()))];
        let threads = vec![ThreadUpdate { thread: "agent:bob:one".to_owned(), facts }];
        DetailsUpdate { threads, ..DetailsUpdate::default() }
    };
    three.world.ask(0, set(&ann, room, update("hers"))).expect("so may she");
    three.world.ask(1, set(&bob, room, update("his"))).expect("and he");
    three.world.pass(STEP * 30);
    let labels = |n: usize, key: KeyPrint| -> Vec<String> {
        let node = &three.world.nodes[n];
        let known = &node.engine.known;
        let place = known.rooms.get(&room).and_then(|it| it.replica.record.place_of_records(room));
        let Some(at) = place else { return Vec::new() };
        let facts = threads::read(&at, &node.records(), key, known.cx.mesh);
        facts.into_iter().map(|fact| fact.value).collect()
    };
    for n in [0, 1] {
        assert_eq!(
            (labels(n, ann.key), labels(n, bob.key)),
            (vec!["hers".into()], vec!["his".into()])
        );
    }
    assert!(labels(2, ann.key).is_empty(), "no other node has them");
    let long = DetailsUpdate {
        threads: vec![ThreadUpdate { thread: "x".repeat(257), facts: Vec::new() }],
        ..DetailsUpdate::default()
    };
    assert!(matches!(three.world.ask(0, set(&ann, room, long)), Err(Refused::Field(_))));
}
