//! Votes, over a few nodes.

use super::{
    disk::stored,
    world::{Liar, STEP, World},
    *,
};
use crate::{
    api::{
        agenda::{NewVote, VoteResult, VoteView},
        event::RoomEvent,
        rules::Field,
    },
    fold::act::Fold as _,
    limits::{
        RECONNECT_WITHIN, VOTE_CLOSE_GRACE, VOTE_COLLECT, VOTE_FOR_MAX, VOTE_NEWS_FOR,
        VOTE_SHOW_WITHIN, VOTES_OPEN_PER_AGENT_MAX, VOTES_OPEN_PER_LOG_MAX, VOTES_PER_LOG_MAX,
    },
    name::id::{EntryRef, MessageId},
    wire::acts::{BallotCast, BallotsShown, Shown, VoteAct, VoteClosed},
};

impl World {
    pub(super) fn create(&mut self, n: usize, duration_secs: Option<u64>) -> MessageId {
        match self.try_create(n, |vote| vote.duration_secs = duration_secs) {
            Ok(view) => view.vote,
            Err(refused) => panic!("{refused}"),
        }
    }

    fn try_create(
        &mut self,
        n: usize,
        change: impl FnOnce(&mut NewVote),
    ) -> Result<VoteView, Refused> {
        let mut vote = NewVote {
            room: self.lobby(),
            title: "what".to_owned(),
            description: None,
            options: vec!["yes".to_owned(), "no".to_owned()],
            duration_secs: None,
        };
        change(&mut vote);
        let caller = self.callers[n].clone();
        match self.ask(n, Command::CreateVote { caller, vote })? {
            Outcome::Vote(view) => Ok(*view),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn cast(
        &mut self,
        n: usize,
        vote: MessageId,
        option: u64,
    ) -> Result<(usize, usize), Refused> {
        let caller = self.callers[n].clone();
        match self.ask(n, Command::CastVote { caller, vote, option })? {
            Outcome::Cast { cast, eligible } => Ok((cast, eligible)),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn view(&mut self, n: usize, vote: MessageId) -> VoteView {
        match self.ask(n, Command::GetVote { by: KEY.into(), vote }) {
            Ok(Outcome::Vote(view)) => *view,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn tallies(&mut self, vote: MessageId) -> Vec<Option<Vec<u64>>> {
        (0..self.nodes.len()).map(|n| self.view(n, vote).tally).collect()
    }

    /// How many votes members of a node were told of.
    fn opened(&self, n: usize) -> usize {
        self.told[n].iter().filter(|it| matches!(it, RoomEvent::VoteOpened(_))).count()
    }

    /// The results that they were told.
    pub(super) fn ended(&self, n: usize) -> Vec<VoteResult> {
        let ended = self.told[n].iter().filter_map(|it| match it {
            RoomEvent::VoteEnded(it) => Some((**it).clone()),
            _ => None,
        });
        ended.collect()
    }

    pub(super) fn leave(&mut self, n: usize) {
        let (caller, room) = (self.callers[n].clone(), self.lobby());
        self.ask(n, Command::Leave { caller, room }).expect("a member");
    }

    /// The acts of votes that have left nodes so far.
    fn acts(&self) -> Vec<VoteAct> {
        let runs = self.said.iter().filter_map(|message| match message {
            Message::Runs(runs) => Some(runs),
            _ => None,
        });
        let entries = runs.flatten().flat_map(|run| &run.entries);
        let bodies = entries.filter_map(|entry| match &entry.body {
            Carried::Here(body) => Some(Body::decode(entry.facts.kind, body)),
            Carried::Apart { .. } | Carried::Gone(_) => None,
        });
        bodies
            .filter_map(|body| if let Body::Vote(act) = body { Some(act) } else { None })
            .collect()
    }

    pub(super) fn closes(&self) -> usize {
        self.acts().iter().filter(|it| matches!(it, VoteAct::Closed(_))).count()
    }

    pub(super) fn shown(&self) -> usize {
        self.acts().iter().filter(|it| matches!(it, VoteAct::Shown(_))).count()
    }

    /// The place of a vote, and those of the ballots in it, as node `n` knows them.
    pub(super) fn places(&self, n: usize, vote: MessageId) -> (EntryRef, Vec<EntryRef>) {
        let room = &self.nodes[n].engine.known.rooms[&self.lobby()];
        let known =
            room.folds.votes.all().find(|it| it.id(self.lobby()) == vote).expect("it is known");
        let close = known.close(|_| true);
        let place =
            |(log, seq): &(u32, u64)| EntryRef { log: close.logs[*log as usize], seq: *seq };
        (known.place(), close.ballots.iter().map(place).collect())
    }
}

// Refusals.

#[test]
fn create_vote_is_refused_with_the_field_that_is_wrong() {
    type Change = fn(&mut NewVote);
    let mut world = World::new(1);
    let wrong: [(Field, Change); 10] = [
        (Field::Title, |it| it.title = "  ".to_owned()),
        (Field::Title, |it| it.title = "x".repeat(1_025)),
        (Field::Description, |it| it.description = Some("x".repeat(4_097))),
        (Field::Options, |it| it.options.truncate(1)),
        (Field::Options, |it| it.options = vec!["x".to_owned(); 65]),
        (Field::Options, |it| it.options[0].clear()),
        (Field::Options, |it| it.options[0] = " ".to_owned()),
        (Field::Options, |it| it.options[1] = "x".repeat(257)),
        (Field::Duration, |it| it.duration_secs = Some(0)),
        (Field::Duration, |it| it.duration_secs = Some(u64::MAX)),
    ];
    for (field, change) in wrong {
        match world.try_create(0, change) {
            Err(Refused::Field(broken)) => assert_eq!(broken.field, field, "{broken}"),
            other => panic!("{field:?}: {other:?}"),
        }
    }
    assert!(world.acts().is_empty(), "nothing half done stays behind");
    world.try_create(0, |it| it.duration_secs = Some(30 * 24 * 3_600)).expect("the longest");
    let nowhere = world.try_create(0, |it| it.room = RoomId([9; 16]));
    assert_eq!(nowhere.expect_err("no such room"), Refused::NoRoom);
    world.leave(0);
    assert_eq!(world.try_create(0, |_| {}).expect_err("left"), Refused::NotMember);
}

#[test]
fn so_many_votes_may_be_open_and_no_more() {
    let mut world = World::new(2);
    let first = world.create(0, None);
    let own = world.callers[0].clone();
    let others = VOTES_OPEN_PER_LOG_MAX / VOTES_OPEN_PER_AGENT_MAX;
    for n in 0..others {
        if n > 0 {
            let caller = world.nodes[0].attach(&format!("more{n}"), false, KEY).expect("free");
            let room = world.lobby();
            world.ask(0, Command::Join { caller: caller.clone(), room }).expect("public");
            world.callers[0] = caller;
        }
        for _ in usize::from(n == 0)..VOTES_OPEN_PER_AGENT_MAX {
            world.create(0, None);
        }
        let refused = world.try_create(0, |_| {}).expect_err("too many of one agent");
        assert!(refused.to_string().contains("your votes"), "{refused}");
    }
    let caller = world.nodes[0].attach("one more", false, KEY).expect("free");
    let room = world.lobby();
    world.ask(0, Command::Join { caller: caller.clone(), room }).expect("public");
    world.callers[0] = caller;
    let refused = world.try_create(0, |_| {}).expect_err("too many");
    assert!(refused.to_string().contains("too many votes are open"), "{refused}");
    world.callers[0] = own;
    world.create(1, None);
    world.cast(0, first, 0).expect("eligible");
    world.cast(1, first, 0).expect("eligible");
    world.create(0, None);
}

#[test]
fn cast_vote_is_refused_in_the_order_of_the_specification() {
    let mut world = World::new(2);
    assert_eq!(world.cast(0, MessageId([1; 16]), 9).expect_err("unknown"), Refused::NoVote);
    let vote = world.create(0, None);
    let late = world.nodes[0].attach("late", false, KEY).expect("free");
    let late_casts = Command::CastVote { caller: late.clone(), vote, option: 9 };
    assert_eq!(world.ask(0, late_casts.clone()).expect_err("not in"), Refused::NotMember);
    let room = world.lobby();
    world.ask(0, Command::Join { caller: late, room }).expect("public");
    assert_eq!(world.ask(0, late_casts.clone()).expect_err("came later"), Refused::NotEligible);
    let no_option = Refused::NoOption { max: 1 };
    assert_eq!(world.cast(0, vote, 2).expect_err("two options"), no_option);
    assert_eq!(world.cast(0, vote, u64::MAX).expect_err("two options"), no_option);
    assert_eq!(world.cast(0, vote, 1), Ok((1, 2)), "the ballot was not used up");
    assert_eq!(world.cast(0, vote, 1).expect_err("again"), Refused::AlreadyVoted);
    world.leave(0);
    assert_eq!(world.cast(0, vote, 1).expect_err("left"), Refused::NotMember);
    assert_eq!(world.cast(1, vote, 1), Ok((2, 2)));
    assert_eq!(world.cast(0, vote, 9).expect_err("closed"), Refused::VoteClosed);
    assert_eq!(world.ask(0, late_casts).expect_err("closed"), Refused::VoteClosed);
}

#[test]
fn votes_of_a_room_of_another_key_are_neither_seen_nor_cast_in() {
    let mut world = World::new(1);
    let caller = world.callers[0].clone();
    let room = NewRoom {
        name: "mine".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let made = world.ask(0, Command::CreateRoom { caller: caller.clone(), room });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    world.ask(0, Command::Join { caller, room: view.room }).expect("its owner");
    let vote = world.try_create(0, |it| it.room = view.room).expect("a member").vote;
    let other = KeyPrint([2; 16]);
    let stranger = world.nodes[0].attach("stranger", false, other).expect("free");
    let cast = Command::CastVote { caller: stranger, vote, option: 0 };
    assert_eq!(world.ask(0, cast).expect_err("not theirs"), Refused::NotYours);
    let get = Command::GetVote { by: other.into(), vote };
    assert_eq!(world.ask(0, get).expect_err("not theirs"), Refused::NotYours);
    let list = Command::ListVotes { by: other.into(), room: view.room, limit: 20 };
    assert_eq!(world.ask(0, list).expect_err("not theirs"), Refused::NotYours);
    assert!(world.acts().is_empty(), "nor does it leave the node");
    // With one member, who votes, it is over at once: nobody else is waited for.
    assert_eq!(world.cast(0, vote, 1), Ok((1, 1)));
    assert_eq!(world.view(0, vote).tally, Some(vec![0, 1]));
}

#[test]
fn an_agent_that_moved_votes_once() {
    let mut world = World::new(2);
    let vote = world.create(0, None);
    world.cast(1, vote, 0).expect("eligible");
    let attach = Attach {
        agent: "agent1".into(),
        stable: false,
        reconnect: true,
        key: KEY,
        own: true,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: "agent1".to_owned(),
        capabilities: Vec::new(),
    };
    let Ok(Outcome::Attached(it)) = world.ask(0, Command::Attach(attach)) else { panic!("moves") };
    let caller = Caller { agent: "agent1".into(), key: KEY, registration: it.registration };
    let again = world.ask(0, Command::CastVote { caller, vote, option: 1 });
    assert_eq!(again.expect_err("from another node"), Refused::AlreadyVoted);
}

#[test]
fn votes_are_listed_with_the_newest_first() {
    let mut world = World::new(2);
    let mut votes: Vec<MessageId> = (0..5).map(|n| world.create(n % 2, None)).collect();
    votes.reverse();
    for (limit, expected) in [(20, &votes[..]), (2, &votes[..2]), (0, &[])] {
        let list = Command::ListVotes { by: KEY.into(), room: world.lobby(), limit };
        let Ok(Outcome::Votes(views)) = world.ask(1, list) else { panic!("anybody may") };
        assert_eq!(views.iter().map(|it| it.vote).collect::<Vec<_>>(), expected);
    }
}

// How they end.

#[test]
fn a_vote_ends_when_everybody_has_voted_and_nothing_is_open_before() {
    let mut world = World::new(3);
    let vote = world.create(1, None);
    for n in 0..3 {
        assert_eq!(world.opened(n), 1, "members of node {n} are told");
    }
    world.cast(0, vote, 1).expect("eligible");
    world.cast(1, vote, 0).expect("eligible");
    for n in 0..3 {
        let view = world.view(n, vote);
        assert_eq!((view.cast, view.closed, view.tally), (2, false, None));
    }
    assert_eq!((world.closes(), world.shown()), (0, 0), "ballots are sealed");
    assert_eq!(world.cast(2, vote, 1), Ok((3, 3)));
    assert_eq!(world.tallies(vote), vec![Some(vec![1, 2]); 3]);
    assert_eq!((world.closes(), world.shown()), (1, 3));
    world.pass(VOTE_SHOW_WITHIN * 2);
    for n in 0..3 {
        let [result] = &world.ended(n)[..] else { panic!("once: {:?}", world.ended(n)) };
        let ballots: Vec<(&str, u32)> =
            result.ballots.iter().map(|(agent, _, choice)| (&**agent, *choice)).collect();
        assert_eq!(ballots, vec![("agent0", 1), ("agent1", 0), ("agent2", 1)]);
        assert_eq!(result.vote, world.view(n, vote));
        assert_eq!(result.vote.notes, Default::default());
        let engine = &world.nodes[n].engine;
        assert!(engine.voting.waiting.is_empty(), "node {n}: there is nothing to look at any more");
        assert!(!engine.known.rooms[&world.lobby()].folds.votes.is_waiting());
    }
}

#[test]
fn a_vote_ends_at_its_deadline_with_the_ballots_that_are_in() {
    let mut world = World::new(2);
    let vote = world.create(0, Some(5));
    world.cast(1, vote, 1).expect("eligible");
    world.pass(Duration::from_millis(4_500));
    assert!(!world.view(1, vote).closed);
    world.pass(Duration::from_millis(600));
    assert_eq!(world.cast(0, vote, 1).expect_err("too late"), Refused::VoteClosed);
    world.pass(VOTE_COLLECT);
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 1]); 2]);
    assert_eq!((world.ended(0).len(), world.ended(1).len()), (1, 1));
    assert_eq!(world.view(0, vote).cast, 1);
}

#[test]
fn a_vote_that_somebody_never_casts_in_ends_after_a_month() {
    let mut world = World::new(2);
    let vote = world.create(0, None);
    world.cast(1, vote, 1).expect("eligible");
    let month_ms = u64::try_from(VOTE_FOR_MAX.as_millis()).expect("fits");
    for node in &mut world.nodes {
        node.now.wall_ms += month_ms - 10_000;
    }
    world.pass(Duration::from_secs(5));
    assert!(!world.view(0, vote).closed);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 1]); 2]);
    assert_eq!(world.view(0, vote).closes_ms, None);
}

