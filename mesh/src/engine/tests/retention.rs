//! Bodies that are old: dropped in time, taken for gone only when they are.

use super::{
    asking::{FOUNDER, ordered},
    world::Liar,
    *,
};
use crate::{
    api::{agenda::Retention, batch::Fate, boundary::Alarm, event::RoomEvent},
    limits::{
        GONE_AFTER, HOLE_AFTER, HOLE_AFTER_SILENCE, PRUNE_EVERY, PRUNE_FIRST_AFTER, RETENTION_MIN,
        STAMP_AHEAD_MS_MAX, VOUCHER_WITHIN,
    },
    name::{
        id::{RoomKey, sha256},
        number::Era,
    },
    wire::{
        acts::Tier,
        entry::{Gone, NodeParted, Parting},
        kinds::THINKING,
        message::{ApartBody, Head},
        run::BadRun,
    },
};

const DAY: Duration = Duration::from_secs(24 * 3_600);
const HOUR: Duration = Duration::from_secs(3_600);

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("short")
}

fn keeps(own: Option<Duration>) -> impl FnOnce(&mut Config) {
    move |config| config.retention.own = own
}

/// What is left of a run for whoever drops its visible bodies.
pub(super) fn bare(run: &Run) -> Run {
    let mut run = run.clone();
    for entry in run.entries.iter_mut().filter(|it| it.facts.visible) {
        if let Carried::Here(body) = &entry.body {
            let gone = Gone { hash: sha256(&[body]), len: body.len() as u64 };
            entry.body = Carried::Gone(gone);
        }
    }
    run
}

/// The lobby of the founder, in which something was said so long ago: all runs of it, and the node
/// that reads them now.
struct Late {
    founder: Node,
    caller: Caller,
    runs: Vec<Run>,
    node: Node,
}

/// The founder's peer ids as the node sees them.
fn peer(seed: u8) -> NodeId {
    identity(seed).node_id()
}

impl Late {
    fn new(ago: Duration, own: Option<Duration>) -> Late {
        Late::by_clock(|now| now - ms(ago), own)
    }

    /// What the founder's clock said when it is now.
    fn by_clock(clock: impl FnOnce(u64) -> u64, own: Option<Duration>) -> Late {
        let mut founder = Node::new(1);
        founder.now.wall_ms = clock(founder.now.wall_ms);
        let caller = founder.attach("old", false, KEY).expect("free");
        let lobby = founder.lobby();
        founder.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("public");
        for _ in 0..3 {
            founder.say(&caller, lobby).expect("a member");
        }
        let node = Node::with(2, keeps(own));
        Late { runs: founder.runs_sent(), founder, caller, node }
    }

    fn lobby(&self) -> Vec<Run> {
        let lobby = self.node.lobby();
        self.runs.iter().filter(|it| it.room == lobby).cloned().collect()
    }

    fn body(&self, seq: u64) -> Vec<u8> {
        let lobby = self.lobby();
        let run = lobby.iter().find(|it| (it.first..=it.last()).contains(&seq)).expect("written");
        let i = usize::try_from(seq - run.first).expect("small");
        match &run.entries[i].body {
            Carried::Here(body) => body.to_vec(),
            Carried::Apart { .. } | Carried::Gone(_) => panic!("it is small and here"),
        }
    }

    /// Log seqs of what was said.
    fn said(&self) -> Vec<u64> {
        let runs = self.lobby();
        let places = runs.iter().flat_map(|run| (run.first..).zip(&run.entries));
        places.filter(|(_, it)| it.facts.visible).map(|(seq, _)| seq).collect()
    }

    /// A peer sends all of it, without the bodies.
    fn hear_bare(&mut self, from: u8) {
        self.node.give(Input::PeerUp(peer(from)));
        let runs = self.runs.iter().map(bare).collect();
        self.spans(from, runs, Vec::new());
    }

