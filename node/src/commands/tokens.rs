//! `clawmeshd tokens`.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use protocol::operator::{
    Answer, HiddenText, KnownToken, Request, TokenState, TokenTerms, WantedToken,
};

use super::{
    invite::lasts,
    keys::expires_ms,
    node_args::NodeArgs,
    output::{note, say},
    running::{asked, asked_where, done, strange},
};
use crate::files::api_key::ApiKey;

/// Fewer digits of an id are too easily those of another one.
const PREFIX_MIN: usize = 6;

/// Tokens for hosts of agents: each stands for a key at this node, for one agent, and allows as much as you say.
///
/// A host shows it at /mcp and /tools/invoke in the place of a key. The node has to run.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Tokens {
    /// Make a token and print it, once: the node keeps a hash of it.
    Mint(Mint),
    /// Show the tokens of this node.
    List(List),
    /// Make a token invalid, for ever. Calls that wait with it end.
    Revoke(Revoke),
}

#[derive(Debug, clap::Args)]
pub(super) struct Mint {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The agent that its holder acts as, and no other. The id is its key's from now on
    #[arg(long, value_name = "ID")]
    agent: String,
    /// The agent's name, if its host gives it none
    #[arg(long)]
    name: Option<String>,
    /// The file with the key that it stands for; -: standard input [default: the node's own key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The only things that it may do: list, history, send, spawn, rooms, votes, tasks, finder [default: all that its key may]
    #[arg(long, value_name = "SCOPE,…", value_delimiter = ',')]
    scopes: Vec<String>,
    /// The only groups of tools that it may be offered: sessions, inbox, rooms, votes, tasks, finder, all (but finder) [default: every one]
    #[arg(long, value_name = "GROUP,…")]
    tools: Option<String>,
    /// The sessions that it is shown: self (what is for it), spawned (and tasks that it hands over), joined (and its direct
    /// sessions and rooms), all (and every room that its key may read)
    #[arg(long, value_name = "WHAT", default_value = "joined")]
    visibility: String,
    /// Show it no more than the node's setting session.sandbox.visibility says
    #[arg(long)]
    sandboxed: bool,
    /// For how long it is valid, such as 12h or 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = lasts)]
    expires: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    node_args: NodeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    node_args: NodeArgs,
    /// From `clawmeshd tokens list`; its first digits will do if no other token has them
    id: String,
}

impl Tokens {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Tokens::Mint(mint) => mint.run(),
            Tokens::List(list) => list.run(),
            Tokens::Revoke(revoke) => revoke.run(),
        }
    }
}

impl Mint {
    fn run(self) -> Result<()> {
        let file = match self.key_file {
            Some(file) => file,
            None => {
                let (run, _) = asked_where(&self.node_args, Request::Status)?;
                run.key_file
                    .context("the running node checks no keys (--no-auth): agents need no tokens")?
            }
        };
        let key = ApiKey::read_old(&file)?;
        let expires_ms = expires_ms(self.expires);
        let terms = TokenTerms {
            agent: self.agent,
            name: self.name,
            scopes: (!self.scopes.is_empty()).then_some(self.scopes),
            tools: self.tools,
            visibility: self.visibility,
            sandboxed: self.sandboxed,
            expires_ms,
        };
        let agent = terms.agent.clone();
        let wanted = WantedToken { key: HiddenText(key.text().to_owned()), terms };
        let answer = asked(&self.node_args, Request::MintToken(Box::new(wanted)))?;
        let Answer::Token(new) = answer else { return Err(strange()) };
        let id = &new.id;
        say(&new.token.0).with_context(|| {
            format!("nobody has seen the token: `clawmeshd tokens revoke {id}`")
        })?;
        let until = expires_ms.map(|at| format!(" until {}", clawchat::timestamp(at)));
        note(&format!(
            "token {id} for the agent {}, valid at this node{}. It is not shown again.",
            agent.escape_debug(),
            until.unwrap_or_default()
        ));
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<()> {
        let tokens = tokens(&self.node_args)?;
        if self.json { say(&serde_json::to_string(&tokens)?) } else { say(&table(&tokens)) }
    }
}

impl Revoke {
    fn run(self) -> Result<()> {
        let id = choose(&tokens(&self.node_args)?, &self.id)?;
        done(&self.node_args, Request::RevokeToken { id: id.clone() })?;
        note(&format!("{id} is revoked"));
        Ok(())
    }
}

fn tokens(node_args: &NodeArgs) -> Result<Vec<KnownToken>> {
    let Answer::Tokens(tokens) = asked(node_args, Request::ListTokens)? else {
        return Err(strange());
    };
    Ok(tokens)
}

/// The id that begins so.
fn choose(tokens: &[KnownToken], digits: &str) -> Result<String> {
    let digits = digits.to_ascii_lowercase();
    let mut found = tokens.iter().filter(|token| token.id.starts_with(&digits));
    match (found.next(), found.next()) {
        (Some(token), None) if digits.len() >= PREFIX_MIN => Ok(token.id.clone()),
        (Some(_), None) => bail!("{digits:?} is too short: give at least {PREFIX_MIN} digits"),
        (Some(_), Some(_)) => bail!("several tokens begin with {digits:?}: give more digits"),
        (None, _) => bail!("no token {digits:?}: `clawmeshd tokens list` shows those of this node"),
    }
}

/// For people.
fn table(tokens: &[KnownToken]) -> String {
    if tokens.is_empty() {
        return "no tokens were made: `clawmeshd tokens mint --agent ID` makes one".to_owned();
    }
    let mut text = String::new();
    let mut row = |cells: [&str; 8]| {
        let [id, state, visibility, expires, key, scopes, tools, agent] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{id:<16}  {state:<11}  {visibility:<17}  {expires:<24}  {key:<32}  {scopes:<12}  {tools:<8}  {agent}"
        );
    };
    row(["ID", "STATE", "SEES", "EXPIRES", "KEY", "SCOPES", "TOOLS", "AGENT (NAME)"]);
    for KnownToken { id, terms, key, expires_at, state, .. } in tokens {
        let state = match state {
            TokenState::Valid => "valid",
            TokenState::Expired => "expired",
            TokenState::KeyInvalid => "key invalid",
        };
        let sandbox = if terms.sandboxed { " (sandbox)" } else { "" };
        let visibility = format!("{}{sandbox}", terms.visibility);
        let scopes = terms.scopes.as_ref().map_or("all".to_owned(), |scopes| scopes.join(","));
        // One that is not one line of text is shown as such.
        let mut agent = terms.agent.escape_debug().to_string();
        if let Some(name) = &terms.name {
            let _ = write!(agent, " ({})", name.escape_debug());
        }
        let tools = terms.tools.as_deref().unwrap_or("all");
        let expires = expires_at.as_deref().unwrap_or("never");
        row([id, state, &visibility, expires, key, &scopes, tools, &agent]);
    }
    text
}
