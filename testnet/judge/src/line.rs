//! Lines of a history.

use serde::Deserialize;

/// Something that a client saw, in the order in which it saw it; lines of different clients may stand in any order. Nodes have numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "saw", rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// A client asks its node to say something; before it does.
    Asked {
        /// The client's name for it: the same when it asks again.
        request: String,
        /// The text.
        text: String,
    },
    /// A message was acknowledged.
    Told {
        /// Where.
        node: u32,
        /// As in [`Line::Asked`], if that is noted.
        #[serde(default)]
        request: Option<String>,
        /// The message's id.
        message: String,
        /// Its number there.
        number: u64,
        /// Its text, if it is known.
        #[serde(default)]
        text: Option<String>,
    },
    /// It was refused: it is said to have become no message.
    Refused {
        /// As in [`Line::Asked`].
        request: String,
    },
    /// A message was pushed.
    Heard {
        /// Where.
        node: u32,
        /// Of all connections of the history.
        connection: u64,
        /// The message's id.
        message: String,
        /// Its number there.
        number: u64,
        /// Its text, if it is known.
        #[serde(default)]
        text: Option<String>,
    },
    /// A message that a connection does not hear, because its client said it: noted when it is known.
    Own {
        /// Of all connections of the history.
        connection: u64,
        /// The message's id.
        message: String,
    },
    /// The whole room is read at a node: [`Line::Has`] follow. Of several readings of a node the last counts.
    Reads {
        /// Where.
        node: u32,
    },
    /// A message of that reading, in its order.
    Has {
        /// Where.
        node: u32,
        /// The message's id.
        message: String,
        /// Its number there.
        number: u64,
        /// Its text, if it is known.
        #[serde(default)]
        text: Option<String>,
    },
    /// A number was looked up.
    Resolved {
        /// Where.
        node: u32,
        /// The number.
        number: u64,
        /// The message's id; nothing, if there is no such message.
        #[serde(default)]
        message: Option<String>,
    },
    /// All faults are over, and all nodes have heard so. Of several the last counts. (A struct, so that fields too many are an error.)
    Calm {},
}
