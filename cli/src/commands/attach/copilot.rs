//! Copilot CLI. Tried with 1.0.102 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `copilot mcp list`
//! has the server, `copilot skill list` the skill. No session was run: it wants an account.

use serde_json::json;

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "inbox_wait alone";

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
    let pieces = vec![
        Piece { file: folder.join("mcp-config.json"), part: Part::Strict(vec![server]) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let then = [
        "the next session has the tools of the mesh (copilot mcp list shows the server mesh)",
        "nothing wakes it yet: ask it to call inbox_wait, or give it clawmesh inbox --wait to run",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}
