//! A visitor that shows no key asks: the account's secret is what opens them.

use mesh::{
    api::{
        account::{AccountRefused, Mark, RecordNews},
        command::Refused,
    },
    records::{
        collection::Collection,
        finder::{JOBS, Job, PROFILES, Pricing, Profile},
    },
    wire::record::Stamp,
};

use super::*;
use crate::{
    Bridge,
    read::{Desk, Visitor},
    records::{FollowRecords, GetRecord, ListRecords},
    testing::{Fake, echo::Echo, keyed},
};

fn account(n: u8) -> Arc<KeySecret> {
    Arc::new(KeySecret::of(&format!("ak_{n:0>40}")))
}

fn profile(of: &KeySecret) -> RecordWrite {
    let profile = Profile {
        username: "alice-bot".into(),
        name: "Alice".into(),
        certificate: vec![1; 60],
        former: Vec::new(),
        payment: Vec::new(),
        contact: Vec::new(),
        registered: Stamp::at(5),
        mailbox: of.halves().mailbox,
        proof: None,
        vault: None,
        host: None,
    };
    let (collection, id) = (PROFILES.number, Profile::id(of.print()));
    RecordWrite::new(collection, id, Some(profile.encode()))
}

fn job(of: &KeySecret, nonce: u8, title: &str) -> RecordWrite {
    let job = Job {
        nonce: [nonce; 16],
        title: title.into(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Negotiable,
        active: true,
        metadata: "{}".into(),
        created: Stamp::at(6),
    };
    let (collection, id) = (JOBS.number, job.id(of.print()));
    RecordWrite::new(collection, id, Some(job.encode()))
}

async fn write(
    desk: &Desk,
    account: &Arc<KeySecret>,
    writes: Vec<RecordWrite>,
) -> Result<Vec<Stamp>, Refusal> {
    let call = WriteRecords { account: Arc::clone(account), writes, above: Stamp::default() };
    desk.ask(&Visitor::stranger(), call).await
}

async fn news(desk: &Desk, after: Mark, kinds: &[&Collection]) -> RecordNews {
    let collections = kinds.iter().map(|kind| kind.number).collect();
    let call = FollowRecords { collections, after, limit: 10 };
    desk.ask(&Visitor::stranger(), call).await.unwrap()
}

fn bridge() -> (Arc<Fake>, Bridge) {
    let (fake, hub) = Fake::new();
    let bridge = Bridge::new(keyed(), hub, fake.clone(), vec![Arc::new(Echo::default())]);
    (fake, bridge)
}

async fn claim(desk: &Desk, account: &Arc<KeySecret>, label: Label) {
    let call = ClaimAccount { account: Arc::clone(account), labels: vec![label] };
    desk.ask(&Visitor::stranger(), call).await.unwrap();
}

const BOTH: [&Collection; 2] = [&PROFILES, &JOBS];

#[tokio::test]
async fn a_stranger_with_an_accounts_secret_claims_it() {
    let (fake, bridge) = bridge();
    let (desk, nobody) = (bridge.desk(), Visitor::stranger());
    let (ann, bob, label) = (account(1), account(2), Label([7; 16]));
    assert_eq!(desk.ask(&nobody, FindAccount(ann.print())).await.unwrap(), None);
    let unknown = write(desk, &ann, vec![profile(&ann)]).await;
    assert_eq!(unknown, Err(Refusal::Mesh(Refused::Account(AccountRefused::Unknown))));
    for account in [&ann, &bob] {
        claim(desk, account, label).await;
    }
    let found = desk.ask(&nobody, FindAccount(ann.print())).await.unwrap().unwrap();
    assert_eq!((found.halves, found.claims.len(), found.ended), (ann.halves(), 1, false));
    let claims = desk.ask(&nobody, ListClaims(label)).await.unwrap();
    let order: Vec<_> = claims.iter().map(|claim| claim.account).collect();
    assert_eq!(order, [ann.print(), bob.print()]);
    assert!(claims.iter().all(|claim| claim.claim.number.is_some()));
    fake.part();
}

#[tokio::test]
async fn what_it_writes_it_reads_at_once_and_who_follows_is_told() {
    let (fake, bridge) = bridge();
    let (desk, nobody, ann) = (bridge.desk(), Visitor::stranger(), account(1));
    claim(desk, &ann, Label([7; 16])).await;
    assert_eq!(news(desk, Mark::START, &BOTH).await, RecordNews::default());
    let (one, two) = (job(&ann, 1, "one"), job(&ann, 2, "two"));
    let stamps = write(desk, &ann, vec![profile(&ann), one.clone(), two.clone()]).await.unwrap();
    let get = GetRecord { collection: JOBS.number, id: one.id, owner: ann.print() };
    let read = desk.ask(&nobody, get).await.unwrap().unwrap();
    assert_eq!((read.stamp, &read.body, read.halves), (stamps[1], &one.body, Some(ann.halves())));
    let told = news(desk, Mark::START, &BOTH).await;
    assert_eq!((told.records.len(), told.more, told.anew), (3, false, false));
    assert_eq!(news(desk, Mark::START, &[&JOBS]).await.records.len(), 2);
    let again = news(desk, told.mark, &BOTH).await;
    assert_eq!(again, RecordNews { mark: told.mark, ..RecordNews::default() });

    write(desk, &ann, vec![job(&ann, 1, "edited")]).await.unwrap();
    write(desk, &ann, vec![RecordWrite { body: None, ..two.clone() }]).await.unwrap();
    let deleted = write(desk, &ann, vec![two.clone()]).await;
    assert_eq!(deleted, Err(Refusal::Mesh(Refused::Account(AccountRefused::Deleted))));
    let told = news(desk, told.mark, &BOTH).await;
    let bodies: Vec<_> = told.records.iter().map(|record| record.body.clone()).collect();
    assert_eq!(bodies, [job(&ann, 1, "edited").body, None]);
    assert!(told.records.iter().all(|record| !record.is_gone()));
    let list = |first: &[u8], limit| ListRecords {
        collection: JOBS.number,
        owner: Some(ann.print()),
        first: first.to_vec(),
        after: None,
        limit,
    };
    let page = desk.ask(&nobody, list(&one.id.0, 5)).await.unwrap();
    assert_eq!((page.records.len(), page.more), (1, false));
    let page = desk.ask(&nobody, list(&[], 1)).await.unwrap();
    assert_eq!((page.records.len(), page.more), (1, true));

    fake.part();
}

#[tokio::test]
async fn with_the_account_all_goes_that_is_its_own_and_who_follows_is_told() {
    let (fake, bridge) = bridge();
    let (desk, nobody, ann) = (bridge.desk(), Visitor::stranger(), account(1));
    claim(desk, &ann, Label([7; 16])).await;
    let one = job(&ann, 1, "one");
    write(desk, &ann, vec![profile(&ann), one.clone(), job(&ann, 2, "two")]).await.unwrap();
    let told = news(desk, Mark::START, &BOTH).await;
    write(desk, &ann, vec![RecordWrite { body: None, ..profile(&ann) }]).await.unwrap();
    let told = news(desk, told.mark, &BOTH).await;
    let gone = told.records.iter().filter(|record| record.is_gone()).count();
    assert_eq!((told.records.len(), gone), (3, 2));
    let ended = write(desk, &ann, vec![one]).await;
    assert_eq!(ended, Err(Refusal::Mesh(Refused::Account(AccountRefused::Ended))));
    assert!(desk.ask(&nobody, FindAccount(ann.print())).await.unwrap().unwrap().ended);
    fake.part();
}
