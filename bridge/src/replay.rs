//! What has happened in a room, as a file for players: one object with what is known of the room and of those who took part, and
//! all events, the oldest first. It is written here for all dialects, which show it over their own ways.
//!
//! A `Tape` goes through the room's past from its beginning, in the order of all entries of the room, some hundred at a time;
//! it holds the tasks as they were, who has taken part, and no event. So two nodes that have the same logs give the same bytes,
//! and a node that was started anew gives them again. Who shows no key is given what those see who look on.

mod turns;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use mesh::{
    api::{
        agenda::{TaskChange, TaskField, TaskView},
        command::{RoomView, Speech},
    },
    chronicle::{Position, TaskPast, TaskStep},
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
    records::profile::Field,
    wire::{entry::Said, tasks::TaskStatus},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use self::turns::Turns;
use crate::{
    backend::{Happened, Past},
    limits::{
        REPLAY_PAGE_BYTES, REPLAY_PARTICIPANTS_MAX, REPLAY_ROWS, REPLAY_TAKEN_WITHIN,
        REPLAYS_KEPT_FOR, REPLAYS_KEPT_MAX, REPLAYS_OF_KEY_KEPT_MAX,
    },
    read::{Desk, Visitor},
    seam::{
        call::{DescribeRoom, GetProfile, ReadDetails},
        event::Message,
        principal::user_of,
        refusal::Refusal,
    },
    shown::{Commit, Eyes, PullRequest, Shown},
};

/// What somebody wants to be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Thoughts, too.
    pub thinking: bool,
    /// No more than those see who look on.
    pub public: bool,
}

impl Wish {
    fn eyes(self) -> Eyes {
        if self.public { Eyes::Strangers } else { Eyes::Members }
    }
}

/// The room's past, from its beginning.
struct Tape {
    room: RoomView,
    description: String,
    wish: Wish,
    tasks: TaskPast,
    after: Option<Position>,
    /// Seconds since the room was made: they never fall.
    t: u64,
    /// When that was: of the lobby nobody says, and it is the time of the first thing that is played. Unix milliseconds.
    made_ms: Option<u64>,
    /// Those that have taken part, up to a bound.
    people: BTreeMap<AgentId, Participant>,
    counts: Counts,
    begun: bool,
    ended: bool,
}

#[derive(Clone, Debug)]
struct Participant {
    name: String,
    key: Option<KeyPrint>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    commits: u64,
    lines_added: u64,
    messages: u64,
    tasks_completed: u64,
}

/// An agent, as its profile says now.
#[derive(Clone, Debug, Default)]
struct Known {
    model: Option<String>,
    skills: Vec<String>,
}

/// Who asks, and where.
#[derive(Clone)]
struct Reader {
    desk: Desk,
    visitor: Visitor,
    room: RoomId,
    wish: Wish,
}

impl Reader {
    fn of(desk: &Desk, visitor: &Visitor, room: RoomId, wish: Wish) -> Reader {
        let wish = Wish { public: wish.public || visitor.is_stranger(), ..wish };
        Reader { desk: desk.clone(), visitor: visitor.clone(), room, wish }
    }

    async fn begin(&self) -> Result<Tape, Refusal> {
        let info = self.desk.ask(&self.visitor, DescribeRoom(self.room)).await?;
        let details = ReadDetails { rooms: vec![self.room], settings: false };
        let details = self.desk.ask(&self.visitor, details).await?;
        let said = details.into_iter().next().and_then(|details| details.description);
        let description = said.or_else(|| info.room.description.as_deref().map(str::to_owned));
        Ok(Tape {
            tasks: TaskPast::new(self.room),
            made_ms: Some(info.room.created_ms).filter(|made_ms| *made_ms > 0),
            room: info.room,
            description: description.unwrap_or_default(),
            wish: self.wish,
            after: None,
            t: 0,
            people: BTreeMap::new(),
            counts: Counts::default(),
            begun: false,
            ended: false,
        })
    }

