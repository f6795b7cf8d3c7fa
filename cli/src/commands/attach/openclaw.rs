//! OpenClaw. Tried with 2026.9.6 (from npm, on Node 24): see docs/agents.md, "What was tried, and what was seen". Seen: the entry stands where
//! `openclaw mcp set` puts it (`mcp.servers` of `~/.openclaw/openclaw.json`), `openclaw mcp list` and `openclaw mcp probe` have
//! the server. The file is JSON5, and `openclaw mcp set` prints it anew, so it is edited here as text. Its gateway takes
//! `POST /hooks/wake` if `hooks.enabled` is true, with `hooks.token` and not with the gateway's own, and begins a turn in the main
//! session, also where heartbeats are off; the notice stands there as data and not as an instruction. It keeps tools of servers
//! behind a search of its own (`tool_search`), as `mesh__inbox_wait`.
//!
//! Its gateway is started in no directory of its user's, so its agent has an id of its own.

use std::path::PathBuf;

use serde_json::json;

use super::change::{Part, Piece};
use super::files;
use super::json::{self, Entry};
use super::setup::{Place, SKILL, Setup};

pub(super) const WOKEN: &str = "[[wake]] of the node, which its operator enters";

pub(super) fn setup(place: &Place) -> Setup {
    let named = std::env::var_os("OPENCLAW_CONFIG_PATH").filter(|path| !path.is_empty());
    let folder = place.folder("OPENCLAW_STATE_DIR", ".openclaw");
    let file = named.map_or_else(|| folder.join("openclaw.json"), PathBuf::from);
    let program = &place.program;
    let text = files::read(&file).ok().flatten().unwrap_or_default();
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
    Setup { pieces, then: then(&text) }
}

/// What its user does then. `text`: its configuration, which says where its gateway is.
fn then(text: &str) -> Vec<String> {
    let said = |keys: &[&str], otherwise: &str| {
        json::value_at(text, keys).unwrap_or_else(|| otherwise.to_owned())
    };
    let port = said(&["gateway", "port"], "18789");
    let path = said(&["hooks", "path"], "/hooks");
    let path = path.trim_matches('/');
    let is_on = said(&["hooks", "enabled"], "false") == "true";
    let off = "first let it take posts, in openclaw.json: hooks: { enabled: true, token: \"A LONG RANDOM TEXT\" }, and start the gateway again";
    let begin = [
        "openclaw mcp list shows the server mesh; a gateway that runs takes it after openclaw mcp reload",
        "to wake it when messages come, enter in the node's settings file (docs/agents.md), and start the node again:",
    ];
    let wake = [
        "[[wake]]".to_owned(),
        "agent = \"AGENT_ID\"".to_owned(),
        format!("url = \"http://127.0.0.1:{port}/{path}/wake\""),
        "token-file = \"hooks.token\"  # beside that file, mode 0600, with hooks.token of openclaw.json".to_owned(),
    ];
    let off = (!is_on).then(|| off.to_owned());
    begin.map(str::to_owned).into_iter().chain(off).chain(wake).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_user_is_told_where_its_own_gateway_is() {
        let told = then("").join("\n");
        assert!(told.contains("http://127.0.0.1:18789/hooks/wake"), "{told}");
        assert!(told.contains("enabled: true"), "{told}");
        let own = "{ gateway: { port: 2000 }, hooks: { enabled: true, path: '/in/' /* mine */ } }";
        let told = then(own).join("\n");
        assert!(told.contains("http://127.0.0.1:2000/in/wake"), "{told}");
        assert!(!told.contains("enabled: true"), "{told}");
    }
}
