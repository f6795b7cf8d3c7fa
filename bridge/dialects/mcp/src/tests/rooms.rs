//! Rooms, votes and tasks, as a host uses them.

use super::*;
use std::sync::atomic::Ordering;

use bridge::backend::{Reads as _, Roam};
use mesh::name::{
    id::RoomId,
    number::{Era, Number},
};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_room_is_made_spoken_in_and_read() {
    let node = Node::new().await;
    let missing = node.call("ada", "room_join", json!({"room": "council"})).await;
    assert_eq!(missing["error"], "no such session: \"council\"");
    assert_eq!(missing["suggestions"], json!(["mesh:channel:lobby"]));
    let made = json!({"room": "council", "create": true, "description": "for plans"});
    let made = node.call("ada", "room_join", made).await;
    assert_eq!((&made["status"], &made["created"]), (&json!("ok"), &json!(true)), "{made}");
    let key = made["key"].as_str().unwrap();
    assert_eq!(key, format!("mesh:group:{}", made["roomId"].as_str().unwrap()));
    let outside = node.call("bob", "room_send", json!({"room": key, "message": "hi"})).await;
    assert_eq!(
        (&outside["error"], &outside["code"]),
        (&json!("call room_join first"), &json!("not_in_room"))
    );
    let outside = node.call("bob", "room_history", json!({"room": key})).await;
    assert_eq!((&outside["status"], &outside["rule"]), (&json!("forbidden"), &json!("visibility")));
    let joined = node.call("bob", "room_join", json!({"room": " COUNCIL "})).await;
    assert_eq!((&joined["created"], &joined["members"]), (&json!(false), &json!(2)), "{joined}");
    let said = json!({"room": key, "message": "one", "kind": "plan", "mentions": ["bob"]});
    let one = node.call("ada", "room_send", said).await;
    let answer = json!({"room": key, "message": "two", "replyTo": one["messageId"]});
    let two = node.call("bob", "room_send", answer).await;
    assert_eq!((&one["seq"], &two["seq"]), (&json!(1), &json!(2)));
    let read = node.call("ada", "room_history", json!({"room": "council"})).await;
    let messages = read["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &read["hasMore"]), (2, &json!(false)), "{read}");
    let (mine, theirs) = (&messages[0], &messages[1]);
    assert_eq!((&mine["role"], &mine["metadata"]["kind"]), (&json!("assistant"), &json!("plan")));
    assert_eq!((&theirs["role"], &theirs["replyTo"]), (&json!("user"), &one["messageId"]));
    let from = &theirs["from"];
    assert_eq!((&from["agentId"], &from["key"]), (&json!("bob"), &json!("agent:bob:main")));
    assert_eq!((&from["sameKey"], &theirs["provenance"]["isUser"]), (&json!(true), &json!(false)));
    assert!(read["note"].as_str().unwrap().contains("not instructions"));
    let rooms = node.call("ada", "rooms_list", json!({"search": "counc"})).await;
    assert_eq!((&rooms["count"], &rooms["rooms"][0]["joined"]), (&json!(1), &json!(true)));
    node.call("bob", "room_leave", json!({"room": key})).await;
    let rooms = node.call("bob", "rooms_list", json!({"joined": true})).await;
    assert_eq!(rooms["count"], 0);
    node.stop().await;
}

#[tokio::test]
async fn history_is_paged_without_gap_or_repeat_and_thoughts_can_be_left_out() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    for nth in 1..=12 {
        let said = json!({"room": "lobby", "message": nth.to_string(), "thinking": nth % 3 == 0});
        assert_eq!(node.call("ada", "room_send", said).await["status"], "ok");
    }
    let read = async |arguments: Value| {
        let mut arguments = arguments;
        arguments["room"] = json!("lobby");
        let page = node.call("ada", "room_history", arguments).await;
        let texts = page["messages"].as_array().unwrap().iter();
        let texts: Vec<u64> =
            texts.map(|row| row["content"].as_str().unwrap().parse().unwrap()).collect();
        (texts, page["hasMore"] == true, page["nextOffset"].clone())
    };
    assert_eq!(read(json!({"limit": 5})).await, (vec![8, 9, 10, 11, 12], true, json!(5)));
    let far = json!({"limit": 5, "offset": 1_000_000_000_000_u64});
    assert_eq!(read(far).await, (vec![], false, Value::Null));
    assert_eq!(read(json!({"limit": 5, "offset": 10})).await, (vec![1, 2], false, Value::Null));
    let chat = json!({"limit": 3, "includeTools": false, "offset": 3});
    assert_eq!(read(chat).await, (vec![4, 5, 7], true, json!(6)));
    assert_eq!(read(json!({"afterSeq": 9, "limit": 2})).await, (vec![10, 11], true, Value::Null));
    assert_eq!(read(json!({"afterSeq": 12})).await, (vec![], false, Value::Null));
    let long = "ü".repeat(5_000);
    node.call("ada", "room_send", json!({"room": "lobby", "message": long})).await;
    let page = node.call("ada", "room_history", json!({"room": "lobby", "limit": 1})).await;
    assert_eq!(
        (&page["contentTruncated"], &page["messages"][0]["truncated"]),
        (&json!(true), &json!(true))
    );
    for _ in 0..40 {
        node.call("ada", "room_send", json!({"room": "lobby", "message": long})).await;
    }
    let page = node.call("ada", "room_history", json!({"room": "lobby", "limit": "9999"})).await;
    assert!(page.to_string().len() <= 64 * 1024 && page["droppedMessages"].as_u64() > Some(0));
    assert_eq!(page["clamped"], json!({"limit": 1_000}));
    node.stop().await;
}

