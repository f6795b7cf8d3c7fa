//! One frame per WebSocket text message.

use std::io;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::time::Instant;

use super::{Gone, Share, Sink, Source};
use crate::{
    delivery::{ending::Ending, outbox::Frame},
    dialect::Heard,
    limits,
    listen::http::listener::Stranger,
};

/// Messages of a client.
#[derive(Debug)]
pub(crate) struct Texts {
    io: SplitStream<WebSocket>,
    /// The one that was given last.
    text: Utf8Bytes,
    /// The largest one that is taken.
    limit: usize,
    heard: Instant,
    stranger: Stranger,
    share: Share,
}

/// Messages to a client.
#[derive(Debug)]
pub(crate) struct TextSink(SplitSink<WebSocket, Message>);

impl Texts {
    pub(crate) fn split(socket: WebSocket, stranger: Stranger, share: Share) -> (Texts, TextSink) {
        let (sink, io) = socket.split();
        (
            Texts {
                io,
                text: Utf8Bytes::default(),
                limit: limits::FRAME_BYTES_MAX,
                heard: Instant::now(),
                stranger,
                share,
            },
            TextSink(sink),
        )
    }
}

impl Source for Texts {
    async fn next(&mut self) -> Result<Heard<'_>, Gone> {
        self.text = Utf8Bytes::default();
        loop {
            self.share.turn().await;
            let message = self.io.next().await.ok_or(Gone::HungUp)?;
            let message = message.map_err(|error| Gone::Broken(error.into()))?;
            self.heard = Instant::now();
            match message {
                Message::Text(text) => {
                    self.share.take(text.len());
                    if text.len() > self.limit {
                        return Err(Gone::TooLong);
                    }
                    self.text = text;
                    return Ok(Heard::Text(self.text.trim_end_matches(['\r', '\n'])));
                }
                Message::Binary(_) => return Ok(Heard::Binary),
                // The library answers pings.
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return Err(Gone::HungUp),
            }
        }
    }

    fn heard(&self) -> Instant {
        self.share.heard(self.heard)
    }

    /// No message has more bytes than [`limits::FRAME_BYTES_MAX`]: its own layer sees to that, and cannot be told another
    /// number later. The total of a stranger's messages is limited by the layer below.
    fn trust(&mut self, frame_bytes_max: usize) {
        self.limit = frame_bytes_max;
        self.stranger.trust();
    }
}

impl Sink for TextSink {
    async fn write(&mut self, frames: &[Frame]) -> io::Result<()> {
        for frame in frames.iter().flat_map(Frame::parts) {
            let message = if frame.is_empty() {
                Message::Ping(Bytes::new())
            } else {
                Message::Text(Utf8Bytes::try_from(frame.clone()).map_err(io::Error::other)?)
            };
            self.0.feed(message).await.map_err(io::Error::other)?;
        }
        self.0.flush().await.map_err(io::Error::other)
    }

    async fn close(&mut self, ending: Ending) {
        let frame = CloseFrame { code: ending.code(), reason: ending.text().into() };
        // The client is gone already, or will see the end of the stream either way.
        drop(self.0.send(Message::Close(Some(frame))).await);
        drop(self.0.close().await);
    }
}
