//! API keys of accounts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bridge::secret::Secret;
use zeroize::Zeroizing;

/// With which each begins.
pub(crate) const PREFIX: &str = "ak_";
const BYTES: usize = 32;

/// A new one.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn draw() -> Result<Secret, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; BYTES]);
    getrandom::fill(bytes.as_mut())?;
    Ok(of(&bytes))
}

/// The one of these bytes.
pub(crate) fn of(bytes: &[u8; BYTES]) -> Secret {
    Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Whether a text may be one. Whose it is, is another question.
pub(crate) fn is_key(text: &str) -> bool {
    let drawn = text.strip_prefix(PREFIX).and_then(|drawn| URL_SAFE_NO_PAD.decode(drawn).ok());
    drawn.is_some_and(|drawn| drawn.len() == BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_form() {
        let key = draw().unwrap();
        assert!(is_key(key.expose()), "{}", key.expose());
        assert_eq!(key.expose().len(), 46);
        for text in ["ak_", "ak_abc", &key.expose()[3..], &format!("{}A", key.expose())] {
            assert!(!is_key(text), "{text}");
        }
    }
}