#[test]
fn the_next_in_rank_closes_what_a_dead_node_opened() {
    let mut world = World::new(4);
    let (vote, endless) = (world.create(0, Some(10)), world.create(0, None));
    for n in 0..3 {
        world.cast(n, vote, 0).expect("eligible");
        world.cast(n, endless, 1).expect("eligible");
    }
    world.down.insert(0);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.closes(), 0);
    world.pass(VOTE_CLOSE_GRACE + Duration::from_secs(4));
    assert_eq!(world.closes(), 1, "one of three");
    // The dead node's own ballot counts, but nobody can open it.
    world.pass(VOTE_SHOW_WITHIN);
    for n in 1..4 {
        let view = world.view(n, vote);
        assert_eq!((view.tally, view.cast, view.notes.unopened), (Some(vec![2, 0]), 3, 1));
        assert!(!world.view(n, endless).closed, "it may come back");
    }
    world.pass(RECONNECT_WITHIN);
    assert_eq!(world.closes(), 2, "one of three");
    for n in 1..4 {
        assert_eq!(world.view(n, endless).tally, Some(vec![0, 2]));
        assert_eq!(world.ended(n).len(), 2);
    }
}

#[test]
fn of_many_that_could_close_what_a_dead_node_opened_the_first_in_rank_does() {
    let mut world = World::new(8);
    world.create(0, Some(2));
    world.down.insert(0);
    world.pass(Duration::from_secs(3));
    let (room, gone) = (world.lobby(), world.nodes[0].engine.known.cx.me);
    let first = (1..8).find(|n| {
        let node = &world.nodes[*n];
        let heirs = node.engine.known.rooms[&room].replica.eligible(&node.engine.known.cx);
        node.engine.known.live.rank(node.now.mono, heirs, gone) == 0
    });
    let mine = world.nodes[first.expect("one is")].engine.known.rooms[&room].replica.mine;
    world.pass(VOTE_CLOSE_GRACE + Duration::from_secs(4));
    assert_eq!(world.closes(), 1);
    let runs = world.said.iter().filter_map(|it| match it {
        Message::Runs(runs) => runs.iter().find(|run| run.room == room && run.log.author != gone),
        _ => None,
    });
    assert_eq!(runs.map(|run| run.log).next_back(), Some(mine));
}

