//! Which column is meant. The columns of the 0.3 layout are not written down anywhere that we may read, so
//! each is taken under any of its obvious names (`docs/decisions/import.md` has the same table).

/// A column that is read, by the names that it may have, the likeliest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) names: &'static [&'static str],
    pub(crate) needed: bool,
}

const fn needed(names: &'static [&'static str]) -> Column {
    Column { names, needed: true }
}

const fn optional(names: &'static [&'static str]) -> Column {
    Column { names, needed: false }
}

/// A table that is read: its name, and its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

pub(crate) const ROOMS: Table = Table {
    name: "rooms",
    columns: &[
        needed(&["room_id", "id"]),
        needed(&["name"]),
        optional(&["description"]),
        optional(&["parent_id", "parent_room_id", "parent"]),
        optional(&["ephemeral", "is_ephemeral"]),
        needed(&["created_at", "created"]),
        optional(&["created_by", "creator", "creator_id"]),
        optional(&["public", "is_public", "visibility"]),
        optional(&["owner_key", "owner", "owner_key_hash", "owner_key_id", "api_key"]),
        optional(&["encrypted", "is_encrypted", "e2e"]),
    ],
};

pub(crate) const MESSAGES: Table = Table {
    name: "messages",
    columns: &[
        needed(&["message_id", "id"]),
        needed(&["room_id", "room"]),
        needed(&["agent_id", "sender_id", "author_id"]),
        optional(&["agent_name", "sender_name", "author_name"]),
        needed(&["content", "body", "text"]),
        optional(&["reply_to", "reply_to_message", "reply_to_message_id", "reply_to_id"]),
        optional(&["mentions"]),
        optional(&["metadata"]),
        needed(&["timestamp", "created_at", "sent_at"]),
        needed(&["seq"]),
        optional(&["kind", "message_type", "type"]),
    ],
};

pub(crate) const SEQUENCES: Table = Table {
    name: "room_sequences",
    columns: &[
        needed(&["room_id", "room"]),
        optional(&["last_seq", "seq", "current_seq", "value", "last"]),
        optional(&["next_seq", "next"]),
    ],
};

pub(crate) const TASKS: Table = Table {
    name: "room_tasks",
    columns: &[
        needed(&["task_id", "id"]),
        needed(&["room_id", "room"]),
        needed(&["title"]),
        optional(&["description"]),
        needed(&["status"]),
        optional(&["assignee", "assigned_to", "assignee_id"]),
        needed(&["created_by", "assigned_by", "creator"]),
        needed(&["created_at", "created"]),
        optional(&["updated_at", "updated"]),
        optional(&["note", "notes"]),
    ],
};

pub(crate) const VOTES: Table = Table {
    name: "votes",
    columns: &[
        needed(&["vote_id", "id"]),
        needed(&["room_id", "room"]),
        needed(&["title", "question"]),
        optional(&["description"]),
        needed(&["options"]),
        needed(&["created_by", "creator"]),
        needed(&["created_at", "created"]),
        optional(&["closes_at", "deadline", "expires_at"]),
        optional(&["status", "closed", "is_closed"]),
        optional(&["closed_at"]),
        optional(&["eligible_voters", "eligible", "eligible_count"]),
    ],
};

pub(crate) const BALLOTS: Table = Table {
    name: "vote_ballots",
    columns: &[
        needed(&["vote_id"]),
        needed(&["agent_id", "voter_id", "voter"]),
        needed(&["option_index", "choice", "option"]),
    ],
};

pub(crate) const KEYS: Table = Table {
    name: "api_keys",
    columns: &[
        optional(&["key", "api_key", "key_text"]),
        optional(&["key_hash", "hash"]),
        optional(&["key_id", "id"]),
        optional(&["label", "name"]),
        optional(&["tier", "plan"]),
        optional(&["revoked", "revoked_at", "is_revoked", "disabled"]),
        optional(&["active", "is_active", "enabled"]),
    ],
};

pub(crate) const ALL: [&Table; 7] =
    [&ROOMS, &MESSAGES, &SEQUENCES, &TASKS, &VOTES, &BALLOTS, &KEYS];

/// The tables that a file of this layout has.
pub const TABLES: [&str; 7] =
    [ROOMS.name, MESSAGES.name, SEQUENCES.name, TASKS.name, VOTES.name, BALLOTS.name, KEYS.name];

/// A table's columns as a file has them, in the order of [`Table::columns`].
#[derive(Clone, Debug)]
pub(crate) struct Found {
    table: &'static Table,
    /// Quoted; `None`: it has none such.
    names: Vec<Option<String>>,
}

impl Found {
    /// Among the columns that a file has. `Err`: the names of one that is missing.
    pub(crate) fn among(table: &'static Table, has: &[String]) -> Result<Found, String> {
        let mut names = Vec::new();
        for column in table.columns {
            let it = column.names.iter().find_map(|name| {
                has.iter().find(|it| it.eq_ignore_ascii_case(name)).map(|it| quoted(it))
            });
            if it.is_none() && column.needed {
                return Err(column.names.join("` or `"));
            }
            names.push(it);
        }
        Ok(Found { table, names })
    }

    /// What selects them all, each under its place: those that are missing as null.
    pub(crate) fn list(&self, of: &str) -> String {
        let column = |it: &Option<String>| match it {
            Some(name) => format!("{of}.{name}"),
            None => "NULL".to_owned(),
        };
        self.names.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// The column at this place of [`Table::columns`], quoted.
    pub(crate) fn name(&self, place: usize) -> Option<&str> {
        self.names[place].as_deref()
    }

    pub(crate) fn table(&self) -> &'static str {
        self.table.name
    }

    pub(crate) fn width(&self) -> usize {
        self.names.len()
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
