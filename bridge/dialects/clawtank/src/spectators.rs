//! Those who look on and have no seat: in rooms that are for everybody, and with a key also in those of the key.
//!
//! A room that is looked at has one [stage](stage), however many look: it hears the room's events once, and writes each of its
//! frames once for each form of ids. What they see is in [`shown`], and what is taken out of it in [`bridge::redact`]. Members are told
//! nothing but how many there are, and what they say where the room's hosts let them: [`talk`].
//!
//! In reading order: [`look`] (whether a room is open to them), [`stage`], [`shown`], [`talk`] (one of them),
//! [`door`] (over a path of their own), [`seat`] (over `/ws`).

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex},
};

use bridge::{read::Visitor, seam::event::Audience};
use mesh::name::id::RoomId;

use crate::{
    limits::{SPECTATORS_HERE_MAX, SPECTATORS_OF_NETWORK_MAX, WATCHED_ROOMS_MAX},
    newest::{Newest, lock},
    shared::Shared,
    style::Style,
    times,
};

pub(crate) mod door;
mod look;
pub(crate) mod seat;
mod shown;
mod stage;
pub(crate) mod talk;

use look::{Look, Looks, Turned};
use stage::Stage;

/// All who look on at this node.
pub(crate) struct Spectators {
    stages: Mutex<Stages>,
    days: Mutex<Newest<RoomId, Day>>,
    looks: Looks,
}

#[derive(Default)]
struct Stages {
    of: HashMap<RoomId, Arc<Stage>>,
    /// Of all rooms.
    here: usize,
    /// Of each network, of those without a key.
    from: HashMap<IpAddr, usize>,
}

/// How many looked at a room in one day.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Day {
    /// Since 1970.
    day: u64,
    pub(crate) peak: usize,
    pub(crate) all: usize,
}

/// One of them has a place, until this is dropped.
pub(crate) struct Place {
    spectators: Arc<Spectators>,
    pub(crate) stage: Arc<Stage>,
    from: Option<IpAddr>,
}

impl Spectators {
    pub(crate) fn new() -> Arc<Spectators> {
        Arc::new(Spectators {
            stages: Mutex::default(),
            days: Mutex::new(Newest::new(WATCHED_ROOMS_MAX)),
            looks: Looks::new(),
        })
    }

    /// How many look at a room now.
    pub(crate) fn count(&self, room: RoomId) -> usize {
        lock(&self.stages).of.get(&room).map_or(0, |stage| stage.present())
    }

    /// One more comes.
    fn came(&self, room: RoomId, now: usize) -> Day {
        let today = times::now_ms() / 86_400_000;
        let mut days = lock(&self.days);
        let day = days.at(&room, Day::default);
        if day.day != today {
            *day = Day { day: today, ..Day::default() };
        }
        day.peak = day.peak.max(now);
        day.all += 1;
        *day
    }
}

/// Takes a place in a room that was found open.
fn enter(
    shared: &Arc<Shared>,
    (look, visitor): (&Look, &Visitor),
    (style, from): (Style, Option<IpAddr>),
) -> Result<(Place, Day), Turned> {
    let spectators = &shared.spectators;
    let room = look.info.room.room;
    let mut stages = lock(&spectators.stages);
    let of_network = from.and_then(|from| stages.from.get(&from)).copied().unwrap_or(0);
    if stages.here >= SPECTATORS_HERE_MAX || of_network >= SPECTATORS_OF_NETWORK_MAX {
        return Err(Turned::Full);
    }
    // One that has ended may still be there, for somebody who is slow to leave.
    let stage = match stages.of.get(&room).filter(|stage| !stage.is_over()) {
        Some(stage) => stage.clone(),
        None => {
            let onlooker = shared.desk.look_on(visitor, room).map_err(|_| Turned::NotFound)?;
            let stage = stage::open(shared, look, visitor.clone(), (onlooker, style));
            stages.of.insert(room, stage.clone());
            stage
        }
    };
    let now = stage.present();
    if u64::try_from(now).unwrap_or(u64::MAX) >= look.rules.limit {
        drop(stages);
        // A stage at which nobody has a place is taken down.
        spectators.take_down(&stage);
        return Err(Turned::Full);
    }
    stage.takes();
    stages.here += 1;
    if let Some(from) = from {
        *stages.from.entry(from).or_default() += 1;
    }
    drop(stages);
    let day = spectators.came(room, now + 1);
    Ok((Place { spectators: spectators.clone(), stage, from }, day))
}

impl Spectators {
    /// Takes a stage down, if nobody is there any more.
    fn take_down(&self, stage: &Arc<Stage>) {
        let mut stages = lock(&self.stages);
        let room = stage.room;
        let is_it = stages.of.get(&room).is_some_and(|known| Arc::ptr_eq(known, stage));
        if is_it && stage.present() == 0 {
            stages.of.remove(&room);
            stage.end();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut stages = lock(&self.spectators.stages);
            stages.here -= 1;
            self.stage.leaves();
            if let Some(from) = self.from
                && let Entry::Occupied(mut of_network) = stages.from.entry(from)
            {
                *of_network.get_mut() -= 1;
                if *of_network.get() == 0 {
                    of_network.remove();
                }
            }
        }
        self.spectators.take_down(&self.stage);
    }
}

/// Members are told of each so many who come in a day, where the hosts of a room want that.
pub(crate) const ANNOUNCED_EVERY: usize = 10;

/// Members are told that one has come, if they are to be.
fn announce(shared: &Shared, spectator: &talk::Spectator, day: Day) {
    let stage = &spectator.place.stage;
    if stage.rules().announces && day.all.is_multiple_of(ANNOUNCED_EVERY) {
        let came = Audience::Came {
            who: spectator.who(),
            now: stage.present(),
            peak: day.peak,
            today: day.all,
            most: stage.rules().limit,
            wall_ms: times::now_ms(),
        };
        shared.desk.tell_of_audience(stage.room, came);
    }
}
