//! What the user asked for: the schemas of `seed.json`, taken from there as they were written, for the keywords that are used
//! there; and of types that have no schema but an example, all that it shows.

use std::sync::LazyLock;

use super::*;

static SEED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("seed.json")).unwrap());

/// What examples show and a node does not know: of the claimer's plans, of the resources of a client, of time that nobody has
/// measured, of projects that say nothing of themselves.
const UNKNOWN: [&str; 15] = [
    "connection.heartbeat.current_activity",
    "connection.heartbeat.resource_usage",
    "agent.registered.room_context.project_info",
    "task.claim_accepted.estimated_completion",
    "task.status.time_tracking",
    "task.status.progress",
    "task.completed.time_tracking",
    "task.completed.completion_summary.test_coverage",
    "task.completed.completion_summary.performance_notes",
    "task.completed.deliverables.pull_request",
    "chat.agent_message.content.confidence_level",
    "chat.agent_message.context.in_reply_to",
    "chat.agent_message.context.related_task",
    "chat.agent_message.context.current_activity",
    "room.created.room.project_info",
];

/// Of errors that answer nothing, or are about no field.
const OF_SOME: [&str; 7] = [
    "error.details.field",
    "error.details.reason",
    "error.details.suggestion",
    "error.related_message_id",
    "error.support_info.correlation_id",
    "agent.registered.room_context",
    "connection.ack.features",
];

/// The data of a type's example.
pub(super) fn example(kind: &str) -> Value {
    SEED["examples"][kind]["data"].clone()
}

/// # Panics
/// The frame is not as it was asked for.
pub(super) fn check(frame: &Value) {
    if let Err(why) = judge(frame) {
        panic!("{why}: {frame}");
    }
}

fn judge(frame: &Value) -> Result<(), String> {
    let kind = frame["type"].as_str().unwrap_or_default();
    let is_error = kind == "error";
    // The one type without a dot is the seed's own.
    let envelope = if is_error { "BaseMessage" } else { "Envelope" };
    matches(frame, &SEED["$defs"][envelope], "$")?;
    if let Some(schema) = SEED["events"].get(kind) {
        matches(frame, schema, "$")?;
    }
    if let Some(example) = SEED["examples"].get(kind) {
        shows(&frame["data"], &example["data"], kind)?;
    }
    bare(frame, "$")
}

/// A schema's keywords, those that are used.
fn matches(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Err(format!("{at}: no schema")) };
    for (keyword, rule) in keywords {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" => true,
            "$ref" => {
                let name = rule.as_str().and_then(|to| to.strip_prefix("#/$defs/"));
                let named = name.and_then(|name| SEED["$defs"].get(name));
                matches(value, named.ok_or("no such definition")?, at)?;
                true
            }
            "type" => {
                let types = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                types.iter().any(|kind| is_of(value, kind.as_str().unwrap_or_default()))
            }
            "const" => value == rule,
            "enum" => rule.as_array().is_some_and(|words| words.contains(value)),
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing = names.into_iter().find(|name| value.get(*name).is_none());
                if let Some(name) = missing {
                    return Err(format!("{at}: {name} is missing"));
                }
                true
            }
            "properties" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        matches(value, schema, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (place, value) in value.as_array().into_iter().flatten().enumerate() {
                    matches(value, rule, &format!("{at}[{place}]"))?;
                }
                true
            }
            "maxLength" => {
                let chars = value.as_str().map_or(0, |text| text.chars().count());
                rule.as_u64().is_some_and(|max| chars as u64 <= max)
            }
            "minimum" => {
                value.as_f64().zip(rule.as_f64()).is_some_and(|(value, least)| value >= least)
            }
            "pattern" => {
                fits(value.as_str().unwrap_or_default(), rule.as_str().unwrap_or_default())
            }
            "format" => {
                let text = value.as_str().unwrap_or_default();
                match rule.as_str().unwrap_or_default() {
                    "date-time" => crate::times::parse(text).is_some() && text.contains('T'),
                    "uri" => text.contains(':'),
                    "email" => text.contains('@'),
                    other => panic!("the format {other} is not known here"),
                }
            }
            other => panic!("the keyword {other} is not known here"),
        };
        if !holds {
            return Err(format!("{at}: {keyword} {rule}"));
        }
    }
    Ok(())
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the type {other} is not known here"),
    }
}

