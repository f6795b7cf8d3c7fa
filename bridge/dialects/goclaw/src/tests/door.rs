//! Keys, roles and users.

use mesh::{
    api::{agenda::NewKey, command::Command},
    name::{id::KeyPrint, key::KeySecret},
    wire::acts::KeyMinted,
};

use super::*;

impl Node {
    pub(super) fn mint(&self, key: &str, scopes: Option<&[Scope]>) {
        let scopes = scopes.map(|scopes| scopes.iter().copied().collect());
        self.mint_on(key, KeyTerms { scopes, ..KeyTerms::of(Tier::High) });
    }

    pub(super) fn mint_on(&self, key: &str, terms: KeyTerms) {
        let minted = KeyMinted::sign(&KeySecret::of(key), &here(), terms).unwrap();
        let new = NewKey { minted: Box::new(minted), local: false };
        self.fake.does(Command::MintKey(new)).unwrap();
    }

    pub(super) fn revoke(&self, key: &str) {
        self.fake.does(Command::RevokeKey { key: KeyPrint::of(key) }).unwrap();
    }
}

#[tokio::test]
async fn a_key_has_the_role_of_its_scopes_and_is_refused_what_the_next_one_may() {
    let node = Node::new().await;
    let own = node.client().await.gets("connect", json!({"token": KEY, "locale": "de"})).await;
    let expect = json!({"role": "admin", "is_owner": true, "protocol": 3, "locale": "de"});
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(own[name], *value, "{own}");
    }
    assert_eq!((&own["server"]["name"], &own["user_id"]), (&json!("goclaw"), &json!("default")));
    assert_eq!(own["tenant_id"].as_str().map(str::len), Some(36));
    let higher = "permission denied: chat.send requires operator role";
    let highest = "permission denied: teams.list requires admin role";
    let owners = "permission denied: config.patch requires the node's own key";
    for (scopes, role, method, text) in [
        (Some(&[Scope::Read][..]), "viewer", "chat.send", higher),
        (
            Some(&[Scope::Approvals, Scope::Pairing, Scope::Provision][..]),
            "viewer",
            "chat.send",
            higher,
        ),
        (Some(&[Scope::Write][..]), "operator", "teams.list", highest),
        (None, "operator", "teams.list", highest),
        (Some(&[Scope::Admin][..]), "admin", "config.patch", owners),
    ] {
        let key = format!("{MINTED} {scopes:?}");
        node.mint(&key, scopes);
        let mut client = node.client().await;
        let connected = client.gets("connect", json!({"token": key, "user_id": "bo"})).await;
        assert_eq!((&connected["role"], &connected["is_owner"]), (&json!(role), &json!(false)));
        assert_eq!(connected["user_id"], "bo");
        // The role is looked at before the parameters.
        let refused = client.refused(method, json!({"message": 7})).await;
        assert_eq!(refused, ("UNAUTHORIZED".to_owned(), text.to_owned()), "{scopes:?}");
    }
    let mut owner = node.owner().await;
    assert_eq!(owner.refused("config.patch", json!({})).await.0, "NOT_IMPLEMENTED");
    let mut approves = node
        .connected(
            &format!("{MINTED} {:?}", Some([Scope::Approvals, Scope::Pairing, Scope::Provision])),
            "x",
        )
        .await;
    assert_eq!(approves.gets("exec.approval.list", json!({})).await, json!({"pending": []}));
    node.stop().await;
}

#[tokio::test]
async fn every_method_is_refused_to_the_role_below_it_before_its_parameters() {
    let node = Node::new().await;
    node.mint("a key that may read, for these tests", Some(&[Scope::Read]));
    node.mint("a key that may write, for these tests", Some(&[Scope::Write]));
    let mut viewer = node.connected("a key that may read, for these tests", "v").await;
    let mut operator = node.connected("a key that may write, for these tests", "o").await;
    for line in include_str!("methods.txt").lines() {
        let (method, role) = line.split_once(' ').unwrap();
        let expect = format!("permission denied: {method} requires {role} role");
        if matches!(role, "operator" | "admin") {
            assert_eq!(viewer.refused(method, json!({})).await.1, expect);
        }
        if role == "admin" {
            assert_eq!(operator.refused(method, json!({})).await.1, expect);
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_the_third_time_the_connection_ends() {
    let node = Node::with(keyed(), |settings| Settings { pairing: false, ..settings }).await;
    let mut client = node.client().await;
    let denied = "permission denied: valid token or active pairing required";
    for params in [json!({"token": "wrong"}), json!({}), json!({"token": ""})] {
        let refused = client.refused("connect", params).await;
        assert_eq!(refused, ("UNAUTHORIZED".to_owned(), denied.to_owned()));
    }
    assert_eq!(client.ends().await, 1008);
    let mut client = node.client().await;
    for (params, text) in [
        (json!({"token": KEY, "protocol": 2}), "unsupported protocol: 2"),
        (json!({"token": KEY, "protocolVersion": "3"}), "unsupported protocol: \"3\""),
        (json!({"token": 7}), "token must be a string"),
        (
            json!({"token": KEY, "user_id": "a\u{0}b"}),
            "user_id must have at most 128 bytes and no control characters",
        ),
    ] {
        let refused = client.refused("connect", params).await;
        assert_eq!(refused, ("INVALID_REQUEST".to_owned(), text.to_owned()));
    }
    client.gets("connect", json!({"token": KEY})).await;
    node.stop().await;
}

#[tokio::test]
async fn the_owner_of_a_key_is_its_user_and_a_revoked_key_ends_its_connections() {
    let node = Node::new().await;
    let owner = Some("Ada L".to_owned());
    node.mint_on(MINTED, KeyTerms { owner, ..KeyTerms::of(Tier::High) });
    let mut client = node.client().await;
    let connected = client.gets("connect", json!({"token": MINTED, "user_id": "bob"})).await;
    assert_eq!(connected["user_id"], "Ada L");
    // The key was just found valid.
    client.gets("health", json!({})).await;
    node.revoke(MINTED);
    let refused = client.refused("health", json!({})).await;
    assert_eq!(refused.0, "UNAUTHORIZED");
    assert_eq!(client.ends().await, 1008);
    let mut again = node.client().await;
    assert_eq!(again.refused("connect", json!({"token": MINTED})).await.0, "UNAUTHORIZED");
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_checks_no_keys_lets_everybody_in_as_operators() {
    let node = Node::open().await;
    let mut client = node.client().await;
    let connected = client.gets("connect", json!({"user_id": "ada"})).await;
    assert_eq!((&connected["role"], &connected["is_owner"]), (&json!("operator"), &json!(false)));
    let _agent = node.agent("bob", "").await;
    assert_eq!(client.gets("agents.list", json!({})).await["agents"][0]["id"], "bob");
    // There are no sessions of two agents where there are no keys.
    let (code, text) =
        client.refused("chat.send", json!({"agentId": "bob", "message": "hi"})).await;
    assert_eq!(code, "UNAUTHORIZED");
    assert!(text.contains("checks no keys"), "{text}");
    node.stop().await;
}
