//! A host that has only GoClaw: its agent is asked, streams and answers.

use super::*;

/// The payload of the next event of this name; those before it are dropped.
async fn next(client: &mut Client, name: &str) -> Value {
    loop {
        let mut event = client.event().await;
        if event["event"] == name {
            return event["payload"].take();
        }
    }
}

/// A connection that serves an agent.
async fn host(node: &Node, agent: &str) -> Client {
    let mut host = node.connected(KEY, "host").await;
    let result = host.gets("mesh.agent.serve", json!({"agentId": agent, "name": "Bob"})).await;
    assert_eq!((&result["agentId"], result["node"].is_string()), (&json!(agent), true));
    host
}

#[tokio::test]
async fn a_connection_serves_an_agent_and_answers_for_it() {
    let node = Node::new().await;
    let mut host = host(&node, "bob").await;
    let mut client = node.owner().await;
    let ask = json!({"agentId": "bob", "message": "count", "stream": true});
    let id = client.begin("chat.send", ask).await;
    let request = next(&mut host, "mesh.request").await;
    assert_eq!((&request["message"], &request["from"]), (&json!("count"), &json!("ada")));
    let run = request["runId"].clone();
    assert!(request["sessionKey"].as_str().unwrap().starts_with("agent:bob:ws:direct:"));
    let piece = json!({"runId": run, "kind": "chunk", "content": "one"});
    assert_eq!(host.gets("mesh.run.chunk", piece).await, json!({"ok": true}));
    let tool = json!({"runId": run, "kind": "tool_call", "tool": "ls", "input": {"at": 1}});
    host.gets("mesh.run.chunk", tool).await;
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2});
    let reply = json!({"runId": run, "content": "one two", "usage": usage, "thinking": "hm"});
    assert_eq!(host.gets("mesh.run.reply", reply.clone()).await, json!({"ok": true}));
    let result = client.answer(&id).await.unwrap();
    assert_eq!((&result["content"], &result["runId"]), (&json!("one two"), &run));
    assert_eq!((&result["usage"]["total_tokens"], &result["thinking"]), (&json!(3), &json!("hm")));
    let types: Vec<_> =
        client.events.iter().map(|event| event["payload"]["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run.started", "chunk", "tool.call", "chunk", "run.completed"]);
    // It is over.
    let again = host.refused("mesh.run.reply", reply).await;
    assert_eq!(again.0, "INVALID_REQUEST", "{again:?}");
    node.stop().await;
}

#[tokio::test]
async fn a_run_fails_or_is_cancelled_and_one_of_another_agent_is_not_found() {
    let node = Node::new().await;
    let mut host = host(&node, "bob").await;
    let mut client = node.owner().await;
    let ask = |text: &str| json!({"agentId": "bob", "message": text});
    let id = client.begin("chat.send", ask("fail")).await;
    let run = next(&mut host, "mesh.request").await["runId"].clone();
    // Another connection does not serve it.
    let mut other = node.connected(KEY, "other").await;
    let fail = json!({"runId": run, "error": "no sheep"});
    for params in [fail.clone(), json!({"runId": "x", "error": "no sheep"})] {
        assert_eq!(other.refused("mesh.run.fail", params).await.0, "NOT_FOUND");
    }
    let bad = json!({"runId": run, "kind": "song"});
    assert_eq!(host.refused("mesh.run.chunk", bad).await.0, "INVALID_REQUEST");
    host.gets("mesh.run.fail", fail).await;
    let failed = client.answer(&id).await.unwrap_err();
    assert_eq!((&*failed.code, &*failed.message), ("INTERNAL", "no sheep"));

    let id = client.begin("chat.send", ask("wait")).await;
    let request = next(&mut host, "mesh.request").await;
    let run = request["runId"].clone();
    // More words are said to the run, and its end is told.
    let session = request["sessionKey"].clone();
    let more = json!({"sessionKey": session, "message": "more"});
    let mut second = node.owner().await;
    assert_eq!(second.gets("chat.send", more).await["injected"], true);
    let words = next(&mut host, "mesh.request").await;
    assert_eq!((&words["runId"], &words["injected"]), (&run, &json!(true)));
    second.gets("chat.abort", json!({"runId": run})).await;
    assert_eq!(next(&mut host, "mesh.cancel").await, json!({"runId": run}));
    assert_eq!(client.answer(&id).await.unwrap()["cancelled"], true);
    let late = json!({"runId": run, "content": "late"});
    assert_eq!(host.refused("mesh.run.reply", late).await.0, "INVALID_REQUEST");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_goes_with_its_connection_and_the_next_one_takes_it_over() {
    let node = Node::new().await;
    let first = host(&node, "bob").await;
    let mut second = host(&node, "bob").await;
    let mut client = node.owner().await;
    let ask = json!({"agentId": "bob", "message": "who?"});
    let id = client.begin("chat.send", ask.clone()).await;
    let run = next(&mut second, "mesh.request").await["runId"].clone();
    drop(first);
    second.gets("mesh.run.reply", json!({"runId": run, "content": "me"})).await;
    assert_eq!(client.answer(&id).await.unwrap()["content"], "me");
    drop(second);
    node.until("it is offline", async || {
        let mut looks = node.owner().await;
        match looks.ask("chat.send", ask.clone()).await {
            Err(no) if no.code == "UNAVAILABLE" => Some(()),
            _ => None,
        }
    })
    .await;
    node.stop().await;
}
