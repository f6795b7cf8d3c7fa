//! Claude Code. Tried with 2.1.332 (from npm, a stub in place of the model's server): see docs/agents.md, "What was tried, and what was seen".
//! Seen: `claude mcp list` connects to the server of `~/.claude.json`; of a `.mcp.json` it asks its user first, and takes no
//! comments there. Hooks are run with `CLAUDE_PROJECT_DIR`, the directory in which servers of tools are started, too, so both
//! are one agent wherever the session has gone meanwhile. A hook with `asyncRewake` whose program ends with 2 begins a turn in
//! an idle session; each end of a turn starts another, and all end with the session. The program of 2.1.197 has
//! the word, too, and was not run. A version that has not would wait for the hook: it is written only where it is known.

use serde_json::{Value, json};

use super::change::{Part, Piece};
use super::json::Entry;
use super::program;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str =
    "hooks: when a session or a turn begins, when a turn ends, and while it is idle";

/// The first version that is known to let a hook wait beside an idle session.
const REWAKES_SINCE: [u32; 3] = [2, 1, 197];

/// Seconds in which a hook ends in any case.
const HOOK_SECS: u64 = 10;
/// Seconds in which a session hears of messages after its last turn.
const IDLE_SECS: u64 = 24 * 60 * 60;

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
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let asks = place.project.is_some().then(|| {
        "claude asks once, in this project, whether the server mesh of .mcp.json may be used: say yes".to_owned()
    });
    let idle = if rewakes() {
        "a message that comes while it is idle begins a turn"
    } else {
        "an idle session is not woken: claude is not in PATH, or older than 2.1.197 (attach again after that)"
    };
    let then = [
        "the next session has the tools of the mesh (claude mcp list shows the server mesh)",
        "it is told of unread messages when it begins, with your next prompt, and when a turn ends",
        idle,
    ];
    Setup { pieces, then: asks.into_iter().chain(then.map(str::to_owned)).collect() }
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
        |words: &[&str]| format!("cd \"$CLAUDE_PROJECT_DIR\" && {}", place.program.line(words));
    let tell =
        json!({"type": "command", "command": line(&["inbox", "--hook"]), "timeout": HOOK_SECS});
    let wait = line(&["inbox", "--wait", "--hook"]);
    let wait =
        json!({"type": "command", "command": wait, "asyncRewake": true, "timeout": IDLE_SECS});
    let of = |event: &str, hooks: &[&Value]| Entry {
        within: vec!["hooks".to_owned(), event.to_owned()],
        key: None,
        value: json!({ "hooks": hooks }),
    };
    let stop = if rewakes() { vec![&tell, &wait] } else { vec![&tell] };
    vec![of("SessionStart", &[&tell]), of("UserPromptSubmit", &[&tell]), of("Stop", &stop)]
}

fn rewakes() -> bool {
    program::version("claude").is_some_and(|version| version >= REWAKES_SINCE)
}
