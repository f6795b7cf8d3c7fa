//! Decisions of the operator about the bridge.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use mesh::{
    api::agenda::Standing,
    name::{
        id::{KeyPrint, RoomKey},
        key::KeySecret,
    },
    wire::{acts::Tier, signatures::SignedLog},
};
use sha2::{Digest as _, Sha256};

use crate::{
    announcing::Announcing,
    checkup::Examiner,
    figures::Figures,
    limits,
    listen::http::tls::Tls,
    policy::Policies,
    tokens::{Tokens, Visibility},
    waking::Wake,
};

/// Settings of a bridge.
#[derive(Debug)]
pub struct Config {
    /// The log that this node writes in its mesh: keys sign for it.
    pub here: SignedLog,
    /// The keys that may register.
    pub auth: Auth,
    /// The tokens that stand for keys here.
    pub tokens: Arc<Tokens>,
    /// The most that sandboxed tokens are shown.
    pub sandbox: Visibility,
    /// How much agents may say, at the start.
    pub quotas: Quotas,
    /// What is otherwise since then.
    pub changed: Changed,
    /// How the node was in the last hour and day: it adds to them.
    pub figures: Arc<Figures>,
    /// Makes the node's account of itself, for pages.
    pub examiner: Examiner,
    /// Where they may say it.
    pub policies: Arc<Policies>,
    /// The clients that may have a key made over HTTP.
    pub signup: Signup,
    /// Whether clients over HTTP that show no key read what is open to everybody: public rooms.
    pub strangers_read: bool,
    /// Origins (`https://example.org`) whose web pages may open `/ws` and ask over HTTP. A page of any
    /// other origin may not: it would be the browser's user that is attached without knowing.
    pub origins: Vec<String>,
    /// Names of this node over HTTP, besides those in `origins`. Requests for any other name are
    /// refused: see `http::guard`.
    pub hosts: Vec<String>,
    /// HTTP and WebSocket over TLS, with this certificate; `None`: in the clear.
    pub http_tls: Option<Tls>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Webhooks may go to addresses that are not public: to all that this node can reach.
    pub allow_private_webhooks: bool,
    /// Agents that are asked what is to be said of their conversations, and where. `None`: none is.
    pub announcing: Option<Announcing>,
    /// Agents whose hosts are told when something comes for them.
    pub wakes: Vec<Wake>,
    /// How long a run of a job of a schedule may take.
    pub run_limit: Duration,
    /// Connections of all transports together.
    pub connections_max: usize,
    /// Of these, connections over HTTP that are no WebSockets.
    pub http_connections_max: usize,
    /// The time for the head of the next request over HTTP, and then for its body.
    pub http_request_within: Duration,
    /// The time for a handshake of TLS.
    pub tls_handshake_within: Duration,
}

impl Config {
    /// The defaults of the specification.
    #[must_use]
    pub fn new(auth: Auth, here: SignedLog) -> Config {
        Config {
            here,
            auth,
            tokens: Arc::default(),
            sandbox: Visibility::Spawned,
            quotas: Quotas::default(),
            changed: Changed::default(),
            figures: Arc::default(),
            examiner: Examiner::default(),
            policies: Arc::default(),
            signup: Signup::Off,
            strangers_read: true,
            origins: Vec::new(),
            hosts: Vec::new(),
            http_tls: None,
            trusted_proxies: Vec::new(),
            allow_private_webhooks: false,
            announcing: None,
            wakes: Vec::new(),
            run_limit: limits::SCHEDULE_RUN_LIMIT,
            connections_max: limits::CONNECTIONS_MAX,
            http_connections_max: limits::HTTP_CONNECTIONS_MAX,
            http_request_within: limits::HTTP_REQUEST_WITHIN,
            tls_handshake_within: limits::TLS_HANDSHAKE_WITHIN,
        }
    }

