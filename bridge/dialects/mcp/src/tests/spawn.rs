//! Tasks that one agent gives to another.

use super::*;

const NOW: u64 = 0;

async fn inbox(node: &Node, agent: &str, cursor: Option<&Value>) -> Value {
    let mut arguments = json!({"timeoutSeconds": NOW});
    if let Some(cursor) = cursor {
        arguments["cursor"] = cursor.clone();
    }
    node.call(agent, "inbox_wait", arguments).await
}

#[tokio::test]
async fn a_task_is_done_by_the_agent_that_is_named_and_its_result_comes_to_the_inbox() {
    let node = Node::new().await;
    inbox(&node, "bob", None).await;
    let task = json!({"task": "count the sheep", "label": "sheep", "agentId": "bob"});
    let given = node.call("ada", "sessions_spawn", task).await;
    assert_eq!(
        (&given["status"], &given["worker"]),
        (&json!("accepted"), &json!("bob")),
        "{given}"
    );
    let key = given["childSessionKey"].as_str().unwrap();
    assert!(key.starts_with("subagent:"), "{key}");
    let mail = inbox(&node, "bob", None).await;
    let item = &mail["messages"][0];
    assert_eq!(
        (&item["item"], &item["content"]),
        (&json!("task"), &json!("count the sheep")),
        "{mail}"
    );
    assert_eq!((&item["id"], &item["sessionKey"]), (&given["runId"], &json!(key)));
    let claimed = node.call("bob", "task_claim", json!({"taskId": item["taskId"]})).await;
    assert_eq!(claimed["task"]["status"], "in_progress", "{claimed}");
    let deeper = node.call("bob", "sessions_spawn", json!({"task": "x", "agentId": "ada"})).await;
    assert_eq!((&deeper["status"], &deeper["rule"]), (&json!("forbidden"), &json!("depth")));
    let listed = node.call("ada", "sessions_list", json!({"kinds": ["other"]})).await;
    let row = &listed["sessions"][0];
    assert_eq!(
        (&row["key"], &row["status"], &row["label"]),
        (&json!(key), &json!("running"), &json!("sheep"))
    );
    let ended = json!({"taskId": item["taskId"], "result": "seven"});
    assert_eq!(node.call("bob", "task_complete", ended).await["task"]["status"], "completed");
    let mail = inbox(&node, "ada", None).await;
    let result = &mail["messages"][0];
    assert_eq!(
        (&result["item"], &result["content"]),
        (&json!("spawn_result"), &json!("seven")),
        "{mail}"
    );
    let spawn = &result["spawn"];
    assert_eq!(
        (&spawn["status"], &spawn["worker"], &spawn["label"]),
        (&json!("ok"), &json!("bob"), &json!("sheep"))
    );
    assert_eq!((&spawn["runId"], &spawn["childSessionKey"]), (&given["runId"], &json!(key)));
    assert!(spawn["runtimeMs"].is_u64());
    assert_eq!(mail["messages"].as_array().unwrap().len(), 1, "once");
    let listed = node.call("ada", "sessions_list", json!({"kinds": ["other"]})).await;
    assert_eq!(listed["count"], 0, "it is over");
    let listed =
        node.call("ada", "sessions_list", json!({"kinds": ["other"], "archived": true})).await;
    assert_eq!(listed["sessions"][0]["status"], "done");
    node.stop().await;
}

#[tokio::test]
async fn an_answer_ends_a_task_too_and_a_call_may_wait_for_it() {
    let node = Arc::new(Node::new().await);
    inbox(&node, "bob", None).await;
    for (answer, status, ends) in
        [("seven", "ok", "completed"), ("no sheep here", "error", "blocked")]
    {
        let asked = {
            let node = node.clone();
            let task = json!({"task": format!("count, and say {answer}"), "agentId": "bob", "timeoutSeconds": 40});
            tokio::spawn(async move { node.call("ada", "sessions_spawn", task).await })
        };
        let mail = node.call("bob", "inbox_wait", json!({"timeoutSeconds": 40})).await;
        let item = mail["messages"].as_array().unwrap().last().unwrap().clone();
        if ends == "completed" {
            let said =
                json!({"sessionKey": item["sessionKey"], "replyTo": item["id"], "message": answer});
            node.call("bob", "sessions_send", said).await;
        } else {
            let ended = json!({"taskId": item["taskId"], "result": answer, "status": "blocked"});
            node.call("bob", "task_complete", ended).await;
        }
        let result = timeout(PATIENCE, asked).await.unwrap().unwrap();
        assert_eq!(result["status"], status, "{result}");
        let text = if status == "ok" { &result["reply"] } else { &result["error"] };
        assert_eq!(text, answer);
        let tasks = node.call("bob", "tasks_list", json!({"room": item["sessionKey"]})).await;
        assert_eq!(tasks["tasks"][0]["status"], ends, "{tasks}");
        assert_eq!(inbox(&node, "ada", None).await["messages"], json!([]), "the call has given it");
        inbox(&node, "bob", Some(&mail["cursor"])).await;
    }
    Arc::into_inner(node).unwrap().stop().await;
}

#[tokio::test]
async fn an_agent_that_offers_is_found_and_so_many_tasks_are_given_at_once() {
    let node = Node::new().await;
    let nobody = node.call("ada", "sessions_spawn", json!({"task": "x"})).await;
    assert_eq!(nobody["error"], "no agent offers \"spawn\"");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "inbox_wait", "arguments": {"timeoutSeconds": NOW}}});
    for agent in ["bob", "cy"] {
        node.post(&format!("/mcp/{agent}"), &[("x-clawmesh-capabilities", "spawn,dig")], &call)
            .await;
    }
    let mut workers = Vec::new();
    for nth in 0..5 {
        let task = json!({"task": format!("dig {nth}"), "capability": "dig"});
        let given = node.call("ada", "sessions_spawn", task).await;
        assert_eq!(given["status"], "accepted", "{given}");
        workers.push(given["worker"].as_str().unwrap().to_owned());
    }
    let count = |agent: &str| workers.iter().filter(|worker| *worker == agent).count();
    assert!(count("bob").abs_diff(count("cy")) <= 1, "{workers:?}");
    let more = node.call("ada", "sessions_spawn", json!({"task": "one more"})).await;
    assert_eq!(
        (&more["rule"], &more["error"]),
        (&json!("max_children"), &json!("you have 5 active spawned tasks, which is the limit"))
    );
    node.stop().await;
}

#[tokio::test]
async fn the_same_task_by_name_is_given_once() {
    let node = Node::new().await;
    inbox(&node, "bob", None).await;
    let task = json!({"task": "dig", "agentId": "bob", "idempotencyKey": "k"});
    let first = node.call("ada", "sessions_spawn", task.clone()).await;
    let again = node.call("ada", "sessions_spawn", task).await;
    assert_eq!((&again["runId"], &again["duplicate"]), (&first["runId"], &json!(true)), "{again}");
    let other = json!({"task": "fill", "agentId": "bob", "idempotencyKey": "k"});
    let other = node.call("ada", "sessions_spawn", other).await;
    assert_eq!(other["error"], "idempotencyKey was used for another task");
    assert_eq!(inbox(&node, "bob", None).await["messages"].as_array().unwrap().len(), 1);
    let own = node.call("ada", "sessions_spawn", json!({"task": "x", "agentId": "ada"})).await;
    assert_eq!(own["field"], "agentId");
    node.stop().await;
}
