//! Keys: which are valid, how much they may say, and their end.

use std::time::Duration;

use mesh::{
    api::{
        agenda::{NewKey, Standing},
        command::{Command, Refused},
    },
    name::{
        id::{KeyPrint, RoomKey},
        key::KeySecret,
    },
    wire::acts::{KeyMinted, KeyTerms, Scope, Tier},
};
use serde_json::json;

use bridge::{
    config::{Auth, Config, Quota},
    delivery::ending::Ending,
    testing::{Fake, here, keyed},
};

use crate::local::Local;

/// A node that lets its own key send three messages a minute, of ten bytes.
fn stingy() -> Config {
    let mut config = keyed();
    config.quotas.own = Quota { messages_per_minute: Some(3), content_bytes_max: 10 };
    config
}

#[test]
fn all_connections_of_a_key_share_its_minute() {
    let (fake, _) = Fake::new();
    let [mut a, mut b] = ["a", "b"].map(|id| {
        let mut it = Local::fresh(&fake, stingy());
        assert_eq!(it.register(id)["type"], "ok");
        it.call("join_room", json!({"room_id": "lobby"}));
        it
    });
    let text = |text: &str| json!({"room_id": "lobby", "content": text});
    assert_eq!(a.code("send_message", text("12345678901")), "message_too_large");
    a.call("send_message", text("1234567890"));
    b.call("thinking", text("hm"));
    assert_eq!(a.code("decision", text("go")), "not_leader", "it was counted");
    for kind in ["send_message", "thinking", "decision"] {
        assert_eq!(a.code(kind, text("x")), "rate_limit_messages", "{kind}");
        assert_eq!(b.code(kind, text("x")), "rate_limit_messages", "{kind}");
    }
    let id = "00000000-0000-8000-8000-000000000000";
    for (kind, act) in [
        ("create_vote", json!({"room_id": "lobby", "title": "t", "options": ["a", "b"]})),
        ("cast_vote", json!({"vote_id": id, "option_index": 0})),
        ("elect_leader", json!({"room_id": "lobby"})),
        ("decline_election", json!({"room_id": "lobby"})),
        ("assign_task", json!({"room_id": "lobby", "title": "t"})),
        ("update_task", json!({"task_id": id, "status": "completed"})),
        ("subscribe", json!({"room_id": "lobby", "webhook_url": "http://a", "secret": "s"})),
        ("subscribe", json!({"room_id": "no id", "webhook_url": "http://a", "secret": "s"})),
    ] {
        assert_eq!(a.code(kind, act), "rate_limit_messages", "{kind}");
    }
    b.call("set_typing", json!({"room_id": "lobby"}));
    a.call("list_tasks", json!({"room_id": "lobby"}));
    a.line.now += Duration::from_secs(61);
    a.call("assign_task", json!({"room_id": "lobby", "title": "t"}));
    a.call("send_message", text("x"));
    b.call("thinking", text("x"));
    assert_eq!(a.code("send_message", text("x")), "rate_limit_messages", "the act was counted");
}

#[test]
fn quotas_follow_what_the_key_is() {
    let free = Standing::Minted { tier: Tier::Low, writes: true, approves: true };
    let pro = Standing::Minted { tier: Tier::High, writes: true, approves: true };
    let config = keyed();
    let of = |standing| {
        let quota = config.quota(standing);
        (quota.messages_per_minute, quota.content_bytes_max)
    };
    assert_eq!(of(Standing::Own), (None, 65_536));
    assert_eq!(of(free), (Some(200), 65_536));
    assert_eq!(of(pro), (Some(2_000), 262_144));
    let open = Config::new(Auth::Open, here());
    assert_eq!(open.quota(Standing::Own).messages_per_minute, None);
}

pub(super) const FREE: &str = "a key of the free tier, in tests";
pub(super) const PRO: &str = "a key of the pro tier, used in tests";
const MINTED: &str = "a key that somebody minted for tests";

pub(super) fn mint(fake: &Fake, key: &str, tier: Tier) {
    let minted = KeyMinted::sign(&KeySecret::of(key), &here(), KeyTerms::of(tier)).unwrap();
    fake.does(Command::MintKey(NewKey { minted: Box::new(minted), local: false })).unwrap();
}

#[test]
fn a_minted_key_registers_and_has_the_quota_of_its_tier() {
    let (fake, _) = Fake::new();
    let ask = |key: &str| json!({"key": key, "name": "n"});
    assert_eq!(Local::fresh(&fake, keyed()).code("register", ask(FREE)), "unauthorized");
    mint(&fake, FREE, Tier::Low);
    mint(&fake, PRO, Tier::High);
    let sends = |key: &str, times: usize| {
        let mut it = Local::fresh(&fake, keyed());
        it.call("register", ask(key));
        it.call("join_room", json!({"room_id": "lobby"}));
        for _ in 0..times {
            it.call("send_message", json!({"room_id": "lobby", "content": "x"}));
        }
        it
    };
    let text = |len| json!({"room_id": "lobby", "content": "x".repeat(len)});
    let mut free = sends(FREE, 199);
    assert_eq!(free.code("send_message", text(65_537)), "message_too_large");
    free.call("send_message", text(1));
    assert_eq!(free.code("send_message", text(1)), "rate_limit_messages");
    let mut pro = sends(PRO, 201);
    pro.call("send_message", text(262_144));
    assert_eq!(pro.code("send_message", text(262_145)), "message_too_large");
    let mut own = Local::agent(&fake, "own");
    own.call("join_room", json!({"room_id": "lobby"}));
    for _ in 0..300 {
        own.call("send_message", text(1));
    }
    assert_eq!(own.code("send_message", text(65_537)), "message_too_large");
}

