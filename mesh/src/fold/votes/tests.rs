//! The fold, by itself: whatever is written, by whomever, is the same in every order.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::{
    api::agenda::VoteView,
    limits::{VOTE_BALLOTS_EACH_MAX, VOTE_CLOSES_MAX, VOTE_SHOW_WITHIN},
    name::{
        id::{AgentId, LocalRef, NodeId, RoomId},
        time::Now,
    },
    wire::{
        acts::{BallotCast, BallotsShown, Named, Shown, VoteClosed},
        entry::Facts,
    },
};

const ROOM: RoomId = RoomId([3; 16]);
const LOGS: u8 = 4;
const AGENTS: u8 = 4;
const NOW: Now =
    Now { mono: Duration::from_secs(1_000), wall_ms: 1_000_000, wall_us: 1_000_000_000 };

/// The last is a second log of the author before it, as there are in rooms that are memory only.
fn log(n: u8) -> LogId {
    let second = n == LOGS - 1;
    LogId { author: NodeId([n - u8::from(second); 32]), incarnation: second.into() }
}

fn agent(n: u8) -> AgentId {
    AgentId::from(format!("agent{n}"))
}

fn opened(eligible: u8, options: usize) -> VoteOpened {
    let named = |n| Named { agent: agent(n), name: format!("name{n}") };
    VoteOpened {
        title: "what".to_owned(),
        description: None,
        options: (0..options).map(|n| format!("option {n}")).collect(),
        eligible: (0..eligible).map(named).collect(),
        created_by: agent(0),
        closes_ms: None,
    }
}

/// An act as it is written.
#[derive(Clone, Debug)]
struct Said {
    place: EntryRef,
    clock: u64,
    act: VoteAct,
}

impl Said {
    fn fold(&self, votes: &mut Votes) -> Folded {
        let at = LocalRef { log: 0, seq: self.place.seq };
        let facts = Facts { clock: self.clock, wall_ms: 1, kind: 48, visible: false };
        let written = Written { room: ROOM, place: self.place, at, facts, now: NOW };
        let folded = votes.apply(written, self.act.clone(), &mut Vec::new());
        votes.judge(Revision::default(), |_| true);
        folded
    }

    fn names(&self) -> Vec<EntryRef> {
        crate::wire::entry::Body::Vote(self.act.clone()).names()
    }
}

/// What somebody writes next; indices are taken modulo what there is.
#[derive(Clone, Debug)]
struct Step {
    log: u8,
    what: What,
    /// How far the author's clock leaps.
    leap: u64,
    /// Which vote, and which other thing.
    which: (usize, usize),
}

#[derive(Clone, Debug)]
enum What {
    Open,
    Cast {
        agent: u8,
        choice: u32,
    },
    /// Names these ballots of any vote, by place among all.
    Close(Vec<usize>),
    /// Opens an own ballot; `wrong`: not as it was cast.
    Show {
        wrong: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        1 => Just(What::Open),
        6 => (0..AGENTS + 1, 0u32..3).prop_map(|(agent, choice)| What::Cast { agent, choice }),
        2 => proptest::collection::vec(0usize..40, 0..6).prop_map(What::Close),
        6 => any::<bool>().prop_map(|wrong| What::Show { wrong }),
    ];
    (0..LOGS, what, 1u64..4, (0usize..40, 0usize..40)).prop_map(|(log, what, leap, which)| Step {
        log,
        what,
        leap,
        which,
    })
}

/// A commitment's nonce: anything, as long as its author knows it.
fn nonce_of(place: EntryRef) -> [u8; 32] {
    [place.log.author.0[0] ^ u8::try_from(place.seq % 200).expect("below 200"); 32]
}

