//! `clawmeshd status`.

use anyhow::{Result, bail};

use protocol::operator::{Answer, Request};

use super::{Place, say};
use crate::{control::ask, files::DataDir, report};

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
        let path = self.place.layered(None)?.data_dir()?;
        let dir = DataDir::existing(&path)?;
        match ask(&dir, Request::Status)? {
            Some((_, Answer::Status(report))) if self.json => say(&serde_json::to_string(&report)?),
            Some((_, Answer::Status(report))) => say(&report::text(&report)),
            Some((
                _,
                Answer::Ticket(_)
                | Answer::Keys(_)
                | Answer::Entry(_)
                | Answer::Progress { .. }
                | Answer::Members(_)
                | Answer::Invitations(_)
                | Answer::Left { .. }
                | Answer::Done
                | Answer::Error(_),
            )) => {
                bail!("the running node answers something else; is it of another version?")
            }
            None => bail!(
                "no node runs on {}: start it with `clawmeshd up`, or name another --data-dir",
                path.display()
            ),
        }
    }
}
