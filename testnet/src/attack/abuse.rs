//! Floods, bytes that are no frames, streams and connections for nothing.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use mesh::{
    limits::AWAITED_ROOMS_MAX,
    name::{
        digest::Digest,
        id::{LogId, RoomId},
        number::{Era, Number},
    },
    wire::{
        message::{Head, Message, Span},
        piece::{Piece, PieceKind, PieceSpot, SentPiece},
    },
};
use net::{
    NodeId,
    testing::{RawStream, Rogue, frame},
};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{insider::Insider, kind::Abuse, lies::TOPICS, scene::Scene};
use crate::sim::{
    dice::Dice,
    liar::{Liar, Theme},
};

/// Topics of a peer that listens to too many: one message of them still fits.
const TOPICS_TOO_MANY: u16 = 20_000;
/// Connections without a word that are held open at once.
const HALF_OPEN: usize = 512;
/// Before it looks again whether somebody lets it in.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two bytes of a frame that never ends.
const BYTE_EVERY: Duration = Duration::from_millis(20);

/// Until the scene is over.
pub(super) async fn perform(insider: Insider, abuse: Abuse, scene: Scene) -> Result<String> {
    if let Abuse::HalfOpen = abuse {
        return half_open(scene).await;
    }
    let topics = if abuse == Abuse::Topics { TOPICS_TOO_MANY } else { TOPICS };
    let rogue = Rogue::start(&insider.network(topics), scene.nodes.clone())?;
    let mut doing = JoinSet::new();
    let rogue = Arc::new(rogue);
    if matches!(abuse, Abuse::GossipFlood | Abuse::Oversized | Abuse::Topics) {
        let (rogue, insider, scene) = (rogue.clone(), insider.clone(), scene.clone());
        doing.spawn(async move { by_gossip(&rogue, &insider, abuse, &scene).await });
    }
    let mut known: Vec<NodeId> = Vec::new();
    while !scene.is_over() {
        for node in rogue.met() {
            if !known.contains(&node) && !matches!(abuse, Abuse::GossipFlood | Abuse::Topics) {
                known.push(node);
                let (rogue, insider, scene) = (rogue.clone(), insider.clone(), scene.clone());
                doing.spawn(
                    async move { Streams { rogue, insider, abuse, scene }.open(node).await },
                );
            }
        }
        sleep(PAUSE).await;
    }
    let mut done = 0;
    while let Some(count) = doing.join_next().await {
        done += count?;
    }
    Ok(match abuse {
        Abuse::Garbage => format!("{done} frames of garbage"),
        Abuse::Oversized => format!("{done} frames and payloads too large"),
        Abuse::GossipFlood => format!("{done} gossip messages"),
        Abuse::RequestFlood => format!("{done} questions"),
        Abuse::PieceFlood => format!("{done} pieces and waits"),
        Abuse::Topics => format!("{TOPICS_TOO_MANY} topics, {done} changes of them"),
        Abuse::SlowLoris => format!("{done} bytes"),
        Abuse::Streams => format!("{done} streams"),
        Abuse::HalfOpen => String::new(),
    })
}

async fn by_gossip(rogue: &Rogue, insider: &Insider, abuse: Abuse, scene: &Scene) -> u64 {
    let mut liar = Liar::as_node(insider.mesh(), insider.identity(), Dice::new(3));
    let mut dice = Dice::new(5);
    let mut done = 0;
    while !scene.is_over() {
        let topic = u16::try_from(dice.index(usize::from(TOPICS))).unwrap_or_default();
        if abuse == Abuse::Topics {
            rogue.flap(topic).await;
        } else if abuse == Abuse::Oversized {
            rogue.gossip(topic, vec![dice.byte(); 900_000].into()).await;
            sleep(PAUSE).await;
        } else {
            rogue.gossip(topic, liar.lie_about(Theme::Anything).into()).await;
        }
        done += 1;
        if done % 32 == 0 {
            tokio::task::yield_now().await;
        }
    }
    done
}

/// Streams that are opened again and again, and misused.
struct Streams {
    rogue: Arc<Rogue>,
    insider: Insider,
    abuse: Abuse,
    scene: Scene,
}

impl Streams {
    /// Streams to a node, each until it breaks. Returns how often it did something.
    async fn open(self, node: NodeId) -> u64 {
        let dice = Dice::new(u64::from(node[0]) + 7);
        let mut misuse = Misuse { insider: &self.insider, abuse: self.abuse, dice, done: 0 };
        while !self.scene.is_over() {
            let left = self.scene.until.saturating_duration_since(Instant::now());
            let Ok(Ok(stream)) = timeout(left, self.rogue.stream(node)).await else {
                sleep(PAUSE).await;
                continue;
            };
            // A write that waits for ever is the other side's good right.
            drop(timeout(left, misuse.of(stream)).await);
        }
        misuse.done
    }
}

