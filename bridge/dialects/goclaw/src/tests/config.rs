//! Settings of the node, read and changed.

use std::sync::Mutex;

use bridge::node_settings::{Changes, NodeSettings, Setting};

use super::*;

/// A node with two settings that can be changed, and one that cannot.
#[derive(Debug, Default)]
struct Few(Mutex<(Option<Value>, Option<Value>)>, Mutex<Option<Value>>);

impl NodeSettings for Few {
    fn all(&self) -> Vec<Setting> {
        let (level, limit) = self.0.lock().unwrap().clone();
        let row = |name, value: Option<Value>, default: Value, changeable, own| Setting {
            name,
            kind: "string",
            about: "for people",
            value: value.unwrap_or_else(|| default.clone()),
            default,
            changeable,
            own,
        };
        vec![
            row("gateway.port", None, json!(9230), false, false),
            row("goclaw.run_limit_ms", limit, json!(600_000), true, false),
            row("log.level", level, json!("info"), true, false),
            row("webhooks.enabled", self.1.lock().unwrap().clone(), json!(true), true, false),
            row("node.data_dir", None, json!("/var"), false, true),
        ]
    }

    fn file(&self) -> String {
        "/etc/node.toml".to_owned()
    }

    fn change(&self, changes: &Changes, rest: bool) -> Result<(), String> {
        let mut now = self.0.lock().unwrap();
        let mut next = if rest { (None, None) } else { now.clone() };
        for (name, to) in changes {
            match &**name {
                "log.level" => next.0.clone_from(to),
                "goclaw.run_limit_ms" => next.1.clone_from(to),
                "webhooks.enabled" => self.1.lock().unwrap().clone_from(to),
                name => return Err(format!("{name} needs a restart: edit /etc/node.toml")),
            }
        }
        *now = next;
        Ok(())
    }
}

pub(super) async fn node() -> Node {
    Node::serving(keyed(), |goclaw| goclaw.with_node(Some(Arc::new(Few::default())))).await
}

#[tokio::test]
async fn the_operator_changes_settings_by_json5_by_name_or_as_a_whole() {
    let node = node().await;
    let mut owner = node.owner().await;
    let first = owner.gets("config.get", json!({})).await;
    assert_eq!(first["path"], "/etc/node.toml");
    let config = json!({
        "gateway": {"port": 9230}, "goclaw": {"run_limit_ms": 600_000}, "log": {"level": "info"},
        "node": {"data_dir": "/var"}, "webhooks": {"enabled": true},
    });
    assert_eq!(first["config"], config);
    let raw = "{log: {level: 'debug'}, /* a day */ 'goclaw.run_limit_ms': 0x10,}";
    let patch = json!({"raw": raw, "baseHash": first["hash"]});
    let second = owner.gets("config.patch", patch).await;
    assert_eq!((&second["ok"], &second["restart"]), (&json!(true), &json!(false)));
    assert_eq!(second["config"]["log"], json!({"level": "debug"}));
    assert_eq!(second["config"]["goclaw"]["run_limit_ms"], 16);
    assert_ne!(second["hash"], first["hash"]);
    let by_name = json!({"key": "log.level", "value": "warn"});
    assert_eq!(owner.gets("config.patch", by_name).await["config"]["log"]["level"], "warn");
    let level = json!({"log": {"level": "warn"}});
    for key in ["log.level", "log"] {
        assert_eq!(owner.gets("config.get", json!({"key": key})).await["config"], level);
    }
    assert_eq!(owner.refused("config.get", json!({"key": "lo"})).await.0, "NOT_FOUND");
    let back = json!({"key": "log.level", "value": null});
    assert_eq!(owner.gets("config.patch", back).await["config"]["log"]["level"], "info");
    // The whole object: the rest is as it was at the start, and what cannot be changed is as it is.
    let mut whole = config.clone();
    whole["log"]["level"] = json!("trace");
    whole["goclaw"] = json!({});
    let applied = owner.gets("config.apply", whole).await;
    assert_eq!(applied["config"]["log"]["level"], "trace");
    assert_eq!(applied["config"]["goclaw"]["run_limit_ms"], 600_000);
    let schema = owner.gets("config.schema", json!({})).await;
    let level = &schema["json"]["properties"]["log"]["properties"]["level"];
    let expect = json!({
        "type": "string", "default": "info", "description": "for people", "x-changeable": true,
    });
    assert_eq!(*level, expect);
    node.stop().await;
}

#[tokio::test]
async fn what_is_wrong_changes_nothing_and_others_see_less_and_change_nothing() {
    let node = node().await;
    let mut owner = node.owner().await;
    let first = owner.gets("config.get", json!({})).await;
    let deep = "[".repeat(40_000);
    for (params, text) in [
        (
            json!({"raw": "{log: {level: 'x'}}", "baseHash": "0"}),
            "config has changed (hash mismatch)",
        ),
        (
            json!({"raw": "{log: {level: 'x'}, gateway: {port: 1}}"}),
            "gateway.port needs a restart: edit /etc/node.toml",
        ),
        (json!({"raw": "{nothing: 1}"}), "no setting of the name nothing"),
        (json!({"raw": "{log: 1}"}), "log must be an object"),
        (json!({"raw": "{log"}), "raw must be an object in JSON5"),
        (json!({"raw": deep}), "raw must be an object in JSON5"),
        (json!({"raw": "[]"}), "raw must be an object in JSON5"),
        (json!({"key": "log.level"}), "value is required"),
        (json!({}), "raw is required"),
    ] {
        let no = owner.refused("config.patch", params).await;
        assert_eq!(no, ("INVALID_REQUEST".to_owned(), text.to_owned()));
        assert_eq!(owner.gets("config.get", json!({})).await, first);
    }
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut admin = node.connected(MINTED, "boss").await;
    let seen = admin.gets("config.get", json!({})).await;
    assert_eq!((&seen["path"], seen["config"].get("node")), (&json!(""), None));
    for method in ["config.patch", "config.apply"] {
        let no = admin.refused(method, json!({"raw": "{}"})).await;
        assert_eq!(no.1, format!("permission denied: {method} requires the node's own key"));
    }
    node.stop().await;
}

#[tokio::test]
async fn webhooks_are_switched_and_nothing_else() {
    let node = node().await;
    let mut owner = node.owner().await;
    for on in [false, true] {
        let toggled = json!({"channel": "webhook", "enabled": on});
        assert_eq!(owner.gets("channels.toggle", toggled.clone()).await, toggled);
        let status = owner.gets("channels.status", json!({})).await["channels"]["webhook"].clone();
        let state = if on { "healthy" } else { "stopped" };
        assert_eq!((&status["enabled"], &status["state"]), (&json!(on), &json!(state)));
    }
    for (params, code, text) in [
        (
            json!({"channel": "goclaw", "enabled": false}),
            "INVALID_REQUEST",
            "goclaw is the channel in use",
        ),
        (
            json!({"channel": "mesh", "enabled": false}),
            "INVALID_REQUEST",
            "mesh cannot be switched off",
        ),
        (
            json!({"channel": "telegram", "enabled": true}),
            "NOT_FOUND",
            "channel not found: telegram",
        ),
        (json!({"channel": "webhook"}), "INVALID_REQUEST", "enabled is required"),
    ] {
        let no = owner.refused("channels.toggle", params).await;
        assert_eq!(no, (code.to_owned(), text.to_owned()));
    }
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut admin = node.connected(MINTED, "boss").await;
    let no = admin.refused("channels.toggle", json!({})).await;
    assert_eq!(no.1, "permission denied: channels.toggle requires the node's own key");
    node.stop().await;
}
