//! The settings of one source: flags, environment, file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    clawtank::ClawTankTable,
    error::{Result, SettingsError},
    goclaw::GoClawTable,
};

/// The settings of one source: flags, environment or file. In a file these are the keys.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, clap::Args)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Layer {
    /// Keep everything in DIR [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Unix socket for clients [default: ~/.clawchat/clawchat.sock]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Let members of this group of the system use the Unix socket and read the key file [default: their owner alone]
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// No Unix socket
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_socket: Option<bool>,
    /// TCP for clients [default: 127.0.0.1:9229]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tcp: Option<String>,
    /// No TCP
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_tcp: Option<bool>,
    /// HTTP and WebSocket for clients [default: 127.0.0.1:9230]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// HTTP and WebSocket over TLS: the PEM file with the certificate, and those of authorities between. Read at the
    /// start: after a renewal restart the node
    #[arg(long, value_name = "FILE")]
    pub(crate) http_cert: Option<PathBuf>,
    /// The PEM file with the certificate's private key, which its owner alone can read
    #[arg(long, value_name = "FILE")]
    pub(crate) http_key: Option<PathBuf>,
    /// No HTTP and no WebSocket
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_http: Option<bool>,
    /// No /metrics over HTTP
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_metrics: Option<bool>,
    /// No tools for agent hosts over HTTP (/mcp, /tools/invoke)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_mcp: Option<bool>,
    /// No index of agents over HTTP (/api/agents/…, /api/jobs, /api/reviews)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_finder: Option<bool>,
    /// Clients that may register in the index of agents: local (those on this machine), open or off [default: local]
    #[arg(long, value_name = "WHO")]
    pub(crate) finder_signup: Option<String>,
    /// Other nodes are told at most so often that an agent of the index has asked: 1s to 1d [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) finder_seen_every: Option<String>,
    /// Bytes carried for others: sealed rooms of nodes that are away, mail of agents that were never here: 0 to 1024GiB [default: 1GiB]
    #[arg(long, value_name = "BYTES")]
    pub(crate) carry: Option<String>,
    /// No GoClaw on /ws
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_goclaw: Option<bool>,
    /// No ClawTank on /ws
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_clawtank: Option<bool>,
    /// The table `[clawtank]` of a file.
    #[arg(skip)]
    pub(crate) clawtank: Option<ClawTankTable>,
    /// No page for browsers at /
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_page: Option<bool>,
    /// The table `[goclaw]` of a file.
    #[arg(skip)]
    pub(crate) goclaw: Option<GoClawTable>,
    /// The table `[mcp]` of a file.
    #[arg(skip)]
    pub(crate) mcp: Option<McpTable>,
    /// The table `[session]` of a file.
    #[arg(skip)]
    pub(crate) session: Option<SessionTable>,
    /// The tables `[[wake]]` of a file.
    #[arg(skip)]
    pub(crate) wake: Option<Vec<WakeTable>>,
    /// The key that clients need, made if it is not there [default: ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Where other nodes connect; can be repeated. auto:PORT is loopback, and for a node that joined by a ticket
    /// from another machine its address that faces that machine, too [default: auto:9231]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<Vec<String>>,
    /// Where other nodes connect over WebSocket, for those behind networks that let nothing else out; can be repeated. With a
    /// certificate at port 443, or behind a proxy that has one and passes /clawmesh on; nobody is told, but by --reached-at
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen_ws: Option<Vec<String>>,
    /// The PEM file with the certificate for --listen-ws. Nodes do not check it: links have keys of their own
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The PEM file with its private key, which its owner alone can read
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Where other nodes reach this one besides: a forwarded port, a name, or wss://NAME; can be repeated. Tickets and
    /// other nodes are told
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) reached_at: Option<Vec<String>>,
    /// Join the mesh of this ticket (`clawmeshd invite` prints one), or of the one in a file (@FILE) or on standard
    /// input (-); remembered; can be repeated
    #[arg(long, value_name = "TICKET")]
    pub(crate) join: Option<Vec<String>>,
    /// Connect to the nodes of tickets only, and to who connects: tell nobody where nodes are, and believe
    /// nobody. For meshes whose links are laid by hand
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_discovery: Option<bool>,
    /// Carry links between members that cannot reach each other: members, or off (they may still carry this node's)
    /// [default: members]
    #[arg(long, value_name = "FOR")]
    pub(crate) relay: Option<String>,
    /// Bytes a second of all such links together; a member that sends more than others waits, and they do not. From
    /// 64KiB, or 0: without a bound [default: 8MiB]
    #[arg(long, value_name = "BYTES")]
    pub(crate) relay_rate: Option<String>,
    /// It is of `clawmeshd relay`.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) is_relay: Option<bool>,
    /// This node's name for people [default: the machine's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Let everybody attach who can reach the node
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_auth: Option<bool>,
    /// Take over from a node that was not heard for this long; if it is less than the default, the same at all
    /// nodes, for each says that it lives as often as its own needs [default: 1.5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) takeover_after: Option<String>,
    /// Let webhooks go to addresses that are not public: to whatever this node can reach
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) allow_private_webhooks: Option<bool>,
    /// Keys over HTTP are made for: off (nobody), admin (with --admin-secret-file), open (everybody) [default: off]
    #[arg(long, value_name = "POLICY")]
    pub(crate) signup: Option<String>,
    /// The file of the secret that an operator's program shows to have keys made over HTTP
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_secret_file: Option<PathBuf>,
    /// Who reads public rooms over HTTP (/api/rooms): key (holders of a key) or open (everybody) [default: open on
    /// loopback, key elsewhere]
    #[arg(long, value_name = "WHO")]
    pub(crate) http_read: Option<String>,
    /// Web pages from there may attach, such as https://example.org; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) http_origin: Option<Vec<String>>,
    /// A name of this node over HTTP besides its addresses; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) http_host: Option<Vec<String>>,
    /// A proxy whose X-Forwarded-For is believed; can be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) trusted_proxy: Option<Vec<String>>,
    /// The fingerprint of a key whose holder may stop all agents of this node; can be repeated [default: the node's own key]
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) operators: Option<Vec<String>>,
    /// How long messages of the node's own rooms are kept, such as 30d [default: forever]
    #[arg(long, value_name = "TIME|forever")]
    pub(crate) retention: Option<String>,
    /// A limit for agents of a key, such as free.agents=5; can be repeated. KEY is own, free or pro,
    /// WHAT is agents, rooms, messages-per-minute, content-bytes or retention
    #[arg(long, value_name = "KEY.WHAT=VALUE")]
    pub(crate) limit: Option<Vec<String>>,
    /// The log: error, warn, info, debug, trace, or by module (as RUST_LOG) [default: info]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// How to log: text, or json, an object in each line [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Say what is bound, as one line of JSON on stdout
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) json: Option<bool>,
}