    fn spans(&mut self, from: u8, runs: Vec<Run>, bodies: Vec<(u64, Vec<u8>)>) {
        let mesh = self.node.secret.mesh_id();
        let lobby = self.node.lobby();
        let log = self.lobby()[0].log;
        let runs = runs.into_iter().filter(|it| it.room == lobby);
        let runs = runs.map(|it| it.verify(mesh).expect("it is sealed")).collect();
        let bodies = bodies
            .into_iter()
            .map(|(seq, body)| ApartBody { log, seq, body: body.into() })
            .collect();
        let message = Message::Spans { room: lobby, runs, bodies, last: true };
        self.node.give(Input::Message { from: peer(from), message });
    }

    /// Whom the node has asked for bodies since the last time, and for which.
    fn asked(&mut self) -> Vec<(NodeId, Vec<u64>)> {
        let effects = std::mem::take(&mut self.node.effects);
        let wants = effects.into_iter().filter_map(|it| match it {
            Effect::Send { to, message: Message::WantBodies { at, .. } } => {
                Some((to, at.iter().map(|Head { seq, .. }| *seq).collect()))
            }
            _ => None,
        });
        wants.collect()
    }

    fn wait(&mut self, time: Duration) {
        self.node.wait(time);
    }

    /// Entries of the lobby that were stored, by whether they have a body; and numbers delivered.
    fn kept(&self) -> (usize, usize, usize) {
        let lobby = self.node.lobby();
        let (mut whole, mut gone, mut delivered) = (0, 0, 0);
        for row in &self.node.rows {
            match row {
                Change::Entry { room, entry, .. } if *room == lobby && entry.facts.visible => {
                    assert!(entry.gone.is_none() || entry.body.is_empty());
                    *if entry.gone.is_some() { &mut gone } else { &mut whole } += 1;
                }
                Change::Number { room, fate: Fate::Delivered, .. } if *room == lobby => {
                    delivered += 1;
                }
                _ => {}
            }
        }
        (whole, gone, delivered)
    }

    fn heard(&self) -> usize {
        let messages =
            |it: &&Effect| matches!(it, Effect::Notify { event: RoomEvent::Message(_), .. });
        self.node.effects.iter().filter(messages).count()
    }
}

impl Node {
    pub(super) fn wait(&mut self, time: Duration) {
        let step = Duration::from_millis(100);
        for _ in 0..time.as_millis() / step.as_millis() {
            self.now.mono += step;
            self.now.wall_ms += ms(step);
            self.now.wall_us += ms(step) * 1_000;
            self.engine.handle(self.now, Input::Timeout);
            self.turn();
        }
    }

    /// Rooms that were to be pruned since the last time, and before which time.
    fn pruned(&mut self) -> Vec<(RoomId, u64)> {
        let rows = std::mem::take(&mut self.rows);
        let prunes = rows.into_iter().filter_map(|it| match it {
            Change::Prune { room, before_ms } => Some((room, before_ms)),
            _ => None,
        });
        prunes.collect()
    }
}

#[test]
fn what_the_node_would_drop_too_is_taken_without_its_body_and_delivered_as_nothing() {
    let mut late = Late::new(2 * DAY, Some(DAY));
    late.hear_bare(1);
    assert_eq!(late.kept(), (0, 3, 3));
    assert_eq!((late.heard(), late.asked()), (0, vec![]));
    // What is said after it gets the next number and reaches everybody.
    let lobby = late.node.lobby();
    late.founder.say(&late.caller, lobby).expect("a member");
    for run in late.founder.runs_sent() {
        late.node.hear(&run);
    }
    late.node.wait(VOUCHER_WITHIN);
    assert_eq!((late.kept(), late.heard()), ((1, 3, 4), 1));
    let Ok(Outcome::Rooms(rooms)) =
        late.node.ask(Command::ListRooms { by: KEY.into(), parent: None })
    else {
        panic!("anybody may")
    };
    assert_eq!(rooms[0].tip, Number(4), "numbers stay");
}

