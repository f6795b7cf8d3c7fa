//! Who writes much that has no effect, and how much of what it pushes is heard.
//!
//! An entry without effect is kept like any other: which it is depends on what came before it, and nodes must hold the
//! same. So it costs everybody a signature to check, gossip to pass on and a commit. Whoever writes such entries by the
//! hundred is not refused, for it may be honest and unlucky; but most of what it pushes is passed over. It comes all
//! the same, by anti-entropy: many entries at once, when there is time.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    id::NodeId,
    limits::{NOISE_FROM, NOISE_HEARD_EVERY, NOISE_LASTS, NOISE_WITHIN, NOISY_MAX},
    run::Run,
};

/// Counts what authors write without effect.
#[derive(Debug, Default)]
pub(crate) struct Noise {
    /// Since when, and how much.
    written: BTreeMap<NodeId, (Duration, u32)>,
}

impl Noise {
    /// One more of it. Whether that is too much: said once for each [`NOISE_FROM`].
    pub(crate) fn add(&mut self, author: NodeId, now: Duration) -> bool {
        make_room(&mut self.written, author, |(since, _)| *since);
        let (since, count) = self.written.entry(author).or_insert((now, 0));
        if now.saturating_sub(*since) >= NOISE_WITHIN {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count % NOISE_FROM == 0
    }
}

/// What is heard of those who write much without effect: asked before signatures are checked.
#[derive(Debug, Default)]
pub struct Hearing {
    noisy: BTreeMap<NodeId, Noisy>,
}

#[derive(Debug)]
struct Noisy {
    until: Duration,
    /// When something of it is heard again.
    next: Duration,
}

impl Hearing {
    /// The engine found it to be noisy. `now` is [`crate::time::Now::mono`], here as below.
    pub fn note(&mut self, author: NodeId, now: Duration) {
        make_room(&mut self.noisy, author, |it| it.until);
        let until = now + NOISE_LASTS;
        self.noisy.entry(author).or_insert(Noisy { until, next: now }).until = until;
    }

    /// Whether runs that were pushed together are to be heard. Who wrote them is what they say: it was not checked,
    /// but honest nodes push what they wrote alone.
    pub fn hears<'a>(&mut self, runs: impl IntoIterator<Item = &'a Run>, now: Duration) -> bool {
        if self.noisy.is_empty() {
            return true;
        }
        runs.into_iter().all(|run| self.hears_of(run.log.author, now))
    }

    fn hears_of(&mut self, author: NodeId, now: Duration) -> bool {
        let Some(it) = self.noisy.get_mut(&author) else { return true };
        if now >= it.until {
            self.noisy.remove(&author);
            return true;
        }
        let heard = now >= it.next;
        if heard {
            it.next = now + NOISE_HEARD_EVERY;
        }
        heard
    }
}

/// Whoever is oldest in it goes, if there is no room for one more.
fn make_room<T>(all: &mut BTreeMap<NodeId, T>, author: NodeId, age: impl Fn(&T) -> Duration) {
    if all.len() >= NOISY_MAX && !all.contains_key(&author) {
        let oldest = all.iter().min_by_key(|(_, it)| age(it)).map(|(node, _)| *node);
        oldest.and_then(|node| all.remove(&node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{LogId, RoomId};

    const SECOND: Duration = Duration::from_secs(1);

    fn author(n: u8) -> NodeId {
        NodeId([n; 32])
    }

    fn run(n: u8) -> Run {
        let log = LogId { author: author(n), incarnation: 0 };
        let room = RoomId([1; 16]);
        Run { room, log, first: 1, backlink: [0; 32], entries: Vec::new(), seal: [0; 64] }
    }

    /// Of so many seconds with two hundred pushes each, how many are heard.
    fn heard(hearing: &mut Hearing, from: Duration, secs: u32) -> usize {
        let times = (0..secs * 200).map(|i| from + SECOND * i / 200);
        times.filter(|now| hearing.hears([&run(1)], *now)).count()
    }

    #[test]
    fn a_little_without_effect_is_no_noise_and_each_so_many_are() {
        let mut noise = Noise::default();
        let said = |noise: &mut Noise, at: Duration, count: u32| {
            (0..count).filter(|_| noise.add(author(1), at)).count()
        };
        assert_eq!(said(&mut noise, SECOND, NOISE_FROM - 1), 0);
        // Another does not count for it, and what was long ago does not either.
        assert_eq!((0..NOISE_FROM).filter(|_| noise.add(author(2), SECOND)).count(), 1);
        let later = SECOND + NOISE_WITHIN;
        assert_eq!(said(&mut noise, later, NOISE_FROM - 1), 0);
        assert_eq!(said(&mut noise, later, 1), 1);
        assert_eq!(said(&mut noise, later, NOISE_FROM * 3), 3, "as long as it goes on");
    }

    #[test]
    fn of_who_is_noisy_a_part_is_heard_and_after_a_while_all() {
        let mut hearing = Hearing::default();
        assert_eq!(heard(&mut hearing, SECOND, 1), 200);
        hearing.note(author(1), SECOND * 2);
        let part = SECOND.as_millis() / NOISE_HEARD_EVERY.as_millis();
        assert_eq!(heard(&mut hearing, SECOND * 2, 5) as u128, part * 5);
        assert!(hearing.hears([&run(2)], SECOND * 3), "others are heard");
        // It goes on.
        hearing.note(author(1), SECOND * 7);
        assert_eq!(heard(&mut hearing, SECOND * 7, 5) as u128, part * 5);
        assert_eq!(heard(&mut hearing, SECOND * 7 + NOISE_LASTS, 1), 200);
    }

    #[test]
    fn noise_is_not_heard_in_company() {
        let mut hearing = Hearing::default();
        hearing.note(author(1), SECOND);
        assert!(hearing.hears([&run(1)], SECOND));
        assert!(!hearing.hears([&run(2), &run(1)], SECOND));
    }

    #[test]
    fn so_many_are_remembered_and_the_newest() {
        let (mut noise, mut hearing) = (Noise::default(), Hearing::default());
        for n in 0..=255 {
            noise.add(author(n), SECOND * n.into());
            hearing.note(author(n), SECOND * n.into());
        }
        assert_eq!((noise.written.len(), hearing.noisy.len()), (NOISY_MAX, NOISY_MAX));
        let mut new = author(7);
        new.0[0] = 1;
        noise.add(new, SECOND * 300);
        hearing.note(new, SECOND * 300);
        assert_eq!((noise.written.len(), hearing.noisy.len()), (NOISY_MAX, NOISY_MAX));
        assert!(!noise.written.contains_key(&author(0)) && !hearing.noisy.contains_key(&author(0)));
        assert!(hearing.noisy.contains_key(&new));
    }
}
