//! The agent that asks: its id, its seats, and a connection under the same id.

use super::*;
use bridge::testing::Connection;

#[tokio::test]
async fn an_agent_that_names_none_is_its_keys_and_says_who_it_is() {
    let node = Node::new().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "agents_list", "arguments": {"spoon": 1}}});
    let named = [("x-clawmesh-name", "Ada"), ("x-clawmesh-agent", "ada")];
    for (headers, agent, name) in [
        (&[][..], crate::keys::agent_of(own_key()), crate::keys::agent_of(own_key())),
        (&named[..], "ada".to_owned(), "Ada".to_owned()),
    ] {
        let body = node.post("/mcp", headers, &call).await.body;
        let result = &body["result"]["structuredContent"];
        let me = &result["me"];
        assert_eq!((&me["agentId"], &me["name"]), (&json!(agent), &json!(name)), "{body}");
        assert_eq!((&me["keyKind"], &me["visibility"]), (&json!("own"), &json!("joined")));
        assert_eq!(result["ignored"], json!(["spoon"]));
    }
    assert_eq!(node.fake.attached(), 0, "who only looks is not attached");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_acts_is_attached_until_it_is_silent_and_has_its_seats_again() {
    let idle = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { idle_detach: idle, ..settings }).await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    assert_eq!(node.fake.attached(), 1);
    node.call("bob", "room_join", json!({"room": "lobby"})).await;
    let listed = node.call("ada", "agents_list", json!({})).await;
    assert_eq!((&listed["count"], &listed["agents"][0]["agentId"]), (&json!(1), &json!("bob")));
    assert_eq!(listed["agents"][0]["dialect"], "mcp");
    let gone = async || {
        while node.fake.attached() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone()).await.expect("it is detached");
    let rooms = node.call("ada", "rooms_list", json!({"joined": true})).await;
    assert_eq!(rooms["count"], 1, "it will have its seat again");
    let said = node.call("ada", "room_send", json!({"room": "lobby", "message": "back"})).await;
    assert_eq!(said["status"], "ok", "{said}");
    node.stop().await;
}

#[tokio::test]
async fn a_connection_of_the_same_agent_takes_its_place_and_both_act() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let mut connection = Connection::new(&node.fake, keyed(), &Echo::default());
    connection.say(r#"{"type": "echo", "attach": "ada", "reconnect": false}"#);
    let answer: Value = serde_json::from_slice(&connection.frames.pop_front().unwrap()).unwrap();
    assert_eq!(answer["attached"], "ada", "without a word: {answer}");
    assert_eq!(node.fake.attached(), 1);
    let said = node.call("ada", "room_send", json!({"room": "lobby", "message": "both"})).await;
    assert_eq!(said["status"], "ok", "{said}");
    node.stop().await;
}

#[tokio::test]
async fn a_drawn_id_is_its_keys_alone() {
    let node = Node::new().await;
    let arguments = json!({"room": "lobby"});
    let params = json!({"name": "room_join", "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    for _ in 0..2 {
        let body = node.post("/mcp", &[("x-clawmesh-draw", "00aabbccddee")], &call).await.body;
        assert_eq!(body["result"]["structuredContent"]["status"], "ok", "{body}");
    }
    assert_eq!(node.fake.attached(), 1);
    let foreign = mesh::name::agent::drawn([0; 6], mesh::name::id::KeyPrint([7; 16]));
    let answer = node.post(&format!("/mcp/{foreign}"), &[], &call).await;
    let error = &answer.body["error"];
    assert_eq!((answer.status, &error["code"]), (StatusCode::FORBIDDEN, &json!(1)));
    assert_eq!(error["message"], format!("agent id \"{foreign}\" belongs to another key"));
    for tool in ["sessions_list", "sessions_history", "agents_list", "rooms_list", "inbox_wait"] {
        let params =
            json!({"name": tool, "arguments": {"sessionKey": "main", "timeoutSeconds": 0}});
        let reads = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = node.post(&format!("/mcp/{foreign}"), &[], &reads).await;
        let code = &answer.body["error"]["code"];
        assert_eq!((answer.status, code), (StatusCode::FORBIDDEN, &json!(1)), "{tool}");
    }
    let invoked = json!({"tool": "room_join", "args": {"room": "lobby"}, "agentId": &*foreign});
    let answer = node.post("/tools/invoke", &[], &invoked).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.body["error"]["type"], "forbidden");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_waits_stays_in_its_rooms() {
    let idle = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { idle_detach: idle, ..settings }).await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let wait = node.call("ada", "room_wait", json!({"room": "lobby", "timeoutSeconds": 3})).await;
    assert_eq!((&wait["status"], node.fake.attached()), (&json!("timeout"), 1));
    node.stop().await;
}

#[tokio::test]
async fn a_room_is_left_also_after_a_silence() {
    let idle = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { idle_detach: idle, ..settings }).await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let gone = async || {
        while node.fake.attached() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone()).await.expect("it is detached");
    for _ in 0..2 {
        let left = node.call("ada", "room_leave", json!({"room": "lobby"})).await;
        assert_eq!(left["status"], "ok", "{left}");
    }
    let rooms = node.call("ada", "rooms_list", json!({"joined": true})).await;
    assert_eq!(rooms["count"], 0);
    node.stop().await;
}

#[tokio::test]
async fn a_key_that_is_valid_no_more_ends_its_waits() {
    let idle = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { idle_detach: idle, ..settings }).await;
    let node = Arc::new(node);
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let attached = async |count: usize| {
        while node.fake.attached() != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, attached(0)).await.expect("it is detached");
    let waiting = {
        let node = node.clone();
        tokio::spawn(async move {
            let wait = json!({"room": "lobby", "timeoutSeconds": 50});
            let params = json!({"name": "room_wait", "arguments": wait});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            node.post("/mcp/ada", &[], &call).await
        })
    };
    // The key was looked at when the request came, and the wait has begun.
    timeout(PATIENCE, attached(1)).await.expect("it is attached again");
    let Auth::Key(own) = &node.bridge.config().auth else { panic!("it checks keys") };
    own.rotate("another key, of which nobody has heard");
    node.fake.say(lobby(), "b", "for the new key alone");
    let answer = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
    Arc::into_inner(node).unwrap().stop().await;
}

#[tokio::test]
async fn an_agents_name_is_ascii_where_a_header_says_it() {
    let node = Node::new().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for name in ["x-clawmesh-agent", "x-clawmesh-name", "x-clawmesh-capabilities"] {
        let answer = node.post("/mcp", &[(name, "Zo\u{eb}")], &list).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}");
    }
    let answer = node.post("/mcp/%ff", &[], &list).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(node.post("/mcp/Zo%C3%AB?tools=", &[], &list).await.status, StatusCode::OK);
    node.stop().await;
}