#[test]
fn a_body_that_is_needed_is_asked_of_everybody_who_may_have_it() {
    let mut late = Late::new(2 * DAY, Some(3 * DAY));
    for other in [5, 6] {
        late.node.give(Input::PeerUp(peer(other)));
    }
    late.hear_bare(1);
    assert_eq!(late.kept(), (0, 0, 0));
    let said = late.said();
    let places = |asked: &[(NodeId, Vec<u64>)]| -> Vec<u64> {
        asked.iter().flat_map(|it| it.1.clone()).collect()
    };
    let asked = late.asked();
    assert_eq!(places(&asked), said, "{asked:?}");
    let (first, second) = if asked[0].0 == peer(5) { (5, 6) } else { (6, 5) };
    assert!(asked.iter().all(|(to, _)| *to == peer(first)), "the giver has none: {asked:?}");
    late.spans(first, Vec::new(), said.iter().map(|seq| (*seq, Vec::new())).collect());
    let asked = late.asked();
    assert_eq!(places(&asked), said, "at once, of the next: {asked:?}");
    assert!(asked.iter().all(|(to, _)| *to == peer(second)), "{asked:?}");
    let mut bodies: Vec<(u64, Vec<u8>)> = said.iter().map(|seq| (*seq, late.body(*seq))).collect();
    bodies[2].1[0] ^= 1;
    late.spans(second, Vec::new(), bodies);
    assert_eq!(late.kept().0, 2, "a body that is none of its place's is not taken");
    let last = vec![(said[2], late.body(said[2]))];
    late.spans(5, Vec::new(), last);
    assert_eq!(late.kept(), (3, 0, 3));
    // It does not have the directory, where their vouchers are.
    late.node.wait(VOUCHER_WITHIN);
    assert_eq!(late.heard(), 3);
}

#[test]
fn another_copy_of_a_run_brings_what_is_gone_in_the_first() {
    let mut late = Late::new(2 * DAY, None);
    late.hear_bare(1);
    assert_eq!(late.kept(), (0, 0, 0));
    let whole = late.runs.clone();
    late.spans(5, whole, Vec::new());
    assert_eq!(late.kept(), (3, 0, 3));
}

#[test]
fn what_nobody_has_is_taken_for_gone_after_a_while() {
    let mut late = Late::new(2 * DAY, None);
    late.node.give(Input::PeerUp(peer(5)));
    late.hear_bare(1);
    assert!(!late.asked().is_empty());
    late.wait(HOLE_AFTER / 2);
    let none = late.said().iter().map(|seq| (*seq, Vec::new())).collect::<Vec<_>>();
    late.spans(5, Vec::new(), none.clone());
    assert_eq!(late.kept(), (0, 0, 0), "others may come back");
    // One who may have it does.
    late.node.give(Input::PeerUp(peer(6)));
    late.wait(HOLE_AFTER);
    assert_eq!(late.kept(), (0, 0, 0), "it has not said that it does not have it");
    late.spans(6, Vec::new(), none);
    assert_eq!(late.kept(), (0, 3, 3));
}

/// Seed 14977 of the simulation: a node that was new to a room waited for what nobody could bring, and opened an
/// era for what was said there meanwhile.
#[test]
fn what_all_members_say_to_be_gone_is_not_waited_for() {
    let mut late = Late::new(2 * DAY, None);
    let own = late.node.engine.known.cx.lanes.remove(&peer(2));
    for (member, lane) in [(1, 1), (5, 2), (6, 3), (7, 4)] {
        late.node.engine.known.cx.lanes.insert(peer(member), [lane].into());
    }
    // Of the last one nothing is to be had any more.
    let retired = NodeParted { node: peer(7), why: Parting::Retired, cut: Vec::new() };
    let by = LogId { author: peer(1), incarnation: 0 };
    let facts = Facts { clock: 1, wall_ms: 1, kind: 36, visible: false };
    late.node.engine.known.cx.parted.learn(by, facts, &retired);
    late.node.engine.known.cx.lanes.extend(own.map(|it| (peer(2), it)));
    late.node.give(Input::PeerUp(peer(5)));
    late.hear_bare(1);
    let none = late.said().iter().map(|seq| (*seq, Vec::new())).collect::<Vec<_>>();
    late.spans(5, Vec::new(), none.clone());
    late.wait(2 * GONE_AFTER);
    assert_eq!(late.kept(), (0, 0, 0), "the third one may come back with it");
    late.node.give(Input::PeerUp(peer(6)));
    late.wait(2 * GONE_AFTER);
    assert_eq!(late.kept(), (0, 0, 0), "it has not said anything");
    late.spans(6, Vec::new(), none);
    assert_eq!(late.kept(), (0, 3, 3));
    assert!(late.node.now.mono < Duration::from_secs(1) + HOLE_AFTER);
}