    /// The next events. None: it is over.
    async fn next(&self, tape: &mut Tape) -> Result<Vec<Value>, Refusal> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut tape.begun, true) {
            events.push(tape.made());
        }
        while events.is_empty() && !tape.ended {
            let page = self.desk.past(&self.visitor, self.room, (tape.after, REPLAY_ROWS)).await?;
            match page.last() {
                Some(last) => tape.after = Some(last.at),
                None => {
                    tape.ended = true;
                    events.push(tape.stats());
                }
            }
            for past in page.into_iter().filter(|past| self.shows(past)) {
                for (agent, event) in tape.plays(past) {
                    if let Some(agent) = agent {
                        let known = self.known(&agent).await;
                        events.push(tape.joined(&agent, &known));
                    }
                    events.extend(event);
                }
            }
        }
        Ok(events)
    }

    /// A message that was taken back, or is not handed over, is not played to others than its author.
    fn shows(&self, past: &Past) -> bool {
        match &past.what {
            Happened::Said(row) => {
                let by = self.visitor.agent().map(|agent| &**agent);
                row.is_shown_to(by, || self.desk.hub().facts(self.room))
            }
            Happened::Task(..) => true,
        }
    }

    async fn known(&self, agent: &AgentId) -> Known {
        // Nothing is known of it then.
        let Ok(found) = self.desk.ask(&self.visitor, GetProfile(agent.clone())).await else {
            return Known::default();
        };
        let model = found.profile.fields.iter().find(|(field, _)| *field == Field::Model);
        Known {
            model: model.map(|(_, model)| model.clone()),
            skills: found.profile.cards.iter().map(|card| card.name.clone()).collect(),
        }
    }

    /// What is known of the room and of those who took part: it is gone through once for this.
    async fn meta(&self) -> Result<Value, Refusal> {
        let mut tape = self.begin().await?;
        while !self.next(&mut tape).await?.is_empty() {}
        let (mut humans, mut agents) = (Vec::new(), Vec::new());
        for (agent, who) in &tape.people {
            let name = tape.text(&who.name);
            if user_of(agent).is_some() {
                humans.push(json!(name));
                continue;
            }
            let known = self.known(agent).await;
            let skills: Vec<String> = known.skills.iter().map(|skill| tape.text(skill)).collect();
            agents.push(json!({
                "name": name,
                "owner": tape.owner(who.key),
                "model": known.model.map_or("unknown".to_owned(), |model| tape.text(&model)),
                "skills": skills,
            }));
        }
        Ok(json!({
            "room": tape.text(&tape.room.name),
            "description": tape.text(&tape.description),
            "duration_minutes": tape.t.div_ceil(60),
            "participants": {"humans": humans, "agents": agents},
        }))
    }
}

/// An event, and before it the agent that has not done anything before.
type Played = (Option<AgentId>, Option<Value>);

impl Tape {
    /// A text, as it is shown.
    fn text(&self, text: &str) -> String {
        self.wish.eyes().text(text)
    }

    fn words(&self, text: &str) -> String {
        self.wish.eyes().words(text, self.room.encrypted)
    }

    /// The id of an agent or person.
    fn agent(&self, agent: &str) -> String {
        self.wish.eyes().agent(agent)
    }

    /// The owner of an agent: the key that its node was shown, by its print. Nothing, if it is not known, or no matter of the reader.
    fn owner(&self, key: Option<KeyPrint>) -> String {
        let hex = |key: KeyPrint| key.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let key = key.filter(|_| self.wish.eyes() == Eyes::Members);
        key.map_or(String::new(), hex)
    }

    fn event(&self, kind: &str, data: &Value) -> Value {
        json!({"t": self.t, "type": kind, "data": data})
    }

    fn made(&self) -> Value {
        let host = self.room.created_by.as_deref().map_or("mesh", |id| user_of(id).unwrap_or(id));
        self.event(
            "room.created",
            &json!({
                "room_id": self.room.room.to_uuid(),
                "host": self.text(host),
                "visibility": if self.room.public { "public" } else { "private" },
            }),
        )
    }

    fn stats(&self) -> Value {
        let Counts { commits, lines_added, messages, tasks_completed } = self.counts;
        self.event(
            "room.stats",
            &json!({
                "commits": commits, "lines_added": lines_added, "messages": messages,
                "tasks_completed": tasks_completed,
            }),
        )
    }

