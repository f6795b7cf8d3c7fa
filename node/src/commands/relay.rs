//! `clawmeshd relay`.

use std::path::PathBuf;

use anyhow::Result;

use super::up;
use crate::settings::Layer;

/// Run a relay, until Ctrl-C or SIGTERM: a member that carries links between others, for a small machine that all can reach.
///
/// It keeps the list of members, rooms and keys, and no room; it gives no numbers, holds nothing durably, and serves no agents. A data
/// directory is a relay's from its first start on, or never. Flags can also be given as variables or in the file of --config, as those
/// of `clawmeshd up`.
#[derive(Debug, clap::Args)]
pub(super) struct Relay {
    /// The ticket of a mesh (`clawmeshd invite` prints one), the file with it (@FILE), or - for standard input; remembered
    #[arg(value_name = "TICKET")]
    ticket: Option<String>,
    /// Keep everything in DIR [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where other nodes connect; can be repeated [default: 0.0.0.0:9231, all addresses of this machine]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<Vec<String>>,
    /// Where other nodes connect over WebSocket, for those behind networks that let nothing else out; can be repeated. With a
    /// certificate at port 443, or behind a proxy that has one and passes /clawmesh on; nobody is told, but by --reached-at
    #[arg(long, value_name = "HOST:PORT")]
    listen_ws: Option<Vec<String>>,
    /// The PEM file with the certificate for --listen-ws. Nodes do not check it: links have keys of their own
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The PEM file with its private key, which its owner alone can read
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Where other nodes reach this one besides: a forwarded port, a name, or wss://NAME; can be repeated. Tickets and
    /// other nodes are told
    #[arg(long, value_name = "HOST:PORT")]
    reached_at: Option<Vec<String>>,
    /// Bytes of sealed rooms kept for members that are away, at most half of this: 0 to 1024GiB [default: 0]
    #[arg(long, value_name = "BYTES")]
    carry: Option<String>,
    /// Bytes a second of all links together that are carried; a member that sends more than others waits, and they do
    /// not. From 64KiB, or 0: without a bound [default: 8MiB]
    #[arg(long, value_name = "BYTES")]
    relay_rate: Option<String>,
    /// This node's name for people [default: the machine's name]
    #[arg(long)]
    name: Option<String>,
    /// A TOML file of settings, named as the flags of `clawmeshd up` [env: CLAWMESH_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The log: error, warn, info, debug, trace, or by module (as RUST_LOG) [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// How to log: text, or json, an object in each line [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Say what is bound, as one line of JSON on stdout
    #[arg(long, num_args = 0, default_missing_value = "true")]
    json: Option<bool>,
}

impl Relay {
    pub(super) fn run(self) -> Result<()> {
        let config = self.config.clone();
        up::run(self.layer(), config)
    }

    /// The ticket, or where it is.
    pub(super) fn ticket(&self) -> Option<&str> {
        self.ticket.as_deref()
    }

    /// The flags of `clawmeshd up` that it stands for: nothing of a node that is for agents.
    fn layer(self) -> Layer {
        Layer {
            is_relay: Some(true),
            join: self.ticket.map(|ticket| vec![ticket]),
            data_dir: self.data_dir,
            listen: self.listen,
            listen_ws: self.listen_ws,
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            reached_at: self.reached_at,
            carry: self.carry,
            relay_rate: self.relay_rate,
            name: self.name,
            log: self.log,
            log_format: self.log_format,
            json: self.json,
            no_socket: Some(true),
            no_tcp: Some(true),
            no_http: Some(true),
            no_mcp: Some(true),
            no_finder: Some(true),
            no_page: Some(true),
            // Nobody attaches: a key would be for nothing.
            no_auth: Some(true),
            ..Layer::default()
        }
    }
}
