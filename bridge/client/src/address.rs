//! Where a node listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::http::Uri;

/// One address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// `HOST:PORT`, newline-delimited JSON.
    Tcp(String),
    /// `ws://HOST[:PORT]/PATH` or `wss://…`, one frame per text message.
    WebSocket(WebSocketUrl),
}

impl Address {
    /// A `HOST:PORT`.
    ///
    /// # Errors
    /// [`AddressError::NoPort`] without a port from 1 to 65535.
    pub fn tcp(text: &str) -> Result<Self, AddressError> {
        let no_port = || AddressError::NoPort { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
        let port: u16 = port.parse().map_err(|_| no_port())?;
        if host.is_empty() || port == 0 { Err(no_port()) } else { Ok(Self::Tcp(text.to_owned())) }
    }

    /// A WebSocket URL, or the address by which a browser asks the same node. Without a path, `/ws` is meant.
    ///
    /// # Errors
    /// [`AddressError::Url`] unless it is `ws://…` or `wss://…`, `http://…` or `https://…`.
    pub fn web_socket(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::Url { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let (scheme, rest) = text.split_once("://").ok_or_else(bad)?;
        let (tls, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "ws" | "http" => (false, 80),
            "wss" | "https" => (true, 443),
            _ => return Err(bad()),
        };
        let text = format!("{}://{rest}", if tls { "wss" } else { "ws" });
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad)?;
        let endpoint = format!("{host}:{}", uri.port_u16().unwrap_or(default_port));
        // A certificate has the address itself.
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let tls = if tls {
            Some(ServerName::try_from(name.to_owned()).map_err(|_| bad())?)
        } else {
            None
        };
        // Nodes, and ClawChat's server, have it there and nowhere else.
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        let url = if bare { format!("{}/ws", text.trim_end_matches('/')) } else { text };
        Ok(Self::WebSocket(WebSocketUrl { endpoint, tls, url }))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// `ws://…`, `wss://…`, `HOST:PORT`, or a path (anything with a `/`).
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains("://") {
            Self::web_socket(text)
        } else if text.contains('/') {
            Ok(Self::Unix(PathBuf::from(text)))
        } else {
            Self::tcp(text)
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(endpoint) => f.write_str(endpoint),
            Address::WebSocket(address) => f.write_str(&address.url),
        }
    }
}

/// A `ws://` or `wss://` URL that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketUrl {
    pub(crate) endpoint: String,
    /// Whom the certificate has to name; `None` = without TLS.
    pub(crate) tls: Option<ServerName<'static>>,
    pub(crate) url: String,
}

impl WebSocketUrl {
    /// Where the same node answers over HTTP: scheme, host and port.
    #[must_use]
    pub fn http(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.endpoint)
    }
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A TCP address needs both.
    #[error("`{text}` is not HOST:PORT")]
    NoPort {
        /// The given text.
        text: String,
    },
    /// Not a WebSocket URL.
    #[error("`{text}` is not a URL like ws://HOST:PORT/ws or wss://HOST/ws")]
    Url {
        /// The given text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart_by_their_form() {
        let parse = |text: &str| text.parse::<Address>();
        assert_eq!(parse("/run/x.sock"), Ok(Address::Unix("/run/x.sock".into())));
        assert_eq!(parse("127.0.0.1:9229"), Ok(Address::Tcp("127.0.0.1:9229".into())));
        assert_eq!(parse("[::1]:9229"), Ok(Address::Tcp("[::1]:9229".into())));
        for (text, endpoint) in [
            ("ws://127.0.0.1:9230/ws", "127.0.0.1:9230"),
            ("ws://node/ws", "node:80"),
            ("ws://[::1]:7/ws", "[::1]:7"),
            ("wss://node/ws", "node:443"),
            ("wss://[::1]:7/ws", "[::1]:7"),
        ] {
            let Ok(Address::WebSocket(url)) = parse(text) else { panic!("{text}") };
            assert_eq!(
                (url.endpoint.as_str(), url.tls.is_some()),
                (endpoint, text.starts_with("wss"))
            );
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for (short, whole) in [
            ("ws://127.0.0.1:9230", "ws://127.0.0.1:9230/ws"),
            ("wss://node/", "wss://node/ws"),
            ("ws://node/other", "ws://node/other"),
            ("https://node:9230", "wss://node:9230/ws"),
            ("HTTP://node/", "ws://node/ws"),
        ] {
            assert_eq!(parse(short).unwrap().to_string(), whole);
        }
        for bad in ["", "node", "node:", "node:x", ":9", "node:0", "node:70000"] {
            assert!(matches!(parse(bad), Err(AddressError::NoPort { .. })), "{bad}");
        }
        for bad in ["ftp://node/ws", "ws://", "ws:///ws", "wss://", "x://y"] {
            assert!(matches!(parse(bad), Err(AddressError::Url { .. })), "{bad}");
        }
    }
}
