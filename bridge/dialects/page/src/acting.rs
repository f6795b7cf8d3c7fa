//! Things that people do: each is an ordinary signed act of an agent of their key.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Path, State},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use bridge::{
    seam::{
        call::{
            AssignTask, Attach, CastVote, ChangeTask, CreateVote, Decide, DeclineElection,
            ElectLeader, Identity, Join, Leave, OpenDirect, Say, StandOutside, StopAgents,
        },
        refusal::Refusal,
    },
    session::ask::Ask,
};
use mesh::{
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        approval::Choice,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::TaskStatus,
};

use crate::{
    forms::{Fields, is_own_form},
    http::{person, room_id, see},
    limits::PERSON_STAYS,
    shared::Shared,
    signing::Person,
    views::{self, Problem},
};

impl Shared {
    /// Does something as a person, who is attached for it.
    async fn act<C: Ask>(&self, person: &Person, call: C) -> Result<C::Answer, Problem> {
        let attach = Attach {
            key: person.key.clone(),
            name: person.name.clone(),
            identity: Identity::Named(person.agent().to_string()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: PERSON_STAYS,
        };
        let acted = async {
            let hosted = self.desk.host(attach).await?;
            if hosted.came {
                self.desk.ask(&hosted.visitor, StandOutside).await?;
            }
            self.desk.ask(&hosted.visitor, call).await
        };
        acted.await.map_err(|refusal: Refusal| Problem::of(&refusal))
    }

    /// A person who has acted, and looks at a page, stays in rooms.
    pub(crate) fn stays(&self, person: &Person) {
        drop(self.desk.attached(&person.agent(), person.holder.key()));
    }
}

/// The fields of a form of the person's own.
fn own(person: &Person, body: &[u8]) -> Result<Fields, Problem> {
    let fields = Fields::read(body).ok_or(Problem::Form)?;
    if is_own_form(person, &fields) { Ok(fields) } else { Err(Problem::Form) }
}

/// A person does something in a room.
pub(crate) async fn in_room(
    State(shared): State<Arc<Shared>>,
    Path((room, act)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let person = match person(&shared, &headers).await {
        Ok(person) => person,
        Err(response) => return response,
    };
    let done = async {
        let room = room_id(&room)?;
        let fields = own(&person, &body)?;
        let acting = Acting { shared: &shared, person: &person, room, fields: &fields };
        acting.act(&act).await
    };
    match done.await {
        Ok(place) => see(&format!("/ui/rooms/{room}#{place}")),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

/// A person wants to write to an agent: into their direct room.
pub(crate) async fn to_agent(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let person = match person(&shared, &headers).await {
        Ok(person) => person,
        Err(response) => return response,
    };
    let opened = async {
        let fields = own(&person, &body)?;
        let agent = needed(&fields, "agent", "Say which agent.")?;
        shared.act(&person, OpenDirect::with(&*agent)).await
    };
    match opened.await {
        Ok(room) => see(&format!("/ui/rooms/{}#end", room.room.to_uuid())),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

/// A person stops an agent, or all of them, or lets them go.
pub(crate) async fn stop(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let person = match person(&shared, &headers).await {
        Ok(person) => person,
        Err(response) => return response,
    };
    let stopped = async {
        let fields = own(&person, &body)?;
        if !person.holder.standing().may_write() {
            return Err(Problem::of(&Refusal::ReadsOnly));
        }
        let agent = match fields.get("who").unwrap_or_default() {
            "one" => Some(AgentId::from(&*needed(&fields, "agent", "Say which agent.")?)),
            "all" => None,
            _ => return Err(Problem::Form),
        };
        let by = match fields.get("do").unwrap_or_default() {
            "stop" => Some(person.name.clone()),
            "go" => None,
            _ => return Err(Problem::Form),
        };
        Ok(shared.desk.ask(&person.holder, StopAgents { agent, by }).await?)
    };
    match stopped.await {
        Ok(()) => see("/ui/agents"),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

/// A text that has to be there. `why`: what to do about it.
fn needed(fields: &Fields, name: &str, why: &str) -> Result<String, Problem> {
    fields.text(name).ok_or_else(|| Problem::Refused(why.to_owned()))
}

/// The entry that a form is about: of this person's pages, so it is there unless somebody has changed the page.
fn about(fields: &Fields, name: &str) -> Result<MessageId, Problem> {
    fields.get(name).and_then(MessageId::from_uuid).ok_or(Problem::Form)
}

/// Something that is being done in a room.
struct Acting<'a> {
    shared: &'a Shared,
    person: &'a Person,
    room: RoomId,
    fields: &'a Fields,
}

impl Acting<'_> {
    /// Does it. Returns the place of the page at which it is seen.
    async fn act(&self, act: &str) -> Result<&'static str, Problem> {
        match act {
            "say" => self.say().await,
            "join" => self.does(Join(self.room)).await.map(|()| "members"),
            "leave" => self.does(Leave(self.room)).await.map(|()| "members"),
            "elect" => self.does(ElectLeader(self.room)).await.map(|_| "election"),
            "decline" => self.does(DeclineElection(self.room)).await.map(|()| "members"),
            "open-vote" => self.open_vote().await,
            "cast" => self.cast().await,
            "make-task" => self.make_task().await,
            "change-task" => self.change_task().await,
            "decide" => self.decide().await,
            _ => Err(Problem::NotFound),
        }
    }

    async fn does<C: Ask>(&self, call: C) -> Result<C::Answer, Problem> {
        self.shared.act(self.person, call).await
    }

    async fn say(&self) -> Result<&'static str, Problem> {
        let text = self.fields.get("text").unwrap_or_default().replace("\r\n", "\n");
        if text.trim().is_empty() {
            return Err(Problem::Refused("There is nothing to say: the text is empty.".to_owned()));
        }
        let answers = self.fields.get("answers").filter(|id| !id.is_empty()).map(str::to_owned);
        self.does(Say { reply_to: answers, ..Say::chat(self.room, text) }).await?;
        Ok("end")
    }

    /// Opens a vote. The members of this moment have a vote, so the one that opens it becomes one.
    async fn open_vote(&self) -> Result<&'static str, Problem> {
        let title = needed(self.fields, "title", "A vote needs a question.")?;
        let options = self.fields.text("options").unwrap_or_default();
        let options = options.lines().map(str::trim).filter(|line| !line.is_empty());
        let duration_secs = self.fields.text("minutes").map(|typed| seconds(&typed)).transpose()?;
        let vote = NewVote {
            room: self.room,
            title,
            description: self.fields.text("description"),
            options: options.map(str::to_owned).collect(),
            duration_secs,
        };
        self.does(Join(self.room)).await?;
        self.does(CreateVote(vote)).await?;
        Ok("votes")
    }

    async fn cast(&self) -> Result<&'static str, Problem> {
        let vote = about(self.fields, "vote")?;
        let option = self.fields.get("option").and_then(|nth| nth.parse().ok());
        self.does(CastVote { vote, option: option.ok_or(Problem::Form)? }).await?;
        Ok("votes")
    }

    async fn make_task(&self) -> Result<&'static str, Problem> {
        let title = needed(self.fields, "title", "A task needs a title.")?;
        let assignee = self.fields.text("assignee").map(|agent| AgentId::from(&*agent));
        let description = self.fields.text("description");
        let task = NewTask { assignee, description, ..NewTask::of(self.room, title) };
        self.does(AssignTask(task)).await?;
        Ok("tasks")
    }

    async fn change_task(&self) -> Result<&'static str, Problem> {
        let task = about(self.fields, "task")?;
        let me = self.person.agent();
        let mut update = TaskUpdate { note: self.fields.text("note"), ..TaskUpdate::of(task) };
        match self.fields.get("do").unwrap_or_default() {
            "claim" => {
                update.assignee = Some(Some(me));
                update.if_assignee = Some(None);
                update.status = Some(TaskStatus::InProgress);
            }
            "assign" => {
                let agent = self.fields.text("assignee");
                update.assignee = Some(agent.map(|agent| AgentId::from(&*agent)));
            }
            "complete" => update.status = Some(TaskStatus::Completed),
            "cancel" => update.status = Some(TaskStatus::Cancelled),
            "reopen" => update.status = Some(TaskStatus::Pending),
            "note" if update.note.is_some() => {}
            "note" => return Err(Problem::Refused("There is nothing to note.".to_owned())),
            _ => return Err(Problem::Form),
        }
        self.does(ChangeTask(update)).await?;
        Ok("tasks")
    }

    async fn decide(&self) -> Result<&'static str, Problem> {
        let approval = about(self.fields, "approval")?;
        let choice = match self.fields.get("choice").unwrap_or_default() {
            "approve" => Choice::Approve,
            "always" => Choice::Always,
            "deny" => Choice::Deny,
            "change" => Choice::Change,
            "withdraw" => Choice::Withdraw,
            _ => return Err(Problem::Form),
        };
        let reason = self.fields.text("reason");
        let decided = self.does(Decide { room: self.room, approval, choice, reason }).await?;
        if decided.granted {
            return Ok("approvals");
        }
        let verdict = decided.approval.decided.as_ref().map_or("nothing", |it| it.verdict.word());
        Err(Problem::Refused(format!("It was decided before: {verdict}.")))
    }
}

/// The time until a vote closes in seconds, as somebody has typed it in minutes. Which are good is the mesh's to say.
fn seconds(typed: &str) -> Result<u64, Problem> {
    let minutes: Option<u64> = typed.parse().ok();
    let why = || Problem::Refused("Minutes are a whole number.".to_owned());
    minutes.and_then(|minutes| minutes.checked_mul(60)).ok_or_else(why)
}