/// What the steps come to. Lies are among them: ballots in the name of agents that may not vote, two
/// of one agent, closes that name anything, ballots opened wrongly, of others, before the close.
fn write(steps: &[Step]) -> Vec<Said> {
    let mut out: Vec<Said> = Vec::new();
    let mut heads: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    let mut casts: Vec<(EntryRef, EntryRef, AgentId, u32)> = Vec::new();
    for step in steps {
        let (seq, clock) = heads.get(&step.log).copied().unwrap_or_default();
        let (seq, clock) = (seq + 1, clock + step.leap);
        let place = EntryRef { log: log(step.log), seq };
        let votes = out.iter().filter(|it| matches!(it.act, VoteAct::Opened(_)));
        let votes: Vec<EntryRef> = votes.map(|it| it.place).collect();
        let vote = votes.get(step.which.0 % votes.len().max(1)).copied();
        let act = match (&step.what, vote) {
            (What::Open, _) | (_, None) => VoteAct::Opened(opened(AGENTS, 2)),
            (What::Cast { agent: n, choice }, Some(vote)) => {
                casts.push((place, vote, agent(*n), *choice));
                let commitment =
                    BallotCast::commitment(ROOM, vote, &agent(*n), *choice, &nonce_of(place));
                VoteAct::Cast(BallotCast { vote, agent: agent(*n), commitment, key: None })
            }
            (What::Close(named), Some(vote)) => {
                let named = named.iter().filter_map(|n| out.get(*n)).map(|it| it.place);
                let logs: Vec<LogId> = named.clone().map(|it| it.log).collect();
                let ballots = (0..).zip(named.map(|it| it.seq)).collect();
                VoteAct::Closed(VoteClosed { vote, logs, ballots })
            }
            (What::Show { wrong }, Some(vote)) => {
                let own = casts.iter().filter(|(it, of, ..)| it.log == place.log && *of == vote);
                let own: Vec<_> = own.collect();
                let it = own.get(step.which.1 % own.len().max(1));
                let seq = it.map_or(step.which.1 as u64, |it| it.0.seq);
                let choice = it.map_or(0, |it| it.3) + u32::from(*wrong);
                let nonce = it.map_or([0; 32], |it| nonce_of(it.0));
                VoteAct::Shown(BallotsShown { vote, ballots: vec![Shown { seq, choice, nonce }] })
            }
        };
        heads.insert(step.log, (seq, clock));
        out.push(Said { place, clock, act });
    }
    out
}

/// Some order in which a node may accept them: each log in order, each act after what it names.
fn shuffled(written: &[Said], mut draw: impl FnMut(usize) -> usize) -> Vec<Said> {
    let mut rest: Vec<&Said> = written.iter().collect();
    let mut out: Vec<Said> = Vec::new();
    while !rest.is_empty() {
        let ready: Vec<usize> = (0..rest.len())
            .filter(|i| {
                let it = rest[*i];
                let first = rest.iter().find(|other| other.place.log == it.place.log);
                first.is_some_and(|first| first.place == it.place)
                    && it.names().iter().all(|named| rest.iter().all(|it| it.place != *named))
            })
            .collect();
        let next = ready[draw(ready.len())];
        out.push(rest.remove(next).clone());
    }
    out
}

type Ballots = Vec<(AgentId, String, u32)>;

/// All that can be seen of the votes of a room whose closes count.
fn seen(votes: &mut Votes) -> Vec<(VoteView, Ballots)> {
    for vote in votes.all.values_mut().filter(|vote| vote.has_close()) {
        vote.mark_closed(Duration::ZERO);
    }
    votes.all().map(|vote| (vote.view(ROOM, NOW), vote.result(ROOM, NOW).ballots)).collect()
}

fn folded(written: &[Said]) -> Votes {
    let mut votes = Votes::default();
    for it in written {
        it.fold(&mut votes);
    }
    votes
}

