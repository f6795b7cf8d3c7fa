//! The fold by itself: what it shows, and that it shows the same in whatever order logs are read.

use proptest::prelude::*;

use super::*;
use crate::{
    name::id::{NodeId, RoomId},
    wire::entry::{Body, Facts},
};

const ROOM: RoomId = RoomId([1; 16]);
const NOW: Now = Now { mono: Duration::ZERO, wall_ms: 0, wall_us: 0 };
const LEASE: u64 = 30_000;

type Act = (EntryRef, Facts, OnceAct);

/// What one node knows, and the acts in the order in which they came.
struct Replica {
    onces: Onces,
    log: LogId,
    clock: u64,
    now: Now,
    have: Vec<Act>,
}

impl Replica {
    fn new(node: u8) -> Replica {
        let log = LogId { author: NodeId([node; 32]), incarnation: 0 };
        Replica { onces: Onces::default(), log, clock: 0, now: NOW, have: Vec::new() }
    }

    fn take_in(&mut self, (place, facts, act): Act) -> Folded {
        self.clock = self.clock.max(facts.clock);
        let at = LocalRef { log: place.log.author.0[0].into(), seq: place.seq };
        let written = Written { room: ROOM, place, at, facts, now: self.now };
        let folded = self.onces.apply(written, act.clone(), &mut Vec::new());
        self.have.push((place, facts, act));
        folded
    }

    fn write(&mut self, act: OnceAct) -> EntryRef {
        let seq = 1 + self.have.iter().filter(|(place, ..)| place.log == self.log).count() as u64;
        let place = EntryRef { log: self.log, seq };
        let facts =
            Facts { clock: self.clock + 1, wall_ms: self.now.wall_ms, kind: 52, visible: false };
        self.take_in((place, facts, act));
        place
    }

    /// Takes in all that another one has and this one has not, in its order.
    fn hear(&mut self, other: &Replica) {
        for act in &other.have {
            if !self.have.iter().any(|(place, ..)| *place == act.0) {
                self.take_in(act.clone());
            }
        }
    }

    fn asks(&mut self, subject: &str, by: &str, wish: OnceWish) -> EntryRef {
        let (subject, by, era, key) = (subject.to_owned(), by.into(), Era::HOME, None);
        self.write(OnceAct::Asked(OnceAsked { subject, by, wish, era, key }))
    }

    fn takes(&mut self, subject: &str, by: &str) -> EntryRef {
        self.asks(subject, by, OnceWish::Take(Some(LEASE)))
    }

    /// It is the sequencer, and answers all that waits.
    fn answers(&mut self) -> Vec<OnceVerdict> {
        self.onces.judge(|_| true);
        let due = self.onces.due(self.now.mono, Era::HOME);
        due.into_iter().map(|asked| self.answers_one(asked)).collect()
    }

    fn answers_one(&mut self, asked: EntryRef) -> OnceVerdict {
        let answer = self.onces.answer(asked, Era::HOME, None, self.now).expect("it waits");
        self.write(OnceAct::Answered(answer.clone()));
        answer.verdict
    }

    fn passes(&mut self, millis: u64) {
        self.now.mono += Duration::from_millis(millis);
        self.now.wall_ms += millis;
    }

    fn holds(&self, subject: &str) -> Option<String> {
        self.onces.holder(subject).map(|holder| holder.agent.to_string())
    }

    fn news(&mut self) -> Vec<News> {
        self.onces.take_news(Duration::ZERO)
    }

    fn lost(&mut self) -> Vec<(String, WhyLost)> {
        let lost = |news| match news {
            News::Lost { was, why, .. } => Some((was.agent.to_string(), why)),
            News::Answered { .. } | News::Unasked { .. } => None,
        };
        self.news().into_iter().filter_map(lost).collect()
    }
}

fn granted(verdict: &OnceVerdict) -> bool {
    matches!(verdict, OnceVerdict::Granted(_))
}

