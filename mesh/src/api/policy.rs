//! Policies of a node: which agents may write to each other, and whose direct messages and tasks its agents take. The
//! node of the author keeps to the first; that of the other agent judges both when a message comes, and does not hand
//! over what it refuses (`docs/decisions/sessions.md`).

use std::fmt;

use crate::name::{group::Sides, id::AgentId};

/// The policies of a node, as far as the core keeps to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Agents that may write to each other.
    pub agent_to_agent: AgentToAgent,
    /// Whose direct messages and tasks the node's agents take.
    pub inbound: Inbound,
    /// The agent in whose name the node itself asks its agents for something: its direct rooms are under no policy. An id that
    /// belongs to the node's own key.
    pub teller: Option<AgentId>,
}

/// The agents that may write to each other in direct rooms and in those of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentToAgent {
    /// Whether any two agents may.
    pub enabled: bool,
    /// Patterns of ids; both have to match one. Empty: all do.
    pub allow: Vec<Pattern>,
}

impl Default for AgentToAgent {
    fn default() -> AgentToAgent {
        AgentToAgent { enabled: true, allow: Vec::new() }
    }
}

impl AgentToAgent {
    /// Whether two agents may write to each other. An agent may always write to itself.
    #[must_use]
    pub fn allows(&self, one: &str, other: &str) -> bool {
        let matches =
            |agent: &str| self.allow.is_empty() || self.allow.iter().any(|own| own.matches(agent));
        *one == *other || (self.enabled && matches(one) && matches(other))
    }
}

/// A pattern of agents' ids: `*` stands for any characters, or none. Case counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// As it is written.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern(text.into())
    }

    /// Whether an id matches it, as a whole.
    #[must_use]
    pub fn matches(&self, agent: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return *agent == *self.0 };
        let Some(mut left) = agent.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        // The first place that fits leaves the most for those after it.
        for part in parts {
            let Some((_, after)) = left.split_once(part) else { return false };
            left = after;
        }
        left.ends_with(last)
    }
}

/// Whose direct messages and tasks the agents of a node take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inbound {
    /// Those of all agents of the mesh.
    #[default]
    Mesh,
    /// Those of agents that are known: of the same key, of keys that have a private room together with it, and of agents to
    /// which the agent itself has written.
    Known,
    /// Those of agents of the same key.
    Key,
}

/// Why a node does not hand a message over to its agent. The message stays in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withheld {
    /// Its conversation has had more turns than the node allows.
    Turns,
    /// More conversations led to it than the node allows.
    Hops,
    /// The node does not let the two agents write to each other.
    AgentToAgent,
    /// The node's agents do not take messages of this author.
    Inbound,
}

impl Withheld {
    /// The rule's name, as receipts have it: `refused: RULE`.
    #[must_use]
    pub fn rule(self) -> &'static str {
        match self {
            Withheld::Turns => "max_ping_pong_turns",
            Withheld::Hops => "max_hops",
            Withheld::AgentToAgent => "agent_to_agent",
            Withheld::Inbound => "inbound",
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule())
    }
}

/// Why a message of this author is not handed over in a direct room. `each`: for each of its two agents, why what that one
/// says is not.
#[must_use]
pub fn withheld(sides: &Sides, each: &[Option<Withheld>; 2], author: &str) -> Option<Withheld> {
    match sides.place_of(author, |_| true) {
        Some(place) => each[place],
        // A node that writes under a third name gets no further.
        None => each[0].or(each[1]),
    }
}

/// An agent of this node that does not take messages of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakesNone {
    /// It.
    pub agent: AgentId,
    /// The author.
    pub from: AgentId,
}

impl fmt::Display for TakesNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {} takes no messages from {}", self.agent, self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_ids_and_case_counts() {
        for (pattern, yes, no) in [
            ("ada", &["ada"][..], &["Ada", "adam", "", "*"][..]),
            ("*", &["", "ada", "Ünï x"], &[]),
            ("ops-*", &["ops-", "ops-1"], &["ops", "xops-1", "OPS-1"]),
            ("*-bot", &["-bot", "a-bot", "a-bot-bot"], &["a-bots", "bot"]),
            ("a*b*c", &["abc", "a-b-b-c", "abbc"], &["ac", "acb", "abcd"]),
            ("a**a", &["aa", "aba"], &["a"]),
        ] {
            let pattern = Pattern::new(pattern);
            for id in yes {
                assert!(pattern.matches(id), "{pattern:?} {id:?}");
            }
            for id in no {
                assert!(!pattern.matches(id), "{pattern:?} {id:?}");
            }
        }
    }

    #[test]
    fn both_agents_have_to_match_and_an_agent_may_write_to_itself() {
        let all = AgentToAgent::default();
        assert!(all.allows("ada", "bob"));
        let some = AgentToAgent { allow: vec![Pattern::new("ada"), Pattern::new("c*")], ..all };
        assert!(some.allows("ada", "cy") && some.allows("cy", "ada"));
        assert!(!some.allows("ada", "bob") && !some.allows("bob", "ada"));
        assert!(some.allows("bob", "bob"));
        let none = AgentToAgent { enabled: false, ..some };
        assert!(!none.allows("ada", "cy") && none.allows("ada", "ada"));
    }
}
