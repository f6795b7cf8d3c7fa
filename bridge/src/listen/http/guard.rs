//! Which web pages may ask.
//!
//! A browser is somebody else's hands. These rules keep a page from using it against the node:
//!
//! - A request with an `Origin` that is not allowed is refused in any case. Browsers send one
//!   with every WebSocket, with every request that writes, and across origins. Allowed are the operator's, and the node's
//!   own: the name that the request comes under, if nobody else can have pointed it here.
//! - They send none with a plain `GET` of the page's own site, as they see it. A page whose name
//!   was pointed at this node's address (DNS rebinding) is such a site: so reads of a dialect's pages and of
//!   `/metrics` are answered only under names that cannot have been pointed here: addresses, `localhost`, and the
//!   names that the operator gave (`hosts`, and those of `origins`).
//!
//! Health checks and clients of `/ws` may use any name: there is nothing to read without an `Origin`. Nor is there under
//! a path that no site owns: routers are asked only for paths of their own site, which has rules ([`Sites`]).

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    metrics,
    sites::{Asked, Sites},
};
use crate::{config::Config, dialect::Intrusion};

/// How long a browser may remember that, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The rules by which requests are judged.
pub(super) struct Guard {
    pub(super) config: Arc<Config>,
    pub(super) sites: Arc<Sites>,
}

pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let Ok(origin) = origin(&guard.config, request.headers()) else {
        return guard.sites.refuse(Asked::of(&request), Intrusion::Origin);
    };
    let mut response = match &origin {
        Some(_) if is_preflight(&request) => allowed(&guard.sites, &request),
        Some(_) | None if is_rebound(&guard, &request) => {
            guard.sites.refuse(Asked::of(&request), Intrusion::Name)
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

/// The page that asks, if one does and may. An error: it may not.
fn origin(config: &Config, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
    let mut given = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), more) = (given.next(), given.next()) else { return Ok(None) };
    let known = config.any_origin(|known| known.as_bytes() == origin.as_bytes());
    let may = known || is_own(config, headers, origin);
    if may && more.is_none() { Ok(Some(origin.clone())) } else { Err(()) }
}

/// Whether it is a page of this node: its origin is the name that the request comes under, which is the node's own.
fn is_own(config: &Config, headers: &HeaderMap, origin: &HeaderValue) -> bool {
    let mut names = headers.get_all(header::HOST).iter();
    let (Some(name), None) = (names.next(), names.next()) else { return false };
    let (Ok(name), Ok(origin)) = (name.to_str(), origin.to_str()) else { return false };
    let scheme = if config.http_tls.is_some() { "https://" } else { "http://" };
    let is_same = origin.strip_prefix(scheme).is_some_and(|at| at.eq_ignore_ascii_case(name));
    is_same && name.parse::<Authority>().is_ok_and(|name| is_ours(config, name.host()))
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// To a preflight the node answers itself, as the site that owns the path would have it.
fn allowed(sites: &Sites, request: &Request) -> Response {
    let Some((methods, headers)) = sites.allows(Asked::of(request)) else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, methods),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, headers),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Whether a read comes under a name that may have been pointed here.
fn is_rebound(guard: &Guard, request: &Request) -> bool {
    let path = request.uri().path();
    // No router of a site sees a path without an owner: there is the node's own page of counts, and nothing else to read.
    let checked = guard.sites.checks_names(Asked::of(request));
    if !checked.unwrap_or(path == metrics::PATH) {
        return false;
    }
    let config = &guard.config;
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
        || config.any_host(|name| is(name))
        || config.any_origin(of_origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Auth, testing::here};

    fn config() -> Config {
        let mut config = Config::new(Auth::Open, here());
        config.origins.push("https://Good.example".into());
        config.hosts.push("node.lan".into());
        config
    }

    #[test]
    fn a_page_of_the_node_itself_may_ask_and_one_that_was_pointed_here_may_not() {
        let judged = |host: &str, origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            super::origin(&config(), &headers).is_ok()
        };
        for (host, origin) in [
            ("127.0.0.1:9230", "http://127.0.0.1:9230"),
            ("localhost:9230", "http://LOCALHOST:9230"),
            ("node.lan", "http://node.lan"),
            ("evil.example", "https://Good.example"),
        ] {
            assert!(judged(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("evil.example:9230", "http://evil.example:9230"),
            ("127.0.0.1:9230", "http://127.0.0.1:3000"),
            ("127.0.0.1:9230", "https://127.0.0.1:9230"),
            ("127.0.0.1:9230", "http://evil.example"),
            ("127.0.0.1:9230", "null"),
        ] {
            assert!(!judged(host, origin), "{host} {origin}");
        }
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
}
