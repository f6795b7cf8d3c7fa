//! Turns without effects: they wait for one that has some, and are committed with it.
//!
//! A commit has its price, however little is in it. Many entries of peers are only written down: those that wait for
//! their numbers, and those without effect. A client that waits for an answer waits for the commit before it, too; so
//! these turns are not committed one by one. Nothing is said of them meanwhile, so a crash takes nothing that anybody
//! knew of.

use std::time::Duration;

use crate::{
    api::boundary::{Effect, Turn},
    limits::{COMMIT_DEFERRED_FOR, COMMIT_DEFERRED_ROWS_MAX},
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct DeferredCommit {
    turn: Turn,
    /// When it has to be committed at the latest, once there is something in it.
    due: Option<Duration>,
}

impl DeferredCommit {
    /// Takes the next turn in. Returns the turn to be committed and performed now: all there is, or
    /// nothing yet.
    pub fn add(&mut self, next: Turn, now: Duration) -> Option<Turn> {
        let says = !next.effects.iter().all(|effect| matches!(effect, Effect::Pulse(_)));
        // The last content of beacons replaces those before, so a long wait does not make a long
        // list.
        if next.effects.iter().any(|effect| matches!(effect, Effect::Pulse(_))) {
            self.turn.effects.clear();
        }
        self.turn.append(next);
        let due = *self.due.get_or_insert(now + COMMIT_DEFERRED_FOR);
        let rows = self.turn.batch.len();
        if says || rows == 0 || rows >= COMMIT_DEFERRED_ROWS_MAX || now >= due {
            self.due = None;
            return Some(std::mem::take(&mut self.turn));
        }
        None
    }

    /// When waiting turns have to be committed; time is that of [`crate::name::time::Now::mono`]. `None`: nothing
    /// waits.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{
            batch::Change,
            command::{CallId, Outcome},
        },
        name::digest::Digest,
        order::pulse::Pulse,
    };

    const MS: Duration = Duration::from_millis(1);

    fn silent() -> Turn {
        let row = Change::Keep { name: b"a".to_vec(), value: None };
        Turn { batch: vec![row], effects: Vec::new() }
    }

    fn beats(digest: u8) -> Turn {
        let digest = Digest([digest; 16]);
        let pulse = Pulse { boot: 1, roster: 1, digest, ..Pulse::default() };
        Turn { effects: vec![Effect::Pulse(pulse)], ..silent() }
    }

    fn answers() -> Turn {
        let reply = Effect::Reply { call: CallId(1), result: Ok(Outcome::Done) };
        Turn { effects: vec![reply], ..silent() }
    }

    #[test]
    fn who_is_answered_does_not_wait_and_all_before_it_is_committed_with_it() {
        let mut deferred = DeferredCommit::default();
        assert_eq!(deferred.add(answers(), MS).unwrap().batch.len(), 1);
        assert!(deferred.add(silent(), MS).is_none());
        assert!(deferred.add(beats(1), MS * 2).is_none());
        assert!(deferred.add(beats(2), MS * 3).is_none());
        let turn = deferred.add(answers(), MS * 4).unwrap();
        assert_eq!(turn.batch.len(), 4);
        let [Effect::Pulse(last), Effect::Reply { .. }] = &turn.effects[..] else {
            panic!("{:?}", turn.effects)
        };
        assert_eq!(last.digest, Digest([2; 16]));
        assert_eq!(deferred.due(), None);
    }

    #[test]
    fn what_nobody_hears_of_waits_for_a_moment() {
        let mut deferred = DeferredCommit::default();
        assert!(deferred.add(silent(), MS).is_none());
        assert_eq!(deferred.due(), Some(MS + COMMIT_DEFERRED_FOR));
        // A later turn does not make it wait for longer.
        assert!(deferred.add(silent(), MS * 2).is_none());
        assert_eq!(deferred.due(), Some(MS + COMMIT_DEFERRED_FOR));
        assert_eq!(deferred.add(Turn::default(), MS + COMMIT_DEFERRED_FOR).unwrap().batch.len(), 2);
        assert_eq!(deferred.due(), None);
    }

    #[test]
    fn much_does_not_wait() {
        let mut deferred = DeferredCommit::default();
        let all = (0..COMMIT_DEFERRED_ROWS_MAX).find_map(|_| deferred.add(silent(), MS)).unwrap();
        assert_eq!(all.batch.len(), COMMIT_DEFERRED_ROWS_MAX);
    }

    #[test]
    fn what_is_said_without_being_written_is_said_at_once() {
        let mut deferred = DeferredCommit::default();
        let pulse = Turn { batch: Vec::new(), ..beats(1) };
        assert_eq!(deferred.add(pulse, MS).unwrap().effects.len(), 1);
        assert_eq!(deferred.due(), None);
    }
}
