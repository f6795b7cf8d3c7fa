//! `clawmeshd keys`.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use mesh::{
    limits::{KEY_LABEL_BYTES_MAX, KEY_OWNER_BYTES_MAX},
    name::{
        id::{MeshId, NodeId, RoomKey, parse_hex},
        key::KeySecret,
    },
    wire::{
        acts::{KeyTerms, Scope, Scopes},
        signatures::SignedLog,
    },
};
use protocol::operator::{Answer, HiddenText, MintedKey, Request};

use super::{
    invite::lasts,
    node_args::NodeArgs,
    output::{note, say},
    running::{asked, done, strange},
};
use crate::{
    clock::Clock,
    files::api_key::ApiKey,
    keys::{TierName, scope, signed, signed_successor, table, terms},
};

/// Fewer digits of a fingerprint are too easily those of another one.
const PREFIX_MIN: usize = 6;

/// Keys for agents, besides the node's own: valid on all nodes of the mesh.
///
/// The mesh knows fingerprints and public halves only. The node has to run.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Keys {
    /// Make a key and print it, once: it is kept nowhere.
    Mint(Mint),
    /// Show the keys that were minted, by fingerprint.
    List(List),
    /// Make a key invalid, for ever and on all nodes. Its agents are disconnected.
    Revoke(Revoke),
    /// Make a new key for an old one and print it, once: stable ids and private rooms of the old key are the new one's.
    ///
    /// The old key is not valid any more, and its agents are disconnected. Only the node that minted it can do this, and
    /// the old key has to sign. What the old key has said (profiles, details and files of rooms) is signed anew; webhooks are
    /// subscribed anew by their agents.
    Replace(Replace),
}

#[derive(Debug, clap::Args)]
pub(super) struct Mint {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Your name for it
    #[arg(long)]
    label: Option<String>,
    /// The limits of agents with it
    #[arg(long, value_enum, default_value = "free")]
    tier: TierName,
    /// The only things that agents with it may do: admin, write, read, approvals, pairing, provision. Without write or
    /// admin they only read [default: all]
    #[arg(long, value_name = "SCOPE,…", value_parser = scope, value_delimiter = ',')]
    scopes: Vec<Scope>,
    /// For how long it is valid, such as 12h or 90d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lasts)]
    expires: Option<Duration>,
    /// The person or program that it is for, as programs with it are told
    #[arg(long, value_name = "ID")]
    owner: Option<String>,
    /// Valid on this node alone
    #[arg(long)]
    local: bool,
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
    /// From `clawmeshd keys list`; its first digits will do if no other key has them
    fingerprint: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Replace {
    #[command(flatten)]
    node_args: NodeArgs,
    /// From `clawmeshd keys list`; its first digits will do if no other key has them
    fingerprint: String,
    /// The file with the old key in it; -: standard input
    #[arg(long, value_name = "FILE")]
    old_key_file: Option<PathBuf>,
}

impl Keys {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Keys::Mint(mint) => mint.run(),
            Keys::List(list) => list.run(),
            Keys::Revoke(revoke) => revoke.run(),
            Keys::Replace(replace) => replace.run(),
        }
    }
}

