//! Those who look on.

use bridge::seam::call::{
    AssignTask, ChangeTask, CreateRoom, CreateShared, Join, Say, SetPresence, SetRoom,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        command::{NewRoom, Speech},
    },
    records::details::{DetailsUpdate, RoomState},
    wire::{
        roster::{Presence, Status},
        tasks::{TaskFields, TaskStatus},
    },
};

use super::{chat::words, *};
use crate::spectators::ANNOUNCED_EVERY;

impl Node {
    /// Somebody who looks at a room, and has been welcomed.
    async fn spectator(&self, room: &str) -> Client {
        let mut client = self.at(&format!("/spectate/{room}")).await;
        client.hears("spectator.welcome").await;
        client
    }

    async fn says(&self, visitor: &Visitor, text: &str, metadata: Option<Value>) {
        let metadata = metadata.map(|value| value.to_string());
        self.asks(visitor, Say { metadata, ..Say::chat(lobby(), text.to_owned()) }).await;
    }

    async fn room(&self, visitor: &Visitor, name: &str, public: bool) -> RoomId {
        let new = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public,
            encrypted: false,
        };
        if public {
            self.asks(visitor, CreateRoom(new)).await.room
        } else {
            self.asks(visitor, CreateShared(new)).await.room
        }
    }

    async fn sets(&self, visitor: &Visitor, room: RoomId, settings: &[(&str, Value)]) {
        let own =
            |(name, value): &(&str, Value)| (format!("clawtank.{name}"), Some(value.to_string()));
        let settings = settings.iter().map(own).collect();
        let update = DetailsUpdate { settings, ..DetailsUpdate::default() };
        self.asks(visitor, SetRoom { room, update }).await;
    }
}

impl Node {
    /// A task of which no more than its title and its end is shown.
    async fn hidden_task(&self, eve: &Visitor) {
        let mut task = NewTask::of(lobby(), "mail bo@example.org");
        task.description = Some("hidden description".to_owned());
        let task = self.asks(eve, AssignTask(task)).await;
        let note = TaskUpdate {
            note: Some("hidden comment".to_owned()),
            assignee: Some(Some("eve".into())),
            ..TaskUpdate::of(task.task)
        };
        self.asks(eve, ChangeTask(note)).await;
        let result = TaskUpdate {
            fields: Box::new(TaskFields {
                result: Some(json!({"deliverables": "hidden result"}).to_string()),
                ..TaskFields::default()
            }),
            status: Some(TaskStatus::Completed),
            ..TaskUpdate::of(task.task)
        };
        self.asks(eve, ChangeTask(result)).await;
    }
}

