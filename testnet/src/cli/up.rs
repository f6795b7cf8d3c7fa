//! `clawmesh-testnet up`.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use futures::future::select_all;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::output::Output;
use crate::{
    binary,
    process::{Auth, Mesh, Plan, Ready, Terminal},
};

/// Start real nodes on this machine, joined, and end them on Ctrl-C or SIGTERM.
#[derive(Debug, clap::Args)]
pub(super) struct Up {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=50))]
    nodes: u8,
    /// Say where they are as one line of JSON
    #[arg(long)]
    json: bool,
    /// Keep their data in DIR, and go on with the data there [default: data vanishes at the end]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Let everybody attach; without it one key is valid on all nodes
    #[arg(long)]
    no_auth: bool,
    /// Further flags for every `clawmeshd up`, such as --allow-private-webhooks
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
    /// The daemon to run [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

/// The line that `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    nodes: Vec<&'a Ready>,
    /// The file of the key that all nodes accept.
    key_file: Option<&'a Path>,
    key: Option<&'a str>,
}

impl Up {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
        let json = self.json;
        let plan = self.plan(output)?;
        let mut mesh = tokio::select! {
            mesh = Mesh::up(plan) => mesh?,
            // The nodes that have been started are killed: nobody has used them yet.
            _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupt.recv() => return Ok(ExitCode::SUCCESS),
        };
        output.say(&if json { document(&mesh)? } else { table(&mesh) })?;
        let ended = select_all(mesh.nodes.iter_mut().map(|node| Box::pin(node.ended())));
        let failed = tokio::select! {
            (error, _, _) = ended => Some(error),
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
        };
        if let Some(error) = failed {
            return Err(error.into());
        }
        output.note("stopping the nodes");
        mesh.stop().await?;
        Ok(ExitCode::SUCCESS)
    }

    fn plan(self, output: &mut Output) -> Result<Plan> {
        let binary = match self.clawmeshd {
            Some(path) => path,
            None => binary::beside()?,
        };
        if binary::is_stale(&binary) {
            output.note("clawmeshd is older than its sources: `cargo build --bin clawmeshd`");
        }
        // Daemons get absolute paths, wherever they think they are.
        let keep = self.keep.map(std::path::absolute).transpose().context("no such --keep")?;
        Ok(Plan {
            binary,
            nodes: usize::from(self.nodes),
            auth: if self.no_auth { Auth::Open } else { Auth::Key },
            keep,
            flags: self.flags,
            terminal: Terminal::Mine,
        })
    }
}

fn document(mesh: &Mesh) -> Result<String> {
    let nodes = mesh.nodes.iter().map(|node| node.ready()).collect();
    let key_file = mesh.key.as_ref().map(|(_, file)| file.as_path());
    Ok(serde_json::to_string(&Document { nodes, key_file, key: mesh.key() })?)
}

fn table(mesh: &Mesh) -> String {
    let rows: Vec<[String; 4]> = mesh.nodes.iter().map(|node| row(node.ready())).collect();
    let head = ["NODE", "TCP", "HTTP", "WEBSOCKET"].map(str::to_owned);
    let width = |column: usize| {
        let cells = std::iter::once(&head).chain(&rows).map(|row| row[column].len());
        cells.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    for row in std::iter::once(&head).chain(&rows) {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push('\n');
    for node in &mesh.nodes {
        let Ready { name, data_dir, socket, .. } = node.ready();
        let socket = socket.as_ref().map_or("off".to_owned(), |path| path.display().to_string());
        let _ = writeln!(text, "{name}  data {}  socket {socket}", data_dir.display());
    }
    let key = mesh
        .key
        .as_ref()
        .map_or("none is needed".to_owned(), |(_, file)| format!("in {}", file.display()));
    let _ = writeln!(text, "\nkey: {key}\nCtrl-C ends the nodes.");
    text
}

fn row(ready: &Ready) -> [String; 4] {
    let off = || "off".to_owned();
    [
        ready.name.clone(),
        ready.tcp.clone().unwrap_or_else(off),
        ready.http.as_ref().map_or_else(off, |at| format!("http://{at}")),
        ready.http.as_ref().map_or_else(off, |at| format!("ws://{at}/ws")),
    ]
}