/// What a file says of tools for agent hosts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct McpTable {
    /// Whether there are any.
    pub(crate) enabled: Option<bool>,
    /// Groups of tools that hosts get which ask for none.
    pub(crate) tools: Option<Vec<String>>,
    /// How long an agent stays attached after its last call.
    pub(crate) idle_detach: Option<String>,
}

/// The part of a file about agents that answer each other.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct SessionTable {
    /// Turns of a conversation after the first answer.
    pub(crate) max_ping_pong_turns: Option<u32>,
    /// Conversations that lead to each other.
    pub(crate) max_hops: Option<u32>,
    /// Requests of one agent without an answer.
    pub(crate) max_unanswered: Option<usize>,
    /// Messages between two agents.
    pub(crate) pair: Option<PairTable>,
    /// What sandboxed tokens are shown.
    pub(crate) sandbox: Option<SandboxTable>,
    /// The status of a send whose answer does not come in time.
    pub(crate) soft_timeout: Option<String>,
    /// Whose direct messages and tasks agents of the node take.
    pub(crate) inbound: Option<String>,
    /// Agents that may write to each other.
    pub(crate) agent_to_agent: Option<AgentToAgentTable>,
    /// The sessions into which agents may send.
    pub(crate) send_policy: Option<SendPolicyTable>,
    /// For how long requests are kept for agents that are away.
    pub(crate) ttl: Option<String>,
    /// Tasks that agents give to others.
    pub(crate) spawn: Option<SpawnTable>,
    /// What is said of agents' conversations, and where.
    pub(crate) announce: Option<AnnounceTable>,
}

/// What is said of agents' conversations, and where.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct AnnounceTable {
    /// For each agent the key of a room.
    pub(crate) rooms: Option<BTreeMap<String, String>>,
}

/// What sandboxed tokens are shown.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct SandboxTable {
    /// At most so much.
    pub(crate) visibility: Option<String>,
}

/// Agents that may write to each other.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct AgentToAgentTable {
    /// Whether any two may.
    pub(crate) enabled: Option<bool>,
    /// Patterns of ids.
    pub(crate) allow: Option<Vec<String>>,
}

/// The sessions into which agents may send.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct SendPolicyTable {
    /// Where no rule matches.
    pub(crate) default: Option<String>,
    /// In the operator's order.
    pub(crate) rules: Option<Vec<RuleTable>>,
}

/// A rule about sending.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// The sessions that it is about; all, if it says nothing.
    #[serde(rename = "match")]
    pub(crate) matches: Option<MatchTable>,
    /// `allow` or `deny`.
    pub(crate) action: String,
}

