//! Which web pages may ask, and on whose behalf a request comes.
//!
//! A browser is somebody else's hands. What keeps a page from using it against the node:
//!
//! - A request with an `Origin` that is not allowed is refused, whatever it asks. Browsers send one
//!   with every WebSocket, with every request that writes, and across origins.
//! - They send none with a plain `GET` of what they take for the page's own site. A page whose name
//!   was pointed at this node's address (DNS rebinding) is such a site: so reads below `/api/` are
//!   answered only under names that cannot have been pointed here: addresses, `localhost`, and the
//!   names that the operator gave (`hosts`, and those of `origins`).
//!
//! Health checks and clients of `/ws` may use any name: there is nothing to read without an `Origin`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Uri,
        header::{self, HeaderName},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use protocol::code::Code;

use super::{Problem, Web};
use crate::config::Config;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// What pages of allowed origins may do and send.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const HEADERS: HeaderValue =
    HeaderValue::from_static("content-type, x-clawchat-admin, x-clawchat-key");
/// How long a browser may remember that, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

pub(super) async fn check(State(web): State<Web>, request: Request, next: Next) -> Response {
    let config = &web.shared.config;
    let origin = match origin(config, request.headers()) {
        Ok(origin) => origin,
        Err(problem) => return problem.into_response(),
    };
    let mut response = match &origin {
        Some(_) if is_preflight(&request) => allowed(),
        Some(_) | None if is_rebound(config, &request) => {
            let text = "this node does not answer under that name; ask under its address, or let \
                        its operator add the name";
            Problem::new(StatusCode::FORBIDDEN, Code::AccessDenied, text).into_response()
        }
        Some(_) | None => next.run(request).await,
    };
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// The page that asks, if one does and may.
fn origin(config: &Config, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
    let mut given = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), more) = (given.next(), given.next()) else { return Ok(None) };
    let known = config.origins.iter().any(|it| it.as_bytes() == origin.as_bytes());
    if known && more.is_none() {
        return Ok(Some(origin.clone()));
    }
    let text = "web pages of this origin may not connect; allow it in the node's settings";
    Err(Problem::new(StatusCode::FORBIDDEN, Code::AccessDenied, text))
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn allowed() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Whether a read comes under a name that may have been pointed here.
fn is_rebound(config: &Config, request: &Request) -> bool {
    if !request.uri().path().starts_with("/api/") || request.method() == Method::POST {
        return false;
    }
    let names = request.headers().get_all(header::HOST).iter();
    let mut names = names.map(|name| name.to_str().ok().and_then(|name| name.parse().ok()));
    let target = request.uri().authority();
    !names.all(|name: Option<Authority>| name.is_some_and(|name| is_ours(config, name.host())))
        || target.is_some_and(|name| !is_ours(config, name.host()))
}

fn is_ours(config: &Config, host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is = |name: &str| name.eq_ignore_ascii_case(&host);
    let of_origin = |origin: &String| {
        let origin = origin.parse::<Uri>().ok();
        origin.as_ref().and_then(Uri::host).is_some_and(is)
    };
    host == "localhost"
        || host.ends_with(".localhost")
        || config.hosts.iter().any(|name| is(name))
        || config.origins.iter().any(of_origin)
}

/// Who asks: the nearest address that is not a proxy of the operator's. What stands before it in
/// `X-Forwarded-For` anybody could have written.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let is_trusted = |it: IpAddr| trusted.iter().any(|proxy| proxy.to_canonical() == it);
    let mut client = peer.to_canonical();
    let values: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|it| it.to_str().ok()).collect();
    for hop in values.iter().rev().flat_map(|value| value.rsplit(',')) {
        if !is_trusted(client) {
            break;
        }
        let Some(hop) = address(hop.trim()) else { break };
        client = hop;
    }
    client
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    address.ok().map(|it: IpAddr| it.to_canonical())
}

/// What one client can have many of: an IPv6 address stands for its network of 64 bits.
pub(super) fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(it) => it.into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use mesh::name::id::RoomId;

    use super::*;
    use crate::config::Auth;

    fn config() -> Config {
        let mut config = Config::new(RoomId([1; 16]), Auth::Open);
        config.origins.push("https://Good.example".into());
        config.hosts.push("node.lan".into());
        config
    }

    #[test]
    fn names_that_anybody_can_point_here_are_not_ours() {
        for ours in [
            "127.0.0.1",
            "[::1]",
            "192.168.1.5",
            "localhost",
            "a.localhost",
            "LOCALHOST.",
            "good.example",
            "node.LAN",
        ] {
            assert!(is_ours(&config(), ours), "{ours}");
        }
        for other in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "node.lan.evil.example",
            "",
        ] {
            assert!(!is_ours(&config(), other), "{other}");
        }
    }

    #[test]
    fn a_forwarded_address_counts_from_a_trusted_proxy_alone() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let trusted = [ip("10.0.0.1"), ip("10.0.0.2")];
        for (peer, forwarded, expect) in [
            ("1.1.1.1", &["2.2.2.2"][..], "1.1.1.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["2.2.2.2"], "2.2.2.2"),
            ("::ffff:10.0.0.1", &["2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3, 2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3", "2.2.2.2,10.0.0.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3, junk, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["[2001:db8::1]:4000"], "2001:db8::1"),
            ("10.0.0.1", &["2.2.2.2:4000"], "2.2.2.2"),
        ] {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append(FORWARDED_FOR, value.parse().unwrap());
            }
            assert_eq!(client(ip(peer), &headers, &trusted), ip(expect), "{peer} {forwarded:?}");
        }
        assert_eq!(neighbourhood(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_eq!(neighbourhood(ip("1.2.3.4")), ip("1.2.3.4"));
    }
}
