//! Commitments of ballots, and limits of votes: functions of acts alone.

use crate::{
    limits::{
        DESCRIPTION_BYTES_MAX, VOTE_FOR_MAX, VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX,
        VOTE_TITLE_BYTES_MAX,
    },
    name::{
        id::{AgentId, EntryRef, Hash, RoomId, sha256},
        identity::Identity,
    },
    wire::acts::{VoteImported, VoteOpened},
};

/// The commitment to a choice in a vote of a room. All parts but the last have one length each.
pub(crate) fn commitment(
    room: RoomId,
    vote: EntryRef,
    agent: &AgentId,
    choice: u32,
    nonce: &[u8; 32],
) -> Hash {
    sha256(&[
        b"clawmesh ballot",
        &room.0,
        &vote.log.author.0,
        &vote.log.incarnation.to_be_bytes(),
        &vote.seq.to_be_bytes(),
        &choice.to_be_bytes(),
        nonce,
        agent.as_bytes(),
    ])
}

/// The secret that makes a commitment of this node unguessable. It need not be kept, and there is one for
/// each agent and vote.
pub(crate) fn nonce(
    identity: &Identity,
    room: RoomId,
    vote: EntryRef,
    agent: &AgentId,
) -> [u8; 32] {
    let incarnation = vote.log.incarnation.to_be_bytes();
    let seq = vote.seq.to_be_bytes();
    let parts = [&room.0[..], &vote.log.author.0, &incarnation, &seq, agent.as_bytes()];
    identity.secret(b"clawmesh ballot nonce", &parts)
}

/// Whether it may be opened, and means anything to anybody: a function of the entry alone. `Err` says
/// what is wrong with which field.
pub(crate) fn check(vote: &VoteOpened, wall_ms: u64) -> Result<(), String> {
    check_texts(&vote.title, vote.description.as_deref(), &vote.options)?;
    let closes = vote.closes_ms.map(|at| at.saturating_sub(wall_ms));
    if closes.is_some_and(|after| after == 0 || after > longest_ms()) {
        return Err(format!("duration_secs must be within 1 to {}", VOTE_FOR_MAX.as_secs()));
    }
    Ok(())
}

fn check_texts(title: &str, description: Option<&str>, options: &[String]) -> Result<(), String> {
    if title.trim().is_empty() || title.len() > VOTE_TITLE_BYTES_MAX {
        return Err(format!("title must have 1 to {VOTE_TITLE_BYTES_MAX} bytes and not be blank"));
    }
    if description.is_some_and(|text| text.len() > DESCRIPTION_BYTES_MAX) {
        return Err(format!("description may have {DESCRIPTION_BYTES_MAX} bytes"));
    }
    if !(2..=VOTE_OPTIONS_MAX).contains(&options.len()) {
        return Err(format!("options must be 2 to {VOTE_OPTIONS_MAX}"));
    }
    if options.iter().any(|option| option.is_empty() || option.len() > VOTE_OPTION_BYTES_MAX) {
        return Err(format!("options must have 1 to {VOTE_OPTION_BYTES_MAX} bytes each"));
    }
    Ok(())
}

/// Whether an imported vote can have ended so. `Err` names the contradiction.
pub(crate) fn check_imported(vote: &VoteImported) -> Result<(), String> {
    check_texts(&vote.title, vote.description.as_deref(), &vote.options)?;
    if vote.tally.len() != vote.options.len() {
        return Err(format!("a tally of {} options has {}", vote.options.len(), vote.tally.len()));
    }
    let cast = vote.tally.iter().try_fold(0u64, |sum, votes| sum.checked_add(*votes));
    if cast.is_none_or(|cast| cast > vote.eligible) {
        return Err(format!("more votes were cast than the {} who could vote", vote.eligible));
    }
    Ok(())
}

/// [`VOTE_FOR_MAX`].
pub(super) fn longest_ms() -> u64 {
    u64::try_from(VOTE_FOR_MAX.as_millis()).unwrap_or(u64::MAX)
}

/// About how many bytes of memory it takes.
pub(crate) fn bytes(vote: &VoteOpened) -> usize {
    /// Memory of the vote itself besides its texts, and of each voter.
    const EACH: usize = 256;
    let voters: usize =
        vote.eligible.iter().map(|named| named.agent.len() + named.name.len() + EACH).sum();
    let options: usize = vote.options.iter().map(String::len).sum();
    let description = vote.description.as_ref().map_or(0, String::len);
    vote.title.len() + description + options + voters + EACH
}
