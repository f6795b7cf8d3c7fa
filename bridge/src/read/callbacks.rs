//! Posts to a URL that a host has given, for what it subscribes to in its dialect: signed as webhooks are, and bounded as those.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::{Desk, Visitor};
use crate::{
    limits::{CALLBACK_SECRET_BYTES, WEBHOOK_POSTS_AT_ONCE},
    seam::refusal::BadUrl,
    webhooks::{
        post::{Delivery, Post, PostError, Poster, Shown},
        sign::signed,
        target::Target,
        unix_seconds,
    },
};

/// Where posts go, and the secret that signs them.
#[derive(Clone)]
pub struct Callback {
    target: Target,
    secret: Bytes,
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// Why nothing can be posted.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// Of the URL.
    #[error("the URL must {0}")]
    Url(BadUrl),
    /// Of the secret.
    #[error("the secret must be whsec_ and the base64 of {min} to {max} bytes", min = CALLBACK_SECRET_BYTES.start(), max = CALLBACK_SECRET_BYTES.end())]
    Secret,
    /// It may not be posted to, or did not take it.
    #[error("{0}")]
    Post(String),
}

impl From<PostError> for CallbackError {
    fn from(error: PostError) -> CallbackError {
        CallbackError::Post(error.to_string())
    }
}

impl Callback {
    /// To this URL, with a secret as Standard Webhooks writes it: `whsec_` and base64.
    ///
    /// # Errors
    /// Something is wrong with one of the two.
    pub fn new(url: &str, secret: &str) -> Result<Callback, CallbackError> {
        let target = Target::parse(url).map_err(CallbackError::Url)?;
        let secret = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
        let secret = secret.filter(|bytes| CALLBACK_SECRET_BYTES.contains(&bytes.len()));
        Ok(Callback { target, secret: secret.ok_or(CallbackError::Secret)?.into() })
    }
}

/// The way of posts to callbacks.
pub(crate) struct Callbacks {
    poster: Poster,
    slots: Semaphore,
}

impl Callbacks {
    pub(crate) fn new(allow_private: bool) -> Callbacks {
        let slots = Semaphore::new(WEBHOOK_POSTS_AT_ONCE);
        Callbacks { poster: Poster::new(allow_private), slots }
    }
}

impl Desk {
    /// Whether posts of this visitor may go there. A name is looked up.
    ///
    /// # Errors
    /// They may not.
    pub async fn may_post(&self, of: &Visitor, to: &Callback) -> Result<(), CallbackError> {
        Ok(self.callbacks.poster.check(of.key(), &to.target).await?)
    }

    /// Posts a body, once. `id`: the receiver knows by it that it has had this one. The beginning of the answer.
    ///
    /// # Errors
    /// It did not come there, or was not taken.
    pub async fn post(
        &self,
        of: &Visitor,
        to: &Callback,
        id: &str,
        body: Bytes,
    ) -> Result<Bytes, CallbackError> {
        // An error: it is never closed.
        let _slot = self.callbacks.slots.acquire().await;
        let timestamp = unix_seconds();
        let signature = signed(&to.secret, id, timestamp, &body);
        let shown = Shown::Signature { id: id.to_owned(), timestamp, signature };
        let delivery = Delivery { owner: of.key(), target: to.target.clone(), shown, body };
        Ok(self.callbacks.poster.ask(delivery).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_long_enough_and_stays_hidden() {
        let url = "https://example.com/hook";
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        let callback = Callback::new(url, &of(24)).expect("it is long enough");
        assert_eq!(callback.secret.len(), 24);
        assert_eq!(format!("{callback:?}"), "Callback");
        for wrong in [&of(23), &of(65), "whsec_?", "s3cret", ""] {
            assert!(matches!(Callback::new(url, wrong), Err(CallbackError::Secret)), "{wrong}");
        }
        let wrong = Callback::new("ftp://example.com", &of(32));
        assert!(matches!(wrong, Err(CallbackError::Url(_))));
    }
}
