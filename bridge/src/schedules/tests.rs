//! A keeper that reads what is changed meanwhile.

use std::sync::{Arc, mpsc};

use mesh::records::schedules::WantedJobs;
use tokio::{sync::oneshot, task::yield_now};

use super::{Job, job::tests::job, keeper, new_job, now_ms, plan::Plan};
use crate::{
    Bridge,
    read::Desk,
    secret::Secret,
    testing::{Fake, KEY, echo::Echo, keyed, knobs::Gate, own_key},
};

#[tokio::test]
async fn a_job_that_was_read_before_it_was_deleted_does_not_come_back() {
    let (fake, hub) = Fake::new();
    let bridge = Bridge::new(keyed(), hub, fake.clone(), vec![Arc::new(Echo::default())]);
    let desk: Desk = bridge.desk().clone();
    let key = Secret::new(KEY);
    let job = Job { id: new_job(), from_ms: now_ms(), ..job(Plan::every(3_600_000).unwrap()) };
    let id = job.id;
    desk.put_job(&key, job, true).await.unwrap();
    let (room, record) = {
        let all = desk.schedules().lock();
        let book = &all.books[&own_key()];
        (book.room.unwrap(), book.entries[&id].record)
    };
    let ((came, comes), (open, opens)) = (oneshot::channel(), mpsc::channel());
    *fake.knobs.gate.lock().unwrap() = Some(Gate { came, opens });
    let reads = tokio::spawn({
        let desk = desk.clone();
        async move { keeper::read_changed_job(&desk, (own_key(), room), record).await }
    });
    comes.await.unwrap();
    let deletes = tokio::spawn({
        let (desk, key) = (desk.clone(), key.clone());
        async move { desk.delete_job(&key, id).await }
    });
    let is_there = async || {
        let read = desk.reading(move |reads| reads.jobs(room, WantedJobs::All)).await;
        !read.unwrap().is_empty()
    };
    while is_there().await {
        yield_now().await;
    }
    // The rest of the deletion, if it does not wait.
    for _ in 0..10 {
        yield_now().await;
    }
    open.send(()).unwrap();
    reads.await.unwrap().unwrap();
    deletes.await.unwrap().unwrap();
    assert!(desk.jobs(own_key()).is_empty(), "it is deleted for ever");
}