#[test]
fn a_vote_of_which_nobody_else_knows_ends_at_its_deadline_and_no_later() {
    for nodes in [1, 2] {
        let mut world = World::new(nodes);
        let mut room = world.lobby();
        if nodes == 2 {
            let caller = world.callers[0].clone();
            let own = NewRoom { public: false, ..rooms::new("own", false) };
            room = rooms::make(&mut world.nodes[0], &caller, own).expect("it is new");
            world.ask(0, Command::Join { caller, room }).expect("its owner");
        }
        let made = world.try_create(0, |it| (it.room, it.duration_secs) = (room, Some(2)));
        made.expect("a member");
        world.pass(Duration::from_millis(1_800));
        assert_eq!(world.ended(0).len(), 0);
        world.pass(Duration::from_millis(400));
        assert_eq!(world.ended(0).len(), 1, "{nodes}");
    }
}

#[test]
fn a_vote_with_a_deadline_waits_for_it_whoever_is_gone() {
    let mut world = World::new(3);
    let vote = world.create(0, Some(600));
    world.cast(1, vote, 1).expect("eligible");
    world.down.insert(0);
    world.pass(RECONNECT_WITHIN + VOTE_CLOSE_GRACE * 2);
    assert_eq!(world.closes(), 0);
    assert!(!world.view(1, vote).closed && !world.view(2, vote).closed);
    for node in &mut world.nodes {
        node.now.wall_ms += 470_000;
    }
    world.pass(VOTE_CLOSE_GRACE + Duration::from_secs(4));
    assert_eq!(world.closes(), 1);
}

