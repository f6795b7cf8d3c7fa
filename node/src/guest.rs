//! Joining by an invitation: it is shown to the node that made it, which answers with a ticket or
//! says why not.

use anyhow::{Context, Result, bail};
use mesh::name::id::NodeId;
use net::{AdmissionError, ask_admission};
use store::Store;
use zeroize::Zeroizing;

use crate::{
    clock::Clock,
    files::DataDir,
    invitation::{Invitation, Join, Reply},
    membership,
    ticket::Ticket,
};

/// Tickets for all that a node is told to join by. Where it is a member already, nobody is asked.
pub(crate) async fn tickets(dir: &DataDir, store: &Store, join: &[Join]) -> Result<Vec<Ticket>> {
    let mut tickets: Vec<Ticket> = Vec::new();
    for word in join {
        let invitation = match word {
            Join::Ticket(ticket) => {
                tickets.push(ticket.clone());
                continue;
            }
            Join::Invitation(invitation) => invitation,
        };
        let known = tickets.iter().map(|ticket| ticket.mesh().clone());
        let mesh = known.chain(dir.mesh()?).find(|mesh| mesh.mesh_id() == invitation.mesh);
        let ticket = match mesh {
            Some(mesh) => Ticket::new(mesh, invitation.inviter, invitation.addresses.clone()),
            None => ask(dir, store, invitation).await?,
        };
        tickets.push(ticket);
    }
    Ok(tickets)
}

async fn ask(dir: &DataDir, store: &Store, invitation: &Invitation) -> Result<Ticket> {
    let seed = membership::seed_to_join(dir, store, invitation.mesh)?;
    let at: Vec<_> = invitation.peers().collect();
    let (seed, key) = ((*seed).into(), (*invitation.key).into());
    let answer = ask_admission(&seed, &key, &at).await;
    let answer = answer.map_err(|error| anyhow::anyhow!(unanswered(invitation, &error)))?;
    let reply = serde_json::from_slice(&answer).unwrap_or(Reply::Failed);
    let another = "ask for another ticket";
    let ticket: Ticket = match reply {
        Reply::Ticket(text) => {
            Zeroizing::new(text).parse().context("--join: what the inviter answers")?
        }
        Reply::Expired => bail!("--join: the ticket has expired: {another}"),
        Reply::UsedUp => {
            bail!("--join: the ticket is used up, other nodes have joined with it: {another}")
        }
        Reply::Revoked => bail!("--join: the ticket was revoked: {another}"),
        Reply::SecretChanged => {
            bail!("--join: the mesh's secret has changed since the ticket was made: {another}")
        }
        Reply::Failed => bail!(
            "--join: the node that made the ticket cannot let anybody in now: its log says why; try again later"
        ),
    };
    if ticket.mesh().mesh_id() != invitation.mesh {
        bail!("--join: the node that made the ticket answers for another mesh: {another}");
    }
    // They have just been seen to work.
    Ok(ticket.at(invitation.addresses.clone()))
}

fn unanswered(invitation: &Invitation, error: &AdmissionError) -> String {
    let expired = Clock::start().now().wall_ms >= invitation.expires_ms;
    let expired = if expired { "; by this machine's clock it has expired, too" } else { "" };
    let inviter = NodeId(invitation.inviter.0).short();
    match error {
        AdmissionError::Unreachable(_) => format!(
            "--join: {error}: node {inviter}, which made this ticket, has to run and to be reached, because it \
             counts who comes with it; try again when it does{expired}"
        ),
        AdmissionError::Unknown(_) | AdmissionError::Other(_) => format!(
            "--join: {error}: it was made by node {inviter}, and is forged, or too old to be remembered; ask for \
             another ticket{expired}"
        ),
        AdmissionError::Setup(_) => format!("--join: {error}"),
    }
}
