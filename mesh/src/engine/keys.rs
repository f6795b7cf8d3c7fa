//! Keys: minting them, revoking them, and what each may do at this node.
//!
//! Any node of the mesh may mint and revoke: whoever holds a ticket is trusted with that
//! (`docs/decisions/keys.md`). Limits are this node's alone. They are counted in the step that takes
//! what they limit, so nothing can come in between.

use super::Engine;
use crate::{
    api::{
        agenda::{KeyLimits, NewKey, Standing},
        batch::Change,
        boundary::Effect,
        command::{Attach, Opaque, Outcome, Refused},
        event::AgentEvent,
    },
    directory::{keys::Directories, naming::Named},
    limits::{AGENT_IDS_PER_AGENT, KEY_LABEL_BYTES_MAX, KEYS_MAX},
    name::id::{AgentId, KeyPrint, RoomId},
    wire::{
        acts::{KeyAct, KeyMinted, Tier},
        entry::Body,
        roster::AgentRecord,
    },
};

impl Engine {
    // Which keys there are.

    /// `kept`: how many places it leaves.
    pub(super) fn mint_key(&mut self, it: NewKey, kept: usize) -> Result<Outcome, Refused> {
        if it.label.as_ref().is_some_and(|it| it.len() > KEY_LABEL_BYTES_MAX) {
            let text = format!("label may have {KEY_LABEL_BYTES_MAX} bytes");
            return Err(Refused::Invalid(text));
        }
        if it.key == KeyPrint::OPEN || self.directory.keys.knows(it.key) {
            let text = "a key with this fingerprint was minted before: make up another one";
            return Err(Refused::Invalid(text.to_owned()));
        }
        if self.directory.keys.places() <= kept {
            let max = KEYS_MAX - kept;
            return Err(Refused::Full(format!("the mesh has {max} keys, which is the most")));
        }
        let minted = KeyMinted { key: it.key, tier: it.tier, label: it.label };
        self.write_key(it.local, KeyAct::Minted(minted))?;
        Ok(Outcome::Done)
    }

    pub(super) fn revoke_key(&mut self, key: KeyPrint) -> Result<Outcome, Refused> {
        let known = &self.directory.keys;
        let minted = [Directories::Mesh, Directories::Node].map(|of| known.is_minted(key, of));
        if minted == [false, false] {
            return Err(Refused::NoKey);
        }
        if known.tier(key).is_none() {
            return Ok(Outcome::Done);
        }
        for local in [false, true] {
            if minted[usize::from(local)] {
                self.write_key(local, KeyAct::Revoked(key))?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Known at once: nothing that is decided in this turn goes by the old state.
    fn write_key(&mut self, local: bool, act: KeyAct) -> Result<(), Refused> {
        let mesh = self.cx.mesh;
        let directory = if local { self.cx.private_directory } else { RoomId::directory(mesh) };
        let room = self.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
        if !room.is_writable(&self.cx) {
            return Err(Refused::Full(super::rooms::NOT_WRITABLE.to_owned()));
        }
        room.append(&mut self.cx, &Body::Key(act)).ok_or(Refused::Closed)?;
        self.fold_facts();
        Ok(())
    }

    /// A key is no longer valid. LocalRef a start this is said of every such key: whoever was to be told
    /// may not have been when the node went down.
    pub(super) fn on_revoked(&mut self, key: KeyPrint) {
        if self.own_keys.contains(&key) {
            return;
        }
        self.cx.effects.push(Effect::Tell(AgentEvent::KeyRevoked { key }));
        let agents: Vec<(AgentId, AgentRecord)> =
            self.agents_of(key).map(|(agent, record)| (agent.clone(), record.clone())).collect();
        for (agent, record) in agents {
            self.send_off(&agent, record);
        }
        self.withdraw_rooms_of(key);
    }

    pub(super) fn list_keys(&self) -> Outcome {
        Outcome::Keys(self.directory.keys.views())
    }

    /// What a key is here: the node's own (`own`), or a minted one.
    pub(super) fn standing(&self, key: KeyPrint, own: bool) -> Result<Standing, Refused> {
        if own {
            return Ok(Standing::Own);
        }
        self.directory.keys.tier(key).map(Standing::Minted).ok_or(Refused::NoKey)
    }

    // What each may do here.

    fn limits_of(&self, key: KeyPrint) -> KeyLimits {
        if key == KeyPrint::OPEN {
            return KeyLimits::default();
        }
        let tiers = &self.config.tiers;
        match self.directory.keys.tier(key).filter(|_| !self.own_keys.contains(&key)) {
            None => tiers.own,
            Some(Tier::Low) => tiers.low,
            Some(Tier::High) => tiers.high,
        }
    }

    /// Connected here.
    fn agents_of(&self, key: KeyPrint) -> impl Iterator<Item = (&AgentId, &AgentRecord)> {
        self.rosters.own_agents().filter(move |(_, it)| it.key == key)
    }

    /// Whether one more agent of the key may be connected here. Whoever takes over a connection of
    /// this node is not one more.
    pub(super) fn may_have_agent(&self, attach: &Attach) -> Result<(), Refused> {
        let Some(max) = self.limits_of(attach.key).agents else { return Ok(()) };
        let others = self
            .agents_of(attach.key)
            .filter(|(agent, _)| !(attach.reconnect && **agent == attach.agent));
        if others.count() >= max { Err(Refused::TooManyAgents { max }) } else { Ok(()) }
    }

    /// Whether the key may claim one more stable id here.
    pub(super) fn may_claim(&self, key: KeyPrint) -> Result<(), Refused> {
        let Some(agents) = self.limits_of(key).agents else { return Ok(()) };
        let max = agents.saturating_mul(AGENT_IDS_PER_AGENT);
        if self.directory.claimed_by(self.cx.me, key) < max {
            return Ok(());
        }
        Err(Refused::Invalid(format!(
            "this key owns {max} stable agent ids of this node, which is the most: use one of them, or \
             register without `agent_id`"
        )))
    }

    /// Whether the key may have one more room that was made here: those whose name is not certain yet
    /// count, those that turned out to be none do not.
    pub(super) fn may_have_room(&self, key: KeyPrint) -> Result<(), Refused> {
        let Some(max) = self.limits_of(key).rooms else { return Ok(()) };
        let me = self.cx.me;
        let permanent = self.directory.made_by(me, key);
        let permanent = permanent.filter(|id| self.directory.name(*id) != Named::Void).count();
        let ephemeral = self
            .rosters
            .ephemeral_rooms()
            .filter(|it| it.home.author == me && it.facts.owner == key)
            .count();
        if permanent + ephemeral >= max { Err(Refused::TooManyRooms { max }) } else { Ok(()) }
    }

    // What the daemon keeps.

    pub(super) fn keep(&mut self, name: Vec<u8>, value: Option<Opaque>) -> Outcome {
        self.cx.change(Change::Keep { name, value });
        Outcome::Done
    }
}