#[test]
fn a_close_of_another_is_believed_when_the_opener_has_had_its_time() {
    let mut world = World::new(2);
    let vote = world.create(0, Some(2));
    let (place, _) = world.places(1, vote);
    // It lives, but what it writes does not come.
    world.down.insert(0);
    let (me, boot) = (world.nodes[0].engine.known.cx.me, world.nodes[0].engine.known.cx.boot);
    let lives = |world: &mut World, time: Duration| {
        for _ in 0..time.as_millis() / STEP.as_millis() {
            let tick = u64::try_from(world.nodes[1].now.mono.as_millis()).expect("short");
            let it = beacon(me, boot, tick, 0);
            let message = Message::Beacon(Signed { value: it, signature: [0; 64] });
            world.nodes[1].give(Input::Message { from: me, message });
            world.pass(STEP);
        }
        let room = &world.nodes[1].engine.known.rooms[&world.lobby()];
        room.folds.votes.get(place).expect("known").is_closed()
    };
    assert!(!lives(&mut world, Duration::from_millis(2_500)));
    let close = VoteAct::Closed(VoteClosed { vote: place, logs: vec![], ballots: vec![] });
    let (_, run) = Liar::new(9).write(&world.nodes[1], &Body::Vote(close));
    world.nodes[1].hear(&run);
    assert!(!lives(&mut world, VOTE_CLOSE_GRACE - Duration::from_secs(1)));
    assert!(lives(&mut world, Duration::from_secs(1)));
}

