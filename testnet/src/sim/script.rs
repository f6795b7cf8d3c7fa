//! Agents that do what a scenario says and note what they see, instead of what chance says.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mesh::{
    Input,
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        command::{Attach, CallId, Caller, Command, Encryption, Outcome, Refused, Say, Speech},
        event::{Delivered, RoomEvent},
    },
    name::id::{AgentId, MessageId, RoomId},
};
use store::Row as Stored;

use super::{
    agents::KEY,
    promises::{Broken, broken},
    world::World,
};
use crate::scenario::history::{Act, History, Row, Seen, last_heard, quote, words};

/// Messages that an agent has on the way at once.
const WINDOW: usize = 16;
/// Rows of a node's history that are read at once.
const PAGE: usize = 1_000;

/// What a call was for.
#[derive(Clone, Debug)]
enum Asked {
    Attach,
    Join,
    Do(Act),
}

/// An agent: it sits at its node for ever, and comes back whenever that starts.
#[derive(Debug)]
struct Seat {
    name: String,
    node: usize,
    caller: Option<Caller>,
    joined: bool,
    /// What it has still to do; what was refused is done again.
    to_do: VecDeque<Act>,
    /// How much it was ever told to say.
    said: u64,
    /// Calls on the way.
    open: usize,
    /// What was refused waits for the next tick.
    waits: bool,
    /// Of this agent at its node.
    connection: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Script {
    seats: Vec<Seat>,
    asked: BTreeMap<CallId, (usize, Asked)>,
    pub(super) history: History,
    /// Messages answered.
    pub(super) told: u64,
    /// The last one that was opened.
    vote: Option<MessageId>,
    /// The last one that was made.
    task: Option<MessageId>,
    /// Nodes that were asked about it, and about themselves.
    looks: BTreeMap<CallId, usize>,
    /// What they said last of forks: by node, counted from 1.
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

    /// Who sits there, if anybody does.
    pub(super) fn caller(&self, seat: usize) -> Option<Caller> {
        self.seats[seat].caller.clone()
    }

    /// Its agents lose their connections; nobody knows what became of what was on the way.
    pub(super) fn node_down(&mut self, node: usize) {
        for seat in self.seats.iter_mut().filter(|it| it.node == node) {
            (seat.caller, seat.joined, seat.open, seat.waits) = (None, false, 0, false);
        }
        let seats = &self.seats;
        self.asked.retain(|_, (seat, _)| seats[*seat].node != node);
        self.looks.retain(|_, at| *at != node);
    }

    /// Whether a call of the script says something.
    pub(super) fn says(&self, call: CallId) -> bool {
        matches!(self.asked.get(&call), Some((_, Asked::Do(Act::Say(_)))))
    }
}

impl World {
    fn lobby(&self) -> RoomId {
        RoomId::lobby(self.secret.mesh_id())
    }

    /// An agent sits down at a node, unless it sits there.
    pub(super) fn take_seat(&mut self, name: &str, node: usize) -> usize {
        let known = self.script.seats.iter().position(|it| it.name == name && it.node == node);
        known.unwrap_or_else(|| {
            self.script.seats.push(Seat {
                name: name.to_owned(),
                node,
                caller: None,
                joined: false,
                to_do: VecDeque::new(),
                said: 0,
                open: 0,
                waits: false,
                connection: 0,
            });
            self.script.seats.len() - 1
        })
    }

    /// Gives an agent so many messages to say.
    pub(super) fn have_said(&mut self, seat: usize, messages: u64) {
        let it = &mut self.script.seats[seat];
        for _ in 0..messages {
            it.said += 1;
            it.to_do.push_back(Act::Say(words(&it.name, it.said)));
        }
        self.pump(seat);
    }

    /// Everybody who can goes on.
    pub(super) fn tick_script(&mut self) {
        for seat in 0..self.script.seats.len() {
            self.script.seats[seat].waits = false;
            self.pump(seat);
        }
    }

