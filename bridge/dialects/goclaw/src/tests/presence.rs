//! Agents that come and go, and a node that stops.

use super::*;

impl Client {
    /// The next event of this name, and no other in between but what belongs to no test here.
    pub(super) async fn event_called(&mut self, name: &str) -> Value {
        loop {
            let event = self.any_event().await;
            if event["event"] == name {
                return event;
            }
        }
    }
}

#[tokio::test]
async fn clients_that_know_the_event_are_told_of_agents_that_come_and_go_and_others_are_not() {
    let node = Node::new().await;
    let mut old = node.client().await;
    assert!(old.ask("connect", json!({"token": KEY, "user_id": "old"})).await.is_ok());
    let mut client = node.owner().await;
    // The first look has no one before it: an agent that comes after it is told of.
    let mut come = 0;
    let first = async {
        loop {
            come += 1;
            drop(node.agent(&format!("a{come}"), KEY).await);
            if let Ok(event) =
                timeout(Duration::from_secs(3), client.event_called("presence")).await
            {
                return event;
            }
        }
    };
    let first = timeout(PATIENCE, first).await.expect("an agent is told of");
    let agents = first["payload"]["agents"].as_object().unwrap();
    assert!(agents.values().all(|online| *online == true), "{first}");
    assert_eq!(first["stateVersion"]["presence"], 1, "{first}");
    let (gone, _) = agents.iter().next_back().unwrap();
    node.fake.detach(gone, Vec::new());
    let second = client.event_called("presence").await;
    assert_eq!(second["payload"]["agents"], json!({gone: false}));
    assert_eq!(second["stateVersion"]["presence"], 2, "{second}");
    // The other one takes the frame after a request for its answer.
    assert!(old.ask("health", json!({})).await.is_ok());
    assert!(old.events.is_empty(), "{:?}", old.events);
}

#[tokio::test]
async fn a_node_that_stops_tells_connected_clients_and_no_others() {
    let node = Node::new().await;
    let (mut client, mut stranger) = (node.owner().await, node.client().await);
    assert!(stranger.ask("health", json!({})).await.is_err());
    node.stop.send_replace(true);
    let last = client.event().await;
    assert_eq!((&last["event"], &last["payload"]), (&json!("shutdown"), &json!({})));
    assert!(last["seq"].as_u64() >= Some(1), "{last}");
    assert_eq!(client.ends().await, 1001);
    let code = match timeout(PATIENCE, stranger.socket.next()).await.expect("it ends") {
        Some(Ok(Message::Close(Some(frame)))) => u16::from(frame.code),
        other => panic!("{other:?}"),
    };
    assert_eq!(code, 1001);
}

#[tokio::test]
async fn a_node_whose_disk_takes_nothing_says_so_and_tells_clients_that_know_the_event() {
    let node = Node::new().await;
    let mut old = node.client().await;
    assert!(old.ask("connect", json!({"token": KEY, "user_id": "old"})).await.is_ok());
    let mut client = node.owner().await;
    let well = client.gets("health", json!({})).await;
    assert_eq!((&well["status"], &well["database"]), (&json!("ok"), &json!("ok")));
    // The first look tells nobody of a state that nobody has seen change.
    let mut full = false;
    let first = async {
        loop {
            full = !full;
            node.hub.set_full(full);
            let told = timeout(Duration::from_secs(3), client.event_called("health")).await;
            if let Ok(told) = told {
                return told;
            }
        }
    };
    let told = timeout(PATIENCE, first).await.expect("it is told");
    let (status, database) = if full { ("degraded", "full") } else { ("ok", "ok") };
    assert_eq!(told["payload"], json!({"status": status}));
    assert_eq!(told["stateVersion"]["health"], 1, "{told}");
    let now = client.gets("health", json!({})).await;
    assert_eq!((&now["status"], &now["database"]), (&json!(status), &json!(database)));
    node.hub.set_full(!full);
    let told = client.event_called("health").await;
    assert_eq!(told["payload"], json!({"status": if full { "ok" } else { "degraded" }}));
    assert_eq!(told["stateVersion"]["health"], 2, "{told}");
    assert!(old.ask("health", json!({})).await.is_ok());
    assert!(old.events.is_empty(), "{:?}", old.events);
    node.stop().await;
}