impl Client {
    /// All that is shown, up to an event of this kind for which this holds.
    async fn seen(&mut self, last: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let frame = self.hears("spectator.activity").await;
            let events = frame["data"]["events"].as_array().unwrap().clone();
            assert!(!events.is_empty() && events.len() <= 100);
            all.extend(events);
            if all.iter().any(|event| event["data"].to_string().contains(last)) {
                return all;
            }
        }
    }

    /// The error with which one is turned away.
    async fn turned(&mut self) -> String {
        let error = self.hears("spectator.error").await;
        assert_eq!(self.ends().await, 1008);
        error["data"]["code"].as_str().unwrap().to_owned()
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn commit() -> Value {
    json!({"kind": "git.commit", "git": {
        "commit_info": {
            "sha": "abc123def456789012345678901234567890abcd",
            "message": "feat: add command\n\nby ada@example.org",
            "branch": "feature/add",
            "author": {"name": "Eve", "email": "eve@example.org"},
        },
        "changes": {
            "files_added": ["secret/plans.md"], "files_modified": [], "files_deleted": [],
            "stats": {"additions": 127, "deletions": 3, "total_changes": 130},
        },
    }})
}

fn pull_request(kind: &str) -> Value {
    json!({"kind": kind, "git": {"pull_request": {
        "number": 42, "title": "Add it", "url": "https://h/pull/42?token=x", "description": "secret plans",
    }}})
}

#[tokio::test]
async fn who_looks_on_sees_chat_tasks_git_and_who_is_there() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("Ada").await;
    let mut client = node.at("/spectate/lobby").await;
    let welcome = client.hears("spectator.welcome").await["data"].clone();
    assert_eq!(welcome["room_info"]["name"], "lobby");
    let state = &welcome["current_state"];
    assert_eq!((&state["member_count"], &state["spectator_count"]), (&json!(2), &json!(1)));
    assert_eq!(state["agents"], json!([{"name": "eve", "status": "idle"}]));
    assert!(welcome["spectator_id"].as_str().unwrap().starts_with("spectator_"));
    node.says(&eve, "on my way", None).await;
    ada.ask("chat.human_message", words("hello")).await;
    let task = NewTask::of(lobby(), "build it");
    let task = node.asks(&eve, AssignTask(task)).await;
    let update = TaskUpdate::of;
    let claim = TaskUpdate { assignee: Some(Some("eve".into())), ..update(task.task) };
    node.asks(&eve, ChangeTask(claim)).await;
    let done = TaskUpdate { status: Some(TaskStatus::Completed), ..update(task.task) };
    node.asks(&eve, ChangeTask(done)).await;
    node.says(&eve, "[git] commit", Some(commit())).await;
    node.says(&eve, "[git] opened", Some(pull_request("git.pr_opened"))).await;
    node.says(&eve, "[git] merged", Some(pull_request("git.pr_merged"))).await;
    let presence = Presence { status: Status::Working, ..Presence::default() };
    node.asks(&eve, SetPresence(presence)).await;
    let _claude = node.agent("claude").await;
    let seen = client.seen("CLAUDE").await;
    assert_eq!(
        kinds(&seen),
        [
            "chat.public",
            "chat.public",
            "task.created",
            "agent.claimed_task",
            "task.completed",
            "git.commit",
            "git.pr_opened",
            "git.pr_merged",
            "agent.status_change",
            "agent.joined",
        ]
    );
    let data = |place: usize| seen[place]["data"].clone();
    assert_eq!((&data(0)["author"], &data(0)["author_type"]), (&json!("eve"), &json!("agent")));
    assert_eq!((&data(1)["author"], &data(1)["author_type"]), (&json!("Ada"), &json!("human")));
    assert_eq!((&data(2)["title"], &data(2)["creator"]), (&json!("build it"), &json!("eve")));
    let id = format!("task_{}", ids::text(task.task.0));
    assert_eq!(
        data(3),
        json!({"agent_id": "eve", "agent_name": "eve", "title": "build it", "task_id": id})
    );
    assert_eq!(data(4), json!({"agent_name": "eve", "task_id": id}));
    assert_eq!(
        data(5),
        json!({
            "sha": "abc123def456789012345678901234567890abcd", "branch": "feature/add",
            "message": "feat: add command", "agent_name": "eve",
            "stats": {"additions": 127, "deletions": 3, "total_changes": 130},
        })
    );
    assert_eq!(data(6), json!({"number": 42, "title": "Add it", "url": "[FILTERED_URL]"}));
    assert_eq!(data(8), json!({"agent_name": "eve", "status": "working"}));
    node.stop().await;
}

