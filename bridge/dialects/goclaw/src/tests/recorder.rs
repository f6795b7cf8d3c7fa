//! A recorder of frames: every result and every event that a test gets is held against the tables of the specification (§6 to
//! §14), whatever else the test looks at.

use serde_json::Value;

use crate::methods::METHODS;

/// The fields of a method's result: each with its type. `s` a text, `n` a number, `b` true or false, `a` a list, `o` an object; `?`
/// after it: it may be left out or null. `[]`: the result is a list.
const RESULTS: &[(&str, &str)] = &[
    (
        "agent",
        "id:s key:s agent_key:s uuid:s name:s display_name:s provider:s model:s agentType:s agent_type:s status:s isRunning:b capabilities:a node:s? online:b own:b",
    ),
    ("agent.identity.get", "agentId:s name:s emoji:s? avatar:s? description:s?"),
    ("agent.wait", "id:s status:s waitedMs:n"),
    ("agents.create", "ok:b agentId:s id:s name:s workspace:s"),
    ("agents.delete", "ok:b agentId:s removedBindings:n"),
    ("agents.files.get", "agentId:s file:o content:s"),
    ("agents.files.list", "agentId:s files:a"),
    ("agents.files.set", "agentId:s file:o propagated:n"),
    ("agents.list", "agents:a"),
    ("agents.update", "ok:b agentId:s"),
    (
        "api_keys.create",
        "id:s name:s prefix:s key:s scopes:a owner_id:s? expires_at:s? created_at:s",
    ),
    ("api_keys.list", "[]"),
    ("api_keys.revoke", "status:s"),
    ("browser.pairing.status", "status:s approved:b"),
    ("channels.instances.create", ""),
    ("channels.instances.delete", "status:s"),
    (
        "channels.instances.get",
        "id:s name:s channel_type:s config:o enabled:b has_credentials:b created_at:s",
    ),
    ("channels.instances.list", "instances:a"),
    ("channels.instances.update", "status:s"),
    ("channels.list", "channels:a"),
    ("channels.status", "channels:o"),
    ("channels.toggle", "channel:s enabled:b"),
    (
        "chat.abort",
        "ok:b aborted:b stopped:b forced:b alreadyAborting:b notFound:b unauthorized:b runIds:a",
    ),
    ("chat.history", "messages:a"),
    ("chat.inject", "ok:b messageId:s"),
    ("chat.send", "runId:s sessionKey:s message_id:s?"),
    ("chat.session.status", "isRunning:b runId:s activity:o?"),
    ("config.apply", "ok:b path:s config:o hash:s restart:b"),
    ("config.get", "config:o hash:s path:s"),
    ("config.patch", "ok:b path:s config:o hash:s restart:b"),
    ("config.schema", "json:o"),
    ("connect", "protocol:n"),
    ("cron.create", "job:o id:s"),
    ("cron.delete", "deleted:b"),
    ("cron.list", "jobs:a status:o"),
    ("cron.run", "ok:b ran:b runSlot:s? reason:s?"),
    ("cron.runs", "entries:a total:n"),
    ("cron.status", "enabled:b jobs:n nextRunAtMs:n? job:o? id:s?"),
    ("cron.toggle", "jobId:s enabled:b"),
    ("cron.update", "job:o id:s"),
    (
        "delegations.get",
        "id:s created_at:s completed_at:s? source_agent_id:s source_agent_key:s target_agent_id:s target_agent_key:s task:s mode:s status:s result:s? error:s? iterations:n duration_ms:n",
    ),
    ("delegations.list", "records:a total:n"),
    ("device.pair.approve", "paired:o"),
    ("device.pair.deny", "denied:b"),
    ("device.pair.list", "pending:a paired:a"),
    ("device.pair.request", "code:s sender_id:s"),
    ("device.pair.revoke", "revoked:b"),
    ("exec.approval.approve", "resolved:b decision:s"),
    ("exec.approval.deny", "resolved:b decision:s"),
    ("exec.approval.list", "pending:a"),
    (
        "health",
        "status:s version:s uptime:n mode:s database:s tools:n clients:a currentId:s droppedEvents:n peers:a",
    ),
    ("logs.tail", "status:s level:s"),
    ("mesh.agent.serve", "agentId:s node:s"),
    ("mesh.run.chunk", "ok:b"),
    ("mesh.run.fail", "ok:b"),
    ("mesh.run.reply", "ok:b"),
    ("mesh.tasks.update", "task:o id:s"),
    ("providers.models", "models:a"),
    (
        "quota.usage",
        "enabled:b requestsToday:n inputTokensToday:n outputTokensToday:n costToday:n uniqueUsersToday:n entries:a",
    ),
    ("run.timeline.get", "items:a"),
    ("send", "ok:b channel:s to:s messageId:s"),
    // Refused, always.
    ("sessions.compact", ""),
    ("sessions.delete", "ok:b"),
    ("sessions.list", "sessions:a total:n limit:n offset:n"),
    ("sessions.patch", "ok:b key:s"),
    ("sessions.preview", "key:s messages:a summary:s"),
    ("sessions.reset", "ok:b"),
    (
        "skills.get",
        "name:s slug:s description:s source:s version:n is_system:b enabled:b agents:a content:s",
    ),
    ("skills.list", "skills:a"),
    ("skills.update", "ok:s"),
    ("status", "agents:a agentTotal:n clients:n sessions:n rooms:n peers:n"),
    ("teams.create", "team:o id:s"),
    ("teams.delete", "ok:b"),
    ("teams.events.list", "events:a count:n"),
    ("teams.get", "team:o members:a id:s"),
    ("teams.known_users", "users:a"),
    ("teams.list", "teams:a count:n"),
    ("teams.members.add", "ok:b"),
    ("teams.members.remove", "ok:b"),
    ("teams.scopes", "scopes:a"),
    ("teams.tasks.active-by-session", "tasks:a"),
    ("teams.tasks.approve", "ok:b task:o"),
    ("teams.tasks.assign", "ok:b task:o"),
    ("teams.tasks.comment", "ok:b id:s"),
    ("teams.tasks.comments", "comments:a"),
    ("teams.tasks.create", "task:o id:s"),
    ("teams.tasks.delete", "ok:b"),
    ("teams.tasks.delete-bulk", "deleted:n"),
    ("teams.tasks.events", "events:a"),
    ("teams.tasks.get", "task:o id:s comments:a events:a attachments:a"),
    ("teams.tasks.get-light", "task:o"),
    ("teams.tasks.list", "tasks:a count:n"),
    ("teams.tasks.reject", "ok:b task:o"),
    ("teams.update", "ok:b"),
    ("teams.workspace.delete", "deleted:"),
    ("teams.workspace.list", "files:a count:n"),
    ("teams.workspace.read", "file:o content:s"),
    ("teams.workspace.write", "file:o"),
    ("usage.get", "records:a total:n limit:n offset:n"),
    ("usage.summary", "byAgent:o totalRecords:n"),
];

