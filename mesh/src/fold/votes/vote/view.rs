//! A vote as clients see it.

use std::{collections::BTreeMap, sync::Arc};

use super::Vote;
use crate::{
    api::agenda::{VoteNotes, VoteResult, VoteView},
    name::{
        id::{AgentId, EntryRef, RoomId},
        time::Now,
    },
};

impl Vote {
    pub(crate) fn view(&self, room: RoomId, now: Now) -> VoteView {
        let view = self.view_of_ballots(room, now);
        let Some(ended) = &self.imported else { return view };
        let cast = usize::try_from(ended.tally.iter().sum::<u64>()).unwrap_or(usize::MAX);
        VoteView { cast, eligible: ended.eligible, tally: Some(ended.tally.clone()), ..view }
    }

    fn view_of_ballots(&self, room: RoomId, now: Now) -> VoteView {
        let closed = self.is_closed();
        let result = self.has_result(now.mono);
        let mut tally = vec![0; self.options.len()];
        let (mut counted, mut unopened) = (0, 0);
        for (_, ballot) in self.counted() {
            counted += 1;
            match ballot.open {
                Some(open) => tally[open.choice] += 1,
                None => unopened += 1,
            }
        }
        let notes = VoteNotes {
            closing: !result && (closed || self.is_overdue(now.wall_ms)),
            unopened: if result { unopened } else { 0 },
            late: if result { self.cast.saturating_sub(counted) } else { 0 },
            corrected: self.corrected(),
        };
        VoteView {
            vote: self.id(room),
            room,
            title: Arc::clone(&self.title),
            description: self.description.clone(),
            options: Arc::clone(&self.options),
            created_by: self.created_by.clone(),
            created_ms: self.created_ms,
            closes_ms: self.closes_ms,
            cast: if closed { counted } else { self.cast },
            eligible: self.voters.len(),
            tally: result.then_some(tally),
            closed: result,
            notes,
        }
    }

    pub(crate) fn result(&self, room: RoomId, now: Now) -> VoteResult {
        let open = self.counted().filter_map(|(_, ballot)| {
            let voter = self.voters.get(&ballot.agent)?;
            let choice = u32::try_from(ballot.open?.choice).ok()?;
            Some((voter.nth, (ballot.agent.clone(), voter.name.clone(), choice)))
        });
        let in_order: BTreeMap<usize, (AgentId, String, u32)> = open.collect();
        VoteResult { vote: self.view(room, now), ballots: in_order.into_values().collect() }
    }

    /// Ballots of the tally that were not in it when it was told.
    fn corrected(&self) -> usize {
        let Some(told) = &self.here.told else { return 0 };
        let then = self.closes.iter().find(|(position, _)| Some(position.place) == told.close);
        let then = then.map(|(_, close)| &close.ballots).or(self.here.had.as_ref());
        let Some(then) = then else { return 0 };
        let had = |place: &EntryRef| then.contains(place) && !told.missing.contains(place);
        let now = self.counted().filter(|(_, ballot)| ballot.open.is_some());
        now.filter(|(place, _)| !had(place)).count()
    }
}