#[tokio::test]
async fn what_is_hidden_is_hidden() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut client = node.spectator("lobby").await;
    let say = |speech, text: &str| Say { speech, ..Say::chat(lobby(), text.to_owned()) };
    node.asks(&eve, say(Speech::Thinking, "hidden thought")).await;
    let mut room_only = words("hidden from those who look on");
    room_only["visibility"] = json!("room_only");
    ada.gets("chat.human_message", room_only).await;
    let mut private = words("hidden, for @bob alone");
    private["visibility"] = json!("private");
    private["content"]["mentions"] = json!([{
        "type": "agent", "target": "bob", "display_name": "bob", "start_pos": 12, "end_pos": 16,
    }]);
    ada.gets("chat.human_message", private).await;
    for kind in ["git.pr_reviewed", "approval_request", "approval_decision", "request", "cancel"] {
        let data = json!({"kind": kind, "git": {"feedback": "hidden"}, "approval": "hidden"});
        node.says(&eve, "hidden", Some(data)).await;
    }
    node.says(&eve, "hidden", Some(json!({"kind": "git.commit"}))).await;
    node.hidden_task(&eve).await;
    node.says(&eve, "[git]", Some(commit())).await;
    node.says(&eve, "[git]", Some(pull_request("git.pr_opened"))).await;
    let presence = Presence {
        detail: Some("hidden detail".to_owned()),
        status: Status::Thinking,
        ..Presence::default()
    };
    node.asks(&eve, SetPresence(presence)).await;
    bob.refused(
        "task.claim",
        json!({"task_id": ulid(77), "agent_id": "bob", "claim_reason": "x", "confidence_level": 1}),
    )
    .await;
    node.says(&eve, "see /home/ada, sk-abcdefghij1234567890, ada@example.org: last", None).await;
    let seen = client.seen("last").await;
    let all = json!(seen).to_string();
    for hidden in
        ["hidden", "plans", "@example.org", "abcdefghij1234567890", "/home/ada", "resource"]
    {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    let shown = seen.iter().find(|event| event["type"] == "chat.public").unwrap();
    assert_eq!(shown["data"]["content"], "see /home/[USER], sk-[REDACTED], [EMAIL]: last");
    for kind in [
        "chat.human_message",
        "task.created",
        "agent.register",
        "extension.room_history",
        "connection.request",
    ] {
        let refused = client.refused(kind, json!({"room_id": "lobby"})).await;
        assert_eq!(refused, no("AUTHORIZATION_DENIED", "spectator"), "{kind}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_room_that_is_not_open_is_not_looked_at() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let secret = node.room(&eve, "secret", false).await;
    let open = node.room(&eve, "open", true).await;
    for path in ["nowhere", "secret", &secret.to_uuid(), &ids::text([9; 16])] {
        let mut client = node.at(&format!("/spectate/{path}")).await;
        assert_eq!(client.turned().await, "ROOM_NOT_FOUND", "{path}");
    }
    // With its key it is open, and with another one it is not there.
    node.mint(MINTED, None, None);
    let path = format!("/spectate/{}", secret.to_uuid());
    let mut client = node.at(&format!("{path}?auth={}", KEY.replace(' ', "%20"))).await;
    client.hears("spectator.welcome").await;
    node.asks(&eve, Join(secret)).await;
    node.asks(&eve, Say::chat(secret, "among us".to_owned())).await;
    assert_eq!(kinds(&client.seen("among us").await), ["agent.joined", "chat.public"]);
    let mut client = node.at(&format!("{path}?auth={}", MINTED.replace(' ', "%20"))).await;
    assert_eq!(client.turned().await, "ROOM_NOT_FOUND");
    let mut client = node.at("/spectate/lobby?auth=no+key+of+this+mesh").await;
    assert_eq!(client.turned().await, "ACCESS_DENIED");
    let mut there = node.spectator(&open.to_uuid()).await;
    node.sets(&eve, open, &[("spectator_limit", json!(1))]).await;
    tokio::time::pause();
    tokio::time::sleep(crate::limits::CENSUS_FOR).await;
    tokio::time::resume();
    let mut client = node.at(&format!("/spectate/{}", open.to_uuid())).await;
    assert_eq!(client.turned().await, "CAPACITY_EXCEEDED");
    for (settings, state) in [
        (vec![("spectators_allowed", json!(false))], None),
        (vec![("spectators_allowed", json!(true))], Some(RoomState::Lobby)),
    ] {
        node.sets(&eve, open, &settings).await;
        let update = DetailsUpdate { state: state.map(Some), ..DetailsUpdate::default() };
        if state.is_some() {
            node.asks(&eve, SetRoom { room: open, update }).await;
        }
        // By its name, so that it is looked for anew.
        let name =
            if state.is_some() { "open".to_owned() } else { format!("room_{}", ids::text(open.0)) };
        let mut client = node.at(&format!("/spectate/{name}")).await;
        assert_eq!(client.turned().await, "ACCESS_DENIED");
    }
    assert!(there.rest().await.is_empty());
    node.stop().await;
}

#[tokio::test]
async fn an_operator_can_have_nobody_look_on() {
    let settings = Settings { spectators: false, ..Settings::default() };
    let node = Node::with(keyed(), settings).await;
    let mut client = node.at("/spectate/lobby").await;
    assert_eq!(client.turned().await, "ACCESS_DENIED");
    let mut client = node.client().await;
    client.say("connection.request", request("spectator", None, "x", Some("lobby"))).await;
    assert_eq!(client.turned().await, "ACCESS_DENIED");
    node.stop().await;
}

#[tokio::test]
async fn over_the_common_path_the_same_is_seen_with_an_ack_before_it() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut client = node.bare().await;
    let refused = client.refused("connection.request", request("spectator", None, "x", None)).await;
    assert_eq!(refused, no("VALIDATION_FAILED", "data.room_id"));
    let ack =
        client.gets("connection.request", request("spectator", None, "May", Some("lobby"))).await;
    assert_eq!(ack["session_info"]["display_name"], "May");
    assert_eq!(ack["session_info"]["permissions"], json!(["read"]));
    assert!(ack["features"].as_array().unwrap().contains(&json!("spectator_mode")));
    client.hears("spectator.welcome").await;
    node.says(&eve, "seen", None).await;
    assert_eq!(kinds(&client.seen("seen").await), ["chat.public"]);
    let refused = client.refused("chat.human_message", words("I, too")).await;
    assert_eq!(refused, no("AUTHORIZATION_DENIED", "spectator"));
    let mut wrong = node.client().await;
    wrong.say("connection.request", request("spectator", None, "x", Some("nowhere"))).await;
    assert_eq!(wrong.turned().await, "ROOM_NOT_FOUND");
    node.stop().await;
}

fn chat(text: &str) -> Value {
    json!({"room_id": "lobby", "content": {"text": text, "reply_to": null}})
}

#[tokio::test]
async fn they_talk_to_each_other_and_to_members_where_they_may_and_it_is_kept_nowhere() {
    use bridge::seam::call::{From, History};
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let room = node.room(&eve, "open", true).await;
    let id = room.to_uuid();
    let mut ada = node.bare().await;
    ada.connect("human", KEY, "ada", Some(&id)).await;
    ada.settle().await;
    let (mut may, mut joe) = (node.spectator(&id).await, node.spectator(&id).await);
    may.gets("spectator.connect", json!({"display_name": "May"})).await;
    let said = may.gets("chat.spectator_message", chat("mail may@example.org")).await;
    assert_eq!(said["content"]["text"], "mail [EMAIL]");
    assert_eq!(said["moderation"]["visible_to"], json!(["spectators", "participants"]));
    assert_eq!(said["spectator"]["display_name"], "May");
    assert_eq!(said["spectator"]["type"], "anonymous");
    let heard = joe.hears("chat.spectator_message").await;
    assert_eq!(heard["data"], said);
    let heard = ada.hears("chat.spectator_message").await;
    assert_eq!(heard["data"]["content"]["text"], "mail [EMAIL]");
    assert!(may.rest().await.is_empty(), "its author hears it once");
    let page = History { room, from: From::Newest, limit: 10, before_ms: None };
    assert!(node.asks(&eve, page).await.messages.is_empty());
    let long = may.refused("chat.spectator_message", chat(&"x".repeat(501))).await;
    assert_eq!(long, no("VALIDATION_FAILED", "data.content.text"));
    for number in 2..=10 {
        joe.gets("spectator.chat_message", json!({"text": number.to_string()})).await;
    }
    joe.gets("spectator.chat_message", json!({"text": "10"})).await;
    let answer = joe.ask("spectator.chat_message", json!({"text": "11"})).await;
    assert_eq!(answer["data"]["error_code"], "RATE_LIMIT_EXCEEDED");
    assert!(answer["data"]["retry_info"]["retry_after_seconds"].as_u64().unwrap() > 0);
    node.stop().await;
}

#[tokio::test]
async fn hosts_keep_their_talk_apart_or_have_none() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let apart = node.room(&eve, "apart", true).await;
    node.sets(&eve, apart, &[("spectator_chat", json!("isolated"))]).await;
    let mut ada = node.bare().await;
    ada.connect("human", KEY, "ada", Some("apart")).await;
    ada.settle().await;
    let (mut may, mut joe) = (node.spectator("apart").await, node.spectator("apart").await);
    let said = may.gets("chat.spectator_message", chat("among us")).await;
    assert_eq!(said["moderation"]["visible_to"], json!(["spectators"]));
    assert_eq!(joe.hears("chat.spectator_message").await["data"], said);
    assert!(ada.rest().await.is_empty());
    let quiet = node.room(&eve, "quiet", true).await;
    node.sets(&eve, quiet, &[("spectator_chat", json!("off"))]).await;
    let mut may = node.spectator("quiet").await;
    let refused = may.refused("chat.spectator_message", chat("x")).await;
    assert_eq!(refused, no("AUTHORIZATION_DENIED", "spectator_chat"));
    node.stop().await;
}

