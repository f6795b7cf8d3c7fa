//! Sessions of two agents, and their inboxes.

use super::*;
use tokio::task::JoinHandle as Task;

/// A call that goes on while others are made.
pub(super) fn begun(
    node: &Arc<Node>,
    agent: &'static str,
    tool: &'static str,
    arguments: Value,
) -> Task<Value> {
    let node = node.clone();
    tokio::spawn(async move { node.call(agent, tool, arguments).await })
}

pub(super) async fn ended(task: Task<Value>) -> Value {
    timeout(PATIENCE, task).await.unwrap().unwrap()
}

pub(super) async fn done(node: Arc<Node>) {
    Arc::into_inner(node).unwrap().stop().await;
}

/// Two agents that have been here.
pub(super) async fn two() -> Arc<Node> {
    let node = Arc::new(Node::new().await);
    for agent in ["ada", "bob"] {
        let nothing = node.call(agent, "inbox_wait", json!({"timeoutSeconds": 0})).await;
        assert_eq!((&nothing["status"], &nothing["unread"]), (&json!("timeout"), &json!(0)));
    }
    node
}

const NOW: u64 = 0;

impl Node {
    async fn inbox(&self, agent: &str, cursor: Option<&Value>) -> Value {
        let mut arguments = json!({"timeoutSeconds": NOW});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor.clone();
        }
        self.call(agent, "inbox_wait", arguments).await
    }
}

