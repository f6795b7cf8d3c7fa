//! Links over WebSocket, with TLS or without: for networks that let nothing out but the web.
//!
//! A transport around the one of TCP. Addresses that end with `/ws` are its own: the connection
//! carries HTTP's upgrade first (after TLS, if there is any), and then the bytes of the link as
//! binary messages. Pre-shared key, Noise and all else are inside, as over TCP: so TLS is the way
//! through, not the lock, and certificates of others are not checked. A network that opens TLS
//! itself, or a certificate that its operator has signed himself, is no obstacle and no danger.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncWrite, Sink, Stream};
use libp2p::Multiaddr;
use libp2p::core::Transport;
use libp2p::core::transport::{DialOpts, ListenerId, TransportError, TransportEvent};
use libp2p::multiaddr::Protocol;
use tokio::io::ReadBuf;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::address::multiaddr_of;
use crate::limits::{WEB_MESSAGE_BYTES_MAX, WEB_READ_BYTES, WEB_WRITE_BYTES};
use crate::settings::StartError;
use crate::trouble::{self, Step};

/// Where a link is asked for: a proxy in front of a node tells it by this from other pages.
pub const PATH: &str = "/clawmesh";

/// Where links over WebSocket are taken.
#[derive(Clone, Default)]
pub struct Web {
    /// Port 0 takes a free one. May be empty.
    pub listen: Vec<SocketAddr>,
    /// The node's certificate; `None`: a proxy has one, and TLS ends there.
    pub tls: Option<TlsAcceptor>,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web")
            .field("listen", &self.listen)
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

/// A socket address as this transport has it, for a node that is found at this host.
pub(crate) fn web_multiaddr(socket: SocketAddr, name: Option<&str>, is_tls: bool) -> Multiaddr {
    let mut address = multiaddr_of(socket);
    if is_tls {
        address.push(Protocol::Tls);
    }
    if let Some(name) = name {
        address.push(Protocol::Sni(name.into()));
    }
    address.with(Protocol::Ws("/".into()))
}

/// An address of this transport, taken apart.
struct Parts {
    tcp: Multiaddr,
    socket: SocketAddr,
    is_tls: bool,
    name: Option<String>,
}

impl Parts {
    /// `None`: an address of another transport.
    fn of(address: &Multiaddr) -> Option<Parts> {
        let mut parts = address.iter().peekable();
        let first = parts.next();
        let ip: IpAddr = if let Some(Protocol::Ip4(ip)) = first {
            ip.into()
        } else if let Some(Protocol::Ip6(ip)) = first {
            ip.into()
        } else {
            return None;
        };
        let Some(Protocol::Tcp(port)) = parts.next() else { return None };
        let is_tls = parts.next_if_eq(&Protocol::Tls).is_some();
        let mut name = None;
        if let Some(Protocol::Sni(sni)) = parts.peek() {
            name = Some(sni.to_string());
            parts.next();
        }
        let is_web = matches!(parts.next(), Some(Protocol::Ws(_)));
        let is_whole = matches!(parts.next(), None | Some(Protocol::P2p(_)));
        let socket = SocketAddr::new(ip, port);
        (is_web && is_whole).then(|| Parts { tcp: multiaddr_of(socket), socket, is_tls, name })
    }

    fn host(&self) -> String {
        self.name.clone().map_or_else(
            || self.socket.to_string(),
            |name| format!("{name}:{}", self.socket.port()),
        )
    }
}

/// TCP, and WebSocket over it.
pub(crate) struct WebTransport<T> {
    tcp: T,
    accepts: Option<TlsAcceptor>,
    connects: TlsConnector,
    /// Those of WebSocket.
    listeners: Vec<ListenerId>,
}

impl<T> WebTransport<T> {
    pub(crate) fn new(tcp: T, accepts: Option<TlsAcceptor>) -> Result<WebTransport<T>, StartError> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| StartError::Setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
            .with_no_client_auth();
        let connects = TlsConnector::from(Arc::new(with_alpn(config)));
        Ok(WebTransport { tcp, accepts, connects, listeners: Vec::new() })
    }
}

