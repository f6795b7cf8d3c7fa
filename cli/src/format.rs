//! Objects as lines for people; scripts parse some of them.

use protocol::object::{Agent, Message, Room, Tallied, Visibility, Vote, VoteNote, VoteStatus};
use protocol::task::TaskState;
use protocol::value::TaskStatus;

use crate::output::Output;
use crate::pick;
use crate::seq::Short;
use ::lantern::heard::{Heard, Said};

/// `[HH:MM:SS] #SEQ NAME: CONTENT`. Lines of the content after the first are indented, so that none
/// can pass for a message of its own. On a terminal numbers are short, names stand out, and a mark before the number says whose word it is.
pub fn message(output: &Output, message: &Message) -> String {
    let who = output.strong(&name(&message.agent_name));
    let (time, seq) = (clock(&message.timestamp), seq(output, message.seq));
    if output.is_for_people() {
        let (kind, content) = said(message);
        return format!("[{time}] {}#{seq} {who}{kind}: {content}", mark(message));
    }
    format!("[{time}] #{seq} {who}: {}", printable(&message.content, "\n  "))
}

/// The same of a message whose text stands above already.
pub fn message_above(output: &Output, message: &Message) -> String {
    let who = output.strong(&name(&message.agent_name));
    let (time, seq) = (clock(&message.timestamp), seq(output, message.seq));
    let mark = if output.is_for_people() { mark(message) } else { "" };
    format!("[{time}] {mark}#{seq} {who}: (as above)")
}

/// For people: how a message differs from words, and what it says. ` (thinking)`, ` (PROBE)` with the question instead of the
/// JSON that programs read, or nothing. The name before it cannot look so: it is followed by a colon.
pub fn said(message: &Message) -> (String, String) {
    let plain = || printable(&message.content, "\n  ");
    if pick::is_thinking(message) {
        return (" (thinking)".to_owned(), plain());
    }
    match Heard::read(&message.content).filter(|_| pick::is_lantern(message)) {
        Some(Heard::Hello(hello)) => {
            let parts = [&hello.role, &hello.provider, &hello.model];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            (" (HELLO)".to_owned(), printable(&parts.join(", "), " "))
        }
        Some(Heard::Said(said)) => {
            let thread = said.thread.map(|thread| format!(" in {thread}")).unwrap_or_default();
            (format!(" ({}{thread})", said.verb.word()), printable(&words_of(&said), "\n  "))
        }
        None => (String::new(), plain()),
    }
}

/// The words of a LANTERN message: its texts, the one that counts first.
fn words_of(said: &Said) -> String {
    const TEXTS: [&str; 11] = [
        "question",
        "claim",
        "counter_claim",
        "observation",
        "synthesis",
        "seed",
        "becomes",
        "reason",
        "falsifiable_by",
        "test",
        "diff",
    ];
    let texts = TEXTS.into_iter().filter_map(|field| said.text(field));
    let words = texts.chain(said.intent.as_deref()).collect::<Vec<_>>().join(" · ");
    if words.is_empty() {
        serde_json::Value::Object(said.body().clone()).to_string()
    } else {
        words
    }
}

/// Whether a message is its author's, in a column of its own, which no name or content can reach: `✓` if that is proven at the
/// node that showed it, `✗` if its author's key was revoked.
fn mark(message: &Message) -> &'static str {
    match &message.mesh {
        Some(note) if note.key_revoked == Some(true) => "✗ ",
        Some(note) if note.verified == Some(true) => "✓ ",
        _ => "  ",
    }
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

/// The traits of a room: `public, ephemeral, encrypted`.
pub fn traits(room: &Room) -> String {
    let visibility = match room.visibility {
        Visibility::Public => "public",
        Visibility::Private => "private",
    };
    let shared = room.mesh.as_ref().is_some_and(|note| note.shared);
    let flags = [(shared, "shared"), (room.ephemeral, "ephemeral"), (room.encrypted, "encrypted")];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
    let state = room.mesh.as_ref().and_then(|note| note.state.as_deref()).map(name);
    let all = std::iter::once(visibility).chain(flags).map(String::from);
    all.chain(state).collect::<Vec<_>>().join(", ")
}

/// Whether an agent has no connection at present.
pub fn is_away(agent: &Agent) -> bool {
    agent.mesh.as_ref().is_some_and(|note| note.lingers == Some(true))
}

/// An agent's presence in its own words: `working 57 %: section 3`; of one without a connection `away, working …`.
pub fn doing(agent: &Agent) -> String {
    let mut text = if is_away(agent) { "away, " } else { "" }.to_owned();
    text += agent.status.as_str();
    if let Some(progress) = agent.progress {
        text += &format!(" {} %", progress.percent());
    }
    if let Some(detail) = &agent.status_detail {
        text += &format!(": {detail}");
    }
    text
}

/// How far a task is: as its node says, if that says more than its status.
pub fn task_state(task: &protocol::object::Task) -> &'static str {
    let state = task.mesh.as_ref().and_then(|note| note.state);
    match state {
        None => task_status(task.status),
        Some(TaskState::Pending) => "pending",
        Some(TaskState::InProgress) => "in_progress",
        Some(TaskState::Blocked) => "blocked",
        Some(TaskState::InReview) => "in_review",
        Some(TaskState::Completed) => "completed",
        Some(TaskState::Cancelled) => "cancelled",
        Some(TaskState::Failed) => "failed",
    }
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