#[test]
fn a_key_has_so_many_agents_and_rooms() {
    let (fake, _) = Fake::new();
    mint(&fake, FREE, Tier::Low);
    let ask = json!({"key": FREE, "name": "n"});
    let mut agents: Vec<Local> = (0..20)
        .map(|_| {
            let mut it = Local::fresh(&fake, keyed());
            it.call("register", ask.clone());
            it
        })
        .collect();
    let mut late = Local::fresh(&fake, keyed());
    assert_eq!(late.code("register", ask), "rate_limit_agents");
    assert!(!late.is_open());
    let first = &mut agents[0];
    for nth in 0..50 {
        first.call("create_room", json!({"name": format!("r{nth}")}));
    }
    assert_eq!(first.code("create_room", json!({"name": "r50"})), "rate_limit_rooms");
}

#[test]
fn connections_of_a_revoked_key_are_told_so_and_end() {
    let (fake, _) = Fake::new();
    mint(&fake, FREE, Tier::Low);
    let mut own = Local::agent(&fake, "own");
    own.call("join_room", json!({"room_id": "lobby"}));
    let mut it = Local::fresh(&fake, keyed());
    it.call("register", json!({"key": FREE, "name": "n", "agent_id": "it"}));
    it.call("join_room", json!({"room_id": "lobby"}));
    fake.does(Command::RevokeKey { key: KeyPrint::of(FREE) }).unwrap();
    assert_eq!(it.event("error").unwrap()["code"], "unauthorized");
    assert!(!it.is_open());
    assert_eq!(it.line.ending(), Ending::Revoked);
    it.hang_up();
    assert!(own.is_open());
    assert_eq!(own.event("agent_left").unwrap()["agent_id"], "it");
    let mut late = Local::fresh(&fake, keyed());
    assert_eq!(late.code("register", json!({"key": FREE, "name": "n"})), "unauthorized");
}

#[test]
fn a_key_that_is_not_the_nodes_own_is_for_the_mesh_to_judge() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, keyed());
    *fake.knobs.script.lock().unwrap() = Some(Err(Refused::NoKey));
    assert_eq!(it.code("register", json!({"key": MINTED, "name": "n"})), "unauthorized");
    let Some(Command::Attach(asked)) = fake.knobs.scripted.lock().unwrap().take() else {
        panic!("not asked to attach")
    };
    assert_eq!((asked.key, asked.own), (KeyPrint::of(MINTED), false));
    assert!(asked.opener == Some(RoomKey::of(MINTED)));
    // What is wrong with the rest is told to those with a valid key alone.
    mint(&fake, MINTED, Tier::Low);
    let nameless = |key: &str| json!({"key": key, "name": " "});
    let mut it = Local::fresh(&fake, keyed());
    assert_eq!(it.code("register", nameless(MINTED)), "invalid_payload");
    assert!(it.is_open());
    assert_eq!(it.code("register", nameless("nope")), "unauthorized");
    assert!(!it.is_open());
}

#[test]
fn who_shows_no_key_at_a_node_that_asks_for_none_does_not_see_what_is_sealed() {
    let (fake, _) = Fake::new();
    mint(&fake, MINTED, Tier::High);
    let mut owner = Local::fresh(&fake, keyed());
    owner.call("register", json!({"key": MINTED, "name": "owner"}));
    let mut open = Local::fresh(&fake, Config::new(Auth::Open, here()));
    open.call("register", json!({"key": "", "name": "open", "agent_id": "open"}));

    for (name, ephemeral) in [("plan", false), ("talk", true)] {
        let made = owner.call("create_room", json!({"name": name, "ephemeral": ephemeral}));
        let room = json!({"room_id": made["room_id"]});
        owner.call("join_room", room.clone());
        let said = json!({"room_id": made["room_id"], "content": "hush", "mentions": ["open"]});
        owner.call("send_message", said);
        for kind in ["get_history", "room_tip", "join_room", "list_votes", "list_tasks"] {
            assert_eq!(open.code(kind, room.clone()), "access_denied", "{kind}");
        }
        owner.call("leave_room", room);
    }
    assert!(open.kinds().is_empty(), "no room_created, mention or room_destroyed");
    // What a key of the node itself has is nobody's secret there.
    let mut own = Local::agent(&fake, "own");
    let made = own.call("create_room", json!({"name": "desk"}));
    open.call("room_tip", json!({"room_id": made["room_id"]}));
    assert_eq!(open.event("room_created").unwrap()["name"], "desk");
}