    /// The listener at a node answers the last that it was told, by its number.
    pub(super) fn have_quoted(&mut self, node: usize) {
        let name = format!("listener{}", node + 1);
        let Some(row) = last_heard(&self.script.history.seen, &name) else { return };
        let seat = self.take_seat(&name, node);
        let it = &mut self.script.seats[seat];
        it.said += 1;
        it.to_do.push_back(Act::Say(quote(&name, it.said, &row)));
        self.script.history.seen.push(Seen::Quoted { at: node + 1, row });
        self.pump(seat);
    }

    /// Gives all agents at a node something to do, or only the one of this name.
    pub(super) fn have_done(&mut self, node: usize, name: Option<&str>, act: &Act) {
        for seat in 0..self.script.seats.len() {
            let it = &mut self.script.seats[seat];
            if it.node == node && name.is_none_or(|name| name == it.name) {
                it.to_do.push_back(act.clone());
                self.pump(seat);
            }
        }
    }

    /// Asks nodes that run how the last vote is, and whom they know to have forked.
    pub(super) fn look_around(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].running.is_none() {
                continue;
            }
            let vote =
                self.script.vote.map(|vote| Command::GetVote { key: KEY, agent: None, vote });
            let room = self.lobby();
            let tasks = (!self.script.history.tasks.is_empty()).then_some(Command::ListTasks {
                key: KEY,
                room,
                status: None,
            });
            for command in [Some(Command::Status), vote, tasks].into_iter().flatten() {
                let call = self.call();
                self.script.looks.insert(call, node);
                self.give(node, Input::Command { call, command });
            }
        }
    }

    fn looked(&mut self, node: usize, result: &Result<Outcome, Refused>) {
        let at = node + 1;
        if let Ok(Outcome::Vote(view)) = result {
            let (vote, closed, tally) = (view.vote.to_string(), view.closed, view.tally.clone());
            self.script.history.seen.push(Seen::Viewed { at, vote, closed, tally });
        }
        if let Ok(Outcome::Tasks(tasks)) = result {
            for view in tasks {
                let (task, contested) =
                    (view.task.to_string(), view.contested.contains(&"assignee"));
                let holder = view.assignee.as_deref().map(str::to_owned);
                self.script.history.seen.push(Seen::Shows { at, task, holder, contested });
            }
        }
        if let Ok(Outcome::Status(status)) = result {
            let mut of: Vec<usize> =
                status.forked.iter().filter_map(|id| Some(self.index(*id)? + 1)).collect();
            of.sort_unstable();
            self.script.blames.insert(at, of);
        }
    }

    /// A client with a cursor took a row.
    pub(super) fn script_roamed(&mut self, (node, roamer): (usize, usize), it: &Stored) {
        if roamer == 0 && self.plan.scripted.is_some() {
            let rows = vec![row(it)];
            self.script.history.seen.push(Seen::Roamed { at: node + 1, rows });
        }
    }

    /// Whether everybody sits and has joined whose node runs.
    pub(super) fn all_sit(&self) -> bool {
        let mut seats = self.script.seats.iter();
        seats.all(|it| it.joined || self.nodes[it.node].running.is_none())
    }

    fn ask_script(&mut self, seat: usize, asked: Asked, command: Command) {
        let call = self.call();
        let node = self.script.seats[seat].node;
        self.script.seats[seat].open += 1;
        self.script.asked.insert(call, (seat, asked));
        self.give(node, Input::Command { call, command });
    }

    fn pump(&mut self, seat: usize) {
        let it = &self.script.seats[seat];
        if self.nodes[it.node].running.is_none() || it.waits {
            return;
        }
        let room = self.lobby();
        let Some(caller) = it.caller.clone() else {
            if it.open == 0 {
                let attach = Attach {
                    agent: AgentId::from(it.name.clone()),
                    stable: true,
                    reconnect: true,
                    key: KEY,
                    own: true,
                    opener: None,
                    name: it.name.clone(),
                    capabilities: Vec::new(),
                };
                self.ask_script(seat, Asked::Attach, Command::Attach(attach));
            }
            return;
        };
        if !it.joined {
            if it.open == 0 {
                self.ask_script(seat, Asked::Join, Command::Join { caller, room });
            }
            return;
        }
        while self.script.seats[seat].open < WINDOW {
            let Some(act) = self.script.seats[seat].to_do.pop_front() else { return };
            let command = self.command((room, caller.clone()), &act);
            self.ask_script(seat, Asked::Do(act), command);
        }
    }

    fn command(&self, (room, caller): (RoomId, Caller), act: &Act) -> Command {
        match act {
            Act::Say(content) => {
                let say = Say {
                    room,
                    speech: Speech::Chat,
                    content: content.clone(),
                    encryption: Encryption::None,
                    reply_to: None,
                    mentions: Vec::new(),
                    metadata: None,
                    dedup: None,
                };
                Command::Say { caller, say }
            }
            Act::Open(options) => {
                let vote = NewVote {
                    room,
                    title: "which one?".to_owned(),
                    description: None,
                    options: (0..*options).map(|it| format!("option {it}")).collect(),
                    duration_secs: None,
                };
                Command::CreateVote { caller, vote }
            }
            Act::Cast(option) => {
                // Without a vote the id is nobody's, and it is refused and tried again.
                let vote = self.script.vote.unwrap_or(MessageId([0; 16]));
                Command::CastVote { caller, vote, option: *option }
            }
            Act::Elect => Command::ElectLeader { caller, room },
            Act::Assign => {
                let title = "somebody has to".to_owned();
                let task = NewTask { room, title, description: None, assignee: None };
                Command::AssignTask { caller, task }
            }
            Act::Claim => {
                let update = TaskUpdate {
                    task: self.script.task.unwrap_or(MessageId([0; 16])),
                    status: None,
                    assignee: Some(caller.agent.clone()),
                    note: None,
                    if_assignee: Some(None),
                };
                Command::UpdateTask { caller, update }
            }
        }
    }

    /// Whether the call was the script's; and if so, what the answer means.
    pub(super) fn script_replied(
        &mut self,
        call: CallId,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        if let Some(node) = self.script.looks.remove(&call) {
            self.looked(node, result);
            return Ok(true);
        }
        let Some((seat, asked)) = self.script.asked.remove(&call) else { return Ok(false) };
        self.script.seats[seat].open -= 1;
        match (asked, result) {
            (Asked::Attach, Ok(Outcome::Attached(attached))) => {
                let it = &mut self.script.seats[seat];
                let agent = AgentId::from(it.name.clone());
                let registration = attached.registration;
                it.caller = Some(Caller { agent: Arc::clone(&agent), key: KEY, registration });
            }
            (Asked::Join, Ok(_)) => {
                let connection = self.script.history.connect();
                let it = &mut self.script.seats[seat];
                (it.joined, it.connection) = (true, connection);
            }
            (Asked::Do(Act::Say(content)), Ok(Outcome::Said(said))) => {
                let row = Row { number: said.number.0, message: said.message.to_string(), content };
                let at = self.script.seats[seat].node + 1;
                self.script.told += 1;
                self.script.history.seen.push(Seen::Told { at, row });
            }
            (Asked::Do(Act::Open(_)), Ok(Outcome::Vote(view))) => {
                self.script.vote = Some(view.vote);
                self.script.history.votes.push(view.vote.to_string());
            }
            (Asked::Do(Act::Cast(option)), Ok(Outcome::Cast { .. })) => {
                let at = self.script.seats[seat].node + 1;
                let vote = self.script.history.votes.last().cloned().unwrap_or_default();
                self.script.history.seen.push(Seen::Cast { at, vote, option });
            }
            (Asked::Do(Act::Assign), Ok(Outcome::Task(view))) => {
                self.script.task = Some(view.task);
                self.script.history.tasks.push(view.task.to_string());
            }
            (Asked::Do(Act::Claim), Ok(Outcome::Task(view))) => {
                let it = &self.script.seats[seat];
                let (at, by, task) = (it.node + 1, it.name.clone(), view.task.to_string());
                self.script.history.seen.push(Seen::Claimed { at, task, by });
            }
            // Somebody else was first: that is an answer.
            (Asked::Do(Act::Claim), Err(Refused::Held { .. }))
            | (Asked::Do(Act::Elect), Ok(Outcome::Candidates(_)) | Err(Refused::ElectionRuns)) => {}
            (asked, Err(refused)) => {
                let at = self.script.seats[seat].node + 1;
                self.say(|| format!("node{}: {asked:?} refused: {refused}", at - 1));
                let it = &mut self.script.seats[seat];
                it.waits = true;
                if let Asked::Do(act) = asked {
                    it.to_do.push_front(act);
                    let code = format!("{refused:?}");
                    self.script.history.seen.push(Seen::Refused { at, code });
                }
            }
            (asked, Ok(outcome)) => {
                return broken("replies", format!("{asked:?} was answered with {outcome:?}"));
            }
        }
        self.pump(seat);
        Ok(true)
    }

    /// What a node tells the members of the lobby.
    pub(super) fn script_told(&mut self, node: usize, room: RoomId, event: &RoomEvent) {
        let leader = if let RoomEvent::LeaderElected { agent, .. } = event {
            Some(Some(agent.to_string()))
        } else if let RoomEvent::LeaderCleared { .. } = event {
            Some(None)
        } else {
            None
        };
        if let Some(leader) =
            leader.filter(|_| !self.script.seats.is_empty() && room == self.lobby())
        {
            self.script.history.seen.push(Seen::Leads { at: node + 1, leader });
        }
        if let RoomEvent::Message(it) = event
            && !self.script.seats.is_empty()
            && room == self.lobby()
        {
            let row = self.told_row(node, room, it);
            let seats = self.script.seats.iter().filter(|seat| seat.node == node && seat.joined);
            let seats = seats.filter(|seat| !row.content.starts_with(&format!("{} ", seat.name)));
            let heard: Vec<Seen> = seats
                .map(|seat| Seen::Heard {
                    at: node + 1,
                    connection: seat.connection,
                    by: seat.name.clone(),
                    row: row.clone(),
                })
                .collect();
            self.script.history.seen.extend(heard);
        }
    }

    fn told_row(&self, node: usize, room: RoomId, it: &Delivered) -> Row {
        let content = it.said.as_ref().map(|said| said.content.clone()).or_else(|| {
            // As the bridge does with what is no longer in memory.
            let running = self.nodes[node].running.as_ref()?;
            let row = running.reader.by_number(room, it.number).ok().flatten()?;
            Some(row.said?.content)
        });
        let (number, message) = (it.number.0, it.message.to_string());
        Row { number, message, content: content.unwrap_or_default() }
    }

    /// All that a node would page through, from the last row of `rows` on.
    pub(super) fn read_on(&self, node: usize, rows: &mut Vec<Row>) -> Result<(), Broken> {
        let Some(running) = &self.nodes[node].running else { return Ok(()) };
        loop {
            let after = mesh::name::number::Number(rows.last().map_or(0, |row| row.number));
            let page = running.reader.page_since(self.lobby(), after, PAGE);
            let page = page.map_err(|error| read_failed(&error))?;
            if page.is_empty() {
                return Ok(());
            }
            rows.extend(page.iter().map(row));
        }
    }

    /// What a number leads to at a node.
    pub(super) fn look_up(&self, node: usize, number: u64) -> Result<Option<String>, Broken> {
        let Some(running) = &self.nodes[node].running else { return Ok(None) };
        let row = running.reader.by_number(self.lobby(), mesh::name::number::Number(number));
        let row = row.map_err(|error| read_failed(&error))?;
        Ok(row.map(|row| row.message.to_string()))
    }
}

fn row(it: &Stored) -> Row {
    Row {
        number: it.number.0,
        message: it.message.to_string(),
        content: it.said.as_ref().map(|said| said.content.clone()).unwrap_or_default(),
    }
}

fn read_failed(error: &store::ReadError) -> Broken {
    Broken { promise: "store", what: format!("a read failed: {error}") }
}
