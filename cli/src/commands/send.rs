//! `clawmesh send`.

use protocol::request::{JoinRoom, SendMessage};
use protocol::value::Metadata;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// The kind that ends the receiver's `wait` with exit code 3.
pub(crate) const END: &str = "conversation_end";

/// Say something in a room.
#[derive(Debug, clap::Args)]
pub struct Send {
    /// Room id, or exact name
    pub room: String,
    /// What to say
    pub text: String,
    /// Id of the message it answers
    #[arg(long, value_name = "MESSAGE_ID")]
    pub reply_to: Option<String>,
    /// What kind of message it is, for example review_request, verdict, checkpoint, fyi
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// End the conversation: the receiver's `wait` exits 3
    #[arg(long, conflicts_with = "kind")]
    pub end: bool,
    /// Id of an agent to tell even outside the room; repeatable
    #[arg(long = "mention", value_name = "AGENT_ID")]
    pub mentions: Vec<String>,
}

pub(crate) async fn run(cx: &Context, args: Send) -> Result<Outcome, Failure> {
    let metadata = args.kind().map(metadata).transpose()?;
    let (client, _) = cx.connect().await?;
    let room_id = cx.room(&client, &args.room).await?;
    client.call(JoinRoom { room_id: room_id.clone() }).await?;
    let message = SendMessage {
        room_id,
        content: args.text,
        reply_to: args.reply_to,
        mentions: args.mentions,
        metadata,
        mesh: None,
    };
    let sent = client.call(message).await?;
    cx.output.line(&format::message(&sent))?;
    Ok(Outcome::Done)
}

impl Send {
    fn kind(&self) -> Option<&str> {
        if self.end { Some(END) } else { self.kind.as_deref() }
    }
}

fn metadata(kind: &str) -> Result<Metadata, Failure> {
    let json = serde_json::json!({ "kind": kind }).to_string();
    Metadata::parse(&json).map_err(|_| Failure::Kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_stands_where_standard_clients_look_for_it() {
        assert_eq!(metadata(END).unwrap().get(), r#"{"kind":"conversation_end"}"#);
        assert_eq!(metadata("a\"b").unwrap().get(), r#"{"kind":"a\"b"}"#);
    }
}
