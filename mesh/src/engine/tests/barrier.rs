//! Barriers: what a client was told by one that is at another node, whatever gossip lost.

use super::{
    private::{API_KEY, follower, key},
    world::{STEP, World},
    *,
};
use crate::{
    api::agenda::{NewTask, NewVote, TaskUpdate},
    limits::{
        BARRIER_EVERY, BARRIER_LEFT_OUT_FOR, BARRIER_SEEKING_MAX, BARRIER_WAITING_MAX,
        BARRIER_WITHIN,
    },
    name::group::Group,
    name::id::{AgentId, MessageId, RoomKey},
    wire::{
        acts::{TaskStatus, Tier},
        message::{Followed, Head, Heads, RoomDigest},
        seal::Token,
    },
};

impl World {
    /// All are connected.
    fn connected(nodes: u8) -> World {
        let mut world = World::new(nodes);
        world.link();
        world.pass(STEP * 5);
        world
    }

    /// Whatever this node has said by gossip is lost.
    fn lose_gossip(&mut self, n: usize) {
        let (lost, effects) = std::mem::take(&mut self.nodes[n].effects)
            .into_iter()
            .partition(|it| matches!(it, Effect::Broadcast { .. }));
        self.nodes[n].effects = effects;
        let lost: Vec<Effect> = lost;
        self.said.extend(lost.into_iter().filter_map(|it| match it {
            Effect::Broadcast { message, .. } => Some(message),
            _ => None,
        }));
    }

    /// A command that its node answers at once; others hear nothing of it.
    fn unheard(&mut self, n: usize, command: Command) -> Outcome {
        let outcome = self.nodes[n].ask(command).expect("it may");
        self.lose_gossip(n);
        outcome
    }

    /// A command is answered as soon as others have said what they have: no time passes.
    fn at_once(&mut self, n: usize, command: Command) -> Result<Outcome, Refused> {
        let call = self.begin(n, command);
        self.carry();
        self.reply(n, call).expect("it is answered")
    }

    fn asks(&mut self, n: usize) -> Vec<(NodeId, Vec<RoomDigest>)> {
        let sent = self.nodes[n].effects.iter().filter_map(|it| match it {
            Effect::Send { to, message: Message::AskFrontier { rooms, .. } } => {
                Some((*to, rooms.clone()))
            }
            _ => None,
        });
        sent.collect()
    }

    fn node_id(&self, n: usize) -> NodeId {
        self.nodes[n].engine.known.cx.me
    }

    fn room_made_unheard(&mut self, n: usize) -> RoomId {
        let caller = self.callers[n].clone();
        let room = NewRoom {
            name: "plan".to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public: true,
            encrypted: false,
        };
        match self.unheard(n, Command::CreateRoom { caller, room }) {
            Outcome::Room(view) => view.room,
            other => panic!("{other:?}"),
        }
    }

    fn vote_made_unheard(&mut self, n: usize) -> MessageId {
        // Its own barrier is not what is looked at.
        let up = std::mem::take(&mut self.nodes[n].engine.known.cx.up);
        let (caller, vote) = (self.callers[n].clone(), new_vote(self.lobby()));
        let made = self.unheard(n, Command::CreateVote { caller, vote });
        self.nodes[n].engine.known.cx.up = up;
        let Outcome::Vote(view) = made else { panic!("{made:?}") };
        view.vote
    }
}

fn new_vote(room: RoomId) -> NewVote {
    NewVote {
        room,
        title: "what".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        duration_secs: None,
    }
}

