//! The body of a post to a host: JSON of the operator's, in which the places `{notice}`, `{count}` and `{agents}` are filled.
//! Pure. What fills them is plain: digits, and references of agents, which have an alphabet of their own. So a body is sound
//! JSON whatever is told.

use std::sync::Arc;

use thiserror::Error;

use crate::limits::WAKE_BODY_BYTES_MAX;

/// As OpenClaw's `/hooks/wake` takes it.
const ASSUMED: &str = r#"{"text":"{notice}","mode":"now"}"#;

/// The places that are filled.
const PLACES: [&str; 3] = ["{notice}", "{count}", "{agents}"];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeBody(Arc<str>);

/// Why a text is no body. Completes "it must".
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadBody {
    /// It is too long.
    #[error("have at most {WAKE_BODY_BYTES_MAX} bytes")]
    TooLong,
    /// A name in braces that is none of the places.
    #[error("have no place but {{notice}}, {{count}} and {{agents}}: {0} is none")]
    Place(String),
    /// Filled, it is no JSON.
    #[error("be JSON with its places filled ({{notice}} and {{agents}} stand in quotes): {0}")]
    NotJson(String),
}

impl Default for WakeBody {
    fn default() -> WakeBody {
        WakeBody(ASSUMED.into())
    }
}

impl WakeBody {
    /// A text with places.
    ///
    /// # Errors
    /// See [`BadBody`].
    pub fn parse(text: &str) -> Result<WakeBody, BadBody> {
        if text.len() > WAKE_BODY_BYTES_MAX {
            return Err(BadBody::TooLong);
        }
        let body = WakeBody(text.into());
        if let Some(place) = body.unknown_place() {
            return Err(BadBody::Place(place.to_owned()));
        }
        let filled = body.filled("notice", 1, &["agent".to_owned()]);
        match serde_json::from_str::<serde_json::Value>(&filled) {
            Ok(_) => Ok(body),
            Err(error) => Err(BadBody::NotJson(error.to_string())),
        }
    }

    /// The body of one post.
    pub(super) fn filled(&self, notice: &str, count: usize, agents: &[String]) -> String {
        let filled = self.0.replace("{count}", &count.to_string());
        filled.replace("{notice}", notice).replace("{agents}", &agents.join(", "))
    }

    /// JSON has no lower-case word alone in braces, but for one in a text.
    fn unknown_place(&self) -> Option<&str> {
        let begins = self.0.match_indices('{').map(|(at, _)| &self.0[at..]);
        let mut words = begins.filter_map(|rest| {
            let word = &rest[..=rest.find('}')?];
            let name = &word[1..word.len() - 1];
            let is_name = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '-');
            (!name.is_empty() && name.chars().all(is_name)).then_some(word)
        });
        words.find(|word| !PLACES.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_nothing_else() {
        let agents = ["bob".to_owned(), "cy".to_owned()];
        let filled = |text: &str| WakeBody::parse(text).unwrap().filled("2 unread", 2, &agents);
        assert_eq!(
            filled(r#"{"n": {count}, "to": {"a": "{agents}"}, "text": "{notice}! {"}"#),
            r#"{"n": 2, "to": {"a": "bob, cy"}, "text": "2 unread! {"}"#
        );
        assert_eq!(filled("{}"), "{}");
        let assumed = WakeBody::default().filled("2 unread", 2, &agents);
        assert_eq!(assumed, r#"{"text":"2 unread","mode":"now"}"#);
        assert_eq!(WakeBody::parse(ASSUMED), Ok(WakeBody::default()));
    }

    #[test]
    fn a_body_that_a_host_cannot_read_is_refused() {
        let bad = |text: &str| WakeBody::parse(text).unwrap_err();
        assert_eq!(bad(r#"{"text": "{message}"}"#), BadBody::Place("{message}".to_owned()));
        for text in ["", "{notice}", r#"{"text": {notice}}"#, r#"{"text": "{notice}""#] {
            assert!(matches!(bad(text), BadBody::NotJson(_)), "{text}");
        }
        let long = format!("\"{}\"", "a".repeat(WAKE_BODY_BYTES_MAX));
        assert_eq!(bad(&long), BadBody::TooLong);
    }
}
