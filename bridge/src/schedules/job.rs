//! Jobs and runs, and how they are kept.

use mesh::{
    name::id::{AgentId, JobId, NodeId, RoomId, parse_hex},
    records::schedules::{JobText, JobView, RunText, RunView},
};
use serde_json::{Value, json};

use super::plan::Plan;
use crate::limits::RUN_TEXT_BYTES_MAX;

/// Something that is said again and again, or once, at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// It.
    pub id: JobId,
    /// Its name, which no other job of the key has.
    pub name: String,
    /// When it is due.
    pub plan: Plan,
    /// The words.
    pub message: String,
    /// The agent that is asked. `None`: the words are delivered as they are.
    pub agent: Option<AgentId>,
    /// The user whose job it is, as people call them.
    pub user: String,
    /// The agent as which that user writes.
    pub owner: AgentId,
    /// Where the answer, or the words, are said.
    pub deliver: Option<Deliver>,
    /// Whether it is fired.
    pub enabled: bool,
    /// Each run is in a session of its own.
    pub stateless: bool,
    /// It is deleted after its first run.
    pub delete_after: bool,
    /// The node at which it was made, or last edited.
    pub home: NodeId,
    /// Slots up to this time do not count. Unix milliseconds.
    pub from_ms: u64,
    /// When it was made.
    pub created_ms: u64,
    /// When it was edited.
    pub updated_ms: u64,
}

/// Where something is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deliver {
    /// As the client named it.
    pub to: String,
    /// It.
    pub target: Target,
}

/// See [`Deliver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To all members of a room.
    Room(RoomId),
    /// To an agent.
    Agent(AgentId),
    /// To the URL of a webhook of the key, which is at one node.
    Webhook {
        /// Its id.
        id: String,
        /// As people called it when the job was edited.
        name: String,
    },
}

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nobody knows yet.
    Running,
    /// The agent has answered, or the words were delivered.
    Done,
    /// It came to nothing.
    Failed,
    /// There was no answer in time.
    TimedOut,
    /// The run before was still open.
    Skipped,
    /// No node of the key was there in time.
    Missed,
}

impl Status {
    const ALL: [Status; 6] = [
        Status::Running,
        Status::Done,
        Status::Failed,
        Status::TimedOut,
        Status::Skipped,
        Status::Missed,
    ];

    /// As it is kept, and as clients see it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Done => "ok",
            Status::Failed => "error",
            Status::TimedOut => "timeout",
            Status::Skipped => "skipped",
            Status::Missed => "missed",
        }
    }

    fn named(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether somebody has said something for it.
    #[must_use]
    pub fn fired(self) -> bool {
        match self {
            Status::Running | Status::Done | Status::Failed | Status::TimedOut => true,
            Status::Skipped | Status::Missed => false,
        }
    }
}

/// A slot that was seen to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its job.
    pub job: JobId,
    /// The node that has seen to it.
    pub node: NodeId,
    /// Its place among those of that node.
    pub place: u16,
    /// The time that it was due, in Unix milliseconds; or a UUID, if somebody has asked for it.
    pub slot: String,
    /// When the node began. Unix milliseconds.
    pub at_ms: u64,
    /// What became of it.
    pub status: Status,
    /// Why it came to nothing.
    pub error: Option<String>,
    /// The beginning of the answer.
    pub summary: Option<String>,
    /// So long it took.
    pub took_ms: Option<u64>,
    /// Tokens that the agent has reported, in and out.
    pub tokens: Option<(u64, u64)>,
}

impl Run {
    /// The time of its slot. `None`: somebody has asked for it.
    #[must_use]
    pub fn slot_ms(&self) -> Option<u64> {
        self.slot.parse().ok()
    }

    pub(super) fn text(&self) -> RunText {
        let facts = json!({
            "slot": self.slot, "at": self.at_ms, "status": self.status.name(),
            "error": self.error, "summary": self.summary, "took": self.took_ms,
            "tokens": self.tokens,
        });
        let Run { job, node, place, .. } = *self;
        RunText { job, node, place, facts: facts.to_string() }
    }