fn eligible(outcome: Result<Outcome, Refused>) -> usize {
    match outcome {
        Ok(Outcome::Vote(view)) => view.eligible,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_room_that_was_made_elsewhere_is_joined_at_once_and_its_history_is_there() {
    let mut world = World::connected(2);
    let room = world.room_made_unheard(0);
    let caller = world.callers[0].clone();
    world.unheard(0, Command::Join { caller: caller.clone(), room });
    world.nodes[0].say(&caller, room).expect("a member");
    world.lose_gossip(0);
    let caller = world.callers[1].clone();
    let joined = world.at_once(1, Command::Join { caller, room });
    assert!(matches!(joined, Ok(Outcome::Joined(true))), "{joined:?}");
    assert!(world.nodes[1].engine.known.rooms[&room].tip() > Number::ZERO, "what was said there");
}

#[test]
fn nobody_whose_join_was_answered_is_missing_in_an_electorate_or_among_candidates() {
    let mut world = World::connected(2);
    let join = |world: &mut World, agent: &str| {
        let caller = world.nodes[0].attach(agent, false, KEY).expect("free");
        let room = world.lobby();
        world.unheard(0, Command::Join { caller, room });
    };
    join(&mut world, "late");
    let (caller, room) = (world.callers[1].clone(), world.lobby());
    let vote = new_vote(room);
    let vote = Command::CreateVote { caller: caller.clone(), vote };
    assert_eq!(eligible(world.at_once(1, vote)), 3);
    join(&mut world, "later");
    let elected = world.at_once(1, Command::ElectLeader { caller: caller.clone(), room });
    let Ok(Outcome::Candidates(candidates)) = elected else { panic!("{elected:?}") };
    let later: AgentId = "later".into();
    assert!(candidates.contains(&later) && candidates.len() == 4, "{candidates:?}");
    // One that has begun elsewhere is not begun a second time.
    let (other, room) = (world.callers[0].clone(), world.lobby());
    let again = world.at_once(0, Command::ElectLeader { caller: other, room });
    assert_eq!(again.expect_err("it runs"), Refused::ElectionRuns);
}

#[test]
fn many_joins_that_were_not_heard_of_come_with_the_answer() {
    let mut world = World::connected(2);
    let many = crate::limits::ROSTER_NEWS_KEPT + 5;
    for nth in 0..many {
        let caller = world.nodes[0].attach(&format!("a{nth}"), false, KEY).expect("free");
        let room = world.lobby();
        world.unheard(0, Command::Join { caller, room });
    }
    let (caller, vote) = (world.callers[1].clone(), new_vote(world.lobby()));
    let vote = Command::CreateVote { caller, vote };
    assert_eq!(eligible(world.at_once(1, vote)), 2 + many, "the whole roster came");
}

#[test]
fn a_vote_and_a_task_are_acted_on_as_soon_as_their_ids_are_known() {
    let mut world = World::connected(3);
    let vote = world.vote_made_unheard(0);
    let (caller, author) = (world.callers[2].clone(), world.node_id(0));
    let call = world.begin(2, Command::CastVote { caller: caller.clone(), vote, option: 0 });
    let asked: Vec<NodeId> = world.asks(2).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(asked, [author], "its author alone: the id says who that is");
    world.carry();
    let cast = world.reply(2, call).expect("it is answered");
    assert!(matches!(cast, Ok(Outcome::Cast { cast: 1, eligible: 3 })), "{cast:?}");
    let (by, room) = (world.callers[0].clone(), world.lobby());
    let (title, description, assignee) = ("do it".to_owned(), None, None);
    let task = NewTask { description, assignee, ..NewTask::of(room, title) };
    let made = world.unheard(0, Command::AssignTask { caller: by, task });
    let Outcome::Task(view) = made else { panic!("{made:?}") };
    let status = Some(TaskStatus::Completed);
    let (assignee, note, if_assignee) = (None, None, None);
    let update = TaskUpdate { status, assignee, note, if_assignee, ..TaskUpdate::of(view.task) };
    let updated = world.at_once(2, Command::UpdateTask { caller: caller.clone(), update });
    assert!(matches!(updated, Ok(Outcome::Task(_))), "{updated:?}");
    let get = Command::GetVote { by: caller.reader(), vote };
    assert!(world.nodes[2].ask(get).is_ok(), "it is known: nobody is asked");
}

#[test]
fn what_cannot_be_is_refused_at_once_and_what_may_be_when_all_have_been_asked() {
    let mut world = World::connected(3);
    let (caller, lobby) = (world.callers[2].clone(), world.lobby());
    let cast = |vote| Command::CastVote { caller: caller.clone(), vote, option: 0 };
    // The entry of this id is here, and is no vote.
    let said =
        world.nodes[2].engine.known.rooms[&lobby].replica.logs.iter().next().map(|(_, log)| log.id);
    let log = said.unwrap_or(LogId { author: world.node_id(0), incarnation: 0 });
    let by_me = MessageId::new(lobby, LogId { author: world.node_id(2), incarnation: 0 }, 7_000);
    let refused = world.nodes[2].ask(cast(by_me)).expect_err("this node wrote none");
    assert_eq!(refused, Refused::NoVote);
    let ahead = MessageId::new(lobby, log, 7_000);
    for (vote, asked) in [(ahead, 1), (MessageId([3; 16]), 2)] {
        let call = world.begin(2, cast(vote));
        assert!(world.reply(2, call).is_none(), "it is looked for");
        assert_eq!(world.asks(2).len(), asked);
        world.carry();
        assert_eq!(world.reply(2, call).expect("all have answered").unwrap_err(), Refused::NoVote);
        world.pass(STEP);
    }
}

#[test]
fn an_election_that_was_started_elsewhere_is_declined_at_once() {
    let mut world = World::connected(2);
    let (starter, caller, room) =
        (world.callers[0].clone(), world.callers[1].clone(), world.lobby());
    let up = std::mem::take(&mut world.nodes[0].engine.known.cx.up);
    world.unheard(0, Command::ElectLeader { caller: starter, room });
    world.nodes[0].engine.known.cx.up = up;
    let declined = world.at_once(1, Command::Decline { caller: caller.clone(), room });
    assert!(matches!(declined, Ok(Outcome::Done)), "{declined:?}");
    // None runs there.
    let mut world = World::connected(2);
    let none = world.at_once(1, Command::Decline { caller, room });
    assert_eq!(none.expect_err("none was started"), Refused::NoElection);
}

#[test]
fn a_message_is_found_by_its_id_as_soon_as_that_is_known() {
    let mut world = World::connected(2);
    let (caller, lobby) = (world.callers[0].clone(), world.lobby());
    let said = world.nodes[0].say(&caller, lobby);
    let Ok(Outcome::Said(said)) = said else { panic!("{said:?}") };
    world.lose_gossip(0);
    let caller = world.callers[1].clone();
    let seek = |message| Command::Seek { caller: caller.clone(), room: lobby, message };
    let sought = world.at_once(1, seek(Some(said.message)));
    assert!(matches!(sought, Ok(Outcome::Done)), "{sought:?}");
    assert_eq!(world.nodes[1].engine.known.rooms[&lobby].tip(), said.number);
    world.nodes[1].ask(seek(Some(said.message))).expect("it is here: nobody is asked");
    world.nodes[1].ask(seek(None)).expect("so is the room");
}

#[test]
fn a_key_that_was_minted_elsewhere_is_valid_and_an_id_that_is_free_again_is_free() {
    let mut world = World::connected(2);
    let minted = PRINTS[5];
    let mint = world.nodes[0].new_key(minted, Tier::High, false);
    world.unheard(0, Command::MintKey(mint));
    let attach = |agent: &str, key, own| {
        Command::Attach(Attach {
            agent: agent.into(),
            stable: false,
            reconnect: false,
            key,
            own,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.to_owned(),
            capabilities: Vec::new(),
        })
    };
    let attached = world.at_once(1, attach("guest", minted, false));
    assert!(matches!(attached, Ok(Outcome::Attached(_))), "{attached:?}");
    let unknown = world.at_once(1, attach("nobody", KeyPrint([6; 16]), false));
    assert_eq!(unknown.expect_err("nobody minted it"), Refused::NoKey);
    // It has left the other node.
    let caller = world.callers[0].clone();
    world.unheard(0, Command::Detach { caller, seen: Vec::new() });
    let moved = world.at_once(1, attach("agent0", KEY, true));
    assert!(matches!(moved, Ok(Outcome::Attached(_))), "{moved:?}");
}

/// Seed 2 of the scenario `hand-over`: what had come with the same turn was taken for known, and had not been folded.
#[test]
fn what_came_a_moment_before_is_looked_into_first() {
    let mut world = World::connected(2);
    let vote = world.vote_made_unheard(0);
    let made = world.said.iter().rev().find_map(|it| match it {
        Message::Runs(runs) => Some(runs.clone()),
        _ => None,
    });
    let from = world.node_id(0);
    let message = Message::Runs(made.expect("it was said"));
    let message = message.verify(world.nodes[0].secret.mesh_id()).expect("it is sealed");
    let caller = world.callers[1].clone();
    let node = &mut world.nodes[1];
    node.engine.handle(node.now, Input::Message { from, message });
    let cast = Command::CastVote { caller, vote, option: 0 };
    let call = node.without_delay(cast);
    let answer = node.reply(call).expect("in the same turn: nobody is asked");
    assert!(matches!(answer, Ok(Outcome::Cast { .. })), "{answer:?}");
}

/// An entry that is here and has no number yet is no message that anybody can read on from.
#[test]
fn a_message_is_found_when_its_number_is_here_too() {
    let mut world = World::connected(2);
    let (caller, lobby) = (world.callers[1].clone(), world.lobby());
    // Its author does not number it: the other node does, and that is lost.
    let call = {
        let say = Say {
            room: lobby,
            speech: Speech::Chat,
            content: "hello".to_owned(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        world.begin(1, Command::Say { caller: caller.clone(), say })
    };
    let runs = world.nodes[1].effects.iter().find_map(|it| match it {
        Effect::Broadcast { message: Message::Runs(runs), .. } => Some(runs.clone()),
        _ => None,
    });
    world.lose_gossip(1);
    let from = world.node_id(1);
    let message = Message::Runs(runs.expect("it was said"));
    let message = message.verify(world.nodes[1].secret.mesh_id()).expect("it is sealed");
    world.nodes[0].give(Input::Message { from, message });
    world.lose_gossip(0);
    assert!(world.reply(1, call).is_none(), "it has no number here");
    let id = MessageId::new(lobby, LogId { author: from, incarnation: 0 }, 1);
    let seek = Command::Seek { caller, room: lobby, message: Some(id) };
    assert!(matches!(world.at_once(1, seek), Ok(Outcome::Done)));
    assert!(matches!(world.reply(1, call), Some(Ok(Outcome::Said(_)))), "the number has come");
}

#[test]
fn with_nobody_to_ask_nothing_waits() {
    let mut world = World::new(1);
    let (caller, room) = (world.callers[0].clone(), world.lobby());
    let vote = new_vote(room);
    world.nodes[0].ask(Command::CreateVote { caller: caller.clone(), vote }).expect("at once");
    let join = Command::Join { caller, room: RoomId([3; 16]) };
    assert_eq!(world.nodes[0].ask(join).expect_err("at once"), Refused::NoRoom);
}

/// A node with one silent peer.
fn beside_a_silent_peer() -> (Node, Caller, NodeId) {
    let mut node = Node::new(1);
    let me = node.joins("me");
    let peer = identity(8).node_id();
    node.give(Input::PeerUp(peer));
    node.effects.clear();
    (node, me, peer)
}

impl Node {
    fn joins_made_up(&mut self, caller: &Caller, nth: u16) -> CallId {
        let mut room = RoomId([9; 16]);
        room.0[..2].copy_from_slice(&nth.to_be_bytes());
        self.without_delay(Command::Join { caller: caller.clone(), room })
    }

    /// No time passes.
    fn without_delay(&mut self, command: Command) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.engine.handle(self.now, Input::Command { call, command });
        self.turn();
        call
    }

    fn questions(&self) -> Vec<u64> {
        let nonces = self.effects.iter().filter_map(|it| match it {
            Effect::Send { message: Message::AskFrontier { nonce, .. }, .. } => Some(*nonce),
            _ => None,
        });
        nonces.collect()
    }

    fn answers(&mut self, peer: NodeId, nonce: u64, rooms: Vec<Heads>) {
        let (boot, version) = (0, 0);
        let message = Message::Frontier { nonce, boot, version, rooms };
        self.give(Input::Message { from: peer, message });
    }

    fn moves_on(&mut self, time: Duration) {
        self.now.mono += time;
        self.give(Input::Timeout);
    }
}

#[test]
fn a_silent_peer_is_waited_for_so_long_and_then_left_out_for_a_while() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let call = node.joins_made_up(&me, 1);
    let asked = node.now.mono;
    node.moves_on(BARRIER_WITHIN - Duration::from_millis(3));
    assert!(node.reply(call).is_none());
    assert_eq!(node.engine.deadline(), asked + BARRIER_WITHIN);
    node.moves_on(Duration::from_millis(2));
    assert_eq!(node.reply(call).expect("no longer").unwrap_err(), Refused::NoRoom);
    // Nobody is left to be asked.
    let call = node.joins_made_up(&me, 2);
    assert!(node.reply(call).is_some());
    assert_eq!(node.questions().len(), 1);
    node.wait(BARRIER_LEFT_OUT_FOR);
    let call = node.joins_made_up(&me, 3);
    assert!(node.reply(call).is_none(), "it is asked again");
    // It goes, and with it what was waited for.
    node.give(Input::PeerDown(peer));
    assert!(node.reply(call).is_some());
}

#[test]
fn a_peer_that_answers_late_is_asked_the_next_time_and_waited_for_longer() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let call = node.joins_made_up(&me, 1);
    node.moves_on(BARRIER_WITHIN);
    assert!(node.reply(call).is_some());
    let nonce = node.questions()[0];
    node.moves_on(Duration::from_millis(45));
    node.answers(peer, nonce, Vec::new());
    let call = node.joins_made_up(&me, 2);
    node.moves_on(Duration::from_millis(990));
    assert!(node.reply(call).is_none(), "four times what it took, a second at most");
    node.moves_on(Duration::from_millis(10));
    assert!(node.reply(call).is_some());
}

#[test]
fn a_thousand_made_up_ids_cost_a_peer_one_question_each_round_trip() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let mut calls: Vec<CallId> = (0..500).map(|nth| node.joins_made_up(&me, nth)).collect();
    assert_eq!(node.questions().len(), 1, "they share the next one");
    let nonce = node.questions()[0];
    node.answers(peer, nonce, Vec::new());
    assert_eq!(calls.iter().filter(|call| node.reply(**call).is_some()).count(), 1);
    assert_eq!(node.questions().len(), 1, "the next one is not due yet");
    assert_eq!(node.engine.deadline(), node.engine.barriers.due().expect("it is near"));
    node.moves_on(BARRIER_EVERY);
    assert_eq!(node.questions().len(), 2);
    // Answered at once, all the time: still no more than so many.
    let began = node.now.mono;
    let mut nth = 500;
    while node.now.mono < began + BARRIER_EVERY * 50 {
        nth += 1;
        calls.push(node.joins_made_up(&me, nth));
        let nonce = *node.questions().last().expect("one");
        node.answers(peer, nonce, Vec::new());
    }
    assert!(node.questions().len() <= 52, "{}", node.questions().len());
}

