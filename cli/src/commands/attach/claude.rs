//! Claude Code. Tried with 2.1.332 (from npm, a stub in place of the model's server): see docs/agents.md, "What was tried".
//! Seen: `claude mcp list` connects to the server of `~/.claude.json`; of a `.mcp.json` it asks its user first, and takes no
//! comments there. Hooks are run with `CLAUDE_PROJECT_DIR`, the directory in which servers of tools are started, too, so both
//! are one agent wherever the session has gone meanwhile.

use serde_json::{Value, json};

use super::change::{Part, Piece};
use super::json::Entry;
use super::{Place, Setup};

pub(super) const WOKEN: &str = "hooks: when a session or a turn begins, and when a turn ends";

/// Seconds in which a hook ends in any case.
const HOOK_SECS: u64 = 10;

pub(super) fn setup(place: &Place) -> Setup {
    let folder = place.folder("CLAUDE_CONFIG_DIR", ".claude");
    let is_moved = folder != place.home.join(".claude");
    let user_file =
        if is_moved { folder.join(".claude.json") } else { place.home.join(".claude.json") };
    let (servers, settings, skills) = match &place.project {
        Some(project) => {
            let folder = project.join(".claude");
            (project.join(".mcp.json"), folder.join("settings.local.json"), folder)
        }
        None => (user_file, folder.join("settings.json"), folder),
    };
    let skill = skills.join("skills").join("clawmesh").join("SKILL.md");
    let pieces = vec![
        Piece { file: servers, part: Part::Strict(vec![server(place)]) },
        Piece { file: settings, part: Part::Strict(hooks(place)) },
        Piece { file: skill, part: Part::Whole(super::SKILL.to_owned()) },
    ];
    let asks = place.project.is_some().then(|| {
        "claude asks once, in this project, whether the server mesh of .mcp.json may be used: say yes".to_owned()
    });
    let then = [
        "the next session has the tools of the mesh (claude mcp list shows the server mesh)"
            .to_owned(),
        "it is told of unread messages when it begins, with your next prompt, and when a turn ends"
            .to_owned(),
    ];
    Setup { pieces, then: asks.into_iter().chain(then).collect() }
}

fn server(place: &Place) -> Entry {
    let program = &place.program;
    Entry {
        within: vec!["mcpServers".to_owned()],
        key: Some("mesh".to_owned()),
        // As `claude mcp add` writes it.
        value: json!({"type": "stdio", "command": program.command, "args": program.arguments(), "env": {}}),
    }
}

fn hooks(place: &Place) -> Vec<Entry> {
    // Where the session was started: a session can go elsewhere.
    let line =
        format!("cd \"$CLAUDE_PROJECT_DIR\" && {}", place.program.line(&["inbox", "--hook"]));
    let hook = json!({"type": "command", "command": line, "timeout": HOOK_SECS});
    let of = |event: &str| Entry {
        within: vec!["hooks".to_owned(), event.to_owned()],
        key: None,
        value: json!({"hooks": [Value::clone(&hook)]}),
    };
    ["SessionStart", "UserPromptSubmit", "Stop"].map(of).into()
}
