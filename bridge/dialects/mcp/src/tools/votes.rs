//! Votes.

use std::time::Duration;

use bridge::seam::{
    call::{CastVote, CreateVote, DescribeRoom, GetVote, ListVotes},
    refusal::Refusal,
};
use mesh::{
    api::{
        agenda::{NewVote, VoteView},
        command::Refused,
    },
    name::id::MessageId,
};
use serde_json::json;
use tokio::time::Instant;

use super::rooms::Page;

use crate::{
    arguments::Arguments,
    asking::Asking,
    limits::KEY_CHARS_MAX,
    outcome::{No, Outcome, object},
};

/// Votes of a room that are shown.
const NEWEST: u64 = 20;
/// The longest option that there can be, in characters.
const OPTION_CHARS_MAX: usize = mesh::limits::VOTE_OPTION_BYTES_MAX;

pub(super) async fn create(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let title = arguments.required("title", mesh::limits::VOTE_TITLE_BYTES_MAX)?;
    let options = arguments.texts("options")?;
    let description = arguments.text("description")?;
    let duration_secs = arguments.integer("durationSeconds", 1, u64::MAX)?;
    let room = asking.room(arguments).await?.room;
    let vote = NewVote { room, title, description, options, duration_secs };
    let vote = asking.act(CreateVote(vote)).await?;
    Ok(object(json!({"status": "ok", "vote": asking.plain_reader().vote(&vote)})))
}

pub(super) async fn cast(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let vote = id(arguments)?.ok_or_else(|| No::argument("voteId", "is required"))?;
    let option = arguments.required("option", OPTION_CHARS_MAX)?;
    let view = vote_inside(asking, vote).await?;
    let option = index_of(&view, &option).ok_or_else(|| {
        let options = view.options.iter().enumerate();
        let options = options.map(|(index, text)| format!("{index} {text:?}"));
        let options = options.collect::<Vec<_>>().join(", ");
        No::argument("option", &format!("must be one of {options}"))
    })?;
    let cast = asking.act(CastVote { vote, option }).await?;
    let (cast, eligible) = (cast.cast, cast.eligible);
    Ok(object(json!({"status": "ok", "votesCast": cast, "eligibleVoters": eligible})))
}

/// The exact text before the index: an option may be a number.
fn index_of(view: &VoteView, option: &str) -> Option<u64> {
    let by_text = view.options.iter().position(|text| text == option);
    let by_index = || option.trim().parse().ok().filter(|index| *index < view.options.len());
    by_text.or_else(by_index).and_then(|index| u64::try_from(index).ok())
}

pub(super) async fn result(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(0)?;
    let Some(vote) = id(arguments)? else {
        if arguments.text("room")?.is_none() {
            return Err(No::argument("voteId", "or `room` is required"));
        }
        let room = asking.room_inside(arguments).await?.room;
        let votes = asking.read(ListVotes { room, limit: NEWEST }).await?;
        let reader = asking.plain_reader();
        let votes: Vec<_> = votes.iter().map(|vote| reader.vote(vote)).collect();
        let page = Page::of(votes.len(), 0, NEWEST);
        let mut fields = page.fields("votes", votes);
        // There is no offset: the newest are what is asked for.
        fields.remove("nextOffset");
        return Ok(fields);
    };
    let vote = until_closed(asking, vote, time).await?;
    let status = if vote.closed { "closed" } else { "open" };
    Ok(object(json!({"status": status, "vote": asking.plain_reader().vote(&vote)})))
}

/// A vote of a room that the agent is in. One of a room of another key is as one that is not there.
async fn vote_inside(asking: &Asking, vote: MessageId) -> Result<Box<VoteView>, No> {
    let view = match asking.shared.desk.ask(&asking.reader, GetVote(vote)).await {
        Err(Refusal::Mesh(Refused::NotYours)) => return Err(Refusal::Mesh(Refused::NoVote).into()),
        view => view?,
    };
    let room = asking.read(DescribeRoom(view.room)).await?.room;
    if asking.is_confined() && !asking.may_read(&room).await? {
        return Err(Refusal::Mesh(Refused::NoVote).into());
    }
    asking.inside(&room, &asking.names().key(&room)).await?;
    Ok(view)
}

/// A vote when it is closed, or when the time is over.
async fn until_closed(
    asking: &Asking,
    vote: MessageId,
    time: Duration,
) -> Result<Box<VoteView>, No> {
    let until = Instant::now() + time;
    let mut view = vote_inside(asking, vote).await?;
    if view.closed || time == Duration::ZERO {
        return Ok(view);
    }
    let _held = asking.wait()?;
    let mut watch = asking.shared.desk.watch(&asking.reader, view.room)?;
    loop {
        // Looked at after the watch began, so that its end is not missed.
        view = asking.read(GetVote(vote)).await?;
        if view.closed || Instant::now() >= until {
            asking.goes_on().await?;
            return Ok(view);
        }
        asking.until(&mut watch, until).await?;
    }
}

fn id(arguments: &Arguments) -> Result<Option<MessageId>, No> {
    let Some(text) = arguments.filled("voteId", KEY_CHARS_MAX)? else { return Ok(None) };
    let id = MessageId::from_uuid(&text.trim().to_ascii_lowercase());
    id.map(Some).ok_or_else(|| No::argument("voteId", "must be the id of a vote"))
}
