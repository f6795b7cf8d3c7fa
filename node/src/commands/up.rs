//! `clawmeshd up`.

use std::{path::PathBuf, process, sync::Arc};

use anyhow::{Context, Result};
use bridge::log_tail::LogTail;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use super::{
    node_args::layered,
    output::{log_as, say},
};
use crate::{
    changeable::{Changeable, Sources, Values},
    joining::Joined,
    notify,
    settings::{Layer, Settings},
    start::{Running, start},
};

/// The default filter: `intake` tells of peers that come and go, and warnings of libp2p are for its
/// authors.
const LOG: &str =
    "info,net=warn,libp2p=error,libp2p_gossipsub=error,libp2p_swarm=error,libp2p_tcp=error";

/// Run a node, until Ctrl-C or SIGTERM; a second one exits at once.
///
/// Each flag can also be given as a variable (CLAWMESH_TCP for --tcp) or in the file of --config;
/// flags count first, then variables, then the file. Port 0 takes a free one.
#[derive(Debug, clap::Args)]
pub(super) struct Up {
    #[command(flatten)]
    layer: Layer,
    /// A TOML file of settings, named as these flags [env: CLAWMESH_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Up {
    pub(super) fn run(self) -> Result<()> {
        run(self.layer, self.config)
    }
}

/// Runs a node with these flags, until it is told to stop.
pub(super) fn run(flags: Layer, config: Option<PathBuf>) -> Result<()> {
    let layered = layered(flags, config)?;
    let tail = Arc::new(LogTail::default());
    let filter = layered.log().unwrap_or_else(|| LOG.to_owned());
    let set_log = log_as(&filter, layered.log_format()?, Some(&tail))?;
    let mut settings = Settings { log_tail: Some(tail), ..layered.resolve()? };
    let base = Values::of(&settings, &filter);
    let (fixed, settings_file) = (layered.fixed(), layered.file());
    let sources = Sources { base, fixed, settings_file, set_log };
    let changeable = Changeable::open(&settings.data_dir, sources)?;
    changeable.begin(&mut settings)?;
    settings.changeable = Some(Arc::new(changeable));
    let runtime = Runtime::new().context("start the runtime")?;
    let done = runtime.block_on(serve(settings, layered.json()));
    // Tasks that still wait, wait for somebody who has been given up.
    runtime.shutdown_background();
    done
}

async fn serve(settings: Settings, json: bool) -> Result<()> {
    // From the first moment on: a node that is told to stop while it starts stops.
    let mut signals = Signals::new().context("wait for signals")?;
    let mut running = tokio::select! {
        running = start(settings) => running?,
        () = signals.next() => return Ok(()),
    };
    announce(&running, json);
    notify::tell("READY=1");
    let mut joined = std::pin::pin!(running.joined());
    let mut is_told = false;
    loop {
        tokio::select! {
            joined = &mut joined, if !is_told => {
                is_told = true;
                tell_joined(joined, json);
            }
            ended = running.ended() => {
                ended?;
                tracing::info!("this node has left its mesh; stopping");
                break;
            }
            () = signals.next() => break,
        }
    }
    stop(running, signals).await
}

async fn stop(running: Running, mut signals: Signals) -> Result<()> {
    tracing::info!("stopping; a second signal exits at once");
    notify::tell("STOPPING=1");
    tokio::select! {
        stopped = running.stop() => stopped,
        () = signals.next() => process::exit(130),
    }
}

fn announce(running: &Running, json: bool) {
    let ready = running.ready();
    let text = if json {
        serde_json::to_string(ready).unwrap_or_default()
    } else {
        ready.summary(running.key_file())
    };
    if let Err(error) = say(&text) {
        tracing::debug!(%error, "nobody reads that the node is ready");
    }
    tracing::info!("node {} is ready", ready.name);
}

/// For people and for the log. With `json` stdout has one line, which says that the node is ready.
fn tell_joined(joined: Option<Joined>, json: bool) {
    let Some(joined) = joined else { return };
    if joined.clocks_differ() {
        tracing::warn!(event = "clock_differs", "{joined}");
    } else if joined.is_well() {
        tracing::info!("{joined}");
    } else {
        tracing::warn!(event = "not_joined", "{joined}");
    }
    if !json && let Err(error) = say(&joined.to_string()) {
        tracing::debug!(%error, "nobody reads what became of the start");
    }
}

/// SIGTERM and Ctrl-C.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGXFSZ, here and on every system that this is built for: a file has reached `LimitFSIZE`.
const FILE_TOO_LARGE: i32 = 25;

impl Signals {
    fn new() -> std::io::Result<Signals> {
        // Handled, it is an error of the write, as a full disk is, instead of the end.
        drop(signal(SignalKind::from_raw(FILE_TOO_LARGE))?);
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
