//! Which messages are brought: looked at twice, when a file is looked at and when it is written,
//! with the same result.

use import::{BadRow, Message};
use mesh::{
    limits::{AGENT_ID_BYTES_MAX, CONTENT_BYTES_MAX, NAME_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::number::Era,
};
use protocol::value::Metadata;

use super::{Place, Plan, findings::all_well, too_high};

/// Bytes of a message's body besides its texts, at most.
const FRAME_BYTES: usize = 1_024;

/// The fate of a message.
pub(crate) enum Sifted {
    /// It is brought.
    Brought(Place, Box<Message>),
    /// It is not, and why.
    Left(&'static str),
    /// It cannot be.
    Bad(BadRow),
}

/// Messages by room and number, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Sieve {
    /// The last that was brought: where, and its number.
    last: Option<(Place, u64)>,
}

impl Sieve {
    pub(crate) fn sift(&mut self, plan: &Plan, row: Result<Message, BadRow>) -> Sifted {
        let message = match row {
            Ok(message) => message,
            Err(bad) => return Sifted::Bad(bad),
        };
        let Some(place) = plan.place(&message.room) else {
            return Sifted::Left(plan.no_room(&message.room));
        };
        let before = self.last.filter(|(last, _)| *last == place).map(|(_, seq)| seq);
        if let Err(why) = check(&message, before) {
            let id = Some(message.id);
            return Sifted::Bad(BadRow { table: "messages", id, why });
        }
        self.last = Some((place, message.seq));
        Sifted::Brought(place, Box::new(message))
    }
}

/// `before`: the number before it in its room.
fn check(message: &Message, before: Option<u64>) -> Result<(), String> {
    let texts = message.content.len() + message.name.len() + message.agent.len();
    let more = message.metadata.as_ref().map_or(0, String::len)
        + message.reply_to.as_ref().map_or(0, String::len);
    let sound = message.metadata.as_deref().is_none_or(|json| Metadata::parse(json).is_ok());
    all_well(&[
        (message.seq >= 1, "its number is 0: start the server with the file once".to_owned()),
        (message.seq < Era::HOME.capacity(), too_high(message.seq)),
        (
            before != Some(message.seq),
            format!("the number {} is another message's, too", message.seq),
        ),
        (
            (1..=AGENT_ID_BYTES_MAX).contains(&message.agent.len()),
            format!("its agent's id must have 1 to {AGENT_ID_BYTES_MAX} bytes"),
        ),
        (
            message.name.len() <= NAME_BYTES_MAX,
            format!("its agent's name may have {NAME_BYTES_MAX} bytes"),
        ),
        (
            message.content.len() <= CONTENT_BYTES_MAX,
            format!(
                "its content has {} bytes; it may have {CONTENT_BYTES_MAX}",
                message.content.len()
            ),
        ),
        (sound, "its metadata is nested too deep, or too large".to_owned()),
        (
            texts + more + FRAME_BYTES <= PLAIN_BODY_BYTES_MAX,
            format!("all its texts have more than {PLAIN_BODY_BYTES_MAX} bytes"),
        ),
    ])
}