/// A member that is not named where members are may not be the only one.
#[test]
fn what_is_gone_is_waited_for_while_members_are_not_known() {
    let mut late = Late::new(2 * DAY, None);
    late.node.engine.known.cx.lanes.insert(peer(1), [1].into());
    late.node.give(Input::PeerUp(peer(5)));
    late.hear_bare(1);
    let none = late.said().iter().map(|seq| (*seq, Vec::new())).collect::<Vec<_>>();
    late.spans(5, Vec::new(), none);
    late.wait(2 * GONE_AFTER);
    assert_eq!(late.kept(), (0, 0, 0));
    late.node.engine.known.cx.lanes.insert(peer(5), [2].into());
    late.wait(GONE_AFTER);
    assert_eq!(late.kept(), (0, 3, 3));
}

#[test]
fn whoever_does_not_answer_keeps_nobody_waiting_for_ever() {
    for connected in [false, true] {
        let mut late = Late::new(2 * DAY, None);
        late.hear_bare(1);
        if connected {
            late.node.give(Input::PeerUp(peer(5)));
        } else {
            late.node.give(Input::PeerDown(peer(1)));
        }
        late.wait(HOLE_AFTER_SILENCE - Duration::from_secs(1));
        assert_eq!(late.kept(), (0, 0, 0));
        late.wait(Duration::from_secs(2));
        assert_eq!(late.kept(), (0, 3, 3));
    }
}

#[test]
fn what_is_young_is_never_taken_without_its_body() {
    let mut late = Late::new(RETENTION_MIN / 2, Some(Duration::from_secs(1)));
    for _ in 0..4 {
        late.hear_bare(1);
        late.wait(HOLE_AFTER_SILENCE);
    }
    assert_eq!(late.kept(), (0, 0, 0));
    late.hear_bare(1);
    let bodies = late.said().iter().map(|seq| (*seq, late.body(*seq))).collect();
    late.spans(1, Vec::new(), bodies);
    assert_eq!(late.kept(), (3, 0, 3));
}

#[test]
fn what_is_stamped_in_the_far_future_is_as_old_as_what_others_dropped_it_with() {
    let mut late = Late::by_clock(|now| now + STAMP_AHEAD_MS_MAX + ms(HOUR), None);
    late.hear_bare(1);
    late.wait(HOLE_AFTER / 2);
    assert_eq!(late.kept(), (0, 0, 0), "somebody may have it");
    late.wait(HOLE_AFTER);
    assert_eq!(late.kept(), (0, 3, 3));
    // A clock that is not quite so wrong says that it is young.
    let mut late = Late::by_clock(|now| now + STAMP_AHEAD_MS_MAX - ms(HOUR), None);
    late.hear_bare(1);
    late.wait(2 * HOLE_AFTER_SILENCE);
    assert_eq!(late.kept(), (0, 0, 0));
}