#[test]
fn a_complete_vote_of_a_dead_node_does_not_wait() {
    let mut world = World::new(3);
    let vote = world.create(0, None);
    world.cast(0, vote, 0).expect("eligible");
    world.down.insert(0);
    world.cast(1, vote, 0).expect("eligible");
    world.cast(2, vote, 0).expect("eligible");
    world.pass(VOTE_CLOSE_GRACE + Duration::from_secs(5));
    assert_eq!(world.closes(), 1);
    world.pass(VOTE_SHOW_WITHIN);
    assert_eq!(world.view(1, vote).tally, Some(vec![2, 0]));
    assert_eq!(world.view(2, vote).tally, Some(vec![2, 0]));
}

#[test]
fn a_late_opening_corrects_the_tally_and_tells_nobody_again() {
    let mut world = World::new(3);
    let vote = world.create(0, None);
    world.cast(0, vote, 0).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    world.cast(1, vote, 0).expect("eligible");
    assert_eq!(world.ended(0).len(), 1);
    let vote = world.create(0, None);
    world.cast(0, vote, 0).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    world.groups[2] = 1;
    world.cast(1, vote, 0).expect("eligible");
    assert_eq!(world.view(0, vote).tally, None, "one ballot is still sealed");
    world.pass(VOTE_SHOW_WITHIN + STEP);
    for n in 0..2 {
        let view = world.view(n, vote);
        assert_eq!((view.tally, view.notes.unopened), (Some(vec![2, 0]), 1));
        assert_eq!(world.ended(n).len(), 2);
    }
    world.groups[2] = 0;
    world.pass(VOTE_SHOW_WITHIN * 2);
    for n in 0..2 {
        let view = world.view(n, vote);
        assert_eq!((view.tally, view.notes.unopened), (Some(vec![2, 1]), 0));
        assert_eq!(view.notes.corrected, 1);
        assert_eq!(world.ended(n).len(), 2, "never a second result");
    }
    let other = world.view(2, vote);
    assert_eq!((other.tally, other.notes.corrected), (Some(vec![2, 1]), 0));
    assert_eq!(world.ended(2).len(), 2, "it is told after the heal");
}

