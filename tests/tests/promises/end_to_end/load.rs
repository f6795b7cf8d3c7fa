//! Writers at several nodes that write until they are told to stop, and the messages that they saw meanwhile.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use anyhow::{Context, Result, ensure};
use testnet::{process::Mesh, wire::Agent};
use tokio::{sync::watch, task::JoinHandle};

use super::{SOON, Said, agent, join, say, until};

/// Writers at work.
pub(super) struct Load {
    room: String,
    writers: Vec<(usize, JoinHandle<Writer>)>,
    pace: Arc<Pace>,
}

/// The record of a writer that has stopped.
pub(super) struct Writer {
    /// Its connection; of no use when the node was killed.
    pub(super) agent: Agent,
    /// Messages that were acknowledged.
    pub(super) acknowledged: Vec<Said>,
    /// Why it stopped before it was told to.
    pub(super) broken: Option<anyhow::Error>,
}

struct Pace {
    stop: AtomicBool,
    /// By node.
    acknowledged: Vec<AtomicUsize>,
}

impl Load {
    /// Lets `each` writers write at every one of `nodes`.
    pub(super) async fn start(
        mesh: &Mesh,
        room: &str,
        nodes: &[usize],
        each: usize,
    ) -> Result<Load> {
        let acknowledged = mesh.nodes.iter().map(|_| AtomicUsize::new(0)).collect();
        let pace = Arc::new(Pace { stop: AtomicBool::new(false), acknowledged });
        let mut agents = Vec::new();
        for &node in nodes {
            for i in 0..each {
                let mut agent = agent(mesh, node, &format!("writer {i} at {node}")).await?;
                join(&mut agent, room).await?;
                agents.push((node, agent));
            }
        }
        let spawn = |(node, agent)| {
            (node, tokio::spawn(write(agent, node, room.to_owned(), Arc::clone(&pace))))
        };
        let writers = agents.into_iter().map(spawn).collect();
        Ok(Load { room: room.to_owned(), writers, pace })
    }

    /// Waits until each of `nodes` has acknowledged this many more messages.
    pub(super) async fn more(&self, nodes: &[usize], count: usize) -> Result<()> {
        let now = |node: &usize| self.pace.acknowledged[*node].load(Ordering::Relaxed);
        let goals: Vec<(usize, usize)> =
            nodes.iter().map(|node| (*node, now(node) + count)).collect();
        until("messages are acknowledged", async || {
            Ok(goals.iter().all(|(node, goal)| now(node) >= *goal))
        })
        .await
    }

    /// Tells all to stop. Those at `lost` nodes may have been cut off, the others not.
    pub(super) async fn stop(self, lost: &[usize]) -> Result<Vec<Writer>> {
        self.pace.stop.store(true, Ordering::Relaxed);
        let mut writers = Vec::new();
        for (node, writer) in self.writers {
            let mut writer = writer.await?;
            if let Some(error) = writer.broken.take() {
                if !lost.contains(&node) {
                    return Err(error.context(format!("a writer in {} at {node}", self.room)));
                }
                writer.broken = Some(error);
            }
            writers.push(writer);
        }
        Ok(writers)
    }
}

/// Does something that may take long, while writers that have stopped listen: else their nodes let them go.
pub(super) async fn beside<T>(
    writers: Vec<Writer>,
    work: impl Future<Output = Result<T>>,
) -> Result<(Vec<Writer>, T)> {
    let (stop, stopped) = watch::channel(false);
    let listen = |mut writer: Writer| {
        let mut stopped = stopped.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = writer.agent.listen() => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            writer
        })
    };
    let listening: Vec<JoinHandle<Writer>> = writers.into_iter().map(listen).collect();
    let done = work.await?;
    stop.send_replace(true);
    let mut writers = Vec::new();
    for writer in listening {
        writers.push(writer.await?);
    }
    Ok((writers, done))
}

async fn write(mut agent: Agent, node: usize, room: String, pace: Arc<Pace>) -> Writer {
    let mut acknowledged = Vec::new();
    let mut broken = None;
    while !pace.stop.load(Ordering::Relaxed) {
        let content = format!("{} says {}", agent.id, acknowledged.len());
        match say(&mut agent, &room, &content).await {
            Ok(said) => acknowledged.push(said),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
        pace.acknowledged[node].fetch_add(1, Ordering::Relaxed);
    }
    Writer { agent, acknowledged, broken }
}

impl Writer {
    /// The messages that were pushed to this connection: they must be the whole of `history` but its own
    /// messages, in rising order, without a gap, without a repeat.
    pub(super) async fn saw_all(&mut self, room: &str, history: &[Said]) -> Result<Vec<Said>> {
        let own: Vec<&str> = self.acknowledged.iter().map(|message| message.id.as_str()).collect();
        let expected: Vec<&Said> =
            history.iter().filter(|message| !own.contains(&message.id.as_str())).collect();
        let mut seen: Vec<Said> = Vec::new();
        while seen.len() < expected.len() {
            let event =
                self.agent.event("message", SOON, |frame| frame.kind == "message_received").await;
            let missing =
                expected.iter().find(|message| seen.iter().all(|seen| seen.id != message.id));
            let event = event.with_context(|| {
                format!("{} saw {} of {}; {missing:?}", self.agent.id, seen.len(), expected.len())
            })?;
            if event.body["room_id"] == room {
                seen.push(Said::of(&event.body));
            }
        }
        seen.extend(Said::among(&self.agent.drain().await?, room));
        super::rises(&seen)?;
        let ids = |all: &mut dyn Iterator<Item = &Said>| {
            let mut ids: Vec<String> = all.map(|message| message.id.clone()).collect();
            ids.sort();
            ids
        };
        let (saw, all) = (ids(&mut seen.iter()), ids(&mut expected.into_iter()));
        ensure!(saw == all, "{} saw {} messages of {}", self.agent.id, saw.len(), all.len());
        Ok(seen)
    }
}
