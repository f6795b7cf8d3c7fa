//! Cursor's CLI. **Not tried**: it is in none of the registries that can be reached where this was written. What is written
//! follows Cursor's documentation of `mcp.json` and `hooks.json` (version 1 of hooks): servers of tools are the same for its
//! editor and its CLI; the hook `sessionStart` may add to a session's context, and `stop` may have a follow-up, of which Cursor
//! allows five in a row. The texts are tested, not what Cursor does with them.
//!
//! Its hooks run in the project or beside its configuration, so its agent has an id of its own.

use serde_json::json;

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "hooks: when a session begins, and when a turn ends (not tried)";

pub(super) fn setup(place: &Place) -> Setup {
    let folder = place.project.as_ref().unwrap_or(&place.home).join(".cursor");
    let program = &place.program;
    let server = Entry {
        within: vec!["mcpServers".to_owned()],
        key: Some("mesh".to_owned()),
        value: json!({"command": program.command, "args": program.arguments()}),
    };
    let hooks = folder.join("hooks.json");
    // Its users' files have it, too; of another version nothing is known.
    let version = Entry { within: Vec::new(), key: Some("version".to_owned()), value: json!(1) };
    let tell = json!({"command": program.line(&["inbox", "--hook"])});
    let of = |event: &str| Entry {
        within: vec!["hooks".to_owned(), event.to_owned()],
        key: None,
        value: tell.clone(),
    };
    let entries = [vec![version], ["sessionStart", "stop"].map(of).into()].concat();
    let skill = folder.join("skills").join("clawmesh").join("SKILL.md");
    let pieces = vec![
        Piece { file: folder.join("mcp.json"), part: Part::Strict(vec![server]) },
        Piece { file: hooks, part: Part::Strict(entries) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let then = [
        "the next session has the tools of the mesh (cursor-agent mcp list shows the server mesh)",
        "it is told of unread messages when a session begins and when a turn ends, as Cursor documents it: nobody has tried it yet",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}