proptest! {
    #[test]
    fn every_order_comes_to_the_same(
        steps in proptest::collection::vec(step(), 1..60),
        draws in proptest::collection::vec(any::<usize>(), 60),
    ) {
        let written = write(&steps);
        let mut draws = draws.into_iter();
        let other = shuffled(&written, |below| draws.next().unwrap_or(0) % below);
        prop_assert_eq!(seen(&mut folded(&written)), seen(&mut folded(&other)));
    }

    #[test]
    fn a_fork_comes_to_the_same_however_much_of_it_was_here(
        steps in proptest::collection::vec(step(), 1..60),
        forked in 0..LOGS,
        fork in 1u64..10,
        held in proptest::array::uniform2(0u64..10),
    ) {
        let written = write(&steps);
        let out = log(forked).author;
        let mut all = folded(&written);
        all.cut(log(forked), fork);
        all.expel(out);
        // Another node had less of the author's logs when it heard of the fork, and takes no more.
        let here = |it: &&Said| {
            let log = it.place.log;
            log.author != out || it.place.seq < held[usize::from(log.incarnation > 0)]
        };
        let here: Vec<Said> = written.iter().filter(here).cloned().collect();
        let mut less = folded(&here);
        less.cut(log(forked), fork);
        less.expel(out);
        // What the author opened itself is not known to all.
        let others = |votes: &Votes| {
            let all = votes.all().filter(|vote| vote.opener() != out);
            all.map(|vote| vote.id(ROOM)).collect::<BTreeSet<_>>()
        };
        let (known, common) = (others(&all), others(&less));
        prop_assert_eq!(&known, &common);
        let seen_of = |votes: &mut Votes| {
            let mut seen = seen(votes);
            seen.retain(|(view, _)| known.contains(&view.vote));
            seen
        };
        let expected = seen_of(&mut all);
        prop_assert_eq!(&seen_of(&mut less), &expected);
        // Nor does it matter whether that was known before, as it is after a start.
        let mut later = Votes::new(BTreeSet::from([out]));
        for it in here.iter().filter(|it| it.place.log != log(forked) || it.place.seq < fork) {
            it.fold(&mut later);
        }
        prop_assert_eq!(&seen_of(&mut later), &expected);
    }

    #[test]
    fn nobody_is_counted_twice_and_only_what_was_chosen_counts(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let written = write(&steps);
        let mut votes = folded(&written);
        for (view, ballots) in seen(&mut votes) {
            let mut agents: Vec<&AgentId> = ballots.iter().map(|it| &it.0).collect();
            agents.sort();
            agents.dedup();
            prop_assert_eq!(agents.len(), ballots.len());
            for (agent, _, choice) in &ballots {
                let cast = written.iter().any(|it| match &it.act {
                    VoteAct::Cast(ballot) => {
                        let hash = |place| {
                            BallotCast::commitment(ROOM, ballot.vote, agent, *choice, &nonce_of(place))
                        };
                        ballot.agent == *agent
                            && MessageIdOf(ballot.vote).id() == view.vote
                            && ballot.commitment == hash(it.place)
                    }
                    VoteAct::Opened(_)
                    | VoteAct::Closed(_)
                    | VoteAct::Shown(_)
                    | VoteAct::Imported(_) => false,
                });
                prop_assert!(cast, "{agent} never chose {choice}");
            }
            let sum: u64 = view.tally.iter().flatten().sum();
            prop_assert_eq!(sum as usize, ballots.len());
        }
    }
}

struct MessageIdOf(EntryRef);

impl MessageIdOf {
    fn id(&self) -> crate::name::id::MessageId {
        crate::name::id::MessageId::new(ROOM, self.0.log, self.0.seq)
    }
}

#[test]
fn nobody_else_can_know_a_nonce_and_it_is_another_for_each_agent_and_vote() {
    let identity = |n: u8| crate::name::identity::Identity::from_seed(&[n; 32]);
    let place = |n, seq| EntryRef { log: log(n), seq };
    let all = [
        nonce(&identity(1), ROOM, place(1, 1), &agent(1)),
        nonce(&identity(2), ROOM, place(1, 1), &agent(1)),
        nonce(&identity(1), RoomId([4; 16]), place(1, 1), &agent(1)),
        nonce(&identity(1), ROOM, place(2, 1), &agent(1)),
        nonce(&identity(1), ROOM, place(1, 2), &agent(1)),
        nonce(&identity(1), ROOM, place(1, 1), &agent(2)),
    ];
    assert_eq!(BTreeSet::from(all).len(), all.len());
    assert_eq!(all[0], nonce(&identity(1), ROOM, place(1, 1), &agent(1)), "it need not be kept");
    let commit =
        |who, choice, nonce| BallotCast::commitment(ROOM, place(1, 1), &agent(who), choice, nonce);
    let all = [commit(1, 0, &[1; 32]), commit(1, 1, &[1; 32]), commit(1, 0, &[2; 32])];
    let all = BTreeSet::from([all[0], all[1], all[2], commit(2, 0, &[1; 32])]);
    assert_eq!(all.len(), 4);
}

