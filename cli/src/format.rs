//! Objects as lines for people; scripts parse some of them.

use protocol::object::{Agent, Message, Room, Tallied, Visibility, Vote, VoteNote, VoteStatus};
use protocol::value::TaskStatus;

use crate::output::Output;
use crate::seq::Short;

/// `[HH:MM:SS] #SEQ NAME: CONTENT`. Lines of the content after the first are indented, so that none
/// can pass for a message of its own. On a terminal numbers are short, and names stand out.
pub fn message(output: &Output, it: &Message) -> String {
    let content = printable(&it.content, "\n  ");
    let who = output.strong(&name(&it.agent_name));
    format!("[{}] #{} {who}: {content}", clock(&it.timestamp), seq(output, it.seq))
}

/// A number: short for people, the integer for programs.
pub fn seq(output: &Output, seq: u64) -> String {
    if output.is_for_people() { Short(seq).to_string() } else { seq.to_string() }
}

/// A name on one line.
pub fn name(text: &str) -> String {
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
pub fn clock(timestamp: &str) -> &str {
    timestamp.split_once(['T', 't', ' ']).and_then(|(_, time)| time.get(..8)).unwrap_or("--:--:--")
}

/// What is special about a room: `public, ephemeral, encrypted`.
pub fn traits(it: &Room) -> String {
    let visibility = match it.visibility {
        Visibility::Public => "public",
        Visibility::Private => "private",
    };
    let flags = [(it.ephemeral, "ephemeral"), (it.encrypted, "encrypted")];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
    std::iter::once(visibility).chain(flags).collect::<Vec<_>>().join(", ")
}

/// What an agent says that it is doing: `working 57 %: section 3`.
pub fn doing(it: &Agent) -> String {
    let mut text = it.status.as_str().to_owned();
    if let Some(progress) = it.progress {
        text += &format!(" {} %", progress.percent());
    }
    if let Some(detail) = &it.status_detail {
        text += &format!(": {detail}");
    }
    text
}

/// How far a task is, as it stands on the wire.
pub fn task_status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in_progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Blocked => "blocked",
    }
}

/// A vote: what it is about, how far it is, and once it is closed what came of it.
pub fn vote(it: &Vote) -> Vec<String> {
    let state = match it.status {
        VoteStatus::Open => "open",
        VoteStatus::Closed => "closed",
    };
    let cast = format!("{} of {} cast", it.votes_cast, it.eligible_voters);
    let mut lines = vec![format!("{} ({}) · {state} · {cast}", name(&it.title), it.vote_id)];
    lines.extend(it.description.as_ref().map(|it| format!("  {}", name(it))));
    lines.extend(it.closes_at.as_ref().map(|at| format!("  closes at {at}")));
    match &it.tally {
        Some(tally) => lines.extend(tally.iter().map(tallied)),
        None => {
            let options = it.options.iter().enumerate();
            lines.extend(options.map(|(i, text)| format!("  {i}: {}", name(text))));
        }
    }
    lines.extend(it.mesh.as_ref().and_then(vote_note));
    lines
}

/// `  0: Yes · 3`.
pub fn tallied(it: &Tallied) -> String {
    format!("  {}: {} · {}", it.option_index, name(&it.option_text), it.count)
}

/// What is different about a vote on a mesh.
pub fn vote_note(it: &VoteNote) -> Option<String> {
    let parts = [
        (it.unopened, "not opened by their node"),
        (it.late, "came too late"),
        (it.corrected, "opened after the result"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, what)| format!("{} {what}", counted(count, "ballot")));
    let closing = it.closing.then(|| "takes no more ballots, its result is being gathered".into());
    let parts: Vec<String> = closing.into_iter().chain(parts).collect();
    (!parts.is_empty()).then(|| format!("  on the mesh: {}", parts.join(", ")))
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
        let output = Output::new(true);
        let message = |it: &Message| message(&output, it);
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
        assert_eq!(traits(&it), "private, ephemeral");
        assert_eq!(counted(it.member_count.unwrap(), "agent"), "1 agent");
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
        assert_eq!(doing(&it), "working 57 %: section 3");
    }
}
