//! The page over HTTP, on a mesh of one node in memory. Requests are bytes, as a browser writes them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bridge::{
    Bridge, Config,
    config::Auth,
    read::Visitor,
    seam::call::{Attach, CreateRoom, Identity, Join, Say},
    secret::Secret,
    testing::{Fake, KEY, echo::Echo, here, keyed, lobby},
};
use mesh::{api::command::NewRoom, name::id::RoomId, wire::acts::Scope};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::Page;

mod acting;
mod figures;
mod first;
mod keys;
mod search;
mod waits;

/// Longer than anything takes on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);
/// A key of somebody else.
const OTHER: &str = "a minted key of somebody, for tests";

struct Node {
    fake: Arc<Fake>,
    bridge: Bridge,
    at: SocketAddr,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The cookie that it sets.
    fn cookie(&self) -> &str {
        self.header("set-cookie").and_then(|all| all.split(';').next()).expect("a cookie")
    }

    /// The word of the person's own forms.
    fn form(&self) -> &str {
        let (_, rest) = self.body.split_once("name=\"form\" value=\"").expect("a form");
        rest.split('"').next().unwrap()
    }
}

impl Node {
    async fn new() -> Node {
        Node::with(keyed()).await
    }

    async fn with(config: Config) -> Node {
        let (fake, hub) = Fake::new();
        let last = Arc::new(Echo::default());
        let bridge = Bridge::new(config, hub, fake.clone(), vec![Arc::new(Page::default()), last]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let serves = bridge.clone();
        tokio::spawn(async move {
            serves.serve_http(listener, std::future::pending()).await.unwrap();
        });
        Node { fake, bridge, at }
    }

    /// One request, on a connection of its own. `head`: from its method to its last header.
    async fn send(&self, head: &str, body: &str) -> Answer {
        let mut io = TcpStream::connect(self.at).await.unwrap();
        let request = format!(
            "{head}\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.at,
            body.len()
        );
        io.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, io.read_to_end(&mut answer)).await.expect("an answer").unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    async fn get(&self, path: &str, cookie: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\ncookie: {cookie}"), "").await
    }

    async fn post(&self, path: &str, cookie: &str, form: &str) -> Answer {
        let head = format!(
            "POST {path} HTTP/1.1\r\ncookie: {cookie}\r\norigin: http://{}\r\ncontent-type: application/x-www-form-urlencoded",
            self.at
        );
        self.send(&head, form).await
    }

    /// Signs in. Returns the cookie.
    async fn enter(&self, key: &str, name: &str) -> String {
        let form = format!("key={}&name={}", key.replace(' ', "+"), name.replace(' ', "+"));
        let answer = self.post("/ui/enter", "", &form).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        answer.cookie().to_owned()
    }

    async fn agent(&self, name: &str, key: &str) -> Visitor {
        let call = Attach {
            key: Secret::new(key),
            name: name.to_owned(),
            identity: Identity::Named(name.to_owned()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: Duration::from_secs(600),
        };
        self.bridge.desk().host(call).await.unwrap().visitor
    }

    async fn says(&self, agent: &Visitor, text: &str) {
        self.bridge.desk().ask(agent, Say::chat(lobby(), text.to_owned())).await.unwrap();
    }
}

fn lobby_path() -> String {
    format!("/ui/rooms/{}", lobby().to_uuid())
}

#[tokio::test]
async fn who_is_not_signed_in_sees_the_way_in_and_nothing_else() {
    let node = Node::new().await;
    for path in ["/", "/ui/rooms", "/ui/agents", &*lobby_path(), "/ui/live/mesh"] {
        let answer = node.get(path, "").await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.contains("Sign in to this node"), "{path}: {}", answer.body);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        // Else a browser sends its forms with the origin `null`, which is refused.
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
    }
    let wrong = node.post("/ui/enter", "", "key=wrong+and+long+enough&name=").await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("set-cookie").is_none() && wrong.body.contains("role=\"alert\""));
    assert_eq!(node.get("/ui/nothing", "").await.status, 404);
    let style = node.get("/assets/page.css", "").await;
    assert_eq!(
        (style.status, style.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
}

#[tokio::test]
async fn a_person_who_has_shown_a_key_sees_mesh_rooms_and_agents_and_signs_out() {
    let node = Node::new().await;
    drop(node.agent("bob", KEY).await);
    let entered =
        node.post("/ui/enter", "", &format!("key={}&name=ada", KEY.replace(' ', "+"))).await;
    let cookie = entered.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = entered.cookie();
    let mesh = node.get("/", cookie).await;
    assert_eq!(mesh.status, 200);
    assert!(mesh.body.contains("this node") && mesh.body.contains("data-live=\"/ui/live/mesh\""));
    assert!(node.get("/ui/rooms", cookie).await.body.contains("lobby"));
    assert!(node.get("/ui/agents", cookie).await.body.contains("bob"));
    // The cookie opens nothing but the page.
    let out = node.post("/ui/leave", cookie, "form=wrong").await;
    assert_eq!(
        (out.status, node.get("/", cookie).await.status),
        (303, 200),
        "not of a page of its own"
    );
    let form = mesh.form();
    node.post("/ui/leave", cookie, &format!("form={form}")).await;
    assert_eq!(node.get("/", cookie).await.status, 401);
}

#[tokio::test]
async fn what_agents_write_is_text_and_nothing_else() {
    let node = Node::new().await;
    let bob = node.agent("<i>bob</i>", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    let hostile = "<script>alert(1)</script>\"><img src=x onerror=y>\u{202e}evil\u{1b}[2J&amp;";
    node.says(&bob, hostile).await;
    let new = NewRoom {
        name: "<b>room</b>".to_owned(),
        description: Some("'\"><svg onload=x>".to_owned()),
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    node.bridge.desk().ask(&bob, CreateRoom(new)).await.unwrap();
    let cookie = node.enter(KEY, "<u>ada").await;
    for path in [&*lobby_path(), "/ui/rooms", "/ui/agents", "/"] {
        let page = node.get(path, &cookie).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        for bad in [
            "<script>alert",
            "<img",
            "<i>bob",
            "<b>room",
            "<svg onload",
            "<u>ada",
            "\u{202e}",
            "\u{1b}",
        ] {
            assert!(!page.body.contains(bad), "{path} has {bad:?}: {}", page.body);
        }
    }
    let room = node.get(&lobby_path(), &cookie).await.body;
    assert!(room.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{room}");
    assert!(room.contains("\u{fffd}evil\u{fffd}[2J&amp;amp;"), "{room}");
}

#[tokio::test]
async fn a_person_says_something_as_an_agent_of_the_key_and_only_from_a_page_of_its_own() {
    let node = Node::new().await;
    let cookie = node.enter(KEY, "ada").await;
    let page = node.get(&lobby_path(), &cookie).await;
    let say = format!("{}/say", lobby_path());
    for form in ["text=forged", "form=wrong&text=forged"] {
        assert_eq!(node.post(&say, &cookie, form).await.status, 403, "{form}");
    }
    let foreign = format!("POST {say} HTTP/1.1\r\ncookie: {cookie}\r\norigin: http://evil.example");
    let form = format!("form={}&text=hello+there%0D%0Aall", page.form());
    assert_eq!(node.send(&foreign, &form).await.status, 403, "another page");
    assert_eq!(node.post(&say, "", &form).await.status, 401, "nobody");
    let empty = node.post(&say, &cookie, &format!("form={}&text=++", page.form())).await;
    assert!(empty.status == 409 && empty.body.contains("empty"), "{}", empty.body);
    let said = node.post(&say, &cookie, &form).await;
    assert_eq!(
        (said.status, said.header("location")),
        (303, Some(&*format!("{}#end", lobby_path())))
    );
    let page = node.get(&lobby_path(), &cookie).await.body;
    assert!(page.contains("hello there\nall") && page.contains("-ada"), "{page}");
    assert!(!page.contains("forged"));
}

#[tokio::test]
async fn a_key_sees_its_own_rooms_and_one_that_reads_only_writes_nothing() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read]);
    let bob = node.agent("bob", KEY).await;
    let new = NewRoom {
        name: "den".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let den = node.bridge.desk().ask(&bob, CreateRoom(new)).await.unwrap().room;
    let path = |room: RoomId| format!("/ui/rooms/{}", room.to_uuid());
    let (own, other) = (node.enter(KEY, "ada").await, node.enter(OTHER, "eve").await);
    assert!(node.get(&path(den), &own).await.body.contains("den"));
    assert!(node.get("/ui/rooms", &own).await.body.contains("den"));
    assert_eq!(node.get(&path(den), &other).await.status, 404);
    assert_eq!(node.get(&format!("{}/live", path(den)), &other).await.status, 404);
    assert!(!node.get("/ui/rooms", &other).await.body.contains(">den<"));
    let form = format!("form={}&text=x", node.get(&lobby_path(), &other).await.form());
    let said = node.post(&format!("{}/say", lobby_path()), &other, &form).await;
    assert_eq!(said.status, 409, "{}", said.body);
}

#[tokio::test]
async fn a_link_signs_in_once_and_needs_a_key_to_be_made() {
    let node = Node::new().await;
    let no = node.send("POST /ui/link HTTP/1.1\r\nauthorization: Bearer wrong", "{}").await;
    assert_eq!(no.status, 401);
    let by_other = format!("POST /ui/link HTTP/1.1\r\nx-clawchat-key: {KEY}");
    assert_eq!(node.send(&by_other, "{}").await.status, 200);
    let head = format!("POST /ui/link HTTP/1.1\r\nauthorization: Bearer {KEY}");
    let made = node.send(&head, r#"{"name":"ada"}"#).await;
    let made: serde_json::Value = serde_json::from_str(&made.body).unwrap();
    let path = made["path"].as_str().unwrap();
    let opened = node.get(path, "").await;
    assert!(opened.status == 200 && opened.body.contains("url=/"), "{}", opened.body);
    let page = node.get("/", opened.cookie()).await;
    assert!(page.status == 200 && page.body.contains("ada"));
    let again = node.get(path, "").await;
    assert!(again.status == 401 && again.body.contains("was opened before"), "{}", again.body);
    assert!(again.header("set-cookie").is_none());
}

#[tokio::test]
async fn keys_are_not_guessed() {
    let node = Node::new().await;
    for _ in 0..crate::limits::ATTEMPTS_PER_MINUTE {
        assert_eq!(node.post("/ui/enter", "", "key=guess").await.status, 401);
    }
    let form = format!("key={}", KEY.replace(' ', "+"));
    let answer = node.post("/ui/enter", "", &form).await;
    assert!(answer.status == 401 && answer.body.contains("Too many attempts"), "{}", answer.body);
}

#[tokio::test]
async fn an_open_room_is_told_what_is_said_as_it_comes() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    node.says(&bob, "before").await;
    let cookie = node.enter(KEY, "ada").await;
    let page = node.get(&lobby_path(), &cookie).await.body;
    let (_, rest) = page.split_once("data-room=\"").expect("it is live");
    let live = rest.split('"').next().unwrap().to_owned();
    let mut io = TcpStream::connect(node.at).await.unwrap();
    let head = format!("GET {live} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", node.at);
    io.write_all(head.as_bytes()).await.unwrap();
    node.says(&bob, "after <all>").await;
    let mut heard = String::new();
    let hear = async {
        let mut bytes = [0; 4096];
        while !heard.contains("after &lt;all&gt;") {
            let read = io.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    };
    timeout(PATIENCE, hear).await.expect("it is told");
    assert!(heard.contains("text/event-stream") && heard.contains("event: said"), "{heard}");
    assert!(!heard.contains("before"), "what the page has does not come again: {heard}");
}

#[tokio::test]
async fn a_node_that_checks_no_keys_asks_for_none() {
    let node = Node::with(Config::new(Auth::Open, here())).await;
    let door = node.get("/", "").await.body;
    assert!(door.contains("checks no keys") && !door.contains("name=\"key\""), "{door}");
    let entered = node.post("/ui/enter", "", "name=ada").await;
    assert_eq!(node.get("/", entered.cookie()).await.status, 200);
}

#[tokio::test]
async fn a_key_that_is_revoked_ends_its_pages() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read, Scope::Write]);
    let cookie = node.enter(OTHER, "eve").await;
    assert_eq!(node.get("/", &cookie).await.status, 200);
    node.revoke(OTHER);
    assert_eq!(node.get("/", &cookie).await.status, 401);
}

#[tokio::test]
async fn all_messages_of_a_room_are_found_page_by_page() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    let all: Vec<String> = (0..250).map(|nth| format!("message-{nth}-")).collect();
    for text in &all {
        node.says(&bob, text).await;
    }
    let cookie = node.enter(KEY, "ada").await;
    let (mut found, mut path) = (Vec::new(), Some(lobby_path()));
    while let Some(page) = path.take() {
        let page = node.get(&page, &cookie).await.body;
        let of_page: Vec<&String> = all.iter().filter(|text| page.contains(&***text)).collect();
        found.splice(0..0, of_page);
        let older = page.split_once("?before=").map(|(_, rest)| rest.split('"').next().unwrap());
        path = older.map(|number| format!("{}?before={number}", lobby_path()));
    }
    assert_eq!(found, all.iter().collect::<Vec<_>>(), "each once, however many are of a moment");
}
