//! Servers of NATS, started for a run.

use std::{fmt::Write as _, fs, net::TcpListener, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::client::Client;

/// A server answers, and servers agree on who leads, within this.
const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A cluster, or one server. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Nats {
    addresses: Vec<String>,
    /// How many clients it has had.
    clients: std::cell::Cell<usize>,
    _servers: Vec<Child>,
    _dir: TempDir,
}

impl Nats {
    pub(super) async fn start(program: &Path, count: usize) -> Result<Nats> {
        let dir = tempfile::tempdir()?;
        // Those of clients, then those between servers.
        let ports = free_ports(2 * count)?;
        let (clients, routes) = ports.split_at(count);
        let mut servers = Vec::new();
        for (n, port) in clients.iter().enumerate() {
            let file = dir.path().join(format!("{n}.conf"));
            let store = dir.path().join(format!("store{n}"));
            fs::write(&file, config(n, *port, &store, routes))?;
            let mut command = Command::new(program);
            command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
            let server = command.kill_on_drop(true).spawn();
            servers.push(server.with_context(|| format!("cannot start {}", program.display()))?);
        }
        let addresses = clients.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let nats =
            Nats { addresses, clients: std::cell::Cell::new(0), _servers: servers, _dir: dir };
        for n in 0..count {
            nats.client(n).await?;
        }
        Ok(nats)
    }

    /// A client of the server of this place, counted around.
    pub(super) async fn client(&self, at: usize) -> Result<Client> {
        let mark = self.clients.get();
        self.clients.set(mark + 1);
        let address = &self.addresses[at % self.addresses.len()];
        let began = Instant::now();
        loop {
            match Client::connect(address, mark.to_string()).await {
                Ok(client) => return Ok(client),
                Err(error) if began.elapsed() > READY_WITHIN => return Err(error),
                Err(_) => sleep(LOOK_EVERY).await,
            }
        }
    }

    fn count(&self) -> usize {
        self.addresses.len()
    }
}

/// What `docs/performance.md` says of it.
fn config(n: usize, port: u16, store: &Path, routes: &[u16]) -> String {
    let mut text = format!(
        "server_name: bench{n}\nlisten: 127.0.0.1:{port}\n\
         jetstream {{ store_dir: {:?}, sync_interval: always }}\n",
        store.display().to_string()
    );
    if routes.len() > 1 {
        let own = routes[n];
        let others = routes.iter().filter(|route| **route != own);
        let others: Vec<String> =
            others.map(|route| format!("nats-route://127.0.0.1:{route}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "cluster {{ name: bench, listen: 127.0.0.1:{own}, routes: [{}] }}",
            others.join(", ")
        );
    }
    text
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<_>>()
        .context("no port is free")?;
    Ok(held.iter().map(|port| port.local_addr().map(|at| at.port())).collect::<Result<_, _>>()?)
}

/// A stream in files, on all servers.
#[derive(Debug)]
pub(super) struct Stream {
    name: String,
    /// What is sent there is kept in it.
    pub(super) subject: String,
}

impl Stream {
    pub(super) async fn make(client: &mut Client, nats: &Nats, name: &str) -> Result<Stream> {
        let stream = Stream { name: name.to_owned(), subject: format!("rooms.{name}") };
        let asked = json!({
            "name": name, "subjects": [stream.subject], "storage": "file", "retention": "limits",
            "num_replicas": nats.count(),
        });
        let (began, subject) = (Instant::now(), format!("$JS.API.STREAM.CREATE.{name}"));
        // A cluster has no leader at first, and refuses, or says nothing.
        loop {
            let asks = client.call(&subject, &asked);
            match tokio::time::timeout(Duration::from_secs(2), asks).await {
                Ok(Ok(_)) => return Ok(stream),
                Ok(Err(error)) if began.elapsed() > READY_WITHIN => return Err(error),
                Err(_) if began.elapsed() > READY_WITHIN => bail!("NATS makes no stream"),
                Ok(Err(_)) | Err(_) => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Its messages come to this client, once they are kept.
    pub(super) async fn hear(&self, client: &mut Client) -> Result<()> {
        let asked = json!({
            "stream_name": self.name,
            "config": {
                "deliver_subject": client.ear(), "deliver_policy": "all", "ack_policy": "none",
                "replay_policy": "instant",
            },
        });
        client.call(&format!("$JS.API.CONSUMER.CREATE.{}", self.name), &asked).await?;
        Ok(())
    }
}