/// Writes acts of several logs in order.
#[derive(Default)]
struct Script {
    votes: Votes,
    heads: BTreeMap<u8, u64>,
    clock: u64,
}

impl Script {
    /// The votes of the news that are not known any more.
    fn forgotten(&mut self) -> Vec<EntryRef> {
        let news = self.votes.take_news(Duration::ZERO).into_iter();
        let gone = news.filter_map(|news| match news {
            News::Forgotten(vote) => Some(vote.place()),
            News::Opened(_) => None,
        });
        gone.collect()
    }

    fn write(&mut self, n: u8, act: VoteAct) -> (EntryRef, Folded) {
        let seq = self.heads.entry(n).or_default();
        *seq += 1;
        self.clock += 1;
        let place = EntryRef { log: log(n), seq: *seq };
        (place, Said { place, clock: self.clock, act }.fold(&mut self.votes))
    }

    fn open(&mut self, n: u8) -> EntryRef {
        self.write(n, VoteAct::Opened(opened(AGENTS, 2))).0
    }

    fn cast(&mut self, n: u8, vote: EntryRef, (who, choice): (u8, u32)) -> EntryRef {
        let place = EntryRef { log: log(n), seq: self.heads.get(&n).copied().unwrap_or(0) + 1 };
        let commitment = BallotCast::commitment(ROOM, vote, &agent(who), choice, &nonce_of(place));
        let ballot = BallotCast { vote, agent: agent(who), commitment, key: None };
        self.write(n, VoteAct::Cast(ballot)).0
    }

    fn close(&mut self, n: u8, vote: EntryRef, ballots: &[EntryRef]) -> Folded {
        let logs = ballots.iter().map(|it| it.log).collect();
        let ballots = (0..).zip(ballots.iter().map(|it| it.seq)).collect();
        self.write(n, VoteAct::Closed(VoteClosed { vote, logs, ballots })).1
    }

    fn show(&mut self, n: u8, vote: EntryRef, (ballot, choice): (EntryRef, u32)) -> Folded {
        let shown = Shown { seq: ballot.seq, choice, nonce: nonce_of(ballot) };
        self.write(n, VoteAct::Shown(BallotsShown { vote, ballots: vec![shown] })).1
    }

    fn tally(&mut self, vote: EntryRef) -> Option<Vec<u64>> {
        seen(&mut self.votes);
        self.votes.get(vote).and_then(|vote| vote.view(ROOM, NOW).tally)
    }
}

#[test]
fn the_opener_s_close_counts_whenever_it_comes() {
    let mut it = Script::default();
    let vote = it.open(0);
    let a = it.cast(1, vote, (1, 0));
    let b = it.cast(2, vote, (2, 1));
    assert_eq!(it.close(3, vote, &[a]), Folded::Taken);
    assert_eq!(it.close(2, vote, &[b]), Folded::Taken);
    it.show(1, vote, (a, 0));
    it.show(2, vote, (b, 1));
    assert_eq!(it.tally(vote), Some(vec![1, 0]), "the lower by position");
    it.close(0, vote, &[b]);
    assert_eq!(it.tally(vote), Some(vec![0, 1]), "the opener's");
    it.close(0, vote, &[a, b]);
    assert_eq!(it.tally(vote), Some(vec![0, 1]), "the opener's first");
}

