//! Answers as they are written, at the client of a run.

use bridge::seam::call::{SetTyping, Stream};
use mesh::{api::command::NewPiece, wire::piece::PieceKind};

use super::*;

impl Agent {
    fn piece(to: &Said, kind: PieceKind, content: Option<&str>) -> NewPiece {
        NewPiece {
            room: to.room,
            stream: "s".to_owned(),
            reply_to: Some(to.message.to_uuid()),
            kind,
            content: content.map(str::to_owned),
            tool: None,
            input: None,
            result: None,
        }
    }

    async fn streams(&self, piece: NewPiece) {
        self.bridge.desk().ask(&self.visitor, Stream(piece)).await.unwrap();
    }

    async fn chunk(&self, to: &Said, text: &str) {
        self.streams(Agent::piece(to, PieceKind::Chunk, Some(text))).await;
    }

    /// Uses a tool, and has its result.
    async fn uses(&self, to: &Said, tool: &str) {
        let of = |kind| NewPiece {
            tool: Some(tool.to_owned()),
            input: Some(r#"{"for":"sheep"}"#.to_owned()),
            result: (kind == PieceKind::ToolResult).then(|| "[1,2]".to_owned()),
            ..Agent::piece(to, kind, None)
        };
        self.streams(of(PieceKind::ToolCall)).await;
        self.streams(of(PieceKind::ToolResult)).await;
    }
}

/// The types of the run's events, each with its payload.
fn told(client: &mut Client) -> Vec<(String, Value)> {
    let events = client.events.drain(..).filter(|event| event["event"] == "agent");
    events
        .map(|event| {
            let payload = &event["payload"];
            (payload["type"].as_str().unwrap().to_owned(), payload["payload"].clone())
        })
        .collect()
}

fn types(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| &**kind).collect()
}

fn joined(told: &[(String, Value)]) -> String {
    let chunks = told.iter().filter(|(kind, _)| kind == "chunk");
    chunks.map(|(_, inner)| inner["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_answer_is_told_as_it_is_written_and_its_pieces_are_the_content() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let ask = json!({"agentId": "bob", "message": "count", "stream": true});
    let id = client.begin("chat.send", ask).await;
    let asked = agent.hears(&node, "count").await;
    agent.chunk(&asked, "one").await;
    // It comes while the answer is written.
    let mut live = Vec::new();
    while !live.iter().any(|event: &Value| event["payload"]["type"] == "chunk") {
        live.push(client.event().await);
    }
    agent.uses(&asked, "grep").await;
    agent.streams(Agent::piece(&asked, PieceKind::Activity, Some("looking"))).await;
    agent.chunk(&asked, ", two").await;
    agent.answers(&asked, "one, two, three").await;
    let result = client.answer(&id).await.unwrap();
    for event in live.into_iter().rev() {
        client.events.push_front(event);
    }
    let told = told(&mut client);
    let expected = [
        "run.started",
        "chunk",
        "tool.call",
        "tool.result",
        "activity",
        "chunk",
        "chunk",
        "run.completed",
    ];
    assert_eq!(types(&told), expected);
    assert_eq!(
        (joined(&told), &result["content"]),
        ("one, two, three".to_owned(), &json!("one, two, three"))
    );
    let (call, back) = (&told[2].1, &told[3].1);
    assert_eq!((&call["name"], &call["arguments"]["for"]), (&json!("grep"), &json!("sheep")));
    assert_eq!((&back["id"], &back["result"]), (&call["id"], &json!([1, 2])));
    assert_eq!(told[4].1, json!({"phase": "looking", "iteration": 0}));
    node.stop().await;
}

#[tokio::test]
async fn a_piece_that_was_lost_changes_nothing_in_the_content() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let ask = json!({"agentId": "bob", "message": "count", "stream": true});
    let id = client.begin("chat.send", ask).await;
    let asked = agent.hears(&node, "count").await;
    // The first one never came.
    agent.chunk(&asked, " two").await;
    agent.answers(&asked, "one two").await;
    let result = client.answer(&id).await.unwrap();
    assert_eq!(result["content"], "one two");
    let told = told(&mut client);
    assert_eq!(types(&told), ["run.started", "chunk", "run.completed"]);
    assert_eq!(told[2].1["content"], "one two");
    node.stop().await;
}

#[tokio::test]
async fn without_a_stream_events_of_tools_come_before_the_one_chunk() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let id = client.begin("chat.send", json!({"agentId": "bob", "message": "count"})).await;
    let asked = agent.hears(&node, "count").await;
    agent.chunk(&asked, "one").await;
    agent.uses(&asked, "grep").await;
    agent.answers(&asked, "one two").await;
    client.answer(&id).await.unwrap();
    assert!(client.events.is_empty(), "the answer is the first frame");
    for expected in ["run.started", "tool.call", "tool.result", "chunk", "run.completed"] {
        let event = client.event().await;
        assert_eq!(event["payload"]["type"], expected, "{event}");
    }
    node.stop().await;
}

#[tokio::test]
async fn pieces_of_other_answers_are_not_those_of_a_run() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let ask = |text: &str| json!({"agentId": "bob", "message": text, "stream": true});
    let first = client.begin("chat.send", ask("first")).await;
    let asked = agent.hears(&node, "first").await;
    let second = client.begin("chat.send", ask("second")).await;
    let other = agent.hears(&node, "second").await;
    agent.chunk(&other, "two").await;
    // It could be of either.
    agent
        .streams(NewPiece { reply_to: None, ..Agent::piece(&asked, PieceKind::Chunk, Some("?")) })
        .await;
    agent.answers(&asked, "one").await;
    client.answer(&first).await.unwrap();
    agent.answers(&other, "two").await;
    client.answer(&second).await.unwrap();
    let run = |event: &Value| event["payload"]["runId"].as_str().unwrap().to_owned();
    let chunks = client.events.iter().filter(|event| event["payload"]["type"] == "chunk");
    let chunks: Vec<_> =
        chunks.map(|event| (run(event), event["payload"]["payload"]["content"].clone())).collect();
    let (one, two) = (asked.message.to_uuid(), other.message.to_uuid());
    assert_eq!(chunks, [(two, json!("two")), (one, json!("one"))]);
    node.stop().await;
}

#[tokio::test]
async fn that_an_agent_types_is_told_as_its_activity() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let ask = json!({"agentId": "bob", "message": "count", "stream": true});
    let id = client.begin("chat.send", ask).await;
    let asked = agent.hears(&node, "count").await;
    let types_now = SetTyping { room: asked.room, typing: true };
    agent.bridge.desk().ask(&agent.visitor, types_now).await.unwrap();
    agent.answers(&asked, "one").await;
    client.answer(&id).await.unwrap();
    let told = told(&mut client);
    assert_eq!(types(&told), ["run.started", "activity", "chunk", "run.completed"]);
    assert_eq!(told[1].1["phase"], "typing");
    node.stop().await;
}