    fn joined(&self, agent: &AgentId, known: &Known) -> Value {
        let who = self.people.get(agent);
        let name = who.map_or(&**agent, |who| &*who.name);
        let model = known.model.as_deref().unwrap_or("unknown");
        self.event(
            "agent.joined",
            &json!({
                "agent_id": self.agent(agent), "name": self.text(name),
                "owner": self.owner(who.and_then(|who| who.key)), "model": self.text(model),
            }),
        )
    }

    /// Somebody does something. `Some`: an agent, for the first time.
    fn sees(&mut self, agent: &AgentId, said: Option<&Said>) -> Option<AgentId> {
        if let Some(known) = self.people.get_mut(agent) {
            if let Some(said) = said {
                known.name.clone_from(&said.name);
                known.key = known.key.or(said.key);
            }
            return None;
        }
        if self.people.len() >= REPLAY_PARTICIPANTS_MAX {
            return None;
        }
        let name = user_of(agent).unwrap_or(agent).to_owned();
        let who = Participant {
            name: said.map_or(name, |said| said.name.clone()),
            key: said.and_then(|said| said.key),
        };
        self.people.insert(agent.clone(), who);
        user_of(agent).is_none().then(|| agent.clone())
    }

    fn passes(&mut self, wall_ms: u64) {
        let made_ms = *self.made_ms.get_or_insert(wall_ms);
        self.t = self.t.max(wall_ms.saturating_sub(made_ms) / 1_000);
    }

    fn plays(&mut self, past: Past) -> Vec<Played> {
        match past.what {
            Happened::Said(row) => {
                let wall_ms = row.facts.wall_ms;
                let Some(message) = Message::read(self.room.room, row) else { return Vec::new() };
                let is_left_out = message.speech == Speech::Thinking && !self.wish.thinking;
                let shown = self.wish.eyes().sees(&message).filter(|_| !is_left_out);
                let Some(shown) = shown else { return Vec::new() };
                self.passes(wall_ms);
                let said = message.said.clone();
                let new = self.sees(&said.agent, Some(&said));
                vec![(new, Some(self.said(&said, shown)))]
            }
            Happened::Task(facts, act) => {
                let steps = self.tasks.takes(past.at, facts, act);
                if !steps.is_empty() {
                    self.passes(facts.wall_ms);
                }
                steps.into_iter().flat_map(|step| self.steps(step)).collect()
            }
        }
    }
}

impl Tape {
    fn said(&mut self, said: &Said, shown: Shown) -> Value {
        match shown {
            Shown::Chat => {
                self.counts.messages += 1;
                let is_human = user_of(&said.agent).is_some();
                let kind = if is_human { "human.message" } else { "agent.message" };
                let text = self.words(&said.content);
                json!({"t": self.t, "type": kind, "from": self.text(&said.name), "text": text})
            }
            Shown::Commit(Commit { sha, branch, subject, additions, deletions, .. }) => {
                self.counts.commits += 1;
                self.counts.lines_added = self.counts.lines_added.saturating_add(additions);
                let data = json!({
                    "sha": sha, "branch": branch, "message": subject,
                    "agent_id": self.wish.eyes().agent(&said.agent),
                    "stats": {"additions": additions, "deletions": deletions},
                });
                self.event("git.commit", &data)
            }
            Shown::Opened(PullRequest { number, title, url, .. }) => {
                let data = json!({"number": number, "title": title, "url": url});
                self.event("git.pr_opened", &data)
            }
            Shown::Merged(PullRequest { number, head, base, .. }) => {
                let head = if head.is_empty() { format!("#{number}") } else { head };
                let data = json!({"from_branch": head, "to_branch": base, "number": number});
                self.event("git.merge", &data)
            }
        }
    }

    fn steps(&mut self, step: TaskStep) -> Vec<Played> {
        match step {
            TaskStep::Made(task) => {
                let new = self.sees(&task.created_by, None);
                let description = task.description.as_deref().filter(|_| !self.wish.public);
                let data = json!({
                    "task_id": id_of(&task),
                    "title": self.words(&task.title),
                    "description": self.words(description.unwrap_or_default()),
                });
                let mut all = vec![(new, Some(self.event("task.created", &data)))];
                all.extend(self.holds(&task));
                all
            }
            TaskStep::Claimed { task, by, to } => {
                let new = self.sees(&by, None);
                let data = json!({"task_id": id_of(&task), "agent_id": self.agent(&to)});
                vec![(new, Some(self.event("task.claim", &data)))]
            }
            TaskStep::Changed(task, change) => self.changed(&task, &change),
        }
    }

