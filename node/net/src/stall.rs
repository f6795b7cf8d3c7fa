//! A socket that fails when nothing can be written to it for too long.
//!
//! Our peers always read their sockets (flow control is per stream), so a socket that takes nothing
//! is dead. Without this, closing a connection over a cut cable waits for TCP, up to a quarter of
//! an hour, and for as long libp2p takes the dead connection for one of the peer's: gossipsub then
//! sends no subscriptions over a new one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep};

use crate::limits::DEAD_AFTER;

#[derive(Debug)]
pub(crate) struct Stalling<S> {
    socket: S,
    timer: Pin<Box<Sleep>>,
    state: Motion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Motion {
    Moving,
    /// The last write had to wait, and the timer runs.
    Waiting,
}

impl<S> Stalling<S> {
    pub(crate) fn new(socket: S) -> Stalling<S> {
        Stalling { socket, timer: Box::pin(sleep(DEAD_AFTER)), state: Motion::Moving }
    }

    /// Looks at how a write went.
    fn judge<T>(&mut self, cx: &mut Context<'_>, went: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if went.is_ready() {
            self.state = Motion::Moving;
            return went;
        }
        if self.state == Motion::Moving {
            self.state = Motion::Waiting;
            self.timer.as_mut().reset(Instant::now() + DEAD_AFTER);
        }
        match self.timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let went = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.judge(cx, went)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let went = Pin::new(&mut self.socket).poll_flush(cx);
        self.judge(cx, went)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let went = Pin::new(&mut self.socket).poll_close(cx);
        self.judge(cx, went)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::AsyncWriteExt;

    use super::*;

    /// Takes nothing while `full`.
    struct Pipe {
        full: bool,
    }

    impl AsyncWrite for Pipe {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.full { Poll::Pending } else { Poll::Ready(Ok(bytes.len())) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_stall_that_ends_is_forgiven_and_one_that_lasts_is_an_error() {
        let mut pipe = Stalling::new(Pipe { full: true });
        let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut pipe).poll_write(cx, b"x"))).await;
        assert!(first.is_pending() && pipe.state == Motion::Waiting);
        pipe.socket.full = false;
        assert_eq!(pipe.write(b"x").await.unwrap(), 1);
        pipe.socket.full = true;
        let again = poll_fn(|cx| Poll::Ready(Pin::new(&mut pipe).poll_write(cx, b"x"))).await;
        assert!(again.is_pending());
        // As if the time had passed.
        pipe.timer.as_mut().reset(Instant::now());
        let error = pipe.write(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
