//! The time for which an agent stays.

use super::*;

async fn registers(node: &Node, payload: Value) -> Client<TcpStream> {
    let mut client = node.tcp().await;
    client.call("register", payload).await;
    client.call("join_room", json!({"room_id": "lobby"})).await;
    client
}

fn wish(linger_secs: u64) -> Value {
    let mesh = json!({"linger_secs": linger_secs});
    json!({"key": KEY, "name": "n", "agent_id": "n", "reconnect": true, "mesh": mesh})
}

#[tokio::test]
async fn an_agent_stays_for_its_time_and_is_gone_then() {
    let node = Node::start(keyed()).await;
    drop(registers(&node, wish(1)).await);
    node.until("the connection is over", |node| node.bridge.agents() == 0).await;
    assert_eq!(node.fake.members(lobby()), ["n"]);
    node.until("its time is over", |node| node.fake.members(lobby()).is_empty()).await;
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_back_in_time_stays_and_a_node_that_stops_waits_for_nobody() {
    let node = Node::start(keyed()).await;
    drop(registers(&node, wish(1)).await);
    node.until("the connection is over", |node| node.bridge.agents() == 0).await;
    let back = registers(&node, wish(600)).await;
    assert_eq!(node.bridge.agents(), 1);
    drop(back);
    node.until("the connection is over", |node| node.bridge.agents() == 0).await;
    assert_eq!(node.fake.members(lobby()), ["n"]);
    node.stop().await;
}
