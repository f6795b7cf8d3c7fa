//! Honest agents, one at each node, that talk to each other and measure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use crate::{
    distribution::Distribution,
    process::Mesh,
    wire::{Agent, Incoming, WireError, text},
};

/// How long acknowledged messages may take to everybody, once the attack is over.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);

/// The time that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Joining,
    Before,
    During,
    After,
}

impl Phase {
    fn slot(self) -> Option<usize> {
        match self {
            Phase::Before => Some(0),
            Phase::During => Some(1),
            Phase::Joining | Phase::After => None,
        }
    }
}

const PHASES: [Phase; 4] = [Phase::Joining, Phase::Before, Phase::During, Phase::After];

/// Of so many, in the order of their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// How many there were.
    pub count: usize,
    /// Half took at most this.
    pub p50: Duration,
    /// 99 of 100 took at most this.
    pub p99: Duration,
}

impl Percentiles {
    fn of(all: Vec<Duration>) -> Percentiles {
        let count = all.len();
        let all: Distribution = all.into_iter().collect();
        let at = |percent| Duration::from_secs_f64(all.percentile(percent) / 1e3);
        Percentiles { count, p50: at(50.0), p99: at(99.0) }
    }
}

#[derive(Debug, Default)]
struct Noted {
    sent: BTreeMap<String, (Instant, usize)>,
    ok: [Vec<Duration>; 2],
    delivered: [Vec<Duration>; 2],
    acknowledged: BTreeSet<String>,
    /// By agent.
    heard: Vec<BTreeSet<String>>,
    /// Agents that wait for no answer any more: all acknowledged messages are known.
    answered: usize,
}

#[derive(Debug)]
struct Shared {
    phase: AtomicUsize,
    noted: Mutex<Noted>,
}

impl Shared {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> Phase {
        PHASES[self.phase.load(Relaxed)]
    }
}

/// The agents' measurements.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) ok: [Percentiles; 2],
    pub(super) delivered: [Percentiles; 2],
    pub(super) acknowledged: u64,
    pub(super) missing: u64,
}

/// Agents that talk until they are told to finish.
#[derive(Debug)]
pub(super) struct Load {
    room: String,
    shared: Arc<Shared>,
    agents: JoinSet<Result<()>>,
    quiet: watch::Sender<bool>,
}

impl Load {
    /// One agent at each node, all in one new room, each of which says something `rate` times a second.
    pub(super) async fn start(mesh: &Mesh, rate: f64) -> Result<Load> {
        let mut agents = Vec::new();
        for (index, node) in mesh.nodes.iter().enumerate() {
            let name = format!("honest{index}");
            agents.push(Agent::attach(node.tcp(), mesh.key(), &name).await?);
        }
        let name = format!("work of {}", agents[0].id);
        let room = agents[0].call("create_room", json!({ "name": name, "public": true })).await?;
        let room = text(&room, "room_id");
        for agent in &mut agents {
            join(agent, &room).await?;
        }
        let noted = Noted { heard: vec![BTreeSet::new(); agents.len()], ..Noted::default() };
        let shared = Arc::new(Shared { phase: AtomicUsize::new(0), noted: Mutex::new(noted) });
        let (quiet, told) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (index, agent) in agents.into_iter().enumerate() {
            let honest = Honest { index, agent, room: room.clone(), shared: shared.clone() };
            tasks.spawn(honest.talk(Duration::from_secs_f64(1.0 / rate), told.clone()));
        }
        Ok(Load { room, shared, agents: tasks, quiet })
    }

    /// In which they talk.
    pub(super) fn room(&self) -> &str {
        &self.room
    }

    pub(super) fn enter(&self, phase: Phase) {
        let index = PHASES.iter().position(|known| *known == phase).unwrap_or_default();
        self.shared.phase.store(index, Relaxed);
    }

    /// Whether somebody was answered, and somebody else heard it, during the attack.
    pub(super) fn is_served(&self) -> bool {
        let noted = self.shared.noted();
        !noted.ok[1].is_empty() && !noted.delivered[1].is_empty()
    }

