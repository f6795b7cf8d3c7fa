//! Prompts: offered with the tool that each leads to.

use super::*;

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let node = Node::new().await;
    let list = node.rpc("ada", "prompts/list", json!({})).await;
    let names: Vec<_> = list["result"]["prompts"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&json!("check_inbox"), &json!("ask_agent"))
    );
    let arguments = names[1]["arguments"].as_array().unwrap();
    assert_eq!(
        (&arguments[0]["name"], &arguments[1]["name"]),
        (&json!("agent"), &json!("question"))
    );
    assert!(arguments.iter().all(|argument| argument["required"] == true));
    let get = async |name: &str, arguments: Value| {
        node.rpc("ada", "prompts/get", json!({"name": name, "arguments": arguments})).await
    };
    let check = get("check_inbox", json!({})).await;
    let message = &check["result"]["messages"][0];
    assert_eq!(message["role"], "user");
    assert!(message["content"]["text"].as_str().unwrap().contains("inbox_wait"));
    let ask = get("ask_agent", json!({"agent": "bob", "question": "how far?"})).await;
    let text = ask["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("sessionKey: \"bob\"") && text.ends_with("\n\nhow far?"), "{text}");
    for (name, arguments, wrong) in [
        ("ask_agent", json!({"agent": "bob"}), "`question` is required"),
        ("ask_agent", json!({"agent": 7, "question": "x"}), "`agent` must be a string"),
        (
            "ask_agent",
            json!({"agent": " ", "question": "x"}),
            "`agent` must have 1 to 512 characters",
        ),
        ("spoon", json!({}), "Unknown prompt: spoon"),
    ] {
        let error = get(name, arguments).await["error"].take();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(wrong)));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_prompt_without_its_tool_is_not_there() {
    let node = Node::new().await;
    let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let list = node.post("/mcp?tools=inbox", &[], &request("prompts/list", json!({}))).await;
    let prompts = list.body["result"]["prompts"].as_array().unwrap();
    assert_eq!((prompts.len(), &prompts[0]["name"]), (1, &json!("check_inbox")));
    let arguments = json!({"agent": "bob", "question": "x"});
    let get = request("prompts/get", json!({"name": "ask_agent", "arguments": arguments}));
    let no = node.post("/mcp?tools=inbox", &[], &get).await;
    assert_eq!(no.body["error"]["code"], -32602);
    node.stop().await;
}
