//! Calls that are answered with a task, whose end is asked for later.

use std::thread;

use tokio::{runtime::Runtime, time::sleep};

use super::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

impl Node {
    /// A request of a client that understands tasks.
    async fn as_tasks(&self, agent: &str, method: &str, params: Value) -> Value {
        let mut message = modern(method, params.clone());
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {TASKS: {}}});
        let name = [&params["name"], &params["taskId"]].into_iter().find_map(Value::as_str);
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.post(&format!("/mcp/{agent}"), &headers, &message).await.body
    }

    async fn begins(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.as_tasks(agent, "tools/call", params).await["result"].take()
    }

    /// A call that is answered with a task: its id.
    async fn task(&self, agent: &str, tool: &str, arguments: Value) -> String {
        let task = self.begins(agent, tool, arguments).await;
        assert_eq!(
            (&task["resultType"], &task["status"]),
            (&json!("task"), &json!("working")),
            "{task}"
        );
        task["taskId"].as_str().unwrap().to_owned()
    }

    async fn how(&self, agent: &str, task: &str) -> Value {
        self.as_tasks(agent, "tasks/get", json!({"taskId": task})).await["result"].take()
    }

    /// What a task has ended with.
    async fn end(&self, agent: &str, task: &str) -> Value {
        let ended = async {
            loop {
                let mut how = self.how(agent, task).await;
                if how["status"] != "working" {
                    return how["result"]["structuredContent"].take();
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ended).await.expect("it ends")
    }

    async fn says(&self, from: &str, to: &str, text: &str) {
        let arguments = json!({"agentId": to, "message": text, "timeoutSeconds": 0});
        let sent = self.call(from, "sessions_send", arguments).await;
        assert_eq!(sent["status"], "accepted", "{sent}");
    }

    async fn unread(&self, agent: &str) -> Value {
        self.call(agent, "inbox_wait", json!({"timeoutSeconds": 0})).await
    }
}

#[tokio::test]
async fn tasks_are_for_clients_that_declare_them() {
    let node = Node::new().await;
    let found = node.as_tasks("ada", "server/discover", json!({})).await;
    assert_eq!(found["result"]["capabilities"]["extensions"], json!({TASKS: {}}), "{found}");
    let task = node.task("ada", "inbox_wait", json!({})).await;
    let how = node.how("ada", &task).await;
    assert_eq!((&how["status"], &how["pollIntervalMs"]), (&json!("working"), &json!(5_000)));
    let plain =
        [("mcp-protocol-version", MODERN), ("mcp-method", "tasks/get"), ("mcp-name", &*task)];
    let undeclared =
        node.post("/mcp/ada", &plain, &modern("tasks/get", json!({"taskId": task}))).await;
    assert_eq!(undeclared.body["error"]["code"], -32021, "{}", undeclared.body);
    for (agent, id) in [("bob", &*task), ("ada", "none")] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            let no = node.as_tasks(agent, method, params).await;
            assert_eq!(no["error"]["message"], "there is no such task", "{method} {no}");
        }
    }
    for (tool, arguments) in [
        ("inbox_wait", json!({"timeoutSeconds": 0})),
        ("agents_list", json!({})),
        ("inbox_wait", json!({"limit": "x"})),
        ("sessions_send", json!({"agentId": "ada", "message": " "})),
        ("vote_result", json!({})),
    ] {
        let plain = node.begins("ada", tool, arguments.clone()).await;
        assert_eq!(plain["resultType"], "complete", "{tool} {arguments}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_inbox_is_waited_for_as_a_task_and_stays_unread() {
    let node = Node::new().await;
    let task = node.task("ada", "inbox_wait", json!({})).await;
    node.says("bob", "ada", "one").await;
    let end = node.end("ada", &task).await;
    assert_eq!((&end["status"], &end["messages"][0]["content"]), (&json!("ok"), &json!("one")));
    assert_eq!(node.how("ada", &task).await["result"]["structuredContent"], end, "it ends once");
    assert_eq!(node.unread("ada").await["messages"][0]["content"], "one", "until it is confirmed");
    let at_once = node.begins("ada", "inbox_wait", json!({})).await;
    assert_eq!(at_once["structuredContent"]["messages"][0]["content"], "one", "no task is needed");
    let cursor = json!({"cursor": end["cursor"]});
    let cancelled = node.task("ada", "inbox_wait", cursor).await;
    let ack = node.as_tasks("ada", "tasks/cancel", json!({"taskId": cancelled})).await;
    assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
    node.says("bob", "ada", "two").await;
    assert_eq!(node.how("ada", &cancelled).await["status"], "cancelled");
    assert_eq!(node.unread("ada").await["messages"][0]["content"], "two");
    assert_eq!(node.how("ada", &cancelled).await["status"], "cancelled", "it stays so");
    node.stop().await;
}

#[tokio::test]
async fn an_answer_is_waited_for_as_a_task_and_given_once() {
    let node = Node::new().await;
    node.unread("bob").await;
    let ask = json!({"agentId": "bob", "message": "how many?"});
    let task = node.task("ada", "sessions_send", ask.clone()).await;
    let again = node.task("ada", "sessions_send", ask).await;
    let mail = node.unread("bob").await;
    assert_eq!(mail["messages"].as_array().unwrap().len(), 1, "it was sent once");
    let with = &mail["messages"][0]["replyWith"];
    let answer =
        json!({"sessionKey": with["sessionKey"], "replyTo": with["replyTo"], "message": "seven"});
    node.call("bob", "sessions_send", answer).await;
    for task in [task, again] {
        let end = node.end("ada", &task).await;
        assert_eq!((&end["status"], &end["reply"]), (&json!("ok"), &json!("seven")), "{end}");
    }
    let given = async {
        while node.unread("ada").await["messages"] != json!([]) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, given).await.expect("the task has given it");
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    node.call("bob", "room_join", json!({"room": "lobby"})).await;
    let heard = node.task("ada", "room_wait", json!({"room": "lobby"})).await;
    let in_room =
        node.begins("ada", "sessions_send", json!({"sessionKey": "lobby", "message": "hello"}));
    assert_eq!(in_room.await["structuredContent"]["status"], "accepted", "a room is not asked");
    node.call("bob", "room_send", json!({"room": "lobby", "message": "two"})).await;
    assert_eq!(node.end("ada", &heard).await["messages"][0]["content"], "two");
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_listens_is_told_of_the_end_of_a_task() {
    let node = Node::new().await;
    let task = node.task("ada", "inbox_wait", json!({})).await;
    let of_another = node.task("bob", "inbox_wait", json!({})).await;
    let wanted = json!({"notifications": {"taskIds": [task, of_another, "none"]}});
    let mut events = node.stream("ada", &modern("subscriptions/listen", wanted)).await.unwrap();
    assert_eq!(events.next().await["method"], "notifications/subscriptions/acknowledged");
    node.says("cy", "bob", "two").await;
    node.end("bob", &of_another).await;
    node.says("cy", "ada", "one").await;
    let told = events.next().await;
    let params = &told["params"];
    assert_eq!((&told["method"], &params["taskId"]), (&json!("notifications/tasks"), &json!(task)));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], 1, "{told}");
    assert_eq!(
        (&params["status"], &params["result"]),
        (&json!("completed"), &node.how("ada", &task).await["result"])
    );
    events.end();
    node.stop().await;
}

