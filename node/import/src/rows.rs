//! The rows of a file, as plain values. Ids and keys are texts, as they are in the file.

use std::fmt;

use rusqlite::Row;

use crate::{
    cell::{Cells, Wrong, wrong},
    layout::{
        BALLOTS, CREATED, IDENTITIES, KEYS, MESSAGES, ROOMS, SEQUENCES, SUBSCRIPTIONS, TASKS,
        Table, VOTES,
    },
    open::{ReadError, ServerFile},
};

/// A row that does not fit its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its table.
    pub table: &'static str,
    /// Its id (of a key its label), as far as it can be read.
    pub id: Option<String>,
    /// The reason.
    pub why: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{} {id:?}: {}", self.table, self.why),
            None => write!(f, "{} without a readable id: {}", self.table, self.why),
        }
    }
}

/// The id of the room that every server has.
pub const LOBBY: &str = "lobby";

/// A room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The room it is under.
    pub parent: Option<String>,
    /// Unix milliseconds. `None`: it cannot be read, and the room is the [`LOBBY`], which is there
    /// without it.
    pub created_ms: Option<u64>,
    /// The agent that made it.
    pub created_by: Option<String>,
    /// Seen by every key.
    pub public: bool,
    /// The key whose it is.
    pub owner: Option<String>,
    /// Only end-to-end encrypted content is taken.
    pub encrypted: bool,
}

/// How a message was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A chat message.
    Chat,
    /// A thought.
    Thinking,
    /// A leader's decision.
    Decision,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// The agent that said it.
    pub agent: String,
    /// Their name.
    pub name: String,
    /// The text.
    pub content: String,
    /// The id of the message it answers.
    pub reply_to: Option<String>,
    /// JSON text; `None`: nothing is said.
    pub metadata: Option<String>,
    /// Unix milliseconds.
    pub wall_ms: u64,
    /// Its number.
    pub seq: u64,
    /// How it was meant.
    pub kind: Kind,
}

/// How far a room's numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The room.
    pub room: String,
    /// The highest number that it ever gave.
    pub high_water: u64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// The work.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// `pending`, `in_progress`, `completed` or `blocked`.
    pub status: String,
    /// The agent that is to do it.
    pub assignee: Option<String>,
    /// The agent that assigned it.
    pub created_by: String,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// When it was last updated.
    pub updated_ms: Option<u64>,
    /// The last note.
    pub note: Option<String>,
}

/// A vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// The question.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// The options to choose from.
    pub options: Vec<String>,
    /// The agent that opened it.
    pub created_by: String,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// When it closes.
    pub closes_ms: Option<u64>,
    /// It has ended.
    pub closed: bool,
    /// How many may vote; at least how many have.
    pub eligible: u64,
    /// Votes by option.
    pub tally: Vec<u64>,
}

/// An API key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The key itself. Secret.
    pub text: String,
    /// Its operator's name for it.
    pub label: Option<String>,
    /// `free` or `pro`.
    pub tier: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text: _, label, tier } = self;
        f.debug_struct("Key").field("label", label).field("tier", tier).finish_non_exhaustive()
    }
}

/// A stable agent id.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The id.
    pub agent: String,
    /// The key whose it is. Secret.
    pub owner: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// How a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It delivers.
    Active,
    /// Its receiver failed too often.
    Failed,
    /// It was switched off.
    Disabled,
}

/// A webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// The key whose it is. Secret.
    pub owner: String,
    /// Where messages are posted. Often a secret, too.
    pub url: String,
    /// The secret that signs deliveries.
    pub secret: String,
    /// Only messages of these kinds.
    pub kinds: Option<Vec<String>>,
    /// Only those of agents of this name.
    pub only_from: Option<String>,
    /// None of agents of this name.
    pub not_from: Option<String>,
    /// No thoughts.
    pub exclude_thinking: bool,
    /// From which number on it was asked for.
    pub since: u64,
    /// All up to here was delivered.
    pub delivered: u64,
    /// How it is.
    pub status: Status,
    /// Failures in a row.
    pub failures: u64,
    /// Unix milliseconds.
    pub created_ms: u64,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Rows: each one read, or the reason why it cannot be.
type Rows<T> = Result<Vec<Result<T, BadRow>>, ReadError>;