    /// `None`: a later version has written it.
    pub(super) fn of(view: &RunView) -> Option<Run> {
        let RunText { job, node, place, facts } = &view.run;
        let facts: Value = serde_json::from_str(facts).ok()?;
        let text = |name: &str| facts[name].as_str().map(str::to_owned);
        Some(Run {
            job: *job,
            node: *node,
            place: *place,
            slot: text("slot")?,
            at_ms: facts["at"].as_u64()?,
            status: Status::named(facts["status"].as_str()?)?,
            error: text("error"),
            summary: text("summary"),
            took_ms: facts["took"].as_u64(),
            tokens: serde_json::from_value(facts["tokens"].clone()).ok().flatten(),
        })
    }
}

/// A text, as runs have it.
pub(super) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(RUN_TEXT_BYTES_MAX)].to_owned()
}

impl Job {
    /// The key of the session in which a slot's request is said.
    #[must_use]
    pub fn session(&self, agent: &AgentId, slot: &str) -> String {
        let agent = agent.replace('%', "%25").replace(':', "%3A");
        let fresh = if self.stateless { format!(":{slot}") } else { String::new() };
        format!("agent:{agent}:cron:{}{fresh}", self.id)
    }

    pub(super) fn text(&self) -> JobText {
        let deliver = self.deliver.as_ref().map(|deliver| match &deliver.target {
            Target::Room(room) => json!({"to": deliver.to, "room": room.to_uuid()}),
            Target::Agent(agent) => json!({"to": deliver.to, "agent": &**agent}),
            Target::Webhook { id, name } => {
                json!({"to": deliver.to, "webhook": id, "name": name})
            }
        });
        let facts = json!({
            "name": self.name, "plan": self.plan.shown(), "agent": self.agent.as_deref(),
            "user": self.user, "owner": &*self.owner, "deliver": deliver,
            "enabled": self.enabled, "stateless": self.stateless,
            "delete_after": self.delete_after, "home": self.home.to_string(),
            "from": self.from_ms, "created": self.created_ms, "updated": self.updated_ms,
        });
        JobText { facts: facts.to_string(), message: self.message.clone() }
    }

