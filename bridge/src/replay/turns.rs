//! Who plays a replay next: of each key one at a time, in the order in which they came, so many in all; and how often. Those who show
//! no key are told apart by their networks.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use mesh::name::id::KeyPrint;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    limits::{
        REPLAY_NETWORKS_MAX, REPLAY_WAITS_FOR, REPLAYS_AT_ONCE, REPLAYS_OF_KEY_WAITING_MAX,
        REPLAYS_OF_NETWORK, REPLAYS_OF_NETWORK_PER_MINUTE, REPLAYS_OF_STRANGERS,
        REPLAYS_OF_STRANGERS_PER_MINUTE, REPLAYS_PER_MINUTE,
    },
    read::Visitor,
    seam::refusal::Refusal,
    session::{meter::Meter, rates::Buckets},
};

/// See the module.
pub(super) struct Turns {
    lines: Mutex<HashMap<KeyPrint, Line>>,
    all: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    /// Replays that are played for strangers of each network.
    networks: Mutex<HashMap<IpAddr, usize>>,
    begun: Meter,
    begun_by: Mutex<Buckets<IpAddr>>,
}

/// Those of one key.
struct Line {
    turn: Arc<Semaphore>,
    /// Who plays and who waits. A line of nobody is taken away.
    here: usize,
}

/// Somebody's place in the line of a key.
struct Place {
    turns: Arc<Turns>,
    key: KeyPrint,
    turn: Arc<Semaphore>,
}

/// One of the places of a network.
struct Share {
    turns: Arc<Turns>,
    network: IpAddr,
}

/// A replay may be played while this is held.
pub(super) struct Turn {
    _all: OwnedSemaphorePermit,
    _own: Own,
}

/// What others of the same kind have less of.
enum Own {
    /// Of those who show a key: the others of it wait.
    Key { _turn: OwnedSemaphorePermit, _place: Place },
    /// Of those who do not. `None`: they are on this machine, or nobody knows where.
    Network { _share: Option<Share> },
}

