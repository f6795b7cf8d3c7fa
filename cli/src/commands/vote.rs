//! `clawmesh vote`.

use std::time::Duration;

use client::error::CallError;
use protocol::code::Code;
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
    /// Only agents that were in the room when the vote was opened may vote: under the same --name or --agent-id, within two
    /// minutes of each other's commands.
    Cast {
        /// The vote's id
        vote: String,
        /// Which option: its number, from 0, or its text
        option: String,
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
            let option_index = match option.parse() {
                Ok(number) => number,
                Err(_) => {
                    let open = client.call(GetVoteStatus { vote_id: vote.clone() }).await?;
                    place(&open.options, option)?
                }
            };
            let cast = client.call(CastVote { vote_id: vote, option_index }).await;
            let cast = cast.map_err(no_voter)?;
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
            cx.output
                .list(&votes, "no votes", || votes.votes.iter().flat_map(format::vote).collect())?;
        }
    }
    Ok(Outcome::Done)
}

/// A ballot that was refused.
fn no_voter(source: CallError) -> Failure {
    if matches!(source, CallError::Refused { code: Code::AccessDenied | Code::NotInRoom, .. }) {
        return Failure::NoVoter { source };
    }
    source.into()
}

/// The number of an option that is given by its text: exactly, or else in any case if no other is so called.
fn place(options: &[String], wanted: String) -> Result<u64, Failure> {
    let exact = options.iter().position(|option| *option == wanted);
    let any_case = || {
        let fits = |option: &String| option.to_lowercase() == wanted.to_lowercase();
        let mut found = options.iter().enumerate().filter(|(_, option)| fits(option));
        found.next().filter(|_| found.next().is_none()).map(|(at, _)| at)
    };
    let at = exact.or_else(any_case);
    let unknown = || Failure::OptionUnknown { option: wanted.clone(), options: options.to_vec() };
    at.and_then(|at| u64::try_from(at).ok()).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_by_its_text_if_that_is_the_only_one() {
        let options = ["Yes", "no", "NO", "maybe"].map(str::to_owned);
        let place = |text: &str| place(&options, text.to_owned());
        assert_eq!(place("Yes").unwrap(), 0);
        assert_eq!(place("YES").unwrap(), 0);
        assert_eq!((place("no").unwrap(), place("NO").unwrap()), (1, 2));
        for wrong in ["No", "", "perhaps"] {
            let text = place(wrong).unwrap_err().to_string();
            assert!(text.contains("0: Yes") && text.contains("3: maybe"), "{text}");
        }
    }
}