    /// `None`: a later version has written it.
    pub(super) fn of(view: &JobView) -> Option<Job> {
        let facts: Value = serde_json::from_str(&view.text.facts).ok()?;
        let text = |name: &str| facts[name].as_str();
        let is = |name: &str| facts[name].as_bool();
        let ms = |name: &str| facts[name].as_u64();
        let shown = &facts["deliver"];
        let word = |name: &str| shown[name].as_str().map(str::to_owned);
        let target = match (word("room"), word("agent"), word("webhook")) {
            (Some(room), _, _) => RoomId::from_uuid(&room).map(Target::Room),
            (None, Some(agent), _) => Some(Target::Agent(agent.as_str().into())),
            (None, None, Some(id)) => word("name").map(|name| Target::Webhook { id, name }),
            (None, None, None) => None,
        };
        let deliver = target.and_then(|target| {
            let to = shown["to"].as_str()?.to_owned();
            Some(Deliver { to, target })
        });
        Some(Job {
            id: view.job,
            name: text("name")?.to_owned(),
            plan: Plan::of(&facts["plan"], "UTC").ok()?,
            message: view.text.message.clone(),
            agent: text("agent").map(Into::into),
            user: text("user")?.to_owned(),
            owner: text("owner")?.into(),
            deliver,
            enabled: is("enabled")?,
            stateless: is("stateless")?,
            delete_after: is("delete_after")?,
            home: NodeId(parse_hex(text("home")?)?),
            from_ms: ms("from")?,
            created_ms: ms("created")?,
            updated_ms: ms("updated")?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use mesh::wire::record::{RecordId, Stamp};

    use super::*;

    pub(crate) fn job(plan: Plan) -> Job {
        Job {
            id: JobId([1; 16]),
            name: "nightly".to_owned(),
            plan,
            message: "sweep\nup".to_owned(),
            agent: Some("a:b%".into()),
            user: "Ada L.".to_owned(),
            owner: "u-0011223344556677-ada".into(),
            deliver: Some(Deliver { to: "deck".to_owned(), target: Target::Room(RoomId([2; 16])) }),
            enabled: true,
            stateless: false,
            delete_after: true,
            home: NodeId([3; 32]),
            from_ms: 1,
            created_ms: 2,
            updated_ms: 3,
        }
    }

    fn again(job: &Job) -> Option<Job> {
        let view = JobView {
            record: RecordId([0; 16]),
            job: job.id,
            text: job.text(),
            stamp: Stamp::at(1),
        };
        Job::of(&view)
    }

    #[test]
    fn a_job_and_a_run_are_read_as_they_were_written() {
        let first = job(Plan::cron("0 9 * * mon-fri", "Europe/Berlin").unwrap());
        assert_eq!(again(&first).as_ref(), Some(&first));
        let second = Job {
            agent: None,
            deliver: Some(Deliver { to: "bob".into(), target: Target::Agent("bob".into()) }),
            ..job(Plan::At(7))
        };
        assert_eq!(again(&second).as_ref(), Some(&second));
        let target = Target::Webhook { id: "h".into(), name: "pager".into() };
        let third =
            Job { deliver: Some(Deliver { to: String::new(), target }), ..job(Plan::At(7)) };
        assert_eq!(again(&third).as_ref(), Some(&third));
        let run = Run {
            job: first.id,
            node: NodeId([4; 32]),
            place: 9,
            slot: "60000".to_owned(),
            at_ms: 60_005,
            status: Status::Done,
            error: None,
            summary: Some(cut(&"ä".repeat(RUN_TEXT_BYTES_MAX))),
            took_ms: Some(5),
            tokens: Some((3, 4)),
        };
        let view = RunView { run: run.text(), stamp: Stamp::at(1) };
        assert_eq!(Run::of(&view).as_ref(), Some(&run));
        assert_eq!(run.slot_ms(), Some(60_000));
    }

    #[test]
    fn texts_of_the_largest_job_and_run_fit_their_records() {
        let wide = "\u{1}".repeat(RUN_TEXT_BYTES_MAX);
        let job = Job {
            name: "n".repeat(64),
            agent: Some("\"".repeat(128).as_str().into()),
            user: "\"".repeat(128),
            owner: "o".repeat(128).as_str().into(),
            deliver: Some(Deliver {
                to: "\"".repeat(256),
                target: Target::Agent("\"".repeat(128).as_str().into()),
            }),
            ..job(Plan::cron(&format!("{}*", "1,".repeat(120)), "UTC").unwrap_or(Plan::At(u64::MAX)))
        };
        assert!(job.text().fits(), "{}", job.text().facts.len());
        let target = Target::Webhook { id: "h".repeat(64), name: "\"".repeat(128) };
        let job = Job { deliver: Some(Deliver { to: "\"".repeat(256), target }), ..job };
        assert!(job.text().fits(), "{}", job.text().facts.len());
        let run = Run {
            job: job.id,
            node: NodeId([4; 32]),
            place: 199,
            slot: "s".repeat(36),
            at_ms: u64::MAX,
            status: Status::TimedOut,
            error: Some(wide.clone()),
            summary: Some(wide),
            took_ms: Some(u64::MAX),
            tokens: Some((u64::MAX, u64::MAX)),
        };
        assert!(run.text().fits(), "{}", run.text().facts.len());
    }

    #[test]
    fn sessions_are_the_jobs_own_or_the_slots() {
        let job = job(Plan::At(7));
        let agent = job.agent.clone().unwrap();
        let id = job.id.to_string();
        assert_eq!(job.session(&agent, "7"), format!("agent:a%3Ab%25:cron:{id}"));
        let fresh = Job { stateless: true, ..job };
        assert_eq!(fresh.session(&agent, "7"), format!("agent:a%3Ab%25:cron:{id}:7"));
    }
}
