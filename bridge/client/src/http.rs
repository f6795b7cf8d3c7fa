//! Requests over HTTP, to the node of a WebSocket address: for that which has no request on a connection, such as files.
//! Each has a connection of its own.

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
pub use hyper::Method;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper_util::rt::TokioIo;
use protocol::value::ApiKey;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::address::WebSocketUrl;
use crate::limits::HTTP_ANSWER_BYTES_MAX;
#[cfg(any(doc, test))]
use crate::limits::HTTP_WITHIN;
use crate::options::Authorities;
use crate::transport;

/// A request.
#[derive(Debug)]
pub struct Ask<'a> {
    /// What to do with it.
    pub method: Method,
    /// The path, percent-encoded, from the root.
    pub path: &'a str,
    /// The API key.
    pub key: &'a ApiKey,
    /// Whom TLS trusts.
    pub authorities: &'a Authorities,
    /// More headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The content.
    pub body: Vec<u8>,
    /// How long the answer may take: [`HTTP_WITHIN`] unless it waits for something.
    pub within: Duration,
}

/// The answer to a request, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, 100 to 599.
    pub status: u16,
    /// The media type of the body.
    pub media: Option<String>,
    /// When to ask again, if it is not there yet.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

/// There is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Nobody listens there, or the way is closed.
    #[error("cannot reach {endpoint} over HTTP: {source}")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// The system's error.
        source: io::Error,
    },
    /// It does not speak HTTP, or broke off.
    #[error("{endpoint} broke off: {source}")]
    Broken {
        /// Where.
        endpoint: String,
        /// How.
        source: hyper::Error,
    },
    /// The request cannot be written: a header has a line break, say.
    #[error("this cannot be asked over HTTP: {0}")]
    Unsound(#[from] hyper::http::Error),
    /// It takes too long.
    #[error("{endpoint} does not answer over HTTP")]
    TimedOut {
        /// Where.
        endpoint: String,
    },
    /// The answer is longer than [`HTTP_ANSWER_BYTES_MAX`], or ended too early.
    #[error("the answer of {endpoint} cannot be read: {source}")]
    Unread {
        /// Where.
        endpoint: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Asks a node. Nothing is repeated.
///
/// # Errors
/// See [`HttpError`]. After all but the first it is not known whether the node acted.
pub async fn ask(node: &WebSocketUrl, ask: Ask<'_>) -> Result<Answer, HttpError> {
    let (endpoint, within) = (node.endpoint.clone(), ask.within);
    let whole = async { begin(node, ask).await?.whole().await };
    timeout(within, whole).await.unwrap_or(Err(HttpError::TimedOut { endpoint }))
}

/// Asks a node, and has the beginning of its answer: what follows may be a stream of events.
///
/// # Errors
/// As of [`ask`].
pub async fn open(node: &WebSocketUrl, ask: Ask<'_>) -> Result<Opened, HttpError> {
    let (endpoint, within) = (node.endpoint.clone(), ask.within);
    timeout(within, begin(node, ask)).await.unwrap_or(Err(HttpError::TimedOut { endpoint }))
}

/// An answer of which the body is to come. The connection ends with it.
#[derive(Debug)]
pub struct Opened {
    endpoint: String,
    /// The answer, without a body so far.
    head: Answer,
    body: Incoming,
    _carried: Carried,
    /// Of a stream of events: what has come of the next one.
    read: Vec<u8>,
}

/// What carries a connection.
#[derive(Debug)]
struct Carried(JoinHandle<hyper::Result<()>>);

impl Drop for Carried {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Opened {
    /// Whether it is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let media = self.head.media.as_deref().and_then(|media| media.split(';').next());
        media.is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
    }

    /// All of it.
    ///
    /// # Errors
    /// It is too long, or ends too early.
    pub async fn whole(self) -> Result<Answer, HttpError> {
        let Opened { endpoint, head, body, _carried, .. } = self;
        let body = Limited::new(body, HTTP_ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|source| HttpError::Unread { endpoint, source })?;
        Ok(Answer { body: body.to_bytes().to_vec(), ..head })
    }

    /// The data of the next event of a stream. `None`: the stream has ended. A node says at least that it is there, more often
    /// than every `silence`.
    ///
    /// # Errors
    /// It broke off, was silent, or the event is too long.
    pub async fn event(&mut self, silence: Duration) -> Result<Option<Vec<u8>>, HttpError> {
        let mut data: Option<Vec<u8>> = None;
        loop {
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let line = line.trim_ascii_end();
                match (line.strip_prefix(b"data:"), &mut data) {
                    (Some(more), None) => data = Some(more.trim_ascii_start().to_vec()),
                    (Some(more), Some(data)) => {
                        data.push(b'\n');
                        data.extend_from_slice(more.trim_ascii_start());
                    }
                    // An empty line ends an event; one without data says nothing.
                    (None, Some(said)) if line.is_empty() => {
                        if !said.is_empty() {
                            return Ok(data);
                        }
                        data = None;
                    }
                    (None, _) => {}
                }
            }
            let held = self.read.len() + data.as_ref().map_or(0, Vec::len);
            if held > HTTP_ANSWER_BYTES_MAX {
                let source = "an event is too long".into();
                return Err(HttpError::Unread { endpoint: self.endpoint.clone(), source });
            }
            let Ok(frame) = timeout(silence, self.body.frame()).await else {
                return Err(HttpError::TimedOut { endpoint: self.endpoint.clone() });
            };
            let Some(frame) = frame else { return Ok(None) };
            let endpoint = || self.endpoint.clone();
            let frame =
                frame.map_err(|source| HttpError::Broken { endpoint: endpoint(), source })?;
            if let Ok(bytes) = frame.into_data() {
                self.read.extend_from_slice(&bytes);
            }
        }
    }
}

async fn begin(node: &WebSocketUrl, ask: Ask<'_>) -> Result<Opened, HttpError> {
    let endpoint = || node.endpoint.clone();
    let authorities = ask.authorities.clone();
    let request = request(node, ask)?;
    let stream = transport::stream(node, &authorities).await;
    let stream =
        stream.map_err(|source| HttpError::Unreachable { endpoint: endpoint(), source })?;
    let broken = |source| HttpError::Broken { endpoint: endpoint(), source };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with the answer, or with this task.
    let carried = Carried(tokio::spawn(connection));
    let answer = sender.send_request(request).await.map_err(broken)?;
    let (head, body) = answer.into_parts();
    let text = |name| {
        let value: Option<&hyper::header::HeaderValue> = head.headers.get(name);
        value.and_then(|value| value.to_str().ok()).map(String::from)
    };
    let seconds = text(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
    let head = Answer {
        status: head.status.as_u16(),
        media: text(CONTENT_TYPE),
        retry_after: seconds.map(Duration::from_secs),
        body: Vec::new(),
    };
    Ok(Opened { endpoint: endpoint(), head, body, _carried: carried, read: Vec::new() })
}

fn request(node: &WebSocketUrl, ask: Ask<'_>) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(HOST, &node.endpoint)
        .header(CONNECTION, "close")
        .header(CONTENT_LENGTH, ask.body.len())
        .header("x-clawchat-key", ask.key.expose());
    for (name, value) in ask.headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::from(ask.body)))
}

