//! The table of tools, and what each does.

use std::{pin::Pin, sync::LazyLock};

use bridge::{seam::call::MayBe, tokens::Scope};
use mesh::api::command::RoomView;
use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use crate::{
    arguments::Arguments,
    asking::Asking,
    groups::Group,
    limits::{IGNORED_CHARS_MAX, IGNORED_MAX},
    occurrence::Occurrences,
    outcome::{Ended, No, Outcome},
    rows::{Kind, Lent, Row, Shown, Which, shown},
};

mod agents;
mod history;
mod inbox;
pub(crate) mod later;
mod lent;
mod rooms;
mod send;
mod sessions;
mod spawn;
mod tasks;
mod votes;

macro_rules! tools {
    ($( $which:ident $name:literal $groups:expr, $kind:ident, $title:literal, $text:literal, $required:expr, $arguments:literal; )*) => {
        /// In the order of `tools/list`.
        const TABLE: &[Row] = &[$( Row {
            which: Which::$which,
            name: $name,
            groups: &$groups,
            title: concat!("Mesh: ", $title),
            text: $text,
            arguments: $arguments,
            required: &$required,
            kind: Kind::$kind,
        }, )*];
    };
}

tools! {
    Sessions "sessions_list" [Group::Sessions], Lists, "list sessions",
        "Conversations of yours on the agent mesh: your inbox (main), direct sessions with agents on this and other machines, rooms. Newest first.",
        [], r#"{"kinds":{"type":"array","items":{"type":"string"},"description":"any of main, group, cron, hook, node, other"},
            "limit":{"type":"integer","minimum":1,"default":100},"offset":{"type":"integer","minimum":0},
            "activeMinutes":{"type":"integer","minimum":1},"messageLimit":{"type":"integer","minimum":0,"default":0},
            "search":{"type":"string"},"agentId":{"type":"string"},"label":{"type":"string"},"archived":{"type":"boolean"}}"#;
    SessionHistory "sessions_history" [Group::Sessions], Reads, "read a session",
        "Messages of one session, oldest first. Also where a reply is found after a timeout.",
        ["sessionKey"], r#"{"sessionKey":{"type":"string"},"limit":{"type":"integer","minimum":1,"default":50},
            "offset":{"type":"integer","minimum":0,"description":"skip this many of the newest"},
            "includeTools":{"type":"boolean","default":false},
            "afterSeq":{"type":"integer","minimum":0,"description":"only messages numbered above this, the oldest first"},
            "messageId":{"type":"string","description":"this message alone, whole"},"charOffset":{"type":"integer","minimum":0}}"#;
    SessionSend "sessions_send" [Group::Sessions], Acts, "message an agent",
        "Send to an agent (agent:ID:main) or room on the mesh and wait for the reply. A timeout means kept, not lost: do not send again. To answer a message give its id as replyTo.",
        ["message"], r#"{"sessionKey":{"type":"string","description":"e.g. agent:bob:main"},"agentId":{"type":"string"},"label":{"type":"string"},
            "message":{"type":"string"},"timeoutSeconds":{"type":"integer","minimum":0,"default":30,"description":"wait so long for the reply; 0: do not wait"},
            "replyTo":{"type":"string","description":"id of the message you answer"},"expectsReply":{"type":"boolean"},
            "idempotencyKey":{"type":"string"},"announce":{"type":"boolean","default":false}}"#;
    SessionSpawn "sessions_spawn" [Group::Sessions], Acts, "hand over a task",
        "Have another agent on the mesh do a task. Returns at once; the result comes to inbox_wait.",
        ["task"], r#"{"task":{"type":"string"},"label":{"type":"string"},
            "agentId":{"type":"string","description":"who is to do it; absent: an agent that offers to"},"capability":{"type":"string"},
            "timeoutSeconds":{"type":"integer","minimum":0,"default":0},"runTimeoutSeconds":{"type":"integer","minimum":0,"default":0},
            "cleanup":{"type":"string","enum":["delete","keep"],"default":"delete"},"idempotencyKey":{"type":"string"}}"#;
    Agents "agents_list" [Group::Sessions, Group::Inbox], Lists, "who can be reached",
        "Agents on the mesh that you can message, with what they can do and whether they are there; and who you are.",
        [], r#"{"search":{"type":"string"},"capability":{"type":"string"},"online":{"type":"boolean"},
            "limit":{"type":"integer","minimum":1,"default":50},"offset":{"type":"integer","minimum":0}}"#;
    InboxWait "inbox_wait" [Group::Inbox], Reads, "read what came for you",
        "Unread messages, answers and mentions for you; waits up to 50 s. Give the cursor of the last result back to confirm it.",
        [], r#"{"timeoutSeconds":{"type":"integer","minimum":0,"default":30},
            "cursor":{"type":"string","description":"from the last result: confirms it, and goes on after it"},"limit":{"type":"integer","minimum":1,"default":20}}"#;
    InboxNotice "inbox_notice" [], Reads, "whether something came for you",
        "For programs: how many messages are unread, and from whom; with timeoutSeconds it waits for one of which it has not told yet.",
        [], r#"{"timeoutSeconds":{"type":"integer","minimum":0,"default":0}}"#;
    InboxFollow "inbox_follow" [], Reads, "what comes for you",
        "For programs: what came after a cursor, which confirms nothing; without one, what comes from now on.",
        [], r#"{"timeoutSeconds":{"type":"integer","minimum":0,"default":0},"cursor":{"type":"string"},
            "limit":{"type":"integer","minimum":1,"default":20}}"#;
    Rooms "rooms_list" [Group::Rooms], Lists, "list rooms",
        "Mesh: rooms that you can see, the liveliest first, and which of them you are in.",
        [], r#"{"search":{"type":"string"},"joined":{"type":"boolean"},
            "limit":{"type":"integer","minimum":1,"default":50},"offset":{"type":"integer","minimum":0}}"#;
    Join "room_join" [Group::Rooms], Acts, "enter a room",
        "Mesh: become a member of a room, by its key, id or name; with create, make it if there is none. You stay in it until room_leave.",
        ["room"], r#"{"room":{"type":"string","description":"key, id or name"},"create":{"type":"boolean","default":false},
            "public":{"type":"boolean","default":false,"description":"a new room is for everybody on the mesh"},"description":{"type":"string"}}"#;
    Leave "room_leave" [Group::Rooms], Acts, "leave a room",
        "Mesh: be a member of a room no longer.",
        ["room"], r#"{"room":{"type":"string"}}"#;
    Send "room_send" [Group::Rooms], Acts, "speak in a room",
        "Mesh: say something in a room that you are in. All its members, on all machines, get it.",
        ["room", "message"], r#"{"room":{"type":"string"},"message":{"type":"string"},"replyTo":{"type":"string","description":"id of the message you answer"},
            "mentions":{"type":"array","items":{"type":"string"},"description":"ids of agents to be told"},
            "kind":{"type":"string"},"thinking":{"type":"boolean","default":false,"description":"a thought: it asks nobody for anything"}}"#;
    History "room_history" [Group::Rooms], Reads, "read a room",
        "Mesh: messages of a room that you are in, oldest first: the newest ones, or those after a number.",
        ["room"], r#"{"room":{"type":"string"},"limit":{"type":"integer","minimum":1,"default":50},
            "offset":{"type":"integer","minimum":0,"description":"skip this many of the newest"},
            "afterSeq":{"type":"integer","minimum":0,"description":"only messages numbered above this, the oldest first"},
            "includeTools":{"type":"boolean","default":true,"description":"with thoughts and decisions"}}"#;
    Wait "room_wait" [Group::Rooms], Reads, "wait for a room",
        "Mesh: wait until others say something in a room, and read it. Give afterSeq of the last result back to miss nothing.",
        ["room"], r#"{"room":{"type":"string"},"afterSeq":{"type":"integer","minimum":0,"description":"absent: from now on"},
            "timeoutSeconds":{"type":"integer","minimum":0,"default":30},"limit":{"type":"integer","minimum":1,"default":20},
            "from":{"type":"array","items":{"type":"string"},"description":"only of these agents"}}"#;
    VoteCreate "vote_create" [Group::Votes], Acts, "open a vote",
        "Mesh: ask the members of a room to choose one of some options. Ballots are secret until it is closed.",
        ["room", "title", "options"], r#"{"room":{"type":"string"},"title":{"type":"string"},
            "options":{"type":"array","items":{"type":"string"}},"description":{"type":"string"},
            "durationSeconds":{"type":"integer","minimum":1}}"#;
    VoteCast "vote_cast" [Group::Votes], Acts, "cast your ballot",
        "Mesh: choose an option of a vote, by its index or its exact text. A ballot cannot be changed.",
        ["voteId", "option"], r#"{"voteId":{"type":"string"},"option":{"type":"string","description":"index from 0, or the exact text"}}"#;
    VoteResult "vote_result" [Group::Votes], Reads, "look at a vote",
        "Mesh: how a vote stands, or the newest votes of a room; with timeoutSeconds it waits until the vote is closed.",
        [], r#"{"voteId":{"type":"string"},"room":{"type":"string"},"timeoutSeconds":{"type":"integer","minimum":0,"default":0}}"#;
    Tasks "tasks_list" [Group::Tasks], Reads, "list tasks",
        "Mesh: tasks of a room, or of all rooms that you are in.",
        [], r#"{"room":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed","blocked"]},
            "mine":{"type":"boolean","default":false},"limit":{"type":"integer","minimum":1,"default":50}}"#;
    TaskAdd "task_add" [Group::Tasks], Acts, "add a task",
        "Mesh: write down something to be done in a room, for one agent or for whoever claims it.",
        ["room", "title"], r#"{"room":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},
            "assignee":{"type":"string","description":"id of an agent"}}"#;
    TaskClaim "task_claim" [Group::Tasks], Acts, "take a task",
        "Mesh: begin a task that nobody holds, or that you hold. Of several that try, one gets it.",
        ["taskId"], r#"{"taskId":{"type":"string"}}"#;
    TaskComplete "task_complete" [Group::Tasks], Acts, "finish a task",
        "Mesh: say how a task ended: completed, or blocked and why.",
        ["taskId", "result"], r#"{"taskId":{"type":"string"},"result":{"type":"string"},
            "status":{"type":"string","enum":["completed","blocked"],"default":"completed"}}"#;
}