impl Mint {
    fn run(self) -> Result<()> {
        let expires_ms = expires_ms(self.expires);
        let scopes = self.scopes.into_iter();
        let scopes: Option<Scopes> = (scopes.len() > 0).then(|| scopes.collect());
        let (tier, label, owner) = (self.tier.into(), self.label, self.owner);
        let (terms, local) = (KeyTerms { tier, label, scopes, expires_ms, owner }, self.local);
        let (writes, until) = (terms.may_write(), expires_ms.map(clawchat::timestamp));
        let (key, fingerprint) = mint(&self.node_args, terms, local)?;
        say(key.text()).with_context(|| {
            format!("nobody has seen the key: `clawmeshd keys revoke {fingerprint}`")
        })?;
        let valid = if local { "on this node alone" } else { "on all nodes of the mesh" };
        let until = until.map(|at| format!(" until {at}")).unwrap_or_default();
        let reads = if writes { "" } else { "; agents with it only read" };
        note(&format!(
            "fingerprint {fingerprint}; valid {valid}{until}{reads}. It is not shown again."
        ));
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<()> {
        let keys = keys(&self.node_args)?;
        if self.json { say(&serde_json::to_string(&keys)?) } else { say(&table(&keys)) }
    }
}

impl Revoke {
    fn run(self) -> Result<()> {
        let fingerprint = choose(&keys(&self.node_args)?, &self.fingerprint)?;
        done(&self.node_args, Request::RevokeKey { fingerprint: fingerprint.clone() })?;
        note(&format!(
            "{fingerprint} is revoked; nodes that are cut off learn of it when they are back"
        ));
        Ok(())
    }
}

impl Replace {
    fn run(self) -> Result<()> {
        let keys = keys(&self.node_args)?;
        let fingerprint = choose(&keys, &self.fingerprint)?;
        let file = self.old_key_file.with_context(|| {
            format!(
                "the old key has to sign: give --old-key-file FILE (- for standard input). A key of which the text is lost \
                 cannot be replaced: `clawmeshd keys revoke {fingerprint}`"
            )
        })?;
        let old_key = ApiKey::read_old(&file)?;
        let old = KeySecret::of(old_key.text());
        if old.print().to_string() != fingerprint {
            bail!(
                "--old-key-file {}: the key in it has the fingerprint {}, not {fingerprint}",
                file.display(),
                old.print()
            );
        }
        let view =
            keys.iter().find(|key| key.fingerprint == fingerprint).context("it was chosen")?;
        if let Some(successor) = &view.successor {
            bail!("{fingerprint} was replaced before, by {successor}");
        }
        let log = running_log(&self.node_args)?;
        if parse_hex(&view.node_id).map(NodeId) != Some(log.node) {
            bail!("{fingerprint} was minted at node {}: run this there", view.node_id);
        }
        let key = ApiKey::draw()?;
        let secret = KeySecret::of(key.text());
        let new = secret.print().to_string();
        let wanted = signed(&secret, &log, terms(view)?, view.local)?;
        // What is private to a key of one node alone is in the clear there.
        let opener = (!view.local).then(|| RoomKey::of(old_key.text()));
        let successor = signed_successor(&old, &secret, &log, opener)?;
        done(&self.node_args, Request::MintKey(wanted))?;
        let replaced = done(&self.node_args, Request::ReplaceKey(Box::new(successor)));
        if replaced.is_err() {
            match is_replaced(&self.node_args, &fingerprint, &new) {
                Ok(true) => {}
                Ok(false) => {
                    // Nobody has seen it.
                    done(&self.node_args, Request::RevokeKey { fingerprint: new })?;
                    return replaced;
                }
                Err(error) => {
                    say(key.text())?;
                    return Err(error);
                }
            }
        }
        say(key.text()).with_context(|| {
            format!("nobody has seen the new key, and the old one is replaced: mint one, and revoke {new}")
        })?;
        note(&format!(
            "fingerprint {new}; it is not shown again. What was {fingerprint}'s is its own now: stable ids and private rooms. \
             Nodes that are cut off learn of it when they are back."
        ));
        note(&sign_anew(&self.node_args, &fingerprint, key.text())?);
        Ok(())
    }
}

/// The successor of a key signs anew what that key has said. The answer is for people.
pub(super) fn sign_anew(node_args: &NodeArgs, replaced: &str, successor: &str) -> Result<String> {
    let successor = HiddenText(successor.to_owned());
    let request = Request::SignAnew { replaced: replaced.to_owned(), successor };
    let Answer::SignedAnew { signed, left } = asked(node_args, request)? else {
        return Err(strange());
    };
    let mut text = format!(
        "{signed} records of the old key (profiles, details, lists and files of rooms, schedules) are signed anew"
    );
    if left > 0 {
        write!(
            text,
            "; {left} are not, for their content is not at this node, or there is no room for them: write these again with the new key"
        )?;
    }
    Ok(text)
}

/// Whether one key has replaced another: the answer of a request may have been lost, and the node says what it has done.
fn is_replaced(node_args: &NodeArgs, old: &str, new: &str) -> Result<bool> {
    let keys = keys(node_args).with_context(|| {
        format!("keep the new key: it is not known whether {new} has replaced {old}; see `clawmeshd keys list`")
    })?;
    let is_it = |key: &MintedKey| key.fingerprint == old && key.successor.as_deref() == Some(new);
    Ok(keys.iter().any(is_it))
}

/// A new key, and its fingerprint, which the mesh knows from now on.
pub(super) fn mint(node_args: &NodeArgs, terms: KeyTerms, local: bool) -> Result<(ApiKey, String)> {
    is_line("--label", terms.label.as_deref(), KEY_LABEL_BYTES_MAX)?;
    is_line("--owner", terms.owner.as_deref(), KEY_OWNER_BYTES_MAX)?;
    // Made here: the node only ever hears of its public halves.
    let key = ApiKey::draw()?;
    let secret = KeySecret::of(key.text());
    let wanted = signed(&secret, &running_log(node_args)?, terms, local)?;
    done(node_args, Request::MintKey(wanted))?;
    Ok((key, secret.print().to_string()))
}

/// The end of something that lasts so long from now on, in Unix milliseconds.
pub(super) fn expires_ms(lasts: Option<Duration>) -> Option<u64> {
    let now = Clock::start().now().wall_ms;
    lasts.map(|lasts| now.saturating_add(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX)))
}

/// The log of the directory of the node that runs there: keys sign for it.
pub(super) fn running_log(node_args: &NodeArgs) -> Result<SignedLog> {
    let Answer::Status(status) = asked(node_args, Request::Status)? else { return Err(strange()) };
    let (mesh, node) = (parse_hex(&status.mesh_id), parse_hex(&status.node_id));
    let (Some(mesh), Some(node)) = (mesh, node) else { return Err(strange()) };
    Ok(SignedLog { mesh: MeshId(mesh), node: NodeId(node) })
}

fn is_line(flag: &str, text: Option<&str>, max: usize) -> Result<()> {
    let text = text.unwrap_or_default();
    if text.len() > max || text.chars().any(char::is_control) {
        bail!("{flag} {}: write at most {max} bytes, no control characters", text.escape_debug());
    }
    Ok(())
}

fn keys(node_args: &NodeArgs) -> Result<Vec<MintedKey>> {
    let Answer::Keys(keys) = asked(node_args, Request::ListKeys)? else { return Err(strange()) };
    Ok(keys)
}

/// The fingerprint that begins so.
fn choose(keys: &[MintedKey], digits: &str) -> Result<String> {
    let digits = digits.to_ascii_lowercase();
    let mut found = keys.iter().filter(|key| key.fingerprint.starts_with(&digits));
    match (found.next(), found.next()) {
        (Some(key), None) if digits.len() >= PREFIX_MIN => Ok(key.fingerprint.clone()),
        (Some(_), None) => bail!("{digits:?} is too short: give at least {PREFIX_MIN} digits"),
        (Some(_), Some(_)) => bail!("several keys begin with {digits:?}: give more digits"),
        (None, _) => bail!(
            "no key with the fingerprint {digits:?} was minted: `clawmeshd keys list` shows all; \
             the node's own is changed with `clawmeshd key rotate`"
        ),
    }
}
