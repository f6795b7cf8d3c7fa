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

impl Node {
    /// Agents that take tasks of this kind, and have read nothing yet.
    async fn offer(&self, agents: &[&str], capability: &str) {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "inbox_wait", "arguments": {"timeoutSeconds": NOW}}});
        for agent in agents {
            let headers = [("x-clawmesh-capabilities", capability)];
            self.post(&format!("/mcp/{agent}"), &headers, &call).await;
        }
    }

    /// The items of an agent as soon as there are any.
    async fn mail(&self, agent: &str, cursor: Option<&Value>) -> Value {
        let mut arguments = json!({"timeoutSeconds": 30});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor.clone();
        }
        self.call(agent, "inbox_wait", arguments).await
    }

    async fn listed(&self, agent: &str, archived: bool) -> Vec<Value> {
        let arguments = json!({"kinds": ["other"], "archived": archived});
        let listed = self.call(agent, "sessions_list", arguments).await;
        listed["sessions"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_task_whose_time_is_up_is_one_item_and_what_comes_later_one_more() {
    let node = Node::new().await;
    inbox(&node, "bob", None).await;
    let task = json!({"task": "count", "label": "sheep", "agentId": "bob", "runTimeoutSeconds": 3});
    let given = node.call("ada", "sessions_spawn", task).await;
    assert_eq!(
        (&given["status"], &given["ignored"]),
        (&json!("accepted"), &Value::Null),
        "{given}"
    );
    let work = inbox(&node, "bob", None).await;
    let item = &work["messages"][0];
    assert_eq!(inbox(&node, "ada", None).await["messages"], json!([]), "not yet");
    node.fake.pass(Duration::from_secs(4));
    let mail = inbox(&node, "ada", None).await;
    let [notice] = &mail["messages"].as_array().unwrap()[..] else { panic!("{mail}") };
    assert_eq!(
        (&notice["item"], &notice["spawn"]["status"], &notice["from"]),
        (&json!("spawn_result"), &json!("timeout"), &Value::Null),
        "{notice}"
    );
    assert_eq!(notice["content"], "the time for the task was up before there was a result");
    let spawn = &notice["spawn"];
    assert_eq!(
        (&spawn["runId"], &spawn["worker"], &spawn["label"], &spawn["late"]),
        (&given["runId"], &json!("bob"), &json!("sheep"), &Value::Null)
    );
    assert!(spawn["runtimeMs"].as_u64().unwrap() >= 3_000, "{spawn}");
    let tasks = node.call("bob", "tasks_list", json!({"room": item["sessionKey"]})).await;
    assert_eq!(tasks["tasks"][0]["status"], "blocked");
    assert_eq!(node.listed("ada", true).await[0]["status"], "timeout");
    let confirmed = inbox(&node, "ada", Some(&mail["cursor"])).await;
    assert_eq!(confirmed["messages"], json!([]), "once");
    let late = json!({"sessionKey": item["sessionKey"], "replyTo": item["id"], "message": "seven"});
    node.call("bob", "sessions_send", late).await;
    let mail = inbox(&node, "ada", Some(&confirmed["cursor"])).await;
    let [late] = &mail["messages"].as_array().unwrap()[..] else { panic!("{mail}") };
    assert_eq!(
        (&late["content"], &late["spawn"]["status"], &late["spawn"]["late"]),
        (&json!("seven"), &json!("ok"), &json!(true)),
        "{late}"
    );
    inbox(&node, "ada", Some(&mail["cursor"])).await;
    assert_eq!(node.listed("ada", true).await, [] as [Value; 0], "its room is gone");
    let wrong = json!({"task": "x", "agentId": "bob", "cleanup": "burn"});
    assert_eq!(node.call("ada", "sessions_spawn", wrong).await["field"], "cleanup");
    node.stop().await;
}

#[tokio::test]
async fn the_room_of_a_result_goes_when_it_was_read_and_stays_if_it_is_to_be_kept() {
    let node = Node::new().await;
    inbox(&node, "bob", None).await;
    for cleanup in ["delete", "keep"] {
        let task = json!({"task": "count", "agentId": "bob", "cleanup": cleanup});
        let given = node.call("ada", "sessions_spawn", task).await;
        let work = inbox(&node, "bob", None).await;
        let item = work["messages"].as_array().unwrap().last().unwrap().clone();
        let ended = json!({"taskId": item["taskId"], "result": "seven"});
        node.call("bob", "task_complete", ended).await;
        let mail = inbox(&node, "ada", None).await;
        assert_eq!(mail["messages"][0]["content"], "seven");
        assert_eq!(node.listed("ada", true).await.len(), 1, "it was fetched, and not confirmed");
        inbox(&node, "ada", Some(&mail["cursor"])).await;
        let more = json!({"sessionKey": given["childSessionKey"], "message": "thanks", "timeoutSeconds": NOW});
        if cleanup == "delete" {
            for agent in ["ada", "bob"] {
                assert_eq!(node.listed(agent, true).await, [] as [Value; 0], "{agent}");
                let no = node.call(agent, "sessions_send", more.clone()).await;
                assert_eq!(no["status"], "error", "{no}");
            }
        } else {
            node.fake.pass(Duration::from_secs(3_700));
            let no = node.call("ada", "sessions_send", more).await;
            assert_eq!(
                (&no["rule"], &no["error"]),
                (&json!("closed"), &json!("this session is closed")),
                "{no}"
            );
            let key = json!({"sessionKey": given["childSessionKey"]});
            let read = node.call("ada", "sessions_history", key).await;
            assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{read}");
        }
        inbox(&node, "bob", Some(&work["cursor"])).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_was_chosen_and_does_not_begin_is_replaced() {
    let short = |settings: Settings| Settings {
        spawning: crate::Spawning {
            begin_within: Duration::from_millis(300),
            ..crate::Spawning::default()
        },
        ..settings
    };
    let node = Node::with(keyed(), short).await;
    node.offer(&["bob", "cy"], "dig").await;
    let task = json!({"task": "dig", "capability": "dig", "label": "hole"});
    let given = node.call("ada", "sessions_spawn", task).await;
    let lazy = given["worker"].as_str().unwrap().to_owned();
    let other = if lazy == "bob" { "cy" } else { "bob" };
    let work = node.mail(other, None).await;
    let item = &work["messages"][0];
    assert_eq!((&item["item"], &item["content"]), (&json!("task"), &json!("dig")), "{work}");
    assert!(item["sessionKey"] != given["childSessionKey"], "a room of its own");
    let claimed = node.call(other, "task_claim", json!({"taskId": item["taskId"]})).await;
    assert_eq!(claimed["status"], "ok", "{claimed}");
    let lost = node.call(&lazy, "inbox_wait", json!({"timeoutSeconds": NOW})).await;
    let no = json!({"taskId": lost["messages"][0]["taskId"], "result": "too late"});
    let no = node.call(&lazy, "task_complete", no).await;
    assert_eq!(no["rule"], "closed", "{no}");
    let more =
        json!({"label": "hole", "message": "deeper", "timeoutSeconds": NOW, "expectsReply": false});
    let sent = node.call("ada", "sessions_send", more).await;
    assert_eq!(sent["sessionKey"], item["sessionKey"], "the first leads to the last: {sent}");
    let ended = json!({"taskId": item["taskId"], "result": "dug"});
    node.call(other, "task_complete", ended).await;
    let mail = node.mail("ada", None).await;
    let [result] = &mail["messages"].as_array().unwrap()[..] else { panic!("{mail}") };
    let spawn = &result["spawn"];
    assert_eq!(
        (&result["content"], &spawn["status"], &spawn["worker"]),
        (&json!("dug"), &json!("ok"), &json!(other))
    );
    assert_eq!(
        (&spawn["childSessionKey"], &spawn["runId"]),
        (&given["childSessionKey"], &given["runId"]),
        "the key stays the first one's"
    );
    inbox(&node, "ada", Some(&mail["cursor"])).await;
    assert_eq!(node.listed("ada", true).await, [] as [Value; 0], "all of its rooms are gone");
    let task = json!({"task": "fill", "capability": "dig", "runTimeoutSeconds": 9});
    let given = node.call("ada", "sessions_spawn", task).await;
    let mail = node.mail("ada", None).await;
    let [notice] = &mail["messages"].as_array().unwrap()[..] else { panic!("{mail}") };
    let spawn = &notice["spawn"];
    assert_eq!(
        (&notice["content"], &spawn["status"], &spawn["notes"]),
        (&json!("no worker took the task"), &json!("error"), &json!("no worker took the task"))
    );
    assert_eq!(
        (&spawn["childSessionKey"], &spawn["runId"]),
        (&given["childSessionKey"], &given["runId"])
    );
    node.stop().await;
}

#[tokio::test]
async fn tasks_lead_to_each_other_as_far_as_the_node_allows() {
    let deep = |settings: Settings| Settings {
        spawning: crate::Spawning { depth: 2, children: 1, ..crate::Spawning::default() },
        ..settings
    };
    let node = Node::with(keyed(), deep).await;
    for agent in ["ada", "bob", "cy"] {
        inbox(&node, agent, None).await;
    }
    for (by, to) in [("ada", "bob"), ("bob", "cy")] {
        let given = node.call(by, "sessions_spawn", json!({"task": "dig", "agentId": to})).await;
        assert_eq!(given["status"], "accepted", "{given}");
        let work = inbox(&node, to, None).await;
        let begun = json!({"taskId": work["messages"][0]["taskId"]});
        assert_eq!(node.call(to, "task_claim", begun).await["status"], "ok");
    }
    let no = node.call("cy", "sessions_spawn", json!({"task": "x", "agentId": "ada"})).await;
    assert_eq!(no["rule"], "depth", "{no}");
    let no = node.call("ada", "sessions_spawn", json!({"task": "x", "agentId": "cy"})).await;
    assert_eq!(no["rule"], "max_children", "{no}");
    node.stop().await;
}

#[tokio::test]
async fn a_result_that_is_not_to_be_shown_is_no_item() {
    let node = Node::new().await;
    inbox(&node, "bob", None).await;
    node.call("ada", "sessions_spawn", json!({"task": "count", "agentId": "bob"})).await;
    let work = inbox(&node, "bob", None).await;
    let ended = json!({"taskId": work["messages"][0]["taskId"], "result": "ANNOUNCE_SKIP"});
    assert_eq!(node.call("bob", "task_complete", ended).await["status"], "ok");
    assert_eq!(inbox(&node, "ada", None).await["messages"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn a_task_that_its_worker_is_not_given_ends_with_an_error_and_its_room_goes() {
    let node = Node::new().await;
    inbox(&node, "ada", None).await;
    inbox(&node, "bob", None).await;
    let task = json!({"task": "count the sheep", "label": "sheep", "agentId": "bob"});
    let given = node.call("ada", "sessions_spawn", task).await;
    node.fake.pass(Duration::from_secs(61));
    let mail = inbox(&node, "ada", None).await;
    let [item] = &mail["messages"].as_array().unwrap()[..] else { panic!("one item: {mail}") };
    assert_eq!(
        (&item["item"], &item["content"]),
        (&json!("spawn_result"), &json!("not delivered: expired")),
        "{mail}"
    );
    let spawn = &item["spawn"];
    assert_eq!(
        (&spawn["status"], &spawn["notes"], &spawn["worker"]),
        (&json!("error"), &json!("not delivered: expired"), &json!("bob"))
    );
    assert_eq!(
        (&spawn["runId"], &spawn["childSessionKey"]),
        (&given["runId"], &given["childSessionKey"])
    );
    assert_eq!(node.listed("ada", false).await, [] as [Value; 0], "it is no active one");
    assert_eq!(node.listed("ada", true).await[0]["status"], "failed");
    inbox(&node, "ada", Some(&mail["cursor"])).await;
    assert_eq!(node.listed("ada", true).await, [] as [Value; 0], "its room goes");
    node.stop().await;
}