#[tokio::test]
async fn a_wait_ends_with_what_others_say_and_not_with_thoughts_or_ones_own() {
    let node = Arc::new(Node::new().await);
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let none = node.call("ada", "room_wait", json!({"room": "lobby", "timeoutSeconds": 0})).await;
    assert_eq!((&none["status"], &none["afterSeq"]), (&json!("timeout"), &json!(0)));
    let waiting = {
        let node = node.clone();
        tokio::spawn(async move {
            let wait = json!({"room": "lobby", "afterSeq": 0, "timeoutSeconds": 40});
            node.call("ada", "room_wait", wait).await
        })
    };
    for (agent, text, thinking) in
        [("ada", "mine", false), ("bob", "hm", true), ("bob", "yes", false)]
    {
        let said = json!({"room": "lobby", "message": text, "thinking": thinking});
        node.call(agent, "room_send", said).await;
    }
    let heard = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!((&heard["status"], &heard["afterSeq"]), (&json!("ok"), &json!(3)), "{heard}");
    assert_eq!(heard["messages"][0]["content"], "yes");
    let from = json!({"room": "lobby", "afterSeq": 0, "from": ["cy"], "timeoutSeconds": 0});
    assert_eq!(
        node.call("ada", "room_wait", from).await["afterSeq"],
        3,
        "past all that was filtered"
    );
    Arc::into_inner(node).unwrap().stop().await;
}

#[tokio::test]
async fn waits_of_one_agent_are_bounded_and_end_with_their_connection() {
    let node = Arc::new(Node::new().await);
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let mut waiting = JoinSet::new();
    for _ in 0..9 {
        let (node, wait) = (node.clone(), json!({"room": "lobby", "timeoutSeconds": 50}));
        waiting.spawn(async move { node.call("ada", "room_wait", wait).await });
    }
    let answer = timeout(PATIENCE, waiting.join_next()).await.expect("one is too many");
    let answer = answer.unwrap().unwrap();
    assert_eq!(
        (&answer["error"], &answer["retryAfterMs"]),
        (&json!("too many waits; retry"), &json!(1_000))
    );
    waiting.shutdown().await;
    let free = async || {
        loop {
            let wait = json!({"room": "lobby", "timeoutSeconds": 1});
            if node.call("ada", "room_wait", wait).await["status"] == "timeout" {
                return;
            }
        }
    };
    timeout(PATIENCE, free()).await.expect("hung up is over");
    Arc::into_inner(node).unwrap().stop().await;
}

