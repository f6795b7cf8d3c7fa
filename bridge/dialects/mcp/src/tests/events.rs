//! The extension for events: asked for, streamed, and posted.

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use tokio::{sync::mpsc, time::sleep};

use super::*;

const EVENTS: &str = "io.modelcontextprotocol/events";
/// The base64 of 32 bytes.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn as_events(method: &str, params: Value) -> Value {
    let mut message = modern(method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {EVENTS: {}}});
    message
}

impl Node {
    async fn events(&self, agent: &str, method: &str, params: Value) -> Value {
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        self.post(&format!("/mcp/{agent}"), &headers, &as_events(method, params)).await.body
    }

    async fn poll(&self, agent: &str, params: Value) -> Value {
        let mut answer = self.events(agent, "events/poll", params).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"].take()
    }

    async fn writes(&self, from: &str, to: &str, text: &str) {
        let message = json!({"sessionKey": to, "message": text, "timeoutSeconds": 0});
        assert_eq!(self.call(from, "sessions_send", message).await["status"], "accepted");
    }
}

#[tokio::test]
async fn events_are_for_clients_that_declare_them() {
    let node = Node::new().await;
    let found = node.events("ada", "server/discover", json!({})).await;
    assert_eq!(found["result"]["capabilities"]["extensions"], json!({EVENTS: {}}), "{found}");
    let listed = node.events("ada", "events/list", json!({})).await;
    let names: Vec<&Value> =
        listed["result"]["events"].as_array().unwrap().iter().map(|event| &event["name"]).collect();
    assert_eq!(names, ["inbox", "room"]);
    for method in
        ["events/list", "events/poll", "events/stream", "events/subscribe", "events/unsubscribe"]
    {
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        let asked = modern(method, json!({"name": "inbox"}));
        let answer = node.post("/mcp/ada", &headers, &asked).await;
        assert_eq!(answer.body["error"]["code"], -32021, "{method}");
        let older = node.rpc("ada", method, json!({"name": "inbox"})).await;
        assert_eq!(older["error"]["code"], -32021, "{method} in an older revision");
    }
    let other = node.events("ada", "events/other", json!({})).await;
    assert_eq!(other["error"]["code"], -32601);
    for wrong in [
        json!({}),
        json!({"name": "spoons"}),
        json!({"name": "room"}),
        json!({"name": "room", "arguments": {"room": "none"}}),
        json!({"name": "inbox", "cursor": 7}),
        json!({"name": "inbox", "cursor": "x"}),
    ] {
        let answer = node.events("ada", "events/poll", wrong.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_event_of_the_inbox_says_what_came_and_not_what_it_says() {
    let node = Node::new().await;
    let now = node.poll("ada", json!({"name": "inbox"})).await;
    assert_eq!((&now["events"], &now["truncated"]), (&json!([]), &json!(false)));
    for text in ["one secret", "two secrets", "three"] {
        node.writes("bob", "agent:ada:main", text).await;
    }
    let first =
        node.poll("ada", json!({"name": "inbox", "cursor": now["cursor"], "maxEvents": 2})).await;
    let events = first["events"].as_array().unwrap();
    assert_eq!((events.len(), &first["hasMore"]), (2, &json!(true)), "{first}");
    assert_eq!(events[0]["name"], "inbox");
    assert_eq!(events[0]["data"]["item"], "direct");
    assert_eq!(events[0]["data"]["from"], "agent:bob:main");
    assert_eq!(events[0]["data"]["sessionKey"], "agent:bob:main");
    assert!(!first.to_string().contains("secret"), "{first}");
    let rest = node.poll("ada", json!({"name": "inbox", "cursor": first["cursor"]})).await;
    assert_eq!((rest["events"].as_array().unwrap().len(), &rest["hasMore"]), (1, &json!(false)));
    // The cursor of an event is the one of an inbox: a host goes on with it, and nothing was confirmed.
    let read = node.call("ada", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    assert_eq!(read["messages"].as_array().unwrap().len(), 3);
    let cursor = &events[0]["cursor"];
    let read = node.call("ada", "inbox_wait", json!({"timeoutSeconds": 0, "cursor": cursor})).await;
    assert_eq!(read["messages"][0]["content"], "two secrets");
    let foreign = "0123456789abcdef.1.1";
    let passed = node.poll("ada", json!({"name": "inbox", "cursor": foreign})).await;
    assert_eq!(passed["truncated"], true, "it may have skipped something");
    assert_eq!(passed["events"].as_array().unwrap().len(), 2, "what is unread comes");
    node.stop().await;
}

#[tokio::test]
async fn an_event_of_a_room_is_for_those_inside_and_not_of_ones_own() {
    let node = Node::new().await;
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let of = |cursor: &Value| json!({"name": "room", "arguments": {"room": "mesh:channel:lobby"}, "cursor": cursor});
    let now = node.poll("ada", of(&Value::Null)).await;
    node.writes("ada", "mesh:channel:lobby", "mine").await;
    node.writes("bob", "mesh:channel:lobby", "his").await;
    let found = node.poll("ada", of(&now["cursor"])).await;
    let events = found["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{found}");
    assert_eq!(events[0]["data"]["from"], "agent:bob:main");
    assert_eq!(events[0]["data"]["sessionKey"], "mesh:channel:lobby");
    assert_eq!(node.poll("ada", of(&found["cursor"])).await["events"], json!([]));
    let outside = node.events("cy", "events/poll", of(&Value::Null)).await;
    assert_eq!(outside["error"]["code"], -32602, "{outside}");
    node.stop().await;
}

#[tokio::test]
async fn a_stream_begins_where_its_host_was_and_ends_when_it_may_hear_no_more() {
    let node = Node::new().await;
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let room = json!({"name": "room", "arguments": {"room": "lobby"}});
    let now = node.poll("ada", room.clone()).await["cursor"].take();
    node.writes("bob", "mesh:channel:lobby", "before").await;
    let mut asked = room;
    asked["cursor"] = now.clone();
    let mut stream = node.stream("ada", &as_events("events/stream", asked)).await.unwrap();
    let active = stream.next().await;
    assert_eq!(active["method"], "notifications/events/active", "{active}");
    assert_eq!(active["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    let before = stream.next().await;
    assert_eq!(before["method"], "notifications/events/event", "{before}");
    assert_eq!(before["params"]["data"]["from"], "agent:bob:main");
    node.writes("bob", "mesh:channel:lobby", "after").await;
    let after = stream.next().await;
    assert_ne!(after["params"]["eventId"], before["params"]["eventId"]);
    assert_eq!(stream.within(Duration::from_millis(300)).await, None, "each comes once");
    node.call("ada", "room_leave", json!({"room": "lobby"})).await;
    node.writes("bob", "mesh:channel:lobby", "unheard").await;
    let end = stream.next().await;
    assert_eq!(end["method"], "notifications/events/terminated", "{end}");
    assert_eq!(stream.next().await["result"]["resultType"], "complete");
    stream.end();
    let mut streams = Vec::new();
    for _ in 0..4 {
        let asked = as_events("events/stream", json!({"name": "inbox"}));
        let mut stream = node.stream("bob", &asked).await.unwrap();
        assert_eq!(stream.next().await["method"], "notifications/events/active");
        streams.push(stream);
    }
    let fifth = node.events("bob", "events/stream", json!({"name": "inbox"})).await;
    assert!(fifth["error"].is_object(), "{fifth}");
    streams.into_iter().for_each(Events::end);
    node.stop().await;
}

/// A host that takes posts.
struct Host {
    url: String,
    came: mpsc::UnboundedReceiver<(HeaderMap, Value)>,
    serving: JoinHandle<()>,
}

type Inside = (mpsc::UnboundedSender<(HeaderMap, Value)>, bool);

async fn take(
    State((came, agrees)): State<Inside>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let answer = if agrees { json!({"challenge": body["challenge"]}) } else { json!({}) };
    drop(came.send((headers, body)));
    Json(answer)
}

impl Host {
    async fn new(agrees: bool) -> Host {
        let (sender, came) = mpsc::unbounded_channel();
        let router = Router::new().route("/hook", post(take)).with_state((sender, agrees));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Host { url, came, serving }
    }

    async fn next(&mut self) -> (HeaderMap, Value) {
        timeout(PATIENCE, self.came.recv()).await.expect("it is posted").unwrap()
    }

    fn wants(&self, more: Value) -> Value {
        let delivery = json!({"mode": "webhook", "url": self.url, "secret": SECRET});
        let mut wanted = json!({"name": "inbox", "delivery": delivery});
        for (name, value) in more.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        wanted
    }
}

async fn open_to_loopback() -> Node {
    let config = Config { allow_private_webhooks: true, ..keyed() };
    Node::with(config, |settings| settings).await
}

#[tokio::test]
async fn events_are_posted_signed_to_a_host_that_has_agreed_while_it_renews() {
    let (node, mut host) = (open_to_loopback().await, Host::new(true).await);
    let begun = node.events("ada", "events/subscribe", host.wants(json!({"ttlMs": 60_000}))).await;
    let id = begun["result"]["id"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let (_, asked) = host.next().await;
    assert_eq!(asked["type"], "verification");
    node.writes("bob", "agent:ada:main", "a secret").await;
    let (headers, event) = host.next().await;
    assert_eq!((&event["name"], &event["subscriptionId"]), (&json!("inbox"), &json!(id)));
    assert_eq!(event["data"]["from"], "agent:bob:main");
    assert!(!event.to_string().contains("secret"), "{event}");
    assert_eq!(headers["webhook-id"].to_str().unwrap(), event["eventId"].as_str().unwrap());
    assert!(headers["webhook-signature"].to_str().unwrap().starts_with("v1,"));
    // It is renewed: the same one, where it is, and nobody is asked again whether it wants it.
    let again = node.events("ada", "events/subscribe", host.wants(json!({"ttlMs": 1_000}))).await;
    assert_eq!(again["result"]["id"], *id);
    assert_eq!(again["result"]["cursor"], event["cursor"]);
    assert_eq!(again["result"]["deliveryStatus"]["active"], true);
    let other = node.events("bob", "events/unsubscribe", json!({"id": id})).await;
    assert!(other["error"].is_object(), "another agent's: {other}");
    sleep(Duration::from_millis(1_500)).await;
    node.writes("bob", "agent:ada:main", "too late").await;
    sleep(Duration::from_millis(500)).await;
    assert!(host.came.try_recv().is_err(), "it was not renewed");
    // It goes on from where its host says that it was.
    let params = host.wants(json!({"cursor": event["cursor"]}));
    let renewed = node.events("ada", "events/subscribe", params).await;
    assert_eq!(renewed["result"]["id"], *id);
    assert_eq!(host.next().await.1["type"], "verification");
    assert_eq!(host.next().await.1["data"]["item"], "direct");
    assert!(
        node.events("ada", "events/unsubscribe", json!({"id": id})).await["result"].is_object()
    );
    node.writes("bob", "agent:ada:main", "unheard").await;
    sleep(Duration::from_millis(500)).await;
    assert!(host.came.try_recv().is_err(), "it has ended");
    host.serving.abort();
    node.stop().await;
}

#[tokio::test]
async fn nobody_is_posted_to_who_has_not_agreed_or_may_not_be() {
    let (node, host) = (open_to_loopback().await, Host::new(false).await);
    let refused = node.events("ada", "events/subscribe", host.wants(json!({}))).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    for wrong in [
        json!({"delivery": {"url": host.url, "secret": "short"}}),
        json!({"delivery": {"url": "ftp://example.com", "secret": SECRET}}),
        json!({"delivery": {"secret": SECRET}}),
        json!({"delivery": null}),
    ] {
        let answer = node.events("ada", "events/subscribe", host.wants(wrong.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}");
    }
    node.stop().await;
    let (node, mut host) = (Node::new().await, Host::new(true).await);
    let private = node.events("ada", "events/subscribe", host.wants(json!({}))).await;
    let text = private["error"]["message"].as_str().unwrap();
    assert!(text.contains("not public"), "{text}");
    assert!(host.came.try_recv().is_err(), "not even asked");
    host.serving.abort();
    node.stop().await;
}
