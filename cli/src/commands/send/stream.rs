//! `clawmesh send --stream`: standard input goes out in pieces as it comes, and as one message when it has ended.

use std::io::Read;
use std::time::Duration;

use client::client::Client;
use client::error::CallError;
use protocol::code::Code;
use protocol::request::{RoomInfo, Stream};
use protocol::value::PieceKind;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{STDIN_BYTES_MAX, without_last_newline};
use crate::context::Context;
use crate::outcome::Failure;

/// Bytes of one piece: a node takes 16 KiB, and 64 KiB a second.
const PIECE_BYTES: usize = 8 * 1024;
/// Between two pieces: a node takes a hundred a second.
const PIECE_EVERY: Duration = Duration::from_millis(20);
/// After a piece that was one too many.
const PAUSE: Duration = Duration::from_millis(500);

/// Where the pieces go.
pub(super) struct Target<'a> {
    pub(super) room_id: &'a str,
    pub(super) reply_to: Option<&'a str>,
}

/// Streams standard input to its end. All of it.
pub(super) async fn from_stdin(
    cx: &Context,
    client: &Client,
    target: Target<'_>,
) -> Result<String, Failure> {
    if cx.is_held() {
        return Err(Failure::NotInShell);
    }
    let info = client.call(RoomInfo { room_id: target.room_id.to_owned() }).await?;
    // Pieces are not encrypted end to end: the whole is.
    let mut streams = !info.room.encrypted && cx.node.room_key.is_none();
    let mut input = read();
    let mut text = Text::default();
    let mut next = Instant::now();
    while let Some(bytes) = input.recv().await {
        text.push(&bytes?)?;
        while streams && Instant::now() < next {
            tokio::select! {
                more = input.recv() => match more {
                    Some(bytes) => text.push(&bytes?)?,
                    // It has ended: the message has the rest.
                    None => return text.whole(),
                },
                () = sleep_until(next) => {}
            }
        }
        next = Instant::now() + PIECE_EVERY;
        let Some(piece) = text.piece().filter(|_| streams) else { continue };
        match client.call(target.piece(piece)).await {
            Ok(_) => text.sent += piece.len(),
            Err(CallError::Refused { code: Code::RateLimitMessages, .. }) => {
                next = Instant::now() + PAUSE;
            }
            // The message is what counts.
            Err(error) => {
                streams = false;
                cx.output.note(&format!("clawmesh: not streamed any more: {error}"))?;
            }
        }
    }
    text.whole()
}

impl Target<'_> {
    fn piece(&self, content: &str) -> Stream {
        Stream {
            room_id: self.room_id.to_owned(),
            stream_id: format!("send-{}", std::process::id()),
            reply_to: self.reply_to.map(str::to_owned),
            kind: PieceKind::Chunk,
            content: Some(content.to_owned()),
            tool: None,
            input: None,
            result: None,
        }
    }
}

/// Input so far.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// So many of them are streamed.
    sent: usize,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        let (done, max) = (self.bytes.len() as u64, STDIN_BYTES_MAX);
        if done <= max { Ok(()) } else { Err(std::io::Error::other("the text is too long")) }
    }

    /// The next piece: whole characters.
    fn piece(&self) -> Option<&str> {
        let rest = &self.bytes[self.sent..];
        let rest = &rest[..rest.len().min(PIECE_BYTES)];
        let whole = match str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        (!whole.is_empty()).then_some(whole)
    }

    fn whole(self) -> Result<String, Failure> {
        let text = String::from_utf8(self.bytes);
        let text = text.map_err(|_| std::io::Error::other("the text is not UTF-8"))?;
        Ok(without_last_newline(text))
    }
}

/// Reads on a thread of its own: nothing else can wait for standard input and for a node.
fn read() -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(8);
    std::thread::spawn(move || {
        let mut input = std::io::stdin();
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let read = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer[..count].to_vec()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let ends = read.is_err();
            // An error: nobody wants more.
            if sender.blocking_send(read).is_err() || ends {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_characters_and_together_the_text() {
        let mut text = Text::default();
        assert_eq!(text.piece(), None);
        let whole = "aé".repeat(PIECE_BYTES);
        let mut pieces = String::new();
        for bytes in whole.as_bytes().chunks(7) {
            text.push(bytes).unwrap();
            while let Some(piece) = text.piece() {
                assert!(piece.len() <= PIECE_BYTES);
                pieces.push_str(piece);
                text.sent += piece.len();
            }
        }
        assert_eq!(pieces, whole);
        assert_eq!(text.whole().unwrap(), whole);
        let mut half = Text::default();
        half.push(&[b'a', 0xc3]).unwrap();
        assert_eq!(half.piece(), Some("a"));
        assert!(half.whole().is_err(), "its last character is not there");
        assert!(Text::default().push(&vec![b'a'; 1 << 20]).is_ok());
        assert!(Text::default().push(&vec![b'a'; (1 << 20) + 1]).is_err());
    }
}