impl ServerFile {
    /// How many messages there are.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn message_count(&self) -> Result<u64, ReadError> {
        let count = "SELECT count(*) FROM messages";
        Ok(self.read.query_row(count, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)?)
    }

    /// All rooms, by id.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn rooms(&self) -> Rows<Room> {
        self.all(&ROOMS, "room_id", room)
    }

    /// How far the numbers of rooms are, by room.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn sequences(&self) -> Rows<Sequence> {
        self.all(&SEQUENCES, "room_id", |row| {
            Ok(Sequence { room: row.text("room_id")?, high_water: row.whole("high_water")? })
        })
    }

    /// All tasks, the oldest first.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn tasks(&self) -> Rows<Task> {
        self.all(&TASKS, &format!("{CREATED}, task_id"), task)
    }

    /// All keys but the server's own, in the order in which they were made.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn keys(&self) -> Rows<Key> {
        self.all(&KEYS, &self.made(&KEYS), |row| {
            let (text, tier) = (row.text("api_key")?, row.text("tier")?);
            Ok(Key { text, tier, label: row.filled("label")? })
        })
    }

    /// All stable agent ids.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn identities(&self) -> Rows<Identity> {
        self.all(&IDENTITIES, "agent_id", |row| {
            Ok(Identity { agent: row.text("agent_id")?, owner: row.text("owner_key")? })
        })
    }

    /// All webhooks, the oldest first.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn subscriptions(&self) -> Rows<Subscription> {
        self.all(&SUBSCRIPTIONS, &format!("{CREATED}, subscription_id"), subscription)
    }

    /// All votes with their ballots, the oldest first.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn votes(&self) -> Rows<Vote> {
        let mut votes = self.all(&VOTES, &format!("{CREATED}, vote_id"), vote)?;
        let Some(columns) = self.columns(&BALLOTS) else { return Ok(votes) };
        let select = format!("SELECT {columns} FROM vote_ballots t WHERE vote_id = ?1");
        let mut select = self.read.prepare(&select)?;
        for found in &mut votes {
            let Ok(vote) = found else { continue };
            let mut rows = select.query([&vote.id])?;
            while let Some(row) = rows.next()? {
                if let Err(why) = add_ballot(vote, &Cells { row, table: &BALLOTS }) {
                    let (table, id) = (VOTES.name, Some(vote.id.clone()));
                    *found = Err(BadRow { table, id, why: format!("a ballot of it: {why}") });
                    break;
                }
            }
            if let Ok(vote) = found {
                vote.eligible = vote.eligible.max(vote.tally.iter().sum());
            }
        }
        Ok(votes)
    }

    /// Each message, by room and number, until `each` fails.
    ///
    /// # Errors
    /// See [`ReadError`], or the error of `each`.
    pub fn messages<E: From<ReadError>>(
        &self,
        mut each: impl FnMut(Result<Message, BadRow>) -> Result<(), E>,
    ) -> Result<(), E> {
        let columns = self.columns(&MESSAGES).unwrap_or_else(|| unreachable!("it is needed"));
        let seq = MESSAGES.columns.len();
        // By its place: in an older file the number is no column.
        let select =
            format!("SELECT {columns} FROM messages t ORDER BY t.room_id, {seq}, t.message_id");
        let mut select = self.read.prepare(&select).map_err(ReadError)?;
        let mut rows = select.query([]).map_err(ReadError)?;
        while let Some(row) = rows.next().map_err(ReadError)? {
            each(read(row, &MESSAGES, message))?;
        }
        Ok(())
    }

    fn all<T>(
        &self,
        table: &'static Table,
        order: &str,
        of: fn(&Cells<'_>) -> Result<T, Wrong>,
    ) -> Rows<T> {
        let Some(columns) = self.columns(table) else { return Ok(Vec::new()) };
        let select = format!("SELECT {columns} FROM {} t ORDER BY {order}", table.name);
        let mut select = self.read.prepare(&select)?;
        let mut rows = select.query([])?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            out.push(read(row, table, of));
        }
        Ok(out)
    }
}

