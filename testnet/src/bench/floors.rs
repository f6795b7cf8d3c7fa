//! What no server can be faster than, on this machine and at this hour: measured in the same run.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{connection::CONTENT_BYTES, distribution::Distribution};

/// A page and its file's data are brought to the disk so often.
const FSYNCS: usize = 400;
/// What a commit of a message or two writes.
const FSYNC_BYTES: usize = 4 << 10;
/// The file is written over from its beginning, as a database is.
const FSYNC_PAGES: usize = 64;
/// Lines that go there and back.
const ECHOES: usize = 5_000;

/// What the machine can do.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    /// One page written, and on the disk.
    pub(super) fsync: Distribution,
    /// One line there and back over loopback, read and written by tokio.
    pub(super) echo: Distribution,
}

impl Floors {
    /// Measures them; data would be kept in `dir`.
    pub(super) async fn measure(dir: &Path) -> Result<Floors> {
        let fsync = fsync(dir).with_context(|| format!("cannot write to {}", dir.display()))?;
        Ok(Floors { fsync, echo: echo().await.context("loopback does not work")? })
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