/// Whether the answer was longer than it may be.
#[must_use]
pub fn is_too_long(error: &HttpError) -> bool {
    matches!(error, HttpError::Unread { source, .. } if source.is::<LengthLimitError>())
}

/// A text as a header of MCP has it: what is no plain word in base64.
#[must_use]
pub fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'!'..=b'~')) && !text.starts_with("=?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// A path's parts, percent-encoded: all but letters, digits, `-`, `_`, `.`, `~`, and the slashes between them.
#[must_use]
pub fn encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_header_is_ascii() {
        assert_eq!(super::header_text("rooms_list"), "rooms_list");
        assert_eq!(super::header_text("a ü"), "=?base64?YSDDvA==?=");
        assert_eq!(super::header_text("=?x"), "=?base64?PT94?=");
    }

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::address::Address;

    /// A node that answers one request so. Returns what it was asked.
    async fn asked(answer: Vec<u8>) -> (Result<Answer, HttpError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let Ok(Address::WebSocket(url)) = url.parse() else { panic!("{url}") };
        let node = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\nbody") {
                let mut bytes = [0; 1024];
                let count = stream.read(&mut bytes).await.unwrap();
                read.extend_from_slice(&bytes[..count]);
            }
            // It may have had enough before all was written.
            drop(stream.write_all(&answer).await);
            String::from_utf8(read).unwrap()
        });
        let key = ApiKey::new("a key");
        let ask = Ask {
            method: Method::PUT,
            path: "/api/x%20y",
            key: &key,
            authorities: &Authorities::System,
            headers: &[("x-clawmesh-agent", "me")],
            body: b"body".to_vec(),
            within: HTTP_WITHIN,
        };
        let answer = super::ask(&url, ask).await;
        (answer, node.await.unwrap())
    }

    #[tokio::test]
    async fn a_request_is_asked_once_and_its_answer_is_what_the_node_says() {
        let answer = b"HTTP/1.1 503 Later\r\nretry-after: 2\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nlater";
        let (answer, asked) = asked(answer.to_vec()).await;
        let expected = Answer {
            status: 503,
            media: Some("text/plain".to_owned()),
            retry_after: Some(Duration::from_secs(2)),
            body: b"later".to_vec(),
        };
        assert_eq!(answer.unwrap(), expected);
        assert!(asked.starts_with("PUT /api/x%20y HTTP/1.1\r\n"), "{asked}");
        for header in ["x-clawchat-key: a key", "x-clawmesh-agent: me", "content-length: 4"] {
            assert!(asked.contains(header), "{asked}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_as_long_as_it_may_be() {
        let length = HTTP_ANSWER_BYTES_MAX + 1;
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'x');
        let (answer, _) = asked(answer).await;
        assert!(is_too_long(&answer.unwrap_err()));
        let (answer, _) = asked(b"what?\r\n".to_vec()).await;
        assert!(matches!(answer, Err(HttpError::Broken { .. })), "{answer:?}");
    }

    #[tokio::test]
    async fn a_stream_gives_event_after_event_and_ends_with_its_node() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let Ok(Address::WebSocket(url)) = url.parse() else { panic!("{url}") };
        let node = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let events =
                ": there\n\nid: 1\ndata: one\n\ndata:\n\ndata: two\r\ndata: lines\r\n\r\ndata: ha";
            stream.write_all(format!("{head}{events}").as_bytes()).await.unwrap();
            // Also where an event comes in pieces.
            stream.write_all(b"lf\n\ndata: lost").await.unwrap();
        });
        let ask = Ask {
            method: Method::POST,
            path: "/mcp",
            key: &ApiKey::new("a key"),
            authorities: &Authorities::System,
            headers: &[],
            body: Vec::new(),
            within: HTTP_WITHIN,
        };
        let mut opened = open(&url, ask).await.unwrap();
        assert!(opened.is_stream());
        for wanted in ["one", "two\nlines", "half"] {
            let event = opened.event(HTTP_WITHIN).await.unwrap();
            assert_eq!(event.as_deref(), Some(wanted.as_bytes()));
        }
        assert!(!matches!(opened.event(HTTP_WITHIN).await, Ok(Some(_))));
        node.await.unwrap();
    }

    #[test]
    fn paths_are_encoded_but_for_their_slashes() {
        assert_eq!(encoded("a/b c/ü?#%.txt"), "a/b%20c/%C3%BC%3F%23%25.txt");
    }
}
