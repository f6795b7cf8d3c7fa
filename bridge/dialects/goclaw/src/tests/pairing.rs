//! Devices without a key.

use super::*;

#[tokio::test]
async fn a_device_is_let_in_by_an_administrator_and_out_again() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut owner = node.owner().await;
    let mut device = node.client().await;
    let pending = device.gets("connect", json!({"user_id": "phone"})).await;
    assert_eq!((&pending["status"], &pending["protocol"]), (&json!("pending_pairing"), &json!(3)));
    let code = pending["pairing_code"].as_str().unwrap();
    assert_eq!(code.len(), 8);
    assert!(code.chars().all(|c| "ABCDEFGHJKLMNPQRSTUVWXYZ23456789".contains(c)), "{code}");
    let told = owner.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["code"]),
        (&json!("device.pair.requested"), &json!(code))
    );
    let issued = pending["sender_id"].as_str().unwrap();
    let again = device.gets("connect", json!({})).await;
    assert_eq!(again["pairing_code"], code, "the same of the same connection");
    let poll = json!({"sender_id": issued});
    let waits = device.gets("browser.pairing.status", poll.clone()).await;
    assert_eq!(waits, json!({"status": "pending", "approved": false}));
    let often = device.ask("browser.pairing.status", poll.clone()).await.unwrap_err();
    assert_eq!((&*often.code, often.retry_ms), ("RESOURCE_EXHAUSTED", 1_000));
    // A code opens nothing.
    let mut thief = node.client().await;
    assert_eq!(
        thief.gets("connect", json!({"sender_id": code})).await["status"],
        "pending_pairing"
    );
    let paired = owner.gets("device.pair.approve", json!({"code": code.to_lowercase()})).await;
    assert_eq!(
        (&paired["paired"]["sender_id"], &paired["approved"]),
        (&json!("browser"), &json!(true))
    );
    let status = device.gets("browser.pairing.status", poll).await;
    assert_eq!(status, json!({"status": "approved", "approved": true}));
    let connected = device.gets("connect", json!({"sender_id": issued, "user_id": "phone"})).await;
    assert_eq!((&connected["role"], &connected["is_owner"]), (&json!("operator"), &json!(false)));
    let id = device.begin("chat.send", json!({"agentId": "bob", "message": "hi"})).await;
    let asked = agent.hears(&node, "hi").await;
    agent.answers(&asked, "ho").await;
    assert_eq!(device.answer(&id).await.unwrap()["content"], "ho");
    let list = owner.gets("device.pair.list", json!({})).await;
    assert!(!list.to_string().contains(issued), "the credential is the device's alone");
    assert_eq!(list["paired"][0]["paired_by"], "ada");
    // Nothing that the node keeps opens a key.
    let kept = node.fake.kept.lock().unwrap().clone();
    let kept = format!(
        "{:?}",
        kept.values().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>()
    );
    assert!(kept.contains("paired") || kept.contains("browser"), "{kept}");
    assert!(!kept.contains(issued) && !kept.contains(KEY), "{kept}");
    let id = list["paired"][0]["id"].clone();
    assert_eq!(owner.gets("device.pair.revoke", json!({"id": id})).await["revoked"], true);
    assert_eq!(device.ends().await, 1008);
    assert_eq!(owner.refused("device.pair.revoke", json!({"id": id})).await.0, "NOT_FOUND");
    let mut after = node.client().await;
    let refused = after.gets("connect", json!({"sender_id": issued})).await;
    assert_eq!(refused["status"], "pending_pairing");
    node.stop().await;
}

#[tokio::test]
async fn a_device_is_not_let_in_with_more_than_its_administrators_key_may() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut admin = node.connected(MINTED, "ada").await;
    let mut device = node.client().await;
    let pending = device.gets("connect", json!({})).await;
    admin.gets("device.pair.approve", json!({"code": pending["pairing_code"]})).await;
    device.gets("connect", json!({"sender_id": pending["sender_id"]})).await;
    let (_, text) = device.refused("teams.list", json!({})).await;
    assert!(text.contains("requires admin role"), "{text}");
    let (_, text) = device.refused("device.pair.approve", json!({"code": "x"})).await;
    assert!(text.contains("requires admin role"), "{text}");
    // It goes with the key that let it in.
    node.revoke(MINTED);
    assert_eq!(device.refused("health", json!({})).await.0, "UNAUTHORIZED");
    assert_eq!(device.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn pairings_that_wait_are_few_and_codes_are_not_tried() {
    let node = Node::new().await;
    let mut owner = node.owner().await;
    let mut codes = Vec::new();
    for nth in 0..3 {
        let mut device = node.client().await;
        let params =
            json!({"sender_id": format!("phone-{nth}"), "channel": "telegram", "chat_id": "7"});
        let asked = device.gets("device.pair.request", params.clone()).await;
        assert_eq!(device.gets("device.pair.request", params).await["code"], asked["code"]);
        codes.push(asked["code"].as_str().unwrap().to_owned());
    }
    let mut fourth = node.client().await;
    let params = json!({"senderId": "phone", "channel": "telegram"});
    let full = fourth.ask("device.pair.request", params).await.unwrap_err();
    assert_eq!((&*full.code, full.retryable), ("RESOURCE_EXHAUSTED", true));
    for (params, text) in [
        (json!({"channel": "x"}), "senderId is required"),
        (json!({"senderId": "a"}), "channel is required"),
        (json!({"senderId": "-a", "channel": "x"}), "senderId must be letters"),
    ] {
        let (_, refused) = fourth.refused("device.pair.request", params).await;
        assert!(refused.starts_with(text), "{refused}");
    }
    let list = owner.gets("device.pair.list", json!({})).await;
    assert_eq!(list["pending"].as_array().unwrap().len(), 3);
    assert_eq!(owner.gets("device.pair.deny", json!({"code": codes[0]})).await["denied"], true);
    assert_eq!(
        owner.refused("device.pair.approve", json!({"code": codes[0]})).await.0,
        "NOT_FOUND"
    );
    let mut refused = Vec::new();
    for _ in 0..crate::limits::WRONG_CODES_MAX {
        refused.push(owner.refused("device.pair.approve", json!({"code": "ABCDEFGH"})).await.0);
    }
    assert_eq!(refused.last().map(String::as_str), Some("RESOURCE_EXHAUSTED"), "{refused:?}");
    assert_eq!(refused[0], "NOT_FOUND");
    // An hour's requests are ten, answered or not.
    for code in &codes[1..] {
        owner.gets("device.pair.deny", json!({"code": code})).await;
    }
    let mut asked = 3;
    loop {
        let mut device = node.client().await;
        match device.ask("device.pair.request", json!({"senderId": "p", "channel": "x"})).await {
            Ok(pending) => {
                asked += 1;
                owner.gets("device.pair.deny", json!({"code": pending["code"]})).await;
            }
            Err(no) => {
                assert!(no.message.contains("asked for from this address"), "{no:?}");
                break;
            }
        }
    }
    assert_eq!(asked, crate::limits::REQUESTS_PER_HOUR_MAX);
    node.stop().await;
}
