//! Policies of the operator, as ClawChat's clients meet them: in direct rooms alone.

use std::sync::Arc;

use bridge::{
    Config,
    policy::{Action, ChatType, Policies, SendPolicy, SendRule},
    testing::{Fake, keyed},
};
use mesh::{
    api::policy::{AgentToAgent, Inbound, Pattern, Policies as CorePolicies},
    wire::acts::Tier,
};
use serde_json::{Value, json};

use super::keys::{FREE, PRO, mint};
use crate::local::Local;

/// Ann and Bob, of two keys, at a node with these policies.
fn two(core: CorePolicies, policies: Policies) -> [Local; 2] {
    let (fake, _) = Fake::with(core);
    mint(&fake, FREE, Tier::Low);
    mint(&fake, PRO, Tier::High);
    let policies = Arc::new(policies);
    [(FREE, "ann"), (PRO, "bob")].map(|(key, agent)| {
        let config = Config { policies: policies.clone(), ..keyed() };
        let mut client = Local::fresh(&fake, config);
        client.call("register", json!({"key": key, "name": agent, "agent_id": agent}));
        client.call("join_room", json!({"room_id": "lobby"}));
        client
    })
}

fn refused(client: &mut Local, kind: &str, payload: Value) -> (String, String) {
    let reply = client.ask(kind, payload);
    let text = |field: &str| reply["payload"][field].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

#[test]
fn agents_that_may_not_write_to_each_other_open_no_direct_room() {
    let allow = vec![Pattern::new("a*")];
    let agent_to_agent = AgentToAgent { enabled: true, allow };
    let policies = Policies { agent_to_agent, ..Policies::default() };
    let [mut ann, mut bob] = two(CorePolicies::default(), policies);
    let text = "agent-to-agent messages between ann and bob are not allowed on this node";
    let denied = refused(&mut ann, "create_room", json!({"name": "dm:bob"}));
    assert_eq!(denied, ("access_denied".to_owned(), text.to_owned()));
    assert!(bob.event("room_created").is_none());
    ann.call("create_room", json!({"name": "dm:ann"}));
    ann.call("send_message", json!({"room_id": "lobby", "content": "hello, all"}));
}

#[test]
fn rules_about_sending_hold_in_direct_rooms_and_not_in_those_of_many() {
    let deny = |chat_type| SendRule {
        provider: None,
        chat_type: Some(chat_type),
        key_prefix: None,
        action: Action::Deny,
    };
    let rules = vec![deny(ChatType::Channel), deny(ChatType::Direct)];
    let send = SendPolicy { default: Action::Allow, rules };
    let policies = Policies { send, ..Policies::default() };
    let [mut ann, _bob] = two(CorePolicies::default(), policies);
    let denied = refused(&mut ann, "create_room", json!({"name": "dm:bob"}));
    let text = "sending to agent:bob:main is denied by policy";
    assert_eq!(denied, ("access_denied".to_owned(), text.to_owned()));
    ann.call("send_message", json!({"room_id": "lobby", "content": "hello, all"}));
}

#[test]
fn a_direct_room_that_is_there_is_denied_too_for_words_and_for_tasks() {
    let policies = Arc::new(Policies::default());
    let (fake, _) = Fake::new();
    mint(&fake, FREE, Tier::Low);
    mint(&fake, PRO, Tier::High);
    let mut clients = [(FREE, "ann"), (PRO, "bob")].map(|(key, agent)| {
        let config = Config { policies: policies.clone(), ..keyed() };
        let mut client = Local::fresh(&fake, config);
        client.call("register", json!({"key": key, "name": agent, "agent_id": agent}));
        client
    });
    let room = clients[0].call("create_room", json!({"name": "dm:bob"}))["room_id"].clone();
    let say = json!({"room_id": room, "content": "hello"});
    clients[0].call("send_message", say.clone());
    let marked = bridge::policy::Marked { agent: None, key: "agent:bob:main".to_owned() };
    let all = policies.marks.changed(marked, |mark| mark.sending = Some(Action::Deny));
    policies.marks.replace(all.unwrap());
    assert_eq!(clients[0].code("send_message", say.clone()), "access_denied");
    let task = json!({"room_id": room, "title": "dig", "assignee": "bob"});
    assert_eq!(clients[0].code("assign_task", task), "access_denied");
    clients[1].call("send_message", say);
}

#[test]
fn an_agent_that_takes_none_of_another_key_is_told_nothing_of_it() {
    let core = CorePolicies { inbound: Inbound::Key, ..CorePolicies::default() };
    let [mut ann, mut bob] = two(core, Policies::default());
    let denied = refused(&mut ann, "create_room", json!({"name": "dm:bob"}));
    let text = "agent bob takes no messages from ann";
    assert_eq!(denied, ("access_denied".to_owned(), text.to_owned()));
    assert!(bob.event("room_created").is_none());
    let listed = bob.call("list_rooms", json!({}));
    assert_eq!(listed["rooms"].as_array().unwrap().len(), 1, "the lobby alone: {listed}");
}

#[test]
fn words_that_an_agent_was_not_given_are_neither_pushed_when_it_comes_nor_answered() {
    let core = CorePolicies { inbound: Inbound::Known, ..CorePolicies::default() };
    let (fake, _) = Fake::with(core);
    mint(&fake, FREE, Tier::Low);
    mint(&fake, PRO, Tier::High);
    let come = |key: &str, agent: &str| {
        let mut client = Local::fresh(&fake, keyed());
        client.call("register", json!({"key": key, "name": agent, "agent_id": agent}));
        client
    };
    let (mut ann, bob) = (come(FREE, "ann"), come(PRO, "bob"));
    bob.hang_up();
    let room = ann.call("create_room", json!({"name": "dm:bob"}))["room_id"].clone();
    let say = |text: &str| json!({"room_id": room, "content": text, "mentions": ["bob"]});
    let asked = ann.call("send_message", say("buy this?"));
    let mut bob = come(PRO, "bob");
    assert_eq!(bob.kinds(), Vec::<String>::new(), "nothing of it");
    let said = bob.call("send_message", json!({"room_id": room, "content": "who is there?"}));
    assert_eq!(said["mesh"]["session"].get("answers"), None, "it was asked nothing: {said}");
    assert_ne!(asked["mesh"]["session"], Value::Null);
    let again = ann.call("send_message", say("ann"));
    assert_eq!(bob.event("message_received").unwrap(), again, "it has written to her");
}
