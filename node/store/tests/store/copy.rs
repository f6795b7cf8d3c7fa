//! Copies of a store that is being written.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use store::{CopyError, FILE_NAME, Progress, Store, check::check};

use crate::lone::{Lone, busy, lobby, said};

#[test]
fn a_copy_has_everything_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = busy(dir.path());
    let file = to.path().join(FILE_NAME);
    let mut told = Vec::new();
    let done = node.store.reader().copy_to(&file, &mut |progress| {
        told.push(progress);
        true
    });
    let done = done.unwrap();
    assert!(done.rows > 50 && done.rows == done.of, "{done:?}");
    assert_eq!(told.last(), Some(&done));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let copy = Store::open(to.path()).unwrap();
    let summary = |store: &Store| format!("{:?}", store.summary(crate::lone::me(1), None).unwrap());
    assert_eq!(summary(&copy), summary(&node.store));
    assert_eq!(said(&copy, lobby()), said(&node.store, lobby()));
    // What is there is not written over.
    let again = node.store.reader().copy_to(&file, &mut |_| true).unwrap_err();
    assert!(matches!(again, CopyError::Make { .. }), "{again}");
}

#[test]
fn a_copy_that_is_given_up_ends() {
    let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = busy(dir.path());
    let given_up = node.store.reader().copy_to(&to.path().join(FILE_NAME), &mut |_| false);
    assert!(matches!(given_up, Err(CopyError::GivenUp)));
}

#[test]
fn a_copy_of_a_store_under_load_is_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = busy(dir.path());
    let reader = node.store.reader();
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (stop, acknowledged) = (stop.clone(), acknowledged.clone());
        thread::spawn(move || {
            let ada = node.attach("ada");
            node.join(&ada, lobby());
            for n in 0.. {
                node.say(&ada, lobby(), &format!("load {n}"));
                acknowledged.store(n, Ordering::SeqCst);
                if stop.load(Ordering::SeqCst) {
                    break;
                }
            }
            node
        })
    };
    for n in 0..4_u64 {
        while acknowledged.load(Ordering::SeqCst) < n * 5 + 5 {
            thread::yield_now();
        }
        let to = tempfile::tempdir().unwrap();
        let before = acknowledged.load(Ordering::SeqCst);
        reader.copy_to(&to.path().join(FILE_NAME), &mut |_: Progress| true).unwrap();
        let report = check(to.path(), &mut |_| ()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let copied = said(&Store::open(to.path()).unwrap(), lobby());
        for n in 0..=before {
            let text = format!("load {n}");
            assert!(copied.iter().any(|it| it.1 == text), "{text} was acknowledged before");
        }
    }
    stop.store(true, Ordering::SeqCst);
    drop(writer.join().unwrap());
}

#[test]
fn a_copy_goes_on_under_a_new_identity() {
    let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut node = busy(dir.path());
    node.store.reader().copy_to(&to.path().join(FILE_NAME), &mut |_| true).unwrap();
    // What the original still gives numbers to, the restored one does not know of.
    let ada = node.attach("ada");
    node.join(&ada, lobby());
    let lost = node.say(&ada, lobby(), "after the backup");
    drop(node);

    let mut store = Store::open(to.path()).unwrap();
    let me = crate::lone::me(1);
    store.adopt(me).unwrap();
    drop(store);
    let mut node = Lone::open(to.path(), 2);
    let rooms = node.rooms();
    assert!(rooms.iter().any(|(name, _)| name == "lobby"), "{rooms:?}");
    let den = rooms.iter().find(|(name, _)| name == "den").expect("its private room").1;
    assert_eq!(said(&node.store, den).last().unwrap().1, "between us");
    let ada = node.attach("ada");
    node.join(&ada, lobby());
    node.join(&ada, den);
    let now = node.say(&ada, lobby(), "from now on");
    assert!(now.number > lost.number, "no number is used twice");
    node.say(&ada, den, "still between us");
    let all = said(&node.store, den);
    let texts: Vec<&str> = all.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(texts, ["between us", "still between us"]);
    // A room made now is there after a restart, and so is the old one.
    let attic = node.make(&ada, "attic", false);
    drop(node);
    let report = check(to.path(), &mut |_| ()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let mut node = Lone::open(to.path(), 2);
    let rooms = node.rooms();
    assert!([den, attic].iter().all(|room| rooms.iter().any(|it| it.1 == *room)), "{rooms:?}");
    // Nor is one of a second life mistaken for one of the first.
    drop(node);
    let mut store = Store::open(to.path()).unwrap();
    store.adopt(crate::lone::me(2)).unwrap();
    drop(store);
    let mut node = Lone::open(to.path(), 3);
    let rooms = node.rooms();
    assert!([den, attic].iter().all(|room| rooms.iter().any(|it| it.1 == *room)), "{rooms:?}");
}

#[test]
fn ballots_of_the_former_identity_are_not_taken_for_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = busy(dir.path());
    let ada = node.attach("ada");
    node.join(&ada, lobby());
    let vote = node.open_vote(&ada, lobby());
    node.ask(mesh::api::command::Command::CastVote { caller: ada, vote: vote.vote, option: 1 })
        .unwrap();
    let me = crate::lone::me(1);
    let notes = |store: &Store| store.summary(me, None).unwrap().notes;
    assert!(notes(&node.store).iter().any(|it| !it.2.choices.is_empty()));
    drop(node);
    let mut store = Store::open(dir.path()).unwrap();
    store.adopt(me).unwrap();
    assert!(notes(&store).iter().all(|it| it.2.choices.is_empty()));
    let node = store.summary(me, None).unwrap().node.unwrap();
    assert_eq!((node.private_of, node.clean, node.roster), (Some(me), false, None));
}
