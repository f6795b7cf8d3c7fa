//! Imported rooms: they are the same everywhere, and nobody but the founder can use
//! the forms that it is written in.

use super::{
    disk::stored,
    world::{Liar, STEP, World},
    *,
};
use crate::{
    api::{
        agenda::{NewKey, TaskUpdate, TaskView, VoteView},
        batch::Fate,
        import::{Import, ImportedMessage, ImportedMessages, ImportedRoom, ImportedTask},
    },
    fold::act::Fold as _,
    name::{
        id::{AgentId, EntryRef, LocalRef, MessageId, RoomKey},
        key::KeySecret,
        number::Era,
    },
    wire::{
        acts::{
            KeyMinted, KeyTerms, TaskAct, TaskAssigned, TaskStatus, Tier, VoteAct, VoteImported,
        },
        entry::{Decision, Imported, Items, Ordered, RoomCreated},
    },
};

mod ids;

/// As ClawChat makes them: version 4.
const BROUGHT: RoomId = RoomId([1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);

/// As ClawChat draws them.
fn foreign(n: u64) -> MessageId {
    let mut id = [0x44; 16];
    id[8] = 0x88;
    id[9..].copy_from_slice(&n.to_be_bytes()[1..]);
    MessageId(id)
}

fn brought() -> ImportedRoom {
    ImportedRoom {
        room: BROUGHT,
        name: "plan".to_owned(),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KEY,
        created_by: "ann".into(),
        created_ms: 1_600_000_000_000,
    }
}

fn message(number: u64) -> ImportedMessage {
    ImportedMessage {
        id: Some(foreign(number)),
        number,
        wall_ms: 1_600_000_000_000 + number,
        speech: Speech::Chat,
        agent: "ann".into(),
        name: "Ann".to_owned(),
        content: format!("number {number}"),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
    }
}

fn said_now(room: RoomId) -> Say {
    Say {
        room,
        speech: Speech::Chat,
        content: "new".to_owned(),
        encryption: Encryption::None,
        durable: None,
        conversing: None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    }
}

fn messages(room: RoomId, numbers: impl IntoIterator<Item = u64>, next: u64) -> Import {
    let messages = numbers.into_iter().map(message).collect();
    Import::Messages(ImportedMessages { room, messages, next })
}

fn ended() -> VoteImported {
    VoteImported {
        title: "lunch?".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        created_by: "ann".into(),
        closes_ms: Some(1_600_000_009_000),
        eligible: 5,
        tally: vec![3, 1],
        id: Some(foreign(77)),
    }
}

impl Node {
    fn bring(&mut self, it: Import) -> Result<(), Refused> {
        let written = self.engine.import(self.now, it);
        self.turn();
        written
    }

    /// Numbers under which it delivered something in a room.
    fn delivered(&self, room: RoomId) -> Vec<u64> {
        let of_room = self.rows.iter().filter_map(|it| match it {
            Change::Number { room: of, number, fate: Fate::Delivered, .. } if *of == room => {
                Some(number.0)
            }
            _ => None,
        });
        of_room.collect()
    }

    fn tip(&self, room: RoomId) -> u64 {
        self.engine.known.rooms[&room].tip().0
    }

    fn void(&self) -> u64 {
        crate::engine::listing::status(
            &self.engine.known,
            crate::api::status::RecordStatus::default(),
        )
        .faults
        .void
    }
}

impl World {
    fn votes_of(&mut self, n: usize, room: RoomId) -> Vec<VoteView> {
        let votes = self.ask(n, Command::ListVotes { by: KEY.into(), room, limit: 20 });
        let Ok(Outcome::Votes(votes)) = votes else { panic!("{votes:?}") };
        votes
    }

    fn tasks_of(&mut self, n: usize, room: RoomId) -> Vec<TaskView> {
        let tasks = self.ask(n, Command::ListTasks { by: KEY.into(), room, status: None });
        let Ok(Outcome::Tasks(tasks)) = tasks else { panic!("{tasks:?}") };
        tasks
    }

    fn number(&mut self, n: usize, room: RoomId) -> u64 {
        let caller = self.callers[n].clone();
        self.ask(n, Command::Join { caller: caller.clone(), room }).expect("public");
        let say = said_now(room);
        let call = self.begin(n, Command::Say { caller, say });
        self.carry();
        let Some(Ok(Outcome::Said(said))) = self.reply(n, call) else { panic!("not numbered") };
        said.number.0
    }
}

#[test]
fn numbers_with_gaps_are_the_same_at_every_node_and_go_on_after_the_last() {
    let mut world = World::new(3);
    world.nodes[0].bring(Import::Room(brought())).expect("new");
    // More than one `Ordered` holds, holes of one and of billions, and a number beyond the last message.
    let numbers: Vec<u64> = (500..1_200).filter(|it| it % 7 != 0).chain([9_000_000_000]).collect();
    let all = messages(BROUGHT, numbers.clone(), 9_500_000_000);
    world.nodes[0].bring(all).expect("they rise");
    world.carry();
    for n in 0..3 {
        assert_eq!(world.nodes[n].delivered(BROUGHT), numbers, "node {n}");
        assert_eq!(world.nodes[n].tip(BROUGHT), 9_499_999_999, "node {n}");
        assert_eq!(world.nodes[n].void(), 0, "node {n}");
    }
    assert_eq!(world.number(1, BROUGHT), 9_500_000_000);
    for n in 0..3 {
        world.restart(n);
    }
    assert_eq!(world.number(2, BROUGHT), 9_500_000_001);
    for n in 0..3 {
        let view = world.nodes[n].engine.known.view(BROUGHT).expect("it is public");
        assert_eq!((&*view.name, view.created_ms), ("plan", 1_600_000_000_000));
        assert_eq!(world.nodes[n].tip(BROUGHT), 9_500_000_001);
    }
}

#[test]
fn a_lobby_that_was_brought_goes_on_where_it_was() {
    let mut world = World::new(2);
    let lobby = world.lobby();
    world.nodes[0].bring(messages(lobby, [3, 4, 9], 12)).expect("the founder's");
    world.carry();
    assert_eq!(world.nodes[1].delivered(lobby), [3, 4, 9]);
    assert_eq!(world.number(1, lobby), 12);
    let again = world.nodes[0].bring(messages(lobby, [11, 13], 14));
    assert!(matches!(again, Err(Refused::Impossible(_))), "{again:?}");
    assert_eq!(world.number(0, lobby), 13, "nothing was written of what was refused");
}

#[test]
fn a_stable_id_that_was_brought_is_its_keys_at_every_node() {
    let mut world = World::new(2);
    let other = PRINTS[8];
    let mesh = world.nodes[0].secret.mesh_id();
    let ada = |key| Import::Agent("ada".into(), claimed(mesh, "ada", key).by);
    world.nodes[0].bring(ada(other)).expect("nobody's");
    let again = world.nodes[0].bring(ada(KEY));
    let drawn = crate::name::agent::drawn([1; 6], KEY);
    for key in [KEY, other] {
        let claim = Import::Agent(drawn.clone(), claimed(mesh, &drawn, key).by);
        let refused = world.nodes[0].bring(claim);
        assert!(matches!(refused, Err(Refused::Impossible(_))), "by its form: {refused:?}");
    }
    let unsigned = Import::Agent("eve".into(), claimed(mesh, "ada", KEY).by);
    assert!(matches!(world.nodes[0].bring(unsigned), Err(Refused::Impossible(_))));
    assert!(matches!(again, Err(Refused::Impossible(_))), "{again:?}");
    world.carry();
    for _ in 0..2 {
        for n in 0..2 {
            let taken = world.nodes[n].attach("ada", true, KEY).expect_err("another's");
            assert_eq!(taken, Refused::AgentTaken("ada".into()), "node {n}");
        }
        (0..2).for_each(|n| world.restart(n));
    }
    world.nodes[1].attach("ada", true, other).expect("its own");
    let mut elsewhere = Node::new(2);
    let refused = elsewhere.bring(ada(other));
    assert!(matches!(refused, Err(Refused::Impossible(_))), "{refused:?}");
}

#[test]
fn the_lobby_is_described_as_it_was_and_by_the_founder_alone() {
    let mut world = World::new(2);
    let lobby = world.lobby();
    let bring = |description: &str| Import::Lobby(Some(description.to_owned()), 1_600_000_000_000);
    let long = "x".repeat(crate::limits::DESCRIPTION_BYTES_MAX + 1);
    world.nodes[0].bring(bring(&long)).expect_err("too long");
    world.nodes[0].bring(bring("for all")).expect("it had none");
    world.nodes[0].bring(bring("for nobody")).expect_err("it has one");
    world.carry();
    for _ in 0..2 {
        for n in 0..2 {
            let view = world.nodes[n].engine.known.view(lobby).expect("it is there");
            let description = view.description.as_deref();
            assert_eq!((description, view.created_ms), (Some("for all"), 1_600_000_000_000));
            assert_eq!((view.owner, view.created_by), (None, None), "node {n}");
        }
        (0..2).for_each(|n| world.restart(n));
    }
    let mut node = Node::new(2);
    let directory = RoomId::directory(node.secret.mesh_id());
    let described = |description: &str| {
        let Body::RoomCreated(it) = created(lobby) else { panic!("it is") };
        Body::RoomCreated(RoomCreated { description: Some(description.to_owned()), ..it })
    };
    let (_, run) = Liar::new(9).write_in(&node, directory, &described("a stranger's"));
    node.hear(&run);
    let mut founder = Liar::new(1);
    for description in [&*long, "first", "second"] {
        let (_, run) = founder.write_in(&node, directory, &described(description));
        node.hear(&run);
    }
    let view = node.engine.known.view(lobby).expect("it is there");
    assert_eq!(view.description.as_deref(), Some("first"));
    // It forked: what it said from there on does not count. Others may fork what they like.
    let mesh = node.secret.mesh_id();
    for (log, seq, stays) in
        [(Liar::new(9).log(), 1, true), (founder.log(), 3, true), (founder.log(), 2, false)]
    {
        node.engine.known.directory.forget(mesh, directory, EntryRef { log, seq });
        assert_eq!(node.engine.known.directory.lobby().is_some(), stays, "{seq}");
    }
}

#[test]
fn votes_that_had_ended_and_tasks_are_shown_as_they_were() {
    let mut world = World::new(2);
    world.nodes[0].bring(Import::Room(brought())).expect("new");
    for room in [BROUGHT, world.lobby()] {
        let id = Some(foreign(if room == BROUGHT { 77 } else { 79 }));
        let vote = VoteImported { id, ..ended() };
        world.nodes[0].bring(Import::Vote(room, 77, vote)).expect("it ended");
        let task = TaskAssigned {
            assignee: Some("bob".into()),
            id: (room == BROUGHT).then(|| foreign(78)),
            ..TaskAssigned::of("paint it", "ann".into())
        };
        let task = ImportedTask {
            room,
            task,
            created_ms: 70,
            status: TaskStatus::Completed,
            note: Some("blue".to_owned()),
            updated_ms: Some(90),
        };
        world.nodes[0].bring(Import::Task(task)).expect("as any");
    }
    world.carry();
    for _ in 0..2 {
        world.pass(STEP * 5);
        for (n, room) in [(0, BROUGHT), (1, BROUGHT), (1, world.lobby())] {
            let votes = world.votes_of(n, room);
            assert_eq!(votes.len(), 1);
            let vote = &votes[0];
            assert!(vote.closed);
            assert_eq!((vote.cast, vote.eligible, vote.created_ms), (4, 5, 77));
            assert_eq!(
                (vote.tally.clone(), vote.closes_ms),
                (ended().tally.into(), ended().closes_ms)
            );
            let caller = world.callers[n].clone();
            let cast = world.ask(n, Command::CastVote { caller, vote: vote.vote, option: 0 });
            assert_eq!(cast.expect_err("it is over"), Refused::VoteClosed);
            let tasks = world.tasks_of(n, room);
            assert_eq!(tasks.len(), 1);
            let it = &tasks[0];
            assert_eq!((it.status, it.assignee.as_deref()), (TaskStatus::Completed, Some("bob")));
            assert_eq!(
                (it.created_ms, it.updated_ms, it.note.as_deref()),
                (70, Some(90), Some("blue"))
            );
        }
        (0..2).for_each(|n| world.restart(n));
    }
    let told = world.told.iter().flatten();
    let told = told.filter(|it| matches!(it, RoomEvent::VoteOpened(_) | RoomEvent::VoteEnded(_)));
    assert_eq!(told.count(), 0, "it is no news to anybody");
}

#[test]
fn a_fork_makes_nobody_close_a_vote_of_old_again() {
    let mut node = Node::new(1);
    node.bring(Import::Room(brought())).expect("new");
    node.bring(Import::Vote(BROUGHT, 77, ended())).expect("it ended");
    let lobby = node.lobby();
    for content in ["one", "another"] {
        let run = said_in(&node, (lobby, 0), (5, 1, content)).run().clone();
        node.hear(&run);
    }
    node.wait(STEP * 5);
    assert_eq!(
        crate::engine::listing::status(
            &node.engine.known,
            crate::api::status::RecordStatus::default()
        )
        .forked,
        [identity(5).node_id()]
    );
    let is_close = |row: &Change| match row {
        Change::Entry { entry, .. } => {
            let body = Body::decode(entry.facts.kind, &entry.body);
            matches!(body, Body::Vote(VoteAct::Closed(_)))
        }
        _ => false,
    };
    assert!(!node.rows.iter().any(is_close));
}

#[test]
fn decisions_of_leaders_of_old_are_in_history() {
    let mut world = World::new(2);
    world.nodes[0].bring(Import::Room(brought())).expect("new");
    let decided = ImportedMessage { speech: Speech::Decision, ..message(3) };
    let list = ImportedMessages {
        room: BROUGHT,
        messages: vec![message(1), decided, message(4)],
        next: 5,
    };
    world.nodes[0].bring(Import::Messages(list)).expect("they rise");
    world.carry();
    for n in 0..2 {
        assert_eq!(world.nodes[n].delivered(BROUGHT), [1, 3, 4], "node {n}");
        assert_eq!(world.nodes[n].void(), 0);
    }
}

#[test]
fn rooms_of_a_key_are_sealed_and_those_of_the_node_stay_on_it() {
    let mut node = Node::new(1);
    let text = "a key of the old server, long enough";
    let minted =
        KeyMinted::sign(&KeySecret::of(text), &node.signed_log(), KeyTerms::of(Tier::High));
    let key = NewKey { minted: Box::new(minted.expect("it is")), local: false };
    node.bring(Import::Key(key, Some(RoomKey::of(text)))).expect("new");
    let mine = ImportedRoom { public: false, owner: KeyPrint::of(text), ..brought() };
    let other = RoomId([2, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);
    let own = ImportedRoom { room: other, name: "own".to_owned(), owner: KEY, ..mine.clone() };
    node.bring(Import::Room(mine)).expect("new");
    node.bring(Import::Room(own)).expect("new");
    for room in [BROUGHT, other] {
        node.bring(messages(room, [8], 10)).expect("they rise");
    }
    let kept = stored(&node.rows);
    let record = |id| kept.rooms.iter().find(|it| it.room == id).expect("kept").record.clone();
    assert!(record(BROUGHT).seal.is_some() && !record(BROUGHT).local);
    assert!(record(other).seal.is_none() && record(other).local);
    let again = Node::open(1, stored(&node.rows), node.now);
    for room in [BROUGHT, other] {
        assert_eq!(node.delivered(room), [8]);
        assert!(again.engine.known.view(room).is_some(), "after a start, too");
    }
}

#[test]
fn a_room_that_was_brought_is_in_the_archive_of_who_leaves_the_mesh() {
    let mut node = Node::new(1);
    node.bring(Import::Room(brought())).expect("new");
    node.bring(messages(BROUGHT, [8], 10)).expect("they rise");
    let me = identity(1).node_id();
    let views = crate::archive(node.secret.mesh_id(), me, "here", &stored(&node.rows));
    let view = views.iter().find(|it| it.room == BROUGHT).expect("it is listed");
    assert_eq!(
        (&*view.name, view.tip, view.created_ms),
        ("plan (here)", Number(9), 1_600_000_000_000)
    );
}

#[test]
fn rooms_of_all_nodes_are_in_the_archive_of_who_leaves_the_mesh() {
    let mut world = World::new(2);
    let high = RoomId([0xff, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);
    let it = ImportedRoom { room: high, ..brought() };
    world.nodes[0].bring(Import::Room(it)).expect("new");
    let mut names = vec!["lobby".to_owned(), "plan".to_owned()];
    let me = world.nodes[1].engine.known.cx.me;
    // Until the first of them, by id, is this node's: others are looked for among all.
    for nth in 0..20 {
        for n in [0, 1] {
            let name = format!("room {nth} of {n}");
            let (caller, room) = (world.callers[n].clone(), rooms::new(&name, false));
            world.begin(n, Command::CreateRoom { caller, room });
            world.carry();
            names.push(name);
        }
        let first = world.nodes[1].engine.known.rooms.first_key_value().expect("many").1;
        if first.replica.record.home.author == me && !first.replica.is_directory {
            break;
        }
    }
    let summary = stored(&world.nodes[1].rows);
    let views = crate::archive(world.nodes[1].secret.mesh_id(), me, "here", &summary);
    let mut listed: Vec<String> = views.iter().map(|it| it.name.to_string()).collect();
    listed.sort();
    names.sort();
    let called: Vec<String> = names.iter().map(|it| format!("{it} (here)")).collect();
    assert_eq!(listed, called);
}

#[test]
fn a_vote_of_old_in_which_everybody_had_voted_is_there() {
    let mut world = World::new(1);
    let room = world.lobby();
    let all = VoteImported { eligible: 4, tally: vec![3, 1], ..ended() };
    world.nodes[0].bring(Import::Vote(room, 77, all)).expect("it ended");
    assert_eq!(world.votes_of(0, room).len(), 1);
}

// Who must not.

fn created(room: RoomId) -> Body {
    Body::RoomCreated(RoomCreated {
        imported: Some(Imported { created_ms: 1 }),
        ..public_room(room, "stolen")
    })
}

#[test]
fn nobody_but_the_founder_brings_a_room() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let (_, run) = Liar::new(9).write_in(&node, directory, &created(BROUGHT));
    node.hear(&run);
    assert!(node.engine.known.directory.room(BROUGHT).is_none());
    // Nor does it stand in the way of the founder's.
    node.bring(Import::Room(brought())).expect("new");
    assert_eq!(&*node.engine.known.view(BROUGHT).expect("named").name, "plan");
    let mut other = Node::new(2);
    let refused = other.bring(Import::Room(brought()));
    assert!(matches!(refused, Err(Refused::Impossible(_))), "{refused:?}");
}

#[test]
fn the_founder_brings_none_under_an_id_that_could_be_of_this_mesh() {
    let mut other = Node::new(2);
    let mesh = other.secret.mesh_id();
    let directory = RoomId::directory(mesh);
    let log = LogId { author: identity(3).node_id(), incarnation: 0 };
    let mut founder = Liar::new(1);
    let taken = [
        crate::directory::room_id(mesh, directory, log, 1),
        RoomId::lobby(mesh),
        directory,
        RoomId::private_directory(mesh, identity(2).node_id()),
    ];
    for (n, id) in (1..).zip(taken) {
        let (_, run) = founder.write_in(&other, directory, &created(id));
        other.hear(&run);
        assert_eq!(other.engine.known.rooms[&directory].replica.logs.head_of(founder.log()), n);
        assert!(other.engine.known.directory.room(id).is_none(), "{id}");
    }
    // Of two of one id the first counts.
    for name in ["first", "second"] {
        let Body::RoomCreated(it) = created(BROUGHT) else { panic!("it is") };
        let it = RoomCreated { name: name.to_owned(), ..it };
        let (_, run) = founder.write_in(&other, directory, &Body::RoomCreated(it));
        other.hear(&run);
    }
    let room = other.engine.known.directory.room(BROUGHT).expect("the founder's");
    assert_eq!(room.created.name, "first");
}

/// `first`, then a gap, in the home era.
fn with_gap(first: u64, gap: u32) -> Body {
    let items = vec![Items { log: 7, from: 1, count: gap }];
    Body::Ordered(Ordered { era: Era::HOME, first, logs: Vec::new(), items, by: None })
}

#[test]
fn gaps_are_for_the_founder_in_rooms_that_it_brought() {
    // An ordinary room of the founder's: a gap is too much.
    let mut founder = Node::new(1);
    let caller = founder.attach("me", false, KEY).expect("free");
    let room = NewRoom {
        name: "plan".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    let made = founder.ask(Command::CreateRoom { caller, room });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    let mut other = Node::new(2);
    for run in founder.runs_sent() {
        other.hear(&run);
    }
    let (_, run) = Liar::new(1).write_in(&other, view.room, &with_gap(1, 1_000));
    other.hear(&run);
    assert_eq!((other.tip(view.room), other.void()), (0, 1));
    // In the lobby the founder may, and another may not, though the home era is given to it.
    let lobby = other.lobby();
    let mut liar = Liar::new(1);
    let (_, run) = liar.write(&other, &with_gap(1, 1_000));
    other.hear(&run);
    assert_eq!((other.tip(lobby), other.void()), (1_000, 1));
    let heir = LogId { author: identity(9).node_id(), incarnation: 0 };
    let over = crate::wire::entry::HandedOver { era: Era::HOME, next: 1_001, to: heir, by: None };
    let (_, run) = liar.write(&other, &Body::HandedOver(over));
    other.hear(&run);
    let mut heir = Liar::new(9);
    let (_, run) = heir.write(&other, &with_gap(1_001, 1_000));
    other.hear(&run);
    assert_eq!((other.tip(lobby), other.void()), (1_000, 2));
}

#[test]
fn votes_and_decisions_of_old_are_for_the_founder_in_rooms_that_it_brought() {
    let mut node = Node::new(2);
    let decided = |log| {
        let election = EntryRef { log, seq: 0 };
        Body::Decision(Decision { said: said("decided"), election })
    };
    let (mut liar, mut founder) = (Liar::new(9), Liar::new(1));
    let lobby = node.lobby();
    let home = LogId { author: identity(1).node_id(), incarnation: 0 };
    for (n, body) in
        [(1, Body::Vote(VoteAct::Imported(ended()))), (2, decided(liar.log())), (3, decided(home))]
    {
        let (_, run) = liar.write(&node, &body);
        node.hear(&run);
        assert_eq!(
            node.engine.known.rooms[&lobby].replica.logs.head_of(liar.log()),
            n,
            "its log goes on"
        );
        assert_eq!(node.void(), n);
    }
    assert!(
        node.engine.known.rooms[&lobby].order.numbering.undelivered.is_empty(),
        "and takes no number"
    );
    assert_eq!(node.engine.known.rooms[&lobby].folds.votes.all().count(), 0);
    for body in [Body::Vote(VoteAct::Imported(ended())), decided(founder.log())] {
        let (_, run) = founder.write(&node, &body);
        node.hear(&run);
    }
    let after = &node.engine.known.rooms[&lobby];
    assert_eq!((after.folds.votes.all().count(), after.order.numbering.undelivered.len()), (1, 1));
    // A restart judges alike.
    let again = Node::open(2, stored(&node.rows), node.now);
    let again = &again.engine.known.rooms[&lobby];
    assert_eq!((again.folds.votes.all().count(), again.order.numbering.undelivered.len()), (1, 1));
}

#[test]
fn a_vote_of_old_that_cannot_have_been_means_nothing() {
    let mut node = Node::new(2);
    let mut founder = Liar::new(1);
    let wrong = [
        VoteImported { tally: vec![1], ..ended() },
        VoteImported { tally: vec![3, 3], ..ended() },
        VoteImported { tally: vec![u64::MAX, 1], eligible: u64::MAX, ..ended() },
        VoteImported { options: vec!["one".to_owned()], tally: vec![1], ..ended() },
        VoteImported { title: " ".to_owned(), ..ended() },
    ];
    for (n, vote) in (1..).zip(wrong) {
        let (_, run) = founder.write(&node, &Body::Vote(VoteAct::Imported(vote)));
        node.hear(&run);
        assert_eq!(node.void(), n);
    }
    // Ballots in one that has been do not wake it.
    let (place, run) = founder.write(&node, &Body::Vote(VoteAct::Imported(ended())));
    node.hear(&run);
    let agent: AgentId = "x".into();
    let ballot =
        crate::wire::acts::BallotCast { vote: place, agent, commitment: [0; 32], key: None };
    let (_, run) = Liar::new(9).write(&node, &Body::Vote(VoteAct::Cast(ballot)));
    node.hear(&run);
    let lobby = node.lobby();
    let votes = &node.engine.known.rooms[&lobby].folds.votes;
    assert!(!votes.is_waiting());
    let view = votes.get(place).expect("known").view(lobby, node.now);
    assert_eq!((view.cast, view.tally), (4, Some(vec![3, 1])));
}

fn task(note: Option<&str>, status: TaskStatus, updated_ms: Option<u64>) -> ImportedTask {
    let task = TaskAssigned::of("paint it", "ann".into());
    let (room, note) = (BROUGHT, note.map(str::to_owned));
    ImportedTask { room, task, created_ms: 70, status, note, updated_ms }
}

#[test]
fn tasks_are_as_they_were_whatever_had_become_of_them() {
    let mut world = World::new(1);
    world.nodes[0].bring(Import::Room(brought())).expect("new");
    let (pending, completed) = (TaskStatus::Pending, TaskStatus::Completed);
    let all = [
        (None, pending, None),
        (Some("soon"), pending, None),
        (None, pending, Some(80)),
        (None, completed, None),
    ];
    for (note, status, updated_ms) in all {
        world.nodes[0].bring(Import::Task(task(note, status, updated_ms))).expect("as any");
    }
    let mut shown: Vec<_> = world.tasks_of(0, BROUGHT);
    shown.sort_by_key(|it| it.task);
    let shown = shown.iter().map(|it| (it.note.as_deref(), it.status, it.updated_ms));
    let updated = [None, Some(70), Some(80), Some(70)];
    assert!(shown.eq(all.iter().zip(updated).map(|((note, status, _), at)| (*note, *status, at))));
}

#[test]
fn what_cannot_be_brought_is_refused_and_leaves_nothing() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    node.bring(Import::Room(brought())).expect("new");
    let caller = node.attach("me", false, KEY).expect("free");
    let (name, description, parent) = ("own".to_owned(), None, None);
    let (ephemeral, public, encrypted) = (false, true, false);
    let room = NewRoom { name, description, parent, ephemeral, public, encrypted };
    let made = node.ask(Command::CreateRoom { caller, room });
    let Ok(Outcome::Room(own)) = made else { panic!("{made:?}") };
    let entries =
        |node: &Node| node.rows.iter().filter(|it| matches!(it, Change::Entry { .. })).count();
    let (before, beyond) = (entries(&node), Era::HOME.capacity() + 1);
    let other = RoomId([2, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);
    let name = "x".repeat(crate::limits::NAME_BYTES_MAX + 1);
    let invalid = [
        Import::Room(brought()),
        Import::Room(ImportedRoom { room: other, name, ..brought() }),
        messages(lobby, [3, 3], 4),
        messages(lobby, [4, 3], 5),
        messages(lobby, [3], 3),
        messages(lobby, [3], beyond),
        messages(own.room, [3], 4),
        Import::Vote(own.room, 77, ended()),
    ];
    for it in invalid {
        let refused = node.bring(it);
        assert!(matches!(refused, Err(Refused::Impossible(_))), "{refused:?}");
    }
    let content = "x".repeat(crate::limits::PLAIN_BODY_BYTES_MAX);
    let long = ImportedMessage { content, ..message(3) };
    let long = ImportedMessages { room: lobby, messages: vec![long], next: 4 };
    let refused = node.bring(Import::Messages(long));
    assert!(matches!(refused, Err(Refused::TooLarge { .. })), "{refused:?}");
    assert_eq!(entries(&node), before);
}

#[test]
fn numbers_are_brought_while_the_founder_gives_them_and_not_after_another_did() {
    let mut world = World::new(2);
    let (caller, room) = (world.callers[1].clone(), world.lobby());
    world.groups = vec![0, 1];
    let say = said_now(room);
    let call = world.begin(1, Command::Say { caller, say });
    world.pass(Duration::from_secs(6));
    assert!(world.reply(1, call).is_some_and(|it| it.is_ok()), "in an era of its own");
    world.groups = vec![0; 2];
    world.carry();
    let late = world.nodes[0].bring(messages(room, [50], 60));
    assert!(matches!(late, Err(Refused::Impossible(_))), "{late:?}");
}

#[test]
fn what_follows_one_upon_the_other_takes_one_item_and_so_does_what_names_nothing() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    node.bring(messages(lobby, [], 1)).expect("nothing");
    node.bring(messages(lobby, [], 3)).expect("nothing but numbers");
    node.bring(messages(lobby, [5, 6, 7, 9], 10)).expect("they rise");
    let ordered = node.rows.iter().filter_map(|it| match it {
        Change::Entry { room, entry, .. } if *room == lobby => {
            match Body::decode(entry.facts.kind, &entry.body) {
                Body::Ordered(it) => {
                    Some((it.first, it.items.iter().map(|it| it.count).collect::<Vec<_>>()))
                }
                _ => None,
            }
        }
        _ => None,
    });
    assert!(ordered.eq([(1, vec![2]), (3, vec![2, 3, 1, 1])]));
    assert_eq!((node.tip(lobby), node.void()), (9, 0));
}

/// Clients hold cursors above it, and would miss what follows.
#[test]
fn a_room_that_is_brought_without_messages_goes_on_where_it_was() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    node.bring(messages(lobby, [], 12)).expect("it is empty");
    assert_eq!(node.tip(lobby), 11);
    let head = |node: &Node| {
        let room = &node.engine.known.rooms[&lobby];
        room.replica.logs.head_of(room.replica.mine)
    };
    let before = head(&node);
    node.bring(messages(lobby, [], 12)).expect("the same again");
    assert_eq!((head(&node), node.void()), (before, 0), "there is nothing to write");
    let Ok(Outcome::Said(said)) = node.say(&caller, lobby) else { panic!("a member") };
    assert_eq!(said.number.0, 12);
}