#[test]
fn of_two_closes_in_a_split_the_opener_s_counts_everywhere() {
    let mut world = World::new(4);
    let vote = world.create(0, Some(5));
    world.groups = vec![0, 0, 1, 1];
    world.cast(0, vote, 0).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    world.pass(Duration::from_secs(5) + VOTE_CLOSE_GRACE + Duration::from_secs(5));
    assert_eq!(world.closes(), 2);
    assert_eq!(world.view(1, vote).tally, Some(vec![1, 0]));
    assert_eq!(world.view(3, vote).tally, Some(vec![0, 1]));
    world.groups = vec![0; 4];
    world.pass(VOTE_SHOW_WITHIN * 2);
    for n in 0..4 {
        let view = world.view(n, vote);
        assert_eq!((view.tally, view.cast, view.notes.late), (Some(vec![1, 0]), 1, 1));
        assert_eq!(view.notes.corrected, usize::from(n > 1));
        assert_eq!(world.ended(n).len(), 1);
    }
}

#[test]
fn an_opener_that_was_cut_off_closes_with_all_ballots_once_it_hears_of_another_close() {
    let mut world = World::new(3);
    let vote = world.create(0, None);
    world.groups = vec![0, 1, 1];
    world.cast(0, vote, 0).expect("eligible");
    world.cast(1, vote, 1).expect("eligible");
    world.pass(RECONNECT_WITHIN + VOTE_CLOSE_GRACE + Duration::from_secs(5));
    assert_eq!(world.view(2, vote).tally, Some(vec![0, 1]));
    assert!(!world.view(0, vote).closed);
    world.groups = vec![0; 3];
    world.pass(VOTE_SHOW_WITHIN);
    assert_eq!(world.tallies(vote), vec![Some(vec![1, 1]); 3]);
    assert_eq!(world.view(2, vote).notes.corrected, 1);
    assert!((0..3).all(|n| world.ended(n).len() == 1));
}

#[test]
fn a_result_waits_for_somebody_to_tell() {
    let mut world = World::new(2);
    let vote = world.create(0, None);
    world.cast(1, vote, 0).expect("eligible");
    let (caller, seen) = (world.callers[1].clone(), Vec::new());
    world.ask(1, Command::Detach { caller, seen }).expect("it may");
    world.cast(0, vote, 0).expect("eligible");
    world.pass(Duration::from_secs(5));
    assert_eq!((world.ended(0).len(), world.ended(1).len()), (1, 0));
    assert_eq!(world.view(1, vote).tally, Some(vec![2, 0]), "it may be asked for");
    world.attach(1);
    world.pass(STEP);
    assert_eq!(world.ended(1).len(), 1);
}

#[test]
fn what_ended_long_ago_is_no_news_but_can_be_asked_for() {
    let mut world = World::new(2);
    world.groups[1] = 1;
    let vote = world.create(0, Some(2));
    world.cast(0, vote, 1).expect("eligible");
    world.pass(VOTE_COLLECT * 4);
    let day_ms = u64::try_from(VOTE_NEWS_FOR.as_millis()).expect("fits");
    world.nodes[1].now.wall_ms += day_ms;
    world.nodes[1].now.wall_us += day_ms * 1_000;
    world.groups[1] = 0;
    world.pass(VOTE_SHOW_WITHIN * 2);
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 1]); 2]);
    assert_eq!((world.opened(0), world.opened(1)), (1, 0));
    assert_eq!((world.ended(0).len(), world.ended(1).len()), (1, 0));
}

