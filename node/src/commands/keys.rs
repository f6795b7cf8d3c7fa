//! `clawmeshd keys`.

use anyhow::{Context, Result, bail};
use mesh::{
    limits::KEY_LABEL_BYTES_MAX,
    name::{
        id::{MeshId, NodeId, parse_hex},
        key::KeySecret,
    },
    wire::signatures::SignedLog,
};
use protocol::operator::{Answer, MintedKey, Request};

use super::{
    node_args::NodeArgs,
    output::{note, say},
    running::{asked, done, strange},
};
use crate::{
    files::api_key::ApiKey,
    keys::{TierName, signed, table},
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

impl Keys {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Keys::Mint(mint) => mint.run(),
            Keys::List(list) => list.run(),
            Keys::Revoke(revoke) => revoke.run(),
        }
    }
}

impl Mint {
    fn run(self) -> Result<()> {
        let label = self.label.as_deref().unwrap_or_default();
        if label.len() > KEY_LABEL_BYTES_MAX || label.chars().any(char::is_control) {
            let shown = label.escape_debug();
            bail!(
                "--label {shown}: write at most {KEY_LABEL_BYTES_MAX} bytes, no control characters"
            );
        }
        // Made here: the node only ever hears of its public halves.
        let key = ApiKey::draw()?;
        let secret = KeySecret::of(key.text());
        let (fingerprint, local) = (secret.print().to_string(), self.local);
        let Answer::Status(status) = asked(&self.node_args, Request::Status)? else {
            return Err(strange());
        };
        let (mesh, node) = (parse_hex(&status.mesh_id), parse_hex(&status.node_id));
        let (Some(mesh), Some(node)) = (mesh, node) else { return Err(strange()) };
        let log = SignedLog { mesh: MeshId(mesh), node: NodeId(node) };
        let wanted = signed(&secret, &log, (self.tier.into(), self.label), local)?;
        done(&self.node_args, Request::MintKey(wanted))?;
        say(key.text()).with_context(|| {
            format!("nobody has seen the key: `clawmeshd keys revoke {fingerprint}`")
        })?;
        let valid = if local { "on this node alone" } else { "on all nodes of the mesh" };
        note(&format!("fingerprint {fingerprint}; valid {valid}. It is not shown again."));
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