static SHOWN: LazyLock<Vec<Shown>> = LazyLock::new(|| TABLE.iter().map(shown).collect());

/// All tools, those of the table first.
fn every(lent: &Lent) -> impl Iterator<Item = &Shown> {
    SHOWN.iter().chain(lent.shown())
}

/// The tools that an agent is offered.
pub(crate) fn list(asking: &Asking) -> Vec<Tool> {
    let may = |row: &Row| is_offered(asking, row) && asking.may(row.which.scope()).is_ok();
    let offered = every(&asking.shared.lent).filter(|shown| may(&shown.row));
    offered.map(|shown| shown.tool.clone()).collect()
}

/// The tool of a name, if the agent is offered it.
pub(crate) fn find(asking: &Asking, name: &str) -> Option<Row> {
    let mut all = every(&asking.shared.lent).map(|shown| shown.row);
    all.find(|row| row.name == name && is_offered(asking, row))
}

/// The same, for a program, if it may call it: some tools are in no list, for models have no use for them.
pub(crate) fn find_for_program(asking: &Asking, name: &str) -> Option<Row> {
    let hidden = || TABLE.iter().find(|row| row.name == name && row.groups.is_empty()).copied();
    let found = find(asking, name).or_else(hidden);
    found.filter(|row| asking.may(row.which.scope()).is_ok())
}

