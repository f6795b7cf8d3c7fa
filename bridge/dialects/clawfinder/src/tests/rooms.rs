//! Rooms of agents that have a ClawChat key: mail is in them, and what is said there is mail.

use bridge::{
    read::Visitor,
    seam::{
        call::{Attach, CreateRoom, From, History, Identity, Join, ListRooms, Say},
        event::Message,
    },
    secret::Secret,
    testing::{KEY, OTHER_KEY},
};
use mesh::{
    api::command::{NewRoom, RoomView},
    name::id::RoomId,
};

use super::*;

impl Node {
    /// Links an agent of the node's own key.
    pub(super) async fn link(&self, agent: &str, username: &str) -> Answer {
        self.link_with(KEY, agent, username).await
    }

    async fn link_with(&self, key: &str, agent: &str, username: &str) -> Answer {
        let body = json!({
            "hosted": true, "agent_id": agent, "username": username, "name": "An agent",
            "payment_methods": ["invoice"],
        });
        let body = body.to_string();
        let request = format!(
            "POST /api/agents/register/ HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             x-clawchat-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.at,
            body.len()
        );
        self.send(request.as_bytes()).await
    }

    /// The agent, as it is attached.
    async fn attached(&self, agent: &str) -> Visitor {
        let attach = Attach {
            key: Secret::new(KEY),
            name: agent.to_owned(),
            identity: Identity::Named(agent.to_owned()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: PATIENCE,
        };
        self.desk.host(attach).await.unwrap().visitor
    }

    /// A room of the key, once it is there.
    async fn room(&self, name: &str) -> RoomView {
        let holder = self.desk.holder(Secret::new(KEY)).await.unwrap();
        until(async || {
            let rooms = self.desk.ask(&holder, ListRooms { parent: None }).await.unwrap();
            rooms.into_iter().find(|room| *room.name == *name)
        })
        .await
    }

    async fn messages(&self, room: RoomId) -> Vec<Message> {
        let holder = self.desk.holder(Secret::new(KEY)).await.unwrap();
        let call = History { room, from: From::Newest, limit: 100, before_ms: None };
        self.desk.ask(&holder, call).await.unwrap().messages
    }

    /// The messages of a room, once there are so many.
    async fn said(&self, room: RoomId, count: usize) -> Vec<Message> {
        until(async || Some(self.messages(room).await).filter(|all| all.len() >= count)).await
    }

    /// The inbox of an account, once it has so many mails.
    async fn inbox(&self, of: &Agent, count: u64) -> Value {
        until(async || {
            let inbox = self.ask("GET", "/api/agents/me/inbox/", Some(&of.key), None).await.ok();
            (inbox["count"].as_u64() >= Some(count)).then_some(inbox)
        })
        .await
    }

    /// A hosted account of somebody else.
    async fn hosted(&self, username: &str) -> Agent {
        let body = json!({
            "hosted": true, "username": username, "name": username, "payment_methods": ["invoice"],
        });
        let made = self.post("/api/agents/register/", None, &body).await.ok();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Agent { key: text("api_key"), id: text("id") }
    }

    async fn mail(&self, from: &Agent, to: &str, (subject, body): (&str, &str)) -> String {
        let mail = json!({"recipient_id": to, "subject": subject, "body": body});
        let sent = self.post("/api/agents/me/send/", Some(&from.key), &mail).await.ok();
        sent["id"].as_str().unwrap().to_owned()
    }

    /// A private room that an agent makes, and is in.
    async fn own_room(&self, agent: &Visitor, name: &str) -> RoomId {
        let new = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public: false,
            encrypted: false,
        };
        let room = self.desk.ask(agent, CreateRoom(new)).await.unwrap().room;
        self.desk.ask(agent, Join(room)).await.unwrap();
        room
    }

    async fn say(&self, by: &Visitor, say: Say) -> String {
        self.desk.ask(by, say).await.unwrap().message.to_uuid()
    }
}

/// Looks until there is something.
async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("it comes")
}

fn told(message: &Message) -> Value {
    serde_json::from_str(message.said.metadata.as_deref().unwrap()).unwrap()
}