#[tokio::test]
async fn a_vote_is_held() {
    let node = Arc::new(Node::new().await);
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let wrong = json!({"room": "lobby", "title": "When?", "options": "now"});
    let wrong = node.call("ada", "vote_create", wrong).await;
    assert_eq!(wrong["field"], "options", "{wrong}");
    let vote = json!({"room": "lobby", "title": "When?", "options": ["now", "later"]});
    let vote = node.call("ada", "vote_create", vote).await;
    let id = vote["vote"]["vote_id"].clone();
    assert_eq!(
        (&vote["status"], &vote["vote"]["status"]),
        (&json!("ok"), &json!("open")),
        "{vote}"
    );
    let wrong = node.call("bob", "vote_cast", json!({"voteId": id, "option": "never"})).await;
    assert_eq!(wrong["error"], r#"`option` must be one of 0 "now", 1 "later""#);
    let closed = {
        let (node, id) = (node.clone(), id.clone());
        tokio::spawn(async move {
            node.call("ada", "vote_result", json!({"voteId": id, "timeoutSeconds": 40})).await
        })
    };
    node.call("ada", "vote_cast", json!({"voteId": id, "option": 1})).await;
    let again = node.call("ada", "vote_cast", json!({"voteId": id, "option": 0})).await;
    assert_eq!(again["code"], "already_voted");
    let cast = node.call("bob", "vote_cast", json!({"voteId": id, "option": "later"})).await;
    assert_eq!((&cast["votesCast"], &cast["eligibleVoters"]), (&json!(2), &json!(2)));
    let closed = timeout(PATIENCE, closed).await.unwrap().unwrap();
    assert_eq!(
        (&closed["status"], &closed["vote"]["tally"][1]["count"]),
        (&json!("closed"), &json!(2))
    );
    let votes = node.call("bob", "vote_result", json!({"room": "lobby"})).await;
    assert_eq!(votes["votes"][0]["vote_id"], id);
    let missing = node.call("bob", "vote_result", json!({})).await;
    assert_eq!(missing["field"], "voteId");
    Arc::into_inner(node).unwrap().stop().await;
}

#[tokio::test]
async fn a_task_is_claimed_by_one_and_finished() {
    let node = Node::new().await;
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let added = node.call("ada", "task_add", json!({"room": "lobby", "title": "sweep"})).await;
    assert_eq!(added["task"]["sessionKey"], "mesh:channel:lobby", "{added}");
    let task = added["task"]["task_id"].clone();
    let claimed = node.call("bob", "task_claim", json!({"taskId": task})).await;
    assert_eq!((&claimed["status"], &claimed["task"]["assignee"]), (&json!("ok"), &json!("bob")));
    assert_eq!(claimed["task"]["status"], "in_progress");
    let late = node.call("ada", "task_claim", json!({"taskId": task})).await;
    assert_eq!(
        (&late["error"], &late["task"]["assignee"]),
        (&json!("the task is held by bob"), &json!("bob"))
    );
    let again = node.call("bob", "task_claim", json!({"taskId": task})).await;
    assert_eq!(again["status"], "ok", "what one holds one may begin: {again}");
    let mine = node.call("bob", "tasks_list", json!({"mine": true, "status": "in_progress"})).await;
    assert_eq!((&mine["count"], &mine["tasks"][0]["task_id"]), (&json!(1), &task));
    let result = "ü".repeat(3_000);
    let done = node.call("bob", "task_complete", json!({"taskId": task, "result": result})).await;
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["note"].as_str().unwrap().len(), 4_096);
    let wrong = node.call("bob", "task_claim", json!({"taskId": "sweep"})).await;
    assert_eq!(wrong["error"], "`taskId` must be the id of a task");
    node.stop().await;
}

#[tokio::test]
async fn what_does_not_fit_into_a_result_comes_with_the_next_one() {
    let node = Node::new().await;
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    for nth in 1..=40 {
        let text = format!("{nth} {}", "x".repeat(3_900));
        node.call("ada", "room_send", json!({"room": "lobby", "message": text})).await;
    }
    let texts = |page: &Value| {
        let rows = page["messages"].as_array().unwrap().iter();
        let first =
            |row: &Value| row["content"].as_str().unwrap().split(' ').next().unwrap().parse();
        rows.map(|row| first(row).unwrap()).collect::<Vec<u64>>()
    };
    let (mut heard, mut after) = (Vec::new(), json!(0));
    loop {
        let wait = json!({"room": "lobby", "afterSeq": after, "limit": 30, "timeoutSeconds": 0});
        let page = node.call("bob", "room_wait", wait).await;
        heard.extend(texts(&page));
        after = page["afterSeq"].clone();
        if page["hasMore"] == false {
            break;
        }
    }
    assert_eq!(heard, (1..=40).collect::<Vec<_>>(), "each once, by waits");
    let (mut read, mut after) = (Vec::new(), 0);
    loop {
        let page = json!({"room": "lobby", "afterSeq": after, "limit": 25});
        let page = node.call("bob", "room_history", page).await;
        assert!(page.to_string().len() <= 64 * 1024);
        read.extend(texts(&page));
        after = page["messages"].as_array().unwrap().last().unwrap()["seq"].as_u64().unwrap();
        if page["hasMore"] == false {
            break;
        }
    }
    assert_eq!(read, heard, "each once, forwards");
    let (mut read, mut offset) = (Vec::new(), json!(0));
    while !offset.is_null() {
        let page = json!({"room": "lobby", "limit": 25, "offset": offset});
        let page = node.call("bob", "room_history", page).await;
        let mut older = texts(&page);
        older.append(&mut read);
        read = older;
        offset = page["nextOffset"].clone();
    }
    assert_eq!(read, heard, "each once, backwards");
    let above = json!({"room": "lobby", "afterSeq": 999, "timeoutSeconds": 0});
    assert_eq!(node.call("bob", "room_wait", above).await["afterSeq"], 40, "no higher than it is");
    node.stop().await;
}

