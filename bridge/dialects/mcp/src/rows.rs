//! Rows of the table of tools, and of tools that another dialect lends, as hosts are shown them.

use std::sync::Arc;

use bridge::toolbox::{LentTool, Toolbox};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::{groups::Group, outcome::object};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) which: Which,
    pub(crate) name: &'static str,
    pub(crate) groups: &'static [Group],
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    /// Its arguments, as the properties of a JSON schema.
    pub(crate) arguments: &'static str,
    pub(crate) required: &'static [&'static str],
    pub(crate) kind: Kind,
}

/// Each tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Sessions,
    SessionHistory,
    SessionSend,
    SessionSpawn,
    Agents,
    InboxWait,
    InboxNotice,
    InboxFollow,
    Rooms,
    Join,
    Leave,
    Send,
    History,
    Wait,
    VoteCreate,
    VoteCast,
    VoteResult,
    Tasks,
    TaskAdd,
    TaskClaim,
    TaskComplete,
    /// One of another dialect.
    Lent,
}

/// What a host may think of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It shows what there is.
    Lists,
    /// It shows what others wrote.
    Reads,
    /// It changes something.
    Acts,
}

/// A row, as hosts are shown it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) row: Row,
    pub(crate) properties: Map<String, Value>,
    pub(crate) tool: Tool,
}

/// As hosts are shown it.
pub(crate) fn shown(row: &Row) -> Shown {
    let properties: Value =
        serde_json::from_str(row.arguments).expect("a test reads every schema of the table");
    let mut schema = object(json!({"type": "object", "properties": properties}));
    if !row.required.is_empty() {
        schema.insert("required".to_owned(), json!(row.required));
    }
    let (reads, is_open) = match row.kind {
        Kind::Lists => (true, false),
        Kind::Reads => (true, true),
        Kind::Acts => (false, true),
    };
    let mut hints = ToolAnnotations::new().read_only(reads).open_world(is_open);
    if !reads {
        hints = hints.destructive(false).idempotent(false);
    }
    let tool = Tool::new(row.name, row.text, Arc::new(schema))
        .with_title(row.title)
        .with_annotations(hints);
    Shown { row: *row, properties: object(properties), tool }
}

/// Tools that another dialect lends. None, if nobody lends any.
pub(crate) struct Lent {
    pub(crate) toolbox: Option<Arc<dyn Toolbox>>,
    pub(crate) shown: Vec<Shown>,
}

impl Lent {
    pub(crate) fn new(toolbox: Option<Arc<dyn Toolbox>>) -> Lent {
        let tools = toolbox.as_ref().map_or(&[][..], |toolbox| toolbox.tools());
        Lent { shown: tools.iter().map(|tool| shown(&row(tool))).collect(), toolbox }
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.shown.iter()
    }
}

fn row(tool: &LentTool) -> Row {
    let LentTool { name, title, text, arguments, required, reads } = *tool;
    let kind = if reads { Kind::Reads } else { Kind::Acts };
    let (which, groups) = (Which::Lent, &[Group::Finder]);
    Row { which, name, groups, title, text, arguments, required, kind }
}
