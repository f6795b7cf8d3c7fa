//! A round trip to a node and back, when it is asked for: some bytes over a stream of their own, by
//! the connection that everything else takes.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{Control, IncomingStreams};
use tokio::time::timeout;

use crate::limits::{ECHO_WITHIN, ECHOES_PER_PEER_MAX};

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/clawmesh/echo/1");

const BYTES: usize = 8;
/// The first one also agrees on the protocol, and is not measured.
const ROUNDS: usize = 2;

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoEcho {
    /// There is no link.
    #[error("it is not connected")]
    NotConnected,
    /// It does not answer in time.
    #[error("no answer within {ECHO_WITHIN:?}")]
    TimedOut,
    /// The stream broke, or it speaks no such protocol.
    #[error("{0}")]
    Broken(String),
}

/// How many streams of each peer are answered now.
#[derive(Clone, Debug, Default)]
struct Busy(Arc<Mutex<HashMap<PeerId, usize>>>);

impl Busy {
    /// `false`: it has as many as it may.
    fn begin(&self, peer: PeerId) -> bool {
        let mut busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = busy.entry(peer).or_default();
        let may = *count < ECHOES_PER_PEER_MAX;
        *count += usize::from(may);
        may
    }

    fn end(&self, peer: PeerId) {
        let mut busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = busy.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                busy.remove(&peer);
            }
        }
    }
}

/// Answers whoever is connected, until the network ends.
pub(crate) async fn serve(mut streams: IncomingStreams) {
    let busy = Busy::default();
    while let Some((peer, stream)) = streams.next().await {
        if busy.begin(peer) {
            let busy = busy.clone();
            tokio::spawn(async move {
                // A stream that breaks, or does not end, is the other end's affair.
                let _ = timeout(ECHO_WITHIN, answer(stream)).await;
                busy.end(peer);
            });
        }
    }
}

async fn answer(mut stream: Stream) -> io::Result<()> {
    let mut bytes = [0; BYTES];
    for _ in 0..ROUNDS {
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await?;
        stream.flush().await?;
    }
    stream.close().await
}

/// How long it takes there and back.
pub(crate) async fn measure(control: Control, peer: PeerId) -> Result<Duration, NoEcho> {
    timeout(ECHO_WITHIN, there_and_back(control, peer)).await.unwrap_or(Err(NoEcho::TimedOut))
}

async fn there_and_back(mut control: Control, peer: PeerId) -> Result<Duration, NoEcho> {
    let broken = |error: io::Error| NoEcho::Broken(error.to_string());
    let opened = control.open_stream(peer, PROTOCOL).await;
    let mut stream = opened.map_err(|error| NoEcho::Broken(error.to_string()))?;
    let mut took = Duration::ZERO;
    for round in 0..ROUNDS {
        let (said, mut heard) = ([round as u8; BYTES], [0; BYTES]);
        let began = Instant::now();
        stream.write_all(&said).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        stream.read_exact(&mut heard).await.map_err(broken)?;
        took = began.elapsed();
        if heard != said {
            return Err(NoEcho::Broken("it answers something else".to_owned()));
        }
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_peer_two_round_trips_are_answered_at_once() {
        let (busy, one, other) = (Busy::default(), PeerId::random(), PeerId::random());
        assert!(busy.begin(one) && busy.begin(one));
        assert!(!busy.begin(one) && busy.begin(other));
        busy.end(one);
        assert!(busy.begin(one) && !busy.begin(one));
        for peer in [one, one, other] {
            busy.end(peer);
        }
        assert!(busy.0.lock().unwrap().is_empty(), "nobody is remembered");
    }
}
