//! `clawmesh vote`.

use std::time::Duration;

use protocol::request::{CastVote, CreateVote, GetVoteStatus, ListVotes};

use crate::args::seconds;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Sealed votes: nobody sees a ballot before all are in, or time is up.
#[derive(Debug, clap::Subcommand)]
pub enum VoteCommand {
    /// Open a vote: those who are in the room now may cast one ballot each
    Create(Create),
    /// Cast your ballot
    ///
    /// Only agents that were in the room when the vote was opened may vote, under the same --agent-id.
    Cast {
        /// The vote's id
        vote: String,
        /// Which option, from 0
        option: u64,
    },
    /// Show a vote: counts while it is open, its tally once it is closed
    Status {
        /// The vote's id
        vote: String,
    },
    /// List the votes of a room, the newest first
    History {
        /// Room id, or exact name
        room: String,
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u64,
    },
}

/// Open a vote.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Room id, or exact name
    pub room: String,
    /// The question
    pub title: String,
    /// The options, at least two
    #[arg(long, required = true, num_args = 1.., value_name = "OPTION")]
    pub options: Vec<String>,
    /// More about it
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Close after so many seconds, whoever has voted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
}

pub(crate) async fn run(cx: &Context, args: VoteCommand) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    match args {
        VoteCommand::Create(args) => {
            let ask = CreateVote {
                room_id: cx.join(&client, &args.room).await?,
                title: args.title,
                options: args.options,
                description: args.description,
                duration_secs: args.duration.map(|duration| duration.as_secs()),
            };
            let vote = client.call(ask).await?;
            cx.output.show(&vote, || format::vote(&vote))?;
        }
        VoteCommand::Cast { vote, option } => {
            let cast = client.call(CastVote { vote_id: vote, option_index: option }).await?;
            let line = || format!("Cast: {} of {} so far", cast.votes_cast, cast.eligible_voters);
            cx.output.show(&cast, || vec![line()])?;
        }
        VoteCommand::Status { vote } => {
            let vote = client.call(GetVoteStatus { vote_id: vote }).await?;
            cx.output.show(&vote, || format::vote(&vote))?;
        }
        VoteCommand::History { room, limit } => {
            let room_id = cx.room(&client, &room).await?;
            let votes = client.call(ListVotes { room_id, limit }).await?;
            cx.output.show(&votes, || votes.votes.iter().flat_map(format::vote).collect())?;
        }
    }
    Ok(Outcome::Done)
}
