//! Copilot CLI. Tried with 1.0.102 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `copilot mcp list`
//! has the server, `copilot skill list` the skill. Seen with a model of one's own, without an account: hooks of
//! `~/.copilot/hooks` are run in the project; their events have the names of Claude Code's, and their answers a form of their own.
//! An extension of some lines waits beside a session and begins a turn in it; extensions are taken with `--experimental` alone.

use serde_json::{Value, json};

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "hooks: when a session or a turn begins, and when a turn ends; with --experimental an open session begins a turn";

/// Seconds in which a hook ends in any case.
const HOOK_SECS: u64 = 10;

pub(super) fn setup(place: &Place) -> Setup {
    let folder = place.folder("COPILOT_HOME", ".copilot");
    let program = &place.program;
    let server = Entry {
        within: vec!["mcpServers".to_owned()],
        key: Some("mesh".to_owned()),
        // As `copilot mcp add` writes it.
        value: json!({"type": "local", "command": program.command, "args": program.arguments(), "tools": ["*"]}),
    };
    let skill = folder.join("skills").join("clawmesh").join("SKILL.md");
    let extension = folder.join("extensions").join("clawmesh").join("extension.mjs");
    let script = program.script(include_str!("copilot.mjs"));
    let pieces = vec![
        Piece { file: folder.join("hooks").join("clawmesh.json"), part: Part::Whole(hooks(place)) },
        Piece { file: folder.join("mcp-config.json"), part: Part::Strict(vec![server]) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
        Piece { file: extension, part: Part::Whole(script) },
    ];
    let then = [
        "the next session has the tools of the mesh (copilot mcp list shows the server mesh)",
        "it is told of unread messages when a session or a turn begins, and when a turn ends",
        "a message that comes while a session is open begins a turn, if it was started with --experimental (which extensions need)",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}

/// A file of their own, among those of the user's.
fn hooks(place: &Place) -> String {
    let line = place.program.line(&["inbox", "--hook=copilot"]);
    let hook = json!([{"type": "command", "bash": line, "timeoutSec": HOOK_SECS}]);
    let events = ["SessionStart", "UserPromptSubmit", "Stop"];
    let hooks: Value = events.into_iter().map(|event| (event.to_owned(), hook.clone())).collect();
    format!("{:#}\n", json!({"version": 1, "hooks": hooks}))
}
