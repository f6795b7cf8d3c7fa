//! Settings of who may write to whom, and where: tables of a file.

use bridge::{
    limits::{AGENT_PATTERNS_MAX, SEND_RULES_MAX},
    policy::{Action, ChatType, SendPolicy, SendRule},
};
use mcp::SoftTimeout;
use mesh::api::policy::{self, AgentToAgent, Inbound, Pattern};

use super::{
    error::{Result, bad},
    layer::{AgentToAgentTable, MatchTable, RuleTable, SendPolicyTable, SessionTable},
};

/// Who may write to whom, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Agents that may write to each other, and whose messages those of this node take.
    pub core: policy::Policies,
    /// The sessions into which agents may send.
    pub send: SendPolicy,
}

impl Policies {
    pub(super) fn of(table: &SessionTable) -> Result<Policies> {
        let agent_to_agent = table.agent_to_agent.as_ref().map(agent_to_agent);
        let send = table.send_policy.as_ref().map(send_policy);
        Ok(Policies {
            core: policy::Policies {
                agent_to_agent: agent_to_agent.transpose()?.unwrap_or_default(),
                inbound: inbound(table.inbound.as_deref())?,
                teller: None,
            },
            send: send.transpose()?.unwrap_or_default(),
        })
    }
}

pub(super) fn soft_timeout(text: Option<&str>) -> Result<SoftTimeout> {
    match text {
        None | Some("timeout") => Ok(SoftTimeout::Timeout),
        Some("accepted") => Ok(SoftTimeout::Accepted),
        Some(other) => Err(bad("session.soft-timeout", other, "write timeout or accepted")),
    }
}

fn inbound(text: Option<&str>) -> Result<Inbound> {
    match text {
        None | Some("mesh") => Ok(Inbound::Mesh),
        Some("known") => Ok(Inbound::Known),
        Some("key") => Ok(Inbound::Key),
        Some(other) => Err(bad("session.inbound", other, "write mesh, known or key")),
    }
}

fn agent_to_agent(table: &AgentToAgentTable) -> Result<AgentToAgent> {
    let patterns = table.allow.as_deref().unwrap_or_default();
    let name = "session.agent-to-agent.allow";
    if patterns.len() > AGENT_PATTERNS_MAX {
        let why = format!("write at most {AGENT_PATTERNS_MAX} patterns");
        return Err(bad(name, &patterns.len().to_string(), why));
    }
    // A pattern that nobody can match is a slip of the pen.
    let longest = mesh::limits::AGENT_ID_BYTES_MAX;
    let wrong = patterns.iter().find(|text| text.is_empty() || text.len() > longest);
    if let Some(wrong) = wrong {
        return Err(bad(
            name,
            wrong,
            format!("write ids of agents, 1 to {longest} bytes, with * for any characters"),
        ));
    }
    let allow = patterns.iter().map(Pattern::new).collect();
    Ok(AgentToAgent { enabled: table.enabled.unwrap_or(true), allow })
}

fn send_policy(table: &SendPolicyTable) -> Result<SendPolicy> {
    let rules = table.rules.as_deref().unwrap_or_default();
    if rules.len() > SEND_RULES_MAX {
        let why = format!("write at most {SEND_RULES_MAX} rules");
        return Err(bad(RULES, &rules.len().to_string(), why));
    }
    let default = table.default.as_deref();
    let default = default.map(|text| action(text, "session.send-policy.default", text));
    let rules = rules.iter().enumerate().map(|(nth, rule)| send_rule(nth, rule));
    Ok(SendPolicy {
        default: default.transpose()?.unwrap_or_default(),
        rules: rules.collect::<Result<_>>()?,
    })
}

const RULES: &str = "session.send-policy.rules";

fn send_rule(nth: usize, table: &RuleTable) -> Result<SendRule> {
    let at = |field: &str, value: &str| format!("[{nth}].{field} = {value:?}");
    let MatchTable { provider, channel, chat_type, key_prefix } =
        table.matches.clone().unwrap_or_default();
    let provider = match (provider, channel) {
        (Some(provider), Some(channel)) if provider != channel => {
            let why = "is the same as provider: leave one of the two out";
            return Err(bad(RULES, &at("match.channel", &channel), why));
        }
        (provider, channel) => provider.or(channel),
    };
    let chat_type = match chat_type.as_deref() {
        None => None,
        Some("direct") => Some(ChatType::Direct),
        Some("group") => Some(ChatType::Group),
        Some("channel") => Some(ChatType::Channel),
        Some(other) => {
            let why = "write direct, group or channel";
            return Err(bad(RULES, &at("match.chat-type", other), why));
        }
    };
    let text = table.action.as_str();
    let action = action(text, RULES, &at("action", text))?;
    // Keys are lower case.
    let key_prefix = key_prefix.map(|prefix| prefix.trim().to_lowercase());
    Ok(SendRule { provider, chat_type, key_prefix, action })
}

fn action(text: &str, name: &'static str, shown: &str) -> Result<Action> {
    match text {
        "allow" => Ok(Action::Allow),
        "deny" => Ok(Action::Deny),
        _ => Err(bad(name, shown, "write allow or deny")),
    }
}
