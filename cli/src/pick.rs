//! Which messages a command is about.

use protocol::object::Message;

/// The kind that ends the receiver's `wait` with exit code 3.
pub const END: &str = "conversation_end";

/// Messages by sender and kind. All that is given must hold; of several values of one flag, one.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which messages")]
pub struct Pick {
    /// Only messages of agents of this name; repeatable
    #[arg(long, value_name = "NAME")]
    pub only_from: Vec<String>,
    /// No messages of agents of this name; repeatable
    #[arg(long, value_name = "NAME")]
    pub not_from: Vec<String>,
    /// Only messages of this kind (`send --kind`); repeatable. An end of the conversation always counts
    #[arg(long, value_name = "KIND")]
    pub only_kind: Vec<String>,
}

impl Pick {
    /// Whether the message is one of those.
    pub fn takes(&self, message: &Message) -> bool {
        let from = |names: &[String]| names.contains(&message.agent_name);
        let kind = || {
            let kind = kind(message);
            kind.is_some_and(|kind| kind == END || self.only_kind.contains(&kind))
        };
        (self.only_from.is_empty() || from(&self.only_from))
            && !from(&self.not_from)
            && (self.only_kind.is_empty() || kind())
    }
}

/// The kind of a message, by its sender.
pub fn kind(message: &Message) -> Option<String> {
    message.metadata.as_ref()?.text("kind")
}

/// Whether it is a pulse of thinking.
pub fn is_thinking(message: &Message) -> bool {
    let kind = message.metadata.as_ref().and_then(|metadata| metadata.text("type"));
    kind.as_deref() == Some("thinking")
}

/// Whether it says that it is a LANTERN message.
pub fn is_lantern(message: &Message) -> bool {
    kind(message).as_deref() == Some("lantern")
}

/// Whether it ends the conversation.
pub fn ends(message: &Message) -> bool {
    kind(message).as_deref() == Some(END)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::sample;

    fn with(json: &str) -> Message {
        sample(1, Some(json))
    }

    #[test]
    fn tags_are_read_from_any_metadata() {
        assert!(ends(&with(r#"{"kind":"conversation_end"}"#)));
        for json in [r#"{"kind":"fyi"}"#, r#"{"kind":1}"#, "[]", "\"conversation_end\"", "{}"] {
            assert!(!ends(&with(json)), "{json}");
        }
        assert!(!ends(&sample(1, None)));
        assert!(is_thinking(&with(r#"{"type":"thinking"}"#)));
    }

    #[test]
    fn all_that_is_asked_for_must_hold() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let pick = |only_from: &[&str], not_from: &[&str], only_kind: &[&str]| Pick {
            only_from: list(only_from),
            not_from: list(not_from),
            only_kind: list(only_kind),
        };
        // The sample is of alice.
        let fyi = with(r#"{"kind":"fyi"}"#);
        assert!(pick(&[], &[], &[]).takes(&sample(1, None)));
        assert!(pick(&["bob", "alice"], &["bob"], &["fyi", "verdict"]).takes(&fyi));
        assert!(!pick(&["bob"], &[], &[]).takes(&fyi));
        assert!(!pick(&[], &["alice"], &["fyi"]).takes(&fyi));
        assert!(!pick(&[], &[], &["verdict"]).takes(&fyi));
        assert!(!pick(&[], &[], &["fyi"]).takes(&sample(1, None)));
        let end = with(r#"{"kind":"conversation_end"}"#);
        assert!(
            pick(&[], &[], &["fyi"]).takes(&end),
            "who waits for a verdict sees that none comes"
        );
    }
}
