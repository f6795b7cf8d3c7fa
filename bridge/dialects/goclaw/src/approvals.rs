//! Approvals: agents ask in their rooms, and people who may see these decide.

use bridge::{
    read::Overheard,
    seam::{
        call::{Decide, ListApprovals, OneMessage},
        event::Event,
    },
};
use mesh::{
    api::approval::{ApprovalView, Choice, Verdict},
    name::id::MessageId,
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    limits::APPROVALS_SHOWN_MAX,
    methods::Role,
    names::user_of,
    outcome::{No, Outcome},
    params::Params,
    shared::Shared,
};

const ID: &[&str] = &["id", "approvalId", "approval_id"];

/// Those that this user may see and nobody has decided about.
async fn pending(caller: &Caller) -> Result<Vec<ApprovalView>, No> {
    let all = caller.read_as(&caller.principal, ListApprovals { room: None }).await?;
    Ok(all.into_iter().filter(|view| view.decided.is_none()).collect())
}

pub(crate) async fn list(caller: &Caller) -> Outcome {
    let mut rows = Vec::new();
    for view in pending(caller).await?.iter().take(APPROVALS_SHOWN_MAX) {
        let mut row = row_of(view);
        let message = OneMessage { room: view.room, message: view.id };
        let message = caller.read_as(&caller.principal, message).await?;
        let metadata = message.and_then(|message| message.said.metadata.clone());
        let asked = metadata.and_then(|json| serde_json::from_str::<Value>(&json).ok());
        let asked = asked.map_or(Value::Null, |metadata| metadata["approval"].clone());
        row["type"] = json!(asked["type"].as_str().unwrap_or("exec"));
        for (name, field) in [("taskId", "task_id"), ("details", "details")] {
            if !asked[field].is_null() {
                row[name] = asked[field].clone();
            }
        }
        row["expiresAt"] = json!(view.until_ms);
        rows.push(row);
    }
    Ok(json!({"pending": rows}))
}

fn row_of(view: &ApprovalView) -> Value {
    let mut row = json!({
        "id": view.id.to_uuid(),
        "command": &*view.text,
        "agentId": &*view.by,
        "createdAt": view.asked_ms,
        "teamId": view.room.to_uuid(),
    });
    if let Some(user) = user_of(&view.by) {
        row["userId"] = json!(user);
    }
    row
}

pub(crate) async fn approve(caller: &Caller, params: &Params) -> Outcome {
    let always = params.flag(&["always"])?.unwrap_or(false);
    let choice = if always { Choice::Always } else { Choice::Approve };
    decide(caller, params, choice, None).await
}

pub(crate) async fn deny(caller: &Caller, params: &Params) -> Outcome {
    let reason = params.filled(&["reason"])?;
    decide(caller, params, Choice::Deny, reason).await
}

async fn decide(
    caller: &Caller,
    params: &Params,
    choice: Choice,
    reason: Option<String>,
) -> Outcome {
    let late = || No::not_found("approval not found or already resolved");
    let id = MessageId::from_uuid(&params.required(ID)?).ok_or_else(late)?;
    let open = pending(caller).await?;
    let room = open.iter().find(|view| view.id == id).map(|view| view.room).ok_or_else(late)?;
    let decided = Decide { room, approval: id, choice, reason };
    let decided = caller.act(&caller.speaker(), decided).await?;
    let verdict = decided.approval.decided.as_ref().filter(|_| decided.granted);
    let decision = verdict.map(|it| word(it.verdict)).ok_or_else(late)?;
    Ok(json!({"resolved": true, "decision": decision}))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approved | Verdict::ByRule => "allow-once",
        Verdict::Always => "allow-always",
        Verdict::Denied | Verdict::Changes => "deny",
        Verdict::Expired => "expired",
    }
}

/// News of approvals, from all nodes and dialects.
pub(crate) fn tell(shared: &Shared, news: &Overheard) {
    let may_see = |client: &Caller| {
        let decides = client.role >= Role::Operator || client.approves;
        decides && news.facts.readable_by(client.print(), Some(&client.principal))
    };
    if let Event::ApprovalAsked(view) = &news.event {
        for name in ["exec.approval.pending", "exec.approval.requested"] {
            shared.tell(name, &row_of(view), may_see);
        }
    } else if let Event::ApprovalDecided(view) = &news.event
        && let Some(decided) = &view.decided
    {
        let by = decided.by.as_ref().map_or("system", |by| user_of(by).unwrap_or(by));
        let told = json!({
            "id": view.id.to_uuid(), "decision": word(decided.verdict), "by": by,
        });
        shared.tell("exec.approval.resolved", &told, may_see);
    }
}
