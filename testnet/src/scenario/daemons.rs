//! A scenario with real daemons, each pair of them joined by a [pipe](crate::pipe) of our own.

mod settle;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::json;
use thiserror::Error;
use tokio::{sync::watch, time::sleep};

use super::{
    clocks::{self, Clock, ClockError},
    disks::{self, Disk, Disks, copy_files},
    file::{Binary, Scenario, Step, duration},
    handing::{self, Given, ROUND, hand},
    history::{Act, History, Row, Seen},
    reader::PAGE,
    speaker::{Notes, Speaker, look, row},
};
use crate::{
    pipe::{Pipe, State},
    process::{Daemon, Options, ProcessError, Terminal},
    wire::{Agent, WireError},
};

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Somebody is answered within this time, or it is a failure.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// Everything is everywhere so long after the last new message came anywhere, or it is a failure.
const COMPLETE_WITHIN: Duration = Duration::from_secs(60);
/// A client with a cursor waits so long for more: as long as a node looks again for entries that are still to come.
const ROAMS_FOR: Duration = Duration::from_secs(3);
/// A file may have so many bytes where there is no room: less than any store has.
const NO_ROOM_BYTES: u64 = 4_096;

/// Why a scenario could not be played to its end.
#[derive(Debug, Error)]
pub enum StageError {
    /// A daemon does not do what it should.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// An agent got no answer.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A clock cannot be set.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A pipe cannot be laid, or a file not be copied.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempt.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It took too long.
    #[error("{what}: not within {within:?}")]
    Late {
        /// The event that was waited for.
        what: String,
        /// How long.
        within: Duration,
    },
    /// A daemon ended though nobody ended it.
    #[error("node {node} ended by itself; its log ends with:\n{log}")]
    Ended {
        /// Which.
        node: usize,
        /// The end of its log.
        log: String,
    },
    /// A step needs what was not given.
    #[error("{0}")]
    Missing(String),
}

type Result<T> = std::result::Result<T, StageError>;

/// The programs and files with which a scenario is played.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The daemon.
    pub binary: PathBuf,
    /// An older or a newer one, for steps that ask for it.
    pub other: Option<PathBuf>,
    /// Where all nodes keep everything.
    pub dir: PathBuf,
    /// libfaketime, with which daemons are started: for scenarios that set clocks.
    pub libfaketime: Option<PathBuf>,
    /// How disks become full.
    pub disk: Disk,
}

/// Plays a scenario and returns what was seen.
///
/// # Errors
///
/// It could not be played to its end.
pub async fn play(scenario: &Scenario, setting: Setting) -> Result<History> {
    if scenario.sets_clocks() && setting.libfaketime.is_none() {
        return Err(ClockError::NotInstalled.into());
    }
    let mut stage = Stage {
        setting,
        clocks: BTreeMap::new(),
        disks: Disks::default(),
        nodes: BTreeMap::new(),
        pipes: BTreeMap::new(),
        speakers: Vec::new(),
        notes: Notes::default(),
        chats: 0,
        retired: BTreeSet::new(),
        roamer: None,
        handed: 0,
    };
    let played = stage.play(scenario).await;
    stage.speakers.clear();
    for node in stage.nodes.values_mut() {
        node.daemon.kill9().await?;
    }
    played?;
    let history = std::mem::take(&mut *look(&stage.notes));
    Ok(history)
}

/// A node that was started once.
struct Node {
    daemon: Daemon,
    /// Whether it should be running.
    up: bool,
    /// Its address for agents while it runs.
    door: watch::Sender<Option<String>>,
}

/// All nodes are counted from 0 here.
struct Stage {
    setting: Setting,
    clocks: BTreeMap<usize, Clock>,
    nodes: BTreeMap<usize, Node>,
    /// Given back when the daemons are gone.
    disks: Disks,
    /// By the node that dials and the one that is dialled.
    pipes: BTreeMap<(usize, usize), Pipe>,
    speakers: Vec<Speaker>,
    notes: Notes,
    /// Messages answered when the chats in the background began.
    chats: usize,
    /// Nodes that are gone for good.
    retired: BTreeSet<usize>,
    /// Where the client with a cursor was last, and its cursor.
    roamer: Option<(usize, u64)>,
    /// Rounds in which agents handed things over.
    handed: u64,
}

