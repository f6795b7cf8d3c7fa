//! 28: certificates and messages that were changed on their way are taken or refused, and the node goes on.

use super::{
    mail::{Person, seal_for},
    *,
};

/// The next of a sequence that looks like chance, below a bound.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % below
}

/// Some letters of the armor become others, or are gone, or what follows them is.
fn mutated(text: &str, state: &mut u64) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=next(state, 3) {
        let at = next(state, bytes.len());
        match next(state, 4) {
            0 => drop(bytes.remove(at)),
            1 => bytes.truncate(at + 1),
            2 => bytes.insert(at, b'A'),
            _ => bytes[at] = b"AQz9+/=\n-"[next(state, 9)],
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn mutated_certificates_and_messages_do_no_harm() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let certificate = pgp("eve").certificate().armored();
    let message = seal_for(&ann.pgp, bob.pgp.certificate(), "a text");
    let (mut state, mut counts) = (7, [0; 3]);
    for nth in 0..300 {
        let answer = if nth % 2 == 0 {
            let mut body = registration(&format!("eve-{nth}"), &ann.pgp);
            body["pgp_key"] = json!(mutated(&certificate, &mut state));
            node.post("/api/agents/register/", None, &body).await
        } else {
            let body = mutated(&message, &mut state);
            let body = json!({"recipient_id": bob.agent.id, "body": body});
            node.post("/api/agents/me/send/", Some(&ann.agent.key), &body).await
        };
        let place = [400, 201, 429].iter().position(|status| *status == answer.status);
        // The same certificate a second time, where the change is of no consequence.
        let place = place.or((answer.status == 409).then_some(0));
        counts[place.unwrap_or_else(|| panic!("{answer:?}"))] += 1;
    }
    assert!(counts[0] > 100, "{counts:?}");
    assert_eq!(node.get("/api/agents/ann/").await.ok()["id"], ann.agent.id);
    node.stop().await;
}
