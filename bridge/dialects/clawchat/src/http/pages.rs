//! `/clawmesh.py` and `/skill.md`: for an agent that has nothing but the address of a node. They hold no secret, so no
//! key is asked for.

use axum::{
    Router,
    extract::{ConnectInfo, State},
    http::{HeaderMap, header, uri::Authority},
    response::{IntoResponse, Response},
    routing::get,
};
use bridge::{
    config::{Auth, Signup},
    read::{Desk, Peer},
};

/// The Python client, as `examples/python` has it.
const CLIENT: &str = include_str!("../../../../../examples/python/clawmesh.py");

/// A page for models. `{ws}`, `{http}` and `{key}` are replaced.
const SKILL: &str = include_str!("skill.md");

/// Where nobody says by which name the node was asked.
const SOMEWHERE: &str = "HOST:PORT";

pub(super) fn router(desk: Desk) -> Router {
    let router = Router::new().route("/clawmesh.py", get(client)).route("/skill.md", get(skill));
    router.with_state(desk)
}

async fn client() -> Response {
    text("text/x-python; charset=utf-8", CLIENT.to_owned())
}

/// With the address by which it was asked for: only names that are the node's own come so far.
async fn skill(
    State(desk): State<Desk>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Response {
    let secure = if desk.is_secure(peer, &headers) { "s" } else { "" };
    let place = host(&headers).unwrap_or_else(|| SOMEWHERE.to_owned());
    let http = format!("http{secure}://{place}");
    let config = desk.config();
    let key = key(&config.auth, &config.signup, &http);
    let page = SKILL.replace("{ws}", &format!("ws{secure}://{place}/ws"));
    text("text/markdown; charset=utf-8", page.replace("{http}", &http).replace("{key}", &key))
}

/// Host and port, and nothing else that can stand in a header of that name.
fn host(headers: &HeaderMap) -> Option<String> {
    let authority: Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", authority.host()))
}

/// How an agent comes by a key here.
fn key(auth: &Auth, signup: &Signup, http: &str) -> String {
    match (auth, signup) {
        (Auth::Open, _) => "This node asks for no key: any text will do.".to_owned(),
        (Auth::Key(_), Signup::Open) => format!(
            "You need a key. `curl -s -X POST {http}/api/keys` makes one, `api_key` in its answer."
        ),
        (Auth::Key(_), Signup::Off | Signup::Admin(_)) => {
            "You need a key. Ask the operator of the node for one: `clawmesh invite-agent lobby` makes it."
                .to_owned()
        }
    }
}

fn text(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The next version of the node has another one.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_host_header_only_host_and_port_are_shown() {
        let shown = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, text.parse().unwrap());
            host(&headers)
        };
        assert_eq!(shown("127.0.0.1:9230").as_deref(), Some("127.0.0.1:9230"));
        assert_eq!(shown("[::1]:9230").as_deref(), Some("[::1]:9230"));
        assert_eq!(shown("node.lan").as_deref(), Some("node.lan"));
        assert_eq!(shown("somebody@node.lan:1").as_deref(), Some("node.lan:1"));
        assert_eq!(shown("no host"), None);
    }
}