fn texts(result: &Value) -> Vec<&str> {
    let rows = result["messages"].as_array().unwrap_or_else(|| panic!("{result}"));
    rows.iter().map(|row| row["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_question_waits_for_its_answer_and_the_answer_is_given_once() {
    let node = two().await;
    let asked = begun(
        &node,
        "ada",
        "sessions_send",
        json!({"sessionKey": "agent:bob:main", "message": "how many?"}),
    );
    let mail = node.call("bob", "inbox_wait", json!({"timeoutSeconds": 40})).await;
    let item = &mail["messages"][0];
    assert_eq!(
        (&item["item"], &item["content"]),
        (&json!("direct"), &json!("how many?")),
        "{mail}"
    );
    assert_eq!((&item["expectsReply"], &item["conversation"]["turn"]), (&json!(true), &json!(0)));
    assert_eq!(item["metadata"], json!({"kind": "request", "expects_reply": true}));
    let with = &item["replyWith"];
    assert_eq!(
        (&with["tool"], &with["sessionKey"]),
        (&json!("sessions_send"), &json!("agent:ada:main"))
    );
    let answer =
        json!({"sessionKey": with["sessionKey"], "replyTo": with["replyTo"], "message": "seven"});
    let sent = node.call("bob", "sessions_send", answer).await;
    assert_eq!(sent["status"], "accepted", "an answer asks for nothing: {sent}");
    let answered = ended(asked).await;
    assert_eq!(
        (&answered["status"], &answered["reply"]),
        (&json!("ok"), &json!("seven")),
        "{answered}"
    );
    assert_eq!((&answered["runId"], &answered["replyId"]), (&item["id"], &sent["runId"]));
    assert_eq!(answered["from"]["agentId"], "bob");
    assert_eq!(
        (&answered["delivery"]["status"], &answered["conversation"]["turn"]),
        (&json!("delivered"), &json!(1))
    );
    assert_eq!(answered.get("duplicate"), None);
    let nothing = node.inbox("ada", None).await;
    assert_eq!(texts(&nothing), Vec::<&str>::new(), "the call has given it");
    done(node).await;
}

#[tokio::test]
async fn an_answer_without_reply_to_is_that_of_the_oldest_question() {
    let node = two().await;
    for text in ["one?", "two?"] {
        let ask = json!({"agentId": "bob", "message": text, "timeoutSeconds": NOW});
        assert_eq!(node.call("ada", "sessions_send", ask).await["status"], "accepted");
    }
    node.inbox("bob", None).await;
    let answer =
        json!({"agentId": "ada", "message": "one!", "timeoutSeconds": NOW, "expectsReply": false});
    node.call("bob", "sessions_send", answer).await;
    let mail = node.inbox("ada", None).await;
    let questions =
        node.call("ada", "sessions_history", json!({"sessionKey": "agent:bob:main"})).await;
    let first = &questions["messages"][0];
    assert_eq!((&first["content"], &first["role"]), (&json!("one?"), &json!("assistant")));
    let item = &mail["messages"][0];
    assert_eq!(
        (&item["item"], &item["conversation"]["answers"]),
        (&json!("reply"), &first["id"]),
        "{mail}"
    );
    done(node).await;
}

#[tokio::test]
async fn what_an_agent_has_not_read_it_does_not_answer() {
    let node = two().await;
    let ask = json!({"agentId": "bob", "message": "how many?", "timeoutSeconds": 1});
    let asked = begun(&node, "ada", "sessions_send", ask);
    let has_come = async || {
        while node.call("bob", "agents_list", json!({})).await["me"]["unread"] != 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, has_come()).await.expect("it comes");
    let own = json!({"agentId": "ada", "message": "which ones?", "timeoutSeconds": NOW});
    node.call("bob", "sessions_send", own).await;
    assert_eq!(ended(asked).await["status"], "timeout");
    let mail = node.inbox("ada", None).await;
    assert_eq!(
        (&mail["messages"][0]["item"], &mail["messages"][0]["expectsReply"]),
        (&json!("direct"), &json!(true))
    );
    done(node).await;
}

#[tokio::test]
async fn a_call_that_cannot_wait_sends_nothing() {
    let node = two().await;
    let mut waits = tokio::task::JoinSet::new();
    let full = async {
        loop {
            let waiting = node.clone();
            waits.spawn(async move {
                waiting.call("ada", "inbox_wait", json!({"timeoutSeconds": 50})).await
            });
            node.call("ada", "agents_list", json!({})).await;
            if let Some(ended) = waits.try_join_next() {
                break ended.unwrap();
            }
        }
    };
    let full = timeout(PATIENCE, full).await.expect("one too many");
    assert_eq!(full["error"], "too many waits; retry", "{full}");
    let refused =
        node.call("ada", "sessions_send", json!({"agentId": "bob", "message": "x"})).await;
    assert_eq!(refused["error"], "too many waits; retry", "{refused}");
    assert_eq!(texts(&node.inbox("bob", None).await), Vec::<&str>::new());
    drop(waits);
    let missing =
        json!({"agentId": "bob", "message": "x", "replyTo": "nothing", "timeoutSeconds": NOW});
    assert_eq!(node.call("ada", "sessions_send", missing).await["field"], "replyTo");
    drop(node);
}

#[tokio::test]
async fn a_timeout_is_no_failure_and_the_same_call_goes_on_waiting() {
    let node = two().await;
    let ask = json!({"agentId": "bob", "message": "are you there?", "timeoutSeconds": 1});
    let late = node.call("ada", "sessions_send", ask.clone()).await;
    assert_eq!(
        (&late["status"], &late["sentBeforeError"]),
        (&json!("timeout"), &json!(true)),
        "{late}"
    );
    assert!(
        late["error"].as_str().unwrap().starts_with("no reply within 1 s; the message was kept")
    );
    let again = begun(
        &node,
        "ada",
        "sessions_send",
        json!({"agentId": "bob", "message": "are you there?"}),
    );
    let mail = node.inbox("bob", None).await;
    assert_eq!(texts(&mail), ["are you there?"], "it was sent once");
    node.call(
        "bob",
        "sessions_send",
        json!({"agentId": "ada", "message": "yes", "expectsReply": false}),
    )
    .await;
    let answered = ended(again).await;
    assert_eq!(
        (&answered["status"], &answered["reply"]),
        (&json!("ok"), &json!("yes")),
        "{answered}"
    );
    assert_eq!((&answered["runId"], &answered["duplicate"]), (&late["runId"], &json!(true)));
    let clamped = json!({"agentId": "bob", "message": "more?", "timeoutSeconds": 500});
    let asked = begun(&node, "ada", "sessions_send", clamped);
    node.call("bob", "inbox_wait", json!({"timeoutSeconds": 40, "cursor": mail["cursor"]})).await;
    node.call("bob", "sessions_send", json!({"agentId": "ada", "message": "no"})).await;
    assert_eq!(ended(asked).await["clamped"], json!({"timeoutSeconds": 50}));
    done(node).await;
}

#[tokio::test]
async fn an_agent_may_choose_not_to_answer_or_say_that_it_failed() {
    let node = two().await;
    for (text, status) in [(" REPLY_SKIP\n", "no_reply"), ("seven", "ok")] {
        let asked = begun(
            &node,
            "ada",
            "sessions_send",
            json!({"agentId": "bob", "message": format!("how about {text}?")}),
        );
        let mail = node.call("bob", "inbox_wait", json!({"timeoutSeconds": 40})).await;
        let request = mail["messages"].as_array().unwrap().last().unwrap();
        let answer = json!({"agentId": "ada", "message": text, "replyTo": request["id"]});
        node.call("bob", "sessions_send", answer).await;
        let answered = ended(asked).await;
        assert_eq!(answered["status"], status, "{answered}");
        node.inbox("bob", Some(&mail["cursor"])).await;
    }
    // Nobody waits for this one.
    let ask = json!({"agentId": "bob", "message": "and now?", "timeoutSeconds": NOW});
    node.call("ada", "sessions_send", ask).await;
    node.call(
        "bob",
        "sessions_send",
        json!({"agentId": "ada", "message": "NO_REPLY", "expectsReply": false}),
    )
    .await;
    assert_eq!(texts(&node.inbox("ada", None).await), Vec::<&str>::new());
    done(node).await;
}

#[tokio::test]
async fn what_is_not_confirmed_comes_again() {
    let node = two().await;
    for text in ["one", "two", "three"] {
        let said = json!({"agentId": "bob", "message": text, "timeoutSeconds": NOW});
        node.call("ada", "sessions_send", said).await;
    }
    let limited = json!({"timeoutSeconds": NOW, "limit": 2});
    let first = node.call("bob", "inbox_wait", limited.clone()).await;
    assert_eq!(
        (texts(&first), &first["unread"], &first["more"]),
        (vec!["one", "two"], &json!(1), &json!(true))
    );
    assert_eq!(texts(&node.call("bob", "inbox_wait", limited).await), ["one", "two"], "again");
    let rest = node.inbox("bob", Some(&first["cursor"])).await;
    assert_eq!((texts(&rest), &rest["unread"]), (vec!["three"], &json!(0)));
    assert_eq!(texts(&node.inbox("bob", None).await), ["three"], "the first two are confirmed");
    let none = node.inbox("bob", Some(&rest["cursor"])).await;
    assert_eq!((&none["status"], &none["cursor"]), (&json!("timeout"), &rest["cursor"]));
    assert_eq!(texts(&node.inbox("bob", Some(&json!("0"))).await), ["one", "two", "three"]);
    assert_eq!(texts(&node.inbox("bob", Some(&first["cursor"])).await), ["three"], "replayed");
    assert_eq!(texts(&node.inbox("bob", None).await), Vec::<&str>::new(), "nothing moved back");
    let elsewhere = node.inbox("bob", Some(&json!("0123456789abcdef.1.7"))).await;
    assert_eq!((&elsewhere["replayed"], &elsewhere["status"]), (&json!(true), &json!("timeout")));
    let ahead = none["cursor"].as_str().unwrap().rsplit_once('.').unwrap().0.to_owned() + ".1000";
    node.inbox("bob", Some(&json!(ahead))).await;
    let said = json!({"agentId": "bob", "message": "four", "timeoutSeconds": NOW});
    node.call("ada", "sessions_send", said).await;
    let four = node.inbox("bob", Some(&json!(ahead))).await;
    assert_eq!(texts(&four), ["four"], "nothing is passed over that was not there");
    for wrong in ["", "x", "1", "0123456789abcdef.1.", "0123456789abcdef.1.-1", "ä.1.1"] {
        let no = node.inbox("bob", Some(&json!(wrong))).await;
        assert_eq!(no["field"], "cursor", "{wrong:?} {no}");
    }
    done(node).await;
}

#[tokio::test]
async fn a_mention_comes_to_an_agent_that_is_not_in_the_room() {
    let node = two().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let said = json!({"room": "lobby", "message": "bob, look", "mentions": ["bob"]});
    node.call("ada", "room_send", said).await;
    let mail = node.inbox("bob", None).await;
    let item = &mail["messages"][0];
    assert_eq!(
        (&item["item"], &item["sessionKey"]),
        (&json!("mention"), &json!("mesh:channel:lobby")),
        "{mail}"
    );
    let me = &node.call("bob", "agents_list", json!({})).await["me"];
    assert_eq!(me["unread"], 1, "{me}");
    done(node).await;
}

#[tokio::test]
async fn sessions_are_listed_and_read() {
    let node = two().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let ask = json!({"sessionKey": "AGENT:BOB:MAIN", "message": "one?", "timeoutSeconds": NOW});
    let asked = node.call("ada", "sessions_send", ask).await;
    let note = node
        .call("ada", "sessions_send", json!({"sessionKey": "main", "message": "remember"}))
        .await;
    assert_eq!((&note["status"], &note["sessionKey"]), (&json!("accepted"), &json!("main")));
    let waits = json!({"sessionKey": "main", "message": "x", "timeoutSeconds": 5});
    assert_eq!(node.call("ada", "sessions_send", waits).await["field"], "timeoutSeconds");
    let listed = node.call("ada", "sessions_list", json!({"messageLimit": 1})).await;
    let rows = listed["sessions"].as_array().unwrap();
    let keys: Vec<&str> = rows.iter().map(|row| row["key"].as_str().unwrap()).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["agent:bob:main", "main", "mesh:channel:lobby"], "{listed}");
    let row = |key: &str| &rows[keys.iter().position(|of| *of == key).unwrap()];
    assert_eq!(
        (&row("main")["chatType"], &row("main")["provider"]),
        (&json!("self"), &json!("internal"))
    );
    let bob = row("agent:bob:main");
    assert_eq!(
        (&bob["agentId"], &bob["presence"], &bob["chatType"]),
        (&json!("bob"), &json!("idle"), &json!("direct"))
    );
    assert_eq!(bob["messages"][0]["content"], "one?");
    let waiting = node.call("bob", "sessions_list", json!({"kinds": ["main", "zzz"]})).await;
    let waiting = waiting["sessions"].as_array().unwrap();
    let unread: Vec<_> = waiting
        .iter()
        .map(|row| (row["key"].as_str().unwrap(), row["unread"].as_u64().unwrap()))
        .collect();
    assert!(unread.contains(&("agent:ada:main", 1)) && unread.contains(&("main", 1)), "{unread:?}");
    let groups = node.call("ada", "sessions_list", json!({"kinds": ["group"], "limit": 500})).await;
    assert_eq!((&groups["count"], &groups["clamped"]), (&json!(1), &json!({"limit": 200})));

    let answer = json!({"agentId": "ada", "replyTo": asked["runId"], "message": "one!"});
    node.call("bob", "sessions_send", answer).await;
    let other = json!({"agentId": "bob", "message": "two?", "timeoutSeconds": NOW});
    node.call("ada", "sessions_send", other).await;
    let thread = format!("agent:bob:main:thread:{}", asked["runId"].as_str().unwrap());
    let read = node.call("ada", "sessions_history", json!({"sessionKey": thread})).await;
    assert_eq!(
        (texts(&read), &read["sessionKey"]),
        (vec!["one?", "one!"], &json!(thread)),
        "{read}"
    );
    let refused =
        node.call("ada", "sessions_send", json!({"sessionKey": thread, "message": "x"})).await;
    assert_eq!(
        (&refused["rule"], &refused["error"]),
        (&json!("thread"), &json!("threads can be read, not sent to; use agent:bob:main"))
    );
    done(node).await;
}

#[tokio::test]
async fn a_long_text_is_read_whole_piece_by_piece() {
    let node = two().await;
    let long = "ü".repeat(30_000);
    let said = json!({"agentId": "bob", "message": long, "timeoutSeconds": NOW});
    let sent = node.call("ada", "sessions_send", said).await;
    let key = json!("agent:ada:main");
    let page = node.call("bob", "sessions_history", json!({"sessionKey": key})).await;
    assert_eq!(
        (&page["contentTruncated"], &page["messages"][0]["truncated"]),
        (&json!(true), &json!(true))
    );
    let (mut whole, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let piece = json!({"sessionKey": key, "messageId": sent["runId"], "charOffset": offset});
        let piece = node.call("bob", "sessions_history", piece).await;
        whole.push_str(texts(&piece)[0]);
        offset = piece["nextCharOffset"].clone();
    }
    assert_eq!(whole, long);
    done(node).await;
}

#[tokio::test]
async fn what_is_no_target_says_so() {
    let node = two().await;
    let error = async |arguments: Value| node.call("ada", "sessions_send", arguments).await;
    let none = error(json!({"message": "x"})).await;
    assert_eq!(none["error"], "name a target: sessionKey, agentId or label");
    let two = error(json!({"message": "x", "sessionKey": "lobby", "agentId": "bob"})).await;
    assert_eq!(two["error"], "sessionKey and agentId name different sessions");
    let to = error(json!({"message": "x", "to": "bob"})).await;
    assert_eq!(
        to["error"],
        "`to` is not an argument here: name the target with sessionKey or agentId"
    );
    let nobody = error(json!({"message": "x", "sessionKey": "agent:nobody:main"})).await;
    assert_eq!(
        (&nobody["status"], &nobody["error"]),
        (&json!("error"), &json!("unknown agent \"nobody\""))
    );
    for reserved in ["cron:1", "global"] {
        let no = error(json!({"message": "x", "sessionKey": reserved})).await;
        assert_eq!(no["error"], format!("no such session: {reserved:?}"));
    }
    let blank = error(json!({"message": " ", "agentId": "bob"})).await;
    assert_eq!(blank["field"], "message");
    let same = error(json!({"text": "x", "sessionKey": "agent:bob:main", "agentId": "bob", "timeoutSeconds": NOW})).await;
    assert_eq!(same["status"], "accepted", "{same}");
    let key =
        json!({"agentId": "bob", "message": "once", "timeoutSeconds": NOW, "idempotencyKey": "k"});
    let first = error(key.clone()).await;
    let again = error(key).await;
    assert_eq!((&again["runId"], &again["duplicate"]), (&first["runId"], &json!(true)));
    let other =
        json!({"agentId": "bob", "message": "twice", "timeoutSeconds": NOW, "idempotencyKey": "k"});
    assert_eq!(error(other).await["error"], "idempotencyKey was used for another message");
    done(node).await;
}

#[tokio::test]
async fn agents_that_answer_everything_stop() {
    let node = two().await;
    let mut sent = node
        .call(
            "ada",
            "sessions_send",
            json!({"agentId": "bob", "message": "0", "timeoutSeconds": NOW}),
        )
        .await;
    let mut turn = 0;
    let refused = loop {
        turn += 1;
        let (by, to) = if turn % 2 == 1 { ("bob", "ada") } else { ("ada", "bob") };
        let said = json!({"agentId": to, "message": turn.to_string(), "replyTo": sent["runId"],
            "expectsReply": true, "timeoutSeconds": NOW});
        let next = node.call(by, "sessions_send", said).await;
        if next["status"] != "accepted" {
            break next;
        }
        sent = next;
    };
    assert_eq!(
        (turn, &refused["status"], &refused["rule"]),
        (7, &json!("forbidden"), &json!("max_ping_pong_turns"))
    );
    assert_eq!(
        refused["error"],
        "this conversation has used its 5 turns; begin another only for another question"
    );
    for _ in 0..13 {
        node.call(
            "ada",
            "sessions_send",
            json!({"agentId": "bob", "message": "x", "expectsReply": false}),
        )
        .await;
    }
    let fast = json!({"agentId": "bob", "message": "x", "expectsReply": false});
    let fast = node.call("ada", "sessions_send", fast).await;
    assert_eq!(
        (&fast["rule"], fast["retryAfterMs"].is_u64()),
        (&json!("pair_budget"), true),
        "{fast}"
    );
    done(node).await;
}

#[tokio::test]
async fn a_program_is_told_once_of_what_is_new() {
    let node = two().await;
    let notice = async |wait: u64| {
        let call =
            json!({"tool": "inbox_notice", "agentId": "bob", "args": {"timeoutSeconds": wait}});
        node.post("/tools/invoke", &[], &call).await.body["result"]["details"].clone()
    };
    let told = |unread: u64, fresh: bool| {
        let from: Vec<&str> = if unread > 0 { vec!["ada"] } else { Vec::new() };
        json!({"status": "ok", "unread": unread, "from": from, "fresh": fresh})
    };
    assert_eq!(notice(0).await, told(0, false));
    let said = json!({"agentId": "bob", "message": "x", "timeoutSeconds": NOW});
    node.call("ada", "sessions_send", said.clone()).await;
    assert_eq!(notice(0).await, told(1, true));
    assert_eq!(notice(0).await, told(1, false));
    assert_eq!(notice(1).await["status"], "timeout");
    let waiting = {
        let node = node.clone();
        tokio::spawn(async move {
            let call =
                json!({"tool": "inbox_notice", "agentId": "bob", "args": {"timeoutSeconds": 40}});
            node.post("/tools/invoke", &[], &call).await.body["result"]["details"].clone()
        })
    };
    node.call(
        "ada",
        "sessions_send",
        json!({"agentId": "bob", "message": "y", "timeoutSeconds": NOW}),
    )
    .await;
    assert_eq!(ended(waiting).await, told(2, true));
    let listed = node.rpc("bob", "tools/list", json!({})).await.to_string();
    assert!(!listed.contains("inbox_notice"), "models have no use for it");
    done(node).await;
}

/// Also if the author does not say that it expects an answer: a tool that asks says so by being called.
#[tokio::test]
async fn an_agent_that_nobody_answers_is_told_to_read_before_it_asks_on() {
    let node = two().await;
    for peer in ["cy", "dora"] {
        node.inbox(peer, None).await;
    }
    let ask = async |nth: usize| {
        // No pair meets its pace.
        let peer = ["bob", "cy", "dora"][nth % 3];
        let question =
            json!({"agentId": peer, "message": format!("{nth}?"), "timeoutSeconds": NOW});
        node.call("ada", "sessions_send", question).await
    };
    for nth in 0..50 {
        assert_eq!(ask(nth).await["status"], "accepted", "{nth}");
    }
    let refused = ask(50).await;
    assert_eq!(
        (&refused["status"], &refused["rule"]),
        (&json!("forbidden"), &json!("outstanding"))
    );
    done(node).await;
}

#[tokio::test]
async fn a_skip_where_nothing_was_asked_asks_for_nothing() {
    let node = two().await;
    let skip = json!({"agentId": "bob", "message": " REPLY_SKIP\n"});
    let sent = node.call("ada", "sessions_send", skip).await;
    assert_eq!(sent["status"], "accepted", "and nobody waits");
    let there = node.inbox("bob", None).await;
    assert!(there["messages"][0]["replyWith"].is_null(), "{there}");
    done(node).await;
}

#[tokio::test]
async fn a_program_follows_an_inbox_and_confirms_nothing() {
    let node = two().await;
    let says = async |text: &str| {
        let message = json!({"agentId": "ada", "message": text, "timeoutSeconds": NOW});
        node.call("bob", "sessions_send", message).await;
    };
    let follow = async |arguments: Value| {
        let body = json!({"tool": "inbox_follow", "agentId": "ada", "args": arguments});
        let mut answer = node.post("/tools/invoke", &[], &body).await;
        answer.body["result"]["details"].take()
    };
    says("before").await;
    let start = follow(json!({})).await;
    assert_eq!(texts(&start), Vec::<&str>::new(), "from now on");
    let waits = follow(json!({"cursor": start["cursor"], "timeoutSeconds": 30}));
    let (came, ()) = tokio::join!(waits, says("one"));
    assert_eq!(texts(&came), ["one"]);
    assert_eq!((&came["messages"][0]["item"], &came["more"]), (&json!("direct"), &json!(false)));
    let nothing = follow(json!({"cursor": came["cursor"]})).await;
    assert_eq!(texts(&nothing), Vec::<&str>::new(), "each once");
    assert_eq!(texts(&node.inbox("ada", None).await), ["before", "one"], "all of it is unread");
    let elsewhere = follow(json!({"cursor": "0123456789abcdef.1.99"})).await;
    assert_eq!(texts(&elsewhere), ["before", "one"], "none is missed");
    let listed =
        node.rpc("ada", "tools/call", json!({"name": "inbox_follow", "arguments": {}})).await;
    assert_eq!(listed["error"]["code"], -32602, "it is for programs");
    done(node).await;
}