#[test]
fn of_all_that_ask_the_first_has_it_until_it_gives_it_back() {
    let mut a = Replica::new(1);
    let first = a.takes("deploy", "ann");
    a.takes("deploy", "bob");
    assert_eq!(a.holds("deploy"), None, "before the answer nothing shows");
    let verdicts = a.answers();
    assert!(granted(&verdicts[0]) && verdicts[1] == OnceVerdict::Held, "{verdicts:?}");
    assert_eq!(a.holds("deploy").as_deref(), Some("ann"));
    a.takes("other", "bob");
    assert!(granted(&a.answers()[0]), "another subject is free");
    // Nobody gives back what is another one's, and the holder that asks again has it already.
    a.asks("deploy", "bob", OnceWish::Release(first));
    a.takes("deploy", "ann");
    assert_eq!(a.answers(), [OnceVerdict::Held, OnceVerdict::Held]);
    a.asks("deploy", "ann", OnceWish::Release(first));
    a.takes("deploy", "bob");
    let verdicts = a.answers();
    assert!(verdicts[0] == OnceVerdict::Released(first) && granted(&verdicts[1]));
    assert_eq!(a.holds("deploy").as_deref(), Some("bob"));
    assert_eq!(a.lost(), [], "nobody lost anything");
}

#[test]
fn a_lease_runs_from_when_it_came_or_was_renewed_and_the_holder_is_told_of_its_loss() {
    let mut a = Replica::new(1);
    let first = a.takes("deploy", "ann");
    a.answers();
    a.passes(LEASE - 1);
    a.takes("deploy", "bob");
    assert_eq!(a.answers(), [OnceVerdict::Held]);
    a.asks("deploy", "ann", OnceWish::Renew(first));
    assert_eq!(a.answers(), [OnceVerdict::Renewed(first)]);
    a.passes(LEASE - 1);
    a.takes("deploy", "bob");
    assert_eq!(a.answers(), [OnceVerdict::Held], "it was renewed");
    a.passes(1);
    // Late, and nobody has asked: it is still the first.
    a.asks("deploy", "ann", OnceWish::Renew(first));
    assert_eq!(a.answers(), [OnceVerdict::Renewed(first)]);
    a.passes(LEASE);
    a.news();
    a.takes("deploy", "bob");
    assert!(granted(&a.answers()[0]));
    assert_eq!(a.lost(), [("ann".to_owned(), WhyLost::Lapsed)]);
    a.asks("deploy", "ann", OnceWish::Renew(first));
    assert_eq!(a.answers(), [OnceVerdict::Held]);
    assert_eq!(a.holds("deploy").as_deref(), Some("bob"));
}

/// A clock that is wrong ends no lease and forgets no grant.
#[test]
fn wall_clocks_end_nothing_by_themselves() {
    let mut a = Replica::new(1);
    a.takes("leased", "ann");
    a.asks("for good", "ann", OnceWish::Take(None));
    a.answers();
    let month = in_ms(ONCE_KEPT_FOR);
    a.takes("leased", "bob");
    let asked = a.asks("for good", "bob", OnceWish::Take(None));
    // The sequencer's clock jumps; the ask is of before.
    a.now.wall_ms += 2 * month;
    assert_eq!(a.answers(), [OnceVerdict::Held, OnceVerdict::Held]);
    assert_eq!(asked.log, a.log);
    a.asks("for good", "bob", OnceWish::Take(None));
    assert!(granted(&a.answers()[0]), "a month later by two clocks");
}

#[test]
fn what_both_sides_of_a_split_were_granted_stands_once_and_the_loser_knows() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    a.takes("deploy", "ann");
    a.answers();
    for _ in 0..3 {
        b.takes("noise", "bob");
    }
    let second = b.takes("deploy", "bob");
    b.answers();
    assert_eq!(b.holds("deploy").as_deref(), Some("bob"));
    a.news();
    b.news();
    a.hear(&b);
    b.hear(&a);
    for it in [&a, &b] {
        assert_eq!(it.holds("deploy").as_deref(), Some("ann"), "the lowest by position");
    }
    assert_eq!((a.lost(), b.lost()), (vec![], vec![("bob".to_owned(), WhyLost::Split)]));
    // The loser's node gives it back, so that it does not come up again.
    b.asks("deploy", "bob", OnceWish::Release(second));
    assert!(b.answers().contains(&OnceVerdict::Released(second)));
    a.hear(&b);
    assert_eq!(a.onces.ranked("deploy").len(), 1);
    assert_eq!(a.lost(), []);
}