#[test]
fn a_directory_is_never_taken_without_its_bodies() {
    let mut founder = Node::new(1);
    founder.now.wall_ms -= ms(9 * DAY);
    let caller = founder.attach("old", false, KEY).expect("free");
    let room = NewRoom {
        name: "plan".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    founder.ask(Command::CreateRoom { caller, room }).expect("free");
    let mut node = Node::with(2, keeps(Some(DAY)));
    let directory = RoomId::directory(node.secret.mesh_id());
    let all = founder.runs_sent();
    let runs: Vec<&Run> = all.iter().filter(|it| it.room == directory).collect();
    assert!(runs.iter().any(|it| bare(it).has_gone()), "a room's creation is visible");
    for run in &runs {
        node.hear(&bare(run));
    }
    node.wait(2 * HOLE_AFTER_SILENCE);
    let entries = |node: &Node| {
        let of = |it: &&Change| matches!(it, Change::Entry { room, entry, .. } if *room == directory && entry.facts.visible);
        node.rows.iter().filter(of).count()
    };
    assert_eq!(entries(&node), 0);
    for run in runs {
        node.hear(run);
    }
    assert_eq!(entries(&node), 1);
}

#[test]
fn nobody_drops_what_a_room_is_made_of() {
    let mut founder = Node::new(1);
    let admission = founder.runs_sent().remove(0);
    let mut bad = admission.clone();
    let Carried::Here(body) = &admission.entries[0].body else { panic!("it is small") };
    bad.entries[0].body = Carried::Gone(Gone { hash: sha256(&[body]), len: body.len() as u64 });
    let len = body.len() as u64;
    assert_eq!(bad.verify(founder.secret.mesh_id()).unwrap_err(), BadRun::Body(len));
}

/// A node with a room of its own key, one of each tier, and a private one; something was said in each.
fn with_rooms(retention: Retention) -> (Node, [RoomId; 5]) {
    let mut node = Node::with(1, |config| config.retention = retention);
    let mut keys = vec![KEY];
    for (n, tier) in [(8, Tier::Low), (9, Tier::High)] {
        let key = PRINTS[n];
        let minted = node.new_key(key, tier, false);
        node.ask(Command::MintKey(minted)).expect("it is new");
        keys.push(key);
    }
    let mut rooms = vec![node.lobby()];
    for (key, public) in [(keys[0], true), (keys[1], true), (keys[2], true), (keys[2], false)] {
        let own = key == KEY;
        let agent = format!("agent {} {public}", rooms.len());
        let attach = Attach {
            agent: agent.as_str().into(),
            stable: false,
            reconnect: false,
            key,
            own,
            opener: (!own).then(|| RoomKey::of(&key.to_string())),
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.clone(),
            capabilities: Vec::new(),
        };
        let Ok(Outcome::Attached(it)) = node.ask(Command::Attach(attach)) else { panic!("valid") };
        let caller = Caller { agent: agent.as_str().into(), key, registration: it.registration };
        let room = NewRoom {
            name: agent,
            description: None,
            parent: None,
            ephemeral: false,
            public,
            encrypted: false,
        };
        let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
        let Ok(Outcome::Room(made)) = made else { panic!("{made:?}") };
        for room in [made.room, node.lobby()] {
            node.ask(Command::Join { caller: caller.clone(), room }).expect("it may");
            node.say(&caller, room).expect("a member");
        }
        rooms.push(made.room);
    }
    node.rows.clear();
    (node, rooms.try_into().expect("five"))
}

#[test]
fn each_room_is_pruned_by_the_tier_of_its_owner() {
    let retention = Retention { own: Some(9 * DAY), low: Some(HOUR * 2), high: Some(DAY) };
    let (mut node, [lobby, own, low, high, private]) = with_rooms(retention);
    node.wait(PRUNE_FIRST_AFTER - Duration::from_secs(1));
    assert_eq!(node.pruned(), [], "its clock may still be set");
    node.wait(Duration::from_secs(1) + PRUNE_EVERY * 20);
    let pruned = node.pruned();
    let keeps = |room: RoomId| -> Vec<Duration> {
        let of_room = pruned.iter().filter(|it| it.0 == room);
        let ago = of_room.map(|it| Duration::from_millis(node.now.wall_ms - it.1));
        ago.map(|it| Duration::from_secs(it.as_secs() / 60 * 60)).collect()
    };
    for (room, expect) in
        [(lobby, 9 * DAY), (own, 9 * DAY), (low, 2 * HOUR), (high, DAY), (private, DAY)]
    {
        let keeps = keeps(room);
        assert!((2..9).contains(&keeps.len()), "spread over the rooms: {pruned:?}");
        assert!(keeps.iter().all(|it| *it == expect), "{keeps:?}, not {expect:?}");
    }
    let known = [lobby, own, low, high, private];
    assert!(pruned.iter().all(|it| known.contains(&it.0)), "no directory: {pruned:?}");
    // Rooms outlive the key that made them.
    node.ask(Command::RevokeKey { key: PRINTS[8] }).expect("it was minted");
    node.wait(PRUNE_EVERY * 10);
    let after = node.pruned();
    let of_low = after.iter().find(|it| it.0 == low).expect("its turn came");
    assert!(node.now.wall_ms - of_low.1 < ms(3 * HOUR));
}

#[test]
fn what_is_kept_for_ever_is_never_pruned_and_nothing_is_younger_than_an_hour() {
    let retention = Retention { own: None, low: Some(Duration::from_secs(1)), high: None };
    let (mut node, [_, _, low, _, _]) = with_rooms(retention);
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
    let pruned = node.pruned();
    assert!(!pruned.is_empty());
    for (room, before_ms) in pruned {
        assert_eq!(room, low);
        assert!(node.now.wall_ms - before_ms >= ms(RETENTION_MIN));
    }
    let (mut node, rooms) = with_rooms(Retention { own: None, low: None, high: Some(DAY) });
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
    let pruned = node.pruned();
    assert!(!pruned.is_empty() && pruned.iter().all(|it| rooms[3..].contains(&it.0)));
    let (mut node, _) = with_rooms(Retention { own: None, low: None, high: None });
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
    assert_eq!(node.pruned(), []);
}

#[test]
fn ephemeral_rooms_are_not_pruned() {
    let mut node = Node::with(1, keeps(Some(DAY)));
    let caller = node.attach("me", false, KEY).expect("free");
    let room = NewRoom {
        name: "fleeting".to_owned(),
        description: None,
        parent: None,
        ephemeral: true,
        public: true,
        encrypted: false,
    };
    let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
    let Ok(Outcome::Room(made)) = made else { panic!("{made:?}") };
    node.ask(Command::Join { caller: caller.clone(), room: made.room }).expect("public");
    node.say(&caller, made.room).expect("a member");
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
    assert_eq!(node.pruned(), []);
}

#[test]
fn a_clock_that_jumped_drops_nothing_until_it_is_back() {
    let retention = Retention { own: Some(DAY), low: None, high: None };
    for ahead in [true, false] {
        let (mut node, _) = with_rooms(retention);
        let jump = ms(2 * DAY);
        node.now.wall_ms = if ahead { node.now.wall_ms + jump } else { node.now.wall_ms - jump };
        node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
        assert_eq!(node.pruned(), []);
        let alarms: Vec<bool> = node
            .effects
            .iter()
            .filter_map(|it| match it {
                Effect::Alarm(Alarm::ClockJumped { ahead, .. }) => Some(*ahead),
                _ => None,
            })
            .collect();
        assert_eq!(alarms, [ahead], "said once");
        node.now.wall_ms = if ahead { node.now.wall_ms - jump } else { node.now.wall_ms + jump };
        node.wait(PRUNE_EVERY * 4);
        assert!(!node.pruned().is_empty());
    }
}

#[test]
fn what_is_gone_counts_as_delivered_and_as_said() {
    let mut late = Late::new(2 * DAY, Some(DAY));
    late.hear_bare(1);
    let lobby = late.node.lobby();
    let [here, there] =
        [&late.node, &late.founder].map(|it| &it.engine.known.rooms[&lobby].replica.record);
    assert_eq!((here.delivered, here.last_activity_ms), (3, there.last_activity_ms));
    let spoke = |it: &crate::api::batch::RoomRecord| it.spoke.map(|it| (it.clock, it.log));
    assert!(spoke(here).is_some());
    assert_eq!(spoke(here), spoke(there));
}

/// Two entries of somebody, without their bodies, of which the first had its number before it came.
#[test]
fn what_is_gone_is_foretold_no_more_and_moves_the_turn_only_if_it_was_chat() {
    let mut node = Node::with(2, keeps(Some(DAY)));
    let mut founder = Liar::new(FOUNDER);
    let mut run = super::pending::run(&node, 5, (1, 2)).run().clone();
    run.entries[1].facts.kind = THINKING;
    let run = bare(run.seal(node.secret.mesh_id(), &identity(5)).run());
    node.founder_writes(&mut founder, &ordered(Era::HOME, 1, &[(run.log, 1, 1)]));
    node.rows.clear();
    node.hear(&run);
    let foretold = |row: &Change| matches!(row, Change::NumberRange { .. });
    assert_eq!(node.rows.iter().filter(|it| foretold(it)).count(), 1, "the second was not");
    assert!(node.engine.known.rooms[&node.lobby()].order.numbering.foretold.is_empty());
    node.founder_writes(&mut founder, &ordered(Era::HOME, 2, &[(run.log, 2, 1)]));
    let record = &node.engine.known.rooms[&node.lobby()].replica.record;
    assert_eq!((record.tip.0, record.delivered), (2, 2));
    assert_eq!(record.spoke.map(|it| it.clock), Some(run.entries[0].facts.clock));
}

/// Whoever has the key may have minted it before it was this node's own.
#[test]
fn rooms_of_the_nodes_own_key_are_pruned_as_its_own_though_it_was_minted() {
    let retention = Retention { own: Some(9 * DAY), low: Some(HOUR * 2), high: None };
    let mut node = Node::with(1, |config| config.retention = retention);
    let key = PRINTS[8];
    let minted = node.new_key(key, Tier::Low, false);
    node.ask(Command::MintKey(minted)).expect("it is new");
    let owner = node.attach("owner", false, key).expect("free");
    let room = node.create_private(&owner, false);
    node.say(&owner, room).expect("a member");
    node.rows.clear();
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 4);
    let pruned = node.pruned();
    let of_room: Vec<u64> = pruned.into_iter().filter(|it| it.0 == room).map(|it| it.1).collect();
    assert!(!of_room.is_empty());
    assert!(of_room.iter().all(|before_ms| node.now.wall_ms - before_ms >= ms(9 * DAY)));
}

