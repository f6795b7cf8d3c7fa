//! Tables and columns of a ClawChat server's file (0.3; `docs/decisions/import.md` has the same
//! table).

/// A column that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The value for a file of an older server, which has no such column; `None`: every file has
    /// it.
    older: Option<&'static str>,
}

const fn needed(name: &'static str) -> Column {
    Column { name, older: None }
}

const fn newer(name: &'static str, older: &'static str) -> Column {
    Column { name, older: Some(older) }
}

/// A table that is read: its name, and its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    /// Every file has it. Another one that is missing is an empty one.
    needed: bool,
}

/// Times, so that they sort as texts in both forms that there are.
pub(crate) const CREATED: &str = "replace(t.created_at, ' ', 'T')";

/// The order in which the rows of a table were made, where nothing else says it.
pub(crate) fn made(table: &Table, has_rowid: bool) -> String {
    format!("t.{}", if has_rowid { "rowid" } else { table.columns[0].name })
}

pub(crate) const ROOMS: Table = Table {
    name: "rooms",
    needed: true,
    columns: &[
        needed("room_id"),
        needed("name"),
        needed("description"),
        needed("parent_id"),
        needed("created_by"),
        needed("created_at"),
        // A server without private rooms.
        newer("visibility", "'public'"),
        newer("owner_key", "NULL"),
        newer("encrypted", "0"),
    ],
};

pub(crate) const MESSAGES: Table = Table {
    name: "messages",
    needed: true,
    columns: &[
        needed("message_id"),
        needed("room_id"),
        needed("agent_id"),
        needed("agent_name"),
        needed("content"),
        needed("reply_to_message"),
        needed("metadata"),
        needed("created_at"),
        // In the order in which they were written, as a server numbers them that is given such a
        // file.
        newer("seq", "row_number() OVER (PARTITION BY t.room_id ORDER BY {created}, {made})"),
    ],
};

pub(crate) const SEQUENCES: Table = Table {
    name: "room_sequences",
    needed: false,
    columns: &[needed("room_id"), needed("high_water")],
};

pub(crate) const TASKS: Table = Table {
    name: "room_tasks",
    needed: false,
    columns: &[
        needed("task_id"),
        needed("room_id"),
        needed("title"),
        needed("description"),
        needed("status"),
        needed("assignee"),
        needed("created_by"),
        needed("created_at"),
        needed("updated_at"),
        needed("note"),
    ],
};

pub(crate) const VOTES: Table = Table {
    name: "votes",
    needed: false,
    columns: &[
        needed("vote_id"),
        needed("room_id"),
        needed("title"),
        needed("description"),
        needed("options"),
        needed("created_by"),
        needed("created_at"),
        needed("closes_at"),
        needed("status"),
        needed("eligible_voters"),
    ],
};

pub(crate) const BALLOTS: Table = Table {
    name: "vote_ballots",
    needed: false,
    columns: &[needed("vote_id"), needed("agent_id"), needed("option_index")],
};

pub(crate) const KEYS: Table = Table {
    name: "api_keys",
    needed: false,
    columns: &[needed("api_key"), needed("tier"), needed("label")],
};

pub(crate) const IDENTITIES: Table = Table {
    name: "agent_identities",
    needed: false,
    columns: &[needed("agent_id"), needed("owner_key")],
};

pub(crate) const SUBSCRIPTIONS: Table = Table {
    name: "subscriptions",
    needed: false,
    columns: &[
        needed("subscription_id"),
        needed("room_id"),
        needed("owner_key"),
        needed("webhook_url"),
        needed("secret"),
        needed("kinds"),
        needed("only_from"),
        needed("not_from"),
        needed("exclude_thinking"),
        needed("since_seq"),
        needed("last_delivered_seq"),
        needed("status"),
        needed("failure_count"),
        needed("created_at"),
    ],
};

/// All that are read.
pub(crate) const ALL: [&Table; 9] =
    [&ROOMS, &MESSAGES, &SEQUENCES, &TASKS, &VOTES, &BALLOTS, &KEYS, &IDENTITIES, &SUBSCRIPTIONS];

/// Those that every file has.
pub(crate) fn needed_tables() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().filter(|table| table.needed).map(|table| table.name)
}

/// The SQL list of a table's columns, in the order of [`Table::columns`], for a file with the
/// columns `has`. `Err`: the column that is missing.
pub(crate) fn list(table: &Table, has: &[String], has_rowid: bool) -> Result<String, &'static str> {
    let mut list = Vec::new();
    for column in table.columns {
        let is_there = has.iter().any(|name| name == column.name);
        list.push(match column.older {
            _ if is_there => format!("t.{}", column.name),
            Some(older) => {
                older.replace("{created}", CREATED).replace("{made}", &made(table, has_rowid))
            }
            None => return Err(column.name),
        });
    }
    Ok(list.join(", "))
}
