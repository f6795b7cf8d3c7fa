//! The outcome of a world: a report, or the promise that was broken.

use std::{fmt, time::Duration};

use super::{coverage::Coverage, kind::Kind, promises::Broken};

/// The result of a world that kept all promises.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Visible entries written.
    pub entries: usize,
    /// Eras used, over all rooms.
    pub eras: usize,
    /// Numbers left as holes.
    pub holes: usize,
    /// Commands answered.
    pub answered: u64,
    /// Commands refused.
    pub refused: u64,
    /// Times a roaming client changed nodes.
    pub moves: u64,
    /// Messages that roaming clients were given, those that they saw twice included.
    pub taken: u64,
    /// Messages that roaming clients saw twice.
    pub repeats: u64,
    /// Votes opened.
    pub votes: usize,
    /// Ballots in results, as each node told them.
    pub ballots: u64,
    /// Elections started.
    pub elections: usize,
    /// Leaders, as each node told them.
    pub leaders: u64,
    /// Decisions acknowledged.
    pub decisions: usize,
    /// Tasks made.
    pub tasks: usize,
    /// Claims made.
    pub claims: u64,
    /// Claims granted.
    pub granted: u64,
    /// Fields of tasks that were contested in the end.
    pub contested: u64,
    /// Lies that were told, and of those that could not even be read or verified.
    pub lies: (u64, u64),
    /// Happenings, by kind.
    pub coverage: Coverage,
}

impl Report {
    /// Adds the result of another world.
    pub fn add(&mut self, other: &Report) {
        self.entries += other.entries;
        self.eras += other.eras;
        self.holes += other.holes;
        self.answered += other.answered;
        self.refused += other.refused;
        self.moves += other.moves;
        self.taken += other.taken;
        self.repeats += other.repeats;
        self.votes += other.votes;
        self.ballots += other.ballots;
        self.elections += other.elections;
        self.leaders += other.leaders;
        self.decisions += other.decisions;
        self.tasks += other.tasks;
        self.claims += other.claims;
        self.granted += other.granted;
        self.contested += other.contested;
        self.lies.0 += other.lies.0;
        self.lies.1 += other.lies.1;
        self.coverage.add(&other.coverage);
    }
}

/// A world that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// The world.
    pub seed: u64,
    /// When it was noticed, in its own time.
    pub at: Duration,
    /// The promise.
    pub broken: Broken,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { kind, seed, at, broken } = self;
        let who = match kind {
            Kind::Honest => "",
            Kind::WithLiar => " --liar",
            Kind::WithParting => " --parting",
            Kind::WithLoss => " --loss",
            Kind::WithRestore => " --restored",
            Kind::WithInboxes => " --inboxes",
            Kind::Answering => " --answering",
            Kind::Carried => " --carried",
        };
        write!(
            f,
            "seed {seed} broke \"{}\" at {:.3} s: {}\nreplay it: \
             cargo run --bin clawmesh-testnet -- sim{who} --seed {seed} --trace",
            broken.promise,
            at.as_secs_f64(),
            broken.what
        )
    }
}

impl std::error::Error for Failure {}
