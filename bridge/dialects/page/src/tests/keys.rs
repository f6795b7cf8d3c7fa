//! Keys of others than the node.

use mesh::{
    api::{agenda::NewKey, command::Command},
    name::{id::KeyPrint, key::KeySecret},
    wire::acts::{KeyMinted, KeyTerms, Tier},
};

use std::net::IpAddr;

use super::*;
use crate::{limits, signing::Signing};

impl Node {
    pub(super) fn mint(&self, key: &str, scopes: &[Scope]) {
        let scopes = Some(scopes.iter().copied().collect());
        let terms = KeyTerms { scopes, ..KeyTerms::of(Tier::High) };
        let minted = KeyMinted::sign(&KeySecret::of(key), &here(), terms).unwrap();
        let new = NewKey { minted: Box::new(minted), local: false };
        self.fake.does(Command::MintKey(new)).unwrap();
    }

    pub(super) fn revoke(&self, key: &str) {
        self.fake.does(Command::RevokeKey { key: KeyPrint::of(key) }).unwrap();
    }
}

fn network(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

#[tokio::test]
async fn a_key_and_a_network_have_their_share_of_sessions_and_of_live_pages() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read]);
    let (own, other) = (
        node.bridge.desk().holder(Secret::new(KEY)).await.unwrap(),
        node.bridge.desk().holder(Secret::new(OTHER)).await.unwrap(),
    );
    let signing = Signing::default();
    let enter = |holder: &Visitor, name: &str, from: IpAddr| {
        signing.enter(Secret::new("k"), holder.clone(), name.to_owned(), from).unwrap()
    };
    // A key.
    let (eve, first) = (enter(&other, "eve", network(1)), enter(&own, "first", network(2)));
    let many: Vec<String> = (0..limits::SIGNED_IN_PER_KEY_MAX)
        .map(|nth| enter(&own, &format!("p{nth}"), network(3)))
        .collect();
    assert!(signing.person(&first).is_none(), "the first one of the key");
    assert!(signing.person(&eve).is_some(), "of another key");
    // Its live pages, however many people it is.
    let person = |secret: &String| signing.person(secret).unwrap();
    let places: Vec<_> = many.iter().filter_map(|secret| person(secret).place()).collect();
    assert_eq!(places.len(), limits::LIVE_PER_KEY_MAX);
    assert!(person(&many[0]).place().is_none() && person(&eve).place().is_some());
    many.iter().for_each(|secret| signing.leave(secret));
    let again = enter(&own, "again", network(2));
    assert!(person(&again).place().is_none(), "pages that are open count after signing out");
    drop(places);
    assert!(person(&again).place().is_some());
}

#[tokio::test]
async fn many_addresses_of_one_network_are_one_who_tries() {
    let proxy = "127.0.0.1".parse().unwrap();
    let node = Node::with(Config { trusted_proxies: vec![proxy], ..keyed() }).await;
    let tries = async |from: String, key: &str| {
        let head = format!(
            "POST /ui/enter HTTP/1.1\r\nx-forwarded-for: {from}\r\norigin: http://{}\r\ncontent-type: application/x-www-form-urlencoded",
            node.at
        );
        node.send(&head, &format!("key={}", key.replace(' ', "+"))).await
    };
    for nth in 0..limits::ATTEMPTS_PER_MINUTE {
        assert_eq!(tries(format!("2001:db8::{nth:x}"), "guess").await.status, 401);
    }
    let more = tries("2001:db8::ffff".to_owned(), KEY).await;
    assert!(more.status == 401 && more.body.contains("Too many attempts"), "{}", more.body);
    assert_eq!(tries("2001:db8:1::1".to_owned(), KEY).await.status, 303, "another network");
}