/// Whether a tool is in a group that the host asks for. To call one without its scope is refused in words.
fn is_offered(asking: &Asking, row: &Row) -> bool {
    row.groups.iter().any(|group| asking.groups.has(*group))
}

impl Which {
    /// The scope that it needs.
    fn scope(self) -> Scope {
        match self {
            Which::Sessions | Which::Agents | Which::Rooms => Scope::List,
            Which::SessionHistory
            | Which::InboxWait
            | Which::InboxNotice
            | Which::InboxFollow
            | Which::History
            | Which::Wait => Scope::History,
            Which::SessionSend | Which::Send => Scope::Send,
            Which::SessionSpawn => Scope::Spawn,
            Which::Join | Which::Leave => Scope::Rooms,
            Which::VoteCreate | Which::VoteCast | Which::VoteResult => Scope::Votes,
            Which::Tasks | Which::TaskAdd | Which::TaskClaim | Which::TaskComplete => Scope::Tasks,
            Which::Lent => Scope::Finder,
        }
    }
}

/// The names of all tools, also of those that are in no list.
pub(crate) fn names(lent: &Lent) -> impl Iterator<Item = &'static str> {
    every(lent).map(|shown| shown.row.name)
}

/// Calls a tool.
pub(crate) async fn call(asking: &Asking, tool: Row, given: Option<Map<String, Value>>) -> Ended {
    let ended = end(asking, tool, given).await;
    asking.shared.calls.ended(tool.name, &ended);
    ended
}

