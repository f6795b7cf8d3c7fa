//! The checkers of leases find a sequencer that grants too early, and none that does not.

use std::time::Duration;

use mesh::{
    api::{
        command::{Caller, Outcome, Registration},
        once::{OnceAnswered, OnceHolder, OnceWant},
    },
    name::{
        id::{EntryRef, KeyPrint, LogId, MessageId, RoomId},
        number::Era,
    },
    wire::once::{OnceAct, OnceAnswer, OnceGrant, OnceVerdict},
};

use crate::sim::{
    onces::Asked,
    parts::{Matter as _, Written},
    plan::Plan,
    promises::Broken,
    world::World,
};

const SUBJECT: &str = "deploy";
const LEASE: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A sequencer, and two agents at its node that want one thing.
struct Two {
    world: World,
    room: RoomId,
    log: LogId,
    answers: u64,
}

impl Two {
    fn new() -> Two {
        let mut world = World::new(1, Plan::quiet(2), false).expect("nothing is broken yet");
        world.cluster.quiet = true;
        let (room, author) = (world.cluster.lobby(), world.cluster.nodes[0].id);
        Two { world, room, log: LogId { author, incarnation: 0 }, answers: 0 }
    }

    fn place(&self, seq: u64) -> EntryRef {
        EntryRef { log: self.log, seq }
    }

    /// The sequencer stores an answer now that it took in at this moment.
    fn answers(&mut self, taken: Duration, asked: u64, verdict: OnceVerdict) -> Result<(), Broken> {
        self.answers += 1;
        let (room, place) = (self.room, self.place(1_000 + self.answers));
        let written = Written { node: 0, room, place, clock: self.answers, wall_ms: 0, taken };
        let answer = OnceAnswer { era: Era::HOME, asked: self.place(asked), verdict, by: None };
        self.world.onces.stored(&mut self.world.cluster, written, OnceAct::Answered(answer))
    }

    fn grants(&mut self, taken: Duration, asked: u64, over: &[u64]) -> Result<(), Broken> {
        let over = over.iter().map(|seq| self.place(*seq)).collect();
        let (subject, by) = (SUBJECT.to_owned(), "ann".into());
        let lease_ms = Some(1_000);
        let grant = OnceGrant { subject, by, lease_ms, over, key: None };
        self.answers(taken, asked, OnceVerdict::Granted(grant))
    }

    fn renews(&mut self, taken: Duration, asked: u64, root: u64) -> Result<(), Broken> {
        let root = self.place(root);
        self.answers(taken, asked, OnceVerdict::Renewed(root))
    }

    /// An agent is told at `told` that the ask at `root` is granted: it had asked for that, or for its renewal, at `at`.
    fn tells(
        &mut self,
        (at, told): (Duration, Duration),
        root: u64,
        renews: bool,
    ) -> Result<(), Broken> {
        self.world.run_until(told)?;
        let grant = MessageId::new(self.room, self.log, root);
        let by =
            Caller { agent: "ann".into(), key: KeyPrint([0; 16]), registration: Registration(1) };
        let want = if renews { OnceWant::Renew(grant) } else { OnceWant::Take(Some(LEASE)) };
        let subject = SUBJECT.to_owned();
        let asked = Asked::Want { at, by, room: self.room, subject: subject.clone(), want };
        let holder = Some(OnceHolder { agent: "ann".into(), grant, lease: Some(LEASE) });
        let done = OnceAnswered { subject, granted: true, holder, durable: None };
        let result = Ok(Outcome::Once(Box::new(done)));
        self.world.onces.answered(&self.world.cluster, 0, &asked, &result).map(drop)
    }
}

/// Answers that are far apart may be stored at one moment.
#[test]
fn a_grant_is_too_early_by_when_its_sequencer_took_the_renewal_and_the_ask() {
    for (anew, is_right) in [(ms(3_000), true), (ms(2_999), false)] {
        let mut two = Two::new();
        two.grants(ms(1_000), 1, &[]).expect("the first");
        two.renews(ms(2_000), 2, 1).expect("it has it");
        let granted = two.grants(anew, 3, &[1]);
        assert_eq!(granted.is_ok(), is_right, "at {anew:?}: {granted:?}");
    }
}

#[test]
fn a_grant_is_too_early_while_an_agent_counts_on_the_one_before_from_when_it_asked() {
    for (told, is_right) in [(ms(2_500), true), (ms(2_499), false)] {
        let mut two = Two::new();
        two.grants(ms(1_000), 1, &[]).expect("the first");
        two.tells((ms(900), ms(1_100)), 1, false).expect("the first");
        two.renews(ms(1_500), 2, 1).expect("it has it");
        two.tells((ms(1_500), ms(1_600)), 1, true).expect("it has it");
        // By the sequencer's own clock it is time: that is judged elsewhere.
        two.grants(ms(3_000), 3, &[1]).expect("it has run out");
        let granted = two.tells((ms(2_000), told), 3, false);
        assert_eq!(granted.is_ok(), is_right, "at {told:?}: {granted:?}");
    }
}

/// The answer to a renewal may come when another one has the thing already.
#[test]
fn a_renewal_of_which_its_agent_is_told_too_late_counts_from_when_it_asked() {
    for (asked, is_right) in [(ms(1_500), true), (ms(1_501), false)] {
        let mut two = Two::new();
        two.grants(ms(1_000), 1, &[]).expect("the first");
        two.tells((ms(900), ms(1_100)), 1, false).expect("the first");
        two.renews(ms(1_500), 2, 1).expect("it has it");
        two.grants(ms(2_500), 3, &[1]).expect("it has run out");
        two.tells((ms(2_000), ms(2_500)), 3, false).expect("it has run out");
        let renewed = two.tells((asked, ms(2_600)), 1, true);
        assert_eq!(renewed.is_ok(), is_right, "asked at {asked:?}: {renewed:?}");
    }
}
