//! The first view: the doctor's words for the operator alone, and how much a browser has to load.

use bridge::checkup::{Check, Checkup, Examine, Finding, Making};
use mesh::wire::acts::Scope;

use super::{KEY, Node, OTHER};

struct Ill;

impl Examine for Ill {
    fn examine(&self) -> Making {
        let check = Check {
            subject: "peers",
            finding: Finding::Bad,
            found: "<i>evil\u{202e} is gone".to_owned(),
            advice: Some("is it running?".to_owned()),
        };
        Box::pin(async { Some(Checkup { checks: vec![check], ..Checkup::default() }) })
    }
}

#[tokio::test]
async fn the_doctor_is_heard_by_the_nodes_own_key_alone() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read, Scope::Write]);
    let (own, other) = (node.enter(KEY, "ada").await, node.enter(OTHER, "eve").await);
    let before = node.get("/", &own).await.body;
    assert!(before.contains("in step") && !before.contains("the doctor"), "{before}");
    node.bridge.desk().config().examiner.set(Ill);
    let page = node.get("/", &own).await.body;
    assert!(page.contains("&lt;i&gt;evil\u{fffd} is gone"), "{page}");
    assert!(page.contains("→ is it running?"), "{page}");
    assert!(!node.get("/", &other).await.body.contains("is gone"));
}

/// Over the wire, as it is served, with the heads of the answers.
const FIRST_VIEW_BYTES_MAX: usize = 100 * 1024;

#[tokio::test]
async fn the_first_view_is_small_with_all_that_it_loads() {
    let node = Node::new().await;
    let mut agents = Vec::new();
    for nth in 0..50 {
        agents.push(node.agent(&format!("agent-{nth}"), KEY).await);
    }
    let cookie = node.enter(KEY, "ada").await;
    let first = node.get("/", &cookie).await;
    let quoted = |word: &str| {
        let parts = first.body.split(word).skip(1).filter_map(|rest| rest.split('"').next());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut assets: Vec<String> =
        [quoted(" src=\""), quoted("<link rel=\"stylesheet\" href=\"")].concat();
    assets.sort_unstable();
    assert_eq!(assets, ["/assets/page.css", "/assets/page.js"], "all that a browser loads");
    let mut bytes = first.head.len() + first.body.len();
    for path in assets {
        let asset = node.get(&path, &cookie).await;
        assert_eq!(asset.status, 200);
        bytes += asset.head.len() + asset.body.len();
    }
    assert!(bytes <= FIRST_VIEW_BYTES_MAX, "{bytes}");
}
