//! Tokens: what the host of one agent shows in the place of a key. A token stands for a key at one node, and allows less
//! than the key does.
//!
//! A node keeps the hash of a token, and the text of its key sealed with a secret that follows from the token's text. So it
//! acts for the key while the token is shown, and its files alone give neither of the two away.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mesh::{
    api::{agenda::Standing, command::RoomView},
    name::{
        id::{AgentId, KeyPrint},
        key::KeySecret,
    },
    wire::{seal::Between, signatures::SignedLog},
};
use sha2::{Digest as _, Sha256};

use crate::{ids, secret::Secret};

/// With it the text of each token begins.
const PREFIX: &str = "cmt_";
/// For what the secret of a token is used.
const LABEL: &[u8] = b"clawmesh token";
/// The same of keys that dialects keep.
const KEPT_LABEL: &[u8] = b"clawmesh kept key";

/// Something that the holder of a token or key may do. None follows from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// See which sessions, agents and rooms there are.
    List,
    /// Read what was said, and wait for it.
    History,
    /// Say something.
    Send,
    /// Hand a task over.
    Spawn,
    /// Be in rooms, and leave them.
    Rooms,
    /// Votes.
    Votes,
    /// Tasks.
    Tasks,
    /// Looking for agents that offer something.
    Finder,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 8] = [
        Scope::List,
        Scope::History,
        Scope::Send,
        Scope::Spawn,
        Scope::Rooms,
        Scope::Votes,
        Scope::Tasks,
        Scope::Finder,
    ];

    /// As operators and programs write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::List => "list",
            Scope::History => "history",
            Scope::Send => "send",
            Scope::Spawn => "spawn",
            Scope::Rooms => "rooms",
            Scope::Votes => "votes",
            Scope::Tasks => "tasks",
            Scope::Finder => "finder",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// Some scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// All of them.
    pub const ALL: Scopes = Scopes(u8::MAX);

    /// Those of a key that may only read.
    #[must_use]
    pub fn reading() -> Scopes {
        [Scope::List, Scope::History].into_iter().collect()
    }

    /// Whether a scope is among them.
    #[must_use]
    pub fn has(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// Those that are in both.
    #[must_use]
    pub fn within(self, others: Scopes) -> Scopes {
        Scopes(self.0 & others.0)
    }

    /// Each, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |all, scope| all | 1 << scope as u8))
    }
}

/// The sessions that an agent is shown; each step has those of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// Its own one: what is for it.
    Own,
    /// And the tasks that it has handed over.
    Spawned,
    /// And its direct rooms, the rooms that it is in, and tasks that it was given.
    Joined,
    /// And all rooms that its key may read.
    All,
}

/// Whether an agent is shown a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It is.
    Shown,
    /// If it is in it.
    Inside,
    /// It is not.
    Hidden,
}

impl Visibility {
    /// All of them.
    pub const ALL: [Visibility; 4] =
        [Visibility::Own, Visibility::Spawned, Visibility::Joined, Visibility::All];

    /// As operators and programs write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Visibility::Own => "self",
            Visibility::Spawned => "spawned",
            Visibility::Joined => "joined",
            Visibility::All => "all",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Visibility> {
        Visibility::ALL.into_iter().find(|visibility| visibility.name() == name)
    }

    /// Whether an agent is shown a room that its key may read.
    #[must_use]
    pub fn of(self, room: &RoomView, agent: &AgentId) -> Sight {
        let sides = room.sides.as_ref();
        let is_own = !room.task && sides.is_some_and(|sides| sides.peer_of(agent) == agent);
        let is_spawned = room.task && room.created_by.as_ref() == Some(agent);
        let lowest = match (is_own, is_spawned, sides) {
            (true, ..) => Visibility::Own,
            (false, true, _) => Visibility::Spawned,
            // Of other agents no direct room is to be read.
            (false, false, Some(_)) => Visibility::Joined,
            (false, false, None) => Visibility::All,
        };
        if self >= lowest {
            Sight::Shown
        } else if self == Visibility::Joined {
            Sight::Inside
        } else {
            Sight::Hidden
        }
    }
}

/// The terms on which a token was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The agent that its holder acts as.
    pub agent: AgentId,
    /// Its name, if it gives itself none.
    pub name: Option<String>,
    /// Those that the token has, of those that its key has. `None`: all.
    pub scopes: Option<Scopes>,
    /// Names of the groups of tools that it may be offered, as its dialect has them. `None`: all.
    pub tools: Option<String>,
    /// The sessions that it is shown.
    pub visibility: Visibility,
    /// The operator's setting for sandboxes holds, too.
    pub sandboxed: bool,
    /// From then on it is not valid. Unix milliseconds.
    pub expires_ms: Option<u64>,
}

