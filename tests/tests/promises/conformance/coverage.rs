//! Every row of the protocol's tables has a transcript.

use std::collections::BTreeSet;

use protocol::code::Code;

use super::script::{Action, Expected, Script};

/// Requests of clients: the rows of the protocol's table, and the two that stand before it.
const COMMANDS: &[&str] = &[
    "register",
    "ping",
    "create_room",
    "join_room",
    "leave_room",
    "send_message",
    "thinking",
    "get_history",
    "room_tip",
    "list_rooms",
    "list_agents",
    "room_info",
    "set_typing",
    "set_presence",
    "set_profile",
    "get_profile",
    "set_room",
    "create_vote",
    "cast_vote",
    "get_vote_status",
    "list_votes",
    "elect_leader",
    "decline_election",
    "decision",
    "assign_task",
    "update_task",
    "list_tasks",
    "once",
    "subscribe",
    "unsubscribe",
    "list_subscriptions",
    "enable_subscription",
];

/// Events of nodes: the rows of the table of events, and the heartbeat.
const EVENTS: &[&str] = &[
    "message_received",
    "thinking",
    "mention",
    "agent_joined",
    "agent_left",
    "room_created",
    "room_destroyed",
    "typing_indicator",
    "presence_update",
    "turn_changed",
    "vote_created",
    "vote_result",
    "election_started",
    "leader_elected",
    "leader_cleared",
    "decision_made",
    "task_assigned",
    "task_updated",
    "error",
    "ping",
];

/// No client causes these: a failure of the node, and cases that are `ok` in this version.
const NOT_BY_CLIENTS: &[Code] = &[Code::InternalError, Code::AlreadyInRoom];

/// Rows that no transcript shows.
pub(super) fn gaps(scripts: &[Script]) -> Vec<String> {
    let (mut answered, mut pushed) = (BTreeSet::new(), BTreeSet::new());
    let mut refused = BTreeSet::new();
    let mut note_code = |expected: &Expected| {
        let codes = Code::ALL.iter().filter(|code| expected.is_error(code.as_str()));
        refused.extend(codes.map(|code| code.as_str()));
    };
    for script in scripts {
        let mut asked = Vec::new();
        for step in script.steps.iter().filter(|step| step.written) {
            let answer = match &step.action {
                Action::Ask { who, ask } => {
                    asked.push((who, ask.kind.clone()));
                    continue;
                }
                Action::Reply { who, answer } => {
                    let to = asked.iter().position(|(by, _)| *by == who);
                    to.map(|at| (asked.remove(at).1, answer))
                }
                Action::AskUntil { ask, answer, .. } => Some((ask.kind.clone(), answer)),
                Action::Events { expected, .. } => {
                    expected.iter().for_each(&mut note_code);
                    pushed.extend(expected.iter().map(|frame| frame.kind.clone()));
                    continue;
                }
                Action::Agents { .. }
                | Action::Connect { .. }
                | Action::Disconnect { .. }
                | Action::Patience { .. }
                | Action::Raw { .. }
                | Action::Silence { .. }
                | Action::Closed { .. } => continue,
            };
            if let Some((kind, answer)) = answer {
                note_code(answer);
                if answer.kind != "error" {
                    answered.insert(kind);
                }
            }
        }
    }
    let codes = Code::ALL.iter().filter(|code| !NOT_BY_CLIENTS.contains(code));
    let codes = codes.map(|code| code.as_str()).filter(|code| !refused.contains(code));
    let commands = COMMANDS.iter().filter(|command| !answered.contains(**command));
    let events = EVENTS.iter().filter(|event| !pushed.contains(**event));
    let commands = commands.map(|command| format!("the command {command}, answered"));
    let events = events.map(|event| format!("the event {event}"));
    commands.chain(events).chain(codes.map(|code| format!("the code {code}"))).collect()
}