#[tokio::test]
async fn members_are_told_of_every_tenth_if_hosts_want_it_and_of_how_many_there_are() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let room = node.room(&eve, "open", true).await;
    node.sets(&eve, room, &[("announce_spectator_joins", json!(true))]).await;
    let mut ada = node.bare().await;
    ada.connect("human", KEY, "ada", Some("open")).await;
    ada.settle().await;
    let mut all = Vec::new();
    for _ in 0..ANNOUNCED_EVERY {
        all.push(node.spectator("open").await);
    }
    let told = ada.hears("room.spectator_joined").await["data"].clone();
    let stats = json!({"current_count": 10, "peak_today": 10, "total_unique_today": 10});
    assert_eq!((&told["spectator_stats"], &told["announcement_threshold"]), (&stats, &json!(10)));
    assert!(ada.rest().await.is_empty());
    let page = ("GET", &*format!("/api/rooms/{}", room.to_uuid()));
    assert_eq!(node.asks_page(page, &[], &Value::Null).await.1["spectator_count"], 10);
    drop(all);
    while node.asks_page(page, &[], &Value::Null).await.1["spectator_count"] != 0 {
        tokio::task::yield_now().await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_room_that_ends_or_closes_to_them_sends_them_away() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let room = node.room(&eve, "open", true).await;
    let mut client = node.spectator("open").await;
    node.sets(&eve, room, &[("spectators_allowed", json!(false))]).await;
    tokio::time::pause();
    tokio::time::sleep(crate::limits::LOOKED_AT_AGAIN + Duration::from_millis(10)).await;
    tokio::time::resume();
    assert_eq!(client.turned().await, "ACCESS_DENIED");
    node.stop().await;
}

