//! Everything that all states of a small world share: nodes' names and keys, messages and states of single nodes, each
//! kept once, and what became of a state of a node that was given something.
//!
//! A node is a function of its state and of what it is given. So each pair of these is worked out once, however many
//! states of the world contain it: there are far fewer states of a node than of the world.

use std::{collections::HashMap, rc::Rc, time::Duration};

use mesh::{
    Config, Identity, MeshSecret,
    limits::TICK,
    name::{
        id::{NodeId, RoomId},
        time::Now,
    },
    wire::{message::Message, run::Verified, signatures::SignedLog},
};

use super::{
    facts::Facts,
    local::{Given, Local, Said},
    setting::Setting,
};
use crate::sim::{
    promises::Broken,
    signing::{AnyJudge, Signing},
};

/// The wall clock at the beginning. Unix milliseconds.
const EPOCH_MS: u64 = 1_800_000_000_000;

/// A message that was sent.
pub(super) type MessageIx = u32;
/// A state of one node.
pub(super) type LocalIx = u32;

/// What a state of a node became.
#[derive(Clone, Debug)]
pub(super) struct Became {
    pub(super) local: LocalIx,
    pub(super) said: Rc<[Said]>,
}

/// One node, as it never changes.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) id: NodeId,
    pub(super) identity: Identity,
    pub(super) config: Config,
    pub(super) log: SignedLog,
}

/// Messages, each once.
#[derive(Debug, Default)]
pub(super) struct Messages {
    by_bytes: HashMap<Vec<u8>, MessageIx>,
    all: Vec<Message<Verified>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) setting: Setting,
    pub(super) nodes: Vec<Fixed>,
    pub(super) lobby: RoomId,
    pub(super) mesh: MeshSecret,
    judge: AnyJudge,
    pub(super) messages: Messages,
    locals: Vec<Option<Box<Local>>>,
    facts: Vec<FactsIx>,
    by_digest: HashMap<u64, LocalIx>,
    facts_by_digest: HashMap<u64, FactsIx>,
    all_facts: Vec<Rc<Facts>>,
    became: HashMap<(LocalIx, u32, Given), Became>,
    /// Steps of single nodes that were worked out.
    pub(super) worked_out: u64,
}

/// Facts of a node.
pub(super) type FactsIx = u32;

impl Lab {
    pub(super) fn new(setting: Setting) -> Lab {
        let seeds: Vec<[u8; 32]> = (1..).take(setting.nodes).map(|seed| [seed; 32]).collect();
        let signing = Signing::Simulated;
        let identities: Vec<Identity> = seeds.iter().map(|seed| signing.identity(seed)).collect();
        let founder = identities[0].node_id();
        let mesh = MeshSecret::new([7; 32], founder);
        let fixed = |(i, identity): (u64, Identity)| {
            let mut config = Config::new(mesh.mesh_id(), founder);
            config.name = format!("node{i}");
            config.seed = i + 1;
            let id = identity.node_id();
            Fixed { id, identity, config, log: SignedLog { mesh: mesh.mesh_id(), node: id } }
        };
        Lab {
            setting,
            nodes: (0..).zip(identities).map(fixed).collect(),
            lobby: RoomId::lobby(mesh.mesh_id()),
            judge: signing.judge(&seeds),
            mesh,
            messages: Messages::default(),
            locals: Vec::new(),
            facts: Vec::new(),
            by_digest: HashMap::new(),
            facts_by_digest: HashMap::new(),
            all_facts: Vec::new(),
            became: HashMap::new(),
            worked_out: 0,
        }
    }

    pub(super) fn index(&self, id: NodeId) -> Option<u8> {
        let at = self.nodes.iter().position(|node| node.id == id)?;
        u8::try_from(at).ok()
    }

    /// Whether only one node has a room.
    pub(super) fn is_private(&self, room: RoomId) -> bool {
        let private = |node: &Fixed| RoomId::private_directory(self.mesh.mesh_id(), node.id);
        self.nodes.iter().any(|node| private(node) == room)
    }

    // Messages.

    pub(super) fn message(&self, ix: MessageIx) -> &Message<Verified> {
        &self.messages.all[ix as usize]
    }

    /// A message as its receivers take it: encoded, decoded and verified, once.
    pub(super) fn send(&mut self, message: &Message) -> MessageIx {
        let bytes = message.encode();
        if let Some(ix) = self.messages.by_bytes.get(&bytes) {
            return *ix;
        }
        let read = Message::decode(&bytes).expect("messages of nodes can be read");
        let read = read.verify_by(&*self.judge, self.mesh.mesh_id()).expect("they are sealed");
        let ix = MessageIx::try_from(self.messages.all.len()).expect("memory ends first");
        self.messages.all.push(read);
        self.messages.by_bytes.insert(bytes, ix);
        ix
    }

    // States of nodes.

    pub(super) fn local(&self, ix: LocalIx) -> &Local {
        self.locals[ix as usize].as_ref().expect("states in use are kept")
    }

    pub(super) fn facts_ix(&self, ix: LocalIx) -> FactsIx {
        self.facts[ix as usize]
    }

    pub(super) fn facts(&self, ix: FactsIx) -> &Facts {
        &self.all_facts[ix as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.locals.len()
    }

    pub(super) fn keep(&mut self, local: Local) -> LocalIx {
        let digest = local.digest();
        if let Some(ix) = self.by_digest.get(&digest) {
            // It may have been dropped meanwhile.
            self.locals[*ix as usize].get_or_insert_with(|| Box::new(local));
            return *ix;
        }
        let facts_digest = local.facts_digest();
        let facts = *self.facts_by_digest.entry(facts_digest).or_insert_with(|| {
            self.all_facts.push(local.facts());
            FactsIx::try_from(self.all_facts.len() - 1).expect("memory ends first")
        });
        let ix = LocalIx::try_from(self.locals.len()).expect("memory ends first");
        self.locals.push(Some(Box::new(local)));
        self.facts.push(facts);
        self.by_digest.insert(digest, ix);
        ix
    }

    /// Only these states are in use from now on: the others need not be kept.
    pub(super) fn keep_only(&mut self, used: &[bool]) {
        for (local, used) in self.locals.iter_mut().zip(used) {
            if !used {
                *local = None;
            }
        }
        let locals = &self.locals;
        self.became.retain(|(local, _, _), _| locals[*local as usize].is_some());
    }

    /// A node in this state is given something.
    ///
    /// # Errors
    ///
    /// The promise that this breaks.
    pub(super) fn give(&mut self, local: LocalIx, at: u32, given: Given) -> Result<Became, Broken> {
        let key = (local, at, given);
        if let Some(became) = self.became.get(&key) {
            // What it became may have been dropped meanwhile.
            if self.locals[became.local as usize].is_some() {
                return Ok(became.clone());
            }
        }
        self.worked_out += 1;
        let mut next = self.local(local).clone();
        let said = next.take(self, now(at), &key.2)?;
        let became = Became { local: self.keep(next), said: said.into() };
        self.became.insert(key, became.clone());
        Ok(became)
    }
}

/// The time by a node's clocks, which are right.
pub(super) fn now(at: u32) -> Now {
    let mono = Duration::from_secs(1) + TICK * at;
    let wall_us = EPOCH_MS * 1_000 + u64::try_from(mono.as_micros()).expect("it is short");
    Now { mono, wall_ms: wall_us / 1_000, wall_us }
}
