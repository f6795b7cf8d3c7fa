//! `clawmeshd status`.

use anyhow::Result;
use protocol::operator::{Answer, Request};

use super::{
    Place,
    running::{asked, strange},
    say,
};
use crate::report;

/// Show what a running node knows: peers, rooms, how far behind it is, who sequences, the store's size.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    place: Place,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) fn run(self) -> Result<()> {
        let Answer::Status(report) = asked(&self.place, Request::Status)? else {
            return Err(strange());
        };
        if self.json { say(&serde_json::to_string(&report)?) } else { say(&report::text(&report)) }
    }
}