/// The patterns of the seed.
fn fits(text: &str, pattern: &str) -> bool {
    match pattern {
        "^[0-9A-HJKMNP-TV-Z]{26}$" => ids::digits(text) == Some(text),
        r"^[a-z_]+\.[a-z_]+$" => crate::envelope::is_kind(text),
        "^[a-f0-9]{40}$" => is_hex(text, 40),
        "^[a-f0-9]{7}$" => is_hex(text, 7),
        other => panic!("the pattern {other} is not known here"),
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// All that an example shows is there, and of the same kind. Lists may be empty.
fn shows(value: &Value, example: &Value, at: &str) -> Result<(), String> {
    let Some(fields) = example.as_object() else {
        let same = std::mem::discriminant(value) == std::mem::discriminant(example);
        return if same { Ok(()) } else { Err(format!("{at}: is of another kind")) };
    };
    for (name, example) in fields {
        let at = format!("{at}.{name}");
        match value.get(name) {
            Some(value) => shows(value, example, &at)?,
            None if UNKNOWN.contains(&&*at) || OF_SOME.contains(&&*at) => {}
            None => return Err(format!("{at}: is missing")),
        }
    }
    Ok(())
}

/// Whatever is called an id of something of the mesh is a bare one.
fn bare(value: &Value, at: &str) -> Result<(), String> {
    // Ids of other dialects, and of what is elsewhere.
    const THEIRS: [&str; 3] = [".mesh", ".pull_request", ".review"];
    const IDS: [&str; 6] = ["id", "room_id", "task_id", "message_id", "user_id", "connection_id"];
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let own = THEIRS.iter().any(|place| at.ends_with(place));
                let is_id = IDS.contains(&&**name) && !own;
                if is_id && value.as_str().is_none_or(|text| ids::digits(text) != Some(text)) {
                    return Err(format!("{at}.{name}: is no bare id"));
                }
                bare(value, &format!("{at}.{name}"))?;
            }
            Ok(())
        }
        Value::Array(values) => values.iter().try_for_each(|value| bare(value, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[test]
fn the_judge_is_strict() {
    let message = json!({
        "id": ulid(1), "type": "chat.human_message", "timestamp": "2026-02-17T21:03:00.123Z",
        "data": {
            "message_id": ulid(2), "room_id": ulid(3), "visibility": "public",
            "author": {"user_id": ulid(4), "display_name": "ada", "type": "human"},
            "content": {"text": "hi"},
        },
    });
    assert_eq!(judge(&message), Ok(()));
    let changes: [(&str, Value); 9] = [
        ("/id", json!(format!("msg_{}", ulid(1)))),
        ("/timestamp", json!("yesterday")),
        ("/data/author/type", json!("robot")),
        ("/data/author", json!({"user_id": ulid(4), "display_name": "ada"})),
        ("/data/visibility", json!("secret")),
        ("/data/content/text", json!("x".repeat(4_001))),
        ("/data/content", json!({"text": "x", "mentions": [{"type": "agent"}]})),
        ("/data/room_id", json!(null)),
        ("/data/message_id", json!(RoomId([2; 16]).to_uuid())),
    ];
    for (place, value) in changes {
        let mut bad = message.clone();
        *bad.pointer_mut(place).unwrap() = value;
        assert!(judge(&bad).is_err(), "{place}");
    }
    let mut ack = SEED["examples"]["connection.ack"].clone();
    ack["id"] = json!(ulid(1));
    ack["data"]["connection_id"] = json!(ulid(1));
    ack["data"]["session_info"]["user_id"] = json!(ulid(1));
    assert_eq!(judge(&ack), Ok(()));
    ack["data"]["limits"].as_object_mut().unwrap().remove("max_message_size");
    assert!(judge(&ack).is_err());
    let names: BTreeSet<&str> = UNKNOWN.into_iter().chain(OF_SOME).collect();
    assert_eq!(names.len(), UNKNOWN.len() + OF_SOME.len());
}
