//! The past of a room: its logs side by side.

use mesh::{
    api::batch::{Change, Fate},
    chronicle::Position,
    name::number::{Era, Number},
};
use store::{Happened, Past, Store, testing::CrashingBackend};

use crate::rows::*;

/// Entry `seq` of log `log` with this clock, delivered under this number, if it was.
fn said_at(log: u32, seq: u64, clock: u64, given: Option<u64>) -> Vec<Change> {
    let mut said = stored(seq, &format!("{log}.{seq}"));
    said.facts.clock = clock;
    let delivered = |n| number(ROOM, Number(n), at(log, seq), Fate::Delivered);
    [entry(ROOM, at(log, seq), said)].into_iter().chain(given.map(delivered)).collect()
}

fn text(past: &Past) -> String {
    match &past.what {
        Happened::Said(row) => row.said.as_ref().unwrap().content.clone(),
        Happened::Task(..) => panic!("nobody made a task"),
    }
}

#[test]
fn logs_are_read_side_by_side_and_pages_go_on_where_others_ended() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let mut batch = vec![tip(ROOM, Number(9)), era(ROOM, Era::HOME, 9, 9, &[])];
    let mut forked = log_settled(ROOM, 2, 3, 3);
    if let Change::Log { record, .. } = &mut forked {
        record.fork = Some(3);
    }
    batch.extend([log_settled(ROOM, 0, 4, 4), log_settled(ROOM, 1, 2, 2), forked]);
    // Two of one clock: by the log. One was never delivered, and one stands behind a fork.
    for (log, seq, clock, given) in [
        (0, 1, 1, Some(1)),
        (0, 2, 5, Some(2)),
        (0, 3, 6, None),
        (0, 4, 9, Some(7)),
        (1, 1, 2, Some(3)),
        (1, 2, 5, Some(4)),
        (2, 1, 3, Some(6)),
        (2, 2, 7, Some(5)),
        (2, 3, 8, Some(8)),
    ] {
        batch.extend(said_at(log, seq, clock, given));
    }
    store.commit(&batch).unwrap();
    let reader = store.reader();
    let whole: Vec<String> = reader.past(ROOM, None, 100).unwrap().iter().map(text).collect();
    assert_eq!(whole, ["0.1", "1.1", "2.1", "0.2", "1.2", "2.2", "0.4"]);
    for limit in 1..=3 {
        let (mut parts, mut after): (Vec<String>, Option<Position>) = (Vec::new(), None);
        loop {
            let page = reader.past(ROOM, after, limit).unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit);
            after = Some(last.at);
            parts.extend(page.iter().map(text));
        }
        assert_eq!(parts, whole, "{limit} at a time");
    }
}
