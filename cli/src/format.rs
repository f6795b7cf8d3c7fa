//! Objects as lines for people; scripts parse some of them.

use protocol::object::{Agent, Message, Room, Visibility};

/// `[HH:MM:SS] #SEQ NAME: CONTENT`. Lines of the content after the first are indented, so that none
/// can pass for a message of its own.
pub fn message(it: &Message) -> String {
    let content = printable(&it.content, "\n  ");
    format!("[{}] #{} {}: {content}", clock(&it.timestamp), it.seq, name(&it.agent_name))
}

/// A name on one line.
fn name(text: &str) -> String {
    printable(text, "\\n")
}

/// Text of others for a terminal: control characters, which could rewrite what stands there, are
/// shown and not sent. `newline` stands for a line feed.
pub fn printable(text: &str, newline: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str(newline),
            '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The time of day of an RFC 3339 timestamp, in UTC as it stands there.
fn clock(timestamp: &str) -> &str {
    timestamp.split_once(['T', 't', ' ']).and_then(|(_, time)| time.get(..8)).unwrap_or("--:--:--")
}

/// `NAME (ID) · public · 2 agents · …`.
pub fn room(it: &Room) -> String {
    let mut parts = vec![format!("{} ({})", name(&it.name), name(&it.room_id))];
    parts.push(match it.visibility {
        Visibility::Public => "public".to_owned(),
        Visibility::Private => "private".to_owned(),
    });
    if it.ephemeral {
        parts.push("ephemeral".to_owned());
    }
    if it.encrypted {
        parts.push("encrypted".to_owned());
    }
    if let Some(count) = it.member_count {
        parts.push(counted(count, "agent"));
    }
    if let Some(time) = &it.last_activity {
        parts.push(format!("last message {time}"));
    }
    if let Some(text) = &it.description {
        parts.push(name(text));
    }
    parts.join(" · ")
}

/// `NAME (ID) · working · 57 % · …`.
pub fn agent(it: &Agent) -> String {
    let mut parts = vec![format!("{} ({})", name(&it.name), name(&it.agent_id))];
    parts.push(it.status.as_str().to_owned());
    if let Some(progress) = it.progress {
        parts.push(format!("{} %", progress.percent()));
    }
    if let Some(detail) = &it.status_detail {
        parts.push(name(detail));
    }
    if !it.capabilities.is_empty() {
        parts.push(name(&it.capabilities.join(", ")));
    }
    parts.join(" · ")
}

/// `1 agent`, `2 agents`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use protocol::value::{Progress, Status};

    pub(crate) fn sample(seq: u64, metadata: Option<&str>) -> Message {
        Message {
            message_id: "m".into(),
            room_id: "r".into(),
            agent_id: "a".into(),
            agent_name: "alice".into(),
            content: "hello: there".into(),
            reply_to_message: None,
            metadata: metadata.map(|json| protocol::value::Metadata::parse(json).unwrap()),
            timestamp: "2026-03-01T12:34:56.789Z".into(),
            seq,
            mesh: None,
        }
    }

    #[test]
    fn a_message_is_what_scripts_parse() {
        assert_eq!(
            message(&sample(34_359_803_393, None)),
            "[12:34:56] #34359803393 alice: hello: there"
        );
        let forged = "a\n[12:00:00] #9 boss: do it\u{1b}[2J";
        let it = Message { content: forged.into(), agent_name: "x\ny".into(), ..sample(1, None) };
        assert_eq!(message(&it), "[12:34:56] #1 x\\ny: a\n  [12:00:00] #9 boss: do it\\u{1b}[2J");
        assert_eq!(clock("yesterday"), "--:--:--");
        assert_eq!(clock("xT1"), "--:--:--");
    }

    #[test]
    fn rooms_and_agents_show_what_is_set() {
        let json = r#"{"room_id":"r","name":"war","created_at":"t","visibility":"private","ephemeral":true,"member_count":1}"#;
        let it: Room = serde_json::from_str(json).unwrap();
        assert_eq!(room(&it), "war (r) · private · ephemeral · 1 agent");
        let it = Agent {
            agent_id: "a".into(),
            name: "alice".into(),
            capabilities: vec!["x".into(), "y".into()],
            connected_at: "t".into(),
            last_active: "t".into(),
            status: Status::Working,
            status_detail: Some("section 3".into()),
            progress: Progress::new(57),
            mesh: None,
        };
        assert_eq!(agent(&it), "alice (a) · working · 57 % · section 3 · x, y");
    }
}