#[tokio::test]
async fn one_that_sends_what_is_no_use_has_to_go() {
    let node = Node::new().await;
    let mut client = node.spectator("lobby").await;
    for _ in 0..crate::limits::BAD_FRAMES_MAX {
        client.send("{").await;
    }
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_stops_lets_them_go() {
    let node = Node::new().await;
    let mut client = node.spectator("lobby").await;
    let mut other = node.bare().await;
    other.gets("connection.request", request("spectator", None, "x", Some("lobby"))).await;
    node.stop().await;
    assert_eq!(client.ends().await, 1001);
    assert_eq!(other.ends().await, 1001);
}

/// One stranger does not take the places of all: one network has so many, whatever its addresses, and this machine and those with a key
/// have others.
#[tokio::test]
async fn those_without_a_key_of_one_network_have_so_many_places() {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let here = std::net::IpAddr::from([127, 0, 0, 1]);
    let config = Config { trusted_proxies: vec![here], ..keyed() };
    let node = Node::with(config, Settings::default()).await;
    let comes = async |from: &str, key: Option<&str>| {
        let mut request = format!("ws://{}/spectate/lobby", node.at).into_client_request().unwrap();
        request.headers_mut().insert("x-forwarded-for", from.parse().unwrap());
        if let Some(key) = key {
            let shown = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().insert("authorization", shown);
        }
        let (socket, _) = connect_async(request).await.unwrap();
        let mut client = Client { socket, heard: VecDeque::new(), bare: false };
        let first = client.next().await.unwrap();
        (client, first["type"] == "spectator.welcome")
    };
    let mut held = Vec::new();
    for nth in 0..crate::limits::SPECTATORS_OF_NETWORK_MAX {
        let (client, is_in) = comes(&format!("2001:db8::{nth:x}"), None).await;
        assert!(is_in, "{nth}");
        held.push(client);
    }
    let (mut turned, is_in) = comes("2001:db8::ffff", None).await;
    assert!(!is_in);
    assert_eq!(turned.ends().await, 1008);
    for (from, key) in
        [("2001:db8:0:1::1", None), ("127.0.0.1", None), ("2001:db8::ffff", Some(KEY))]
    {
        assert!(comes(from, key).await.1, "{from} {key:?}");
    }
    // A place that is left is free.
    drop(held.pop());
    while !comes("2001:db8::ffff", None).await.1 {
        tokio::task::yield_now().await;
    }
    node.stop().await;
}

#[tokio::test]
async fn strangers_see_no_print_of_a_key() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let mut client = node.spectator("lobby").await;
    let print = eve.key().0.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
    let person = names::principal(eve.key(), "ada");
    assert!(person.contains(&print));
    let task = node.asks(&eve, AssignTask(NewTask::of(lobby(), format!("for {person}")))).await;
    let held = TaskUpdate { assignee: Some(Some(person.clone())), ..TaskUpdate::of(task.task) };
    node.asks(&eve, ChangeTask(held)).await;
    ada.gets("chat.human_message", words("mine")).await;
    node.says(&eve, &format!("thanks, @{person}"), None).await;
    let seen = client.seen("thanks").await;
    let claimed = seen.iter().find(|event| event["type"] == "agent.claimed_task").unwrap();
    assert_eq!(
        (&claimed["data"]["agent_id"], &claimed["data"]["title"]),
        (&json!("ada"), &json!("for ada"))
    );
    let shown = json!(seen).to_string();
    assert!(!shown.contains(&print) && shown.contains("thanks, @ada"), "{shown}");
    let replay = |visitor: Visitor| {
        let desk = node.bridge.desk().clone();
        async move { desk.replay(&visitor, (lobby(), bridge::replay::Wish::default()), (0, 100)).await }
    };
    let mine = replay(eve.clone()).await.unwrap();
    assert!(json!([mine.meta, mine.events]).to_string().contains(&print), "members see it");
    let public = replay(Visitor::stranger()).await.unwrap();
    let public = json!([public.meta, public.events]).to_string();
    assert!(!public.contains(&print) && public.contains("@ada"), "{public}");
    node.stop().await;
}

