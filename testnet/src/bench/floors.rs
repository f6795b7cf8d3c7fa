//! The floors below which no server can be, on this machine and at this hour: measured in the same run.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use net::{Discovery, Inbox, Incoming, Net, PeerAddress, Settings, Verdict};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::connection::CONTENT_BYTES;
use crate::distribution::Distribution;

/// A page and its file's data are brought to the disk so often.
const FSYNCS: usize = 400;
/// Bytes that a commit of a message or two writes.
const FSYNC_BYTES: usize = 4 << 10;
/// The file is written over from its beginning, as a database is.
const FSYNC_PAGES: usize = 64;
/// Lines that go there and back.
const ECHOES: usize = 5_000;

/// Messages that go from one node to the other.
const GOSSIPS: usize = 500;
/// How long one may take. The first ones go nowhere: gossip begins a moment after a connection.
const GOSSIPED_WITHIN: Duration = Duration::from_secs(1);
/// How often the first is tried.
const GOSSIP_TRIES: usize = 20;

/// The floors of this machine.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    /// One page written, and on the disk.
    pub(super) fsync: Distribution,
    /// One line there and back over loopback, read and written by tokio.
    pub(super) echo: Distribution,
    /// A message from one node of the network to another by gossip, without engine and disk.
    pub(super) gossip: Distribution,
}

impl Floors {
    /// Measures them, on the disk on which daemons keep their data.
    pub(super) async fn measure() -> Result<Floors> {
        let dir = std::env::temp_dir();
        let fsync = fsync(&dir).with_context(|| format!("cannot write to {}", dir.display()))?;
        let echo = echo().await.context("loopback does not work")?;
        Ok(Floors { fsync, echo, gossip: gossip().await.context("gossip does not work")? })
    }
}

fn fsync(dir: &Path) -> std::io::Result<Distribution> {
    let mut file: File = tempfile::tempfile_in(dir)?;
    let page = [7; FSYNC_BYTES];
    for _ in 0..FSYNC_PAGES {
        file.write_all(&page)?;
    }
    file.sync_all()?;
    let mut took: Vec<Duration> = Vec::with_capacity(FSYNCS);
    for n in 0..FSYNCS {
        let began = Instant::now();
        file.seek(SeekFrom::Start(((n % FSYNC_PAGES) * FSYNC_BYTES) as u64))?;
        file.write_all(&page)?;
        file.sync_data()?;
        took.push(began.elapsed());
    }
    Ok(took.into_iter().collect())
}

async fn echo() -> std::io::Result<Distribution> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    // A thread of its own, as a server would be a process of its own.
    let listener = listener.into_std()?;
    let server = std::thread::spawn(move || serve_echo(listener));
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let (mut lines, mut line) = (BufReader::new(reader), Vec::new());
    let mut request = vec![b'x'; CONTENT_BYTES];
    request.push(b'\n');
    let mut took: Vec<Duration> = Vec::with_capacity(ECHOES);
    for _ in 0..ECHOES {
        let began = Instant::now();
        writer.write_all(&request).await?;
        line.clear();
        lines.read_until(b'\n', &mut line).await?;
        took.push(began.elapsed());
    }
    drop((lines, writer));
    // It ends with the connection.
    let _ = server.join();
    Ok(took.into_iter().collect())
}

fn serve_echo(listener: std::net::TcpListener) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (stream, _) = TcpListener::from_std(listener)?.accept().await?;
        stream.set_nodelay(true)?;
        let (reader, mut writer) = stream.into_split();
        let (mut lines, mut line) = (BufReader::new(reader), Vec::new());
        while lines.read_until(b'\n', &mut line).await? > 0 {
            writer.write_all(&line).await?;
            line.clear();
        }
        Ok(())
    })
}

/// Two nodes of the network, each on a thread of its own.
async fn gossip() -> Result<Distribution> {
    let (net, _inbox) = net::start(network([1; 32], Vec::new())).await?;
    let at = net.listening().first().context("it listens nowhere")?.to_string();
    let (heard, mut hears) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let there = std::thread::spawn(move || hear(at.parse()?, &heard, stopped));
    let mut nth = 0;
    let mut say = async || -> Result<Option<Duration>> {
        nth += 1;
        let mut payload = vec![b'x'; CONTENT_BYTES];
        payload[..8].copy_from_slice(&u64::to_be_bytes(nth));
        let began = Instant::now();
        net.publish(0, Bytes::from(payload))?;
        loop {
            let Ok(heard) = timeout(GOSSIPED_WITHIN, hears.recv()).await else { return Ok(None) };
            let (came, at): (u64, Instant) = heard.context("the other node is gone")?;
            if came == nth {
                return Ok(Some(at.duration_since(began)));
            }
        }
    };
    let mut tries = 0;
    while say().await?.is_none() {
        tries += 1;
        ensure!(tries < GOSSIP_TRIES, "nothing arrives");
    }
    let mut took = Vec::with_capacity(GOSSIPS);
    for _ in 0..GOSSIPS {
        took.push(say().await?.context("a message is lost")?);
    }
    drop(stop);
    // Later messages do not matter any more.
    let _ = there.join();
    Ok(took.into_iter().collect())
}

fn network(secret_key: [u8; 32], peers: Vec<PeerAddress>) -> Settings {
    Settings {
        secret_key: secret_key.into(),
        pre_shared_key: [9; 32].into(),
        former_keys: Vec::new(),
        listen: vec![([127, 0, 0, 1], 0).into()],
        announce: Vec::new(),
        peers,
        topics: 1,
        listens_to: None,
        web: net::Web::default(),
        discovery: Discovery::Configured,
        relaying: net::Relaying::Members,
        relay_rate: net::limits::RELAY_BYTES_PER_SECOND,
    }
}

/// Says which messages came when.
fn hear(
    from: PeerAddress,
    heard: &mpsc::UnboundedSender<(u64, Instant)>,
    stopped: oneshot::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (net, mut inbox): (Net, Inbox) = net::start(network([2; 32], vec![from])).await?;
        let listen = async {
            while let Some(incoming) = inbox.recv().await {
                let Incoming::Gossip { payload, ticket, .. } = incoming else { continue };
                let at = Instant::now();
                net.verdict(ticket, Verdict::Accept);
                if let Some(nth) = payload.first_chunk() {
                    // Nobody waits for it any more at the end.
                    let _ = heard.send((u64::from_be_bytes(*nth), at));
                }
            }
        };
        tokio::select! {
            () = listen => {}
            _ = stopped => {}
        }
        Ok(())
    })
}