fn with_alpn(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// The certificates of nodes prove nothing here, so they are not asked for anything: a node proves
/// itself inside.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl<T> Transport for WebTransport<T>
where
    T: Transport<Error = io::Error> + Unpin,
    T::Output: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
{
    type Output = Way<T::Output>;
    type Error = io::Error;
    type ListenerUpgrade = BoxFuture<'static, io::Result<Way<T::Output>>>;
    type Dial = BoxFuture<'static, io::Result<Way<T::Output>>>;

    fn listen_on(
        &mut self,
        id: ListenerId,
        address: Multiaddr,
    ) -> Result<(), TransportError<io::Error>> {
        let Some(parts) = Parts::of(&address) else { return self.tcp.listen_on(id, address) };
        self.tcp.listen_on(id, parts.tcp)?;
        self.listeners.push(id);
        Ok(())
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.listeners.retain(|listener| *listener != id);
        self.tcp.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        let Some(parts) = Parts::of(&address) else {
            let dial = self.tcp.dial(address, options)?;
            return Ok(Box::pin(async move { dial.await.map(Way::Plain) }));
        };
        let dial = self.tcp.dial(parts.tcp.clone(), options)?;
        let tls = parts.is_tls.then(|| self.connects.clone());
        Ok(Box::pin(async move {
            let asked = ask(dial.await?, tls, &parts).await;
            let web = asked.map_err(|error| trouble::at(Step::Reaching, error))?;
            Ok(Way::Web(Box::new(web)))
        }))
    }

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let event = ready!(Pin::new(&mut self.tcp).poll(cx));
        let is_web = |id: &ListenerId| self.listeners.contains(id);
        let shown = |id: &ListenerId, address: Multiaddr| {
            if is_web(id) { address.with(Protocol::Ws("/".into())) } else { address }
        };
        Poll::Ready(match event {
            TransportEvent::Incoming { listener_id, upgrade, local_addr, send_back_addr } => {
                let local_addr = shown(&listener_id, local_addr);
                let send_back_addr = shown(&listener_id, send_back_addr);
                let (web, tls) = (is_web(&listener_id), self.accepts.clone());
                let upgrade: Self::ListenerUpgrade = Box::pin(async move {
                    let socket = upgrade.await?;
                    if !web {
                        return Ok(Way::Plain(socket));
                    }
                    accept(socket, tls).await.map(|web| Way::Web(Box::new(web)))
                });
                TransportEvent::Incoming { listener_id, upgrade, local_addr, send_back_addr }
            }
            TransportEvent::NewAddress { listener_id, listen_addr } => {
                let listen_addr = shown(&listener_id, listen_addr);
                TransportEvent::NewAddress { listener_id, listen_addr }
            }
            TransportEvent::AddressExpired { listener_id, listen_addr } => {
                let listen_addr = shown(&listener_id, listen_addr);
                TransportEvent::AddressExpired { listener_id, listen_addr }
            }
            TransportEvent::ListenerClosed { listener_id, reason } => {
                TransportEvent::ListenerClosed { listener_id, reason }
            }
            TransportEvent::ListenerError { listener_id, error } => {
                TransportEvent::ListenerError { listener_id, error }
            }
        })
    }
}

/// A socket of tokio, whatever is below.
trait Duplex: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send {}
impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send> Duplex for S {}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(WEB_READ_BYTES)
        // Each message leaves at once; what the socket does not take is waited for.
        .write_buffer_size(0)
        .max_write_buffer_size(4 * WEB_WRITE_BYTES)
        .max_message_size(Some(WEB_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(WEB_MESSAGE_BYTES_MAX))
}

/// Asks the other end for a link.
async fn ask<S>(socket: S, tls: Option<TlsConnector>, parts: &Parts) -> io::Result<Socket>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = Tokio(socket);
    let socket: Box<dyn Duplex> = match tls {
        Some(tls) => {
            let name = match &parts.name {
                Some(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
                None => ServerName::from(parts.socket.ip()),
            };
            Box::new(tls.connect(name, socket).await?)
        }
        None => Box::new(socket),
    };
    // A redirect is no link, and is not followed.
    let url = format!("ws://{}{PATH}", parts.host());
    let asked = tokio_tungstenite::client_async_with_config(url, socket, Some(config())).await;
    let (web, _) = asked.map_err(failed)?;
    Ok(Socket { web, rest: Bytes::new() })
}

/// Takes a link that the other end asks for.
async fn accept<S>(socket: S, tls: Option<TlsAcceptor>) -> io::Result<Socket>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = Tokio(socket);
    let socket: Box<dyn Duplex> = match tls {
        Some(tls) => Box::new(tls.accept(socket).await?),
        None => Box::new(socket),
    };
    let checked = tokio_tungstenite::accept_hdr_async_with_config(socket, check, Some(config()));
    Ok(Socket { web: checked.await.map_err(failed)?, rest: Bytes::new() })
}

