//! `clawmeshd invite`.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context, Result, bail};
use mesh::Identity;
use net::Address;
use protocol::operator::{self, Answer, InvitationState, Request};

use super::{
    node_args::NodeArgs,
    output::{note, say},
    running::strange,
};
use crate::{
    control::client::ask,
    files::DataDir,
    invitation::Join,
    settings::duration,
    ticket::{Ticket, is_loopback, reachable},
};

/// Print a ticket: whoever has it can join the mesh, with `clawmeshd up --join TICKET`.
///
/// It is a secret. Without --expires and --uses it carries the mesh's secret, and admits anybody until that changes
/// (`clawmeshd rotate-secret`); the node may be running or stopped. With one of them this node counts who comes: it
/// has to run and to be reached when somebody joins.
#[derive(Debug, clap::Args)]
pub(super) struct Invite {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Name this address in the ticket instead of those on which the node listens: where it is met from
    /// outside, behind address translation or by name; can be repeated
    #[arg(long, value_name = "HOST:PORT")]
    at: Vec<Address>,
    /// For how long it admits nodes, such as 2h or 7d [default with --uses: 24h]
    #[arg(long, value_name = "TIME", value_parser = lasts)]
    expires: Option<Duration>,
    /// How many nodes it admits [default with --expires: 1]
    #[arg(long, value_name = "N")]
    uses: Option<u32>,
    /// Show the tickets with --expires or --uses that this node has printed
    #[arg(long, conflicts_with_all = ["at", "expires", "uses", "revoke"])]
    list: bool,
    /// As JSON
    #[arg(long, requires = "list")]
    json: bool,
    /// Admit nobody any more with the ticket of this id, from --list
    #[arg(long, value_name = "ID", conflicts_with_all = ["at", "expires", "uses"])]
    revoke: Option<String>,
}

/// When only a number of uses is given.
const LASTS: Duration = Duration::from_secs(24 * 3_600);

/// A time as it is on the command line.
pub(super) fn lasts(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "write a time such as 30m, 2h or 7d".to_owned())
}

impl Invite {
    pub(super) fn run(self) -> Result<()> {
        let dir = DataDir::existing(&self.node_args.layered(None)?.data_dir()?)?;
        if self.list {
            return list(&dir, self.json);
        }
        if let Some(id) = self.revoke {
            return revoke(&dir, id);
        }
        let limits = match (self.uses, self.expires) {
            (None, None) => None,
            (uses, lasts) => Some((uses.unwrap_or(1), lasts.unwrap_or(LASTS))),
        };
        let join = match limits {
            Some((uses, lasts)) => limited(&dir, uses, lasts)?,
            None => unlimited(&dir)?,
        };
        let (text, addresses) = match join {
            Join::Ticket(ticket) => {
                let ticket = if self.at.is_empty() { ticket } else { ticket.at(self.at) };
                (ticket.to_text(), ticket.peers().map(|peer| peer.address).collect::<Vec<_>>())
            }
            Join::Invitation(invitation) => {
                let invitation =
                    if self.at.is_empty() { invitation } else { invitation.at(self.at) };
                (invitation.to_text(), invitation.addresses)
            }
        };
        warn(&addresses);
        say(&text)
    }
}

fn unlimited(dir: &DataDir) -> Result<Join> {
    match ask(dir, Request::Invite)? {
        Some((_, answer)) => ticket_of(answer),
        None => of_stopped(dir).map(Join::Ticket),
    }
}

fn limited(dir: &DataDir, uses: u32, lasts: Duration) -> Result<Join> {
    let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    ticket_of(asked(dir, Request::InviteFor { uses, lasts_ms })?)
}

fn ticket_of(answer: Answer) -> Result<Join> {
    let Answer::Ticket(text) = answer else { return Err(strange()) };
    Ok(text.parse()?)
}

fn list(dir: &DataDir, json: bool) -> Result<()> {
    let request = Request::ListInvitations;
    let Answer::Invitations(all) = asked(dir, request)? else { return Err(strange()) };
    if json { say(&serde_json::to_string(&all)?) } else { say(&table(&all)) }
}

fn revoke(dir: &DataDir, id: String) -> Result<()> {
    let request = Request::RevokeInvitation { id };
    let Answer::Done = asked(dir, request)? else { return Err(strange()) };
    note(
        "it admits nobody any more; nodes that came in by it stay: `clawmeshd members` shows them",
    );
    Ok(())
}

fn asked(dir: &DataDir, request: Request) -> Result<Answer> {
    let Some((_, answer)) = ask(dir, request)? else {
        bail!(
            "no node runs on {}: it counts who comes with such tickets; start it with `clawmeshd up`",
            dir.path().display()
        );
    };
    Ok(answer)
}

fn table(all: &[operator::Invitation]) -> String {
    let mut text = String::new();
    let mut row = |cells: [&str; 5]| {
        let [id, made, expires, used, state] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{id:<16}  {made:<20}  {expires:<20}  {used:>9}  {state}");
    };
    row(["ID", "MADE", "EXPIRES", "USED", "STATE"]);
    for invitation in all {
        let state = match invitation.state {
            InvitationState::Open => "open",
            InvitationState::UsedUp => "used up",
            InvitationState::Expired => "expired",
            InvitationState::Revoked => "revoked",
            InvitationState::SecretChanged => "void: the mesh's secret has changed",
        };
        row([
            &invitation.id,
            &invitation.made,
            &invitation.expires,
            &format!("{} of {}", invitation.used, invitation.uses),
            state,
        ]);
    }
    text
}

/// From the files that the node left behind.
fn of_stopped(dir: &DataDir) -> Result<Ticket> {
    let nothing = || {
        format!("no node was ever started at {}: run `clawmeshd up` first", dir.path().display())
    };
    let seed = dir.node_seed()?.with_context(nothing)?;
    let mesh = dir.mesh()?.with_context(nothing)?;
    let addresses: Vec<Address> =
        dir.last_listen()?.iter().filter_map(|text| text.parse().ok()).collect();
    Ok(Ticket::new(mesh, Identity::from_seed(&seed).node_id(), reachable(addresses)))
}

fn warn(addresses: &[Address]) {
    let why = if addresses.is_empty() {
        "this ticket has no address"
    } else if addresses.iter().all(is_loopback) {
        "only nodes on this machine can use this ticket"
    } else {
        return;
    };
    note(&format!(
        "{why}: to be reached by others, start the node with --listen 0.0.0.0:9231 and invite again"
    ));
}
