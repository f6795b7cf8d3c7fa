//! `connection.request`: who a client is, by what it shows.

use std::{sync::OnceLock, time::Instant};

use bridge::{
    config::Auth,
    read::Visitor,
    seam::{call::DescribeKey, refusal::Refusal},
    secret::Secret,
    shown::Eyes,
};
use mesh::{
    api::{agenda::Standing, command::Refused},
    name::id::AgentId,
    wire::acts::{KeyTerms, Scope},
};
use serde_json::{Value, json};

use crate::{
    envelope::Request,
    limits::{CHAT_PER_MINUTE, MESSAGE_BYTES_MAX, NAME_CHARS_MAX, TASKS_HELD_MAX},
    names,
    problem::{Code, Problem},
    shared::Shared,
    style::{Style, shown},
};

/// What a node can do for its clients.
pub(crate) const FEATURES: [&str; 6] =
    ["chat", "git_integration", "spectator_mode", "approvals", "replay", "clawmesh"];

/// Of which kind a client says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Human,
    Agent,
}

/// What a client says of itself.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) kind: Kind,
    token: Option<String>,
    name: String,
    pub(crate) room: Option<String>,
}

/// A client that was let in.
pub(crate) struct Member {
    pub(crate) connection: [u8; 16],
    pub(crate) kind: Kind,
    pub(crate) key: Secret,
    /// The holder of its key.
    pub(crate) holder: Visitor,
    /// The person whom it is, or who owns it.
    pub(crate) user: String,
    pub(crate) rights: Rights,
    pub(crate) style: Style,
    pub(crate) since: Instant,
    /// As which it is in the mesh: an agent when it has registered.
    pub(crate) agent: OnceLock<AgentId>,
    /// The name of an agent that has registered.
    pub(crate) agent_name: OnceLock<String>,
    /// It has shown a key: else it is a page that asks for everybody.
    pub(crate) shows_key: bool,
    per_minute: u32,
}

/// What a key lets its clients do. Who has made a room may do more there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    writes: bool,
    approves: bool,
    /// The node's own key.
    own: bool,
}

/// A thing that needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Chat,
    Git,
    CreateTask,
    ClaimTask,
    CreateRoom,
    Approve,
    AssignTask,
}

impl Right {
    fn name(self) -> &'static str {
        match self {
            Right::Chat => "chat",
            Right::Git => "git_commit",
            Right::CreateTask => "task_create",
            Right::ClaimTask => "task_claim",
            Right::CreateRoom => "room_create",
            Right::Approve => "approve",
            Right::AssignTask => "task_assign",
        }
    }
}

const WRITES: [&str; 6] =
    ["read", "chat", "task_create", "task_claim", "git_commit", "room_create"];

impl Rights {
    fn of(holder: &Visitor, terms: Option<&KeyTerms>) -> Rights {
        match holder.standing() {
            Standing::Own => Rights { writes: true, approves: true, own: true },
            Standing::Minted { writes, .. } => {
                let scopes = terms.and_then(|terms| terms.scopes);
                let approves = match scopes {
                    None => writes,
                    Some(scopes) => [Scope::Approvals, Scope::Write, Scope::Admin]
                        .into_iter()
                        .any(|scope| scopes.has(scope)),
                };
                Rights { writes, approves, own: false }
            }
        }
    }

    /// All that it may, as clients read it. `hosts`: its key has made the room that is meant.
    pub(crate) fn shown(self, hosts: bool) -> Vec<&'static str> {
        let mut all = if self.writes { WRITES.to_vec() } else { vec!["read"] };
        if self.approves {
            all.push(Right::Approve.name());
        }
        if hosts {
            all.push("room_admin");
        }
        if hosts || self.own {
            all.push(Right::AssignTask.name());
        }
        all
    }

    /// `hosts`: see [`Rights::shown`].
    pub(crate) fn may(self, right: Right, hosts: bool) -> Result<(), Problem> {
        let may = match right {
            Right::Chat | Right::Git | Right::CreateTask | Right::ClaimTask | Right::CreateRoom => {
                self.writes
            }
            Right::Approve => self.approves,
            Right::AssignTask => hosts || self.own,
        };
        let name = right.name();
        if may {
            return Ok(());
        }
        let problem = Problem::denied(format!("this key has no permission {name}"));
        Err(problem.because(name))
    }
}

