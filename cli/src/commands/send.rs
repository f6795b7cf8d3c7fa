//! `clawmesh send`.

use std::io::Read;

use protocol::limits::DURABLE_WAIT_MS_MAX;
use protocol::request::SendMessage;
use protocol::value::{Metadata, SendOptions};

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::pick::END;

mod stream;

/// More than any node takes for one message: it says so, and not this program's memory.
const STDIN_BYTES_MAX: u64 = 1 << 20;

/// Say something in a room.
#[derive(Debug, clap::Args)]
pub struct Send {
    /// Room id, or exact name
    pub room: String,
    /// The text; - reads it from standard input
    #[arg(required_unless_present = "stream")]
    pub text: Option<String>,
    /// Read the text from standard input and show it to others piece by piece as it comes; at its end it is sent as one message
    #[arg(long, conflicts_with = "text")]
    pub stream: bool,
    /// Id of the message it answers
    #[arg(long, value_name = "MESSAGE_ID")]
    pub reply_to: Option<String>,
    /// The kind of message, for example review_request, verdict, checkpoint, fyi
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// End the conversation: the receiver's `wait` exits 3
    #[arg(long, conflicts_with = "kind")]
    pub end: bool,
    /// Id of an agent to tell even outside the room; repeatable
    #[arg(long = "mention", value_name = "AGENT_ID")]
    pub mentions: Vec<String>,
    /// Wait until so many nodes hold the message durably, the agent's own included; exits 1 if fewer do in time
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..))]
    pub durable: Option<u64>,
    /// How long to wait for them, in milliseconds
    #[arg(long, value_name = "MS", requires = "durable",
          value_parser = clap::value_parser!(u64).range(..=DURABLE_WAIT_MS_MAX))]
    pub durable_wait: Option<u64>,
}

pub(crate) async fn run(cx: &Context, args: Send) -> Result<Outcome, Failure> {
    let metadata = args.kind().map(|kind| Metadata::of_texts(&[("kind", kind)], None));
    let content = match args.text.as_deref() {
        Some("-") => Some(from_stdin(cx)?),
        Some(text) => Some(text.to_owned()),
        None => None,
    };
    let client = cx.client().await?;
    let room_id = cx.join(&client, &args.room).await?;
    let content = match content {
        Some(content) => content,
        None => {
            let target = stream::Target { room_id: &room_id, reply_to: args.reply_to.as_deref() };
            stream::from_stdin(cx, &client, target).await?
        }
    };
    let message = SendMessage {
        room_id,
        content,
        reply_to: args.reply_to,
        mentions: args.mentions,
        metadata,
        mesh: args.durable.map(|_| SendOptions {
            durable: args.durable,
            durable_wait_ms: args.durable_wait,
            ..SendOptions::default()
        }),
    };
    let sent = client.call(message).await?;
    let copies = sent.mesh.as_ref().and_then(|mesh| mesh.durable);
    cx.output.show(&sent, || {
        let held = copies.map(|copies| format!("held durably by {copies} {}", nodes(copies)));
        [Some(format::message(&cx.output, &sent)), held].into_iter().flatten().collect()
    })?;
    match (args.durable, copies) {
        (Some(_), None) => Err(Failure::NoCopies),
        (Some(wanted), Some(copies)) if copies < wanted => {
            Err(Failure::TooFewCopies { wanted, copies })
        }
        (_, _) => Ok(Outcome::Done),
    }
}

/// All of standard input, without the newline that ends a file.
pub(super) fn from_stdin(cx: &Context) -> Result<String, Failure> {
    // There it is for the next commands.
    if cx.is_held() {
        return Err(Failure::NotInShell);
    }
    let mut text = String::new();
    std::io::stdin().take(STDIN_BYTES_MAX).read_to_string(&mut text)?;
    Ok(without_last_newline(text))
}

fn without_last_newline(mut text: String) -> String {
    text.truncate(text.strip_suffix('\n').unwrap_or(&text).len());
    text
}

fn nodes(count: u64) -> &'static str {
    if count == 1 { "node" } else { "nodes" }
}

impl Send {
    fn kind(&self) -> Option<&str> {
        if self.end { Some(END) } else { self.kind.as_deref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_stands_where_standard_clients_look_for_it() {
        let metadata = |kind| Metadata::of_texts(&[("kind", kind)], None);
        assert_eq!(metadata(END).get(), r#"{"kind":"conversation_end"}"#);
        assert_eq!(metadata("a\"b").get(), r#"{"kind":"a\"b"}"#);
    }
}
