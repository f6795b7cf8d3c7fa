//! Tools that another dialect lends.

use std::sync::Mutex;

use bridge::{
    tokens::{Scope, Scopes, Terms, Visibility},
    toolbox::{Called, LentTool, ToolCaller, Toolbox},
};
use mesh::name::id::KeyPrint;
use serde_json::Map;

use super::*;

/// What a tool was called with: the agent, its key, the tool, the arguments.
type Call = (String, Option<KeyPrint>, &'static str, Value);

/// Tools that say what they were called with.
#[derive(Default)]
struct Kit {
    calls: Mutex<Vec<Call>>,
}

const TOOLS: [LentTool; 2] = [
    LentTool {
        name: "finder_look",
        title: "Look",
        text: "Looks.",
        arguments: r#"{"at":{"type":"string"},"words":{"type":"array","items":{"type":"string"}}}"#,
        required: &["at"],
        reads: true,
    },
    LentTool {
        name: "finder_do",
        title: "Do",
        text: "Does.",
        arguments: "{}",
        required: &[],
        reads: false,
    },
];

impl Toolbox for Kit {
    fn tools(&self) -> &'static [LentTool] {
        &TOOLS
    }

    fn call(&self, by: ToolCaller, tool: &'static str, given: Map<String, Value>) -> Called<'_> {
        let key = by.signer.map(|signer| signer.print());
        self.calls.lock().unwrap().push((by.agent.to_string(), key, tool, Value::Object(given)));
        let no = json!({"status": "error", "code": 409, "error": "no"});
        let Value::Object(result) = no else { panic!("an object") };
        Box::pin(async move { result })
    }
}

impl Node {
    async fn lending(config: Config, toolbox: &Arc<Kit>) -> Node {
        let (fake, hub) = Fake::new();
        let mcp = Mcp::new(Settings::new(lobby()), Some(toolbox.clone()));
        Node::speaking(&fake, &hub, config, mcp).await
    }

    async fn offered(&self, headers: &[(&str, &str)], query: &str) -> Vec<String> {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let body = self.post(&format!("/mcp/ada{query}"), headers, &list).await.body;
        let tools = body["result"]["tools"].as_array().unwrap_or_else(|| panic!("{body}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn ask_lent(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.post("/mcp/ada?tools=finder,inbox", &[], &call).await.body["result"].clone()
    }
}

#[tokio::test]
async fn lent_tools_are_offered_to_who_asks_for_them_by_name() {
    let toolbox = Arc::default();
    let node = Node::lending(keyed(), &toolbox).await;
    assert_eq!(node.offered(&[], "?tools=finder").await, ["finder_look", "finder_do"]);
    let few = ["agents_list", "inbox_wait", "finder_look", "finder_do"];
    assert_eq!(node.offered(&[], "?tools=finder,inbox").await, few);
    assert_eq!(node.offered(&[], "").await.len(), 6);
    assert_eq!(node.offered(&[], "?tools=all").await.len(), 19, "all leaves them out");
    let params = json!({"name": "finder_look", "arguments": {"at": "x"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let unknown = node.post("/mcp/ada?tools=all", &[], &call).await.body;
    assert_eq!(unknown["error"]["message"], "Unknown tool: finder_look");
    assert_eq!(toolbox.calls.lock().unwrap().len(), 0);
    node.stop().await;
    let node = Node::new().await;
    assert!(node.offered(&[], "?tools=finder").await.is_empty(), "nobody lends any");
    node.stop().await;
}

#[tokio::test]
async fn a_lent_tool_hears_of_the_agent_and_its_key_and_of_arguments_that_it_knows() {
    let toolbox = Arc::default();
    let node = Node::lending(keyed(), &toolbox).await;
    let given = json!({"at": ["x"], "words": "one", "model": "m", "nothing": null});
    let result = node.ask_lent("finder_look", given).await;
    let no =
        json!({"status": "error", "code": 409, "error": "no", "ignored": ["model", "nothing"]});
    assert_eq!((&result["structuredContent"], &result["isError"]), (&no, &Value::Null));
    assert_eq!(node.fake.attached(), 0, "who looks need not be there");
    let missing = node.ask_lent("finder_look", json!({"at": null})).await;
    assert_eq!(
        (&missing["isError"], &missing["structuredContent"]["field"]),
        (&json!(true), &json!("at"))
    );
    node.ask_lent("finder_do", json!({})).await;
    assert_eq!(node.fake.attached(), 1, "who acts is");
    // Programs have all that is granted.
    let body = json!({"tool": "finder_look", "args": {"at": "y"}, "agentId": "bob"});
    let invoked = node.post("/tools/invoke", &[], &body).await.body;
    assert_eq!(invoked["result"]["details"]["code"], 409, "{invoked}");
    let calls: Vec<Call> = toolbox.calls.lock().unwrap().drain(..).collect();
    let own = Some(own_key());
    let call = |agent: &str, tool, given| (agent.to_owned(), own, tool, given);
    let expected = [
        call("ada", "finder_look", json!({"at": "x", "words": ["one"]})),
        call("ada", "finder_do", json!({})),
        call("bob", "finder_look", json!({"at": "y"})),
    ];
    assert_eq!(calls, expected);
    node.stop().await;
}

#[tokio::test]
async fn where_no_keys_are_checked_a_lent_tool_has_none_to_sign_with() {
    let toolbox = Arc::default();
    let node = Node::lending(Config::new(Auth::Open, here()), &toolbox).await;
    node.ask_lent("finder_look", json!({"at": "x"})).await;
    let calls: Vec<Call> = toolbox.calls.lock().unwrap().drain(..).collect();
    assert_eq!(calls, [("ada".to_owned(), None, "finder_look", json!({"at": "x"}))]);
    node.stop().await;
}

#[tokio::test]
async fn lent_tools_have_a_scope_and_a_token_may_leave_them_out() {
    let toolbox = Arc::default();
    let node = Node::lending(keyed(), &toolbox).await;
    let terms = |scopes: Option<Scopes>, tools: Option<&str>| Terms {
        agent: "ada".into(),
        name: None,
        scopes,
        tools: tools.map(str::to_owned),
        visibility: Visibility::Joined,
        sandboxed: false,
        expires_ms: None,
    };
    let lists = [Scope::List].into_iter().collect();
    let token = format!("Bearer {}", node.token(terms(Some(lists), None)));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let headers = [("authorization", &*token), ("content-type", "application/json")];
    let path = "/mcp?tools=finder";
    let listed = node.http("POST", path, &headers, list.to_string()).await.body;
    assert_eq!(listed["result"]["tools"], json!([]));
    let params = json!({"name": "finder_look", "arguments": {"at": "x"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let called = node.http("POST", path, &headers, call.to_string()).await.body;
    assert_eq!(called["result"]["structuredContent"]["rule"], "scope.finder");
    let finder = [Scope::Finder].into_iter().collect();
    for (tools, count) in [(None, 2), (Some("finder"), 2), (Some("all"), 0), (Some("inbox"), 0)] {
        let token = format!("Bearer {}", node.token(terms(Some(finder), tools)));
        let headers = [("authorization", &*token), ("content-type", "application/json")];
        let listed = node.http("POST", path, &headers, list.to_string()).await.body;
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), count, "{tools:?}");
    }
    assert_eq!(toolbox.calls.lock().unwrap().len(), 0);
    node.stop().await;
}