#[test]
fn so_many_wait_at_once_and_what_cannot_wait_is_refused() {
    let (mut node, me, _) = beside_a_silent_peer();
    for nth in 0..u16::try_from(BARRIER_SEEKING_MAX).expect("few") {
        let call = node.joins_made_up(&me, nth);
        assert!(node.reply(call).is_none(), "{nth}");
    }
    let call = node.joins_made_up(&me, 10_000);
    assert_eq!(node.reply(call).expect("no place").unwrap_err(), Refused::NoRoom);
    let lobby = node.lobby();
    let begin = |node: &mut Node| {
        let vote = new_vote(lobby);
        let call = node.without_delay(Command::CreateVote { caller: me.clone(), vote });
        node.reply(call)
    };
    for nth in BARRIER_SEEKING_MAX..BARRIER_WAITING_MAX {
        assert!(begin(&mut node).is_none(), "{nth}");
    }
    assert!(matches!(begin(&mut node), Some(Err(Refused::Full(_)))), "not without anybody");
}

#[test]
fn who_is_gone_when_a_barrier_ends_has_done_nothing() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let vote = new_vote(node.lobby());
    let call = node.begin(Command::CreateVote { caller: me.clone(), vote });
    node.ask(Command::Detach { caller: me, seen: Vec::new() }).expect("at once");
    let nonce = node.questions()[0];
    node.answers(peer, nonce, Vec::new());
    assert_eq!(node.reply(call).expect("it is answered").unwrap_err(), Refused::Superseded);
    assert!(node.engine.known.index.votes.is_empty());
}

