//! Nonces of ballots, and limits of votes: functions of acts alone.

use crate::{
    api::rules::{Broken, Field, Rule, holds, titled, within},
    limits::{VOTE_FOR_MAX, VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX},
    name::{
        id::{AgentId, EntryRef, RoomId},
        identity::Identity,
    },
    wire::acts::{VoteImported, VoteOpened},
};

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

/// Whether an entry opens a vote that means anything to anybody: a function of the entry alone.
pub(super) fn is_sound(vote: &VoteOpened, wall_ms: u64) -> bool {
    let closes = vote.closes_ms.map(|at| at.saturating_sub(wall_ms));
    let texts = check_texts(&vote.title, vote.description.as_deref(), &vote.options);
    texts.is_ok() && closes.is_none_or(|after| (1..=longest_ms()).contains(&after))
}

fn check_texts(title: &str, description: Option<&str>, options: &[String]) -> Result<(), Broken> {
    titled(title, description, VOTE_TITLE_BYTES_MAX)?;
    let (min, max) = (2, VOTE_OPTIONS_MAX);
    holds((min..=max).contains(&options.len()), Field::Options, Rule::Count { min, max })?;
    options.iter().try_for_each(|text| within(Field::Options, text, VOTE_OPTION_BYTES_MAX))
}

/// Whether an imported vote can have ended so. `Err` names the contradiction.
pub(crate) fn check_imported(vote: &VoteImported) -> Result<(), String> {
    check_texts(&vote.title, vote.description.as_deref(), &vote.options)
        .map_err(|broken| broken.to_string())?;
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
