//! Calls that wait for as long as it takes: how they begin, and how they go on, also at a node that was started again.

use bridge::seam::event::Message;
use serde_json::{Map, Value, json};

use super::{Row, TABLE, Which, begins, call, ended, send};
use crate::{
    arguments::Arguments,
    asking::{Asking, Awaits},
    limits::TASK_ARGUMENTS_BYTES_MAX,
    outcome::{Ended, No, NoAgent},
};

/// How a call began.
pub(crate) enum Begun {
    /// It is over.
    Over(Map<String, Value>, bool),
    /// It waits. The value is all that it needs to go on.
    Waits(Value),
}

/// The end of a call that waited.
pub(crate) struct Given {
    pub(crate) ended: Ended,
    /// The answer that is given with it, and does not come again.
    reply: Option<(Message, Awaits)>,
}

impl Given {
    /// Its end is kept: what was given with it does not come again.
    pub(crate) async fn settle(self, asking: &Asking) {
        if let Some((reply, awaiting)) = self.reply {
            send::is_given(asking, &reply).await;
            drop(awaiting);
        }
    }
}

impl Row {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// Of a name that was kept.
    pub(crate) fn named(name: &str) -> Option<Row> {
        TABLE.iter().find(|row| row.name == name).copied()
    }

    /// Whether a call with these arguments may last.
    pub(crate) fn may_last(self, given: &Map<String, Value>) -> bool {
        let has = |name: &str| given.get(name).is_some_and(|value| !value.is_null());
        self.may_wait()
            && !has("timeoutSeconds")
            && (self.which != Which::VoteResult || has("voteId"))
    }

    /// Whether it may wait at all.
    pub(crate) fn may_wait(self) -> bool {
        match self.which {
            Which::InboxWait | Which::SessionSend | Which::Wait | Which::VoteResult => true,
            Which::Sessions
            | Which::SessionHistory
            | Which::SessionSpawn
            | Which::Agents
            | Which::InboxNotice
            | Which::InboxFollow
            | Which::Rooms
            | Which::Join
            | Which::Leave
            | Which::Send
            | Which::History
            | Which::VoteCreate
            | Which::VoteCast
            | Which::Tasks
            | Which::TaskAdd
            | Which::TaskClaim
            | Which::TaskComplete
            | Which::Lent => false,
        }
    }
}

/// Begins a call of a [patient](Asking::patient) agent. What is there at once ends it.
pub(crate) async fn begin(
    asking: &Asking,
    tool: Row,
    given: Map<String, Value>,
) -> Result<Begun, (String, NoAgent)> {
    if tool.which == Which::SessionSend {
        return begin_to_send(asking, tool, given).await;
    }
    let mut now = given.clone();
    now.insert("timeoutSeconds".to_owned(), json!(0));
    let (fields, is_wrong) = call(asking, tool, Some(now)).await?;
    let status = fields.get("status").and_then(Value::as_str);
    if is_wrong || !matches!(status, Some("timeout" | "open")) {
        return Ok(Begun::Over(fields, is_wrong));
    }
    // The cursor has said what it had to, and `afterSeq` is where this look ended.
    let mut kept = given.clone();
    kept.retain(|name, _| matches!(&**name, "room" | "limit" | "from" | "voteId"));
    if let Some(after) = fields.get("afterSeq") {
        kept.insert("afterSeq".to_owned(), after.clone());
    }
    let kept = Value::Object(kept);
    // Nobody names so many agents in earnest: it is a plain call.
    if kept.to_string().len() > TASK_ARGUMENTS_BYTES_MAX {
        let plain = Asking { patience: None, ..asking.clone() };
        let (fields, is_wrong) = call(&plain, tool, Some(given)).await?;
        return Ok(Begun::Over(fields, is_wrong));
    }
    Ok(Begun::Waits(kept))
}

async fn begin_to_send(
    asking: &Asking,
    tool: Row,
    given: Map<String, Value>,
) -> Result<Begun, (String, NoAgent)> {
    // Whether it waits without a time of its own is the tool's to say.
    let mut arguments = Arguments::new(Some(given));
    let begun = match begins(asking, tool.which.scope()).await {
        Ok(()) => send::begin(asking, &mut arguments).await,
        Err(no) => Err(no),
    };
    let outcome = match begun {
        Ok(begun) if begun.waits() => return Ok(Begun::Waits(send::kept(&begun))),
        Ok(begun) => Ok(begun.accepted()),
        Err(no) => Err(no),
    };
    let (fields, is_wrong) = ended(asking, tool, &arguments, outcome)?;
    Ok(Begun::Over(fields, is_wrong))
}

/// Goes on with a call, until it ends.
pub(crate) async fn go_on(asking: &Asking, tool: Row, kept: &Value) -> Given {
    if tool.which != Which::SessionSend {
        let given = kept.as_object().cloned();
        return Given { ended: call(asking, tool, given).await, reply: None };
    }
    let wait = asking.patience.unwrap_or_default();
    let awaiting = send::request_of_kept(kept).map(|request| asking.awaits(request));
    let (outcome, reply) = match send::answer_of_kept(asking, kept, wait).await {
        Ok((fields, reply)) => (Ok(fields), reply),
        Err(
            no @ (No::Argument { .. } | No::Forbidden { .. } | No::Error { .. } | No::Agent { .. }),
        ) => (Err(no), None),
    };
    let arguments = Arguments::new(None);
    Given { ended: ended(asking, tool, &arguments, outcome), reply: reply.zip(awaiting) }
}
