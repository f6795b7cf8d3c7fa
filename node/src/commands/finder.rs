//! `clawmeshd finder`.

use std::fmt::Write as _;

use anyhow::Result;
use protocol::operator::{Answer, Finder as Report, FinderAccount, Request};

use super::{
    node_args::NodeArgs,
    output::say,
    running::{asked, strange},
};
use crate::report;

/// The index of agents at this node: how much there is, and accounts that this node does not show.
///
/// The node has to run.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Finder {
    /// Show how many records there are, how much mail lies here, and which accounts are hidden.
    Status(Status),
    /// Do not show an account at this node any more: no page has it, and no mail of it or for it is taken here.
    ///
    /// Other nodes show it as before. It counts at once, and after restarts.
    Hide(Account),
    /// Show an account again.
    Show(Account),
}

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    node_args: NodeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Account {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Its username, or the 40 digits of its id
    id: String,
}

impl Finder {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Finder::Status(status) => status.run(),
            Finder::Hide(account) => account.run(true),
            Finder::Show(account) => account.run(false),
        }
    }
}

impl Status {
    fn run(self) -> Result<()> {
        let Answer::Finder(found) = asked(&self.node_args, Request::Finder)? else {
            return Err(strange());
        };
        if self.json { say(&serde_json::to_string(&found)?) } else { say(&text(&found)) }
    }
}

impl Account {
    fn run(self, hidden: bool) -> Result<()> {
        let request = Request::HideAccount { id: self.id, hidden };
        let Answer::FinderAccount(account) = asked(&self.node_args, request)? else {
            return Err(strange());
        };
        let name = named(&account);
        say(&if hidden {
            format!("{name} is hidden at this node; other nodes show it as before")
        } else {
            format!("{name} shows at this node")
        })
    }
}

fn text(found: &Report) -> String {
    let mut text = report::index_text(&found.index)
        .unwrap_or_else(|| "Index of agents: nobody has registered yet".to_owned());
    let _ = write!(
        text,
        "\nNew agents register from: {}",
        match &*found.signup {
            "local" => "this machine (--finder-signup local)",
            "open" => "everywhere (--finder-signup open)",
            _ => "nowhere (--finder-signup off)",
        }
    );
    let answers = found.requests.iter().filter(|(_, count)| **count > 0);
    let answers: Vec<String> =
        answers.map(|(status, count)| format!("{count} with {status}")).collect();
    if !answers.is_empty() {
        let _ = write!(text, "\nRequests since the start, answered: {}", answers.join(", "));
    }
    for account in &found.hidden {
        let _ = write!(text, "\nHidden here: {}", named(account));
    }
    text
}

/// One that the node does not know any more has its print alone.
fn named(account: &FinderAccount) -> String {
    let FinderAccount { account, id, username } = account;
    if id.is_empty() { account.clone() } else { format!("{username} ({id})") }
}
