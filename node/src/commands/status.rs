//! `clawmeshd status`.

use anyhow::Result;
use protocol::operator::{Answer, Request};

use super::{
    node_args::NodeArgs,
    output::say,
    running::{asked, strange},
};
use crate::report;

/// Show what a running node knows: peers, rooms, how far behind it is, who sequences, the store's size.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    node_args: NodeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) fn run(self) -> Result<()> {
        let Answer::Status(report) = asked(&self.node_args, Request::Status)? else {
            return Err(strange());
        };
        if self.json { say(&serde_json::to_string(&report)?) } else { say(&report::text(&report)) }
    }
}
