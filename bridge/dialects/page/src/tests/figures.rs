//! Figures are drawn for the node's own key, and for nobody else.

use bridge::figures::{Sample, Span};
use mesh::wire::acts::Scope;

use super::{KEY, Node, OTHER};

#[tokio::test]
async fn figures_are_drawn_and_stand_in_a_table_for_the_nodes_own_key_alone() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read, Scope::Write]);
    let (own, other) = (node.enter(KEY, "ada").await, node.enter(OTHER, "eve").await);
    let none = node.get("/ui/figures", &own).await.body;
    assert!(none.contains("no samples yet"), "{none}");
    let figures = node.bridge.desk().config().figures.clone();
    for at in 0..10 {
        let sample = Sample {
            at_ms: 1_800_000_000_000 + at * 10_000,
            delivered: 123.0,
            ok_p99_ms: Some(4.5),
            links: 7,
            ..Sample::default()
        };
        figures.add(Span::Hour, sample);
    }
    let page = node.get("/ui/figures", &own).await.body;
    for part in
        ["<svg", "role=\"img\"", "delivered here: 123 /s", "4.50 ms", "<td>7</td>", "an hour ago"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<svg").count(), 5, "messages, ok, disk, memory, links");
    assert_eq!(page.matches("<th scope=\"row\"").count(), 10);
    assert!(!page.contains("style=\""), "the policy of the page forbids it");
    assert!(node.get("/ui/figures?of=day", &own).await.body.contains("no samples yet"));
    assert!(node.get("/", &own).await.body.contains("/ui/figures"));
    for path in ["/ui/figures", "/ui/figures?of=day"] {
        let refused = node.get(path, &other).await;
        assert!(refused.status == 409 && !refused.body.contains("123"), "{}", refused.body);
    }
    assert!(!node.get("/", &other).await.body.contains("/ui/figures"));
    assert_eq!(node.get("/ui/figures", "").await.status, 401);
}
