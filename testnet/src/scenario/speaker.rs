//! An agent of the process world: it sits at its node for ever, comes back whenever that is there again,
//! says what it is given, and notes what it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::sleep,
};

use super::history::{Act, History, Row, Seen, last_heard, quote, words};
use crate::wire::{Agent, Incoming, WireError, text};

/// Messages that an agent has on the way at once.
const WINDOW: usize = 16;
/// After a refusal or a connection that failed.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The history that all agents write.
pub(super) type Notes = Arc<Mutex<History>>;

/// For a moment.
pub(super) fn look(notes: &Notes) -> MutexGuard<'_, History> {
    // A thread that panicked with it in hand left whole rows behind.
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module. It leaves when it is dropped.
#[derive(Debug)]
pub(super) struct Speaker {
    /// Its name and id.
    pub(super) name: String,
    /// Its node, from 0.
    pub(super) node: usize,
    work: Arc<Work>,
    notes: Notes,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Work {
    state: Mutex<State>,
    more: Notify,
}

#[derive(Debug, Default)]
struct State {
    to_do: VecDeque<Act>,
    said: u64,
    /// On the way.
    open: usize,
    joined: bool,
}

impl Work {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Speaker {
    /// An agent at `node`, whose address for agents `door` says while it runs.
    pub(super) fn start(
        name: &str,
        node: usize,
        door: watch::Receiver<Option<String>>,
        notes: Notes,
    ) -> Speaker {
        let work = Arc::new(Work::default());
        let shared = Notes::clone(&notes);
        let own = Own { name: name.to_owned(), node, work: Arc::clone(&work), notes };
        let task = tokio::spawn(own.live(door));
        Speaker { name: name.to_owned(), node, work, notes: shared, task }
    }

    /// Gives it so many more messages to say.
    pub(super) fn have_said(&self, messages: u64) {
        let mut state = self.work.state();
        for _ in 0..messages {
            state.said += 1;
            let content = words(&self.name, state.said);
            state.to_do.push_back(Act::Say(content));
        }
        self.work.more.notify_one();
    }

    /// It answers the last that it was told, by its number.
    pub(super) fn have_quoted(&self) {
        let mut notes = look(&self.notes);
        let Some(row) = last_heard(&notes.seen, &self.name) else { return };
        let mut state = self.work.state();
        state.said += 1;
        let content = quote(&self.name, state.said, &row);
        state.to_do.push_back(Act::Say(content));
        notes.seen.push(Seen::Quoted { at: self.node + 1, row });
        self.work.more.notify_one();
    }

    /// Gives it something more to do.
    pub(super) fn have_done(&self, act: Act) {
        self.work.state().to_do.push_back(act);
        self.work.more.notify_one();
    }

    /// Whether all is answered that it was given, or lost on the way.
    pub(super) fn is_done(&self) -> bool {
        let state = self.work.state();
        state.to_do.is_empty() && state.open == 0
    }