impl Wish {
    pub(crate) fn of(request: &Request) -> Result<Wish, Problem> {
        let data = request.data();
        let kinds = ["human", "agent", "spectator"];
        let kind = data.get("client_type").required()?.one_of(&kinds)?;
        let kind = match kind {
            Some("human") => Kind::Human,
            Some("agent") => Kind::Agent,
            Some(_) | None => {
                return Err(data
                    .get("client_type")
                    .bad("spectators have a connection of their own"));
            }
        };
        let info = data.get("client_info").required()?;
        info.object()?;
        let name = info.get("name").words(NAME_CHARS_MAX)?.to_owned();
        if name.chars().any(char::is_control) {
            return Err(info.get("name").bad("must have no control characters"));
        }
        let version = info.get("version").required()?;
        if !is_version(version.text(100)?.unwrap_or_default()) {
            return Err(version.bad("must be three numbers such as 1.0.0"));
        }
        info.get("capabilities").required()?.texts(64, 256)?;
        info.get("user_agent").text(500)?;
        let token = data.get("auth_token").text(usize::MAX)?.map(str::to_owned);
        let room = data.get("room_id").text(256)?.map(str::to_owned);
        Ok(Wish { kind, token, name, room })
    }
}

impl Wish {
    /// Of a request without a connection.
    pub(crate) fn over_http(key: &str, name: &str) -> Wish {
        let (token, name) = (Some(key.to_owned()), name.to_owned());
        Wish { kind: Kind::Human, token, name, room: None }
    }
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(is_number)
}

impl Member {
    /// A client that shows a valid key.
    pub(crate) async fn showing(
        shared: &Shared,
        wish: Wish,
        style: Style,
    ) -> Result<Member, Problem> {
        let_in(shared, &wish, style).await
    }

    /// Somebody who shows no key.
    pub(crate) fn nobody(holder: Visitor, style: Style, since: Instant) -> Member {
        Member {
            connection: [0; 16],
            kind: Kind::Human,
            key: Secret::new(""),
            rights: Rights { writes: false, approves: false, own: false },
            user: String::new(),
            style: Style { eyes: Eyes::Strangers, ..style },
            since,
            agent: OnceLock::new(),
            agent_name: OnceLock::new(),
            shows_key: false,
            per_minute: CHAT_PER_MINUTE,
            holder,
        }
    }
}

/// Lets a client in that shows a valid key.
pub(crate) async fn let_in(shared: &Shared, wish: &Wish, style: Style) -> Result<Member, Problem> {
    let is_open = matches!(shared.desk.config().auth, Auth::Open);
    let denied = |text: &str| Problem::new(Code::AuthenticationFailed, text);
    let key = match &wish.token {
        Some(token) => Secret::new(token),
        None if is_open => Secret::new(""),
        None => return Err(denied("auth_token: show a key that is valid here")),
    };
    let holder = match shared.desk.holder(key.clone()).await {
        Ok(holder) => holder,
        Err(Refusal::Mesh(Refused::NoKey)) => return Err(denied("the key is not valid here")),
        Err(refusal) => return Err(refusal.into()),
    };
    let terms = match holder.standing() {
        Standing::Own => None,
        Standing::Minted { .. } => shared.desk.ask(&holder, DescribeKey).await?,
    };
    let rights = Rights::of(&holder, terms.as_deref());
    let owner = terms.and_then(|terms| terms.owner);
    let quota = shared.desk.config().quota(holder.standing()).messages_per_minute;
    Ok(Member {
        connection: bridge::ids::random(),
        kind: wish.kind,
        key,
        rights,
        user: owner.unwrap_or_else(|| wish.name.clone()),
        style,
        since: Instant::now(),
        agent: OnceLock::new(),
        agent_name: OnceLock::new(),
        shows_key: true,
        per_minute: quota.unwrap_or(u32::MAX).min(CHAT_PER_MINUTE),
        holder,
    })
}

impl Member {
    /// As which a person of this name and key is in the mesh.
    pub(crate) fn principal(&self) -> AgentId {
        names::principal(self.holder.key(), &self.user)
    }

    /// Its name in the mesh.
    pub(crate) fn name(&self) -> String {
        self.agent_name.get().unwrap_or(&self.user).clone()
    }

    pub(crate) fn connection_id(&self) -> String {
        self.style.form.id("conn", self.connection)
    }

    pub(crate) fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// The data of an ack. `hosts`: see [`Rights::shown`].
    pub(crate) fn ack(&self, hosts: bool) -> Value {
        json!({
            "connection_id": self.connection_id(),
            "server_version": env!("CARGO_PKG_VERSION"),
            "features": FEATURES,
            "limits": {
                "max_message_size": MESSAGE_BYTES_MAX,
                "max_messages_per_minute": self.per_minute,
                "max_concurrent_tasks": TASKS_HELD_MAX,
            },
            "session_info": {
                "user_id": self.style.form.id("user", names::id_of(&self.principal())),
                "display_name": shown(&self.user),
                "permissions": self.rights.shown(hosts),
            },
        })
    }
}
