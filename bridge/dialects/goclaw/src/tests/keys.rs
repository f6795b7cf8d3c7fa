//! Keys that are made, listed and revoked over the wire.

use super::*;

#[tokio::test]
async fn a_key_is_made_shown_once_used_and_revoked() {
    let node = Node::new().await;
    let mut owner = node.owner().await;
    let wanted = json!({"name": "phone", "scopes": ["operator.write", "read"], "owner_id": "ada", "expires_in": 4_000_000_000_u64});
    let made = owner.gets("api_keys.create", wanted).await;
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("goclaw_") && key.len() == 7 + 64, "{made}");
    assert_eq!(made["scopes"], json!(["operator.write", "operator.read"]));
    assert!(made["expires_at"].is_string() && made["owner_id"] == "ada", "{made}");
    let list = owner.gets("api_keys.list", json!({})).await;
    let row = &list.as_array().unwrap()[0];
    assert_eq!(
        (&row["id"], &row["prefix"], &row["name"]),
        (&made["id"], &made["prefix"], &made["name"])
    );
    assert_eq!((&row["revoked"], &row["last_used_at"]), (&json!(false), &Value::Null));
    assert!(!list.to_string().contains(&key), "its text is nowhere");
    let mut client = node.client().await;
    let shown = json!({"token": key, "user_id": "eve", "protocol": 3});
    let welcome = client.ask("connect", shown).await.unwrap();
    assert_eq!((&welcome["user_id"], &welcome["role"]), (&json!("ada"), &json!("operator")));
    assert_eq!(
        owner.gets("api_keys.revoke", json!({"id": made["id"]})).await,
        json!({"status": "revoked"})
    );
    let list = owner.gets("api_keys.list", json!({})).await;
    assert_eq!(list[0]["revoked"], true);
    assert_eq!(client.refused("health", json!({})).await.0, "UNAUTHORIZED");
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn an_administrator_gives_no_more_than_it_has_and_sees_its_own_alone() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut owner = node.owner().await;
    owner.gets("api_keys.create", json!({"name": "other", "scopes": ["read"]})).await;
    let mut admin = node.connected(MINTED, "boss").await;
    assert_eq!(admin.gets("api_keys.list", json!({})).await, json!([]));
    let made = admin.gets("api_keys.create", json!({"name": "mine", "scopes": ["admin"]})).await;
    let list = admin.gets("api_keys.list", json!({})).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(owner.gets("api_keys.list", json!({})).await.as_array().unwrap().len(), 3);
    let theirs = owner.gets("api_keys.list", json!({})).await;
    let theirs =
        theirs.as_array().unwrap().iter().find(|row| row["name"] == "other").unwrap().clone();
    let no = admin.refused("api_keys.revoke", json!({"id": theirs["id"]})).await;
    assert_eq!(no.0, "NOT_FOUND", "as one that is not there");
    for (wanted, code, text) in [
        (json!({"name": "x", "scopes": ["operator.approvals"]}), "UNAUTHORIZED", "has no scope"),
        (json!({"name": "x", "scopes": ["root"]}), "INVALID_REQUEST", "invalid scope: root"),
        (json!({"name": "x", "scopes": []}), "INVALID_REQUEST", "scopes must be"),
        (json!({"name": "x"}), "INVALID_REQUEST", "scopes must be"),
        (json!({"scopes": ["read"]}), "INVALID_REQUEST", "name is required"),
        (
            json!({"name": "x", "scopes": ["read"], "expires_in": 0}),
            "INVALID_REQUEST",
            "expires_in",
        ),
    ] {
        let no = admin.refused("api_keys.create", wanted.clone()).await;
        assert!(no.0 == code && no.1.contains(text), "{wanted}: {no:?}");
    }
    node.mint("a key that writes, for these tests", Some(&[Scope::Write]));
    let mut writer = node.connected("a key that writes, for these tests", "w").await;
    assert_eq!(writer.refused("api_keys.list", json!({})).await.0, "UNAUTHORIZED");
    drop(made);
    node.stop().await;
}
