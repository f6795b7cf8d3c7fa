//! `clawmesh mcp config`: what to enter in a host's configuration. No key stands in it: hosts have it from a variable, or the
//! program reads the file.

use std::path::Path;

use serde_json::{Value, json};

use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::tools;

/// Print what to enter in a host's configuration
#[derive(Debug, clap::Args)]
pub(super) struct Config {
    /// The host; json is what most others take
    #[arg(value_enum)]
    host: Host,
    /// The host asks the node over HTTP; the key is in the variable CLAWMESH_KEY
    #[arg(long)]
    http: bool,
}

/// A program that runs a model, by the names of `clawmesh attach`, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Host {
    /// Claude Code
    #[value(alias = "claude")]
    ClaudeCode,
    /// Codex
    Codex,
    /// OpenClaw
    Openclaw,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// Copilot CLI
    Copilot,
    /// Cursor
    Cursor,
    /// Others
    Json,
}

pub(super) fn run(cx: &Context, operator: &Operator, args: &Config) -> Result<Outcome, Failure> {
    let agent = cx.node.agent_id.as_deref();
    let text = if args.http {
        let nodes = tools::nodes(cx, operator)?;
        let node = nodes.first().ok_or(Failure::ToolsOverHttp)?;
        let path = agent.map(|agent| format!("/{}", super::encoded(agent).replace('/', "%2F")));
        let url = format!("{}/mcp{}", node.http(), path.unwrap_or_default());
        over_http(args.host, &url)
    } else {
        as_program(args.host, &words(cx, operator))
    };
    cx.output.show(&json!({ "config": text }), || vec![text.clone()])?;
    Ok(Outcome::Done)
}

/// The program's arguments.
fn words(cx: &Context, operator: &Operator) -> Vec<String> {
    ["mcp".to_owned()].into_iter().chain(flags(cx, operator)).collect()
}

/// The flags that say which node and which agent: those that were given to this command, but for a key.
pub(in crate::commands) fn flags(cx: &Context, operator: &Operator) -> Vec<String> {
    let path = |path: &Path| {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
    };
    let urls = cx.node.url.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let flags = [
        ("--agent-id", cx.node.agent_id.clone()),
        ("--name", cx.node.name.clone()),
        ("--data-dir", operator.data_dir.as_deref().map(path)),
        ("--url", Some(urls).filter(|urls| !urls.is_empty())),
        ("--key-file", cx.node.key_file.as_deref().map(path)),
        ("--ca", cx.node.ca.as_deref().map(path)),
    ];
    let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
    given.flatten().collect()
}

fn as_program(host: Host, arguments: &[String]) -> String {
    let entry = json!({"command": "clawmesh", "args": arguments});
    match host {
        Host::ClaudeCode => {
            let words = arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            format!("claude mcp add mesh -- clawmesh {words}")
        }
        Host::Codex => {
            format!(
                "[mcp_servers.mesh]\ncommand = \"clawmesh\"\nargs = {}",
                Value::from(arguments.to_vec())
            )
        }
        Host::Openclaw => format!("openclaw mcp set mesh {}", quoted(&entry.to_string())),
        Host::Opencode => {
            let command = [vec!["clawmesh".to_owned()], arguments.to_vec()].concat();
            let entry = json!({"type": "local", "command": command, "enabled": true});
            pretty(&json!({"mcp": {"mesh": entry}}))
        }
        Host::Copilot => {
            let entry =
                json!({"type": "local", "command": "clawmesh", "args": arguments, "tools": ["*"]});
            pretty(&json!({"mcpServers": {"mesh": entry}}))
        }
        Host::Gemini | Host::Cursor | Host::Json => pretty(&json!({"mcpServers": {"mesh": entry}})),
    }
}

fn over_http(host: Host, url: &str) -> String {
    let bearer = "Bearer ${CLAWMESH_KEY}";
    match host {
        Host::ClaudeCode => format!(
            "claude mcp add --transport http mesh {} --header 'Authorization: {bearer}'",
            quoted(url)
        ),
        Host::Codex => format!(
            "[mcp_servers.mesh]\nurl = {}\nbearer_token_env_var = \"CLAWMESH_KEY\"",
            Value::from(url)
        ),
        Host::Openclaw => {
            let entry = json!({
                "url": url,
                "transport": "streamable-http",
                "headers": {"Authorization": bearer},
            });
            format!("openclaw mcp set mesh {}", quoted(&entry.to_string()))
        }
        Host::Opencode => {
            let bearer = "Bearer {env:CLAWMESH_KEY}";
            let entry = json!({
                "type": "remote",
                "url": url,
                "headers": {"Authorization": bearer},
                "oauth": false,
                "enabled": true,
            });
            pretty(&json!({"mcp": {"mesh": entry}}))
        }
        Host::Gemini => {
            let entry = json!({"httpUrl": url, "headers": {"Authorization": bearer}});
            pretty(&json!({"mcpServers": {"mesh": entry}}))
        }
        Host::Copilot => {
            let headers = json!({"Authorization": bearer});
            let entry = json!({"type": "http", "url": url, "headers": headers, "tools": ["*"]});
            pretty(&json!({"mcpServers": {"mesh": entry}}))
        }
        Host::Cursor => {
            let headers = json!({"Authorization": "Bearer ${env:CLAWMESH_KEY}"});
            pretty(&json!({"mcpServers": {"mesh": {"url": url, "headers": headers}}}))
        }
        Host::Json => {
            let entry = json!({"type": "http", "url": url, "headers": {"Authorization": bearer}});
            pretty(&json!({"mcpServers": {"mesh": entry}}))
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// A word as a shell takes it.
pub(in crate::commands) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_has_a_key_in_it() {
        let url = "http://127.0.0.1:9230/mcp/ada";
        for (host, begins) in [
            (Host::ClaudeCode, "claude mcp add "),
            (Host::Codex, "[mcp_servers.mesh]\n"),
            (Host::Openclaw, "openclaw mcp set mesh '{"),
            (Host::Opencode, "{\n  \"mcp\": {\n"),
            (Host::Gemini, "{\n  \"mcpServers\": {\n"),
            (Host::Copilot, "{\n  \"mcpServers\": {\n"),
            (Host::Cursor, "{\n  \"mcpServers\": {\n"),
            (Host::Json, "{\n"),
        ] {
            let words = ["mcp", "--agent-id", "ada lovelace"].map(str::to_owned);
            let (program, http) = (as_program(host, &words), over_http(host, url));
            assert!(program.starts_with(begins) && http.starts_with(begins), "{program}\n{http}");
            assert!(program.contains("ada lovelace") && http.contains("CLAWMESH_KEY"));
        }
    }
}
