//! opencode. Tried with 1.18.33 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `opencode mcp list` connects to the
//! server, `opencode debug skill` has the skill; comments and commas at the end are taken in `opencode.json`, too. It has no
//! hooks that run commands: a plugin of some lines waits beside an idle session, and begins a turn in it. It is asked for within
//! the program, so no port of opencode's need be known.

use serde_json::json;

use super::change::{Part, Piece};
use super::json::Entry;
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "a plugin: a session that has ended a turn begins another one";

pub(super) fn setup(place: &Place) -> Setup {
    let (folder, skills) = match &place.project {
        Some(project) => (project.clone(), project.join(".opencode")),
        None => {
            let folder = place.folder("XDG_CONFIG_HOME", ".config").join("opencode");
            (folder.clone(), folder)
        }
    };
    // It reads both, and people have one.
    let with_comments = folder.join("opencode.jsonc");
    let file = if with_comments.exists() { with_comments } else { folder.join("opencode.json") };
    let program = &place.program;
    let command = [vec![program.command.clone()], program.arguments()].concat();
    // It writes this one itself into a file without it.
    let schema = (!file.exists()).then(|| Entry {
        within: Vec::new(),
        key: Some("$schema".to_owned()),
        value: json!("https://opencode.ai/config.json"),
    });
    let server = Entry {
        within: vec!["mcp".to_owned()],
        key: Some("mesh".to_owned()),
        value: json!({"type": "local", "command": command, "enabled": true}),
    };
    let skill = skills.join("skills").join("clawmesh").join("SKILL.md");
    let plugin = skills.join("plugins").join("clawmesh.js");
    let script = program.script(include_str!("opencode.js"));
    let pieces = vec![
        Piece { file, part: Part::Relaxed([server].into_iter().chain(schema).collect()) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
        Piece { file: plugin, part: Part::Whole(script) },
    ];
    let then = [
        "the next session has the tools of the mesh (opencode mcp list shows the server mesh)",
        "a message that comes after a turn of it has ended begins another turn",
    ];
    Setup { pieces, then: then.map(str::to_owned).into() }
}
