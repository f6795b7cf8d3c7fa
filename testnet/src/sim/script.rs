//! Agents that follow a scenario instead of chance, and note everything that they see.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mesh::{
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        command::{CallId, Caller, Command, Outcome, Refused, Speech},
        event::{Delivered, RoomEvent},
    },
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
};
use store::Row as Stored;

use super::{
    agents::say,
    cluster::Cluster,
    keys::{self, KEY},
    parts::{Calls, Part, Reply},
    promises::{Broken, broken},
};
use crate::scenario::history::{Act, History, Row, Seen, last_heard, quote, words};

/// Messages that an agent has on the way at once.
const WINDOW: usize = 16;
/// Rows of a node's history that are read at once.
const PAGE: usize = 1_000;

/// The purpose of a call.
#[derive(Clone, Debug)]
enum Asked {
    Attach,
    Join,
    Do(Act),
}

/// A call of an agent.
#[derive(Clone, Debug)]
struct Call {
    seat: usize,
    room: RoomId,
    asked: Asked,
}

/// An agent: it sits at its node for ever, and comes back whenever that starts.
#[derive(Debug, Default)]
struct Seat {
    name: String,
    node: usize,
    caller: Option<Caller>,
    joined: bool,
    /// Acts that it has still to do; one that was refused is done again.
    to_do: VecDeque<Act>,
    /// How much it was ever told to say.
    said: u64,
    /// Calls on the way.
    open: usize,
    /// An act that was refused waits for the next tick.
    waits: bool,
    /// Of this agent at its node.
    connection: u64,
}