async fn end(asking: &Asking, tool: Row, given: Option<Map<String, Value>>) -> Ended {
    let mut arguments = Arguments::new(given).patient(asking.patience);
    let outcome = match begins(asking, tool.which.scope()).await {
        Ok(()) => carry_out(asking, tool, &mut arguments).await,
        Err(no) => Err(no),
    };
    if asking.has_come() {
        tokio::spawn(spawn::replacing::resume(asking.clone()));
    }
    ended(asking, tool, &arguments, outcome)
}

/// What a call comes to, with what was not believed of its arguments.
fn ended(asking: &Asking, tool: Row, arguments: &Arguments, outcome: Outcome) -> Ended {
    let is_wrong = matches!(outcome, Err(crate::outcome::No::Argument { .. }));
    let mut fields = match outcome {
        Ok(fields) => fields,
        Err(no) => no.fields()?,
    };
    let row = every(&asking.shared.lent).find(|shown| shown.row.name == tool.name);
    let ignored = row.map(|row| arguments.ignored(&row.properties)).unwrap_or_default();
    if !ignored.is_empty() {
        let short = |name: &String| name.chars().take(IGNORED_CHARS_MAX).collect::<String>();
        let names: Vec<String> = ignored.iter().take(IGNORED_MAX).map(short).collect();
        fields.insert("ignored".to_owned(), json!(names));
    }
    if let Some(clamped) = arguments.clamped() {
        fields.insert("clamped".to_owned(), clamped);
    }
    Ok((fields, is_wrong))
}

/// Whether something may be asked for: the agent is not another key's, and it has the scope.
async fn begins(asking: &Asking, scope: Scope) -> Result<(), No> {
    asking.read(MayBe(asking.agent.clone())).await?;
    asking.may(scope)
}

/// Its sessions, for what is no call of a tool.
pub(crate) async fn sessions(asking: &Asking, given: Map<String, Value>) -> Outcome {
    begins(asking, Scope::List).await?;
    sessions::list(asking, &mut Arguments::new(Some(given))).await
}

/// Messages of a session, likewise.
pub(crate) async fn history(asking: &Asking, given: Map<String, Value>) -> Outcome {
    begins(asking, Scope::History).await?;
    history::of_session(asking, &mut Arguments::new(Some(given))).await
}

/// What is unread, likewise. It stays so.
pub(crate) async fn inbox(asking: &Asking) -> Outcome {
    begins(asking, Scope::History).await?;
    inbox::peek(asking).await
}

