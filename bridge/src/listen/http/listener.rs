//! Taking HTTP connections, with TLS or without: as many as may be, none that is silent for ever.

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, extract::ConnectInfo, http::Request};
use hyper::{
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};

use super::tls::Tls;
use crate::{config::Config, limits, read::Peer};

/// Takes connections as long as there are permits; each holds one until it ends, as a WebSocket too.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    /// Those that are no WebSockets.
    plain: Arc<Semaphore>,
    /// How long the head of the next request may take, from the end of the one before.
    head_within: Duration,
    tls: Option<Handshake>,
}

/// How a connection becomes one over TLS.
#[derive(Clone, Debug)]
struct Handshake {
    tls: Tls,
    within: Duration,
}

/// How many bytes a WebSocket may still say before it has shown a key. The WebSocket's own limit of a message
/// cannot be raised later.
#[derive(Clone, Debug)]
pub(crate) struct Stranger(Arc<AtomicUsize>);

impl Stranger {
    /// No WebSocket yet: HTTP has limits of its own.
    fn new() -> Stranger {
        Stranger(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    /// From now on its bytes are counted.
    pub(super) fn watch(&self) {
        self.0.store(limits::STRANGER_WEBSOCKET_BYTES_MAX, Ordering::Relaxed);
    }

    /// From now on they are not.
    pub(crate) fn trust(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    /// Whether so many more are not too many.
    fn may_say(&self, bytes: usize) -> bool {
        let rest = |left: usize| match left {
            usize::MAX => Some(usize::MAX),
            _ => left.checked_sub(bytes),
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// A connection that was taken.
struct Taken<I> {
    io: I,
    stranger: Stranger,
    peer: Peer,
    plain: OwnedSemaphorePermit,
}

impl Listener {
    pub(crate) fn new(
        listener: TcpListener,
        connections: Arc<Semaphore>,
        config: &Config,
    ) -> Listener {
        let plain = Arc::new(Semaphore::new(config.http_connections_max));
        let within = config.tls_handshake_within;
        let tls = config.http_tls.clone().map(|tls| Handshake { tls, within });
        Listener { listener, connections, plain, head_within: config.http_request_within, tls }
    }

    /// Until `shutdown`; then connections finish the request that they are at.
    pub(super) async fn serve(self, router: Router, shutdown: impl Future<Output = ()>) {
        let (stop, stopping) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let taken = tokio::select! {
                () = &mut shutdown => break,
                taken = self.take() => taken,
            };
            // Those that have ended.
            while connections.try_join_next().is_some() {}
            let (router, tls) = (router.clone(), self.tls.clone());
            connections.spawn(taken.begin(tls, router, self.head_within, stopping.clone()));
            // Connected clients need not wait until all of a crowd have come.
            tokio::task::yield_now().await;
        }
        drop(self.listener);
        stop.send_replace(true);
        while connections.join_next().await.is_some() {}
    }

    async fn take(&self) -> Taken<Guarded> {
        loop {
            let accepted = self.listener.accept().await;
            let permits = [&self.plain, &self.connections].map(|it| it.clone().try_acquire_owned());
            match (accepted, permits) {
                (Ok((io, from)), [Ok(plain), Ok(permit)]) => {
                    // Without it frames wait for acknowledgements; it works all the same.
                    drop(io.set_nodelay(true));
                    let silence = Box::pin(sleep(limits::HTTP_SILENT_FOR_MAX));
                    let stranger = Stranger::new();
                    let io = Guarded { io, stranger: stranger.clone(), silence, _permit: permit };
                    return Taken { io, stranger, peer: Peer(from.ip()), plain };
                }
                // Nobody who expects TLS could read it.
                (Ok(_), _) if self.tls.is_some() => {}
                (Ok((io, _)), _) => {
                    // A fresh socket has room for it; one that has not is dropped without it.
                    drop(io.try_write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                }
                (Err(error), _) => {
                    tracing::warn!(event = "accept_failed", %error, "cannot accept connections; trying again");
                    sleep(limits::ACCEPT_RETRY).await;
                }
            }
        }
    }
}

impl Taken<Guarded> {
    /// Shakes hands first, where there is TLS.
    async fn begin(
        self,
        tls: Option<Handshake>,
        router: Router,
        head_within: Duration,
        stopping: watch::Receiver<bool>,
    ) {
        match tls {
            None => self.serve(router, head_within, stopping).await,
            // In a box: a connection without TLS is not as large as one with it.
            Some(tls) => Box::pin(self.shake(tls, router, head_within, stopping)).await,
        }
    }

    async fn shake(
        self,
        Handshake { tls, within }: Handshake,
        router: Router,
        head_within: Duration,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Taken { io, stranger, peer, plain } = self;
        let shaken = tokio::select! {
            shaken = timeout(within, tls.acceptor.accept(io)) => shaken,
            // An error: the sender is gone, which is as good. Nothing was asked yet.
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match shaken {
            Ok(Ok(io)) => {
                Taken { io, stranger, peer, plain }.serve(router, head_within, stopping).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> Taken<I> {
    /// Until it ends, or is a WebSocket, which is served elsewhere.
    async fn serve(
        self,
        router: Router,
        head_within: Duration,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Taken { io, stranger, peer, plain: _plain } = self;
        let service = TowerToHyperService::new(router);
        let service = service_fn(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(stranger.clone());
            service.call(request)
        });
        // It begins to count at once, and again after each answer.
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(head_within);
        server.max_buf_size(limits::HTTP_HEAD_BYTES_MAX);
        let mut serving = pin!(server.serve_connection(TokioIo::new(io), service).with_upgrades());
        let ended = tokio::select! {
            ended = &mut serving => Some(ended),
            // An error: the sender is gone, which is as good.
            _ = stopping.wait_for(|stopping| *stopping) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection was cut");
        }
    }
}

/// A connection that ends when nothing comes or goes for too long, or too much from a stranger.
#[derive(Debug)]
pub(crate) struct Guarded {
    io: TcpStream,
    stranger: Stranger,
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Guarded {
    /// A client that takes an answer is there, also if the answer is a stream that goes on for long.
    fn took(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.silence.as_mut().reset(Instant::now() + limits::HTTP_SILENT_FOR_MAX);
        }
        written
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, into) {
            Poll::Ready(Ok(())) if !self.stranger.may_say(into.filled().len() - before) => {
                Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
            }
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
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.took(written)
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
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.took(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
