//! Codex. Tried with 0.171.0 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: `codex mcp list` has the server; the app
//! server's `hooks/list` has the hooks of `config.toml`, untrusted until their user has looked at them (`/hooks`), and its
//! `skills/list` the skill. `codex queue` begins a turn in a session that waits in its terminal, without a daemon. AGENTS.md is its
//! user's and stays as it is.

use serde_json::Value;

use super::change::{Part, Piece};
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "codex queue: a turn begins in the session, also when it is idle; hooks when a turn begins and ends";

/// Seconds in which a hook ends in any case.
const HOOK_SECS: u64 = 10;

pub(super) fn setup(place: &Place) -> Setup {
    let (folder, skills) = match &place.project {
        Some(project) => (project.join(".codex"), project.join(".agents").join("skills")),
        None => {
            let folder = place.folder("CODEX_HOME", ".codex");
            let skills = folder.join("skills");
            (folder, skills)
        }
    };
    let skill = skills.join("clawmesh").join("SKILL.md");
    let pieces = vec![
        Piece { file: folder.join("config.toml"), part: Part::Toml(tables(place)) },
        Piece { file: skill, part: Part::Whole(SKILL.to_owned()) },
    ];
    let trust = place.project.is_some().then(|| {
        "codex reads the configuration of a project only after you have said that you trust it"
            .to_owned()
    });
    let then = [
        "the next session has the tools of the mesh (codex mcp list shows the server mesh)"
            .to_owned(),
        "codex runs the hooks after you have looked at them: type /hooks there".to_owned(),
    ];
    Setup { pieces, then: trust.into_iter().chain(then).collect() }
}

/// Texts of JSON are texts of TOML.
fn tables(place: &Place) -> String {
    let program = &place.program;
    let command = Value::from(program.command.as_str());
    let arguments =
        Value::from([program.arguments(), vec!["--queue".to_owned(), "codex".to_owned()]].concat());
    let line = Value::from(program.line(&["inbox", "--hook=codex"]));
    // Codex hands its hooks all variables, and its servers only these: both have to find the same files, and the same Codex.
    let variables =
        Value::from(["CODEX_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"].map(String::from).to_vec());
    let mut text = format!(
        "[mcp_servers.mesh]\ncommand = {command}\nargs = {arguments}\nenv_vars = {variables}\n"
    );
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        text += &format!(
            "\n[[hooks.{event}]]\nhooks = [{{ type = \"command\", command = {line}, timeout = {HOOK_SECS} }}]\n"
        );
    }
    text
}
