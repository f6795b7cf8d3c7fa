//! OpenClaw. Tried with 2026.9.6 (from npm, on Node 24): see docs/agents.md, "What was tried, and what was seen". Seen: the entry stands where
//! `openclaw mcp set` puts it (`mcp.servers` of `~/.openclaw/openclaw.json`), `openclaw mcp list` and `openclaw mcp probe` have
//! the server. The file is JSON5, and `openclaw mcp set` prints it anew, so it is edited here as text.
//!
//! Its gateway is started in no directory of its user's, so its agent has an id of its own.

use std::path::PathBuf;

use serde_json::json;

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "[[wake]] of the node, which its operator enters";

pub(super) fn setup(place: &Place) -> Setup {
    let named = std::env::var_os("OPENCLAW_CONFIG_PATH").filter(|path| !path.is_empty());
    let folder = place.folder("OPENCLAW_STATE_DIR", ".openclaw");
    let file = named.map_or_else(|| folder.join("openclaw.json"), PathBuf::from);
    let program = &place.program;
    let server = Entry {
        within: vec!["mcp".to_owned(), "servers".to_owned()],
        key: Some("mesh".to_owned()),
        value: json!({"command": program.command, "args": program.arguments()}),
    };
    let skill = folder.join("skills").join("clawmesh").join("SKILL.md");
    let pieces = vec![
        Piece { file, part: Part::Relaxed(vec![server]) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let then = [
        "openclaw mcp list shows the server mesh; a gateway that runs takes it after openclaw mcp reload",
        "to wake it when messages come, enter in the node's settings file (docs/agents.md):",
        "[[wake]]",
        "agent = \"AGENT_ID\"",
        "url = \"http://127.0.0.1:18789/hooks/wake\"",
        "token-file = \"hooks.token\"  # with the token of hooks.token in openclaw.json, where hooks.enabled is true",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}