#[test]
fn messages_say_whether_their_authors_key_has_vouched_for_them_and_whether_it_was_revoked() {
    let (fake, _) = Fake::new();
    mint(&fake, PRO, Tier::High);
    let mut own = Local::agent(&fake, "own");
    own.call("join_room", json!({"room_id": "lobby"}));
    let mut it = Local::fresh(&fake, keyed());
    it.call("register", json!({"key": PRO, "name": "it"}));
    it.call("join_room", json!({"room_id": "lobby"}));
    let sent = it.call("send_message", json!({"room_id": "lobby", "content": "x"}));
    assert_eq!(sent["mesh"], json!({"verified": true}));
    assert_eq!(own.event("message_received").unwrap(), sent);
    let ask = json!({"room_id": "lobby"});
    assert_eq!(own.call("get_history", ask.clone())["messages"][0], sent);
    let agents = own.call("list_agents", ask.clone());
    let key = KeyPrint::of(PRO).to_string();
    let listed = agents["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "it");
    assert_eq!(listed.unwrap()["mesh"]["verified"], true);
    assert_eq!(listed.unwrap()["mesh"]["key"], json!(key));
    fake.does(Command::RevokeKey { key: KeyPrint::of(PRO) }).unwrap();
    let shown = own.call("get_history", ask)["messages"][0].clone();
    assert_eq!(shown["mesh"], json!({"key_revoked": true}));
    // Nobody has shown a key where none is checked.
    let mut open = Local::fresh(&fake, Config::new(Auth::Open, here()));
    open.call("register", json!({"key": "", "name": "open"}));
    open.call("join_room", json!({"room_id": "lobby"}));
    let sent = open.call("send_message", json!({"room_id": "lobby", "content": "x"}));
    assert!(sent.get("mesh").is_none(), "{sent}");
}

#[test]
fn agents_of_a_key_that_only_reads_join_and_read_and_do_nothing_else() {
    let (fake, _) = Fake::new();
    let scopes = Some([Scope::Read].into_iter().collect());
    let terms = KeyTerms { scopes, ..KeyTerms::of(Tier::High) };
    let minted = KeyMinted::sign(&KeySecret::of(MINTED), &here(), terms).unwrap();
    fake.does(Command::MintKey(NewKey { minted: Box::new(minted), local: false })).unwrap();
    let mut own = Local::agent(&fake, "own");
    own.call("join_room", json!({"room_id": "lobby"}));
    let ask = json!({"room_id": "lobby", "title": "t", "options": ["a", "b"]});
    let vote = own.call("create_vote", ask);
    let task = own.call("assign_task", json!({"room_id": "lobby", "title": "t"}));
    let mut it = Local::fresh(&fake, keyed());
    it.call("register", json!({"key": MINTED, "name": "n", "agent_id": "it"}));
    it.call("join_room", json!({"room_id": "lobby"}));
    own.call("send_message", json!({"room_id": "lobby", "content": "x"}));
    assert_eq!(it.event("message_received").unwrap()["content"], "x");
    let history = it.call("get_history", json!({"room_id": "lobby"}));
    assert_eq!(history["messages"].as_array().unwrap().len(), 1);
    it.call("list_rooms", json!({}));
    it.call("get_vote_status", json!({"vote_id": vote["vote_id"]}));
    it.call("list_tasks", json!({"room_id": "lobby"}));
    for (request, payload) in [
        ("send_message", json!({"room_id": "lobby", "content": "x"})),
        ("thinking", json!({"room_id": "lobby", "content": "x"})),
        ("decision", json!({"room_id": "lobby", "content": "x"})),
        ("create_room", json!({"name": "mine"})),
        ("set_typing", json!({"room_id": "lobby", "typing": true})),
        ("set_presence", json!({"status": "idle"})),
        ("set_profile", json!({"name": "N"})),
        ("create_vote", json!({"room_id": "lobby", "title": "t", "options": ["a", "b"]})),
        ("cast_vote", json!({"vote_id": vote["vote_id"], "option_index": 0})),
        ("unsubscribe", json!({"subscription_id": "x"})),
        ("enable_subscription", json!({"subscription_id": "x"})),
        ("decline_election", json!({"room_id": "lobby"})),
        ("elect_leader", json!({"room_id": "lobby"})),
        ("assign_task", json!({"room_id": "lobby", "title": "t"})),
        ("update_task", json!({"task_id": task["task_id"], "status": "completed"})),
        (
            "subscribe",
            json!({"room_id": "lobby", "webhook_url": "https://example.org/", "secret": "s"}),
        ),
    ] {
        assert_eq!(it.code(request, payload), "access_denied", "{request}");
    }
    it.call("leave_room", json!({"room_id": "lobby"}));
}
