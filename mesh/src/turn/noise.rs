//! Noise: authors of many entries without effect, and how much of their pushed runs is heard.
//!
//! An entry without effect is kept like any other: whether it has one depends on the entries before it,
//! and nodes must hold the same. So it costs everybody a signature to check, gossip to pass on and a
//! commit. An author of hundreds of such entries is not refused, for it may be honest and unlucky; but
//! most of its pushes are passed over. They come all the same, by anti-entropy: many entries at once,
//! when there is time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::{
    limits::{
        NODES_MAX, NOISE_FROM, NOISE_HEARD_EVERY, NOISE_LASTS, NOISE_WITHIN, NOISY_HEARD_OF_MAX,
    },
    name::id::NodeId,
    wire::run::Run,
};

/// Counts what authors write without effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noise {
    /// Since when, and how much. `None`: all whom the directory does not name, for anybody can make them up.
    written: BTreeMap<Option<NodeId>, (Duration, u32)>,
}

impl Noise {
    /// One more of it. Whether that is too much: said once for each [`NOISE_FROM`].
    pub(crate) fn add(&mut self, author: Option<NodeId>, now: Duration) -> bool {
        let (since, count) = self.written.entry(author).or_insert((now, 0));
        if now.saturating_sub(*since) >= NOISE_WITHIN {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count % NOISE_FROM == 0
    }
}

/// The part that is heard of noisy authors: asked before signatures are checked.
#[derive(Clone, Debug, Default)]
pub struct Hearing {
    known: BTreeSet<NodeId>,
    /// `None`: all who are not known.
    noisy: BTreeMap<Option<NodeId>, Noisy>,
}

#[derive(Clone, Debug)]
struct Noisy {
    until: Duration,
    /// When something of it is heard again from this peer: a peer that passes it on has no part in the
    /// deeds of others.
    next: BTreeMap<NodeId, Duration>,
}

impl Hearing {
    /// The directory names this node. Beyond [`NODES_MAX`] they are as those whom it does not name.
    pub fn know(&mut self, node: NodeId) {
        if self.known.len() < NODES_MAX {
            self.known.insert(node);
        }
    }

    /// The engine found it to be noisy; `None`: those whom it does not know, together. `now` is
    /// [`crate::name::time::Now::mono`], here as below.
    pub fn note(&mut self, author: Option<NodeId>, now: Duration) {
        let until = now + NOISE_LASTS;
        let new = || Noisy { until, next: BTreeMap::new() };
        self.noisy.entry(author).or_insert_with(new).until = until;
    }

    /// Whether runs that a peer has pushed together are to be heard. Their authors are as the runs say:
    /// that was not checked, but honest nodes push their own runs alone.
    pub fn hears<'a>(
        &mut self,
        from: NodeId,
        runs: impl IntoIterator<Item = &'a Run>,
        now: Duration,
    ) -> bool {
        if self.noisy.is_empty() {
            return true;
        }
        runs.into_iter().all(|run| self.hears_of(run.log.author, from, now))
    }