    /// Somebody has it now.
    fn holds(&self, task: &TaskView) -> Option<Played> {
        let holder = task.assignee.as_ref()?;
        let data = json!({"task_id": id_of(task), "agent_id": self.agent(holder)});
        Some((None, Some(self.event("task.claim_accepted", &data))))
    }

    fn changed(&mut self, task: &TaskView, change: &TaskChange) -> Vec<Played> {
        let mut all = Vec::new();
        if let Some(new) = change.by.as_ref().and_then(|by| self.sees(by, None)) {
            all.push((Some(new), None));
        }
        let is_taken = change.fields.contains(&TaskField::Assignee) && task.assignee.is_some();
        if is_taken {
            all.extend(self.holds(task));
        }
        let holder = task.assignee.as_deref().unwrap_or_default();
        // Once: a review comes before the end.
        if change.was.is_some() && task.status == TaskStatus::Completed {
            self.counts.tasks_completed += 1;
            let data = json!({"task_id": id_of(task), "agent_id": self.agent(holder)});
            all.push((None, Some(self.event("task.completed", &data))));
        } else if !is_taken || change.was.is_some() {
            let status = task.status.name();
            let step = task.progress.as_deref().map(|at| &*at.step);
            let step = step.filter(|_| change.fields.contains(&TaskField::Progress));
            let detail = step.or(change.comment.as_deref()).filter(|text| !text.is_empty());
            let detail = detail.filter(|_| !self.wish.public).unwrap_or(status);
            let data = json!({
                "agent_id": self.agent(holder), "task_id": id_of(task), "status": status,
                "detail": self.words(detail),
            });
            let is_shown = !self.wish.public || change.was.is_some();
            all.extend(is_shown.then(|| (None, Some(self.event("agent.status", &data)))));
        }
        all
    }
}

/// The id that its maker chose, or its own.
fn id_of(task: &TaskView) -> String {
    let id: MessageId = task.facts.alias.unwrap_or(task.task);
    id.to_uuid().to_string()
}

// The ways out.

/// Tapes that were begun and may be gone on with, and how many are played at once.
pub(crate) struct Tapes {
    kept: Mutex<VecDeque<Kept>>,
    turns: Arc<Turns>,
}

/// A tape, as it stood after so many events.
struct Kept {
    of: Place,
    since: Instant,
    tape: Tape,
    rest: VecDeque<Value>,
}

/// Whose it is, and how many events were given.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    key: KeyPrint,
    agent: Option<AgentId>,
    room: RoomId,
    wish: Wish,
    given: u64,
}

impl Default for Tapes {
    fn default() -> Tapes {
        Tapes { kept: Mutex::default(), turns: Turns::new() }
    }
}

impl Tapes {
    fn take(&self, of: &Place) -> Option<(Tape, VecDeque<Value>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < REPLAYS_KEPT_FOR);
        let at = kept.iter().position(|kept| kept.of == *of)?;
        kept.remove(at).map(|kept| (kept.tape, kept.rest))
    }

    fn keep(&self, of: Place, (tape, rest): (Tape, VecDeque<Value>)) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<usize> = (0..kept.len()).filter(|at| kept[*at].of.key == of.key).collect();
        if own.len() >= REPLAYS_OF_KEY_KEPT_MAX {
            kept.remove(own[0]);
        } else if kept.len() >= REPLAYS_KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept { of, since: Instant::now(), tape, rest });
    }
}

/// A part of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What is known of the room: with the first part alone.
    pub meta: Option<Value>,
    /// The oldest first.
    pub events: Vec<Value>,
    /// Where the next part begins. `None`: this is the last one.
    pub next: Option<u64>,
}