impl Seat {
    /// Its node, counted from 1 as scenarios do.
    fn at(&self) -> usize {
        self.node + 1
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Script {
    seats: Vec<Seat>,
    calls: Calls<Call>,
    pub(super) history: History,
    /// Messages answered.
    pub(super) told: u64,
    /// The last one that was opened.
    vote: Option<MessageId>,
    /// The last one that was made.
    task: Option<MessageId>,
    /// Questions about these, and about the nodes themselves.
    looks: Calls<()>,
    /// The forked nodes that each node named last. By node, counted from 1.
    pub(super) blames: BTreeMap<usize, Vec<usize>>,
}

impl Script {
    /// Whether everything that agents at nodes of which `counts` says so have to say is answered.
    pub(super) fn is_done(&self, counts: impl Fn(usize) -> bool) -> bool {
        self.seats
            .iter()
            .filter(|seat| counts(seat.node))
            .all(|seat| seat.to_do.is_empty() && seat.open == 0)
    }

    /// The caller in a seat, if it is registered.
    pub(super) fn caller(&self, seat: usize) -> Option<Caller> {
        self.seats[seat].caller.clone()
    }

    /// Whether all agents whose nodes run sit and have joined.
    pub(super) fn all_sit(&self, cluster: &Cluster) -> bool {
        let mut seats = self.seats.iter();
        seats.all(|seat| seat.joined || cluster.nodes[seat.node].running.is_none())
    }

    /// Notes something that was seen.
    pub(super) fn note(&mut self, seen: Seen) {
        self.history.seen.push(seen);
    }
}

/// Tasks of agents.
impl Script {
    /// An agent sits down at a node, unless it sits there.
    pub(super) fn take_seat(&mut self, name: &str, node: usize) -> usize {
        let known = self.seats.iter().position(|seat| seat.name == name && seat.node == node);
        known.unwrap_or_else(|| {
            self.seats.push(Seat { name: name.to_owned(), node, ..Seat::default() });
            self.seats.len() - 1
        })
    }

    /// Gives an agent so many messages to say.
    pub(super) fn have_said(&mut self, cluster: &mut Cluster, seat: usize, messages: u64) {
        let agent = &mut self.seats[seat];
        for _ in 0..messages {
            agent.said += 1;
            agent.to_do.push_back(Act::Say(words(&agent.name, agent.said)));
        }
        self.pump(cluster, seat);
    }

    /// Everybody who can goes on.
    pub(super) fn tick(&mut self, cluster: &mut Cluster) {
        for seat in 0..self.seats.len() {
            self.seats[seat].waits = false;
            self.pump(cluster, seat);
        }
    }

    /// The listener at a node answers the last message that it was told, by its number.
    pub(super) fn have_quoted(&mut self, cluster: &mut Cluster, node: usize) {
        let name = format!("listener{}", node + 1);
        let Some(row) = last_heard(&self.history.seen, &name) else { return };
        let seat = self.take_seat(&name, node);
        let agent = &mut self.seats[seat];
        agent.said += 1;
        agent.to_do.push_back(Act::Say(quote(&name, agent.said, &row)));
        self.note(Seen::Quoted { at: node + 1, row });
        self.pump(cluster, seat);
    }

    /// Gives all agents at a node something to do, or only the one of this name.
    pub(super) fn have_done(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        name: Option<&str>,
        act: &Act,
    ) {
        for seat in 0..self.seats.len() {
            let agent = &mut self.seats[seat];
            if agent.node == node && name.is_none_or(|name| name == agent.name) {
                agent.to_do.push_back(act.clone());
                self.pump(cluster, seat);
            }
        }
    }

    /// Asks nodes that run how the last vote is, and which nodes they know to have forked.
    pub(super) fn look_around(&mut self, cluster: &mut Cluster) {
        let room = cluster.lobby();
        for node in 0..cluster.nodes.len() {
            if cluster.nodes[node].running.is_none() {
                continue;
            }
            let vote = self.vote.map(|vote| Command::GetVote { by: (*KEY).into(), vote });
            let tasks = Command::ListTasks { by: (*KEY).into(), room, status: None };
            let tasks = (!self.history.tasks.is_empty()).then_some(tasks);
            for command in [Some(Command::Status), vote, tasks].into_iter().flatten() {
                self.looks.ask(cluster, node, (), command);
            }
        }
    }

    fn looked(&mut self, cluster: &Cluster, reply: &Reply) {
        let at = reply.node + 1;
        if let Ok(Outcome::Vote(view)) = &reply.result {
            let (vote, closed, tally) = (view.vote.to_string(), view.closed, view.tally.clone());
            self.note(Seen::Viewed { at, vote, closed, tally });
        }
        if let Ok(Outcome::Tasks(tasks)) = &reply.result {
            for view in tasks {
                let (task, contested) =
                    (view.task.to_string(), view.contested.contains(&"assignee"));
                let holder = view.assignee.as_deref().map(str::to_owned);
                self.note(Seen::Shows { at, task, holder, contested });
            }
        }
        if let Ok(Outcome::Status(status)) = &reply.result {
            let forked = status.forked.iter();
            let mut of: Vec<usize> =
                forked.filter_map(|id| Some(cluster.index(*id)? + 1)).collect();
            of.sort_unstable();
            self.blames.insert(at, of);
        }
    }

    fn ask(&mut self, cluster: &mut Cluster, seat: usize, asked: Asked, command: Command) {
        self.seats[seat].open += 1;
        let (node, room) = (self.seats[seat].node, cluster.lobby());
        self.calls.ask(cluster, node, Call { seat, room, asked }, command);
    }

    fn pump(&mut self, cluster: &mut Cluster, seat: usize) {
        let agent = &self.seats[seat];
        if cluster.nodes[agent.node].running.is_none() || agent.waits {
            return;
        }
        let room = cluster.lobby();
        let Some(caller) = agent.caller.clone() else {
            if agent.open == 0 {
                let (at, name) = (cluster.log_of(agent.node), agent.name.clone());
                let attach = keys::attach(&at, AgentId::from(name.clone()), name);
                self.ask(cluster, seat, Asked::Attach, Command::Attach(attach));
            }
            return;
        };
        if !agent.joined {
            if agent.open == 0 {
                self.ask(cluster, seat, Asked::Join, Command::Join { caller, room });
            }
            return;
        }
        while self.seats[seat].open < WINDOW {
            let Some(act) = self.seats[seat].to_do.pop_front() else { return };
            let command = self.command(room, caller.clone(), &act);
            self.ask(cluster, seat, Asked::Do(act), command);
        }
    }

    fn command(&self, room: RoomId, caller: Caller, act: &Act) -> Command {
        match act {
            Act::Say(content) => {
                Command::Say { caller, say: say(room, Speech::Chat, content.clone()) }
            }
            Act::Open(options) => {
                let vote = NewVote {
                    room,
                    title: "which one?".to_owned(),
                    description: None,
                    options: (0..*options).map(|n| format!("option {n}")).collect(),
                    duration_secs: None,
                };
                Command::CreateVote { caller, vote }
            }
            Act::Cast(option) => {
                // Without a vote the id is nobody's, and it is refused and tried again.
                let vote = self.vote.unwrap_or(MessageId([0; 16]));
                Command::CastVote { caller, vote, option: *option }
            }
            Act::Elect => Command::ElectLeader { caller, room },
            Act::Assign => {
                let title = "somebody has to".to_owned();
                let task = NewTask::of(room, title);
                Command::AssignTask { caller, task }
            }
            Act::Claim => {
                let update = TaskUpdate {
                    assignee: Some(Some(caller.agent.clone())),
                    if_assignee: Some(None),
                    ..TaskUpdate::of(self.task.unwrap_or(MessageId([0; 16])))
                };
                Command::UpdateTask { caller, update }
            }
        }
    }
}

impl Part for Script {
    fn judges_full_disks(&self) -> bool {
        true
    }

    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        if self.looks.take(reply).is_some() {
            self.looked(cluster, reply);
            return Ok(true);
        }
        let Some(Call { seat, asked, .. }) = self.calls.take(reply) else { return Ok(false) };
        self.seats[seat].open -= 1;
        self.answered(cluster, seat, asked, &reply.result)?;
        self.pump(cluster, seat);
        Ok(true)
    }

    /// Its agents lose their connections; nobody knows whether calls on the way were carried out.
    fn node_down(&mut self, _cluster: &Cluster, node: usize) {
        for seat in self.seats.iter_mut().filter(|seat| seat.node == node) {
            (seat.caller, seat.joined, seat.open, seat.waits) = (None, false, 0, false);
        }
        self.calls.node_down(node);
        self.looks.node_down(node);
    }

    fn said_in(&self, call: CallId) -> Option<RoomId> {
        let Call { room, asked, .. } = self.calls.asked(call)?;
        if let Asked::Do(Act::Say(_)) = asked { Some(*room) } else { None }
    }
}

/// Sights of agents.
impl Script {
    fn answered(
        &mut self,
        cluster: &Cluster,
        seat: usize,
        asked: Asked,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let agent = &mut self.seats[seat];
        let at = agent.at();
        match (asked, result) {
            (Asked::Attach, Ok(Outcome::Attached(attached))) => {
                let id = AgentId::from(agent.name.clone());
                let registration = attached.registration;
                agent.caller = Some(Caller { agent: Arc::clone(&id), key: *KEY, registration });
            }
            (Asked::Join, Ok(_)) => {
                (agent.joined, agent.connection) = (true, self.history.connect());
            }
            (Asked::Do(act), Ok(outcome)) => self.done(seat, act, outcome)?,
            // Somebody else was first: that is an answer.
            (Asked::Do(Act::Claim), Err(Refused::Held { .. }))
            | (Asked::Do(Act::Elect), Err(Refused::ElectionRuns)) => {}
            (asked, Err(refused)) => {
                cluster.say(|| format!("node{}: {asked:?} refused: {refused}", at - 1));
                agent.waits = true;
                if let Asked::Do(act) = asked {
                    agent.to_do.push_front(act);
                    let code = format!("{refused:?}");
                    self.note(Seen::Refused { at, code });
                }
            }
            (asked, Ok(outcome)) => {
                return broken("replies", format!("{asked:?} was answered with {outcome:?}"));
            }
        }
        Ok(())
    }

