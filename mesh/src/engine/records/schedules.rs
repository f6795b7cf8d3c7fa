//! Writing schedules of keys.

use super::{
    Records,
    writing::{Writing, impossible, place_for},
};
use crate::{
    api::command::{Outcome, Reader, Refused, ScheduleAct, ScheduleChange},
    engine::known::Known,
    limits::JOBS_PER_KEY_MAX,
    records::schedules::{self, JOBS},
    wire::record::RecordKey,
};

impl Records {
    pub(crate) fn change_schedule(
        &mut self,
        known: &mut Known,
        change: ScheduleChange,
    ) -> Result<Outcome, Refused> {
        let ScheduleChange { room, key, signer, act } = change;
        // Of two keys the other one would have jobs of its own there, and nobody could tell whose are meant.
        let sides = known.told.get(&room).and_then(|view| view.sides.clone());
        let agent =
            sides.filter(|sides| sides.iter().all(|(_, of)| known.directory.current(of) == key));
        let agent = agent.and_then(|sides| sides.iter().next().map(|(agent, _)| agent.clone()));
        let agent = agent.ok_or(Refused::NotYours)?;
        known.may_read(&Reader { key, agent: Some(agent) }, room)?;
        known.may_write(room)?;
        let shelf = place_for(known, key, room)?;
        let at = &shelf.at;
        let draft = match act {
            ScheduleAct::Put(job, text) => {
                if !text.fits() {
                    return Err(impossible(TOO_LONG));
                }
                let name = RecordKey { id: schedules::name_of(at, job), owner: Some(key) };
                let set = self.set(at.space, JOBS.number);
                let is_new = !set.is_some_and(|set| set.is_live(name));
                let first = at.subject(JOBS.number);
                let there = set.map_or(0, |set| set.live_of(key, &first).count());
                if is_new && there >= JOBS_PER_KEY_MAX {
                    let text = format!("the key has {there} jobs, and may have {JOBS_PER_KEY_MAX}");
                    return Err(Refused::Full(text));
                }
                // A deletion is above all that could be written.
                if is_new && set.is_some_and(|set| set.head(name).is_some()) {
                    return Err(impossible(DELETED));
                }
                text.draft(at, job)
            }
            ScheduleAct::Remove(job) => {
                let name = RecordKey { id: schedules::name_of(at, job), owner: Some(key) };
                if !self.set(at.space, JOBS.number).is_some_and(|set| set.is_live(name)) {
                    return Err(impossible(DELETED));
                }
                schedules::deletion(at, job)
            }
            ScheduleAct::Ran(run) => {
                if !run.fits() {
                    return Err(impossible(TOO_LONG));
                }
                run.draft(at)
            }
        };
        self.write(known, &Writing::of_room(key, signer.as_deref(), &shelf), vec![draft.into()])?;
        Ok(Outcome::Done)
    }
}

const TOO_LONG: &str = "a text of a job or a run is longer than it may be";
const DELETED: &str = "there is no such job: it may have been deleted";
