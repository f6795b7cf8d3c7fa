//! `clawmeshd key`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use protocol::operator::Request;

use super::{
    node_args::NodeArgs,
    output::{log_to_stderr, note, say},
};
use crate::{
    control::client::ask,
    files::{DataDir, api_key::ApiKey},
};

/// The key that clients of this node need.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Key {
    /// Print it.
    Show(KeyArgs),
    /// Make a new one, and tell the node if it runs. Agents need it from their next connection on.
    Rotate(KeyArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyArgs {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The file it is in [default: the running node's, else ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Key {
    pub(super) fn run(self) -> Result<()> {
        log_to_stderr("warn")?;
        match self {
            Key::Show(key) => show(key),
            Key::Rotate(key) => rotate(key),
        }
    }
}

fn show(key: KeyArgs) -> Result<()> {
    let (file, _) = key.find()?;
    let key = ApiKey::read(&file)?.with_context(|| {
        format!("--key-file {}: no such file; `clawmeshd up` makes it", file.display())
    })?;
    say(key.text())
}

fn rotate(key: KeyArgs) -> Result<()> {
    let (file, dir) = key.find()?;
    ApiKey::make(&file)?;
    let running = dir.map(|dir| ask(&dir, Request::ReloadKey)).transpose()?.flatten();
    match running {
        Some((run, _)) if run.key_file.as_ref() == Some(&file) => {
            note(
                "the running node takes the new key only; agents need it at their next connection",
            );
        }
        Some(_) => note("the running node has another key file, and goes on with that one"),
        None => note("no node runs there; the next start takes the new key"),
    }
    note("what was private to the old key stays private to it");
    Ok(())
}

impl KeyArgs {
    /// The key file, and the data directory if there is one.
    fn find(self) -> Result<(PathBuf, Option<DataDir>)> {
        let named = self.key_file.is_some();
        let layered = self.node_args.layered(self.key_file)?;
        let dir = DataDir::existing(&layered.data_dir()?).ok();
        let run = dir.as_ref().map(DataDir::run).transpose()?.flatten();
        let file = match run.and_then(|run| run.key_file).filter(|_| !named) {
            Some(file) => file,
            None => std::path::absolute(layered.key_file()?)?,
        };
        Ok((file, dir))
    }
}