/// The end of a grant may come before the grant: they are in logs of two sequencers.
#[test]
fn a_grant_that_comes_after_its_end_is_over() {
    let (mut a, mut b, mut c) = (Replica::new(1), Replica::new(2), Replica::new(3));
    let first = a.takes("deploy", "ann");
    b.hear(&a);
    let answer = a.onces.asks.get(first).map(|_| ());
    assert_eq!(answer, Some(()));
    a.answers();
    b.hear(&a);
    b.asks("deploy", "ann", OnceWish::Release(first));
    b.answers();
    // All but the answer of the first sequencer, and then that.
    let (late, early): (Vec<Act>, Vec<Act>) = b
        .have
        .iter()
        .cloned()
        .partition(|(place, _, act)| place.log == a.log && matches!(act, OnceAct::Answered(_)));
    early.into_iter().chain(late).for_each(|act| assert_eq!(c.take_in(act), Folded::Taken));
    assert_eq!((c.holds("deploy"), c.onces.live), (None, 0));
}

#[test]
fn what_a_forked_log_said_from_the_fork_on_is_taken_back() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let first = a.takes("deploy", "ann");
    a.answers();
    b.hear(&a);
    b.asks("deploy", "ann", OnceWish::Release(first));
    b.answers();
    b.takes("deploy", "bob");
    b.answers();
    a.hear(&b);
    assert_eq!(a.holds("deploy").as_deref(), Some("bob"));
    a.onces.retract(Void::From(EntryRef { log: b.log, seq: 1 }));
    assert_eq!(a.holds("deploy").as_deref(), Some("ann"));
    assert_eq!((a.onces.live, a.onces.over.len(), a.onces.grants.len()), (1, 0, 1));
}

#[test]
fn there_are_as_many_as_the_bound_says_and_those_whose_lease_ran_out_make_room() {
    let mut a = Replica::new(1);
    for n in 0..ONCE_LIVE_PER_ROOM_MAX {
        let asked = a.takes(&n.to_string(), "ann");
        a.onces.judge(|_| true);
        assert!(granted(&a.answers_one(asked)));
        a.have.clear();
        // Place names stay apart.
        a.log.incarnation += 1;
    }
    a.takes("more", "bob");
    assert_eq!(a.answers(), [OnceVerdict::Full]);
    a.passes(LEASE);
    a.takes("more", "bob");
    let verdict = a.answers().remove(0);
    let OnceVerdict::Granted(grant) = verdict else { panic!("{verdict:?}") };
    assert_eq!(grant.over.len(), ONCE_OVER_MAX);
    assert_eq!(a.onces.live, ONCE_LIVE_PER_ROOM_MAX - ONCE_OVER_MAX + 1);
}

#[test]
fn what_no_honest_node_writes_is_void() {
    let mut a = Replica::new(1);
    let long = "x".repeat(ONCE_SUBJECT_BYTES_MAX + 1);
    for (subject, by, lease) in
        [("", "ann", None), (&*long, "ann", None), ("s", "", None), ("s", "ann", Some(999))]
    {
        let (subject, wish) = (subject.to_owned(), OnceWish::Take(lease));
        let asked = OnceAsked { subject, by: by.into(), wish, era: Era::HOME, key: None };
        let place = EntryRef { log: a.log, seq: 1 };
        let facts = Facts { clock: 1, wall_ms: 0, kind: 52, visible: false };
        assert_eq!(a.take_in((place, facts, OnceAct::Asked(asked))), Folded::Void);
        a.have.clear();
    }
}