#[tokio::test]
async fn tasks_and_votes_of_a_room_are_for_those_in_it() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "council", "create": true})).await;
    let task = json!({"room": "council", "title": "secret"});
    node.call("ada", "task_add", task).await;
    let vote = json!({"room": "council", "title": "secret", "options": ["a", "b"]});
    let vote = node.call("ada", "vote_create", vote).await["vote"]["vote_id"].clone();
    for (tool, arguments) in [
        ("tasks_list", json!({"room": "council"})),
        ("vote_result", json!({"room": "council"})),
        ("vote_result", json!({"voteId": vote})),
        ("vote_cast", json!({"voteId": vote, "option": "zzz"})),
        ("room_history", json!({"room": "council"})),
        ("room_wait", json!({"room": "council", "timeoutSeconds": 0})),
    ] {
        let refused = node.call("bob", tool, arguments).await;
        assert_eq!(
            (&refused["status"], &refused["rule"]),
            (&json!("forbidden"), &json!("visibility"))
        );
    }
    node.stop().await;
}

#[tokio::test]
async fn no_list_is_larger_than_a_result_may_be() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let long = "ü".repeat(2_000);
    for nth in 0..20 {
        let task = json!({"room": "lobby", "title": nth.to_string(), "description": long});
        assert_eq!(node.call("ada", "task_add", task).await["status"], "ok");
    }
    let mut arguments = json!({"limit": 200});
    for nth in 0..1_000 {
        arguments[format!("{nth}{}", "x".repeat(100))] = json!(1);
    }
    let listed = node.call("ada", "tasks_list", arguments).await;
    assert!(listed.to_string().len() <= 64 * 1024, "{}", listed.to_string().len());
    assert_eq!(
        (&listed["hasMore"], listed["ignored"].as_array().unwrap().len()),
        (&json!(true), 20)
    );
    node.stop().await;
}

#[tokio::test]
async fn a_finished_task_is_not_begun_again_and_keys_are_no_names() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let task = node.call("ada", "task_add", json!({"room": "lobby", "title": "sweep"})).await;
    let task = task["task"]["task_id"].clone();
    node.call("ada", "task_complete", json!({"taskId": task, "result": "clean"})).await;
    let again = node.call("ada", "task_claim", json!({"taskId": task})).await;
    assert_eq!(again["error"], "the task is completed already");
    for key in
        ["mesh:channel:foo", "main", "agent:bob:main", "7d444840-9dc0-11d1-b245-5ffdce74fad2"]
    {
        let made = node.call("ada", "room_join", json!({"room": key, "create": true})).await;
        assert_eq!(made["field"], "room", "{key} {made}");
    }
    node.stop().await;
}

/// All of a room, numbered again at another node after a split.
fn number_again(fake: &Fake, room: RoomId) {
    let later = Era::new(9, 7).unwrap();
    let mut rows = fake.page_since(room, Number::ZERO, 10).unwrap();
    for (nth, row) in (1..).zip(&mut rows) {
        row.number = later.number(nth);
    }
    let unproven = rows.iter().map(|row| (row.at, Some(Number(1)))).collect();
    let roam = Roam { rows, more: false, later: false, unproven, needs_claim: false };
    *fake.knobs.roam.lock().unwrap() = Some(roam);
    // No cursor is served without looking.
    fake.knobs.split.store(true, Ordering::Relaxed);
}

#[tokio::test]
async fn what_others_have_numbered_again_after_a_split_is_not_read_a_second_time() {
    let node = Node::new().await;
    let made = json!({"room": "council", "create": true});
    let made = node.call("bob", "room_join", made).await;
    let room = RoomId::from_uuid(made["roomId"].as_str().unwrap()).unwrap();
    for agent in ["ada", "cy"] {
        node.call(agent, "room_join", json!({"room": "council"})).await;
    }
    for text in ["x", "y"] {
        node.call("bob", "room_send", json!({"room": "council", "message": text})).await;
    }
    let era = Era::new(1, 7).unwrap();
    for (nth, row) in (1..).zip(node.fake.rows.write().unwrap().get_mut(&room).unwrap()) {
        row.number = era.number(nth);
    }
    let reads = async |agent: &str, after: u64| {
        let wanted = json!({"room": "council", "afterSeq": after});
        let page = node.call(agent, "room_history", wanted).await;
        let rows = page["messages"].as_array().unwrap().iter();
        let texts: Vec<String> =
            rows.map(|row| row["content"].as_str().unwrap().to_owned()).collect();
        (texts.concat(), page["afterSeq"].as_u64().unwrap())
    };
    let (texts, cursor) = reads("ada", 0).await;
    assert_eq!((&*texts, cursor), ("xy", era.number(2).0));
    number_again(&node.fake, room);
    assert_eq!(reads("ada", cursor).await, (String::new(), cursor), "it has read that here");
    let wait = json!({"room": "council", "afterSeq": cursor, "timeoutSeconds": 0});
    assert_eq!(node.call("ada", "room_wait", wait).await["messages"], json!([]));
    assert!(!reads("cy", cursor).await.0.is_empty(), "this one was never given it");
    node.stop().await;
}
