//! One delivery over HTTP: resolve, check, connect to the checked address, post, look at the status.
//!
//! Each delivery has a connection of its own. So the address that was checked is the one that is connected to, nothing is
//! followed or sent through a proxy, and nothing is left open between two messages.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderValue, Request, StatusCode, header},
};
use bytes::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mesh::name::id::KeyPrint;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use url::Host;

use super::{
    address::is_public,
    target::Target,
    turns::{Turn, Turns},
};
use crate::limits::{
    WEBHOOK_ADDRESSES_MAX, WEBHOOK_ANSWER_BYTES_MAX, WEBHOOK_ANSWER_WITHIN, WEBHOOK_CHECKS_AT_ONCE,
    WEBHOOK_CONNECT_WITHIN, WEBHOOK_HEAD_BYTES_MAX, WEBHOOK_LOOKUPS_AT_ONCE,
    WEBHOOK_LOOKUPS_PER_KEY, WEBHOOK_POST_WITHIN,
};
use crate::secret::Secret;

/// A post.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Whose subscription it is of.
    pub(crate) owner: KeyPrint,
    pub(crate) target: Target,
    pub(crate) shown: Shown,
    pub(crate) body: Bytes,
}

/// The sender's proof to the receiver.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// A signature under a secret that both have.
    Signature {
        id: String,
        /// Unix seconds.
        timestamp: u64,
        signature: String,
    },
    /// The receiver's token, if it wants one.
    Token(Option<Secret>),
}

/// Why a delivery failed.
#[derive(Debug, Error)]
pub(crate) enum PostError {
    #[error("the host's name cannot be looked up: {0}")]
    Lookup(#[source] io::Error),
    #[error("the host has no address")]
    NoAddress,
    #[error("the host has the address {0}, which is not public")]
    NotPublic(IpAddr),
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    #[error("this system has no root certificates, so no host can prove who it is")]
    NoRoots,
    #[error("no TLS with the host: {0}")]
    Tls(#[source] io::Error),
    #[error("the request cannot be written: {0}")]
    Request(#[from] axum::http::Error),
    #[error("HTTP failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("no answer in time")]
    TimedOut,
    #[error("the host answered {0}")]
    Status(StatusCode),
}

pub(crate) type Posting<'a> = Pin<Box<dyn Future<Output = Result<(), PostError>> + Send + 'a>>;

/// The way of deliveries to their receivers.
pub(crate) trait Post: Send + Sync + 'static {
    /// Whether deliveries of this key's may go there.
    fn check<'a>(&'a self, owner: KeyPrint, target: &'a Target) -> Posting<'a>;

    /// Delivers, in bounded time from when it is its turn.
    fn post(&self, delivery: Delivery) -> Posting<'_>;
}

/// Over the network.
pub(crate) struct Poster {
    allow_private: bool,
    resolver: Resolver,
    /// For look-ups of subscribers, and of deliveries.
    checks: Turns,
    lookups: Turns,
    tls: OnceCell<TlsConnector>,
}

impl Poster {
    /// `allow_private`: the operator lets subscribers reach addresses that only the node can.
    pub(crate) fn new(allow_private: bool) -> Poster {
        Poster::with(allow_private, Resolver::System)
    }

    fn with(allow_private: bool, resolver: Resolver) -> Poster {
        Poster {
            allow_private,
            resolver,
            checks: Turns::new(WEBHOOK_CHECKS_AT_ONCE, 1),
            lookups: Turns::new(WEBHOOK_LOOKUPS_AT_ONCE, WEBHOOK_LOOKUPS_PER_KEY),
            tls: OnceCell::new(),
        }
    }

    /// All addresses of the host, or why it is not to be posted to. Looked up once.
    async fn addresses(
        &self,
        target: &Target,
        turn: Option<Turn>,
    ) -> Result<Vec<SocketAddr>, PostError> {
        let port = target.port();
        let mut addresses = match target.host() {
            Host::Ipv4(address) => vec![SocketAddr::from((address, port))],
            Host::Ipv6(address) => vec![SocketAddr::from((address, port))],
            Host::Domain(name) => {
                self.resolver.lookup(name, port, turn).await.map_err(PostError::Lookup)?
            }
        };
        let strange = addresses.iter().map(SocketAddr::ip).find(|it| !is_public(*it));
        if let Some(strange) = strange.filter(|_| !self.allow_private) {
            return Err(PostError::NotPublic(strange));
        }
        addresses.truncate(WEBHOOK_ADDRESSES_MAX);
        Ok(addresses)
    }

    /// Delivers, in bounded time from when it is its turn. The beginning of the answer.
    pub(crate) async fn ask(&self, delivery: Delivery) -> Result<Bytes, PostError> {
        // To wait for others' names is no failure.
        let turn = turn(&self.lookups, delivery.owner, &delivery.target).await;
        let delivered = timeout(WEBHOOK_POST_WITHIN, self.deliver(delivery, turn));
        delivered.await.unwrap_or(Err(PostError::TimedOut))
    }

    async fn deliver(&self, delivery: Delivery, turn: Option<Turn>) -> Result<Bytes, PostError> {
        let socket = connect(self.addresses(&delivery.target, turn).await?).await?;
        if !delivery.target.is_tls() {
            return exchange(socket, delivery).await;
        }
        let name = match delivery.target.host() {
            Host::Domain(name) => ServerName::try_from(name.to_owned())
                .map_err(|error| PostError::Tls(io::Error::other(error)))?,
            Host::Ipv4(address) => ServerName::from(IpAddr::from(address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::from(address)),
        };
        let tls = self.tls.get_or_try_init(connector).await?;
        let socket = tls.connect(name, socket).await.map_err(PostError::Tls)?;
        exchange(socket, delivery).await
    }
}

impl Post for Poster {
    fn check<'a>(&'a self, owner: KeyPrint, target: &'a Target) -> Posting<'a> {
        Box::pin(async move {
            // A name that may lead anywhere may also lead there later only.
            if self.allow_private {
                return Ok(());
            }
            let turn = turn(&self.checks, owner, target).await;
            let looked_up = timeout(WEBHOOK_CONNECT_WITHIN, self.addresses(target, turn));
            looked_up.await.unwrap_or(Err(PostError::TimedOut)).map(drop)
        })
    }

    fn post(&self, delivery: Delivery) -> Posting<'_> {
        Box::pin(async { self.ask(delivery).await.map(drop) })
    }
}

/// Addresses need no look-up.
async fn turn(turns: &Turns, owner: KeyPrint, target: &Target) -> Option<Turn> {
    match target.host() {
        Host::Domain(_) => Some(turns.take(owner).await),
        Host::Ipv4(_) | Host::Ipv6(_) => None,
    }
}

/// The first address that answers.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, PostError> {
    let mut failure = PostError::NoAddress;
    for address in addresses {
        match timeout(WEBHOOK_CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => failure = PostError::Connect(error),
            Err(_) => failure = PostError::TimedOut,
        }
    }
    Err(failure)
}

/// Posts on a fresh connection, and closes it.
async fn exchange<S>(socket: S, delivery: Delivery) -> Result<Bytes, PostError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(delivery)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(WEBHOOK_HEAD_BYTES_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(socket)).await?;
    let mut connection = pin!(connection);
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer?,
        ended = &mut connection => {
            ended?;
            // It has ended in good order: the answer is there.
            answer.await?
        }
    };
    let (status, body) = (answer.status(), Body::new(answer.into_body()));
    // Read a little of it, so that the receiver can write it.
    let mut read = pin!(timeout(WEBHOOK_ANSWER_WITHIN, to_bytes(body, WEBHOOK_ANSWER_BYTES_MAX)));
    let read = tokio::select! {
        read = &mut read => read,
        ended = &mut connection => {
            drop(ended);
            // What has come is there.
            read.await
        }
    };
    let answer = read.ok().and_then(Result::ok).unwrap_or_default();
    if status.is_success() { Ok(answer) } else { Err(PostError::Status(status)) }
}