impl Desk {
    /// A part of a room's replay: events after so many.
    ///
    /// # Errors
    /// The visitor may not read the room, or the node cannot.
    pub async fn replay(
        &self,
        visitor: &Visitor,
        (room, wish): (RoomId, Wish),
        (after, limit): (u64, usize),
    ) -> Result<Page, Refusal> {
        self.may_read(visitor, room)?;
        let turns = &self.tapes().turns;
        let _turn = turns.next(visitor).await?;
        let (key, agent) = (visitor.key(), visitor.agent().cloned());
        let reader = Reader::of(self, visitor, room, wish);
        let mut of = Place { key, agent, room, wish, given: after };
        let kept = self.tapes().take(&of);
        if kept.is_none() {
            turns.begins(visitor)?;
        }
        let meta = if after == 0 { Some(reader.meta().await?) } else { None };
        let (mut tape, mut rest) = match kept {
            Some(kept) => kept,
            None => reader.wound(after).await?,
        };
        let (mut events, mut bytes) = (Vec::new(), 0);
        while events.len() < limit && bytes < REPLAY_PAGE_BYTES {
            match rest.pop_front() {
                Some(event) => {
                    bytes += event.to_string().len();
                    events.push(event);
                }
                None => rest = reader.next(&mut tape).await?.into(),
            }
            if rest.is_empty() && tape.ended {
                break;
            }
        }
        of.given = after.saturating_add(u64::try_from(events.len()).unwrap_or(u64::MAX));
        let next = (!(rest.is_empty() && tape.ended)).then_some(of.given);
        if next.is_some() {
            self.tapes().keep(of, (tape, rest));
        }
        Ok(Page { meta, events, next })
    }

    /// A room's replay as one file, written as it is read.
    ///
    /// # Errors
    /// The visitor may not read the room, or the node cannot. What goes wrong later cuts the file off.
    pub async fn replay_file(
        &self,
        visitor: &Visitor,
        (room, wish): (RoomId, Wish),
    ) -> Result<Body, Refusal> {
        self.may_read(visitor, room)?;
        let turn = self.tapes().turns.next(visitor).await?;
        self.tapes().turns.begins(visitor)?;
        let reader = Reader::of(self, visitor, room, wish);
        let head = format!("{{\"meta\":{},\"events\":[", reader.meta().await?);
        let tape = reader.begin().await?;
        let (to, chunks) = mpsc::channel(1);
        tokio::spawn(async move {
            // Whatever comes of it: who reads sees whether it was the end.
            drop(reader.write(tape, head, &to).await);
            drop(turn);
        });
        let chunks = stream::try_unfold(chunks, async |mut chunks| match chunks.recv().await {
            Some(Chunk::Part(part)) => Ok(Some((part, chunks))),
            Some(Chunk::End) => Ok(None),
            None => Err(CutOff),
        });
        Ok(Body::from_stream(chunks))
    }
}

/// What goes into a file.
enum Chunk {
    Part(Bytes),
    /// It is whole.
    End,
}

impl Reader {
    /// Writes a file, as fast as it is taken.
    async fn write(
        &self,
        mut tape: Tape,
        head: String,
        to: &mpsc::Sender<Chunk>,
    ) -> Result<(), CutOff> {
        let give = async |chunk| {
            let given = timeout(REPLAY_TAKEN_WITHIN, to.send(chunk)).await;
            given.map_err(|_| CutOff)?.map_err(|_| CutOff)
        };
        let mut text = head;
        let mut is_first = true;
        while !tape.ended {
            for event in self.next(&mut tape).await.map_err(|_| CutOff)? {
                if !std::mem::take(&mut is_first) {
                    text.push(',');
                }
                text.push_str(&event.to_string());
            }
            give(Chunk::Part(std::mem::take(&mut text).into())).await?;
        }
        give(Chunk::Part(Bytes::from_static(b"]}\n"))).await?;
        give(Chunk::End).await
    }
}

/// A file ends before its end: nobody takes it for a whole one.
#[derive(Debug, thiserror::Error)]
#[error("the room cannot be read any more")]
struct CutOff;

impl Reader {
    /// A tape after so many events: what a client that comes back late goes on from.
    async fn wound(&self, after: u64) -> Result<(Tape, VecDeque<Value>), Refusal> {
        let mut tape = self.begin().await?;
        let mut left = after;
        loop {
            let mut events: VecDeque<Value> = self.next(&mut tape).await?.into();
            let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
            if count > left || events.is_empty() {
                let gone = usize::try_from(left).unwrap_or(usize::MAX).min(events.len());
                events.drain(..gone);
                return Ok((tape, events));
            }
            left -= count;
        }
    }
}