/// A token, as its node keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// The key that it stands for.
    pub key: KeyPrint,
    /// The text of that key, sealed: only the text of the token opens it.
    pub sealed: Vec<u8>,
    /// When it was made. Unix milliseconds.
    pub made_ms: u64,
    /// See there.
    pub terms: Terms,
}

impl Token {
    /// A new one for a key, and its text. `None`: never, but by a chance of 2^-250.
    #[must_use]
    pub fn make(
        here: &SignedLog,
        key: &Secret,
        terms: Terms,
        now_ms: u64,
    ) -> Option<(Secret, Token)> {
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(ids::random::<32>()));
        let hash = Sha256::digest(&text).into();
        let sealed = seal_of(here, &text)?.seal(&spot(here, &hash), key.expose().as_bytes());
        let key = KeyPrint::of(key.expose());
        Some((Secret::new(text), Token { hash, key, sealed, made_ms: now_ms, terms }))
    }

    /// Whether its time is over.
    #[must_use]
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.terms.expires_ms.is_some_and(|expires| now_ms >= expires)
    }

    /// The text of its key. `None`: this is not the token's text, or it was made at another node.
    fn open(&self, here: &SignedLog, text: &str) -> Option<Secret> {
        let opened = seal_of(here, text)?.open(&spot(here, &self.hash), &self.sealed)?;
        String::from_utf8(opened).ok().map(Secret::new)
    }
}

/// Two secrets are made of the same text, the hash and this one: neither tells the other.
fn seal_of(here: &SignedLog, text: &str) -> Option<Between> {
    seal_for(here, text, LABEL)
}

fn seal_for(here: &SignedLog, text: &str, label: &[u8]) -> Option<Between> {
    let secret = KeySecret::of(text);
    let mailbox = secret.mailbox().ok()?;
    Between::of(here.mesh, mailbox, &mailbox.public(), label)
}

/// The text of a key, sealed so that a secret opens it at this node: for dialects that keep keys for holders of a secret, which
/// they do not keep. `None`: the secret is too short.
#[must_use]
pub fn seal_key(here: &SignedLog, secret: &Secret, key: &Secret) -> Option<Vec<u8>> {
    let seal = seal_for(here, secret.expose(), KEPT_LABEL)?;
    Some(seal.seal(&here.node.0, key.expose().as_bytes()))
}

/// The text of a key that was [sealed](seal_key) so. `None`: this is not the secret, or it was sealed at another node.
#[must_use]
pub fn open_key(here: &SignedLog, secret: &Secret, sealed: &[u8]) -> Option<Secret> {
    let opened = seal_for(here, secret.expose(), KEPT_LABEL)?.open(&here.node.0, sealed)?;
    String::from_utf8(opened).ok().map(Secret::new)
}

fn spot(here: &SignedLog, hash: &[u8; 32]) -> Vec<u8> {
    [&here.node.0[..], hash].concat()
}

/// The tokens of a node.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<BTreeMap<[u8; 32], Arc<Token>>>);

impl Tokens {
    /// From now on these are valid, and no others.
    pub fn replace(&self, tokens: impl IntoIterator<Item = Token>) {
        let tokens = tokens.into_iter().map(|token| (token.hash, Arc::new(token)));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.collect();
    }

    /// The key that a text stands for, if it is a token that is valid now.
    pub(crate) fn open(
        &self,
        here: &SignedLog,
        text: &str,
        now_ms: u64,
    ) -> Option<(Secret, Arc<Token>)> {
        if !text.starts_with(PREFIX) {
            return None;
        }
        let hash: [u8; 32] = Sha256::digest(text).into();
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.get(&hash).filter(|token| !token.is_over(now_ms))?.clone();
        drop(tokens);
        Some((token.open(here, text)?, token))
    }
}

/// What the holder of a token or key may do: the same for all dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The only agent that it may act as, if there is one.
    pub agent: Option<AgentId>,
    /// The name of that agent, if it gives itself none.
    pub name: Option<String>,
    /// See there.
    pub scopes: Scopes,
    /// Names of the groups of tools that it may be offered. `None`: all.
    pub tools: Option<String>,
    /// The sessions that it is shown.
    pub visibility: Visibility,
    /// It is a sandbox, and is told so.
    pub sandboxed: bool,
}

impl Grant {
    /// Of a key. One that may only read joins no room, so it reads all that it may without.
    #[must_use]
    pub fn of_key(standing: Standing) -> Grant {
        let (scopes, visibility) = match standing.may_write() {
            true => (Scopes::ALL, Visibility::Joined),
            false => (Scopes::reading(), Visibility::All),
        };
        Grant { agent: None, name: None, scopes, tools: None, visibility, sandboxed: false }
    }