/// As what a node wrote is cut that forked its log, or was expelled.
#[test]
fn from_a_cut_on_nothing_of_a_log_counts() {
    let mut it = Script::default();
    let (first, second) = (it.open(0), it.open(0));
    let kept = it.cast(1, first, (1, 0));
    let beyond = it.cast(1, first, (2, 1));
    let other = it.cast(2, first, (3, 1));
    it.votes.cut(log(1), beyond.seq);
    assert_eq!(it.votes.get(first).map(|it| it.view(ROOM, NOW).cast), Some(2));
    it.close(0, first, &[kept, beyond, other]);
    for (log, ballot, choice) in [(1, kept, 0), (1, beyond, 1), (2, other, 1)] {
        it.show(log, first, (ballot, choice));
    }
    assert_eq!(it.tally(first), Some(vec![1, 1]));
    let bytes = it.votes.bytes();
    it.votes.cut(log(0), second.seq);
    assert!(it.votes.get(second).is_none());
    assert!(it.votes.get(first).is_some());
    assert_eq!(it.votes.bytes() * 2, bytes, "one of two that are alike");
}

#[test]
fn ballots_are_waited_for_anew_with_a_close_that_takes_the_place_of_a_void_one() {
    let mut it = Script::default();
    let vote = it.open(0);
    let sealed = it.cast(1, vote, (1, 0));
    it.close(2, vote, &[sealed]);
    let has_result = |it: &mut Script, secs: u64| {
        let (now, vote) = (Duration::from_secs(secs), it.votes.edit(vote).expect("it is known"));
        if vote.has_close() {
            vote.mark_closed(now);
        }
        vote.has_result(now)
    };
    assert!(!has_result(&mut it, 100));
    it.votes.cut(log(2), 1);
    assert!(!has_result(&mut it, 200), "there is none");
    it.close(4, vote, &[sealed]);
    assert!(!has_result(&mut it, 300));
    let waited = 300 + VOTE_SHOW_WITHIN.as_secs();
    assert_eq!([waited - 1, waited].map(|secs| has_result(&mut it, secs)), [false, true]);
}

#[test]
fn what_was_told_by_a_close_that_is_void_now_is_corrected_by_what_it_left_out() {
    for (restarted, corrected) in [(false, 1), (true, 0)] {
        let mut it = Script::default();
        let vote = it.open(0);
        let told = it.cast(1, vote, (1, 0));
        let left_out = it.cast(2, vote, (2, 1));
        it.close(4, vote, &[told]);
        it.show(1, vote, (told, 0));
        let known = it.votes.edit(vote).expect("it is known");
        known.mark_closed(NOW.mono);
        known.mark_told();
        let note = known.take_note().flatten().expect("it is kept");
        it.votes.cut(log(4), 1);
        it.close(5, vote, &[told, left_out]);
        it.show(2, vote, (left_out, 1));
        let known = it.votes.edit(vote).expect("it is known");
        if restarted {
            // What the void close had named nobody knows any more.
            known.forget_had();
            known.restore(note);
        }
        let view = known.view(ROOM, NOW);
        assert_eq!((view.tally, view.notes.corrected), (Some(vec![1, 1]), corrected));
    }
}

#[test]
fn an_act_is_work_for_its_own_vote_however_many_are_open() {
    let mut it = Script::default();
    let all = [it.open(0), it.open(0), it.open(1)];
    assert_eq!(it.votes.take_stirred(), all);
    it.cast(2, all[1], (1, 0));
    assert_eq!(it.votes.take_stirred(), [all[1]]);
    assert_eq!(it.votes.take_stirred(), []);
    assert_eq!(it.votes.waiting(), all, "with time something becomes due in each");
    it.votes.expel(NodeId([0; 32]));
    assert_eq!(it.votes.take_stirred(), all, "another close may count now");
    it.cast(2, all[0], (2, 0));
    it.votes.rest(all[0]);
    assert_eq!(it.votes.take_stirred(), []);
    assert_eq!(it.votes.waiting(), all[1..]);
}

