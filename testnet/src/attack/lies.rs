//! Lies over the network that nodes use: frames to each, gossip to all.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bytes::Bytes;
use mesh::{
    limits::{BUCKETS, SPANS_MAX},
    name::id::RoomId,
    wire::message::{Message, Span},
};
use net::{Incoming, PeerAddress, Verdict};
use tokio::{sync::Mutex, time::sleep};

use super::{insider::Insider, scene::Scene};
use crate::sim::{
    dice::Dice,
    liar::{Liar, Theme},
};

/// Topics of a mesh: one for each bucket, and one for all nodes.
pub(super) const TOPICS: u16 = BUCKETS as u16 + 1;
/// Lies at once, and the pause after them: some thousand a second, if they are taken.
const AT_ONCE: usize = 8;
const PAUSE: Duration = Duration::from_millis(4);

/// Tells lies of a theme, until the scene is over.
pub(super) async fn tell(insider: Insider, theme: Theme, scene: Scene) -> Result<String> {
    let mut settings = insider.network(TOPICS);
    let at = |node: &std::net::SocketAddr| node.to_string().parse::<PeerAddress>();
    settings.peers = scene.nodes.iter().map(at).collect::<Result<_, _>>()?;
    let (net, mut inbox) = net::start(settings).await.context("the liar does not start")?;
    let seed = u64::from_be_bytes(insider.node().0[..8].try_into()?);
    let mesh = insider.mesh();
    let liar = Liar::as_node(mesh, insider.identity(), Dice::new(seed));
    let liar = Arc::new(Mutex::new(liar));
    let (ears, listening) = (liar.clone(), net.clone());
    let directory = RoomId::directory(mesh);
    let listener = tokio::spawn(async move {
        while let Some(incoming) = inbox.recv().await {
            let payload = match incoming {
                Incoming::Frame { from, payload, .. } => {
                    if let Some(want) = wanted_of(&payload, directory) {
                        // It lies about everything that it gets; without answers, about less.
                        let _ = listening.send(&from, want);
                    }
                    payload
                }
                Incoming::Gossip { payload, ticket, .. } => {
                    listening.verdict(ticket, Verdict::Ignore);
                    payload
                }
                Incoming::Up(_) | Incoming::Down(_) | Incoming::Learned(_) => continue,
            };
            let mut liar = ears.lock().await;
            if let Ok(message) = Message::decode(&payload)
                && let Ok(message) = message.verify(mesh)
            {
                liar.hear(&message);
            }
            liar.overhear(payload.to_vec());
        }
    });
    // A log whose beginning nobody got would only wait.
    let everybody = |net: &net::Net| net.peers().iter().filter(|peer| peer.connected).count();
    while everybody(&net) < scene.nodes.len() && !scene.is_over() {
        sleep(PAUSE).await;
    }
    // The directory has all lanes.
    let ask = Message::Have { room: directory, heads: Vec::new(), answer: true };
    for node in net.peers().into_iter().filter_map(|peer| peer.node) {
        let _ = net.send(&node, Bytes::from(ask.encode()));
    }
    let (mut told, mut bytes) = (0_u64, 0_u64);
    let mut dice = Dice::new(seed ^ 1);
    while !scene.is_over() {
        for _ in 0..AT_ONCE {
            let lie = Bytes::from(liar.lock().await.lie_about(theme));
            let up = net.peers().into_iter().filter(|peer| peer.connected);
            let up = up.filter_map(|peer| peer.node);
            for node in up {
                if net.send(&node, lie.clone()).is_ok() {
                    told += 1;
                    bytes += lie.len() as u64;
                }
            }
            let topic = u16::try_from(dice.index(usize::from(TOPICS)))?;
            // Too large for gossip, or too fast: then as frames alone.
            let _ = net.publish(topic, lie);
        }
        sleep(PAUSE).await;
    }
    net.shutdown().await;
    listener.abort();
    Ok(format!("{told} lies, {} KiB", bytes / 1024))
}

/// All of the directory that a node says it has.
fn wanted_of(payload: &[u8], directory: RoomId) -> Option<Bytes> {
    let Ok(Message::Have { room, heads, .. }) = Message::decode(payload) else { return None };
    let spans =
        heads.iter().take(SPANS_MAX).map(|head| Span { log: head.log, after: 0, upto: head.seq });
    let want = Message::Want { room, spans: spans.collect() };
    (room == directory).then(|| Bytes::from(want.encode()))
}
