//! The rules of a node: which rooms a party may read, how much its key may say, and how a call is judged. The same for all
//! connections and for the desk.

use std::{sync::Arc, time::Instant};

use mesh::{
    api::command::Command,
    name::id::{KeyPrint, RoomId},
};

use super::{
    meter::Meter,
    pace::{Paced, Paces},
    party::Party,
};
use crate::{
    config::Config,
    delivery::{hook::Hook, hub::Hub},
    seam::{answer::RoomFacts, call::ToMesh, refusal::Refusal},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(super) config: Arc<Config>,
    pub(super) hub: Arc<Hub>,
    meter: Arc<Meter>,
    paces: Arc<Paces>,
}

/// Whether the party's key may do more than read.
pub(super) fn may_write(party: &Party) -> Result<(), Refusal> {
    if party.standing().may_write() { Ok(()) } else { Err(Refusal::ReadsOnly) }
}

impl Rules {
    pub(crate) fn new(config: Arc<Config>, hub: Arc<Hub>, meter: Arc<Meter>) -> Rules {
        Rules { config, hub, meter, paces: Arc::new(Paces::new(Instant::now())) }
    }

    /// A connection that is to be heard at a pace.
    pub(crate) fn paced(&self, now: Instant) -> Paced {
        Paced::new(self.paces.clone(), now)
    }

    /// A room, if it is known and the party may read it.
    pub(super) fn readable(&self, party: &Party, room: RoomId) -> Result<RoomFacts, Refusal> {
        self.hub.readable(room, party.key(), party.as_reader().agent.as_deref())
    }

    /// Takes one of the messages and acts that the key may send in a minute.
    pub(super) fn count(&self, party: &Party, now: Instant) -> Result<(), Refusal> {
        let max = self.config.quota(party.standing()).messages_per_minute;
        // Without a limit for the operator's eyes alone.
        let took = self.meter.take(party.key(), max.unwrap_or(u32::MAX), now);
        match max {
            Some(per_minute) if !took => Err(Refusal::TooFast { per_minute }),
            Some(_) | None => Ok(()),
        }
    }

    /// How many a key has taken within the last minute.
    pub(crate) fn said_by(&self, key: KeyPrint, now: Instant) -> u32 {
        self.meter.taken(key, now)
    }

    /// The command that a call is put to the mesh with, if the party may make the call. One that counts is counted.
    pub(super) fn judge<C: ToMesh>(
        &self,
        party: &Party,
        call: C,
        now: Instant,
    ) -> Result<(Hook, Command), Refusal> {
        if C::ROW.acts {
            may_write(party)?;
        }
        let facts = call.room().map(|room| self.readable(party, room)).transpose()?;
        if let Some(sends) = call.sends() {
            self.may_send(party, &sends, facts.as_ref())?;
        }
        call.check(facts, self.config.quota(party.standing()))?;
        let (hook, command) = (call.hook(), call.command(party)?);
        if C::ROW.counts {
            self.count(party, now)?;
        }
        Ok((hook, command))
    }
}