#[test]
fn of_two_ballots_of_one_agent_the_lower_counts() {
    let mut it = Script::default();
    let vote = it.open(0);
    // The order of logs is not the order in which ballots were cast.
    let a = it.cast(2, vote, (1, 0));
    let b = it.cast(1, vote, (1, 1));
    for (log, ballot, choice) in [(2, a, 0), (1, b, 1)] {
        it.show(log, vote, (ballot, choice));
    }
    it.close(0, vote, &[b, a]);
    assert_eq!(it.tally(vote), Some(vec![1, 0]));
    let named = it.votes.get(vote).map(|vote| vote.close(|_| true).ballots);
    assert_eq!(named, Some(vec![(0, a.seq)]), "and nobody would name the other");
}

#[test]
fn a_ballot_is_opened_by_its_own_log_as_it_was_cast() {
    let mut it = Script::default();
    let vote = it.open(0);
    let a = it.cast(1, vote, (1, 1));
    it.close(0, vote, &[a]);
    assert_eq!(it.show(1, vote, (a, 0)), Folded::Void, "another choice");
    assert_eq!(it.show(1, vote, (a, 9)), Folded::Void, "no option");
    assert_eq!(it.show(2, vote, (a, 1)), Folded::Void, "another log");
    assert_eq!(it.tally(vote), Some(vec![0, 0]));
    assert_eq!(it.show(1, vote, (a, 1)), Folded::Taken);
    assert_eq!(it.tally(vote), Some(vec![0, 1]));
}

#[test]
fn ballots_of_those_who_may_not_vote_and_second_ones_are_void() {
    let mut it = Script::default();
    let vote = it.open(0);
    let ballot = |who: u8| {
        VoteAct::Cast(BallotCast { vote, agent: agent(who), commitment: [0; 32], key: None })
    };
    assert_eq!(it.write(1, ballot(AGENTS)).1, Folded::Void, "not eligible");
    assert_eq!(it.write(1, ballot(1)).1, Folded::Taken);
    assert_eq!(it.write(1, ballot(1)).1, Folded::Void, "again in one log");
    assert_eq!(it.write(2, ballot(1)).1, Folded::Taken, "elsewhere, in a split");
    assert_eq!(it.votes.get(vote).map(Vote::turnout), Some((1, AGENTS.into())));
}

#[test]
fn of_more_ballots_of_one_agent_than_are_kept_the_lowest_are() {
    let kept = |order: &[u8]| {
        let mut votes = Votes::default();
        let vote = EntryRef { log: log(0), seq: 1 };
        Said { place: vote, clock: 1, act: VoteAct::Opened(opened(AGENTS, 2)) }.fold(&mut votes);
        for n in order {
            let ballot = BallotCast { vote, agent: agent(1), commitment: [*n; 32], key: None };
            let place = EntryRef { log: log(*n), seq: 1 };
            let clock = 1_000 - u64::from(*n);
            Said { place, clock, act: VoteAct::Cast(ballot) }.fold(&mut votes);
        }
        let vote = votes.get(vote).expect("known");
        assert_eq!(vote.turnout().0, 1);
        format!("{:?}", vote.close(|_| true))
    };
    let all: Vec<u8> = (10..10 + u8::try_from(2 * VOTE_BALLOTS_EACH_MAX).expect("few")).collect();
    let back: Vec<u8> = all.iter().rev().copied().collect();
    assert_eq!(kept(&all), kept(&back));
    let lowest = format!("{:?}", log(*all.last().expect("some")).author);
    assert!(kept(&all).contains(&lowest), "the lowest came last");
}

