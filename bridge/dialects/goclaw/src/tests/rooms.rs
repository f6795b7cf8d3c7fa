//! Runs in rooms of many.

use bridge::seam::call::Join;

use super::*;

/// Bob and Cy are in the lobby, and Dee is not.
async fn three(node: &Node) -> (Agent, Agent) {
    let (bob, cy) = (node.agent("bob", KEY).await, node.agent("cy", KEY).await);
    drop(node.agent("dee", KEY).await);
    for agent in [&bob, &cy] {
        node.bridge.desk().ask(&agent.visitor, Join(lobby())).await.unwrap();
    }
    (bob, cy)
}

fn lobby_key() -> String {
    format!("room:{}", lobby().to_uuid())
}

impl Agent {
    /// A message of the lobby, when it is there.
    async fn reads(&self, node: &Node, text: &str) -> Said {
        let call = History { room: lobby(), from: From::Newest, limit: 100, before_ms: None };
        let desk = self.bridge.desk();
        let found = async || {
            let page = desk.ask(&self.visitor, call.clone()).await.unwrap();
            page.messages.into_iter().find(|said| said.said.content == text)
        };
        node.until(text, found).await
    }
}

#[tokio::test]
async fn an_answer_that_names_the_request_ends_a_run_in_a_room_and_no_other_words_do() {
    let node = Node::new().await;
    let (bob, cy) = three(&node).await;
    let mut client = node.owner().await;
    let params = json!({"sessionKey": lobby_key(), "message": "anybody?"});
    let id = client.begin("chat.send", params).await;
    let asked = cy.reads(&node, "anybody?").await;
    assert!(asked.said.mentions.is_empty(), "{:?}", asked.said.mentions);
    // Something else is said, and the run stays open.
    let say = Say::chat(lobby(), "nice weather".to_owned());
    node.bridge.desk().ask(&bob.visitor, say).await.unwrap();
    let status = client.begin("chat.session.status", json!({"sessionKey": lobby_key()})).await;
    let status = client.answer(&status).await.unwrap();
    assert_eq!(status["runId"], asked.message.to_uuid(), "{status}");
    cy.says(lobby(), "me", &asked, None).await;
    let result = client.answer(&id).await.unwrap();
    assert_eq!((&result["content"], &result["status"]), (&json!("me"), &json!("completed")));
    assert_eq!(result["sessionKey"], lobby_key());
    let status = client.gets("chat.session.status", json!({"sessionKey": lobby_key()})).await;
    assert_eq!(status["isRunning"], false);
}

#[tokio::test]
async fn an_agent_of_a_room_that_is_named_is_asked_alone_and_must_be_in_it() {
    let node = Node::new().await;
    let (bob, cy) = three(&node).await;
    let mut client = node.owner().await;
    let to = |agent: &str, text: &str| json!({"sessionKey": lobby_key(), "agentId": agent, "message": text});
    let no = client.refused("chat.send", to("dee", "you?")).await;
    assert_eq!(no, ("INVALID_REQUEST".to_owned(), "agent dee is not in this room".to_owned()));
    let id = client.begin("chat.send", to("bob", "bob?")).await;
    let asked = bob.reads(&node, "bob?").await;
    assert_eq!(asked.said.mentions.iter().map(|id| &**id).collect::<Vec<_>>(), ["bob"]);
    cy.says(lobby(), "I am not bob", &asked, None).await;
    // More words are for the run that is open.
    let more = client.begin("chat.send", to("bob", "quick")).await;
    let more = client.answer(&more).await.unwrap();
    assert_eq!(
        (&more["injected"], &more["runId"]),
        (&json!(true), &json!(asked.message.to_uuid()))
    );
    bob.says(lobby(), "yes", &asked, None).await;
    assert_eq!(client.answer(&id).await.unwrap()["content"], "yes");
}

#[tokio::test]
async fn a_run_in_a_room_is_ended_by_its_user_and_by_no_other() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Write, Scope::Read]));
    let (bob, _cy) = three(&node).await;
    let (mut ada, mut other) = (node.owner().await, node.connected(MINTED, "eve").await);
    let id = ada.begin("chat.send", json!({"sessionKey": lobby_key(), "message": "long"})).await;
    let asked = bob.reads(&node, "long").await;
    let run = asked.message.to_uuid();
    for params in [json!({"sessionKey": lobby_key()}), json!({"runId": run})] {
        let ended = other.gets("chat.abort", params).await;
        assert_eq!((&ended["aborted"], &ended["notFound"]), (&json!(false), &json!(true)));
    }
    let ended = ada.begin("chat.abort", json!({"sessionKey": lobby_key(), "runId": run})).await;
    // Whichever comes first.
    let result = ada.answer_of(&[&id, &ended]).await;
    assert_eq!(result[&id]["cancelled"], true, "{result:?}");
    assert_eq!(result[&ended]["runIds"], json!([run]), "{result:?}");
    bob.reads(&node, "cancel").await;
    let again = ada.gets("chat.abort", json!({"sessionKey": lobby_key()})).await;
    assert_eq!(again["notFound"], true);
    let no = ada.refused(
        "chat.send",
        json!({"sessionKey": "room:00000000-0000-0000-0000-000000000009", "message": "x"}),
    );
    assert_eq!(no.await.0, "NOT_FOUND");
}

impl Client {
    /// The answers to several requests, in whatever order they come.
    async fn answer_of(&mut self, ids: &[&str]) -> std::collections::BTreeMap<String, Value> {
        let mut found = std::collections::BTreeMap::new();
        while found.len() < ids.len() {
            let mut frame = self.hear().await;
            if frame["type"] == "res" {
                assert_eq!(frame["ok"], true, "{frame}");
                found.insert(frame["id"].as_str().unwrap().to_owned(), frame["payload"].take());
            }
        }
        found
    }
}
