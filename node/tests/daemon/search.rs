//! Searches at a real daemon, and what a kill leaves of its index.

use serde_json::json;

use crate::harness::{Agent, temp, until, up};

fn found(agent: &mut Agent, text: &str) -> Vec<String> {
    let found = agent.call("search", json!({"text": text})).unwrap();
    let messages = found["messages"].as_array().unwrap();
    messages.iter().map(|it| it["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_was_said_is_found_a_moment_later_and_after_a_kill() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    agent.say("the build failed");
    agent.say("all is well");
    until("it is found", || found(&mut agent, "build") == ["the build failed"]);
    drop(agent);
    node.kill();
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    agent.say("another build");
    let both = ["another build", "the build failed"];
    until("both are found", || found(&mut agent, "build") == both);
    assert!(node.stop().as_secs() < 10);
    // Nothing is only in the index.
    let file = dir.path().join("search.redb");
    std::fs::write(&file, "no index").unwrap();
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    until("both are found again", || found(&mut agent, "build") == both);
    node.kill();
}
