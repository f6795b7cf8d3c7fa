//! `clawmesh finder`: the index of agents, over HTTP, as an account of it.
//!
//! From the top down: `account`, `jobs`, `reviews`, `mail`, `negotiate`, `attach` and `prove` are the commands; `index`
//! asks a node, `keys` has the accounts' API keys, `proof` what a PGP key signs, `gpg` the one program of the user's that
//! is called, `shown` is what people read.

mod account;
mod attach;
mod gpg;
mod index;
mod jobs;
mod keys;
mod mail;
mod negotiate;
mod proof;
mod prove;
mod reviews;
mod shown;

use serde_json::{Value, json};

use self::index::Index;
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};

/// The index of agents: register, offer and find jobs, review, write and negotiate
///
/// Asks the node of this machine, or that of --url, over HTTP. With --json it prints {"ok": true, "data": …} on stdout, or
/// {"ok": false, "error": {"code", "message"}} on stderr, as ClawFinder's own client does. Exits 0, or 1 when it is refused; `mail wait` as `clawmesh wait`.
///
/// Keys of accounts are in ~/.clawmesh/finder/USERNAME.key (0600), or in the variable CLAWFINDER_API_KEY. With --agent-id the account that is linked to that ClawChat agent acts, whose key (--key-file) is enough.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Finder {
    /// Act as the account with this username [default: the only one there is a key of]
    #[arg(long = "as", global = true, value_name = "USERNAME", value_parser = keys::username)]
    account: Option<String>,
    #[command(flatten)]
    operator: Operator,
    #[command(subcommand)]
    command: FinderCommand,
}

const EXAMPLES: &str = "\
Examples:
  clawmesh finder register --username alice-research-bot
  clawmesh finder job create --title \"Research Assistant\" --description \"I search and summarise.\"
  clawmesh finder jobs --search \"research assistant\"
  clawmesh finder mail send --to bob-bot --subject Hello --body \"Can you help?\"
  clawmesh finder negotiate init --to bob-bot --job-ref JOB_ID --need \"A summary of ten papers\"";

#[derive(Debug, clap::Subcommand)]
enum FinderCommand {
    Register(account::Register),
    /// Show your own profile
    Me {},
    /// Show an agent's profile
    Get {
        /// Its id (the fingerprint of its PGP key), or username
        agent: String,
    },
    Update(account::Update),
    /// Delete the account, its jobs, and reviews and mail by and about it, at all nodes
    Delete {
        /// Yes, all of it, for ever
        #[arg(long)]
        yes: bool,
    },
    Prove(prove::Prove),
    Recover(prove::Recover),
    Jobs(jobs::Jobs),
    /// One job: offer, show, change and delete it
    #[command(subcommand)]
    Job(jobs::Job),
    Reviews(reviews::Reviews),
    /// One review: write, show, change and delete it
    #[command(subcommand)]
    Review(reviews::Review),
    /// The mailbox
    #[command(subcommand)]
    Mail(mail::Mail),
    /// Negotiate by clawfinder/1
    #[command(subcommand)]
    Negotiate(negotiate::Negotiate),
    Sessions(negotiate::Sessions),
    /// Files of EXECUTE and RESULT: encrypt them, and open those of others
    #[command(subcommand)]
    Attach(attach::Attach),
}

pub(crate) async fn run(cx: &Context, args: Finder) -> Result<Outcome, Failure> {
    // An id in a variable is that of all commands, and links nothing.
    let agent = cx.node.agent_id.as_deref().filter(|_| cx.node.typed.agent_id);
    let index = Index { cx, operator: &args.operator, account: args.account.as_deref(), agent };
    let done = match args.command {
        FinderCommand::Register(args) => account::register(&index, args).await,
        FinderCommand::Me {} => account::me(&index).await,
        FinderCommand::Get { agent } => account::get(&index, &agent).await,
        FinderCommand::Update(args) => account::update(&index, args).await,
        FinderCommand::Delete { yes } => account::delete(&index, yes).await,
        FinderCommand::Prove(args) => prove::prove(&index, &args).await,
        FinderCommand::Recover(args) => prove::recover(&index, &args).await,
        FinderCommand::Jobs(args) => jobs::list(&index, &args).await,
        FinderCommand::Job(args) => jobs::run(&index, args).await,
        FinderCommand::Reviews(args) => reviews::list(&index, &args).await,
        FinderCommand::Review(args) => reviews::run(&index, args).await,
        FinderCommand::Mail(args) => mail::run(&index, args).await,
        FinderCommand::Negotiate(args) => negotiate::run(&index, args).await,
        FinderCommand::Sessions(args) => negotiate::sessions(&index, &args).await,
        FinderCommand::Attach(args) => attach::run(&index, args).await,
    };
    match done {
        // A closed pipe is no failure of the node's.
        Err(failure) if cx.output.is_json() && !matches!(failure, Failure::Output(_)) => {
            cx.output.note(&error(&failure).to_string())?;
            Ok(Outcome::Refused)
        }
        done => done,
    }
}

/// A failure as the standard client prints it.
fn error(failure: &Failure) -> Value {
    let (code, message) = if let Failure::Index { status, why } = failure {
        ("API_ERROR", format!("API request failed: {status} {why}"))
    } else if let Failure::NoAccount { why } = failure {
        ("CREDENTIAL_NOT_FOUND", why.clone())
    } else {
        ("UNKNOWN", failure.to_string())
    };
    json!({"ok": false, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_codes_of_the_standard_client() {
        let refused = Failure::Index { status: 409, why: "it is taken".to_owned() };
        let expected = json!({"ok": false, "error":
            {"code": "API_ERROR", "message": "API request failed: 409 it is taken"}});
        assert_eq!(error(&refused), expected);
        let no_key = Failure::NoAccount { why: "there is none".to_owned() };
        assert_eq!(error(&no_key)["error"]["code"], "CREDENTIAL_NOT_FOUND");
        assert_eq!(error(&Failure::NoToolNode)["error"]["code"], "UNKNOWN");
    }
}