    /// An agent was told that its act is done.
    fn done(&mut self, seat: usize, act: Act, outcome: &Outcome) -> Result<(), Broken> {
        let agent = &self.seats[seat];
        let (at, by) = (agent.at(), agent.name.clone());
        match (act, outcome) {
            (Act::Say(content), Outcome::Said(said)) => {
                let row = Row { number: said.number.0, message: said.message.to_string(), content };
                self.told += 1;
                self.note(Seen::Told { at, row });
            }
            (Act::Open(_), Outcome::Vote(view)) => {
                self.vote = Some(view.vote);
                self.history.votes.push(view.vote.to_string());
            }
            (Act::Cast(option), Outcome::Cast { .. }) => {
                let vote = self.history.votes.last().cloned().unwrap_or_default();
                self.note(Seen::Cast { at, vote, option });
            }
            (Act::Assign, Outcome::Task(view)) => {
                self.task = Some(view.task);
                self.history.tasks.push(view.task.to_string());
            }
            (Act::Claim, Outcome::Task(view)) => {
                let task = view.task.to_string();
                self.note(Seen::Claimed { at, task, by });
            }
            (Act::Elect, Outcome::Candidates(_)) => {}
            (act, outcome) => {
                return broken("replies", format!("{act:?} was answered with {outcome:?}"));
            }
        }
        Ok(())
    }