#[tokio::test]
async fn who_shows_its_key_has_its_agent_linked() {
    let node = Node::new().await;
    let none = node.link_with("a key that nobody has made, of 32", "ann", "ann-bot").await;
    let text = "agent_id: The key in X-ClawChat-Key is not valid at this node.";
    none.is(400, &format!("Bad Request: {text}"));
    let body = json!({"hosted": true, "agent_id": "ann", "username": "ann-bot", "name": "Ann"});
    let shown = "Bad Request: agent_id: Show the ClawChat key of this agent in X-ClawChat-Key.";
    node.post("/api/agents/register/", None, &body).await.is(400, shown);
    let made = node.link("ann", "ann-bot").await.ok();
    assert!(made.get("api_key").is_none(), "{made}");
    assert_eq!((&made["mesh"]["hosted"], &made["mesh"]["proven"]), (&json!(true), &json!(true)));
    assert_eq!(made["mesh"]["host"], json!(here().node.to_string()));
    // Again: it is the same account.
    let again = node.link("ann", "Ann-Bot").await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(again.ok()["id"], made["id"]);
    let other = node.link("ann", "tom").await;
    assert!(other.reason.starts_with("Bad Request: username: This agent is ann-bot"), "{other:?}");
    // An id of another key is none of this one's.
    let taken = node.link("mcp-0123456789abcdef-x", "x-bot").await;
    taken.is(400, "Bad Request: agent_id: This agent id is another key's.");
    assert_ne!(OTHER_KEY, KEY);
    node.stop().await;
}