#[test]
fn a_vote_that_means_nothing_is_void() {
    let good = opened(1, 2);
    for bad in [
        VoteOpened { title: " ".to_owned(), ..good.clone() },
        VoteOpened { title: "x".repeat(1_025), ..good.clone() },
        VoteOpened { options: vec!["one".to_owned()], ..good.clone() },
        VoteOpened { options: vec!["x".to_owned(); 65], ..good.clone() },
        VoteOpened { options: vec!["x".to_owned(), String::new()], ..good.clone() },
        VoteOpened { options: vec!["x".to_owned(), "y".repeat(257)], ..good.clone() },
        VoteOpened { description: Some("x".repeat(4_097)), ..good.clone() },
        VoteOpened { closes_ms: Some(1), ..good.clone() },
        VoteOpened { closes_ms: Some(u64::MAX), ..good.clone() },
    ] {
        let mut it = Script::default();
        assert_eq!(it.write(0, VoteAct::Opened(bad.clone())).1, Folded::Void, "{bad:?}");
        assert_eq!(it.votes.all().count(), 0);
    }
    let largest = VoteOpened {
        title: "x".repeat(1_024),
        description: Some("x".repeat(4_096)),
        options: vec!["y".repeat(256); 64],
        ..good.clone()
    };
    let mut it = Script::default();
    for good in [good, largest] {
        assert_eq!(it.write(0, VoteAct::Opened(good)).1, Folded::Taken);
    }
}

#[test]
fn an_author_s_oldest_votes_are_forgotten_and_nobody_else_s() {
    let mut it = Script::default();
    let other = it.open(1);
    let first = it.open(0);
    let votes: Vec<EntryRef> = (0..VOTES_PER_LOG_MAX).map(|_| it.open(0)).collect();
    assert!(it.votes.get(first).is_none() && it.votes.get(other).is_some());
    assert!(votes.iter().all(|place| it.votes.get(*place).is_some()));
    assert_eq!(it.forgotten(), vec![first]);
    let one: usize = bytes(&opened(AGENTS, 2));
    assert_eq!(it.votes.bytes, (VOTES_PER_LOG_MAX + 1) * one);
    // Acts of a vote that is forgotten are nobody's fault.
    assert_eq!(it.close(2, first, &[]), Folded::Taken);
    let another = VoteOpened { created_by: agent(1), ..opened(AGENTS, 2) };
    let another = VoteAct::Opened(another);
    assert!(it.votes.admits(log(0), &another, NOW.mono).is_err(), "one that is open is in the way");
    assert!(it.votes.admits(log(1), &another, NOW.mono).is_ok());
}

#[test]
fn votes_that_are_large_are_bounded_by_what_they_take() {
    let mut it = Script::default();
    let mut large = opened(AGENTS, 2);
    large.eligible = (0..10_000)
        .map(|n| Named { agent: AgentId::from(format!("{n}")), name: "n".repeat(64) })
        .collect();
    let fit = VOTES_BYTES_PER_LOG_MAX / bytes(&large);
    assert!(fit < VOTES_PER_LOG_MAX);
    for _ in 0..fit + 2 {
        it.write(0, VoteAct::Opened(large.clone()));
    }
    assert_eq!(it.votes.all().count(), fit);
    let logs = u8::try_from(VOTES_BYTES_PER_ROOM_MAX / bytes(&large) + 1).expect("few");
    let last = (1..=logs).map(|n| it.write(n, VoteAct::Opened(large.clone())).1).last();
    assert_eq!(last, Some(Folded::Overflow));
    assert!(it.votes.bytes <= VOTES_BYTES_PER_ROOM_MAX);
    // Nor does a node open what others would not take.
    assert!(it.votes.admits(log(99), &VoteAct::Opened(large), NOW.mono).is_err());
    let cast = BallotCast {
        vote: EntryRef { log: log(1), seq: 1 },
        agent: agent(1),
        commitment: [0; 32],
        key: None,
    };
    assert!(it.votes.admits(log(99), &VoteAct::Cast(cast), NOW.mono).is_ok());
}

