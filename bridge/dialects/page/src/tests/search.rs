//! Searches: what a person finds is what the person's key sees, and nothing but text.

use bridge::seam::call::{CreateRoom, Join, OpenDirect, Say};
use mesh::{api::command::NewRoom, wire::acts::Scope};

use super::{KEY, Node, OTHER, lobby};

#[tokio::test]
async fn a_person_finds_what_the_key_sees_and_nothing_else() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read]);
    let (bob, eve) = (node.agent("bob", KEY).await, node.agent("cleo", KEY).await);
    let desk = node.bridge.desk();
    desk.ask(&bob, Join(lobby())).await.unwrap();
    node.says(&bob, "needle <b>in</b> the lobby").await;
    let new = NewRoom {
        name: "den".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let den = desk.ask(&bob, CreateRoom(new)).await.unwrap().room;
    desk.ask(&bob, Join(den)).await.unwrap();
    desk.ask(&bob, Say::chat(den, "needle in the den".to_owned())).await.unwrap();
    let direct = desk.ask(&bob, OpenDirect::with("cleo")).await.unwrap().room;
    desk.ask(&bob, Say::chat(direct, "needle between two".to_owned())).await.unwrap();
    drop(eve);
    let (own, other) = (node.enter(KEY, "ada").await, node.enter(OTHER, "eve").await);
    let found = node.get("/ui/search?text=needle", &own).await.body;
    for part in ["&lt;b&gt;in&lt;/b&gt; the lobby", "needle in the den", "needle between two"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("<b>in"), "{found}");
    let found = node.get("/ui/search?text=needle", &other).await.body;
    assert!(found.contains("the lobby") && !found.contains("in the den"), "{found}");
    assert!(!found.contains("between two"), "{found}");
    let there = format!("/ui/search?text=needle&room={}", den.to_uuid());
    assert_eq!(node.get(&there, &other).await.status, 409, "as any call about it");
    assert!(node.get(&there, &own).await.body.contains("needle in the den"));
    assert_eq!(node.get("/ui/search?text=needle", "").await.status, 401);
}

#[tokio::test]
async fn a_search_is_kept_in_its_form_and_goes_on() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    for n in 0..crate::limits::FOUND_SHOWN + 1 {
        node.says(&bob, &format!("needle n{n}")).await;
    }
    let own = node.enter(KEY, "ada").await;
    let path = "/ui/search?text=%22needle%22+needle&from=bob";
    let first = node.get(path, &own).await.body;
    assert!(first.contains("value=\"&quot;needle&quot; needle\""), "{first}");
    assert!(first.contains("needle n1<") && !first.contains("needle n0<"), "{first}");
    let (_, rest) = first.split_once("rel=\"next\" href=\"").expect("there is more");
    let next = rest.split('"').next().unwrap().replace("&amp;", "&");
    let second = node.get(&next, &own).await.body;
    assert!(second.contains("needle n0<") && !second.contains("rel=\"next\""), "{second}");
    let bad = node.get("/ui/search?text=%21%3F", &own).await.body;
    assert!(bad.contains("must have a letter or a digit"), "{bad}");
    let hostile = node.get("/ui/search?text=%22%3E%3Cscript%3Ex&from=%3Ci%3E", &own).await.body;
    assert!(!hostile.contains("<script>x") && !hostile.contains("<i>"), "{hostile}");
    let nothing = node.get("/ui/search", &own).await;
    assert!(nothing.status == 200 && nothing.body.contains("must stand so"));
}

#[tokio::test]
async fn an_envelope_that_is_found_is_a_card() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    let said = |verb: &str, body: &str| {
        format!(r#"{{"v":"lantern/0.1.1","type":"{verb}","from":"bob","body":{{{body}}}}}"#)
    };
    let claim = r#""claim":"the <needle> holds","confidence":0.74,"falsifiable_by":"a look""#;
    node.says(&bob, &said("ASSERT", claim)).await;
    let against = r#""target_seq":1,"counter_claim":"no needle","confidence":0.5,"test":"a look""#;
    node.says(&bob, &said("CHALLENGE", against)).await;
    node.says(&bob, "needle, and no envelope").await;
    let own = node.enter(KEY, "ada").await;
    let found = node.get("/ui/search?text=needle", &own).await.body;
    for part in [
        "card assert",
        "the &lt;needle&gt; holds",
        "74 %",
        "card challenge",
        "no needle",
        "needle, and no envelope",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    for part in ["lantern/0.1.1", "<needle>", "href=\"#n", "Challenged"] {
        assert!(!found.contains(part), "{part}: {found}");
    }
}
