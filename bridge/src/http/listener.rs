//! Taking HTTP connections: as many as may be, none that is silent for ever.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{extract::connect_info::Connected, serve::IncomingStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};

use crate::limits;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

impl Connected<IncomingStream<'_, Listener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Peer {
        Peer(stream.remote_addr().ip())
    }
}

/// Takes connections as long as there are permits; each holds one until it ends, as a WebSocket too.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    connections: Arc<Semaphore>,
}

impl Listener {
    pub(crate) fn new(listener: TcpListener, connections: Arc<Semaphore>) -> Listener {
        Listener { listener, connections }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        loop {
            match (self.listener.accept().await, self.connections.clone().try_acquire_owned()) {
                (Ok((io, from)), Ok(permit)) => {
                    // Without it frames wait for acknowledgements; it works all the same.
                    drop(io.set_nodelay(true));
                    let silence = Box::pin(sleep(limits::HTTP_SILENT_FOR_MAX));
                    return (Guarded { io, silence, _permit: permit }, from);
                }
                (Ok((io, _)), Err(_)) => {
                    // A fresh socket has room for it; one that has not is dropped without it.
                    drop(io.try_write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    sleep(limits::ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing comes for too long.
#[derive(Debug)]
pub(crate) struct Guarded {
    io: TcpStream,
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_read(cx, into) {
            Poll::Ready(read) => {
                let due = Instant::now() + limits::HTTP_SILENT_FOR_MAX;
                self.silence.as_mut().reset(due);
                Poll::Ready(read)
            }
            Poll::Pending => {
                self.silence.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
