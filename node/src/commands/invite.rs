//! `clawmeshd invite`.

use anyhow::{Context, Result, bail};
use mesh::Identity;
use net::Address;

use protocol::operator::{Answer, Request};

use super::{Place, note, say};
use crate::{
    control::{ask, is_loopback, reachable},
    files::DataDir,
    ticket::Ticket,
};

/// Print a ticket: whoever has it can join the mesh, with `clawmeshd up --join TICKET`.
///
/// It is a secret. The node may be running or stopped.
#[derive(Debug, clap::Args)]
pub(super) struct Invite {
    #[command(flatten)]
    place: Place,
    /// Name this address in the ticket instead of those on which the node listens: where it is met from
    /// outside, behind address translation or by name; can be repeated
    #[arg(long, value_name = "HOST:PORT")]
    at: Vec<Address>,
}

impl Invite {
    pub(super) fn run(self) -> Result<()> {
        let dir = DataDir::existing(&self.place.layered(None)?.data_dir()?)?;
        let ticket = match ask(&dir, Request::Invite)? {
            Some((_, Answer::Ticket(text))) => text.parse()?,
            Some((
                _,
                Answer::Status(_)
                | Answer::Keys(_)
                | Answer::Entry(_)
                | Answer::Progress { .. }
                | Answer::Members(_)
                | Answer::Left { .. }
                | Answer::Done
                | Answer::Error(_),
            )) => {
                bail!("the running node answers something else; is it of another version?")
            }
            None => of_stopped(&dir)?,
        };
        let ticket = if self.at.is_empty() { ticket } else { ticket.at(self.at) };
        warn(&ticket);
        say(&ticket.to_text())
    }
}

/// From what the node left behind.
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

fn warn(ticket: &Ticket) {
    let mut addresses = ticket.peers().map(|peer| peer.address).peekable();
    let why = if addresses.peek().is_none() {
        "this ticket has no address"
    } else if addresses.all(|it| is_loopback(&it)) {
        "only nodes on this machine can use this ticket"
    } else {
        return;
    };
    note(&format!(
        "{why}: to be reached by others, start the node with --listen 0.0.0.0:9231 and invite again"
    ));
}
