//! `clawmeshd members`, `expel`, `retire` and `leave`.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Result, bail};
use protocol::operator::{Answer, Member, PartedHow, Request};

use super::{
    node_args::NodeArgs,
    output::{note, say},
    running::{asked, done, strange},
};
use crate::members::{choose, table};

/// Show everybody who was ever admitted to the mesh, and where they are. The node has to run.
#[derive(Debug, clap::Args)]
pub(super) struct Members {
    #[command(flatten)]
    node_args: NodeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shut another node out of the mesh, for good.
///
/// Its entries from now on count nowhere, its connections are closed and its agents are gone. What it
/// wrote before stays, and keys that it minted stay valid: revoke them by themselves.
#[derive(Debug, clap::Args)]
pub(super) struct Expel {
    #[command(flatten)]
    which: NamedMember,
}

/// Say that another node is gone for good: nobody waits for it any more.
///
/// It must not be heard. If it comes back all the same, it is told, and becomes an archive.
#[derive(Debug, clap::Args)]
pub(super) struct Retire {
    #[command(flatten)]
    which: NamedMember,
    /// Although other nodes have more of what it wrote than this one
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
struct NamedMember {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Its name, or the first digits of its id, from `clawmeshd members`
    node: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Leave the mesh for good: this node hands over, says goodbye and ends.
///
/// Its data directory is an archive from then on: `clawmeshd up` serves it for reading.
#[derive(Debug, clap::Args)]
pub(super) struct Leave {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Although something that this node wrote would be lost
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Give the mesh's connections another secret: tickets that were printed before are of no use any more.
///
/// Members that are connected get it at once and stay connected. One that is away gets it when it is back,
/// unless the secret has changed more than four times until then: it needs a ticket then.
#[derive(Debug, clap::Args)]
pub(super) struct RotateSecret {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Although members are away
    #[arg(long)]
    force: bool,
}

impl RotateSecret {
    pub(super) fn run(self) -> Result<()> {
        done(&self.node_args, Request::RotateSecret { force: self.force })?;
        note(
            "the secret has changed: tickets from before are of no use; `clawmeshd members` shows who has it",
        );
        Ok(())
    }
}

impl Members {
    pub(super) fn run(self) -> Result<()> {
        let members = members(&self.node_args)?;
        if self.json { say(&serde_json::to_string(&members)?) } else { say(&table(&members)) }
    }
}

impl Expel {
    pub(super) fn run(self) -> Result<()> {
        self.which.part(PartedHow::Expelled, false)?;
        note(
            "it is expelled, and the mesh's secret changes: tickets from before are of no use. Nodes that are \
             cut off learn of both when they are back",
        );
        Ok(())
    }
}

impl Retire {
    pub(super) fn run(self) -> Result<()> {
        self.which.part(PartedHow::Retired, self.force)?;
        note("it is retired; nodes that are cut off learn of it when they are back");
        Ok(())
    }
}

impl NamedMember {
    fn part(self, how: PartedHow, force: bool) -> Result<()> {
        let members = members(&self.node_args)?;
        let member = choose(&members, &self.node)?;
        let what = if how == PartedHow::Expelled { "expelled" } else { "retired" };
        let name = member.name.escape_debug();
        let id = &member.node_id;
        confirm(self.yes, &format!("{name} ({id}) is {what} for good"))?;
        let request = Request::Part { node_id: id.clone(), how, force };
        done(&self.node_args, request)
    }
}

impl Leave {
    pub(super) fn run(self) -> Result<()> {
        confirm(self.yes, "this node leaves its mesh for good")?;
        let request = Request::Leave { force: self.force };
        let Answer::Left { heard } = asked(&self.node_args, request)? else {
            return Err(strange());
        };
        note(if heard {
            "this node has left the mesh; its data directory is an archive"
        } else {
            "this node has left the mesh, but no other has said that it knows: if `clawmeshd \
             members` there does not say so, retire it there"
        });
        Ok(())
    }
}

/// An act that cannot be taken back is asked for twice.
fn confirm(yes: bool, what: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("{what}: give --yes if that is meant");
    }
    note(&format!("{what}. Write `yes` if that is meant:"));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim() != "yes" {
        bail!("nothing was done");
    }
    Ok(())
}

fn members(node_args: &NodeArgs) -> Result<Vec<Member>> {
    let Answer::Members(members) = asked(node_args, Request::Members)? else {
        return Err(strange());
    };
    Ok(members)
}