#[tokio::test]
async fn a_room_has_a_thousand_who_look_on_and_no_more_if_its_hosts_say_nothing() {
    use crate::{limits::SPECTATORS_DEFAULT_MAX, spectators::talk, style::Style};
    let tank = ClawTank::new(lobby(), Settings::default());
    let opened = tank.shared.clone();
    let node = Node::speaking(keyed(), tank).await;
    let shared = opened.get().unwrap();
    let eyes = bridge::shown::Eyes::Strangers;
    let style = Style { form: crate::Form::Prefixed, lobby: lobby(), eyes };
    let wish = || talk::Wish { room: "lobby".to_owned(), key: None, name: None, style, from: None };
    let mut here = Vec::new();
    for _ in 0..SPECTATORS_DEFAULT_MAX {
        let admitted = talk::admit(shared, wish()).await;
        here.push(admitted.map_err(|turned| format!("{turned:?}")).unwrap().0);
    }
    assert_eq!(node.at("/spectate/lobby").await.turned().await, "CAPACITY_EXCEEDED");
    // Another room is not full, and a place that is left is free.
    let eve = node.other("eve").await;
    node.room(&eve, "other", true).await;
    node.spectator("other").await;
    drop(here.pop());
    let last = node.spectator("lobby").await;
    assert_eq!(node.at("/spectate/lobby").await.turned().await, "CAPACITY_EXCEEDED");
    drop((here, last));
    node.stop().await;
}