    /// A node tells the members of the lobby something.
    pub(super) fn told(&mut self, cluster: &Cluster, node: usize, room: RoomId, event: &RoomEvent) {
        if self.seats.is_empty() || room != cluster.lobby() {
            return;
        }
        let at = node + 1;
        if let RoomEvent::LeaderElected { agent, .. } = event {
            self.note(Seen::Leads { at, leader: Some(agent.to_string()) });
        } else if let RoomEvent::LeaderCleared { .. } = event {
            self.note(Seen::Leads { at, leader: None });
        } else if let RoomEvent::Message(message) = event {
            let row = told_row(cluster, node, room, message);
            let seats = self.seats.iter().filter(|seat| seat.node == node && seat.joined);
            let seats = seats.filter(|seat| !row.content.starts_with(&format!("{} ", seat.name)));
            let heard = seats.map(|seat| Seen::Heard {
                at,
                connection: seat.connection,
                by: seat.name.clone(),
                row: row.clone(),
            });
            self.history.seen.extend(heard);
        }
    }
}

fn told_row(cluster: &Cluster, node: usize, room: RoomId, message: &Delivered) -> Row {
    let content = message.said.as_ref().map(|said| said.content.clone()).or_else(|| {
        // As the bridge does with bodies that are no longer in memory.
        let running = cluster.nodes[node].running.as_ref()?;
        let row = running.reader.by_number(room, message.number).ok().flatten()?;
        Some(row.said?.content)
    });
    let (number, message) = (message.number.0, message.message.to_string());
    Row { number, message, content: content.unwrap_or_default() }
}

/// All that a node would page through, from the last row of `rows` on.
pub(super) fn read_on(cluster: &Cluster, node: usize, rows: &mut Vec<Row>) -> Result<(), Broken> {
    let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
    loop {
        let after = Number(rows.last().map_or(0, |row| row.number));
        let page = running.reader.page_since(cluster.lobby(), after, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        rows.extend(page.iter().map(row));
    }
}

/// The message of a number, as a node has it.
pub(super) fn look_up(
    cluster: &Cluster,
    node: usize,
    number: u64,
) -> Result<Option<String>, Broken> {
    let Some(running) = &cluster.nodes[node].running else { return Ok(None) };
    let row = running.reader.by_number(cluster.lobby(), Number(number))?;
    Ok(row.map(|row| row.message.to_string()))
}

pub(super) fn row(stored: &Stored) -> Row {
    Row {
        number: stored.number.0,
        message: stored.message.to_string(),
        content: stored.said.as_ref().map(|said| said.content.clone()).unwrap_or_default(),
    }
}
