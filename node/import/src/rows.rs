//! The rows of a file, as plain values.

use std::fmt;

use rusqlite::{Connection, Row};

use crate::{
    cell::{Cells, Wrong},
    layout::{BALLOTS, KEYS, MESSAGES, ROOMS, SEQUENCES, TASKS, Table, VOTES},
    open::{ReadError, ServerFile},
};

/// A row that cannot be read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its table.
    pub table: &'static str,
    /// Its id, as far as it has one.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.table, self.id, self.why)
    }
}

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows of `rooms`.
    pub rooms: u64,
    /// Rows of `messages`.
    pub messages: u64,
    /// Rows of `room_tasks`.
    pub tasks: u64,
    /// Rows of `votes`.
    pub votes: u64,
}

/// A room. Ids are as they are in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The room it is under.
    pub parent: Option<String>,
    /// Its contents are memory of the server.
    pub ephemeral: bool,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// The agent that made it.
    pub created_by: Option<String>,
    /// Seen by every key.
    pub public: bool,
    /// Whose it is: a key, its hash or its id.
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
    /// Who said it.
    pub agent: String,
    /// Their name; their id if the file has none.
    pub name: String,
    /// The text.
    pub content: String,
    /// The id of the message it answers.
    pub reply_to: Option<String>,
    /// The number of that, if the same room has it.
    pub reply_to_seq: Option<u64>,
    /// Agents that were told.
    pub mentions: Vec<String>,
    /// JSON text.
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
    /// The number that it gives next.
    pub next: u64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// What is to be done.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// `pending`, `in_progress`, `completed` or `blocked`.
    pub status: String,
    /// Who is to do it.
    pub assignee: Option<String>,
    /// Who said so.
    pub created_by: String,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// When it was last updated.
    pub updated_ms: Option<u64>,
    /// What was last noted.
    pub note: Option<String>,
}

/// A vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Its id.
    pub id: String,
    /// Where.
    pub room: String,
    /// What is voted on.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// What can be chosen.
    pub options: Vec<String>,
    /// Who opened it.
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
    /// Its text, if the file has that.
    pub text: Option<String>,
    /// Its hash, if the file has that.
    pub hash: Option<String>,
    /// What rooms may name it by.
    pub id: Option<String>,
    /// What its operator calls it.
    pub label: Option<String>,
    /// `free` or `pro`.
    pub tier: Option<String>,
    /// It is valid no longer.
    pub revoked: bool,
}

impl fmt::Debug for Key {
    /// Its text is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text: _, hash: _, id, label, tier, revoked } = self;
        let mut it = f.debug_struct("Key");
        it.field("id", id).field("label", label).field("tier", tier).field("revoked", revoked);
        it.finish_non_exhaustive()
    }
}

/// Rows, each as what it should be or not.
type Rows<T> = Result<Vec<Result<T, BadRow>>, ReadError>;

impl ServerFile {
    /// How many rows there are.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn counts(&self) -> Result<Counts, ReadError> {
        let count = |table: &Table| {
            let select = format!("SELECT count(*) FROM {}", table.name);
            self.read.query_row(&select, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        Ok(Counts {
            rooms: count(&ROOMS)?,
            messages: count(&MESSAGES)?,
            tasks: count(&TASKS)?,
            votes: count(&VOTES)?,
        })
    }

    /// All rooms, by id.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn rooms(&self) -> Rows<Room> {
        let columns = self.rooms.list("t");
        all(&self.read, &format!("SELECT {columns} FROM rooms t ORDER BY 1"), &ROOMS, room)
    }