/// The sessions that a rule is about. Names of another program are taken, too, so that its rules can be pasted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct MatchTable {
    /// The provider of the session.
    pub(crate) provider: Option<String>,
    /// The same.
    pub(crate) channel: Option<String>,
    /// `direct`, `group` or `channel`.
    #[serde(alias = "chatType")]
    pub(crate) chat_type: Option<String>,
    /// The beginning of the session's key.
    #[serde(alias = "keyPrefix")]
    pub(crate) key_prefix: Option<String>,
}

/// What a file says of tasks that agents give to others.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct SpawnTable {
    /// Tasks of one agent that go on.
    pub(crate) max_children: Option<usize>,
    /// Tasks that lead to each other.
    pub(crate) max_depth: Option<u32>,
    /// How long after its end a room that is kept is closed.
    pub(crate) archive_after: Option<String>,
}

/// How fast two agents may write to each other.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct PairTable {
    /// So many messages.
    pub(crate) messages: Option<u32>,
    /// Within this time.
    pub(crate) within: Option<String>,
    /// Then none for so long.
    pub(crate) rest: Option<String>,
}

/// The part of a file about an agent whose host is to be woken.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct WakeTable {
    /// The agent.
    pub(crate) agent: String,
    /// Where its host is posted to.
    pub(crate) url: String,
    /// The file of the host's token.
    pub(crate) token_file: Option<PathBuf>,
    /// The body of the posts, with places.
    pub(crate) body: Option<String>,
}

impl Layer {
    /// `CLAWMESH_` and the flag in capitals; lists are separated by commas.
    pub(super) fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Layer> {
        let text = |name: &str| env(&format!("CLAWMESH_{name}")).filter(|text| !text.is_empty());
        let list = |name: &str| {
            text(name).map(|text| text.split(',').map(|part| part.trim().to_owned()).collect())
        };
        let switch = |name: &str| {
            text(name)
                .map(|value| match value.to_ascii_lowercase().as_str() {
                    "1" | "true" | "yes" | "on" => Ok(true),
                    "0" | "false" | "no" | "off" => Ok(false),
                    _ => Err(SettingsError::Variable {
                        variable: format!("CLAWMESH_{name}"),
                        value: value.clone(),
                    }),
                })
                .transpose()
        };
        Ok(Layer {
            data_dir: text("DATA_DIR").map(PathBuf::from),
            socket: text("SOCKET").map(PathBuf::from),
            group: text("GROUP"),
            no_socket: switch("NO_SOCKET")?,
            tcp: text("TCP"),
            no_tcp: switch("NO_TCP")?,
            http: text("HTTP"),
            http_cert: text("HTTP_CERT").map(PathBuf::from),
            http_key: text("HTTP_KEY").map(PathBuf::from),
            no_http: switch("NO_HTTP")?,
            no_metrics: switch("NO_METRICS")?,
            no_mcp: switch("NO_MCP")?,
            no_finder: switch("NO_FINDER")?,
            finder_signup: text("FINDER_SIGNUP"),
            finder_seen_every: text("FINDER_SEEN_EVERY"),
            carry: text("CARRY"),
            no_goclaw: switch("NO_GOCLAW")?,
            no_page: switch("NO_PAGE")?,
            goclaw: None,
            no_clawtank: switch("NO_CLAWTANK")?,
            clawtank: None,
            mcp: None,
            session: None,
            wake: None,
            key_file: text("KEY_FILE").map(PathBuf::from),
            listen: list("LISTEN"),
            listen_ws: list("LISTEN_WS"),
            tls_cert: text("TLS_CERT").map(PathBuf::from),
            tls_key: text("TLS_KEY").map(PathBuf::from),
            reached_at: list("REACHED_AT"),
            join: list("JOIN"),
            no_discovery: switch("NO_DISCOVERY")?,
            relay: text("RELAY"),
            relay_rate: text("RELAY_RATE"),
            is_relay: None,
            name: text("NAME"),
            no_auth: switch("NO_AUTH")?,
            takeover_after: text("TAKEOVER_AFTER"),
            allow_private_webhooks: switch("ALLOW_PRIVATE_WEBHOOKS")?,
            signup: text("SIGNUP"),
            admin_secret_file: text("ADMIN_SECRET_FILE").map(PathBuf::from),
            http_read: text("HTTP_READ"),
            http_origin: list("HTTP_ORIGIN"),
            http_host: list("HTTP_HOST"),
            trusted_proxy: list("TRUSTED_PROXY"),
            operators: list("OPERATORS"),
            retention: text("RETENTION"),
            limit: list("LIMIT"),
            log: text("LOG"),
            log_format: text("LOG_FORMAT"),
            json: switch("JSON")?,
        })
    }

    pub(super) fn from_file(file: &Path) -> Result<Layer> {
        let failed = |why: String| SettingsError::File { file: file.to_owned(), why };
        let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = error.span().and_then(|span| text.get(..span.start));
            let line = line.map_or(1, |before| before.matches('\n').count() + 1);
            failed(format!("line {line}: {}", error.message().replace('\n', " ")))
        })
    }
}