#[test]
fn a_node_that_stops_keeps_nobody_waiting() {
    let (mut node, me, _) = beside_a_silent_peer();
    let running = node.joins_made_up(&me, 1);
    let next = node.joins_made_up(&me, 2);
    node.begin(Command::Stop);
    node.moves_on(BARRIER_EVERY);
    for call in [running, next] {
        assert_eq!(node.reply(call).expect("it is answered").unwrap_err(), Refused::Stopping);
    }
}

#[test]
fn an_answer_that_nobody_asked_for_or_of_other_rooms_changes_nothing() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let lobby = node.lobby();
    let log = LogId { author: peer, incarnation: 0 };
    let heads = || vec![Heads { room: lobby, heads: vec![Head { log, seq: 7 }] }];
    node.answers(peer, 99, heads());
    assert_eq!(node.engine.known.cx.faults.stray, 1);
    let call = node.joins_made_up(&me, 1);
    let nonce = node.questions()[0];
    node.answers(identity(7).node_id(), nonce, heads());
    assert!(node.reply(call).is_none(), "another one was asked");
    node.answers(peer, nonce, heads());
    assert!(node.reply(call).is_some(), "the lobby was not asked for");
}

#[test]
fn what_a_peer_names_and_does_not_give_is_waited_for_so_long() {
    let (mut node, me, peer) = beside_a_silent_peer();
    let call = node.joins_made_up(&me, 1);
    let nonce = node.questions()[0];
    let room = RoomId::directory(node.secret.mesh_id());
    let log = LogId { author: peer, incarnation: 0 };
    node.answers(peer, nonce, vec![Heads { room, heads: vec![Head { log, seq: 7 }] }]);
    let wanted = |it: &Effect| matches!(it, Effect::Send { message: Message::Want { room: it, .. }, .. } if *it == room);
    assert!(node.effects.iter().any(wanted));
    assert!(node.reply(call).is_none());
    node.moves_on(BARRIER_WITHIN);
    assert!(node.reply(call).is_some());
    // It has answered: it is asked again.
    node.joins_made_up(&me, 2);
    assert_eq!(node.questions().len(), 2);
}