fn request(delivery: Delivery) -> Result<Request<Body>, axum::http::Error> {
    let agent = concat!("clawmesh/", env!("CARGO_PKG_VERSION"));
    let request = Request::post(delivery.target.uri())
        .header(header::HOST, delivery.target.authority())
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(header::CONTENT_LENGTH, delivery.body.len())
        .header(header::USER_AGENT, HeaderValue::from_static(agent))
        .header(header::CONNECTION, HeaderValue::from_static("close"));
    let request = match delivery.shown {
        Shown::Signature { id, timestamp, signature } => request
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature),
        Shown::Token(Some(token)) => {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))?;
            value.set_sensitive(true);
            request.header(header::AUTHORIZATION, value)
        }
        Shown::Token(None) => request,
    };
    request.body(Body::from(delivery.body))
}

/// Trusts whom the system trusts.
async fn connector() -> Result<TlsConnector, PostError> {
    let load = || {
        let mut roots = RootCertStore::empty();
        // One that cannot be read is one less; without any nothing works, and that is said.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    };
    let roots = tokio::task::spawn_blocking(load).await.map_err(|_| PostError::NoRoots)?;
    if roots.is_empty() { Err(PostError::NoRoots) } else { Ok(trusting(roots)) }
}

fn trusting(roots: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Names to addresses.
enum Resolver {
    /// As the system has them. A look-up holds a thread until the system gives up, even if nobody waits, and its
    /// turn as long.
    System,
    /// Tests know better, and count.
    #[cfg(test)]
    Table(std::collections::HashMap<&'static str, Vec<IpAddr>>, std::sync::atomic::AtomicUsize),
}

impl Resolver {
    async fn lookup(
        &self,
        name: &str,
        port: u16,
        turn: Option<Turn>,
    ) -> io::Result<Vec<SocketAddr>> {
        match self {
            Resolver::System => {
                let name = name.to_owned();
                let looking = tokio::spawn(async move {
                    let found = tokio::net::lookup_host((name.as_str(), port)).await;
                    drop(turn);
                    found.map(Iterator::collect)
                });
                looking.await.map_err(io::Error::other)?
            }
            #[cfg(test)]
            Resolver::Table(table, count) => {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let found = table.get(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(found.iter().map(|ip| SocketAddr::from((*ip, port))).collect())
            }
        }
    }
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