    /// How much an agent of this standing may say. A node that checks no keys sets no limits either.
    #[must_use]
    pub fn quota(&self, standing: Standing) -> Quota {
        let quotas = self.changed.get().map_or(self.quotas, |changed| changed.quotas);
        match (&self.auth, standing) {
            (Auth::Open, _) => Quota::NONE,
            (Auth::Key(_), Standing::Own) => quotas.own,
            (Auth::Key(_), Standing::Minted { tier: Tier::Low, .. }) => quotas.free,
            (Auth::Key(_), Standing::Minted { tier: Tier::High, .. }) => quotas.pro,
        }
    }

    /// Whether one of these is among the origins that may ask, as they are now.
    pub(crate) fn any_origin(&self, is: impl FnMut(&String) -> bool) -> bool {
        match self.changed.get() {
            Some(changed) => changed.origins.iter().any(is),
            None => self.origins.iter().any(is),
        }
    }

    /// The same of the names of this node.
    pub(crate) fn any_host(&self, is: impl FnMut(&String) -> bool) -> bool {
        match self.changed.get() {
            Some(changed) => changed.hosts.iter().any(is),
            None => self.hosts.iter().any(is),
        }
    }
}

/// Settings that change while the node runs.
#[derive(Clone, Debug)]
pub struct Changeable {
    /// See [`Config::quotas`].
    pub quotas: Quotas,
    /// See [`Config::origins`].
    pub origins: Vec<String>,
    /// See [`Config::hosts`].
    pub hosts: Vec<String>,
}

/// What is otherwise than at the start. All copies are one.
#[derive(Clone, Debug, Default)]
pub struct Changed(Arc<RwLock<Option<Arc<Changeable>>>>);

impl Changed {
    fn get(&self) -> Option<Arc<Changeable>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it is so.
    pub fn set(&self, to: Changeable) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(to));
    }
}

/// How much agents of one key may say at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Messages and acts together, of all connections of the key, in any minute: `send_message`,
    /// `thinking`, `decision`; acts in votes, elections and tasks; `subscribe`. `None`: as many
    /// as they like.
    pub messages_per_minute: Option<u32>,
    /// Content of one of them, in bytes. At most [`mesh::limits::CONTENT_BYTES_MAX`].
    pub content_bytes_max: usize,
}

impl Quota {
    const NONE: Quota =
        Quota { messages_per_minute: None, content_bytes_max: mesh::limits::CONTENT_BYTES_MAX };
}

/// How much agents may say, by the kind of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of the node's own key.
    pub own: Quota,
    /// Of [`Tier::Low`].
    pub free: Quota,
    /// Of [`Tier::High`].
    pub pro: Quota,
}

impl Default for Quotas {
    /// Spec §8.
    fn default() -> Quotas {
        let quota = |messages_per_minute, content_bytes_max| Quota {
            messages_per_minute,
            content_bytes_max,
        };
        Quotas {
            own: quota(None, 65_536),
            free: quota(Some(200), 65_536),
            pro: quota(Some(2_000), 262_144),
        }
    }
}

/// The clients that may have a key made over HTTP.
#[derive(Debug)]
pub enum Signup {
    /// Nobody.
    Off,
    /// Holders of the operator's secret.
    Admin(AdminSecret),
    /// Everybody, a few per hour and address.
    Open,
}

/// The operator's secret, as a hash: the secret itself is not kept.
#[derive(Debug)]
pub struct AdminSecret([u8; 32]);

impl AdminSecret {
    /// From the secret's text.
    #[must_use]
    pub fn new(secret: &str) -> AdminSecret {
        AdminSecret(Sha256::digest(secret).into())
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        given.len() <= limits::KEY_BYTES_MAX && same(&self.0, &Sha256::digest(given).into())
    }
}

/// The keys that may register.
#[derive(Debug)]
pub enum Auth {
    /// Everybody, with any key; every room is visible.
    Open,
    /// The node's key, and those that were minted.
    Key(NodeKey),
}