/// What came into its inbox after a cursor, for those that are told of events.
pub(crate) async fn inbox_events(
    asking: &Asking,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Occurrences, No> {
    inbox::events(asking, cursor, limit).await
}

/// What others said in a room after a cursor, likewise. It may read the room.
pub(crate) async fn room_events(
    asking: &Asking,
    room: &RoomView,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Occurrences, No> {
    history::events(asking, room, cursor, limit).await
}

/// The agent that asks, likewise.
pub(crate) async fn me(asking: &Asking) -> Result<Value, No> {
    begins(asking, Scope::List).await?;
    agents::me(asking).await
}

/// In a box: a call is as large as the tool that it calls, and not as the largest one.
fn carry_out<'a>(
    asking: &'a Asking,
    tool: Row,
    arguments: &'a mut Arguments,
) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
    match tool.which {
        Which::Sessions => Box::pin(sessions::list(asking, arguments)),
        Which::SessionHistory => Box::pin(history::of_session(asking, arguments)),
        Which::SessionSend => Box::pin(send::send(asking, arguments)),
        Which::SessionSpawn => Box::pin(spawn::spawn(asking, arguments)),
        Which::Agents => Box::pin(agents::list(asking, arguments)),
        Which::InboxWait => Box::pin(inbox::wait(asking, arguments)),
        Which::InboxNotice => Box::pin(inbox::notice(asking, arguments)),
        Which::InboxFollow => Box::pin(inbox::follow(asking, arguments)),
        Which::Rooms => Box::pin(rooms::list(asking, arguments)),
        Which::Join => Box::pin(rooms::join(asking, arguments)),
        Which::Leave => Box::pin(rooms::leave(asking, arguments)),
        Which::Send => Box::pin(rooms::send(asking, arguments)),
        Which::History => Box::pin(history::history(asking, arguments)),
        Which::Wait => Box::pin(history::wait(asking, arguments)),
        Which::VoteCreate => Box::pin(votes::create(asking, arguments)),
        Which::VoteCast => Box::pin(votes::cast(asking, arguments)),
        Which::VoteResult => Box::pin(votes::result(asking, arguments)),
        Which::Tasks => Box::pin(tasks::list(asking, arguments)),
        Which::TaskAdd => Box::pin(tasks::add(asking, arguments)),
        Which::TaskClaim => Box::pin(tasks::claim(asking, arguments)),
        Which::TaskComplete => Box::pin(tasks::complete(asking, arguments)),
        Which::Lent => Box::pin(lent::call(asking, tool, arguments)),
    }
}

impl crate::groups::Groups {
    /// Names of the tools of a group, in their order.
    #[cfg(test)]
    pub(crate) fn tools(self) -> Vec<&'static str> {
        let offered = TABLE.iter().filter(|row| row.groups.iter().any(|group| self.has(*group)));
        offered.map(|row| row.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Groups;

    #[test]
    fn every_schema_is_one_and_required_arguments_are_in_it() {
        assert_eq!(SHOWN.len(), TABLE.len());
        for shown in SHOWN.iter() {
            let Shown { row, properties, .. } = shown;
            for name in row.required {
                assert!(properties.contains_key(*name), "{} {name}", row.name);
            }
            assert!(row.text.chars().count() <= 300, "{}", row.name);
        }
    }

    #[test]
    fn tools_come_in_the_order_of_the_table() {
        let all = Groups::ALL.tools();
        let listed = TABLE.iter().filter(|row| !row.groups.is_empty());
        assert_eq!(all.len(), listed.count());
        let votes = Groups::parse("votes").expect("a group").tools();
        assert_eq!(votes, ["vote_create", "vote_cast", "vote_result"]);
        assert_eq!(Groups::parse("tasks,votes").expect("groups").tools()[0], "vote_create");
        let inbox = Groups::parse("inbox").expect("a group").tools();
        assert_eq!(inbox, ["agents_list", "inbox_wait"]);
        assert_eq!(Groups::parse("spoons"), Err("spoons".to_owned()));
    }
}