impl Turns {
    pub(super) fn new() -> Arc<Turns> {
        Arc::new(Turns {
            lines: Mutex::default(),
            all: Arc::new(Semaphore::new(REPLAYS_AT_ONCE)),
            strangers: Arc::new(Semaphore::new(REPLAYS_OF_STRANGERS)),
            networks: Mutex::default(),
            begun: Meter::new(Instant::now()),
            begun_by: Mutex::new(Buckets::new(REPLAY_NETWORKS_MAX)),
        })
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<KeyPrint, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is this one's turn. Strangers do not wait.
    pub(super) async fn next(self: &Arc<Turns>, visitor: &Visitor) -> Result<Turn, Refusal> {
        if visitor.is_stranger() {
            let all = self.strangers.clone().try_acquire_owned();
            let all = all.map_err(|_| Refusal::Overloaded)?;
            let share = visitor.network().map(|network| self.share(network)).transpose()?;
            return Ok(Turn { _all: all, _own: Own::Network { _share: share } });
        }
        let place = self.stand(visitor.key())?;
        let turn = place.turn.clone();
        let waited = timeout(REPLAY_WAITS_FOR, async {
            // In the line of the key first: at the node's no key has more than one.
            let own = turn.acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>((own, self.all.clone().acquire_owned().await?))
        });
        let (own, all) = waited.await.ok().and_then(Result::ok).ok_or(Refusal::Overloaded)?;
        Ok(Turn { _all: all, _own: Own::Key { _turn: own, _place: place } })
    }

    fn share(self: &Arc<Turns>, network: IpAddr) -> Result<Share, Refusal> {
        let mut networks = self.networks();
        // As many networks as strangers at the most.
        let here = networks.entry(network).or_default();
        if *here >= REPLAYS_OF_NETWORK {
            return Err(Refusal::Overloaded);
        }
        *here += 1;
        Ok(Share { turns: self.clone(), network })
    }

    fn networks(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stand(self: &Arc<Turns>, key: KeyPrint) -> Result<Place, Refusal> {
        let mut lines = self.lines();
        let new = || Line { turn: Arc::new(Semaphore::new(1)), here: 0 };
        let line = lines.entry(key).or_insert_with(new);
        if line.here > REPLAYS_OF_KEY_WAITING_MAX {
            return Err(Refusal::Overloaded);
        }
        line.here += 1;
        Ok(Place { turns: self.clone(), key, turn: line.turn.clone() })
    }

    /// A room is gone through from its beginning: counted, for each key, and for the strangers of each network and all of them.
    pub(super) fn begins(&self, visitor: &Visitor) -> Result<(), Refusal> {
        if let Some(network) = visitor.network() {
            let rate = REPLAYS_OF_NETWORK_PER_MINUTE;
            let mut begun = self.begun_by.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = begun.take(&network, rate, Instant::now());
            taken.map_err(|_| Refusal::TooManyReplays { per_minute: rate.per_minute })?;
        }
        let per_minute = match visitor.is_stranger() {
            true => REPLAYS_OF_STRANGERS_PER_MINUTE,
            false => REPLAYS_PER_MINUTE,
        };
        match self.begun.take(visitor.key(), per_minute, Instant::now()) {
            true => Ok(()),
            false => Err(Refusal::TooManyReplays { per_minute }),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        if let Some(line) = lines.get_mut(&self.key) {
            line.here -= 1;
            if line.here == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut networks = self.turns.networks();
        if let Entry::Occupied(mut here) = networks.entry(self.network) {
            *here.get_mut() -= 1;
            if *here.get() == 0 {
                here.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let turns = Turns::new();
        let (greedy, other) =
            (Visitor::holding(KeyPrint([1; 16])), Visitor::holding(KeyPrint([2; 16])));
        let held = turns.next(&greedy).await.unwrap();
        let mut waiting = JoinSet::new();
        for nth in 0..REPLAYS_OF_KEY_WAITING_MAX {
            let (turns, greedy) = (turns.clone(), greedy.clone());
            waiting.spawn(async move { turns.next(&greedy).await.map(|turn| (nth, turn)) });
            tokio::task::yield_now().await;
        }
        assert!(matches!(turns.next(&greedy).await, Err(Refusal::Overloaded)), "it has a bound");
        drop(turns.next(&other).await.unwrap());
        // In the order in which they came.
        drop(held);
        for nth in 0..REPLAYS_OF_KEY_WAITING_MAX {
            let (first, turn) = waiting.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(first, nth);
            drop(turn);
        }
        assert!(turns.lines().is_empty(), "nothing is left of those who are gone");
        // Nobody waits for ever.
        let _held = turns.next(&greedy).await.unwrap();
        let began = tokio::time::Instant::now();
        assert!(matches!(turns.next(&greedy).await, Err(Refusal::Overloaded)));
        assert!(began.elapsed() < REPLAY_WAITS_FOR + Duration::from_secs(1));
        assert_eq!(turns.lines()[&greedy.key()].here, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_played_at_once_and_so_many_begun_in_a_minute() {
        let turns = Turns::new();
        let mut held = Vec::new();
        for nth in 0..REPLAYS_AT_ONCE {
            let key = KeyPrint([u8::try_from(nth).unwrap(); 16]);
            held.push(turns.next(&Visitor::holding(key)).await.unwrap());
        }
        let late = Visitor::holding(KeyPrint([99; 16]));
        assert!(matches!(turns.next(&late).await, Err(Refusal::Overloaded)));
        drop(turns.next(&Visitor::stranger()).await.unwrap());
        held.pop();
        drop(turns.next(&late).await.unwrap());
        for (reader, per_minute) in
            [(&late, REPLAYS_PER_MINUTE), (&Visitor::stranger(), REPLAYS_OF_STRANGERS_PER_MINUTE)]
        {
            for _ in 0..per_minute {
                turns.begins(reader).unwrap();
            }
            assert_eq!(turns.begins(reader), Err(Refusal::TooManyReplays { per_minute }));
        }
    }

    #[tokio::test]
    async fn a_network_of_strangers_leaves_places_to_others() {
        let turns = Turns::new();
        let of = |last: u8| Visitor::stranger().at(IpAddr::from([192, 0, 2, last]));
        let mut held = Vec::new();
        for nth in 1..u8::try_from(REPLAYS_OF_STRANGERS).unwrap() {
            for _ in 0..REPLAYS_OF_NETWORK {
                held.push(turns.next(&of(nth)).await.unwrap());
            }
            assert!(matches!(turns.next(&of(nth)).await, Err(Refusal::Overloaded)), "{nth}");
        }
        drop(turns.next(&of(99)).await.unwrap());
        held.clear();
        assert!(turns.networks().is_empty(), "nothing is left of those who are gone");
        // Those of this machine have what all strangers have.
        let near = Visitor::stranger().at(IpAddr::from([127, 0, 0, 1]));
        for _ in 0..REPLAYS_OF_STRANGERS {
            held.push(turns.next(&near).await.unwrap());
        }
        let per_minute = REPLAYS_OF_NETWORK_PER_MINUTE.per_minute;
        for _ in 0..REPLAYS_OF_NETWORK_PER_MINUTE.burst {
            turns.begins(&of(1)).unwrap();
        }
        assert_eq!(turns.begins(&of(1)), Err(Refusal::TooManyReplays { per_minute }));
        turns.begins(&of(2)).unwrap();
    }
}
