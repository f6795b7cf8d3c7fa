//! Votes and elections, as the wire has them.

use mesh::{
    api::agenda::{LeaderGone, VoteNotes, VoteResult as CoreResult, VoteView},
    name::id::{AgentId, RoomId},
};
use protocol::{
    event::{Ballot, ElectionStarted, Event, LeaderCleared, LeaderElected, VoteResult},
    object::{Tallied, Vote, VoteNote, VoteStatus},
};

use super::{agent_ids, room_text, timestamp};
use crate::limits::OPT_OUT_SECS;

pub(crate) fn vote(lobby: RoomId, view: &VoteView) -> Vote {
    Vote {
        vote_id: view.vote.to_uuid(),
        room_id: room_text(lobby, view.room),
        title: view.title.to_string(),
        description: view.description.as_deref().map(String::from),
        options: view.options.to_vec(),
        created_by: view.created_by.to_string(),
        created_at: timestamp(view.created_ms),
        closes_at: view.closes_ms.map(timestamp),
        status: if view.closed { VoteStatus::Closed } else { VoteStatus::Open },
        votes_cast: view.cast as u64,
        eligible_voters: view.eligible as u64,
        tally: view.tally.as_deref().map(|counts| tally(view, counts)),
        mesh: vote_note(view.notes),
    }
}

pub(crate) fn vote_result(lobby: RoomId, result: &CoreResult) -> VoteResult {
    let view = &result.vote;
    let ballots = result.ballots.iter().map(|(agent, name, option)| Ballot {
        agent_id: agent.to_string(),
        agent_name: name.clone(),
        option_index: u64::from(*option),
    });
    VoteResult {
        vote_id: view.vote.to_uuid(),
        room_id: room_text(lobby, view.room),
        title: view.title.to_string(),
        options: view.options.to_vec(),
        tally: tally(view, view.tally.as_deref().unwrap_or_default()),
        ballots: ballots.collect(),
        // Unopened ballots are in the note, not in the counts.
        total_votes: view.tally.iter().flatten().sum(),
        eligible_voters: view.eligible as u64,
        mesh: vote_note(view.notes),
    }
}

/// One count for each option; 0 if there is none.
fn tally(view: &VoteView, counts: &[u64]) -> Vec<Tallied> {
    let counts = counts.iter().copied().chain(std::iter::repeat(0));
    let options = (0..).zip(view.options.iter()).zip(counts);
    let tallied = options.map(|((index, option), count)| Tallied {
        option_index: index,
        option_text: option.clone(),
        count,
    });
    tallied.collect()
}

fn vote_note(notes: VoteNotes) -> Option<VoteNote> {
    let VoteNotes { closing, unopened, late, corrected } = notes;
    (notes != VoteNotes::default()).then_some(VoteNote {
        closing,
        unopened: unopened as u64,
        late: late as u64,
        corrected: corrected as u64,
    })
}

pub(crate) fn election_started(room_id: String, candidates: &[AgentId], by: &AgentId) -> Event {
    Event::ElectionStarted(ElectionStarted {
        room_id,
        candidates: agent_ids(candidates),
        started_by: by.to_string(),
        opt_out_seconds: OPT_OUT_SECS,
    })
}

pub(crate) fn leader_elected(room_id: String, agent: &AgentId, name: &str) -> Event {
    Event::LeaderElected(LeaderElected {
        room_id,
        leader_id: agent.to_string(),
        leader_name: String::from(name),
    })
}

/// The reasons are those of spec §4; `superseded` is the mesh's own.
pub(crate) fn leader_cleared(room_id: String, why: LeaderGone) -> Event {
    let reason = match why {
        LeaderGone::Left => "leader left",
        LeaderGone::AllDeclined => "all candidates declined",
        LeaderGone::Superseded => "superseded",
    };
    Event::LeaderCleared(LeaderCleared { room_id, reason: String::from(reason) })
}