/// A misuse of streams, and how often it was done.
struct Misuse<'a> {
    insider: &'a Insider,
    abuse: Abuse,
    dice: Dice,
    done: u64,
}

impl Misuse<'_> {
    async fn of(&mut self, mut stream: RawStream) -> std::io::Result<()> {
        match self.abuse {
            Abuse::Streams => {
                self.done += 1;
                return stream.write(&frame(0, b"hello")).await;
            }
            Abuse::SlowLoris => {
                // A frame of a megabyte is announced, and comes byte by byte.
                stream.write(&[0, 0x10, 0, 1, 0]).await?;
                loop {
                    stream.write(&[self.dice.byte()]).await?;
                    self.done += 1;
                    sleep(BYTE_EVERY).await;
                }
            }
            Abuse::Oversized => {
                stream.write(&[0x7f, 0xff, 0xff, 0xff, 0]).await?;
                self.done += 1;
                loop {
                    stream.write(&[0; 65_536]).await?;
                }
            }
            Abuse::Garbage => loop {
                let payload: Bytes = match self.dice.within(0, 2) {
                    0 => vec![0x81; 1 << 20].into(),
                    1 => [vec![0x82, 0, 0x9b], vec![0xff; 8], vec![0; 9]].concat().into(),
                    _ => (0..self.dice.within(1, 300)).map(|_| self.dice.byte()).collect(),
                };
                stream.write(&frame(0, &payload)).await?;
                self.done += 1;
            },
            Abuse::RequestFlood => {
                let rooms =
                    [RoomId::lobby(self.insider.mesh()), RoomId::directory(self.insider.mesh())];
                loop {
                    let mut frames = Vec::new();
                    for _ in 0..64 {
                        let room = *self.dice.pick(&rooms);
                        frames.extend(frame(
                            0,
                            &question(room, self.insider, &mut self.dice).encode(),
                        ));
                    }
                    stream.write(&frames).await?;
                    self.done += 64;
                }
            }
            Abuse::PieceFlood => loop {
                let mut frames = Vec::new();
                for _ in 0..64 {
                    self.done += 1;
                    let message = piece(self.insider, self.done, &mut self.dice);
                    frames.extend(frame(0, &message.encode()));
                }
                stream.write(&frames).await?;
            },
            Abuse::GossipFlood | Abuse::Topics | Abuse::HalfOpen => Ok(()),
        }
    }
}

/// A question whose answer costs more than the question.
fn question(room: RoomId, insider: &Insider, dice: &mut Dice) -> Message {
    let log = LogId { author: insider.node(), incarnation: 0 };
    let span = Span { log, after: 0, upto: 1 << 40 };
    match dice.within(0, 5) {
        0 => Message::Want { room, spans: vec![span; 8] },
        1 => Message::Have { room, heads: Vec::new(), answer: true },
        2 => {
            let digest = |dice: &mut Dice| Digest(u128::from(dice.draw()).to_be_bytes());
            Message::Buckets((0..64).map(|_| digest(dice)).collect())
        }
        3 => Message::WantRoster { node: insider.node(), boot: 0, version: 0, nonce: None },
        4 => Message::WantBodies { room, at: vec![Head { log, seq: 1 }; 64] },
        _ => Message::Ask { room, era: Era::HOME, tip: Number(1), spans: vec![span; 64] },
    }
}

/// A piece of an answer that nobody waits for or may be read by nobody; now and then as many rooms as a peer may wait for.
fn piece(insider: &Insider, nth: u64, dice: &mut Dice) -> Message {
    let room = RoomId::lobby(insider.mesh());
    if dice.within(0, 15) == 0 {
        let room = |n: u64| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&(nth ^ n << 32).to_be_bytes());
            RoomId(id)
        };
        return Message::Awaits((0..AWAITED_ROOMS_MAX as u64).map(room).collect());
    }
    let piece = Piece {
        agent: format!("made{}", dice.within(0, 1_000)).as_str().into(),
        stream: "s".to_owned(),
        reply_to: None,
        kind: PieceKind::Chunk,
        content: Some("x".repeat(dice.index(1_024))),
        tool: None,
        input: None,
        result: None,
    };
    let spot = PieceSpot { room, node: insider.node(), boot: u64::MAX, run: nth, piece: nth };
    Message::Piece(SentPiece::new(spot, None, &piece))
}

/// Connections that say nothing, or a little that means nothing.
async fn half_open(scene: Scene) -> Result<String> {
    let mut held = Vec::new();
    let mut opened = 0_u64;
    while !scene.is_over() {
        for at in &scene.nodes {
            if let Ok(Ok(socket)) = timeout(PAUSE, TcpStream::connect(at)).await {
                opened += 1;
                if opened.is_multiple_of(2) {
                    // Whether it is taken does not matter.
                    drop(socket.try_write(&[0; 7]));
                }
                held.push(socket);
            }
        }
        if held.len() >= HALF_OPEN {
            held.drain(..scene.nodes.len());
            sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(format!("{opened} connections, {} at once", held.len()))
}
