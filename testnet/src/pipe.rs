//! A faulty pipe: a TCP proxy that holds, delays, narrows and cuts what goes through it.
//!
//! TCP loses nothing: a lossy network makes it stand still. So a way that is
//! [`Way::held`] keeps its bytes, and they come when it is open again, as after retransmission; and a pipe
//! that is cut closes its connections and those that are made anew, as a machine without the program does.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Chunks on the way in one direction; when there are more the sender feels it, as with any full link.
const CHUNKS_MAX: usize = 64;

/// How one way of a pipe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Nothing comes out.
    pub held: bool,
    /// All takes so long.
    pub delay: Duration,
    /// Bytes per second; `None`: all that the machine can do.
    pub speed: Option<u32>,
}

/// How a pipe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Connections are closed, and new ones at once.
    pub cut: bool,
    /// From the side that connects to the side that listens.
    pub there: Way,
    /// And back.
    pub back: Way,
}

/// See the module. Its connections end when it is dropped.
#[derive(Debug)]
pub struct Pipe {
    address: SocketAddr,
    state: watch::Sender<State>,
    carried: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Pipe {
    /// A pipe to the listener at `target`, `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn to(target: String) -> io::Result<Pipe> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (state, states) = watch::channel(State::default());
        let carried = Arc::default();
        let task = tokio::spawn(accept(listener, target, (states, Arc::clone(&carried))));
        Ok(Pipe { address, state, carried, task })
    }

    /// Where to connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that came in, from both ends, over all connections.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Changes how it is, from now on.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: String, (states, carried): Shared) {
    // They end with this task.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        if !states.borrow().cut {
            let shared = (states.clone(), Arc::clone(&carried));
            connections.spawn(connection(stream, target.clone(), shared));
        }
    }
}

async fn connection(from: TcpStream, target: String, (mut states, carried): Shared) {
    let Ok(to) = TcpStream::connect(target).await else { return };
    // Without these small frames wait for others.
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
    let shared = || (states.clone(), Arc::clone(&carried));
    let there = carry(from_read, to_write, shared(), |state: &State| state.there);
    let back = carry(to_read, from_write, shared(), |state: &State| state.back);
    // Whichever end goes, the other goes too.
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = states.wait_for(|state| state.cut) => {}
    }
}

/// The state that a pipe's connections share: how it is, and how much it carried.
type Shared = (watch::Receiver<State>, Arc<AtomicU64>);

async fn carry<F>(mut from: OwnedReadHalf, to: OwnedWriteHalf, (states, carried): Shared, way: F)
where
    F: Fn(&State) -> Way + Copy,
{
    let (chunks, arriving) = mpsc::channel(CHUNKS_MAX);
    let looks = states.clone();
    let read = async {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let Ok(bytes @ 1..) = from.read(&mut chunk).await else { return };
            chunk.truncate(bytes);
            carried.fetch_add(bytes as u64, Ordering::Relaxed);
            let due = Instant::now() + way(&looks.borrow()).delay;
            if chunks.send((due, chunk)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = deliver(arriving, to, states, way) => {}
    }
}

async fn deliver<F>(
    mut chunks: mpsc::Receiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    mut states: watch::Receiver<State>,
    way: F,
) where
    F: Fn(&State) -> Way,
{
    while let Some((due, chunk)) = chunks.recv().await {
        sleep_until(due).await;
        if states.wait_for(|state| !way(state).held).await.is_err() {
            return;
        }
        let speed = way(&states.borrow()).speed;
        if let Some(speed) = speed.filter(|speed| *speed > 0) {
            let bytes = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            sleep(Duration::from_secs(1) * bytes / speed).await;
        }
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody who answers with what he gets, and a pipe to him.
    async fn echo() -> (Pipe, JoinHandle<()>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    // It ends with the connection.
                    drop(tokio::io::copy(&mut read, &mut write).await);
                });
            }
        });
        (Pipe::to(target).await.unwrap(), task)
    }

    async fn ask(stream: &mut TcpStream, what: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(what).await?;
        let mut answer = vec![0; what.len()];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn what_goes_in_comes_out_and_is_late_by_the_delay() {
        let (pipe, _echo) = echo().await;
        let mut stream = TcpStream::connect(pipe.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"calm").await.unwrap(), b"calm");
        assert_eq!(pipe.carried(), 8, "there and back");
        pipe.set(|state| state.back.delay = Duration::from_millis(80));
        let began = Instant::now();
        assert_eq!(ask(&mut stream, b"late").await.unwrap(), b"late");
        assert!(began.elapsed() >= Duration::from_millis(80));
        pipe.set(|state| state.there.speed = Some(1_000));
        let began = Instant::now();
        assert_eq!(ask(&mut stream, &[7; 50]).await.unwrap(), [7; 50]);
        assert!(began.elapsed() >= Duration::from_millis(50));
    }

    #[tokio::test]
    async fn a_way_that_is_held_keeps_its_bytes_until_it_is_open() {
        let (pipe, _echo) = echo().await;
        let mut stream = TcpStream::connect(pipe.address()).await.unwrap();
        pipe.set(|state| state.back.held = true);
        stream.write_all(b"held").await.unwrap();
        let mut answer = [0; 4];
        tokio::select! {
            biased;
            read = stream.read(&mut answer) => panic!("{read:?} came out"),
            () = sleep(Duration::from_millis(50)) => {}
        }
        pipe.set(|state| state.back.held = false);
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"held");
    }

    #[tokio::test]
    async fn what_is_cut_ends_and_begins_anew_when_it_is_healed() {
        let (pipe, _echo) = echo().await;
        let mut stream = TcpStream::connect(pipe.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"calm").await.unwrap(), b"calm");
        pipe.set(|state| state.cut = true);
        assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
        let mut stream = TcpStream::connect(pipe.address()).await.unwrap();
        assert!(ask(&mut stream, b"cut").await.is_err());
        pipe.set(|state| state.cut = false);
        let mut stream = TcpStream::connect(pipe.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"healed").await.unwrap(), b"healed");
    }
}
