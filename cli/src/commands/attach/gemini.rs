//! Gemini CLI. Tried with 0.61.0 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `gemini mcp list`
//! has the server, and connects to it in a folder that is trusted; `gemini skills list` has the skill. Its settings may have
//! comments, and no commas at the end. Its hooks have events of their own, so none is written.

use serde_json::json;

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "inbox_wait alone";

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
        Piece { file: folder.join("settings.json"), part: Part::Relaxed(vec![server]) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let then = [
        "the next session has the tools of the mesh, in folders that gemini was told to trust",
        "nothing wakes it yet: ask it to call inbox_wait, or give it clawmesh inbox --wait to run",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}