/// A step of a history: which node does what.
#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u8, u8),
    Renew(u8, u8),
    Release(u8, u8),
    Answer(u8),
    Pass(u64),
    Hear(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (node, subject) = (0..3_u8, 0..2_u8);
    prop_oneof![
        (node.clone(), subject.clone()).prop_map(|(node, subject)| Step::Take(node, subject)),
        (node.clone(), subject.clone()).prop_map(|(node, subject)| Step::Renew(node, subject)),
        (node.clone(), subject).prop_map(|(node, subject)| Step::Release(node, subject)),
        node.clone().prop_map(Step::Answer),
        (0..2 * LEASE).prop_map(Step::Pass),
        (node.clone(), node).prop_map(|(one, other)| Step::Hear(one, other)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Several sequencers at once, as after splits: whatever they answered, all that have the same logs show the same.
    #[test]
    fn in_whatever_order_logs_are_read_the_same_one_stands(steps in prop::collection::vec(step(), 1..60)) {
        let mut nodes: Vec<Replica> = (1..=3).map(Replica::new).collect();
        for step in steps {
            match step {
                Step::Take(node, subject) => {
                    nodes[node as usize].takes(&subject.to_string(), &node.to_string());
                }
                Step::Renew(node, subject) | Step::Release(node, subject) => {
                    let it = &mut nodes[node as usize];
                    let subject = subject.to_string();
                    let Some(root) = it.onces.standing(&subject) else { continue };
                    let wish = if let Step::Renew(..) = step {
                        OnceWish::Renew(root)
                    } else {
                        OnceWish::Release(root)
                    };
                    it.asks(&subject, &node.to_string(), wish);
                }
                Step::Answer(node) => drop(nodes[node as usize].answers()),
                Step::Pass(millis) => nodes.iter_mut().for_each(|node| node.passes(millis)),
                Step::Hear(one, other) => {
                    let said = std::mem::replace(&mut nodes[other as usize], Replica::new(9));
                    nodes[one as usize].hear(&said);
                    nodes[other as usize] = said;
                }
            }
        }
        let mut all = Replica::new(8);
        for node in &nodes {
            all.hear(node);
        }
        // Read again, log by log as far as what is named is there.
        let mut left: Vec<Act> = nodes.iter().rev().flat_map(|node| node.have.clone()).collect();
        let mut other = Replica::new(7);
        while !left.is_empty() {
            let ready = left.iter().position(|(place, _, act)| {
                let here = |named: &EntryRef| other.have.iter().any(|(place, ..)| place == named);
                let before = EntryRef { seq: place.seq - 1, ..*place };
                (before.seq == 0 || here(&before))
                    && Body::Once(act.clone()).names().iter().all(here)
            });
            let Some(ready) = ready else { panic!("something names what is nowhere") };
            let act = left.remove(ready);
            if !other.have.iter().any(|(place, ..)| *place == act.0) {
                other.take_in(act);
            }
        }
        for subject in ["0", "1"] {
            prop_assert_eq!(all.onces.holder(subject), other.onces.holder(subject));
            prop_assert_eq!(all.onces.ranked(subject), other.onces.ranked(subject));
        }
        prop_assert_eq!(all.onces.live, other.onces.live);
    }
}

/// Seed 1811 of worlds with parting: the log of the node that asked was cut at one node after it had heard of the grant, and at
/// another one before.
#[test]
fn a_grant_stays_though_its_ask_is_cut_off_whichever_comes_first() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let ask = b.takes("deploy", "bob");
    a.hear(&b);
    assert!(granted(&a.answers()[0]));
    let cut = Void::From(ask);
    a.onces.retract(cut);
    let mut later = Replica::new(3);
    later.onces.retract(cut);
    for act in a.have.iter().filter(|(place, ..)| *place != ask) {
        later.take_in(act.clone());
    }
    assert_eq!(a.holds("deploy").as_deref(), Some("bob"));
    assert_eq!(later.holds("deploy"), a.holds("deploy"));
}
