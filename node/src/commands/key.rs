//! `clawmeshd key`.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use mesh::name::key::KeySecret;
use protocol::operator::Request;

use super::{
    keys::{running_log, sign_anew},
    node_args::NodeArgs,
    output::{log_to_stderr, note, say},
    running::done,
};
use crate::{
    control::client::ask,
    files::{DataDir, api_key::ApiKey},
    keys::signed_successor,
};

/// The key that clients of this node need.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Key {
    /// Print it.
    Show(KeyArgs),
    /// Make a new one. Stable ids and private rooms of the old one are its own from then on, if the node runs.
    ///
    /// Agents need the new key at once: those that are connected are disconnected. The old one is kept in a file beside it.
    Rotate(Rotate),
    /// Give what belongs to an earlier key of this node to the present one.
    ///
    /// For a key that was rotated while the node did not run. The earlier key opens nothing from then on.
    Inherit(Inherit),
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyArgs {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The file it is in [default: the running node's, else ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    key: KeyArgs,
    /// Without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Inherit {
    #[command(flatten)]
    key: KeyArgs,
    /// The file with the earlier key in it; -: standard input
    #[arg(value_name = "FILE")]
    old_key_file: PathBuf,
}

impl Key {
    pub(super) fn run(self) -> Result<()> {
        log_to_stderr("warn")?;
        match self {
            Key::Show(key) => show(key),
            Key::Rotate(rotate) => rotate.run(),
            Key::Inherit(inherit) => inherit.run(),
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

impl Rotate {
    fn run(self) -> Result<()> {
        let node_args = self.key.node_args.clone();
        let (file, dir) = self.key.find()?;
        let Some(old) = ApiKey::read(&file)? else {
            ApiKey::make(&file)?;
            note(&format!("there was no key: {} has a new one", file.display()));
            return Ok(());
        };
        let kept = beside(&file, &old);
        if !self.yes && !is_wanted(&file, &kept)? {
            note("nothing was changed");
            return Ok(());
        }
        // First the old one: without it nothing that belongs to it could be moved.
        old.keep(&kept)?;
        let new = ApiKey::make(&file)?;
        note(&format!("the old key is in {}", kept.display()));
        let later = format!("`clawmeshd key inherit {}`", kept.display());
        let running = dir.map(|dir| ask(&dir, Request::ReloadKey)).transpose()?.flatten();
        match running {
            Some((run, _)) if run.key_file.as_ref() == Some(&file) => {
                give(&node_args, &old, &new).with_context(|| {
                    format!("the node takes the new key, but stable ids and private rooms are still the old one's: {later}")
                })?;
                note(
                    "the running node takes the new key only. Stable ids and private rooms of the old one are its own; webhooks \
                     are made anew",
                );
            }
            Some(_) => note("the running node has another key file, and goes on with that one"),
            None => note(&format!(
                "no node runs there; the next start takes the new key. Then {later} moves stable ids and private rooms to it"
            )),
        }
        Ok(())
    }
}

impl Inherit {
    fn run(self) -> Result<()> {
        let node_args = self.key.node_args.clone();
        let (file, _) = self.key.find()?;
        let old = ApiKey::read_old(&self.old_key_file)?;
        let new = ApiKey::read(&file)?
            .with_context(|| format!("--key-file {}: no such file", file.display()))?;
        give(&node_args, &old, &new)?;
        note("stable ids and private rooms of the earlier key belong to the present one");
        Ok(())
    }
}

/// All that belongs to one key of the running node is another one's from now on.
fn give(node_args: &NodeArgs, old: &ApiKey, new: &ApiKey) -> Result<()> {
    let text = new.text();
    let (old, new) = (KeySecret::of(old.text()), KeySecret::of(text));
    let wanted = signed_successor(&old, &new, &running_log(node_args)?, None)?;
    done(node_args, Request::ReplaceKey(Box::new(wanted)))?;
    note(&sign_anew(node_args, &old.print().to_string(), text)?);
    Ok(())
}

/// Where a key is kept that is not in its file any more: beside it, with the beginning of its fingerprint in its name.
fn beside(file: &Path, old: &ApiKey) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    let print = KeySecret::of(old.text()).print().to_string();
    name.push(format!(".{}", print.get(..8).unwrap_or(&print)));
    file.with_file_name(name)
}

fn is_wanted(file: &Path, kept: &Path) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("agents with the present key would be disconnected at once: say --yes");
    }
    note(&format!(
        "A new key in {}: agents need it at once, and the present one is kept in {}. Go on? [y/N]",
        file.display(),
        kept.display()
    ));
    let mut answer = String::new();
    io::stdin().lock().take(16).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
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
