//! Three agents vote, sealed: nobody sees a ballot before all are in.

#![expect(clippy::print_stdout, reason = "an example says what happens")]

use anyhow::{Result, bail, ensure};
use examples::{agents, gather};
use protocol::{
    event::Event,
    object::VoteStatus,
    request::{CastVote, CreateVote, GetVoteStatus},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut voters = agents(["ada", "bob", "eve"]).await?;
    let room_id = gather("polling station", &mut voters).await?;
    let vote = CreateVote {
        room_id,
        title: "Which approach?".to_owned(),
        options: ["rewrite it", "mend it", "leave it"].map(str::to_owned).to_vec(),
        description: None,
        duration_secs: None,
    };
    let vote_id = voters[0].client.call(vote).await?.vote_id;

    for (voter, option_index) in voters.iter_mut().zip([1, 1, 2]) {
        voter
            .until(|event| matches!(event, Event::VoteCreated(vote) if vote.vote_id == vote_id))
            .await?;
        let cast = voter.client.call(CastVote { vote_id: vote_id.clone(), option_index }).await?;
        println!("{} has voted: {} of {}", voter.name(), cast.votes_cast, cast.eligible_voters);
        let status = voter.client.call(GetVoteStatus { vote_id: vote_id.clone() }).await?;
        let sealed = status.tally.is_none();
        ensure!(sealed || status.status == VoteStatus::Closed, "nobody knows anything yet");
    }
    for voter in &mut voters {
        let ended =
            |event: &Event| matches!(event, Event::VoteResult(result) if result.vote_id == vote_id);
        let Event::VoteResult(result) = voter.until(ended).await? else {
            bail!("another event than asked for")
        };
        let tally: Vec<String> = result
            .tally
            .iter()
            .map(|choice| format!("{}: {}", choice.option_text, choice.count))
            .collect();
        println!("{} sees the result: {}", voter.name(), tally.join(", "));
        let counts: Vec<u64> = result.tally.iter().map(|choice| choice.count).collect();
        ensure!(counts == [0, 2, 1], "everybody sees the same");
    }
    Ok(())
}
