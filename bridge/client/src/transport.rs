//! Bytes of the three transports, as lines.

use std::io;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, protocol::WebSocketConfig};

use crate::address::{Address, WebSocketUrl};
use crate::error::Broken;
use crate::limits::FRAME_READ_BYTES_MAX;
use crate::options::Authorities;
use crate::tls;

/// The stream below a WebSocket: TCP, or TLS over it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type WebSocket = WebSocketStream<Box<dyn Stream>>;

pub(crate) enum Reader {
    Lines(Lines),
    WebSocket(SplitStream<WebSocket>),
}

pub(crate) enum Writer {
    Bytes(Box<dyn AsyncWrite + Send + Unpin>),
    WebSocket(SplitSink<WebSocket, tungstenite::Message>),
}

/// Connects, without a bound on time.
pub(crate) async fn connect(
    address: &Address,
    authorities: &Authorities,
) -> Result<(Reader, Writer), Broken> {
    match address {
        Address::Unix(path) => {
            let (read, write) = UnixStream::connect(path).await?.into_split();
            Ok((Reader::Lines(Lines::new(Box::new(read))), Writer::Bytes(Box::new(write))))
        }
        Address::Tcp(endpoint) => {
            let (read, write) = tcp(endpoint).await?.into_split();
            Ok((Reader::Lines(Lines::new(Box::new(read))), Writer::Bytes(Box::new(write))))
        }
        Address::WebSocket(url) => web_socket(url, authorities).await,
    }
}

async fn tcp(endpoint: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(endpoint).await?;
    // Frames are small and somebody waits for each of them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn web_socket(
    url: &WebSocketUrl,
    authorities: &Authorities,
) -> Result<(Reader, Writer), Broken> {
    let stream = stream(url, authorities).await?;
    upgrade(url, stream).await
}

/// The stream below HTTP.
pub(crate) async fn stream(
    url: &WebSocketUrl,
    authorities: &Authorities,
) -> io::Result<Box<dyn Stream>> {
    let stream = tcp(&url.endpoint).await?;
    Ok(match &url.tls {
        None => Box::new(stream),
        Some(name) => {
            let connector = tls::connector(authorities).await?;
            Box::new(connector.connect(name.clone(), stream).await?)
        }
    })
}

async fn upgrade(url: &WebSocketUrl, stream: Box<dyn Stream>) -> Result<(Reader, Writer), Broken> {
    let config = WebSocketConfig::default()
        .read_buffer_size(16 * 1024)
        .max_message_size(Some(FRAME_READ_BYTES_MAX))
        .max_frame_size(Some(FRAME_READ_BYTES_MAX));
    let (socket, _) =
        tokio_tungstenite::client_async_with_config(url.url.as_str(), stream, Some(config))
            .await
            .map_err(Box::new)?;
    let (write, read) = socket.split();
    Ok((Reader::WebSocket(read), Writer::WebSocket(write)))
}

impl Reader {
    /// The next frame. Cancel-safe: nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<String, Broken> {
        match self {
            Reader::Lines(lines) => lines.next().await,
            Reader::WebSocket(socket) => next_text(socket).await,
        }
    }
}

async fn next_text(socket: &mut SplitStream<WebSocket>) -> Result<String, Broken> {
    use tungstenite::Message;
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            // Pings are answered by the library; a node sends no binary frames.
            Some(Ok(
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
            )) => {}
            Some(Ok(Message::Close(_))) | None => return Err(Broken::Closed),
            Some(Err(error)) => return Err(Box::new(error).into()),
        }
    }
}

impl Writer {
    /// Writes frames, all in one piece where the transport has no frames of its own.
    pub(crate) async fn write(&mut self, frames: Vec<String>) -> Result<(), Broken> {
        match self {
            Writer::Bytes(stream) => {
                stream.write_all(frames.concat().as_bytes()).await?;
                stream.flush().await?;
            }
            Writer::WebSocket(socket) => {
                for frame in frames {
                    let text = tungstenite::Message::text(frame);
                    socket.feed(text).await.map_err(Box::new)?;
                }
                socket.flush().await.map_err(Box::new)?;
            }
        }
        Ok(())
    }
}

/// Splits a stream of bytes at its newlines.
pub(crate) struct Lines {
    stream: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    // Outlives a cancelled read: the bytes of an unfinished line stay here.
    line: Vec<u8>,
}

impl Lines {
    fn new(stream: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { stream: BufReader::with_capacity(16 * 1024, stream), line: Vec::new() }
    }

    async fn next(&mut self) -> Result<String, Broken> {
        let room = FRAME_READ_BYTES_MAX.saturating_sub(self.line.len());
        let mut bounded = (&mut self.stream).take(room as u64);
        bounded.read_until(b'\n', &mut self.line).await?;
        if self.line.last() != Some(&b'\n') {
            let full = self.line.len() >= FRAME_READ_BYTES_MAX;
            return Err(if full { Broken::TooLong } else { Broken::Closed });
        }
        String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| Broken::NotUtf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_cancelled_read_loses_nothing() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut lines = Lines::new(Box::new(near));
        far.write_all(b"{\"ty").await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(20), lines.next()).await;
        assert!(early.is_err());
        far.write_all(b"pe\"}\n{}\nrest").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), "{\"type\"}\n");
        assert_eq!(lines.next().await.unwrap(), "{}\n");
        drop(far);
        assert!(matches!(lines.next().await, Err(Broken::Closed)));
    }

    #[tokio::test]
    async fn wss_is_tls_to_whom_the_url_names() {
        use tokio_rustls::TlsAcceptor;
        use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
        use tokio_rustls::rustls::{RootCertStore, ServerConfig};

        // For 127.0.0.1, until 2100; see bridge/src/webhooks/post_tests.rs.
        let certificate = include_bytes!("../../src/webhooks/testdata/cert.pem");
        let key = include_bytes!("../../src/webhooks/testdata/key.pem");
        let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key).unwrap();
        let provider = std::sync::Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            for _ in 0..2 {
                let (socket, _) = listener.accept().await.unwrap();
                // A client that does not trust it breaks off.
                let Ok(stream) = acceptor.accept(socket).await else { continue };
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                socket.send(tungstenite::Message::text("{}")).await.unwrap();
            }
        });
        let url = format!("wss://127.0.0.1:{port}/ws");
        let Ok(Address::WebSocket(url)) = Address::web_socket(&url) else { panic!("{url}") };
        let name = url.tls.clone().unwrap();
        for trusted in [false, true] {
            let mut roots = RootCertStore::empty();
            if trusted {
                roots.add(certificate.clone()).unwrap();
            }
            let socket = tcp(&url.endpoint).await.unwrap();
            let stream = tls::trusting(roots).connect(name.clone(), socket).await;
            assert_eq!(stream.is_ok(), trusted);
            let Ok(stream) = stream else { continue };
            let (mut reader, _writer) = upgrade(&url, Box::new(stream)).await.unwrap();
            assert_eq!(reader.next().await.unwrap(), "{}");
        }
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_line_that_is_not_utf8_is_told() {
        let (mut far, near) = tokio::io::duplex(64);
        far.write_all(b"\xff\n").await.unwrap();
        assert!(matches!(Lines::new(Box::new(near)).next().await, Err(Broken::NotUtf8)));
    }
}