/// A key that a client showed, as the mesh is told of it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) key: KeyPrint,
    /// It is the node's own, or the node checks none. Whether another one is valid the mesh knows.
    pub(crate) own: bool,
    /// Opens the private rooms of a key that is not the node's own: those of its own stay on it.
    pub(crate) opener: Option<RoomKey>,
    /// Signs for it. `None`: the node checks no keys.
    pub(crate) secret: Option<KeySecret>,
}

impl Auth {
    /// Whether a key is valid here without being minted: it is the node's own, or none is checked.
    #[must_use]
    pub fn owns(&self, key: KeyPrint) -> bool {
        match self {
            Auth::Open => true,
            Auth::Key(own) => own.is(key),
        }
    }

    /// The print that the node's own key has here.
    #[must_use]
    pub fn own_print(&self, text: &str) -> KeyPrint {
        self.identify(text).map_or(KeyPrint::OPEN, |shown| shown.key)
    }

    /// The meaning of a key here. `None`: it cannot be valid.
    pub(crate) fn identify(&self, text: &str) -> Option<Shown> {
        match self {
            Auth::Open => {
                Some(Shown { key: KeyPrint::OPEN, own: true, opener: None, secret: None })
            }
            Auth::Key(_) if text.len() > limits::KEY_BYTES_MAX => None,
            Auth::Key(own) => {
                // Once for each connection, on its own thread: it costs a tenth of a millisecond.
                let secret = KeySecret::of(text);
                let key = secret.print();
                let own = own.is(key);
                let opener = (!own).then(|| RoomKey::of(text));
                Some(Shown { key, own, opener, secret: Some(secret) })
            }
        }
    }
}

/// The node's own key, as its fingerprint: the key itself is not kept.
#[derive(Debug)]
pub struct NodeKey(RwLock<KeyPrint>);

impl NodeKey {
    /// From the key's text.
    #[must_use]
    pub fn new(key: &str) -> NodeKey {
        NodeKey(RwLock::new(KeyPrint::of(key)))
    }

    /// From now on only this key is the node's own. Agents that are attached stay.
    pub fn rotate(&self, key: &str) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = KeyPrint::of(key);
    }

    fn is(&self, given: KeyPrint) -> bool {
        same(&self.0.read().unwrap_or_else(PoisonError::into_inner).0, &given.0)
    }
}

/// In constant time: how long it takes tells nothing of either.
fn same<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_key_is_the_only_one_of_the_nodes_own() {
        let auth = Auth::Key(NodeKey::new("old"));
        let own = |auth: &Auth, key: &str| auth.identify(key).map(|shown| shown.own);
        assert_eq!(own(&auth, "old"), Some(true));
        assert_eq!(own(&auth, "new"), Some(false));
        let Auth::Key(key) = &auth else { unreachable!("made above") };
        key.rotate("new");
        assert_eq!(own(&auth, "new"), Some(true));
        assert_eq!(own(&auth, "old"), Some(false));
        assert_eq!(own(&auth, &"n".repeat(limits::KEY_BYTES_MAX + 1)), None);
    }

    #[test]
    fn a_key_of_others_opens_its_own_rooms_and_the_nodes_own_stay_here() {
        let auth = Auth::Key(NodeKey::new("own"));
        let shown = auth.identify("minted").unwrap();
        assert_eq!(shown.key, KeyPrint::of("minted"));
        assert!(shown.opener == Some(RoomKey::of("minted")));
        assert!(auth.identify("own").unwrap().opener.is_none());
        let shown = Auth::Open.identify("any").unwrap();
        assert_eq!((shown.key, shown.own), (KeyPrint::OPEN, true));
        assert!(shown.opener.is_none());
    }

    #[test]
    fn a_secret_is_itself_and_nothing_else() {
        let secret = AdminSecret::new("s");
        assert!(secret.is("s"));
        assert!(!secret.is("") && !secret.is("ss"));
        assert!(!format!("{:?}", AdminSecret::new("s3cret")).contains("s3cret"));
    }
}
