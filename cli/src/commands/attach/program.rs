//! The program as a host starts it: its name, and the flags that say which node, which key and which agent.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use client::options::drawn_from;
use rustix::system::uname;
use serde_json::{Value, json};

use crate::commands::mcp::config;
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::Failure;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// `clawmesh` if a shell finds this program so, else its path.
    pub(super) command: String,
    flags: Vec<String>,
}

/// What a node said to the program that a host will start.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) tools: usize,
    pub(super) agent: String,
    pub(super) node: String,
}

impl Program {
    /// This program, with the flags that were given to this command.
    ///
    /// # Errors
    /// [`Failure::Attach`] if a key was given as text: it would have to stand in the host's configuration.
    pub(super) fn find(cx: &Context, operator: &Operator) -> Result<Program, Failure> {
        if cx.node.key.is_some() && cx.node.key_file.is_none() {
            let why = "no key is written into a host's configuration: give the key in a file, with --key-file, \
                and not with --key or a variable";
            return Err(Failure::Attach { why: why.to_owned() });
        }
        let this = std::env::current_exe().map_err(|source| Failure::Runtime { source })?;
        let is_this = |found: &PathBuf| matches!((found.canonicalize(), this.canonicalize()), (Ok(a), Ok(b)) if a == b);
        let is_named = found("clawmesh").as_ref().is_some_and(is_this);
        let command = if is_named { "clawmesh".to_owned() } else { this.display().to_string() };
        Ok(Program { command, flags: config::flags(cx, operator) })
    }

    /// The same, as an agent of its own where none is named: for a host that is started in no directory of its user's. `folder`:
    /// the home or project that it is of.
    pub(super) fn named(mut self, host: &str, folder: &Path) -> Program {
        if self.flags.iter().any(|flag| flag == "--agent-id") {
            return self;
        }
        let host_name = uname();
        let host_name = host_name.nodename().to_string_lossy();
        let part =
            drawn_from(&["clawmesh attach agent", host, &host_name, &folder.to_string_lossy()]);
        let digits: String = part.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        self.flags.extend(["--agent-id".to_owned(), format!("{host}-{digits}")]);
        self
    }

    /// Its arguments as a server of tools.
    pub(super) fn arguments(&self) -> Vec<String> {
        [vec!["mcp".to_owned()], self.flags.clone()].concat()
    }

    /// It and its arguments: `clawmesh inbox --hook …`.
    pub(super) fn words(&self, words: &[&str]) -> Vec<String> {
        let words = words.iter().map(|word| String::from(*word));
        let all =
            std::iter::once(self.command.clone()).chain(words).chain(self.flags.iter().cloned());
        all.collect()
    }

    /// The same as a line of a shell.
    pub(super) fn line(&self, words: &[&str]) -> String {
        let words = self.words(words);
        words.iter().map(|word| config::quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// A script of a host's that starts it to wait for messages. The words are JSON, and so a value of the script.
    pub(super) fn script(&self, script: &str) -> String {
        let words = Value::from(self.words(&["inbox", "--wait", "--hook"])).to_string();
        script.replacen("const COMMAND = []", &format!("const COMMAND = {words}"), 1)
    }

    /// Starts it as a host does, and asks for its tools and for the agent that it is. It looks into its inbox, too: from this
    /// first act on others can write to it, and its host can be woken, before it has begun a turn.
    ///
    /// # Errors
    /// [`Failure::Attach`] with the answer that it gave instead.
    pub(super) fn try_out(&self, folder: &Path) -> Result<Tried, Failure> {
        let call = json!({"name": "agents_list", "arguments": {"limit": 1}});
        let look = json!({"name": "inbox_wait", "arguments": {"limit": 1, "timeoutSeconds": 0}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": look}),
        ];
        let said = self.said(folder, &lines.map(|line| format!("{line}\n")).concat());
        let said = said.map_err(|source| Failure::Attach {
            why: format!("{} cannot be started: {source}", self.command),
        })?;
        let answers: Vec<Value> =
            said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |id: u64| answers.iter().find(|answer| answer["id"] == id);
        let no = |answer: Option<&Value>| {
            let error = answer.and_then(|answer| {
                let refused = &answer["result"]["structuredContent"]["error"];
                answer["error"]["message"].as_str().or(refused.as_str())
            });
            let why = error.unwrap_or("it gives no answer");
            Failure::Attach { why: format!("it was tried, and it does not work: {why}") }
        };
        let tools = of(1).and_then(|answer| answer["result"]["tools"].as_array());
        let tools = tools.ok_or_else(|| no(of(1)))?.len();
        let me = of(2).map(|answer| &answer["result"]["structuredContent"]["me"]);
        let me = me.filter(|me| me.is_object()).ok_or_else(|| no(of(2)))?;
        let looked =
            of(3).filter(|answer| answer["result"]["structuredContent"]["error"].is_null());
        looked.filter(|answer| answer["result"].is_object()).ok_or_else(|| no(of(3)))?;
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let node = if me["node"].is_object() { &me["node"]["name"] } else { &me["node"] };
        Ok(Tried { tools, agent: text(&me["agentId"]), node: text(node) })
    }

    fn said(&self, folder: &Path, lines: &str) -> std::io::Result<String> {
        let mut child = Command::new(&self.command)
            .args(self.arguments())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(lines.as_bytes())?;
        }
        // It ends soon after its input, whatever the node does.
        let mut said = String::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        child.wait()?;
        Ok(said)
    }
}

/// A program of this name, as a shell finds it.
pub(super) fn found(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The version of a program that is in `PATH`: the first three numbers that `--version` prints.
pub(super) fn version(name: &str) -> Option<[u32; 3]> {
    let mut asked = Command::new(found(name)?);
    asked.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let said = String::from_utf8(asked.output().ok()?.stdout).ok()?;
    numbers(&said)
}

fn numbers(text: &str) -> Option<[u32; 3]> {
    let word =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = word.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(super::numbers("2.1.332 (Claude Code)\n"), Some([2, 1, 332]));
        assert_eq!(super::numbers("codex-cli 0.171.0"), Some([0, 171, 0]));
        assert_eq!(super::numbers("2.1"), None);
        assert_eq!(super::numbers(""), None);
    }
}
