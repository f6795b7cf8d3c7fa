//! Happenings of worlds, by kind: faults that were injected, their consequences, and lies. A kind that
//! never happens is tested by nothing.

use super::kind::Kind;

/// In which worlds something can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Any,
    Liars,
    Partings,
    Losses,
    Restores,
    Inboxes,
    Answers,
    Carrying,
}

macro_rules! happenings {
    ($($name:ident, $place:ident, $text:literal;)*) => {
        /// Something that happens to a world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Happening { $($name,)* }

        /// All of them, in order.
        const ALL: &[(Happening, Where, &str)] =
            &[$((Happening::$name, Where::$place, $text),)*];

        const COUNT: usize = [$($text,)*].len();
    };
}

happenings! {
    Split, Any, "split";
    HalfOpen, Any, "half-open link";
    Heal, Any, "heal";
    GossipLost, Any, "gossip lost";
    DirectLost, Any, "direct message lost";
    Doubled, Any, "message doubled";
    Late, Any, "message late";
    Weather, Any, "weather changed";
    WithoutGossip, Any, "world without gossip";
    PowerFailure, Any, "power failure";
    Torn, Any, "power failure, torn write";
    WithinCommit, Any, "power failure within a commit";
    Restart, Any, "planned restart";
    RestartCut, Any, "cut off while handing over";
    Pause, Any, "process paused";
    Stall, Any, "disk stalled";
    DiskFull, Any, "disk full";
    Clock, Any, "clock jumped";
    Rekey, Any, "re-keyed";
    SecretGiven, Any, "secret came from a peer";
    KeyRevoked, Any, "key revoked";
    Direct, Any, "direct room opened";
    SharedRoom, Any, "shared room made";
    Shared, Any, "shared room given to another key";
    Profile, Any, "profile changed";
    RoomSet, Any, "public room set";
    DenSet, Any, "private room set";
    FilePut, Any, "file written";
    FileGone, Any, "file deleted";
    FileOfGuest, Any, "file of another key written";
    AccountClaimed, Any, "account claimed";
    AccountEnded, Any, "account ended";
    Listed, Any, "record of an account written";
    Unlisted, Any, "record of an account deleted";
    LetterSent, Any, "mail of an account written";
    LetterKept, Any, "mail there after a start";
    LetterRead, Any, "mail read by its recipient";
    NameTaken, Any, "username refused";
    NameKept, Any, "username kept to the end";
    NameLost, Any, "username lost to an earlier claim";
    Reviewed, Any, "record about an account written";
    Deletion, Any, "record deleted";
    Replaced, Any, "record replaced";
    Pruned, Any, "bodies dropped";
    EraOpened, Any, "era opened";
    EraFull, Any, "era full";
    Hole, Any, "number left as a hole";
    OnceGranted, Any, "thing that one agent does granted";
    OnceLapsed, Any, "lease run out, and taken by another";
    OnceSplit, Any, "thing granted on both sides of a split";
    Decided, Any, "decision about an approval granted";
    DecisionTold, Any, "decision about an approval told";
    DecidedAnew, Any, "approval decided anew after a split";
    Undecided, Any, "approval that nobody decided in time";
    Copied, Any, "message held by several nodes";
    Inquired, Any, "fate of a message told";
    Lost, Losses, "disk lost for ever";
    Restored, Restores, "went on from an earlier copy";
    Outdated, Restores, "earlier copy of a record replaced again";
    Parting, Partings, "node expelled or given up";
    InboxMade, Inboxes, "inbox made";
    InboxKept, Inboxes, "inbox there after a restart";
    Mailed, Inboxes, "message in an inbox";
    Mentioned, Inboxes, "mention in an inbox";
    Filed, Inboxes, "older messages filed";
    TakenOut, Inboxes, "item taken out";
    Marked, Inboxes, "items confirmed";
    Noticed, Inboxes, "author told of a request";
    RequestArrived, Inboxes, "request has arrived";
    RequestDelivered, Inboxes, "request handed over";
    RequestFailed, Inboxes, "request given up";
    RanOut, Inboxes, "time of a task up without a result";
    OutOfTurns, Answers, "conversation without turns left";
    OutOfHops, Answers, "chain without hops left";
    Resting, Answers, "two agents that rest";
    Unanswered, Answers, "agent with too many open requests";
    Bragged, Answers, "message of a node that keeps no budget";
    KeptBack, Answers, "message over the budgets, kept from agents";
    Modest, Answers, "question of a modest agent answered";
    Carried, Carrying, "thing carried";
    CarriedNoMore, Carrying, "carried thing dropped";
    SaidAgain, Liars, "lie: said again";
    Mangled, Liars, "lie: mangled";
    Junk, Liars, "lie: junk";
    Forked, Liars, "lie: forked log";
    Words, Liars, "lie: words";
    Numbers, Liars, "lie: numbers";
    Eras, Liars, "lie: eras";
    Handovers, Liars, "lie: handovers";
    Lanes, Liars, "lie: lanes";
    Rooms, Liars, "lie: rooms";
    AgentIds, Liars, "lie: agent ids";
    Accounts, Liars, "lie: accounts";
    Keys, Liars, "lie: keys";
    Votes, Liars, "lie: votes";
    Elections, Liars, "lie: elections";
    Tasks, Liars, "lie: tasks";
    Onces, Liars, "lie: things that one agent does";
    Heads, Liars, "lie: heads and digests";
    Questions, Liars, "lie: questions";
    Posts, Liars, "lie: posts";
    Copies, Liars, "lie: copies";
    Signs, Liars, "lie: beacons and sightings";
    Rosters, Liars, "lie: rosters";
    Secrets, Liars, "lie: secrets";
    Records, Liars, "lie: records";
    ForkFound, Liars, "fork found";
    Noise, Liars, "noise passed over";
}

/// How often each kind has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage([u64; COUNT]);

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage([0; COUNT])
    }
}

impl Coverage {
    pub(crate) fn count(&mut self, what: Happening) {
        self.0[what as usize] += 1;
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Coverage) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    /// Everything that can happen in worlds of a kind, by name, and how often it did.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        ALL.iter()
            .filter(move |(_, place, _)| match place {
                Where::Any => true,
                Where::Liars => kind == Kind::WithLiar,
                Where::Partings => kind == Kind::WithParting,
                Where::Losses => kind == Kind::WithLoss,
                Where::Restores => kind == Kind::WithRestore,
                Where::Inboxes => kind == Kind::WithInboxes,
                Where::Answers => kind == Kind::Answering,
                Where::Carrying => kind == Kind::Carried,
            })
            .map(|(what, _, name)| (*name, self.0[*what as usize]))
    }

    /// Those that never did.
    #[must_use]
    pub fn never(&self, kind: Kind) -> Vec<&'static str> {
        let never = self.of(kind).filter(|(_, count)| *count == 0).map(|(name, _)| name);
        // In these all other agents do little, and hardly ever the rare things.
        let rare = ["shared room given to another key", "file deleted"];
        never.filter(|name| kind != Kind::Answering || !rare.contains(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happened_is_named_where_it_can() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.never(Kind::WithLiar).len(), COUNT - 25);
        assert!(coverage.never(Kind::WithParting).contains(&"node expelled or given up"));
        assert!(!coverage.never(Kind::Honest).contains(&"lie: votes"));
        for (what, ..) in ALL {
            coverage.count(*what);
        }
        coverage.add(&coverage.clone());
        assert!(coverage.never(Kind::WithLiar).is_empty());
        assert!(coverage.of(Kind::Honest).all(|(_, count)| count == 2));
    }
}