#[tokio::test]
async fn mail_is_a_conversation_in_a_room_of_the_agent() {
    let node = Node::new().await;
    let ann = node.link("ann", "ann-bot").await.ok();
    let bob = node.hosted("bob").await;
    let text = "Line one\n\nand \u{e9}";
    let id = node.mail(&bob, "ann-bot", ("An offer", text)).await;
    let room = node.room("finder:bob").await;
    assert!(!room.public && room.created_by.as_ref().unwrap().starts_with("mcp-"), "{room:?}");
    let messages = node.said(room.room, 1).await;
    let said = &messages[0].said;
    assert_eq!(said.content, format!("Subject: An offer\n\n{text}"));
    assert_eq!(said.name, "bob");
    let metadata = told(&messages[0]);
    assert_eq!(metadata["kind"], "finder_mail");
    let finder = &metadata["finder"];
    assert_eq!((&finder["id"], &finder["sender_id"]), (&json!(id), &json!(bob.id)));
    assert_eq!((&finder["signature"], &finder["form"]), (&json!("good"), &json!("pgp")));
    // It answers there, and has read what was said before.
    let agent = node.attached("ann").await;
    let room = node.room("finder:bob").await;
    assert!(room.on_record.iter().any(|member| *member.agent == *"ann"), "{room:?}");
    let reply = messages[0].message.to_uuid();
    let answer = Say { reply_to: Some(reply), ..Say::chat(room.room, "I take it.".to_owned()) };
    node.say(&agent, answer).await;
    node.say(&agent, Say::chat(room.room, "Subject: Tea\n\nAt four".to_owned())).await;
    let inbox = node.inbox(&bob, 2).await;
    let subjects: Vec<&Value> =
        inbox["results"].as_array().unwrap().iter().map(|row| &row["subject"]).collect();
    assert_eq!(subjects, ["Tea", "Re: An offer"]);
    let first = inbox["results"][1]["id"].as_str().unwrap();
    let path = format!("/api/agents/me/inbox/{first}/");
    let read = node.ask("GET", &path, Some(&bob.key), None).await.ok();
    assert_eq!((&read["body"], &read["sender_id"]), (&json!("I take it."), &ann["id"]));
    assert_eq!(read["mesh"]["signature"], "good");
    let path = format!("/api/agents/me/sent/{id}/");
    until(async || {
        let sent = node.ask("GET", &path, Some(&bob.key), None).await.ok();
        (sent["mesh"]["state"] == "read").then_some(())
    })
    .await;
    // Nothing is there twice, also for a host that begins anew.
    node.anew().await;
    node.mail(&bob, "ann-bot", ("More", "x")).await;
    let messages = node.said(room.room, 4).await;
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert_eq!(node.inbox(&bob, 2).await["count"], 2);
    node.stop().await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_answered() {
    let node = Node::new().await;
    node.link("ann", "ann-bot").await.ok();
    let bob = node.hosted("bob").await;
    node.mail(&bob, "ann-bot", ("", "x")).await;
    let room = node.room("finder:bob").await.room;
    node.said(room, 1).await;
    let agent = node.attached("ann").await;
    let step = "protocol: clawfinder/1\ntype: EXECUTE\nsession_id: s1\n\nwork".to_owned();
    let refused = node.say(&agent, Say::chat(room, step)).await;
    let messages = node.said(room, 3).await;
    let last = messages.last().unwrap();
    assert_eq!(last.said.reply_to.as_deref(), Some(&*refused));
    let why = told(last);
    assert_eq!(why["kind"], "finder_refused");
    let reason = why["finder"]["reason"].as_str().unwrap();
    assert!(reason.contains("no session s1"), "{reason}");
    assert_eq!(last.said.content, format!("This message was not sent: {reason}"));
    // Not again, after a start.
    node.anew().await;
    node.mail(&bob, "ann-bot", ("", "y")).await;
    node.said(room, 4).await;
    assert_eq!(node.messages(room).await.len(), 4);
    assert_eq!(node.inbox(&bob, 0).await["count"], 0);
    node.stop().await;
}

#[tokio::test]
async fn a_negotiation_is_written_in_the_room() {
    let node = Node::new().await;
    node.link("ann", "ann-bot").await.ok();
    let bob = node.hosted("bob").await;
    let job = node.job(&bob, "Work").await;
    let agent = node.attached("ann").await;
    // The agent begins: a room of its own with the right name.
    let room = node.own_room(&agent, "finder:bob").await;
    let init = format!("protocol: clawfinder/1\ntype: init\njob_ref: {job}\nneed: help\n");
    node.say(&agent, Say::chat(room, init)).await;
    let inbox = node.inbox(&bob, 1).await;
    let mail = &inbox["results"][0];
    let session = mail["mesh"]["negotiation"]["session_id"].as_str().unwrap();
    assert_eq!(mail["subject"], format!("negotiate:init:{session}"));
    let path = format!("/api/agents/me/inbox/{}/", mail["id"].as_str().unwrap());
    let read = node.ask("GET", &path, Some(&bob.key), None).await.ok();
    assert_eq!(read["mesh"]["negotiation"]["violations"], json!([]), "{read}");
    assert_eq!(read["mesh"]["negotiation"]["fields"]["consumer_username"], "ann-bot");
    let ack = json!({"type": "ack", "to": "ann-bot", "session_id": session, "capabilities": "c", "pricing": "p"});
    node.post("/api/agents/me/negotiate/", Some(&bob.key), &ack).await.ok();
    let messages = node.said(room, 2).await;
    let negotiation = &told(&messages[1])["finder"]["negotiation"];
    assert_eq!((&negotiation["type"], &negotiation["state"]), (&json!("ack"), &json!("acked")));
    assert_eq!(negotiation["fields"]["capabilities"], "c");
    node.stop().await;
}

#[tokio::test]
async fn thinking_and_words_of_others_stay_in_the_room() {
    let node = Node::new().await;
    node.link("ann", "ann-bot").await.ok();
    let bob = node.hosted("bob").await;
    let (agent, other) = (node.attached("ann").await, node.attached("eve").await);
    let room = node.own_room(&agent, "finder:bob").await;
    node.desk.ask(&other, Join(room)).await.unwrap();
    node.say(&other, Say::chat(room, "from eve".to_owned())).await;
    let thinking = mesh::api::command::Speech::Thinking;
    node.say(&agent, Say { speech: thinking, ..Say::chat(room, "hm".to_owned()) }).await;
    node.say(&agent, Say::chat(room, "from ann".to_owned())).await;
    let inbox = node.inbox(&bob, 1).await;
    let path = format!("/api/agents/me/inbox/{}/", inbox["results"][0]["id"].as_str().unwrap());
    let read = node.ask("GET", &path, Some(&bob.key), None).await.ok();
    assert_eq!((&inbox["count"], &read["body"]), (&json!(1), &json!("from ann")));
    node.stop().await;
}

#[tokio::test]
async fn a_deleted_account_has_no_host() {
    let node = Node::new().await;
    node.link("ann", "ann-bot").await.ok();
    let kept = node.desk.kept(b"finder/".to_vec()).await.unwrap();
    assert_eq!(kept.len(), 1);
    let signer = mesh::name::key::KeySecret::of(KEY);
    let key = crate::linked::key_of(&signer, &"ann".into(), 0).unwrap();
    node.delete("/api/agents/me/", key.expose()).await.ok();
    until(async || node.desk.kept(b"finder/".to_vec()).await.unwrap().is_empty().then_some(()))
        .await;
    // The next one is another account, with a host again.
    assert_ne!(node.link("ann", "ann-bot").await.ok()["id"], Value::Null);
    assert_eq!(node.desk.kept(b"finder/".to_vec()).await.unwrap().len(), 1);
    node.stop().await;
}
