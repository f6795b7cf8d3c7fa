//! Signing in, by a key or by a link that a holder of a key had made; and signing out.

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use bridge::{config::Auth, read::Peer, secret::Secret};
use serde_json::json;

use crate::{
    forms::{Fields, is_own_form},
    http::{COOKIE, see, shown},
    limits::{LINK_GOOD_FOR, PERSON_BYTES_MAX, SIGNED_IN_FOR},
    shared::Shared,
    signing::NoChance,
    views,
};

const TOO_MANY: &str = "Too many attempts: try again in a minute.";

/// The name of people who give none.
const NAME: &str = "operator";

/// The page at which people sign in. `why`: what went wrong.
pub(crate) fn page(shared: &Shared, why: Option<String>) -> Response {
    let is_open = matches!(shared.desk.config().auth, Auth::Open);
    (StatusCode::UNAUTHORIZED, views::door(is_open, why.as_deref())).into_response()
}

/// A name as people are called.
fn named(given: Option<&str>) -> Result<String, String> {
    let name = given.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(NAME);
    if name.len() > PERSON_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "A name has at most {PERSON_BYTES_MAX} bytes, and no control characters."
        ));
    }
    Ok(name.to_owned())
}

/// With a key that is typed.
pub(crate) async fn enter(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let network = shared.desk.network(peer, &headers);
    if !shared.signing.may_try(network) {
        return page(&shared, Some(TOO_MANY.to_owned()));
    }
    let Some(fields) = Fields::read(&body) else {
        return page(&shared, Some("The form could not be read.".to_owned()));
    };
    let key = Secret::new(fields.get("key").unwrap_or_default().trim());
    match named(fields.get("name")) {
        Ok(name) => match signed_in(&shared, (peer, &headers), key, name).await {
            Ok(cookie) => (cookie, see("/")).into_response(),
            Err(response) => response,
        },
        Err(why) => page(&shared, Some(why)),
    }
}

/// With a link.
pub(crate) async fn open(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(secret): Path<String>,
    headers: HeaderMap,
) -> Response {
    let network = shared.desk.network(peer, &headers);
    if !shared.signing.may_try(network) {
        return page(&shared, Some(TOO_MANY.to_owned()));
    }
    match shared.signing.opened(&secret) {
        // A browser that came from elsewhere shows its new cookie only to a page that this one leads to.
        Some((key, name)) => match signed_in(&shared, (peer, &headers), key, name).await {
            Ok(cookie) => (cookie, views::welcome()).into_response(),
            Err(response) => response,
        },
        None => {
            let why = "This link was opened before, or is older than a minute: `clawmesh open` makes another one.";
            page(&shared, Some(why.to_owned()))
        }
    }
}

/// The header that sets the cookie.
type Cookie = [(HeaderName, String); 1];

async fn signed_in(
    shared: &Shared,
    (peer, headers): (Peer, &HeaderMap),
    key: Secret,
    name: String,
) -> Result<Cookie, Response> {
    let holder = shared.desk.holder(key.clone()).await;
    let holder = holder.map_err(|refusal| page(shared, Some(views::why(&refusal))))?;
    let network = shared.desk.network(peer, headers);
    let secret = shared.signing.enter(key, holder, name, network).map_err(|NoChance| {
        page(shared, Some("This node has no random bytes, and can let nobody in.".to_owned()))
    })?;
    let seconds = SIGNED_IN_FOR.as_secs();
    let secure = if shared.desk.is_secure(peer, headers) { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    Ok([(header::SET_COOKIE, cookie)])
}

/// A link, for a program that shows a key: it opens the page in a browser, which then has no key to type.
pub(crate) async fn link(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refused =
        |status: StatusCode, why: &str| (status, Json(json!({ "error": why }))).into_response();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || text("authorization").and_then(|text| text.strip_prefix("Bearer "));
    // The header of ClawChat's pages, or the usual one.
    let key = Secret::new(text("x-clawchat-key").or_else(bearer).unwrap_or_default().trim());
    let name = serde_json::from_slice::<serde_json::Value>(&body).ok();
    let name = name.as_ref().and_then(|fields| fields["name"].as_str());
    let name = match named(name) {
        Ok(name) => name,
        Err(why) => return refused(StatusCode::BAD_REQUEST, &why),
    };
    if let Err(refusal) = shared.desk.holder(key.clone()).await {
        return refused(StatusCode::UNAUTHORIZED, &views::why(&refusal));
    }
    match shared.signing.link(key, name) {
        Ok(Some(secret)) => {
            let path = format!("/ui/enter/{secret}");
            Json(json!({ "path": path, "seconds": LINK_GOOD_FOR.as_secs() })).into_response()
        }
        Ok(None) => refused(StatusCode::TOO_MANY_REQUESTS, "too many links wait to be opened"),
        Err(NoChance) => refused(StatusCode::SERVICE_UNAVAILABLE, "this node has no random bytes"),
    }
}

/// Out.
pub(crate) async fn leave(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(secret) = shown(&headers)
        && let Some(person) = shared.signing.person(secret)
        && Fields::read(&body).is_some_and(|fields| is_own_form(&person, &fields))
    {
        shared.signing.leave(secret);
    }
    let gone = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    ([(header::SET_COOKIE, gone)], see("/")).into_response()
}
