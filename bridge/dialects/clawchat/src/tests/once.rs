//! Things that at most one agent does: how they are asked for, answered and told.

use std::{sync::Arc, time::Duration};

use mesh::{
    api::{
        command::{Command, Outcome, Refused},
        event::RoomEvent,
        once::{OnceAnswered, OnceHolder, OnceLost, OnceWant, WhyLost},
    },
    name::id::MessageId,
};
use serde_json::{Value, json};

use bridge::testing::Fake;

use crate::local::{Local, room};

const GRANT: MessageId = MessageId([7; 16]);
const OTHER: MessageId = MessageId([8; 16]);

fn holder(agent: &str, grant: MessageId, lease: Option<Duration>) -> Option<OnceHolder> {
    Some(OnceHolder { agent: agent.into(), grant, lease })
}

#[test]
fn an_agent_asks_and_hears_who_has_it() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "a");
    let made = a.call("create_room", json!({"name": "r", "public": true}));
    let (name, id) = (made["room_id"].clone(), room(&made));
    a.call("join_room", json!({"room_id": name}));
    let mut ask = |answer: OnceAnswered, more: Value| {
        *fake.knobs.script.lock().unwrap() = Some(Ok(Outcome::Once(Box::new(answer))));
        let mut payload = json!({"room_id": name, "subject": "deploy"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = a.call("once", payload);
        let asked = fake.knobs.scripted.lock().unwrap().take().expect("the mesh is asked");
        let Command::Once(once) = asked else { panic!("{asked:?}") };
        assert_eq!((once.room, &*once.subject), (id, "deploy"));
        (reply, once.want)
    };
    let lease = Some(Duration::from_secs(30));
    let answer = |granted, holder, durable| OnceAnswered {
        subject: "deploy".to_owned(),
        granted,
        holder,
        durable,
    };
    let (reply, want) =
        ask(answer(true, holder("a", GRANT, lease), Some(2)), json!({"lease_ms": 30_000}));
    assert_eq!(want, OnceWant::Take(lease));
    let shown = json!({
        "room_id": name, "subject": "deploy", "granted": true, "agent_id": "a",
        "grant_id": GRANT.to_uuid(), "lease_ms": 30_000, "durable": 2,
    });
    assert_eq!(reply, shown);
    let (reply, want) = ask(answer(false, holder("b", OTHER, None), None), json!({}));
    assert_eq!(want, OnceWant::Take(None));
    let shown = json!({
        "room_id": name, "subject": "deploy", "granted": false, "agent_id": "b",
        "grant_id": OTHER.to_uuid(),
    });
    assert_eq!(reply, shown);
    let (_, want) = ask(answer(false, None, None), json!({"renew": GRANT.to_uuid()}));
    assert_eq!(want, OnceWant::Renew(GRANT));
    let (reply, want) = ask(answer(true, None, Some(1)), json!({"release": GRANT.to_uuid()}));
    assert_eq!(want, OnceWant::Release(GRANT));
    let shown = json!({"room_id": name, "subject": "deploy", "granted": true, "durable": 1});
    assert_eq!(reply, shown);
}

#[test]
fn what_is_wrong_is_named_with_its_bound() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "a");
    let long = "x".repeat(129);
    for (more, said) in [
        (json!({"subject": ""}), "`subject` must have 1 to 128 bytes"),
        (json!({"subject": long}), "`subject` must have 1 to 128 bytes"),
        (json!({"subject": " "}), "`subject` must not be blank, or have control characters"),
        (json!({"subject": "s", "lease_ms": 999}), "`lease_ms` must be within 1000 to 86400000"),
        (json!({"subject": "s", "renew": "x"}), "`renew` must be the id of a grant"),
        (
            json!({"subject": "s", "renew": GRANT.to_uuid(), "lease_ms": 9_000}),
            "`renew` and `release` name a grant of yours: give one of them, and no `lease_ms`",
        ),
    ] {
        let mut payload = json!({"room_id": "lobby"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = a.ask("once", payload);
        assert_eq!(reply["payload"]["code"], "invalid_payload", "{reply}");
        assert_eq!(reply["payload"]["message"], said);
    }
    *fake.knobs.script.lock().unwrap() = Some(Err(Refused::NotDurable));
    let reply = a.ask("once", json!({"room_id": "lobby", "subject": "s"}));
    let said = reply["payload"]["message"].as_str().unwrap();
    assert!(said.contains("`once`") && said.contains("ephemeral"), "{reply}");
}

#[test]
fn the_agent_that_lost_it_is_told_and_nobody_else() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let made = a.call("create_room", json!({"name": "r", "public": true}));
    let (name, id) = (made["room_id"].clone(), room(&made));
    b.call("join_room", json!({"room_id": name}));
    let mut tell = |why, holder| {
        let subject = Arc::from("deploy");
        let lost = OnceLost { agent: "a".into(), subject, grant: GRANT, holder, why };
        fake.hub().notify(id, RoomEvent::OnceLost(Arc::new(lost)));
        assert_eq!(b.event("once_lost"), None);
        a.event("once_lost").expect("it is told")
    };
    let told = tell(WhyLost::Split, holder("b", OTHER, None));
    let shown = json!({
        "room_id": name, "subject": "deploy", "grant_id": GRANT.to_uuid(), "why": "split",
        "agent_id": "b",
    });
    assert_eq!(told, shown);
    assert_eq!(tell(WhyLost::Lapsed, None)["why"], "lapsed");
}
