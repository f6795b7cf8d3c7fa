//! Approvals: what an agent asks with a message, and what people decide about it.

use std::time::Duration;

use bridge::{
    seam::{
        call::{Decide, ListApprovals, ReadApproval, RequestApproval, Requested, Say},
        refusal::Refusal,
    },
    session::seat::Seat,
};
use mesh::{
    api::{
        approval::{ApprovalTerms, ApprovalView, Choice},
        command::{Refused, SaidOk},
    },
    limits::APPROVAL_FOR,
    name::id::MessageId,
};
use protocol::{
    object::Approval,
    reply::{ApprovalDecision, ApprovalList, Reply as Frame},
    request,
    value::{ApprovalChoice, Metadata},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{codes::Problem, conversation::Turn, encode::timestamp};

/// The kind of a message with which an agent asks.
const KIND: &str = "approval_request";

/// What is wrong with the metadata of such a message.
const FORM: &str = "`metadata.approval` must have a text `command`, and may have `timeout_secs` (a whole number) and \
                    `approvers` (a list of agent ids)";

/// What an agent asks for with a message, if it does. Messages of that kind without `approval` are as any others.
pub(crate) fn asked(metadata: &Metadata) -> Result<Option<ApprovalTerms>, Problem> {
    #[derive(Deserialize)]
    struct Tagged<'m> {
        kind: Option<String>,
        #[serde(borrow)]
        approval: Option<&'m RawValue>,
    }
    #[derive(Deserialize)]
    struct Asked {
        command: String,
        timeout_secs: Option<u64>,
        #[serde(default)]
        approvers: Vec<String>,
    }
    let json = metadata.get();
    // Most say nothing of the kind, and are not read again.
    if !json.contains(KIND) {
        return Ok(None);
    }
    let Ok(Tagged { kind, approval: Some(approval) }) = serde_json::from_str(json) else {
        return Ok(None);
    };
    if kind.as_deref() != Some(KIND) {
        return Ok(None);
    }
    let asked: Asked = serde_json::from_str(approval.get()).map_err(|_| Problem::invalid(FORM))?;
    Ok(Some(ApprovalTerms {
        text: asked.command,
        approvers: asked.approvers.iter().map(|id| id.as_str().into()).collect(),
        within: asked.timeout_secs.map_or(APPROVAL_FOR, Duration::from_secs),
    }))
}

/// Says something, and asks with it, if it does.
pub(crate) fn say(
    seat: &mut Seat,
    say: Say,
    terms: Option<ApprovalTerms>,
    then: impl FnOnce(&mut Seat, Result<SaidOk, Refusal>) + Send + 'static,
) {
    match terms {
        None => seat.ask(say, then),
        Some(terms) => seat.ask(RequestApproval { say, terms }, move |seat, asked| {
            then(seat, asked.map(|Requested { said, .. }| said));
        }),
    }
}

impl Turn {
    pub(crate) fn decide_approval(self, seat: &mut Seat, decide: request::DecideApproval) {
        let request::DecideApproval { room_id, message_id, decision, reason } = decide;
        let Some(approval) = MessageId::from_uuid(&message_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoApproval));
        };
        let choice = match decision {
            ApprovalChoice::Approved => Choice::Approve,
            ApprovalChoice::Always => Choice::Always,
            ApprovalChoice::Denied => Choice::Deny,
            ApprovalChoice::Changes => Choice::Change,
            ApprovalChoice::Withdrawn => Choice::Withdraw,
        };
        self.at(seat, &room_id, |turn, seat, room| {
            turn.ask(seat, Decide { room, approval, choice, reason }, move |voice, decided| {
                let approval = written(voice.name(room), &decided.approval);
                let granted = decided.granted;
                Frame::ApprovalDecision(Box::new(ApprovalDecision { granted, approval }))
            });
        });
    }

    pub(crate) fn list_approvals(self, seat: &mut Seat, list: &request::ListApprovals) {
        self.at_any(seat, list.room_id.as_deref(), |turn, seat, room| {
            turn.ask(seat, ListApprovals { room }, |voice, found| {
                let rows = found.iter().map(|it| written(voice.name(it.room), it));
                Frame::Approvals(ApprovalList { approvals: rows.collect() })
            });
        });
    }

    pub(crate) fn get_approval(self, seat: &mut Seat, get: &request::GetApproval) {
        let Some(approval) = MessageId::from_uuid(&get.message_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoApproval));
        };
        self.at(seat, &get.room_id, |turn, seat, room| {
            turn.ask(seat, ReadApproval { room, approval }, move |voice, found| {
                Frame::Approval(Box::new(written(voice.name(room), &found)))
            });
        });
    }
}

/// As it is on the wire.
pub(crate) fn written(room_id: String, view: &ApprovalView) -> Approval {
    let decided = view.decided.as_ref();
    Approval {
        message_id: view.id.to_uuid(),
        room_id,
        agent_id: view.by.to_string(),
        command: view.text.to_string(),
        approvers: view.approvers.iter().map(|agent| agent.to_string()).collect(),
        asked_at: timestamp(view.asked_ms),
        until: timestamp(view.until_ms),
        decision: decided.map(|it| it.verdict.word().to_owned()),
        allowed: decided.is_some_and(|it| it.verdict.allows()),
        decided_by: decided.and_then(|it| it.by.as_ref()).map(|by| by.to_string()),
        decided_at: decided.map(|it| timestamp(it.at_ms)),
        reason: decided.and_then(|it| it.reason.as_ref()).map(|reason| reason.to_string()),
        always: view.is_rule,
    }
}