#[expect(clippy::result_large_err, reason = "the library's type")]
fn check(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == PATH {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}

fn failed(error: tungstenite::Error) -> io::Error {
    if let tungstenite::Error::Io(error) = error {
        return error;
    }
    io::Error::new(io::ErrorKind::InvalidData, format!("no WebSocket of a node: {error}"))
}

/// The bytes of a link in binary messages.
pub(crate) struct Socket {
    web: WebSocketStream<Box<dyn Duplex>>,
    /// Of the message that came last.
    rest: Bytes,
}

impl Socket {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            let Some(message) = ready!(Pin::new(&mut self.web).poll_next(cx)) else {
                return Poll::Ready(Ok(None));
            };
            return Poll::Ready(match message {
                Ok(Message::Binary(bytes)) if bytes.is_empty() => continue,
                Ok(Message::Binary(bytes)) => Ok(Some(bytes)),
                // They are answered by the library.
                Ok(Message::Ping(_) | Message::Pong(_)) => continue,
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => Ok(None),
                Ok(Message::Text(_) | Message::Frame(_)) => {
                    Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is not binary"))
                }
                Err(error) => Err(failed(error)),
            });
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.rest.is_empty() {
            match ready!(self.poll_message(cx))? {
                Some(bytes) => self.rest = bytes,
                None => return Poll::Ready(Ok(0)),
            }
        }
        let length = buffer.len().min(self.rest.len());
        self.rest.copy_to_slice(&mut buffer[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut web = Pin::new(&mut self.web);
        ready!(web.as_mut().poll_ready(cx)).map_err(failed)?;
        let length = bytes.len().min(WEB_WRITE_BYTES);
        let message = Message::Binary(Bytes::copy_from_slice(&bytes[..length]));
        web.start_send(message).map_err(failed)?;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.web).poll_flush(cx).map_err(failed)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.web).poll_close(cx).map_err(failed)
    }
}

/// A link's bytes, over TCP or over WebSocket.
pub(crate) enum Way<S> {
    Plain(S),
    Web(Box<Socket>),
}

impl<S: AsyncRead + Unpin> AsyncRead for Way<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Way::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Way::Web(socket) => socket.poll_read(cx, buffer),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Way<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Way::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Way::Web(socket) => socket.poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Way::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Way::Web(socket) => socket.poll_flush(cx),
        }
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Way::Plain(socket) => Pin::new(socket).poll_close(cx),
            Way::Web(socket) => socket.poll_close(cx),
        }
    }
}

/// A socket of libp2p as tokio has them.
struct Tokio<S>(S);

impl<S: AsyncRead + Unpin> tokio::io::AsyncRead for Tokio<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = ready!(Pin::new(&mut self.0).poll_read(cx, buffer.initialize_unfilled()))?;
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> tokio::io::AsyncWrite for Tokio<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures::io::{AsyncReadExt as _, Empty};
    use futures::{FutureExt as _, SinkExt as _};
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// What a link reads of a message that comes to it.
    async fn read(message: Message) -> io::Result<usize> {
        let (ours, theirs) = tokio::io::duplex(2 * WEB_MESSAGE_BYTES_MAX);
        let ours: Box<dyn Duplex> = Box::new(ours);
        let web = WebSocketStream::from_raw_socket(ours, Role::Server, Some(config())).await;
        let mut link = Way::<Empty>::Web(Box::new(Socket { web, rest: Bytes::new() }));
        let mut other = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        other.send(message).await.unwrap();
        let mut buffer = [0; 16];
        // All of it has come: nothing is waited for.
        link.read(&mut buffer).now_or_never().expect("it says at once what it makes of it")
    }

    #[tokio::test]
    async fn a_link_takes_binary_messages_up_to_the_bound_and_nothing_else() {
        let binary = |length| Message::Binary(vec![0; length].into());
        assert_eq!(read(binary(1)).await.unwrap(), 1);
        assert_eq!(read(binary(WEB_MESSAGE_BYTES_MAX)).await.unwrap(), 16);
        let wrong = [binary(WEB_MESSAGE_BYTES_MAX + 1), Message::Text("hello".into())];
        for message in wrong {
            assert_eq!(read(message).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