#[test]
fn rooms_of_an_earlier_mesh_are_pruned_in_turn() {
    let (node, [one, other, ..]) = with_rooms(Retention { own: None, low: None, high: None });
    let views = [one, other].map(|room| node.engine.known.view(room).expect("it is there"));
    let mut node = Node::with(2, |config| {
        config.archive = views.to_vec();
        config.retention.own = Some(DAY);
    });
    node.wait(PRUNE_FIRST_AFTER);
    node.pruned();
    node.wait(PRUNE_EVERY * 20);
    let pruned = node.pruned();
    // Rooms of the mesh in which nothing was said cost a look.
    let of = |room| pruned.iter().filter(|it| it.0 == room).count();
    assert!(of(one) > 3 && of(one).abs_diff(of(other)) <= 1, "{pruned:?}");
    assert!(pruned.windows(2).all(|it| it[0].0 != it[1].0));
    assert!(pruned.iter().all(|(_, before_ms)| node.now.wall_ms - before_ms >= ms(DAY)));
}

#[test]
fn each_room_of_an_earlier_mesh_is_pruned_by_the_tier_of_its_own_owner() {
    let (node, rooms) = with_rooms(Retention { own: None, low: None, high: None });
    let [own, high] = [rooms[1], rooms[3]];
    let views = [own, high].map(|room| node.engine.known.view(room).expect("it is there"));
    let mut node = Node::with(2, |config| {
        config.archive = views.to_vec();
        config.retention = Retention { own: Some(DAY), low: None, high: Some(3 * DAY) };
    });
    let key = node.new_key(PRINTS[9], Tier::High, false);
    node.ask(Command::MintKey(key)).expect("it is new");
    node.wait(PRUNE_FIRST_AFTER + PRUNE_EVERY * 20);
    let pruned = node.pruned();
    for (room, keep) in [(own, DAY), (high, 3 * DAY)] {
        let mut of_room = pruned.iter().filter(|it| it.0 == room).peekable();
        assert!(of_room.peek().is_some());
        let days = of_room.map(|it| (node.now.wall_ms - it.1) / ms(DAY));
        assert!(days.into_iter().all(|days| days == ms(keep) / ms(DAY)), "{pruned:?}");
    }
}