#[test]
fn a_task_survives_its_node() {
    let (fake, hub) = Fake::new();
    let dies = Runtime::new().unwrap();
    let (waits, asks, ended) = dies.block_on(async {
        let node = Node::on(&fake, &hub, keyed(), |settings| settings).await;
        node.unread("bob").await;
        let waits = node.task("ada", "inbox_wait", json!({})).await;
        let asks =
            node.task("ada", "sessions_send", json!({"agentId": "bob", "message": "how?"})).await;
        let ended = node.task("cy", "inbox_wait", json!({})).await;
        node.says("bob", "cy", "one").await;
        node.end("cy", &ended).await;
        (waits, asks, ended)
    });
    // As by kill -9: nothing is told to end.
    thread::spawn(move || dies.shutdown_background()).join().unwrap();
    Runtime::new().unwrap().block_on(async {
        let node = Node::on(&fake, &hub, keyed(), |settings| settings).await;
        assert_eq!(node.end("cy", &ended).await["messages"][0]["content"], "one", "with its end");
        assert_eq!(node.how("ada", &asks).await["status"], "working");
        let mail = node.unread("bob").await;
        let rows = mail["messages"].as_array().unwrap();
        assert_eq!(
            (rows.len(), &rows[0]["content"]),
            (1, &json!("how?")),
            "nothing was sent twice"
        );
        let answer = json!({"agentId": "ada", "replyTo": rows[0]["id"], "message": "so"});
        node.call("bob", "sessions_send", answer).await;
        assert_eq!(node.end("ada", &asks).await["reply"], "so");
        node.says("bob", "ada", "two").await;
        let end = node.end("ada", &waits).await;
        let texts: Vec<&Value> =
            end["messages"].as_array().unwrap().iter().map(|row| &row["content"]).collect();
        assert!(texts.contains(&&json!("two")) || texts.contains(&&json!("so")), "{end}");
        node.stop().await;
    });
}

#[tokio::test]
async fn tasks_are_bounded_and_the_oldest_that_has_ended_goes() {
    let node = Node::new().await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(node.task("ada", "inbox_wait", json!({})).await);
    }
    let full = node.begins("ada", "inbox_wait", json!({})).await;
    assert_eq!(full["structuredContent"]["error"], "too many tasks go on; cancel one", "{full}");
    node.task("bob", "inbox_wait", json!({})).await;
    node.as_tasks("ada", "tasks/cancel", json!({"taskId": open[3]})).await;
    let next = node.task("ada", "inbox_wait", json!({})).await;
    let gone = node.as_tasks("ada", "tasks/get", json!({"taskId": open[3]})).await;
    assert_eq!(gone["error"]["message"], "there is no such task");
    node.says("cy", "ada", "one").await;
    for task in [&open[0], &open[15], &next] {
        assert_eq!(node.end("ada", task).await["status"], "ok");
    }
    let kept = node.fake.kept.lock().unwrap().len();
    assert!(kept <= 16 + 1, "{kept}");
    node.stop().await;
}