fn read<T>(
    row: &Row<'_>,
    table: &'static Table,
    of: fn(&Cells<'_>) -> Result<T, Wrong>,
) -> Result<T, BadRow> {
    let cells = Cells { row, table };
    of(&cells).map_err(|why| {
        // The id of a key is the key itself.
        let shown = if table.name == KEYS.name { "label" } else { table.columns[0].name };
        BadRow { table: table.name, id: cells.maybe_text(shown).ok().flatten(), why }
    })
}

fn room(row: &Cells<'_>) -> Result<Room, Wrong> {
    let id = row.text("room_id")?;
    let created_ms = match row.time("created_at") {
        Ok(ms) => Some(ms),
        Err(_) if id == LOBBY => None,
        Err(wrong) => return Err(wrong),
    };
    let public = match &*row.text("visibility")? {
        "public" => true,
        "private" => false,
        other => {
            let why = format!("{other:?} is neither \"public\" nor \"private\"");
            return Err(wrong("visibility", &why));
        }
    };
    Ok(Room {
        id,
        name: row.text("name")?,
        description: row.filled("description")?,
        parent: row.filled("parent_id")?,
        created_ms,
        created_by: row.filled("created_by")?,
        public,
        owner: row.filled("owner_key")?,
        encrypted: row.yes("encrypted")?,
    })
}

fn message(row: &Cells<'_>) -> Result<Message, Wrong> {
    let (kind, metadata) = kind(row)?;
    Ok(Message {
        id: row.text("message_id")?,
        room: row.text("room_id")?,
        name: row.text("agent_name")?,
        agent: row.text("agent_id")?,
        content: row.text("content")?,
        reply_to: row.filled("reply_to_message")?,
        metadata,
        wall_ms: row.time("created_at")?,
        seq: row.whole("seq")?,
        kind,
    })
}

/// Thoughts and decisions are told by their metadata (spec §3). The column has `{}` when a message
/// has none.
fn kind(row: &Cells<'_>) -> Result<(Kind, Option<String>), Wrong> {
    let json = row.filled("metadata")?.filter(|json| !["null", "{}"].contains(&json.as_str()));
    let Some(json) = json else { return Ok((Kind::Chat, None)) };
    let value: serde_json::Value =
        serde_json::from_str(&json).map_err(|_| wrong("metadata", "not JSON"))?;
    Ok(match value.get("type").and_then(serde_json::Value::as_str) {
        Some("decision") => (Kind::Decision, Some(json)),
        Some("thinking") if value.as_object().is_some_and(|object| object.len() == 1) => {
            (Kind::Thinking, None)
        }
        // A thought has no metadata of its own: with some it is shown as it was, and no more.
        Some(_) | None => (Kind::Chat, Some(json)),
    })
}

fn task(row: &Cells<'_>) -> Result<Task, Wrong> {
    Ok(Task {
        id: row.text("task_id")?,
        room: row.text("room_id")?,
        title: row.text("title")?,
        description: row.filled("description")?,
        status: row.text("status")?,
        assignee: row.filled("assignee")?,
        created_by: row.text("created_by")?,
        created_ms: row.time("created_at")?,
        updated_ms: row.maybe_time("updated_at")?,
        note: row.filled("note")?,
    })
}

fn vote(row: &Cells<'_>) -> Result<Vote, Wrong> {
    let options = row.texts("options")?.unwrap_or_default();
    let closed = match &*row.text("status")? {
        "open" => false,
        "closed" => true,
        other => {
            return Err(wrong("status", &format!("{other:?} is neither \"open\" nor \"closed\"")));
        }
    };
    Ok(Vote {
        id: row.text("vote_id")?,
        room: row.text("room_id")?,
        title: row.text("title")?,
        description: row.filled("description")?,
        tally: vec![0; options.len()],
        options,
        created_by: row.text("created_by")?,
        created_ms: row.time("created_at")?,
        closes_ms: row.maybe_time("closes_at")?,
        closed,
        eligible: row.whole("eligible_voters")?,
    })
}

fn add_ballot(vote: &mut Vote, row: &Cells<'_>) -> Result<(), Wrong> {
    let option = row.whole("option_index")?;
    let place = usize::try_from(option).ok().and_then(|at| vote.tally.get_mut(at));
    *place.ok_or_else(|| wrong("option_index", &format!("there is no option {option}")))? += 1;
    Ok(())
}

fn subscription(row: &Cells<'_>) -> Result<Subscription, Wrong> {
    let status = match &*row.text("status")? {
        "active" => Status::Active,
        "failed" => Status::Failed,
        "disabled" => Status::Disabled,
        other => return Err(wrong("status", &format!("{other:?} is none of a webhook"))),
    };
    Ok(Subscription {
        id: row.text("subscription_id")?,
        room: row.text("room_id")?,
        owner: row.text("owner_key")?,
        url: row.text("webhook_url")?,
        secret: row.text("secret")?,
        kinds: row.texts("kinds")?,
        only_from: row.filled("only_from")?,
        not_from: row.filled("not_from")?,
        exclude_thinking: row.yes("exclude_thinking")?,
        since: row.whole("since_seq")?,
        delivered: row.whole("last_delivered_seq")?,
        status,
        failures: row.whole("failure_count")?,
        created_ms: row.time("created_at")?,
    })
}