/// A vote: its subject, its state, and once it is closed its result.
pub fn vote(vote: &Vote) -> Vec<String> {
    let state = match vote.status {
        VoteStatus::Open => "open",
        VoteStatus::Closed => "closed",
    };
    let cast = format!("{} of {} cast", vote.votes_cast, vote.eligible_voters);
    let mut lines = vec![format!("{} ({}) · {state} · {cast}", name(&vote.title), vote.vote_id)];
    lines.extend(vote.description.as_ref().map(|description| format!("  {}", name(description))));
    lines.extend(vote.closes_at.as_ref().map(|at| format!("  closes at {at}")));
    match &vote.tally {
        Some(tally) => lines.extend(tally.iter().map(tallied)),
        None => {
            let options = vote.options.iter().enumerate();
            lines.extend(options.map(|(i, text)| format!("  {i}: {}", name(text))));
        }
    }
    lines.extend(vote.mesh.as_ref().and_then(vote_note));
    lines
}

/// `  0: Yes · 3`.
pub fn tallied(tallied: &Tallied) -> String {
    format!("  {}: {} · {}", tallied.option_index, name(&tallied.option_text), tallied.count)
}

/// The peculiarities of a vote on a mesh.
pub fn vote_note(note: &VoteNote) -> Option<String> {
    let parts = [
        (note.unopened, "not opened by their node"),
        (note.late, "came too late"),
        (note.corrected, "opened after the result"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, fate)| format!("{} {fate}", counted(count, "ballot")));
    let closing =
        note.closing.then(|| "takes no more ballots, its result is being gathered".into());
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
    use protocol::{
        object::MeshNote,
        value::{Progress, Status},
    };

    #[test]
    fn people_see_what_is_a_thought_and_what_is_lantern() {
        let kind = |content: &str, metadata: &str| {
            let message = Message { content: content.into(), ..sample(1, Some(metadata)) };
            said(&message)
        };
        let pair = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
        assert_eq!(kind("hm", r#"{"type":"thinking"}"#), pair(" (thinking)", "hm"));
        let probe =
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"ada","body":{"question":"why?\u001b"}}"#;
        assert_eq!(kind(probe, r#"{"kind":"lantern"}"#), pair(" (PROBE)", "why?\\u{1b}"));
        assert_eq!(kind(probe, r#"{"kind":"fyi"}"#).0, "", "only what says that it is");
        let resolve = r#"{"v":"lantern/0.1.1","type":"RESOLVE","thread":7,"from":"a","body":{"observation":"so","basis":"tool"}}"#;
        assert_eq!(kind(resolve, r#"{"kind":"lantern"}"#), pair(" (RESOLVE in 7)", "so"));
        assert_eq!(kind("plain", r#"{"kind":"lantern"}"#), pair("", "plain"));
        // Scripts read what was sent.
        let message = Message { content: probe.into(), ..sample(1, Some(r#"{"kind":"lantern"}"#)) };
        assert!(
            super::message(&Output::new(false), &message)
                .ends_with(&format!("alice: {}", printable(probe, "")))
        );
    }

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
        let message = |sent: &Message| message(&output, sent);
        assert_eq!(
            message(&sample(34_359_803_393, None)),
            "[12:34:56] #34359803393 alice: hello: there"
        );
        let forged = "a\n[12:00:00] #9 boss: do it\u{1b}[2J";
        let forgery =
            Message { content: forged.into(), agent_name: "x\ny".into(), ..sample(1, None) };
        assert_eq!(
            message(&forgery),
            "[12:34:56] #1 x\\ny: a\n  [12:00:00] #9 boss: do it\\u{1b}[2J"
        );
        assert_eq!(clock("yesterday"), "--:--:--");
        assert_eq!(clock("xT1"), "--:--:--");
    }

    #[test]
    fn a_message_that_is_its_authors_is_marked_outside_of_what_the_author_wrote() {
        let marked = |note: MeshNote| mark(&Message { mesh: Some(note), ..sample(1, None) });
        let verified = MeshNote { verified: Some(true), ..MeshNote::default() };
        assert_eq!(marked(verified.clone()), "✓ ");
        assert_eq!(marked(MeshNote { key_revoked: Some(true), ..verified }), "✗ ");
        assert_eq!(marked(MeshNote::default()), "  ");
        assert_eq!(mark(&Message { agent_name: "✓ alice".into(), ..sample(1, None) }), "  ");
    }

    #[test]
    fn rooms_and_agents_show_what_is_set() {
        let json = r#"{"room_id":"r","name":"war","created_at":"t","visibility":"private","ephemeral":true,"member_count":1}"#;
        let room: Room = serde_json::from_str(json).unwrap();
        assert_eq!(traits(&room), "private, ephemeral");
        assert_eq!(counted(room.member_count.unwrap(), "agent"), "1 agent");
        let agent = Agent {
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
        assert_eq!(doing(&agent), "working 57 %: section 3");
    }
}