#[test]
fn of_a_private_room_only_followers_are_asked_and_told() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let (other, stranger) = (identity(8).node_id(), identity(9).node_id());
    for peer in [other, stranger] {
        node.give(Input::PeerUp(peer));
    }
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), other);
    node.told(
        8,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    node.effects.clear();
    node.begin(Command::CreateVote { caller: me.clone(), vote: new_vote(room) });
    node.joins_made_up(&me, 1);
    let mut named: Vec<(NodeId, Vec<RoomId>)> = Vec::new();
    for it in &node.effects {
        if let Effect::Send { to, message: Message::AskFrontier { rooms, .. } } = it {
            named.push((*to, rooms.iter().map(|it| it.room).collect()));
        }
    }
    assert_eq!(named.len(), 2);
    let directory = RoomId::directory(node.secret.mesh_id());
    let sealed = node.engine.known.cx.followers.directory(Group::Key(key())).expect("it follows");
    for (peer, mut rooms) in named {
        rooms.sort_unstable();
        let mut expected =
            if peer == other { vec![directory, sealed, room] } else { vec![directory] };
        expected.sort_unstable();
        assert_eq!(rooms, expected, "{peer}");
    }
    // Nor is a stranger told what it asks for itself.
    node.effects.clear();
    for from in [8, 9] {
        let rooms = vec![RoomDigest { room, digest: Digest([1; 16]) }];
        node.told(from, Message::AskFrontier { nonce: 1, boot: 0, version: 0, rooms });
    }
    let told = node.effects.iter().filter_map(|it| match it {
        Effect::Send { to, message: Message::Frontier { rooms, .. } } => Some((*to, rooms.len())),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(other, 1), (stranger, 0)]);
}
