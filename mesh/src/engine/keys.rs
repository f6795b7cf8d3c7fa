//! Keys: minting them, revoking them, and their limits at this node.
//!
//! Any node of the mesh may mint and revoke: the holder of a ticket is trusted with that
//! (`docs/decisions/keys.md`). Limits are this node's alone. They are counted in the step that takes a
//! place, so nothing can come in between.

use super::known::Known;
use crate::{
    api::{
        agenda::{KeyLimits, NewKey, NewSuccessor},
        batch::Change,
        boundary::Effect,
        command::{Attach, Opaque, Outcome, Refused},
        event::AgentEvent,
    },
    directory::{keys::Directories, naming::Named},
    limits::{AGENT_IDS_PER_AGENT, KEY_LINE_MAX, KEYS_FOR_OPERATORS, KEYS_MAX},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        identity::Strict,
        key::KeySecret,
    },
    wire::{
        acts::{KeyAct, Tier},
        entry::Body,
        roster::AgentRecord,
        signatures::{KeySignature, SignedLog},
    },
};

// Which keys there are.

/// `kept`: how many places it leaves.
pub(super) fn mint(known: &mut Known, key: NewKey, kept: usize) -> Result<(), Refused> {
    let NewKey { minted, local } = key;
    minted.terms.check().map_err(Refused::Impossible)?;
    if minted.terms.is_over(known.cx.now.wall_ms) {
        return Err(Refused::Impossible(
            "the key would have expired before it is minted".to_owned(),
        ));
    }
    // Others would refuse it, and everything that this node writes after it.
    let log = SignedLog { mesh: known.cx.mesh, node: known.cx.me };
    if !minted.is_signed_by_its_key(&Strict, &log) {
        let text = "the key has not signed that it becomes valid at this node";
        return Err(Refused::Impossible(text.to_owned()));
    }
    if known.directory.keys().knows(minted.key()) {
        let text = "a key with this fingerprint was minted before: make up another one";
        return Err(Refused::Impossible(text.to_owned()));
    }
    if known.directory.keys().places() <= kept {
        let max = KEYS_MAX - kept;
        return Err(Refused::Full(format!("the mesh has {max} keys, which is the most")));
    }
    let of = if local { Directories::Node } else { Directories::Mesh };
    write(known, of, KeyAct::Minted(*minted))
}

/// Mints a key for a stranger.
pub(super) fn sign_up(known: &mut Known, key: NewKey) -> Result<(), Refused> {
    mint(known, key, KEYS_FOR_OPERATORS)
}

/// Writes down that the key was shown here, if that is new. Whether it did. It keeps nobody out: an agent whose voucher cannot be
/// written shows as not verified.
pub(super) fn vouch(known: &mut Known, key: KeyPrint, shown: Option<&KeySignature>) -> bool {
    let Some(shown) = shown.filter(|shown| shown.key() == key && lacks_voucher(known, key)) else {
        return false;
    };
    // Others would refuse it, and everything that this node writes after it.
    let log = SignedLog { mesh: known.cx.mesh, node: known.cx.me };
    shown.is_voucher(&Strict, &log)
        && write(known, Directories::Mesh, KeyAct::Shown(shown.clone())).is_ok()
}

/// The same of a key whose holder has this node sign records: others have to be able to check them.
pub(super) fn vouch_for_signer(known: &mut Known, key: KeyPrint, signer: &KeySecret) -> bool {
    if signer.print() != key || !lacks_voucher(known, key) {
        return false;
    }
    let log = SignedLog { mesh: known.cx.mesh, node: known.cx.me };
    // A key that is too short signs nothing: the write says so.
    let shown = KeySignature::of_voucher(signer, &log).ok();
    vouch(known, key, shown.as_ref())
}

fn lacks_voucher(known: &Known, key: KeyPrint) -> bool {
    let (me, directory) = (known.cx.me, &known.directory);
    !directory.is_vouched(me, key) && directory.has_room_for_voucher(me)
}

/// Makes a key invalid, in every directory that has it.
pub(super) fn revoke(known: &mut Known, key: KeyPrint) -> Result<(), Refused> {
    let keys = known.directory.keys();
    let minted =
        [Directories::Mesh, Directories::Node].into_iter().filter(|of| keys.is_minted(key, *of));
    let minted: Vec<Directories> = minted.collect();
    let is_valid = keys.tier(key).is_some();
    drop(keys);
    if minted.is_empty() {
        return Err(Refused::NoKey);
    }
    if !is_valid {
        return Ok(());
    }
    minted.into_iter().try_for_each(|of| write(known, of, KeyAct::Revoked(key)))
}