    /// Whether it is in the lobby.
    pub(super) fn sits(&self) -> bool {
        self.work.state().joined
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of the task.
struct Own {
    name: String,
    node: usize,
    work: Arc<Work>,
    notes: Notes,
}

impl Own {
    async fn live(self, mut door: watch::Receiver<Option<String>>) {
        loop {
            let address = match door.wait_for(Option::is_some).await {
                Ok(address) => address.clone().unwrap_or_default(),
                Err(_) => return,
            };
            // How it ended does not matter: the node is gone, or will be there again.
            let _ = self.sit(&address).await;
            {
                // Nobody knows whether calls on the way were carried out.
                let mut state = self.work.state();
                (state.joined, state.open) = (false, 0);
            }
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Until the connection ends.
    async fn sit(&self, address: &str) -> Result<(), WireError> {
        let fields = json!({ "agent_id": self.name, "reconnect": true });
        let mut agent = Agent::attach_as(address, None, &self.name, fields).await?;
        agent.call("join_room", json!({ "room_id": "lobby" })).await?;
        let connection = look(&self.notes).connect();
        self.work.state().joined = true;
        let mut asked: BTreeMap<String, Act> = BTreeMap::new();
        loop {
            while let Some(act) = self.next_act() {
                if let Act::Say(content) = &act {
                    look(&self.notes).seen.push(Seen::Asked { content: content.clone() });
                }
                let (kind, payload) = self.request(&act);
                asked.insert(agent.send(kind, payload).await?, act);
            }
            let incoming = tokio::select! {
                incoming = agent.incoming() => incoming?,
                () = self.work.more.notified() => continue,
            };
            match incoming {
                Incoming::Event(event) if event.kind == "message_received" => {
                    let (at, by) = (self.node + 1, self.name.clone());
                    let row = row(&event.body);
                    look(&self.notes).seen.push(Seen::Heard { at, connection, by, row });
                }
                Incoming::Event(event) if event.kind.starts_with("leader_") => {
                    let at = self.node + 1;
                    let leader = event.body["leader_id"].as_str().map(str::to_owned);
                    look(&self.notes).seen.push(Seen::Leads { at, leader });
                }
                Incoming::Event(_) => {}
                Incoming::Reply { to, answer } => {
                    let Some(act) = asked.remove(&to) else { continue };
                    self.answered(act, answer).await?;
                }
            }
        }
    }

    fn next_act(&self) -> Option<Act> {
        let mut state = self.work.state();
        if state.open >= WINDOW {
            return None;
        }
        let act = state.to_do.pop_front()?;
        state.open += 1;
        Some(act)
    }

    fn request(&self, act: &Act) -> (&'static str, Value) {
        match act {
            Act::Say(content) => {
                ("send_message", json!({ "room_id": "lobby", "content": content }))
            }
            Act::Open(options) => {
                let options: Vec<String> = (0..*options).map(|n| format!("option {n}")).collect();
                let vote = json!({ "room_id": "lobby", "title": "which?", "options": options });
                ("create_vote", vote)
            }
            Act::Cast(option) => {
                // Without a vote the id is nobody's, and it is refused and tried again.
                let vote = look(&self.notes).votes.last().cloned().unwrap_or_default();
                ("cast_vote", json!({ "vote_id": vote, "option_index": option }))
            }
            Act::Elect => ("elect_leader", json!({ "room_id": "lobby" })),
            Act::Assign => {
                ("assign_task", json!({ "room_id": "lobby", "title": "somebody has to" }))
            }
            Act::Claim => {
                let task = look(&self.notes).tasks.last().cloned().unwrap_or_default();
                let claim = json!({ "task_id": task, "assignee": self.name, "if_assignee": null });
                ("update_task", claim)
            }
        }
    }

    async fn answered(&self, act: Act, answer: Result<Value, WireError>) -> Result<(), WireError> {
        let at = self.node + 1;
        match answer {
            Ok(body) => {
                let mut notes = look(&self.notes);
                match act {
                    // The text that the node took down is judged, not the one that it was given.
                    Act::Say(_) => notes.seen.push(Seen::Told { at, row: row(&body) }),
                    Act::Open(_) => notes.votes.push(text(&body, "vote_id")),
                    Act::Elect => {}
                    Act::Assign => notes.tasks.push(text(&body, "task_id")),
                    Act::Claim => {
                        let (task, by) = (text(&body, "task_id"), self.name.clone());
                        notes.seen.push(Seen::Claimed { at, task, by });
                    }
                    Act::Cast(option) => {
                        let vote = text(&body, "vote_id");
                        notes.seen.push(Seen::Cast { at, vote, option });
                    }
                }
                drop(notes);
                self.work.state().open -= 1;
                Ok(())
            }
            Err(error) => {
                let Some(code) = error.code().map(str::to_owned) else { return Err(error) };
                // Somebody else was first: that is an answer.
                let first = match act {
                    Act::Claim => code == "invalid_payload",
                    Act::Elect => code == "election_in_progress",
                    Act::Say(_) | Act::Open(_) | Act::Cast(_) | Act::Assign => false,
                };
                look(&self.notes).seen.push(Seen::Refused { at, code });
                if first {
                    self.work.state().open -= 1;
                    return Ok(());
                }
                sleep(TRY_AGAIN_AFTER).await;
                let mut state = self.work.state();
                state.to_do.push_front(act);
                state.open -= 1;
                Ok(())
            }
        }
    }
}

/// A message as a reply, an event or a page has it.
pub(super) fn row(message: &Value) -> Row {
    Row {
        number: message["seq"].as_u64().unwrap_or(0),
        message: text(message, "message_id"),
        content: text(message, "content"),
    }
}