/// The rows of lists, and objects in results: by the name of their field.
const ROWS: &[(&str, &str)] = &[
    ("task", TASK),
    ("tasks", TASK),
    ("team", TEAM),
    ("teams", TEAM),
    (
        "comments",
        "id:s task_id:s agent_id:s? agent_key:s? user_id:s? content:s comment_type:s created_at:s",
    ),
    (
        "messages",
        "id:s role:s content:s sender_id:s sender_name:s created_at:s thinking:s? media_refs:a? run_id:s?",
    ),
    (
        "sessions",
        "key:s session_key:s label:s model:s metadata:o created:s updated:s messageCount:n userID:s user_id:s channel:s agent_id:s agentName:s provider:s inputTokens:n input_tokens:n outputTokens:n output_tokens:n",
    ),
    ("job", JOB),
    ("jobs", JOB),
    ("entries", ""),
    ("pending", ""),
    ("skills", "name:s slug:s description:s source:s version:n is_system:b enabled:b agents:a"),
    ("usage", "prompt_tokens:n completion_tokens:n total_tokens:n input_tokens:n output_tokens:n"),
];

const TASK: &str = "id:s team_id:s subject:s description:s status:s owner_agent_id:s? owner_agent_key:s? priority:n task_number:n identifier:s progress_percent:n progress_step:s blocked_by:a created_by_agent_id:s task_type:s comment_count:n attachment_count:n created_at:s updated_at:s";
const TEAM: &str = "id:s name:s description:s status:s lead_agent_id:s? lead_agent_key:s? settings:o created_by:s? created_at:s member_count:n tenant_id:s mesh:o";
const JOB: &str = "id:s name:s userId:s enabled:b schedule:o payload:o state:o createdAtMs:n updatedAtMs:n deleteAfterRun:b stateless:b deliver:b wakeHeartbeat:b mesh:o";

