//! The client of a connection, when it is connected: who it is, and what it may do.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use bridge::{
    read::Visitor,
    seam::{
        call::{Attach, Identity, StandOutside},
        refusal::Refusal,
    },
    secret::Secret,
    session::{
        ask::Ask,
        rates::{Bucket, Rate},
    },
};
use mesh::name::id::{AgentId, KeyPrint};

use crate::{
    limits::{KEY_VALID_FOR, PRINCIPAL_STAYS, READS_PER_MINUTE, WRITES_BURST},
    methods::{Method, Role},
    outcome::No,
    settings::Events,
    shared::Shared,
    times,
};

/// See the module.
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    /// Its key: principals are attached with it.
    pub(crate) key: Secret,
    /// The holder of it.
    pub(crate) holder: Visitor,
    pub(crate) role: Role,
    /// It holds the node's own key.
    pub(crate) owner: bool,
    /// Its key has the scope of approvals.
    pub(crate) approves: bool,
    /// The user for whom it asks.
    pub(crate) user: String,
    /// As which that user writes.
    pub(crate) principal: AgentId,
    /// It said which protocol it speaks.
    pub(crate) modern: bool,
    /// The public id of the device, if it is a paired one.
    pub(crate) device: Option<String>,
    pub(crate) reads: Mutex<Bucket>,
    /// When its key was found valid.
    pub(crate) valid: Mutex<Option<Valid>>,
}

/// A key was found valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Valid {
    at: Instant,
    /// Keys that had ended at this node until then.
    ended: u64,
}

impl Valid {
    fn holds(self, ended: u64, now: Instant) -> bool {
        self.ended == ended && now.saturating_duration_since(self.at) < KEY_VALID_FOR
    }
}

impl Caller {
    pub(crate) fn print(&self) -> KeyPrint {
        self.holder.key()
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.role >= Role::Admin
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.role >= Role::Operator
    }

    /// Whether it may ask for a method.
    pub(crate) fn may(&self, method: &Method) -> Result<(), No> {
        let Method { name, role, own, .. } = method;
        let approves = self.approves && name.starts_with("exec.approval.");
        if self.role < *role && !approves {
            let role = role.name();
            return Err(No::unauthorized(format!(
                "permission denied: {name} requires {role} role"
            )));
        }
        if *own && !self.owner {
            let text = format!("permission denied: {name} requires the node's own key");
            return Err(No::unauthorized(text));
        }
        Ok(())
    }

    /// Takes one of the reads of a minute.
    pub(crate) fn count_read(&self) -> Result<(), No> {
        let rate = Rate { burst: READS_PER_MINUTE, per_minute: READS_PER_MINUTE };
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.take(rate, Instant::now()).map_err(|wait| {
            No::exhausted(format!("over {READS_PER_MINUTE} requests a minute"), times::ms(wait))
        })
    }

    /// Takes one of the messages that its principal may write in a minute.
    pub(crate) fn count_write(&self) -> Result<(), No> {
        if self.owner {
            return Ok(());
        }
        let per_minute = self.shared.settings().requests_per_minute;
        let rate = Rate { burst: WRITES_BURST, per_minute };
        self.shared.count_write(&self.principal, rate).map_err(|wait| {
            No::exhausted(format!("over {per_minute} messages a minute"), times::ms(wait))
        })
    }

    /// Whether its key is still valid.
    pub(crate) async fn is_valid(&self) -> Result<(), No> {
        let now = Instant::now();
        let ended = self.shared.desk.keys_ended();
        let known = *self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some_and(|known| known.holds(ended, now)) {
            return Ok(());
        }
        self.shared.desk.holder(self.key.clone()).await?;
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        *valid = Some(Valid { ended, at: now });
        Ok(())
    }

    /// Reads something as the holder of the key.
    pub(crate) async fn read<C: Ask>(&self, call: C) -> Result<C::Answer, No> {
        Ok(self.shared.desk.ask(&self.holder, call).await?)
    }

    /// Reads something in the name of an agent of the key: direct rooms are read by their agents alone.
    pub(crate) async fn read_as<C: Ask>(&self, agent: &AgentId, call: C) -> Result<C::Answer, No> {
        Ok(self.shared.desk.ask(&self.named(agent), call).await?)
    }

    /// The key, in the name of an agent.
    pub(crate) fn named(&self, agent: &AgentId) -> Visitor {
        self.holder.clone().named(Some(agent.clone()))
    }

    /// Does something as a principal, which is attached for it.
    pub(crate) async fn act<C: Ask>(&self, who: &Speaker, call: C) -> Result<C::Answer, No> {
        Ok(self.try_act(who, call).await?)
    }

    /// The same, for those who have words of their own for some refusals.
    pub(crate) async fn try_act<C: Ask>(
        &self,
        who: &Speaker,
        call: C,
    ) -> Result<C::Answer, Refusal> {
        let attach = Attach {
            key: self.key.clone(),
            name: who.user.clone(),
            identity: Identity::Named(who.agent.to_string()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: PRINCIPAL_STAYS,
        };
        let hosted = self.shared.desk.host(attach).await?;
        if hosted.came {
            self.shared.desk.ask(&hosted.visitor, StandOutside).await?;
        }
        self.shared.desk.ask(&hosted.visitor, call).await
    }

    /// Its own principal.
    pub(crate) fn speaker(&self) -> Speaker {
        Speaker { agent: self.principal.clone(), user: self.user.clone() }
    }

    /// Whether it is to be told of a user of its key.
    pub(crate) fn sees(&self, of: &Speaker, key: KeyPrint) -> bool {
        self.print() == key && (self.is_admin() || self.principal == of.agent)
    }

    /// The shape in which it is told of runs.
    pub(crate) fn shape(&self) -> Events {
        match self.shared.settings().events {
            Events::Auto if self.modern => Events::Envelope,
            Events::Auto => Events::Both,
            shape @ (Events::Flat | Events::Envelope | Events::Both) => shape,
        }
    }
}

/// The principal in whose name something is written: an administrator of a key can be each of the key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) agent: AgentId,
    pub(crate) user: String,
}
