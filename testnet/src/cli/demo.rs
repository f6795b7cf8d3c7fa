//! `clawmesh-testnet demo`.

use std::{
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

use super::output::Output;
use crate::{
    binary,
    demo::{self, Setting},
};

/// Longer pauses, and nodes would close connections that say nothing.
const SCALE_MAX: f64 = 2.0;

/// Show what a mesh is: three real nodes, six agents in six languages, a kill, a split and a heal, in 90 seconds.
///
/// Everything that is told is checked: exits 1 when an agent does not hear what it should.
#[derive(Debug, clap::Args)]
pub(super) struct Demo {
    /// Open the page of a node in a browser, signed in, and leave the nodes running at the end
    #[arg(long)]
    open: bool,
    /// Leave the nodes running at the end, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// Without pauses
    #[arg(long)]
    fast: bool,
    /// Length of the pauses, from 0 to 2
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, conflicts_with = "fast")]
    scale: f64,
    /// The daemon to run [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

impl Demo {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
        let binary = match &self.clawmeshd {
            Some(path) => path.clone(),
            None => binary::beside()?,
        };
        let scale = if self.fast { 0.0 } else { self.scale.clamp(0.0, SCALE_MAX) };
        let setting = Setting { binary, scale };
        let mut written = Ok(());
        let mut tell = |line: &str| {
            let said = output.say(line);
            written = std::mem::replace(&mut written, Ok(())).and(said);
        };
        let open = self.open;
        let mut watch = |url: &str| {
            if open && !in_browser(url) {
                super::output::tell(&format!("open this within a minute: {url}"));
            }
        };
        let ended = tokio::select! {
            ended = demo::play(&setting, &mut tell, &mut watch) => ended?,
            // The nodes are killed: nobody has used them but this program.
            _ = terminate.recv() => return Ok(ExitCode::FAILURE),
            _ = interrupt.recv() => return Ok(ExitCode::FAILURE),
        };
        written.context("cannot write")?;
        let (messages, took) = (ended.messages, ended.took.as_secs());
        output.note(&format!("{messages} messages in {took} s, everything as told"));
        if self.open || self.stay {
            output.note("the nodes run on: Ctrl-C ends them");
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        ended.stop().await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a browser was told to.
fn in_browser(url: &str) -> bool {
    let named = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(named.unwrap_or_else(|| usual.to_owned()));
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