/// The payloads of events. `session.`: those whose names begin so.
const EVENTS: &[(&str, &str)] = &[
    ("agent", "type:s agentId:s runId:s sessionKey:s channel:s userId:s payload:o"),
    ("agent.updated", "agentId:s agent_key:s name:s changes:"),
    ("chunk", "content:s runId:s agentId:s sessionKey:s"),
    ("cron", CRON),
    ("cron.fired", CRON),
    ("delegation.", "id:s status:s"),
    ("device.pair.", ""),
    ("exec.approval.pending", "id:s command:s agentId:s createdAt:n teamId:s"),
    ("exec.approval.requested", "id:s command:s agentId:s createdAt:n teamId:s"),
    ("exec.approval.resolved", "id:s decision:s by:s?"),
    ("health", "status:s"),
    ("log", "timestamp:s time:s level:s message:s source:s"),
    ("mesh.cancel", "runId:s"),
    ("mesh.request", "runId:s sessionKey:s from:s message:s roomId:s"),
    ("presence", "agents:o"),
    ("run.completed", "content:s runId:s agentId:s sessionKey:s"),
    ("run.started", "runId:s agentId:s sessionKey:s"),
    ("session.updated", "sessionKey:s label:s userId:s"),
    ("shutdown", ""),
    ("team.member.", "team_id:s team_name:s agent_key:s"),
    (
        "team.message.sent",
        "team_id:s from_agent_key:s to_agent_key:s message_type:s preview:s message_id:s seq:n",
    ),
    (
        "team.task.",
        "team_id:s task_id:s task_number:n subject:s status:s timestamp:s actor_type:s actor_id:s?",
    ),
    ("team.", "team_id:s team_name:s"),
    ("tick", "ts:n"),
    ("tool.call", "id:s name:s toolName:s runId:s agentId:s sessionKey:s"),
    ("tool.result", "id:s name:s toolName:s is_error:b runId:s agentId:s sessionKey:s"),
];

const CRON: &str = "action:s jobId:s jobName:s userId:s slot:s node:s status:s? error:s?";

/// Whether a value has these fields.
fn has(what: &str, value: &Value, fields: &str) {
    if fields == "[]" {
        assert!(value.is_array(), "{what} is no list: {value}");
        return;
    }
    assert!(value.is_object(), "{what} is no object: {value}");
    for field in fields.split_whitespace() {
        let (name, kind) = field.split_once(':').unwrap();
        let (kind, optional) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
        let found = &value[name];
        if optional && found.is_null() {
            continue;
        }
        let is = match kind {
            "s" => found.is_string(),
            "n" => found.is_number(),
            "b" => found.is_boolean(),
            "a" => found.is_array(),
            "o" => found.is_object(),
            _ => value.get(name).is_some(),
        };
        assert!(is, "{what}: {name} is not {kind:?}: {value}");
    }
}

/// Holds a result against the table, and what it is made of.
pub(super) fn result(method: &str, result: &Value) {
    let row = RESULTS.iter().find(|(name, _)| *name == method);
    let (_, fields) = row.unwrap_or_else(|| panic!("{method} has no row in the table"));
    has(method, result, fields);
    for (name, fields) in ROWS {
        let rows = match &result[name] {
            Value::Array(rows) => rows.as_slice(),
            one @ Value::Object(_) => std::slice::from_ref(one),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        for row in rows.iter().filter(|row| row.is_object()) {
            has(&format!("{method}: {name}"), row, fields);
        }
    }
}

/// Holds an event against the table.
pub(super) fn event(frame: &Value) {
    assert!(frame["seq"].as_u64() >= Some(1), "{frame}");
    let name = frame["event"].as_str().unwrap();
    let fits =
        |row: &&(&str, &str)| row.0 == name || (row.0.ends_with('.') && name.starts_with(row.0));
    let row = EVENTS.iter().find(fits);
    let (_, fields) = row.unwrap_or_else(|| panic!("{name} has no row in the table"));
    has(name, &frame["payload"], fields);
    let counts = matches!(name, "presence" | "health");
    assert_eq!(frame["stateVersion"].is_object(), counts, "{frame}");
}

#[test]
fn each_method_and_no_other_has_a_row() {
    let rows = |name: &str| RESULTS.iter().filter(|row| row.0 == name).count();
    for method in METHODS {
        assert_eq!(rows(method.name), 1, "{}", method.name);
    }
    let known = |name: &str| name == "connect" || METHODS.iter().any(|it| it.name == name);
    assert!(RESULTS.iter().all(|(name, _)| known(name)));
}

#[test]
#[should_panic(expected = "total is not \"n\"")]
fn a_result_without_a_field_of_the_table_is_found() {
    result("usage.get", &serde_json::json!({"records": [], "total": "1"}));
}