    /// They stop talking, and have heard everything that was acknowledged, or it is missing.
    pub(super) async fn finish(mut self) -> Result<Heard> {
        self.quiet.send_replace(true);
        while let Some(ended) = self.agents.join_next().await {
            ended.context("an honest agent panicked")?.context("an honest agent")?;
        }
        let mut noted = self.shared.noted();
        let [before, during] = std::mem::take(&mut noted.ok);
        let [early, late] = std::mem::take(&mut noted.delivered);
        let missing = |sent: &&String| noted.heard.iter().any(|heard| !heard.contains(*sent));
        Ok(Heard {
            ok: [Percentiles::of(before), Percentiles::of(during)],
            delivered: [Percentiles::of(early), Percentiles::of(late)],
            acknowledged: noted.acknowledged.len() as u64,
            missing: noted.acknowledged.iter().filter(missing).count() as u64,
        })
    }
}

/// A room is known elsewhere a moment after it was made.
async fn join(agent: &mut Agent, room: &str) -> Result<()> {
    let deadline = Instant::now() + ARRIVES_WITHIN;
    loop {
        match agent.call("join_room", json!({ "room_id": room })).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some("room_not_found") && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

struct Honest {
    index: usize,
    agent: Agent,
    room: String,
    shared: Arc<Shared>,
}

impl Honest {
    async fn talk(mut self, every: Duration, mut quiet: watch::Receiver<bool>) -> Result<()> {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting: BTreeMap<String, (String, Instant, usize)> = BTreeMap::new();
        let mut said = 0_u64;
        while !*quiet.borrow() {
            tokio::select! {
                _ = ticks.tick() => {
                    said += 1;
                    let content = format!("{} {said}", self.index);
                    let (now, phase) = (Instant::now(), self.shared.phase());
                    if let Some(slot) = phase.slot() {
                        self.shared.noted().sent.insert(content.clone(), (now, slot));
                    }
                    let payload = json!({ "room_id": self.room, "content": content });
                    let id = self.agent.send("send_message", payload).await?;
                    waiting.insert(id, (content, now, phase.slot().unwrap_or(usize::MAX)));
                }
                incoming = self.agent.incoming() => self.take(incoming?, &mut waiting)?,
                _ = quiet.changed() => {}
            }
        }
        // Until everything that anybody was told is here.
        let all = async {
            let mut told = false;
            while !waiting.is_empty() || !self.has_all() {
                if waiting.is_empty() && !std::mem::replace(&mut told, true) {
                    self.shared.noted().answered += 1;
                }
                // It may wait for the others' answers.
                let look = timeout(Duration::from_millis(50), self.agent.incoming()).await;
                if let Ok(incoming) = look {
                    self.take(incoming?, &mut waiting)?;
                }
            }
            anyhow::Ok(())
        };
        // Messages that are missing then are counted.
        timeout(ARRIVES_WITHIN, all).await.unwrap_or(Ok(()))
    }

    fn has_all(&self) -> bool {
        let noted = self.shared.noted();
        noted.answered == noted.heard.len()
            && noted.acknowledged.is_subset(&noted.heard[self.index])
    }

    fn take(
        &mut self,
        incoming: Incoming,
        waiting: &mut BTreeMap<String, (String, Instant, usize)>,
    ) -> Result<(), WireError> {
        let mut noted = self.shared.noted();
        match incoming {
            Incoming::Reply { to, answer } => {
                let Some((content, sent, slot)) = waiting.remove(&to) else { return Ok(()) };
                answer?;
                if let Some(ok) = noted.ok.get_mut(slot) {
                    ok.push(sent.elapsed());
                }
                // Its own messages are not pushed to an agent: the answer is how it hears of them.
                noted.heard[self.index].insert(content.clone());
                noted.acknowledged.insert(content);
            }
            Incoming::Event(event) if event.kind == "message_received" => {
                let content = text(&event.body, "content");
                if let Some((sent, slot)) = noted.sent.get(&content).copied() {
                    noted.delivered[slot].push(sent.elapsed());
                }
                noted.heard[self.index].insert(content);
            }
            Incoming::Event(_) => {}
        }
        Ok(())
    }
}
