//! The hosts that can be set up.

use serde::{Deserialize, Serialize};

/// A program that runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Host {
    /// Claude Code
    #[value(alias = "claude-code")]
    Claude,
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
    /// Cursor's CLI
    Cursor,
    /// A loop in a shell
    Shell,
}

impl Host {
    /// Those that have a configuration.
    pub(super) const ALL: [Host; 7] = [
        Host::Claude,
        Host::Codex,
        Host::Openclaw,
        Host::Opencode,
        Host::Gemini,
        Host::Copilot,
        Host::Cursor,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Host::Claude => "claude",
            Host::Codex => "codex",
            Host::Openclaw => "openclaw",
            Host::Opencode => "opencode",
            Host::Gemini => "gemini",
            Host::Copilot => "copilot",
            Host::Cursor => "cursor",
            Host::Shell => "shell",
        }
    }

    /// The program that it is.
    pub(super) fn program(self) -> &'static str {
        match self {
            Host::Cursor => "cursor-agent",
            Host::Claude
            | Host::Codex
            | Host::Openclaw
            | Host::Opencode
            | Host::Gemini
            | Host::Copilot
            | Host::Shell => self.name(),
        }
    }

    /// Whether a project can have a configuration of its own.
    pub(super) fn has_projects(self) -> bool {
        match self {
            Host::Claude | Host::Codex | Host::Opencode | Host::Gemini | Host::Cursor => true,
            Host::Openclaw | Host::Copilot | Host::Shell => false,
        }
    }
}
