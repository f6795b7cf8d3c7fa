//! Which rooms are encrypted end to end, and with which secret.
//!
//! Where a secret applies, every content that is sent is encrypted and every blob that comes in is
//! decrypted, also if the node says otherwise of the room: a node cannot talk a client out of it. A blob that
//! does not open stays as it is, so that one bad message hides no other; [`Secrets::open`] names the
//! fault. Content that came unencrypted is passed on: it proves nothing either way.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use protocol::object::Content;
use zeroize::Zeroizing;

use crate::error::CallError;
use crate::sealing::{BadBlob, MARK, RoomKey};

/// A secret that the agents of a room share, and no node knows. Not empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A secret as it was handed over; `None` if it is empty.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        (!text.is_empty()).then_some(Self(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The secrets of a client. Clones share them; without any, content passes as it is.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Arc<RwLock<Held>>);

#[derive(Debug, Default)]
struct Held {
    rooms: HashMap<String, Secret>,
    others: Option<Secret>,
}

impl Secrets {
    /// One secret for every room that has none of its own.
    pub fn for_all_rooms(secret: Secret) -> Self {
        Self(Arc::new(RwLock::new(Held { rooms: HashMap::new(), others: Some(secret) })))
    }

    /// From now on this is the room's.
    pub fn set_room(&self, room_id: impl Into<String>, secret: Secret) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.rooms.insert(room_id.into(), secret);
    }

    /// The key of a room; `None` if no secret applies to it.
    pub fn key(&self, room_id: &str) -> Option<RoomKey> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let secret = held.rooms.get(room_id).or(held.others.as_ref())?;
        Some(RoomKey::derive(&secret.0, room_id))
    }

    /// The text of a content; `None` if it is not encrypted, or no secret applies to the room.
    ///
    /// # Errors
    /// [`BadBlob`] if it does not open.
    pub fn open(&self, room_id: &str, content: &str) -> Result<Option<String>, BadBlob> {
        if !content.starts_with(MARK) {
            return Ok(None);
        }
        self.key(room_id).map(|key| key.open(content)).transpose()
    }

    /// Encrypts a content that is to be sent.
    pub(crate) fn seal(&self, content: Content<'_>) -> Result<(), CallError> {
        if let Some(key) = self.key(content.room_id) {
            let mut nonce = [0; 12];
            getrandom::fill(&mut nonce).map_err(|_| CallError::NoRandomness)?;
            *content.text = key.seal(nonce, content.text)?;
        }
        Ok(())
    }

    /// Decrypts a content that came in, if it opens.
    pub(crate) fn open_in_place(&self, content: Content<'_>) {
        if let Ok(Some(text)) = self.open(content.room_id, content.text) {
            *content.text = text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text).unwrap()
    }

    #[test]
    fn a_rooms_own_secret_goes_before_the_one_for_all() {
        let secrets = Secrets::for_all_rooms(secret("all"));
        secrets.set_room("r", secret("own"));
        let seal = |secret: &str, room| RoomKey::derive(secret, room).seal([1; 12], "x").unwrap();
        let open = |room, blob: &str| secrets.open(room, blob);
        assert_eq!(open("r", &seal("own", "r")), Ok(Some("x".into())));
        assert_eq!(open("r", &seal("all", "r")), Err(BadBlob::DoesNotOpen));
        assert_eq!(open("q", &seal("all", "q")), Ok(Some("x".into())));
        assert_eq!(open("r", "plain"), Ok(None));
        assert_eq!(Secrets::default().open("r", "clw1:AAAA"), Ok(None));
    }

    #[test]
    fn secrets_are_not_empty_and_not_shown() {
        assert_eq!(Secret::new(""), None);
        let secrets = Secrets::for_all_rooms(secret("hush"));
        secrets.set_room("r", secret("quiet"));
        let shown = format!("{secrets:?} {:?}", secrets.key("r"));
        assert!(!shown.contains("hush") && !shown.contains("quiet"), "{shown}");
    }
}