impl Stage {
    async fn play(&mut self, scenario: &Scenario) -> Result<()> {
        for node in 0..scenario.first() {
            self.start(node).await?;
        }
        self.sit().await?;
        self.know_each_other().await?;
        for step in &scenario.steps {
            self.step(step).await?;
        }
        self.settle(scenario.nodes).await
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Chat { at, messages, background } => {
                self.chat(at, *messages)?;
                if !background {
                    return self.finish(|node| at.contains(&(node + 1))).await;
                }
            }
            Step::Await { messages } => {
                let more = usize::try_from(*messages).unwrap_or(usize::MAX);
                let goal = self.chats.saturating_add(more);
                return self.until("messages are answered", |stage| stage.told() >= goal).await;
            }
            Step::Finish => return self.finish(|_| true).await,
            Step::Wait { seconds } => sleep(duration(*seconds)).await,
            Step::Split { groups } => {
                let group =
                    |node: usize| groups.iter().position(|group| group.contains(&(node + 1)));
                self.lay(|(a, b), state| state.cut = group(a) != group(b));
            }
            Step::HalfOpen { from, to } => {
                let (from, to) = (from - 1, to - 1);
                self.lay(|link, state| {
                    state.there.held |= link == (from, to);
                    state.back.held |= link == (to, from);
                });
            }
            Step::Flap { between, times, seconds } => {
                self.flap(*between, *times, duration(*seconds)).await;
            }
            Step::Slow { delay_ms } => {
                let delay = Duration::from_millis(*delay_ms);
                self.lay(|_, state| (state.there.delay, state.back.delay) = (delay, delay));
            }
            Step::Heal => self.lay(|_, state| *state = State::default()),
            Step::Kill { nodes } => return self.kill(nodes).await,
            Step::Start { nodes } => {
                for node in nodes {
                    self.start(node - 1).await?;
                }
                return self.sit().await;
            }
            Step::Restart { nodes, binary } => return self.restart(nodes, *binary).await,
            Step::Roam { to } => return self.roam(to - 1).await,
            Step::Vote { at, options } => return self.vote(*at, *options).await,
            Step::Ballots { at, option } => return self.ballots(at, *option).await,
            Step::Fill { nodes } => return self.fill(nodes, true),
            Step::MakeRoom { nodes } => return self.fill(nodes, false),
            Step::Clock { node, seconds } => return self.set_clock(node - 1, *seconds).await,
            Step::Elect { at } => return self.listener(*at, Act::Elect).await,
            Step::Task { at } => return self.listener(*at, Act::Assign).await,
            Step::Claim { at } => return self.claim(at).await,
            Step::Quote { at } => return self.quote(at).await,
            Step::Backup { node } => return self.back_up(node - 1).await,
            Step::Restore { node } => return self.restore(node - 1).await,
            Step::Retire { nodes } => {
                self.kill(nodes).await?;
                self.retired.extend(nodes.iter().map(|node| node - 1));
            }
            Step::HandOver { at, times } => return self.hand_over(at, *times).await,
            Step::Pause { nodes, seconds } => {
                return self.pause(nodes, duration(*seconds)).await;
            }
        }
        Ok(())
    }

    fn chat(&mut self, at: &[usize], messages: u64) -> Result<()> {
        if self.speakers.iter().all(Speaker::is_done) {
            self.chats = self.told();
        }
        for node in at {
            self.speaker(&format!("talker{node}"), node - 1)?.have_said(messages);
        }
        Ok(())
    }

    async fn flap(&self, [a, b]: [usize; 2], times: u64, length: Duration) {
        let (a, b) = (a - 1, b - 1);
        for cut in (0..times).flat_map(|_| [true, false]) {
            self.lay(|link, state| {
                if link == (a, b) || link == (b, a) {
                    state.cut = cut;
                }
            });
            sleep(length).await;
        }
    }

    async fn pause(&mut self, nodes: &[usize], length: Duration) -> Result<()> {
        for node in nodes {
            self.node(node - 1)?.daemon.pause(true)?;
        }
        sleep(length).await;
        for node in nodes {
            self.node(node - 1)?.daemon.pause(false)?;
        }
        Ok(())
    }

    /// Agents at three nodes tell each other at once what they were answered.
    async fn hand_over(&mut self, at: &[usize], times: u64) -> Result<()> {
        let mut agents = Vec::new();
        for node in at {
            let tcp = self.node(node - 1)?.daemon.tcp().to_owned();
            agents.push(Agent::attach(&tcp, None, &format!("hander{node}")).await?);
        }
        for round in 0..times {
            let mut given = Given::default();
            self.handed += 1;
            for (who, ask) in ROUND {
                let agent = handing::agent(round, who);
                let answer = hand(&mut agents[agent], ask, self.handed, &given).await?;
                let wrong = given.note(ask, answer);
                let (at, what) = (at[agent], format!("{ask:?}"));
                look(&self.notes).seen.push(Seen::Handed { at, what, wrong });
                // Nobody looks at its events.
                drop(agents[agent].drain().await?);
            }
            self.all_live()?;
        }
        Ok(())
    }

    async fn vote(&mut self, at: usize, options: u64) -> Result<()> {
        self.listener(at, Act::Open(options)).await
    }

    async fn listener(&mut self, at: usize, act: Act) -> Result<()> {
        self.speaker(&format!("listener{at}"), at - 1)?.have_done(act);
        self.finish(|node| node + 1 == at).await
    }

    async fn claim(&mut self, at: &[usize]) -> Result<()> {
        let there = self.speakers.iter().filter(|agent| at.contains(&(agent.node + 1)));
        there.for_each(|agent| agent.have_done(Act::Claim));
        self.finish(|node| at.contains(&(node + 1))).await
    }

    async fn quote(&mut self, at: &[usize]) -> Result<()> {
        for node in at {
            self.speaker(&format!("listener{node}"), node - 1)?.have_quoted();
        }
        self.finish(|node| at.contains(&(node + 1))).await
    }

    /// And looks that the daemon minds, if it runs.
    async fn set_clock(&mut self, node: usize, seconds: f64) -> Result<()> {
        #[expect(clippy::cast_possible_truncation, reason = "at most an hour")]
        let seconds = seconds.round() as i64;
        let missing = || StageError::Missing(format!("node {} has no clock", node + 1));
        self.clocks.get(&node).ok_or_else(missing)?.set(seconds)?;
        if self.is_up(node) {
            let tcp = self.node(node)?.daemon.tcp().to_owned();
            clocks::look(node + 1, &tcp, seconds).await?;
        }
        Ok(())
    }

    fn fill(&mut self, nodes: &[usize], full: bool) -> Result<()> {
        for node in nodes {
            let (dir, _) = self.data_and_copy(node - 1);
            match self.setting.disk {
                Disk::Limit => {
                    let most = full.then_some(NO_ROOM_BYTES);
                    self.node(node - 1)?.daemon.limit_files(most)?;
                }
                Disk::Tmpfs if full => disks::fill(&dir).map_err(system("fill a disk"))?,
                Disk::Tmpfs => disks::make_room(&dir).map_err(system("make room on a disk"))?,
            }
        }
        Ok(())
    }

    async fn ballots(&mut self, at: &[usize], option: u64) -> Result<()> {
        let there = self.speakers.iter().filter(|agent| at.contains(&(agent.node + 1)));
        there.for_each(|agent| agent.have_done(Act::Cast(option)));
        self.finish(|node| at.contains(&(node + 1))).await?;
        self.view_votes().await.map(drop)
    }

    /// A copy of the data directory, of one moment: the node does not run.
    async fn back_up(&mut self, node: usize) -> Result<()> {
        let was_up = self.is_up(node);
        self.kill(&[node + 1]).await?;
        let (from, to) = self.data_and_copy(node);
        copy_files(&from, &to).map_err(system("copy a data directory"))?;
        if was_up {
            self.start(node).await?;
        }
        self.sit().await
    }

    async fn restore(&mut self, node: usize) -> Result<()> {
        self.kill(&[node + 1]).await?;
        let (to, from) = self.data_and_copy(node);
        if !from.is_dir() {
            return Err(StageError::Missing(format!("there is no backup of node {}", node + 1)));
        }
        copy_files(&from, &to).map_err(system("copy a data directory"))?;
        look(&self.notes).seen.push(Seen::Spoilt { at: node + 1 });
        self.start(node).await?;
        self.sit().await
    }

    fn data_and_copy(&self, node: usize) -> (PathBuf, PathBuf) {
        let at = |end: &str| self.setting.dir.join(format!("node{}{end}", node + 1));
        (at(""), at(".copy"))
    }

    /// The client with a cursor reads on at a node, over a connection of its own, until nothing comes.
    async fn roam(&mut self, node: usize) -> Result<()> {
        let mut agent = Agent::attach(self.node(node)?.daemon.tcp(), None, "roamer").await?;
        let mut cursor = self.roamer.map_or(0, |(_, cursor)| cursor);
        let mut news = Instant::now();
        while news.elapsed() < ROAMS_FOR {
            let page = json!({ "room_id": "lobby", "since_seq": cursor, "limit": PAGE });
            let page = agent.call("get_history", page).await?;
            let rows: Vec<Row> =
                page["messages"].as_array().into_iter().flatten().map(row).collect();
            if let Some(last) = rows.last() {
                cursor = last.number;
                news = Instant::now();
                look(&self.notes).seen.push(Seen::Roamed { at: node + 1, rows });
            } else {
                sleep(LOOK_EVERY).await;
            }
        }
        self.roamer = Some((node, cursor));
        Ok(())
    }

    fn told(&self) -> usize {
        look(&self.notes).told()
    }

    /// The agent of this name, which sits down if it is not there.
    fn speaker(&mut self, name: &str, node: usize) -> Result<&Speaker> {
        let known = self.speakers.iter().position(|agent| agent.name == name && agent.node == node);
        if let Some(at) = known {
            return Ok(&self.speakers[at]);
        }
        let door = self.node(node)?.door.subscribe();
        let speaker = Speaker::start(name, node, door, Notes::clone(&self.notes));
        self.speakers.push(speaker);
        Ok(&self.speakers[self.speakers.len() - 1])
    }

    fn node(&mut self, node: usize) -> Result<&mut Node> {
        let missing = || StageError::Missing(format!("node {} was never started", node + 1));
        self.nodes.get_mut(&node).ok_or_else(missing)
    }

    fn lay(&self, change: impl Fn((usize, usize), &mut State)) {
        for (link, pipe) in &self.pipes {
            pipe.set(|state| change(*link, state));
        }
    }

    /// Starts a node, for the first time with pipes to all that are there.
    async fn start(&mut self, node: usize) -> Result<()> {
        if let Some(known) = self.nodes.get_mut(&node) {
            if !known.up {
                known.daemon.restart().await?;
                known.open();
            }
            return Ok(());
        }
        let mut join = Vec::new();
        for (other, there) in &self.nodes {
            let target = there.daemon.ready().listen.first().cloned().unwrap_or_default();
            let pipe = Pipe::to(target).await.map_err(system("lay a pipe"))?;
            join.push(there.daemon.invite_at(&pipe.address().to_string()).await?);
            self.pipes.insert((node, *other), pipe);
        }
        let name = format!("node{}", node + 1);
        if self.setting.disk == Disk::Tmpfs {
            let mounted = self.disks.mount(&self.setting.dir.join(&name));
            mounted.map_err(system("mount a small disk, as only root may"))?;
        }
        if let Some(library) = &self.setting.libfaketime {
            let clock = Clock::new(library, self.setting.dir.join(format!("{name}.clock")))?;
            self.clocks.insert(node, clock);
        }
        let daemon = Daemon::start(Options {
            binary: self.setting.binary.clone(),
            data_dir: self.setting.dir.join(&name),
            name,
            key_file: None,
            join,
            // Else nodes would tell each other ways around the pipes.
            flags: vec!["--no-discovery".to_owned()],
            terminal: Terminal::Shared,
            clock: self.clocks.get(&node).cloned(),
        });
        let door = watch::channel(None).0;
        let mut started = Node { daemon: daemon.await?, up: true, door };
        started.open();
        self.nodes.insert(node, started);
        self.speaker(&format!("listener{}", node + 1), node)?;
        Ok(())
    }

    async fn kill(&mut self, nodes: &[usize]) -> Result<()> {
        for node in nodes {
            let node = self.node(node - 1)?;
            node.close();
            node.daemon.kill9().await?;
        }
        Ok(())
    }

    async fn restart(&mut self, nodes: &[usize], binary: Binary) -> Result<()> {
        let Setting { binary: usual, other, .. } = self.setting.clone();
        let program = match binary {
            Binary::Same => None,
            Binary::Usual => Some(usual),
            Binary::Other => Some(other.ok_or_else(|| {
                let what =
                    "a step restarts a node with another clawmeshd: name it with --other PATH";
                StageError::Missing(what.to_owned())
            })?),
        };
        for node in nodes {
            let node = self.node(node - 1)?;
            node.close();
            node.daemon.stop().await?;
            if let Some(program) = &program {
                node.daemon.set_binary(program);
            }
            node.daemon.restart().await?;
            node.open();
        }
        self.sit().await
    }

    /// Waits until it is so; somebody is answered now and then, and nobody ends by himself.
    async fn until(&mut self, what: &str, so: impl Fn(&Stage) -> bool) -> Result<()> {
        let mut told = (self.told(), Instant::now());
        while !so(self) {
            sleep(LOOK_EVERY).await;
            self.all_live()?;
            if self.told() > told.0 {
                told = (self.told(), Instant::now());
            }
            if told.1.elapsed() > ANSWERED_WITHIN {
                return Err(late(what, ANSWERED_WITHIN));
            }
        }
        Ok(())
    }

    fn all_live(&mut self) -> Result<()> {
        for (node, there) in &mut self.nodes {
            if there.up && !there.daemon.is_running() {
                return Err(StageError::Ended { node: node + 1, log: there.daemon.log() });
            }
        }
        Ok(())
    }

    fn is_up(&self, node: usize) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.up)
    }

    /// Everybody sits whose node runs.
    async fn sit(&mut self) -> Result<()> {
        self.until("agents are registered and in the lobby", |stage| {
            stage.speakers.iter().all(|agent| agent.sits() || !stage.is_up(agent.node))
        })
        .await
    }

    /// Everything is answered that agents at nodes of which `counts` says so and that run have to say.
    async fn finish(&mut self, counts: impl Fn(usize) -> bool) -> Result<()> {
        self.until("everything is answered", |stage| {
            let mut due = stage.speakers.iter().filter(|agent| counts(agent.node));
            due.all(|agent| agent.is_done() || !stage.is_up(agent.node))
        })
        .await
    }

    /// Waits until every node lists the agents of all.
    async fn know_each_other(&mut self) -> Result<()> {
        let deadline = Instant::now() + COMPLETE_WITHIN;
        let all = self.speakers.len();
        for node in self.nodes.values() {
            let mut agent = Agent::attach(node.daemon.tcp(), None, "visitor").await?;
            loop {
                let listed = agent.call("list_agents", json!({ "room_id": "lobby" })).await?;
                if listed["agents"].as_array().map_or(0, Vec::len) >= all {
                    break;
                }
                if Instant::now() > deadline {
                    return Err(late("the nodes know each other", COMPLETE_WITHIN));
                }
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }
}

impl Node {
    fn open(&mut self) {
        self.up = true;
        self.door.send_replace(Some(self.daemon.tcp().to_owned()));
    }

    fn close(&mut self) {
        self.up = false;
        self.door.send_replace(None);
    }
}

fn late(what: &str, within: Duration) -> StageError {
    StageError::Late { what: what.to_owned(), within }
}

fn system(what: &str) -> impl FnOnce(std::io::Error) -> StageError {
    let what = what.to_owned();
    move |source| StageError::System { what, source }
}