/// Gives all that is a key's own to another one, and ends the first.
pub(super) fn replace(known: &mut Known, new: NewSuccessor) -> Result<(), Refused> {
    let NewSuccessor { replaced, shown } = new;
    let no = |text: &str| Err(Refused::Impossible(text.to_owned()));
    let (key, successor) = (replaced.key(), replaced.successor.key());
    let (me, log) = (known.cx.me, SignedLog { mesh: known.cx.mesh, node: known.cx.me });
    if key == successor {
        return no("a key cannot replace itself");
    }
    // Others would refuse it, and everything that this node writes after it.
    if !replaced.is_signed_by_its_keys(&Strict, &log)
        || shown.key() != key
        || !shown.is_voucher(&Strict, &log)
    {
        return no("the two keys have not signed that one replaces the other at this node");
    }
    let keys = known.directory.keys();
    let minter = keys.answers(key);
    if let Some(minter) = minter.filter(|minter| *minter != me) {
        let name = known.directory.node_name(minter);
        return no(&format!("{name} minted the key: only that node can replace it"));
    }
    if let Some(next) = keys.successor(key) {
        if next == successor {
            // Said again: what follows it may have been cut short.
            return Ok(());
        }
        return no(&format!("the key was replaced before, by {next}"));
    }
    // Other nodes have to know the successor as they knew the key; one of this node alone is as good as its own.
    if minter.is_some() && !keys.is_minted(successor, Directories::Mesh) {
        return no("a key of the whole mesh is replaced by one that was minted for the whole mesh");
    }
    if keys.is_revoked(successor) {
        return no("the successor is not valid any more: make up another one");
    }
    if keys.line(key).len() + keys.line(successor).len() > KEY_LINE_MAX {
        return no(&format!("keys were replaced {KEY_LINE_MAX} times here, which is the most"));
    }
    drop(keys);
    if minter.is_none() && !known.directory.is_vouched(me, key) {
        if !known.directory.has_room_for_voucher(me) {
            return Err(Refused::Full("the mesh has no room for another voucher".to_owned()));
        }
        write(known, Directories::Mesh, KeyAct::Shown(*shown))?;
    }
    if !known.directory.keys().has_room_for(&KeyAct::Replaced((*replaced).clone())) {
        return Err(Refused::Full(format!("the mesh has {KEYS_MAX} keys, which is the most")));
    }
    write(known, Directories::Mesh, KeyAct::Replaced(*replaced))
}

/// The directory has to fold it at once: nothing that is decided in this turn goes by the old state.
pub(super) fn write(known: &mut Known, of: Directories, act: KeyAct) -> Result<(), Refused> {
    let mesh = known.cx.mesh;
    let directory = match of {
        Directories::Node => known.cx.private_directory,
        Directories::Mesh => RoomId::directory(mesh),
    };
    let room = known.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
    if !room.is_writable(&known.cx) {
        return Err(known.not_writable(directory));
    }
    room.append(&mut known.cx, &Body::Key(act)).map(drop).ok_or(Refused::Closed)
}

/// A key is no longer valid. At a start this is said of every one that was revoked: clients may not have been told when the
/// node went down. Returns the agents that have to go; `None`: it is the node's own all the same.
pub(super) fn on_invalid(known: &mut Known, key: KeyPrint) -> Option<Vec<(AgentId, AgentRecord)>> {
    if known.own_keys.contains(&key) {
        return None;
    }
    known.cx.effects.push(Effect::Tell(AgentEvent::KeyInvalid { key }));
    let agents = agents_of(known, key);
    Some(agents.map(|(agent, record)| (agent.clone(), record.clone())).collect())
}

pub(super) fn list(known: &Known) -> Outcome {
    Outcome::Keys(known.directory.keys().views())
}

// Limits of each key here.

fn limits_of(known: &Known, key: KeyPrint) -> KeyLimits {
    if key == KeyPrint::OPEN {
        return KeyLimits::default();
    }
    let tiers = &known.config.tiers;
    match known.directory.keys().tier(key).filter(|_| !known.own_keys.contains(&key)) {
        None => tiers.own,
        Some(Tier::Low) => tiers.low,
        Some(Tier::High) => tiers.high,
    }
}

/// Connected here.
fn agents_of(known: &Known, key: KeyPrint) -> impl Iterator<Item = (&AgentId, &AgentRecord)> {
    known.rosters.own_agents().filter(move |(_, record)| record.key == key)
}

/// Whether one more agent of the key may be connected here. An agent that takes over a connection of
/// this node is not one more, and agents without a connection do not count.
pub(super) fn may_have_agent(known: &Known, attach: &Attach) -> Result<(), Refused> {
    let Some(max) = limits_of(known, attach.key).agents else { return Ok(()) };
    let others = agents_of(known, attach.key)
        .filter(|(agent, record)| !(record.lingers || attach.reconnect && **agent == attach.agent));
    if others.count() >= max { Err(Refused::TooManyAgents { max }) } else { Ok(()) }
}

/// Whether the key may claim one more stable id here.
pub(super) fn may_claim(known: &Known, key: KeyPrint) -> Result<(), Refused> {
    let Some(agents) = limits_of(known, key).agents else { return Ok(()) };
    let max = agents.saturating_mul(AGENT_IDS_PER_AGENT);
    if known.directory.claimed_by(known.cx.me, key) < max {
        return Ok(());
    }
    Err(Refused::TooManyIds { max })
}

/// Whether the key may have one more room that was made here: those whose name is not certain yet
/// count, those that turned out to be none do not.
pub(super) fn may_have_room(known: &Known, key: KeyPrint) -> Result<(), Refused> {
    let Some(max) = limits_of(known, key).rooms else { return Ok(()) };
    let me = known.cx.me;
    let permanent = known.directory.made_by(me, key);
    let permanent = permanent.filter(|id| known.directory.name(*id) != Named::Void).count();
    let ephemeral = known
        .rosters
        .ephemeral_rooms()
        .filter(|ephemeral| {
            let owner = known.directory.current(ephemeral.facts.owner);
            ephemeral.home.author == me && owner == key
        })
        .count();
    if permanent + ephemeral >= max { Err(Refused::TooManyRooms { max }) } else { Ok(()) }
}

// Values that the daemon keeps.

pub(super) fn keep(known: &mut Known, name: Vec<u8>, value: Option<Opaque>) -> Outcome {
    known.cx.change(Change::Keep { name, value });
    Outcome::Done
}