    fn hears_of(&mut self, author: NodeId, from: NodeId, now: Duration) -> bool {
        let author = Some(author).filter(|node| self.known.contains(node));
        let Some(noisy) = self.noisy.get_mut(&author) else { return true };
        if now >= noisy.until {
            self.noisy.remove(&author);
            return true;
        }
        if noisy.next.get(&from).is_some_and(|next| now < *next) {
            return false;
        }
        if noisy.next.len() >= NOISY_HEARD_OF_MAX {
            noisy.next.retain(|_, next| now < *next);
        }
        let heard = noisy.next.len() < NOISY_HEARD_OF_MAX;
        if heard {
            noisy.next.insert(from, now + NOISE_HEARD_EVERY);
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::id::{LogId, RoomId};

    const SECOND: Duration = Duration::from_secs(1);

    fn author(n: u8) -> NodeId {
        NodeId([n; 32])
    }

    fn run(n: u8) -> Run {
        let log = LogId { author: author(n), incarnation: 0 };
        let room = RoomId([1; 16]);
        Run { room, log, first: 1, backlink: [0; 32], entries: Vec::new(), seal: [0; 64] }
    }

    const PEER: NodeId = NodeId([200; 32]);

    /// One that knows authors 1 and 2.
    fn hearing() -> Hearing {
        let mut hearing = Hearing::default();
        hearing.know(author(1));
        hearing.know(author(2));
        hearing
    }

    /// Of so many seconds with two hundred pushes each, how many are heard.
    fn heard(hearing: &mut Hearing, from: Duration, secs: u32) -> usize {
        let times = (0..secs * 200).map(|i| from + SECOND * i / 200);
        times.filter(|now| hearing.hears(PEER, [&run(1)], *now)).count()
    }

    #[test]
    fn a_little_without_effect_is_no_noise_and_each_so_many_are() {
        let mut noise = Noise::default();
        let said = |noise: &mut Noise, at: Duration, count: u32| {
            (0..count).filter(|_| noise.add(Some(author(1)), at)).count()
        };
        assert_eq!(said(&mut noise, SECOND, NOISE_FROM - 1), 0);
        // Another does not count for it, and what was long ago does not either.
        assert_eq!((0..NOISE_FROM).filter(|_| noise.add(None, SECOND)).count(), 1);
        let later = SECOND + NOISE_WITHIN;
        assert_eq!(said(&mut noise, later, NOISE_FROM - 1), 0);
        assert_eq!(said(&mut noise, later, 1), 1);
        assert_eq!(said(&mut noise, later, NOISE_FROM * 3), 3, "as long as it goes on");
    }

    #[test]
    fn of_who_is_noisy_a_part_is_heard_and_after_a_while_all() {
        let mut hearing = hearing();
        assert_eq!(heard(&mut hearing, SECOND, 1), 200);
        hearing.note(Some(author(1)), SECOND * 2);
        let part = SECOND.as_millis() / NOISE_HEARD_EVERY.as_millis();
        assert_eq!(heard(&mut hearing, SECOND * 2, 5) as u128, part * 5);
        assert!(hearing.hears(PEER, [&run(2)], SECOND * 3), "others are heard");
        assert!(hearing.hears(PEER, [&run(3)], SECOND * 3), "and who is not known");
        // It goes on.
        hearing.note(Some(author(1)), SECOND * 7);
        assert_eq!(heard(&mut hearing, SECOND * 7, 5) as u128, part * 5);
        assert_eq!(heard(&mut hearing, SECOND * 7 + NOISE_LASTS, 1), 200);
    }

    #[test]
    fn who_is_not_known_is_noisy_together_with_all_who_are_not() {
        let mut hearing = hearing();
        hearing.note(None, SECOND);
        assert!(hearing.hears(PEER, [&run(3)], SECOND));
        assert!(!hearing.hears(PEER, [&run(4)], SECOND), "made up like the one before");
        assert!(hearing.hears(PEER, [&run(1)], SECOND), "a member is not");
    }

    #[test]
    fn noise_is_not_heard_in_company_and_who_repeats_it_takes_nothing_from_its_author() {
        let mut hearing = hearing();
        hearing.note(Some(author(1)), SECOND);
        assert!(hearing.hears(PEER, [&run(1)], SECOND));
        assert!(!hearing.hears(PEER, [&run(2), &run(1)], SECOND));
        assert!(hearing.hears(author(1), [&run(1)], SECOND));
    }

    #[test]
    fn members_are_known_up_to_a_bound() {
        let mut hearing = Hearing::default();
        for nth in 0..=u64::try_from(NODES_MAX).unwrap() {
            let mut node = [0; 32];
            node[..8].copy_from_slice(&nth.to_be_bytes());
            hearing.know(NodeId(node));
        }
        assert_eq!(hearing.known.len(), NODES_MAX);
    }

    #[test]
    fn peers_who_pass_it_on_are_few() {
        let mut hearing = hearing();
        hearing.note(Some(author(1)), SECOND);
        let heard = (0..=255).filter(|n| hearing.hears(author(*n), [&run(1)], SECOND)).count();
        assert_eq!(heard, NOISY_HEARD_OF_MAX);
        assert!(hearing.hears(PEER, [&run(1)], SECOND + NOISE_HEARD_EVERY));
    }
}
