//! Three agents elect a leader: one does not want to, and only the leader may decide.

#![expect(clippy::print_stdout, reason = "an example says what happens")]

use anyhow::{Result, bail, ensure};
use client::error::CallError;
use examples::{agents, gather};
use protocol::{
    event::Event,
    request::{Decision, DeclineElection, ElectLeader},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut members = agents(["ada", "bob", "eve"]).await?;
    let room_id = gather("council", &mut members).await?;
    let decision = |content: &str| Decision {
        room_id: room_id.clone(),
        content: content.to_owned(),
        metadata: None,
        mesh: None,
    };

    let election = members[0].client.call(ElectLeader { room_id: room_id.clone() }).await?;
    println!("{} candidates", election.candidates.len());
    let eve = &mut members[2];
    eve.until(|event| matches!(event, Event::ElectionStarted(_))).await?;
    eve.client.call(DeclineElection { room_id: room_id.clone() }).await?;
    println!("eve does not want to");

    let mut leader = String::new();
    for member in &mut members {
        let Event::LeaderElected(elected) =
            member.until(|event| matches!(event, Event::LeaderElected(_))).await?
        else {
            bail!("another event than asked for")
        };
        ensure!(leader.is_empty() || leader == elected.leader_id, "everybody sees the same leader");
        leader = elected.leader_id;
    }
    match members[2].client.call(decision("I decide")).await {
        Err(CallError::Refused { code, .. }) => println!("eve may not decide: {code}"),
        other => bail!("eve, who declined, decided: {other:?}"),
    }
    for member in members.iter().filter(|member| member.client.agent_id() == leader) {
        println!("{} leads", member.name());
        member.client.call(decision("we mend it")).await?;
    }
    for member in &mut members {
        let Event::DecisionMade(decision) =
            member.until(|event| matches!(event, Event::DecisionMade(_))).await?
        else {
            bail!("another event than asked for")
        };
        println!(
            "{} hears the decision of {}: {}",
            member.name(),
            decision.leader_name,
            decision.content
        );
    }
    Ok(())
}