#[test]
fn a_large_vote_takes_the_place_of_as_many_small_ones_as_it_has_to() {
    let mut it = Script::default();
    for _ in 0..VOTES_PER_LOG_MAX {
        it.open(0);
    }
    let mut large = opened(AGENTS, 2);
    large.eligible = (0..48_000)
        .map(|n| Named { agent: AgentId::from(format!("{n:06}")), name: "n".repeat(80) })
        .collect();
    let (small, more) = (bytes(&opened(AGENTS, 2)), bytes(&large));
    let fit = (VOTES_BYTES_PER_LOG_MAX - more) / small;
    assert!((1..VOTES_PER_LOG_MAX - 1).contains(&fit), "{fit}");
    it.write(0, VoteAct::Opened(large));
    let left: Vec<u64> = it.votes.of(log(0)).map(|vote| vote.place().seq).collect();
    let last = VOTES_PER_LOG_MAX as u64 + 1;
    assert_eq!(left, (last - fit as u64..=last).collect::<Vec<_>>());
}

#[test]
fn what_a_log_wrote_from_a_cut_on_is_nothing_and_what_it_wrote_before_is() {
    let mut it = Script::default();
    let (first, second) = (it.open(0), it.open(0));
    let kept = it.cast(1, first, (1, 0));
    let beyond = it.cast(1, first, (2, 1));
    it.close(1, first, &[kept]);
    let other = it.cast(2, first, (3, 1));
    it.close(2, first, &[kept, beyond, other]);
    it.votes.cut(log(1), beyond.seq);
    let turnout = it.votes.get(first).map(|it| it.turnout().0);
    assert_eq!(turnout, Some(2));
    it.show(1, first, (kept, 0));
    it.show(2, first, (other, 1));
    assert_eq!(it.tally(first), Some(vec![1, 1]), "by the close of another log");
    it.votes.cut(log(0), second.seq);
    assert!(it.votes.get(first).is_some() && it.votes.get(second).is_none());
    assert_eq!(it.forgotten(), [second]);
    assert_eq!(it.votes.bytes, bytes(&opened(AGENTS, 2)));
}

/// It decides which votes are forgotten, so it is the same at all nodes.
#[test]
fn what_a_vote_counts_for_is_what_it_says() {
    let it = VoteOpened {
        title: "abc".to_owned(),
        description: Some("abcde".to_owned()),
        options: vec!["ab".to_owned(), "abcdefg".to_owned()],
        eligible: vec![Named { agent: AgentId::from("a".repeat(128)), name: "n".to_owned() }],
        ..opened(0, 2)
    };
    assert_eq!(bytes(&it), 3 + 5 + 9 + (129 + 256) + 256);
    let more = Named { agent: AgentId::from("ab"), name: "abc".to_owned() };
    let two = VoteOpened { eligible: vec![it.eligible[0].clone(), more], ..it.clone() };
    assert_eq!(bytes(&two), bytes(&it) + 5 + 256);
}

#[test]
fn closes_are_bounded_and_the_one_that_counts_is_kept() {
    let mut it = Script::default();
    let vote = it.open(0);
    let a = it.cast(1, vote, (1, 0));
    it.show(1, vote, (a, 0));
    let n = u8::try_from(VOTE_CLOSES_MAX).expect("few");
    for other in 0..n {
        it.close(10 + other, vote, &[]);
    }
    it.close(0, vote, &[a]);
    for other in 0..n {
        it.close(50 + other, vote, &[]);
    }
    assert_eq!(it.tally(vote), Some(vec![1, 0]));
}

/// Of made-up ballots there may be many, and none is ever proven.
#[test]
fn ballots_are_judged_anew_only_when_something_was_learned() {
    let mut it = Script::default();
    let vote = it.open(1);
    it.cast(2, vote, (1, 0));
    let cast = |it: &Script| it.votes.get(vote).map(|vote| vote.turnout().0);
    let first = Revision { changes: 1, withdrawals: 1 };
    it.votes.judge(first, |_| false);
    assert_eq!(cast(&it), Some(0), "it was withdrawn");
    it.votes.judge(first, |_| panic!("nothing was learned"));
    it.votes.judge(Revision { changes: 2, ..first }, |_| true);
    assert_eq!(cast(&it), Some(1));
    it.votes.judge(Revision { changes: 3, ..first }, |_| panic!("it is proven"));
}