#[test]
fn of_what_is_forgotten_nothing_is_kept() {
    let mut world = World::new(1);
    let votes: Vec<MessageId> = (0..=VOTES_PER_LOG_MAX)
        .map(|_| {
            let vote = world.create(0, None);
            world.cast(0, vote, 1).expect("eligible");
            vote
        })
        .collect();
    let get = |vote| Command::GetVote { by: KEY.into(), vote };
    for _ in 0..2 {
        assert_eq!(world.ask(0, get(votes[0])).expect_err("forgotten"), Refused::NoVote);
        world.ask(0, get(votes[1])).expect("known");
        assert_eq!(stored(&world.nodes[0].rows).notes.len(), VOTES_PER_LOG_MAX);
        assert_eq!(world.nodes[0].engine.known.index.votes.len(), VOTES_PER_LOG_MAX);
        world.restart(0);
    }
    assert_eq!(world.ended(0).len(), VOTES_PER_LOG_MAX + 1);
}

// Lies.

#[test]
fn nobody_opens_a_ballot_because_a_liar_closes_early() {
    let mut world = World::new(3);
    let vote = world.create(0, None);
    world.cast(1, vote, 1).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    let (place, ballots) = world.places(0, vote);
    let logs = ballots.iter().map(|it| it.log).collect();
    let ballots = (0..).zip(ballots.iter().map(|it| it.seq)).collect();
    let close = VoteAct::Closed(VoteClosed { vote: place, logs, ballots });
    let (_, run) = Liar::new(9).write(&world.nodes[0], &Body::Vote(close));
    for n in [1, 2] {
        world.nodes[n].hear(&run);
    }
    world.pass(VOTE_SHOW_WITHIN * 2);
    assert_eq!(world.shown(), 0);
    assert_eq!(world.view(1, vote).tally, None);
    assert!(!world.view(1, vote).closed);
    // Its opener ends it, with all ballots there are: they may have been opened somewhere.
    world.nodes[0].hear(&run);
    world.carry();
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 2]); 3]);
}

#[test]
fn a_ballot_that_disagrees_with_its_commitment_is_refused() {
    let mut world = World::new(2);
    let vote = world.create(0, None);
    world.cast(0, vote, 0).expect("eligible");
    let (place, _) = world.places(0, vote);
    let mut liar = Liar::new(9);
    let (room, agent) = (world.lobby(), "agent1".into());
    let commitment = BallotCast::commitment(room, place, &agent, 0, &[5; 32]);
    for node in &mut world.nodes {
        node.engine.known.directory.assume_shown(identity(9).node_id(), KEY);
    }
    let ballot = BallotCast { vote: place, agent, commitment, key: Some(KEY) };
    let (at, run) = liar.write(&world.nodes[0], &Body::Vote(VoteAct::Cast(ballot)));
    world.nodes[0].hear(&run);
    world.carry();
    assert_eq!(world.closes(), 1, "everybody has cast");
    let show = |choice, nonce| {
        let ballots = vec![Shown { seq: at.seq, choice, nonce }];
        Body::Vote(VoteAct::Shown(BallotsShown { vote: place, ballots }))
    };
    for (choice, nonce) in [(1, [5; 32]), (0, [6; 32])] {
        let (_, run) = liar.write(&world.nodes[0], &show(choice, nonce));
        world.nodes[0].hear(&run);
    }
    assert_eq!(
        crate::engine::listing::status(
            &world.nodes[0].engine.known,
            crate::api::status::RecordStatus::default()
        )
        .faults
        .void,
        2
    );
    world.pass(VOTE_SHOW_WITHIN + STEP);
    let view = world.view(0, vote);
    assert_eq!((view.tally, view.notes.unopened), (Some(vec![1, 0]), 1));
    let (_, run) = liar.write(&world.nodes[0], &show(0, [5; 32]));
    world.nodes[0].hear(&run);
    let view = world.view(0, vote);
    assert_eq!((view.tally, view.notes.corrected), (Some(vec![2, 0]), 1));
}

#[test]
fn acts_that_name_what_is_no_vote_mean_nothing() {
    let mut world = World::new(1);
    let vote = world.create(0, None);
    world.cast(0, vote, 0).expect("eligible");
    let (place, ballots) = world.places(0, vote);
    let mut liar = Liar::new(9);
    for (n, vote) in (1..).zip([ballots[0], EntryRef { log: liar.log(), seq: 1 }, place]) {
        let logs = vec![vote.log];
        // An index that leads nowhere, and one that does.
        let close = VoteClosed { vote, logs, ballots: vec![(7, 1), (0, 1)] };
        let (_, run) = liar.write(&world.nodes[0], &Body::Vote(VoteAct::Closed(close)));
        world.nodes[0].hear(&run);
        assert_eq!(
            world.nodes[0].engine.known.rooms[&world.lobby()].replica.logs.head_of(liar.log()),
            n
        );
    }
    assert_eq!(world.view(0, vote).tally, Some(vec![1, 0]));
}

