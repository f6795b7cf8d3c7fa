//! Approvals: a request is a message, and so is a decision.

use std::sync::Arc;

use mesh::{
    api::{
        agenda::TaskUpdate,
        approval::{ApprovalView, Choice, DecidedNow},
        command::Refused,
    },
    name::id::{MessageId, RoomId},
    wire::tasks::TaskStatus,
};
use serde_json::{Value, json};

use super::{
    ask::Ask,
    conversing::say_unjudged,
    party::Party,
    seat::{Place, Seat, Then},
};
use crate::{
    delivery::hook::Hook,
    seam::{
        call::{
            Call, Changed, Decide, Deciding, OneMessage, RequestApproval, Requested, Say,
            ToMesh as _, Want,
        },
        refusal::Refusal,
    },
};

/// Characters of the thing in the message of a decision.
const SHOWN_MAX: usize = 200;

impl Ask for RequestApproval {
    fn begin(self, seat: &mut Seat, then: Then<<RequestApproval as Call>::Answer>) {
        let RequestApproval { mut say, terms } = self;
        if let Err(broken) = terms.check() {
            return then(seat, Err(broken.into()));
        }
        let room = say.room;
        seat.look_up(Some(room), then, move |seat, me, then| {
            let facts = seat.rules.readable(&me, room).ok();
            if facts.as_ref().is_some_and(|facts| facts.encrypted) {
                // The thing would be in the room's log for all to read.
                return then(seat, Err(Refusal::Mesh(Refused::Plaintext)));
            }
            if facts.as_ref().is_some_and(|facts| facts.ephemeral) {
                return then(seat, Err(Refusal::Mesh(Refused::NotDurable)));
            }
            if facts.is_some_and(|facts| facts.access.sides.is_some()) {
                // It is a question of its own, and no answer to one that is open.
                (say.expects_reply, say.counted) = (Some(true), false);
            }
            say.begin(
                seat,
                Box::new(move |seat, said| match said {
                    Ok(said) => {
                        let want = Want { room, message: said.message, terms };
                        let told = move |seat: &mut Seat, approval: Result<_, Refusal>| {
                            then(seat, approval.map(|approval| Requested { said, approval }));
                        };
                        seat.put(&me, want, Box::new(told));
                    }
                    Err(refusal) => then(seat, Err(refusal)),
                }),
            );
        });
    }
}

impl Ask for Decide {
    fn begin(self, seat: &mut Seat, then: Then<Box<DecidedNow>>) {
        let room = self.room;
        seat.look_up(Some(room), then, move |seat, me, then| {
            let (choice, reason) = (self.choice, self.reason.clone());
            let by = me.clone();
            let told: Then<Box<DecidedNow>> = Box::new(move |seat, decided| match decided {
                Ok(now) if now.granted => tell(seat, &by, (choice, reason), (now, then)),
                other => then(seat, other),
            });
            seat.put(&me, Deciding(self), told);
        });
    }
}

/// Says in the room how it was decided, and moves the task that it is for. It is decided whatever becomes of that: the agent is
/// told by an event, too.
fn tell(
    seat: &mut Seat,
    me: &Arc<Party>,
    (choice, reason): (Choice, Option<String>),
    (now, then): (Box<DecidedNow>, Then<Box<DecidedNow>>),
) {
    let say = said_of(&now.approval, choice, reason.as_deref());
    let by = me.clone();
    let said = move |seat: &mut Seat, _| move_task(seat, &by, choice, (now, then));
    say_unjudged(seat, me, say, Box::new(said));
}

/// A task that is in review, and of which its holder has asked for approval, goes on as that was decided.
fn move_task(
    seat: &mut Seat,
    me: &Arc<Party>,
    choice: Choice,
    (now, then): (Box<DecidedNow>, Then<Box<DecidedNow>>),
) {
    let status = match choice {
        Choice::Approve | Choice::Always => TaskStatus::Completed,
        Choice::Change => TaskStatus::InProgress,
        Choice::Deny | Choice::Withdraw => return then(seat, Ok(now)),
    };
    let me = me.clone();
    let asked = OneMessage { room: now.approval.room, message: now.approval.id };
    seat.ask(asked, move |seat, found| {
        let task =
            found.ok().flatten().and_then(|message| task_of(message.said.metadata.as_deref()?));
        let Some(task) = task else { return then(seat, Ok(now)) };
        let update = TaskUpdate {
            status: Some(status),
            // Of what is another one's, or goes on already, nobody was asked.
            if_status: Some(TaskStatus::InReview),
            if_assignee: Some(Some(now.approval.by.clone())),
            ..TaskUpdate::of(task)
        };
        // Who may decide may do so: the key was looked at before.
        match Changed(update).command(&me) {
            Ok(command) => seat.send(command, Hook::None, Place::Any, move |seat, _| {
                then(seat, Ok(now));
            }),
            Err(_) => then(seat, Ok(now)),
        }
    });
}

/// The task that the metadata of a request names.
fn task_of(metadata: &str) -> Option<MessageId> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    MessageId::from_uuid(metadata["approval"]["task_id"].as_str()?)
}

fn said_of(approval: &ApprovalView, choice: Choice, reason: Option<&str>) -> Say {
    let word = match choice {
        Choice::Approve => "approved",
        Choice::Always => "always",
        Choice::Deny => "denied",
        Choice::Change => "changes",
        Choice::Withdraw => "withdrawn",
    };
    let text: String = approval.text.chars().take(SHOWN_MAX).collect();
    let why = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    let (id, room): (MessageId, RoomId) = (approval.id, approval.room);
    let mut decision = json!({"id": id.to_uuid(), "decision": word});
    if let Some(reason) = reason {
        decision["reason"] = json!(reason);
    }
    let metadata = json!({"kind": "approval_decision", "approval": decision});
    Say {
        reply_to: Some(id.to_uuid()),
        mentions: vec![approval.by.to_string()],
        metadata: Some(metadata.to_string()),
        counted: false,
        ..Say::chat(room, format!("[approval] {word}: {text}{why}"))
    }
}