    /// How far the numbers of rooms are, by room.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn sequences(&self) -> Rows<Sequence> {
        let columns = self.sequences.list("t");
        let select = format!("SELECT {columns} FROM room_sequences t ORDER BY 1");
        all(&self.read, &select, &SEQUENCES, sequence)
    }

    /// All tasks, the oldest first.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn tasks(&self) -> Rows<Task> {
        let columns = self.tasks.list("t");
        let select = format!("SELECT {columns} FROM room_tasks t ORDER BY 8, 1");
        all(&self.read, &select, &TASKS, task)
    }

    /// All keys.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn keys(&self) -> Rows<Key> {
        let columns = self.keys.list("t");
        all(&self.read, &format!("SELECT {columns} FROM api_keys t ORDER BY rowid"), &KEYS, key)
    }

    /// All votes with what was voted, the oldest first.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn votes(&self) -> Rows<Vote> {
        let columns = self.votes.list("t");
        let select = format!("SELECT {columns} FROM votes t ORDER BY 7, 1");
        let mut votes = all(&self.read, &select, &VOTES, vote)?;
        let name = |at| self.ballots.name(at).expect("it is needed");
        let (of, choice) = (name(0), name(2));
        let select = format!(
            "SELECT b.{of}, b.{choice}, count(*) FROM vote_ballots b WHERE b.{of} = ?1 GROUP BY 1, 2"
        );
        let mut select = self.read.prepare(&select)?;
        for found in &mut votes {
            let Ok(vote) = found else { continue };
            let mut rows = select.query([&vote.id])?;
            while let Some(row) = rows.next()? {
                let cells = Cells { row, names: BALLOTS_COUNTED };
                let counted = add_ballots(vote, &cells);
                if let Err(why) = counted {
                    let (table, id) = (BALLOTS.name, format!("of vote {:?}", vote.id));
                    *found = Err(BadRow { table, id, why });
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
    /// See [`ReadError`], or what `each` says.
    pub fn messages<E: From<ReadError>>(
        &self,
        mut each: impl FnMut(Result<Message, BadRow>) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = |at| self.messages.name(at).expect("it is needed");
        let (id, room, seq) = (name(0), name(1), name(9));
        let columns = self.messages.list("t");
        // Found by the index of ids, or by one that SQLite makes for itself.
        let (answered, join) = match self.messages.name(5) {
            Some(reply) => (
                format!("r.{seq}"),
                format!("LEFT JOIN messages r ON r.{id} = t.{reply} AND r.{room} = t.{room}"),
            ),
            None => ("NULL".to_owned(), String::new()),
        };
        let select = format!(
            "SELECT {columns}, {answered} FROM messages t {join} ORDER BY t.{room}, t.{seq}, t.{id}"
        );
        let mut select = self.read.prepare(&select).map_err(ReadError)?;
        let mut rows = select.query([]).map_err(ReadError)?;
        while let Some(row) = rows.next().map_err(ReadError)? {
            each(read(row, &MESSAGES, message))?;
        }
        Ok(())
    }
}

/// What [`ServerFile::votes`] selects of ballots.
const BALLOTS_COUNTED: &[crate::layout::Column] = &[
    crate::layout::Column { names: &["vote_id"], needed: true },
    crate::layout::Column { names: &["option_index"], needed: true },
    crate::layout::Column { names: &["count"], needed: true },
];

fn all<T>(
    from: &Connection,
    select: &str,
    table: &'static Table,
    of: fn(&Cells<'_>) -> Result<T, Wrong>,
) -> Rows<T> {
    let mut select = from.prepare(select)?;
    let mut rows = select.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        out.push(read(row, table, of));
    }
    Ok(out)
}

fn read<T>(
    row: &Row<'_>,
    table: &'static Table,
    of: fn(&Cells<'_>) -> Result<T, Wrong>,
) -> Result<T, BadRow> {
    let cells = Cells { row, names: table.columns };
    of(&cells).map_err(|why| {
        // The first column of a key is the key itself.
        let shown = if table.name == KEYS.name { 2 } else { 0 };
        let id = cells.maybe_text(shown).ok().flatten();
        let id = id.map_or("without a readable id".to_owned(), |id| format!("{id:?}"));
        BadRow { table: table.name, id, why }
    })
}

fn room(it: &Cells<'_>) -> Result<Room, Wrong> {
    let public = match it.maybe_text(7)?.as_deref() {
        Some("public") => true,
        Some("private") => false,
        _ => it.yes(7)?.unwrap_or(true),
    };
    Ok(Room {
        id: it.text(0)?,
        name: it.text(1)?,
        description: it.filled(2)?,
        parent: it.filled(3)?,
        ephemeral: it.yes(4)?.unwrap_or(false),
        created_ms: it.time(5)?,
        created_by: it.filled(6)?,
        public,
        owner: it.filled(8)?,
        encrypted: it.yes(9)?.unwrap_or(false),
    })
}

fn message(it: &Cells<'_>) -> Result<Message, Wrong> {
    let agent = it.text(2)?;
    let (kind, metadata) = kind(it)?;
    Ok(Message {
        id: it.text(0)?,
        room: it.text(1)?,
        name: it.filled(3)?.unwrap_or_else(|| agent.clone()),
        agent,
        content: it.text(4)?,
        reply_to: it.filled(5)?,
        mentions: it.texts(6)?,
        metadata,
        wall_ms: it.time(8)?,
        seq: it.whole(9)?,
        kind,
        reply_to_seq: it
            .row
            .get::<_, Option<i64>>(MESSAGES.columns.len())
            .ok()
            .flatten()
            .and_then(|seq| u64::try_from(seq).ok()),
    })
}

/// Thoughts and decisions are told by their metadata (spec §3), or by a column of their own.
fn kind(it: &Cells<'_>) -> Result<(Kind, Option<String>), Wrong> {
    let Some(json) = it.filled(7)?.filter(|it| it != "null") else {
        return Ok((named(it.filled(10)?.as_deref()), None));
    };
    let mut value: serde_json::Value =
        serde_json::from_str(&json).map_err(|_| it.wrong(7, "not JSON"))?;
    let said = value.get("type").and_then(serde_json::Value::as_str);
    let kind = match (named(it.filled(10)?.as_deref()), named(said)) {
        (Kind::Chat, kind) | (kind, _) => kind,
    };
    match kind {
        Kind::Chat | Kind::Decision => Ok((kind, Some(json))),
        Kind::Thinking => {
            let object = value.as_object_mut();
            let rest = object.as_ref().map_or(1, |it| it.keys().filter(|it| *it != "type").count());
            if rest == 0 {
                return Ok((Kind::Thinking, None));
            }
            // A thought has no metadata of its own: with some it is shown as it was, and no more.
            if let Some(object) = object {
                object.insert("type".to_owned(), "thinking".into());
            }
            Ok((Kind::Chat, Some(value.to_string())))
        }
    }
}

fn named(kind: Option<&str>) -> Kind {
    match kind {
        Some("thinking") => Kind::Thinking,
        Some("decision") => Kind::Decision,
        Some(_) | None => Kind::Chat,
    }
}

fn sequence(it: &Cells<'_>) -> Result<Sequence, Wrong> {
    let room = it.text(0)?;
    let last = it.maybe_whole(1)?.map(|last| last.saturating_add(1));
    let next = it.maybe_whole(2)?.or(last);
    let next = next.ok_or_else(|| it.wrong(1, "missing, and so is `next_seq`"))?;
    Ok(Sequence { room, next: next.max(1) })
}

fn task(it: &Cells<'_>) -> Result<Task, Wrong> {
    Ok(Task {
        id: it.text(0)?,
        room: it.text(1)?,
        title: it.text(2)?,
        description: it.filled(3)?,
        status: it.text(4)?,
        assignee: it.filled(5)?,
        created_by: it.text(6)?,
        created_ms: it.time(7)?,
        updated_ms: it.maybe_time(8)?,
        note: it.filled(9)?,
    })
}

fn vote(it: &Cells<'_>) -> Result<Vote, Wrong> {
    let options = it.texts(4)?;
    let closed = match it.maybe_text(8)?.as_deref() {
        Some("open") => false,
        Some("closed") => true,
        _ => it.yes(8)?.unwrap_or(false) || it.is_set(9)?,
    };
    Ok(Vote {
        id: it.text(0)?,
        room: it.text(1)?,
        title: it.text(2)?,
        description: it.filled(3)?,
        tally: vec![0; options.len()],
        options,
        created_by: it.text(5)?,
        created_ms: it.time(6)?,
        closes_ms: it.maybe_time(7)?,
        closed,
        eligible: it.how_many(10)?.unwrap_or(0),
    })
}

fn add_ballots(vote: &mut Vote, it: &Cells<'_>) -> Result<(), Wrong> {
    let option = it.whole(1)?;
    let place = usize::try_from(option).ok().and_then(|at| vote.tally.get_mut(at));
    let place = place.ok_or_else(|| it.wrong(1, &format!("there is no option {option}")))?;
    *place += it.whole(2)?;
    Ok(())
}

fn key(it: &Cells<'_>) -> Result<Key, Wrong> {
    Ok(Key {
        text: it.filled(0)?,
        hash: it.filled(1)?,
        id: it.filled(2)?,
        label: it.filled(3)?,
        tier: it.filled(4)?,
        revoked: it.is_set(5)? || it.yes(6)? == Some(false),
    })
}