// Restarts.

#[test]
fn a_vote_goes_on_over_restarts_at_every_stage() {
    for opener in [0, 2] {
        let mut world = World::new(3);
        let vote = world.create(opener, None);
        world.restart(opener);
        world.restart(1);
        assert_eq!(world.cast(1, vote, 1), Ok((1, 3)));
        world.restart(1);
        assert_eq!(world.cast(1, vote, 0).expect_err("again"), Refused::AlreadyVoted);
        world.restart(opener);
        assert_eq!(world.view(opener, vote).cast, 1);
        world.cast(opener, vote, 0).expect("eligible");
        world.down.insert(1);
        let other = 2 - opener;
        world.cast(other, vote, 0).expect("eligible");
        assert_eq!(world.view(opener, vote).tally, None, "closed, and one ballot sealed");
        world.restart(opener);
        world.restart(other);
        let view = world.view(opener, vote);
        assert!(view.notes.closing && !view.closed, "a closed vote has a tally");
        world.pass(VOTE_SHOW_WITHIN + STEP);
        assert_eq!(world.view(opener, vote).tally, Some(vec![2, 0]));
        assert_eq!(world.ended(opener).len(), 1);
        // It comes back, and hears of the close: it still knows what its agent chose.
        let closed: Vec<Run> = world
            .said
            .iter()
            .filter_map(|it| if let Message::Runs(runs) = it { Some(runs.clone()) } else { None })
            .flatten()
            .collect();
        world.restart(1);
        for run in &closed {
            world.nodes[1].hear(run);
        }
        world.pass(STEP);
        assert_eq!(world.tallies(vote), vec![Some(vec![2, 1]); 3]);
        for n in 0..3 {
            world.restart(n);
        }
        world.pass(VOTE_SHOW_WITHIN * 2);
        for n in 0..3 {
            let view = world.view(n, vote);
            assert_eq!((view.tally, view.notes.corrected), (Some(vec![2, 1]), usize::from(n != 1)));
            assert_eq!(world.ended(n).len(), 1, "opener {opener}, node {n}");
            assert_eq!(world.opened(n), 1);
        }
    }
}

#[test]
fn a_deadline_that_passed_while_the_opener_was_away_is_kept_when_it_is_back() {
    let mut world = World::new(2);
    let vote = world.create(0, Some(5));
    world.cast(0, vote, 0).expect("eligible");
    world.groups[1] = 1;
    world.cast(1, vote, 1).expect("eligible");
    world.down.insert(0);
    world.pass(Duration::from_secs(6));
    world.groups[1] = 0;
    // What was said to it while it was down is lost; it hears it when it is back.
    let held = std::mem::take(&mut world.held);
    world.restart(0);
    assert_eq!(world.closes(), 0, "it listens first");
    world.held.extend(held);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.tallies(vote), vec![Some(vec![1, 1]); 2]);
}

#[test]
fn votes_of_an_ephemeral_room_end_with_it_and_are_nowhere_on_disk() {
    let mut world = World::new(1);
    let caller = world.callers[0].clone();
    let room = NewRoom {
        name: "short".to_owned(),
        description: None,
        parent: None,
        ephemeral: true,
        public: true,
        encrypted: false,
    };
    let made = world.ask(0, Command::CreateRoom { caller: caller.clone(), room });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    let room = view.room;
    world.ask(0, Command::Join { caller: caller.clone(), room }).expect("public");
    let vote = world.try_create(0, |it| it.room = room).expect("a member").vote;
    let other = world.try_create(0, |it| it.room = room).expect("a member").vote;
    world.cast(0, vote, 1).expect("eligible");
    assert_eq!(world.view(0, vote).tally, Some(vec![0, 1]));
    assert!(world.nodes[0].rows.iter().all(|it| !matches!(it, Change::Note { .. })));
    world.ask(0, Command::Leave { caller, room }).expect("a member");
    for vote in [vote, other] {
        let get = world.ask(0, Command::GetVote { by: KEY.into(), vote });
        assert_eq!(get.expect_err("gone"), Refused::NoVote);
    }
    assert!(world.nodes[0].engine.known.index.votes.is_empty());
}