    /// Of a token for such a key. `sandbox`: the most that sandboxes are shown.
    #[must_use]
    pub fn of_token(terms: &Terms, standing: Standing, sandbox: Visibility) -> Grant {
        let Terms { agent, name, scopes, tools, visibility, sandboxed, expires_ms: _ } =
            terms.clone();
        let most = if sandboxed { sandbox } else { Visibility::All };
        Grant {
            agent: Some(agent),
            name,
            scopes: scopes.unwrap_or(Scopes::ALL).within(Grant::of_key(standing).scopes),
            tools,
            visibility: visibility.min(most),
            sandboxed,
        }
    }

    /// Whether what it is not shown is as what does not exist. Elsewhere rooms can be seen that are not read, to be joined.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.sandboxed || self.visibility < Visibility::Joined
    }
}

#[cfg(test)]
mod tests {
    use mesh::name::id::NodeId;

    use super::*;
    use crate::testing::here;

    fn terms() -> Terms {
        Terms {
            agent: "ada".into(),
            name: None,
            scopes: None,
            tools: None,
            visibility: Visibility::All,
            sandboxed: false,
            expires_ms: Some(1_000),
        }
    }

    #[test]
    fn a_token_opens_its_key_at_its_node_until_it_expires() {
        let key = Secret::new("k".repeat(64));
        let (text, token) = Token::make(&here(), &key, terms(), 0).unwrap();
        assert_eq!((text.expose().len(), token.key), (47, KeyPrint::of(key.expose())));
        let kept = format!("{token:?}");
        assert!(!kept.contains(text.expose()) && !kept.contains(key.expose()));
        assert!(!token.sealed.windows(8).any(|bytes| bytes == &key.expose().as_bytes()[..8]));
        let tokens = Tokens::default();
        let open = |text: &str, now| tokens.open(&here(), text, now).map(|(key, _)| key);
        assert_eq!(open(text.expose(), 0), None);
        tokens.replace([token.clone()]);
        assert_eq!(open(text.expose(), 999), Some(key));
        assert_eq!(open(text.expose(), 1_000), None, "its time is over");
        assert_eq!(open(&text.expose()[..46], 0), None);
        let elsewhere = SignedLog { node: NodeId([9; 32]), ..here() };
        assert!(
            tokens.open(&elsewhere, text.expose(), 0).is_none(),
            "a copy of its files is no other node"
        );
        tokens.replace([]);
        assert_eq!(open(text.expose(), 0), None, "revoked");
    }

    #[test]
    fn a_key_is_kept_for_the_holder_of_a_secret_at_this_node() {
        let (secret, key) = (Secret::new("s".repeat(36)), Secret::new("k".repeat(64)));
        let sealed = seal_key(&here(), &secret, &key).unwrap();
        assert!(!sealed.windows(8).any(|bytes| bytes == &key.expose().as_bytes()[..8]));
        assert_eq!(open_key(&here(), &secret, &sealed), Some(key));
        assert_eq!(open_key(&here(), &Secret::new("t".repeat(36)), &sealed), None);
        let elsewhere = SignedLog { node: NodeId([9; 32]), ..here() };
        assert_eq!(open_key(&elsewhere, &secret, &sealed), None);
    }

    #[test]
    fn a_token_allows_no_more_than_its_key_and_a_sandbox_no_more_than_the_operator() {
        let reads =
            Standing::Minted { tier: mesh::wire::acts::Tier::Low, writes: false, approves: false };
        let (spawned, all) = (Visibility::Spawned, Visibility::All);
        let grant = Grant::of_token(&terms(), reads, spawned);
        let names: Vec<&str> = grant.scopes.iter().map(Scope::name).collect();
        assert_eq!((names, grant.visibility, grant.hides()), (vec!["list", "history"], all, false));
        let sandboxed = Terms { sandboxed: true, ..terms() };
        let grant = Grant::of_token(&sandboxed, Standing::Own, spawned);
        assert_eq!((grant.scopes, grant.visibility, grant.hides()), (Scopes::ALL, spawned, true));
        let grant = Grant::of_token(&sandboxed, Standing::Own, all);
        assert_eq!(
            (grant.visibility, grant.hides()),
            (all, true),
            "no clamp, and it is told nothing more"
        );
        let lists = Terms { scopes: Some([Scope::List].into_iter().collect()), ..terms() };
        let grant = Grant::of_token(&lists, Standing::Own, all);
        assert!(grant.scopes.has(Scope::List) && !grant.scopes.has(Scope::History));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        assert!(Scope::ALL.into_iter().all(|scope| Scope::named(scope.name()) == Some(scope)));
        let all = Visibility::ALL.into_iter();
        assert!(all.rev().all(|step| Visibility::named(step.name()) == Some(step)));
        assert_eq!((Scope::named("root"), Visibility::named("none")), (None, None));
        assert!(Visibility::ALL.is_sorted());
    }
}
