//! Gemini CLI. Tried with 0.61.0 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `gemini mcp list`
//! has the server, and connects to it in a folder that is trusted; `gemini skills list` has the skill. Its settings may have
//! comments, and no commas at the end. Its hooks have events of their own and are given `GEMINI_PROJECT_DIR`, the directory in
//! which servers of tools are started, too. None of them waits beside an idle session.

use serde_json::{Value, json};

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "hooks: when a session or a turn begins, and when a turn ends";

/// Milliseconds in which a hook ends in any case.
const HOOK_MILLIS: u64 = 10_000;

pub(super) fn setup(place: &Place) -> Setup {
    let folder = place.project.as_ref().unwrap_or(&place.home).join(".gemini");
    let program = &place.program;
    let server = Entry {
        within: vec!["mcpServers".to_owned()],
        key: Some("mesh".to_owned()),
        value: json!({"command": program.command, "args": program.arguments()}),
    };
    let skill = folder.join("skills").join("clawmesh").join("SKILL.md");
    let pieces = vec![
        Piece {
            file: folder.join("settings.json"),
            part: Part::Relaxed([vec![server], hooks(place)].concat()),
        },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let then = [
        "the next session has the tools of the mesh, in folders that gemini was told to trust",
        "it is told of unread messages when a session or a turn begins, and when a turn ends; nothing wakes it while it is idle",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}

fn hooks(place: &Place) -> Vec<Entry> {
    // Where the session was started: a session can go elsewhere. Gemini CLI puts the path there itself, and in quotes where it
    // needs them, so there are none here.
    let line = place.program.line(&["inbox", "--hook"]);
    let hook: Value = json!({
        "name": "clawmesh",
        "type": "command",
        "command": format!("cd $GEMINI_PROJECT_DIR && {line}"),
        "timeout": HOOK_MILLIS,
    });
    let of = |event: &str| Entry {
        within: vec!["hooks".to_owned(), event.to_owned()],
        key: None,
        value: json!({ "hooks": [hook] }),
    };
    ["SessionStart", "BeforeAgent", "AfterAgent"].map(of).into()
}
