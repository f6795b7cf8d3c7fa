use super::*;

const ROOM: RoomId = RoomId([1; 16]);
const OTHER: RoomId = RoomId([2; 16]);

fn opened() -> Outbox {
    let mut outbox = Outbox::new();
    outbox.open();
    outbox.seat(ROOM, false);
    outbox
}

fn bytes(number: u64, len: usize) -> Bytes {
    let mut text = format!("{number}").into_bytes();
    text.resize(len.max(text.len()), b' ');
    Bytes::from(text)
}

fn frame(number: u64, len: usize) -> Rendered {
    Rendered::plain(bytes(number, len).into())
}

fn numbered(n: u64, len: usize) -> Numbered {
    Numbered { number: Number(n), frame: frame(n, len), mention: None }
}

fn number(frame: &Frame) -> u64 {
    std::str::from_utf8(&frame.parts()[0]).unwrap().trim().parse().unwrap()
}

/// Reads until there is nothing to do; the delivery log goes up to `tip`.
fn drain(outbox: &mut Outbox, tip: u64, len: usize) -> Vec<u64> {
    let (mut batch, mut got) = (Vec::new(), Vec::new());
    loop {
        match outbox.next(&mut batch) {
            Work::Wait => return got,
            Work::Write => got.extend(batch.iter().map(number)),
            Work::CatchUp(Lag { room, after, upto, rows, .. }) => {
                let rows = (after.0 + 1..=tip).take(rows);
                let frames: Vec<_> = rows.map(|n| numbered(n, len)).collect();
                let last = frames.last().map(|message| message.number);
                assert!(outbox.caught_up(room, Page { after, upto, last, judged: false, frames }));
            }
        }
    }
}

#[test]
fn who_does_not_read_gets_everything_later_and_costs_little() {
    let mut outbox = opened();
    for n in 1..=20_000 {
        outbox.message(ROOM, Number(n), Content::Frame(frame(n, 300)), None);
        let (frames, bytes) = outbox.held();
        assert!(frames <= limits::QUEUE_FRAMES_MAX && bytes <= limits::QUEUE_BYTES_MAX);
    }
    assert_eq!(drain(&mut outbox, 20_000, 300), (1..=20_000).collect::<Vec<_>>());
    outbox.message(ROOM, Number(20_001), Content::Frame(frame(20_001, 300)), None);
    assert_eq!(outbox.next(&mut Vec::new()), Work::Write, "live again");
}

#[test]
fn what_is_announced_during_a_catch_up_comes_once() {
    let mut outbox = opened();
    let big = limits::QUEUE_BYTES_MAX / 2;
    for n in 1..=4 {
        outbox.message(ROOM, Number(n), Content::Frame(frame(n, big)), None);
    }
    let mut batch = Vec::new();
    let mut got = Vec::new();
    while outbox.next(&mut batch) == Work::Write {
        got.extend(batch.iter().map(number));
    }
    // The page was read when 5 was durable, before it was announced.
    let page = (3..=5).map(|n| numbered(n, 10)).collect();
    let (after, upto, last) = (Number(2), Number(4), Some(Number(5)));
    outbox.caught_up(ROOM, Page { after, upto, last, judged: false, frames: page });
    outbox.message(ROOM, Number(5), Content::Frame(frame(5, 10)), None);
    outbox.message(ROOM, Number(6), Content::Frame(frame(6, 10)), None);
    got.extend(drain(&mut outbox, 6, 10));
    assert_eq!(got, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_a_client_is_proven_to_have_is_not_missing() {
    for (judged, complete) in [(true, true), (false, false)] {
        let mut outbox = opened();
        outbox.message(ROOM, Number(3), Content::ToBeRead, None);
        let Work::CatchUp(lag) = outbox.next(&mut Vec::new()) else { panic!("lags") };
        let Lag { after, upto, .. } = lag;
        // Announced after the page was read: it is not in it, and has to come.
        outbox.message(ROOM, Number(4), Content::Frame(frame(4, 10)), None);
        let page = Page { after, upto, last: None, judged, frames: Vec::new() };
        assert_eq!(outbox.caught_up(ROOM, page), complete);
        assert_eq!(drain(&mut outbox, 4, 10), [4]);
        outbox.message(ROOM, Number(5), Content::Frame(frame(5, 10)), None);
        assert_eq!(drain(&mut outbox, 5, 10), [5], "live again");
    }
}

#[test]
fn a_held_room_waits_and_goes_on_where_the_client_is() {
    let mut outbox = opened();
    outbox.hold(ROOM);
    for n in 7..=9 {
        outbox.message(ROOM, Number(n), Content::Frame(frame(n, 10)), None);
    }
    assert_eq!(drain(&mut outbox, 9, 10), [0; 0]);
    outbox.release(ROOM, Number(8));
    assert_eq!(drain(&mut outbox, 9, 10), [9]);
    outbox.hold(ROOM);
    outbox.message(ROOM, Number(10), Content::Frame(frame(10, 10)), None);
    outbox.release(ROOM, Number(10));
    assert_eq!(drain(&mut outbox, 10, 10), [0; 0]);
}

#[test]
fn rooms_that_lag_take_turns() {
    let mut outbox = opened();
    outbox.seat(OTHER, false);
    for room in [ROOM, OTHER] {
        outbox.message(room, Number(1), Content::ToBeRead, None);
    }
    let mut batch = Vec::new();
    let mut order = Vec::new();
    for tip in 1..=4 {
        let Work::CatchUp(Lag { room, after, upto, .. }) = outbox.next(&mut batch) else {
            panic!("lags")
        };
        order.push(room);
        outbox.message(room, Number(after.0 + 2), Content::ToBeRead, None);
        let last = Some(Number(after.0 + 1));
        outbox.caught_up(room, Page { after, upto, last, judged: false, frames: Vec::new() });
        assert!(tip <= 4);
    }
    assert_eq!(order, [ROOM, OTHER, ROOM, OTHER]);
}

#[test]
fn of_events_that_do_not_fit_the_newest_are_kept() {
    let mut outbox = opened();
    let all = 10_000;
    for n in 1..=all {
        outbox.event(frame(n, 100));
        let (frames, bytes) = outbox.held();
        assert!(frames <= limits::QUEUE_FRAMES_MAX + limits::SPILL_FRAMES_MAX);
        assert!(bytes <= limits::QUEUE_BYTES_MAX + limits::SPILL_BYTES_MAX);
    }
    let got = drain(&mut outbox, 0, 0);
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    assert_eq!(got.last(), Some(&all));
    assert_eq!(got.len(), limits::QUEUE_FRAMES_MAX + limits::SPILL_FRAMES_MAX);
}

#[test]
fn nothing_but_replies_goes_out_before_the_welcome() {
    let mut outbox = Outbox::new();
    outbox.seat(ROOM, false);
    outbox.event(frame(1, 1));
    outbox.message(ROOM, Number(5), Content::Frame(frame(5, 1)), None);
    outbox.reply(bytes(3, 1));
    assert_eq!(drain(&mut outbox, 5, 1), [3]);
    outbox.open();
    assert_eq!(drain(&mut outbox, 5, 1), [1, 5]);
}

#[test]
fn a_client_that_takes_no_replies_may_not_ask_for_more() {
    let mut outbox = opened();
    while outbox.takes_replies() {
        outbox.reply(bytes(1, 10_000));
    }
    assert!(outbox.held().1 <= limits::REPLY_BYTES_MAX + 10_000);
    drain(&mut outbox, 0, 0);
    assert!(outbox.takes_replies());
}

#[test]
fn what_was_written_is_known_for_a_later_reconnection() {
    let mut outbox = opened();
    for n in 41..=43 {
        outbox.message(ROOM, Number(n), Content::Frame(frame(n, limits::WRITE_BYTES)), None);
    }
    assert_eq!(outbox.seen(), []);
    assert_eq!(outbox.resume_points(), [(ROOM, Number(40))]);
    let mut batch = Vec::new();
    assert_eq!(outbox.next(&mut batch), Work::Write);
    assert_eq!(outbox.seen(), [], "given to the writer, not written");
    assert_eq!(outbox.next(&mut batch), Work::Write);
    assert_eq!(outbox.seen(), [(ROOM, Number(41))]);
    assert_eq!(outbox.resume_points(), [(ROOM, Number(41))]);
}

#[test]
fn an_unseated_room_is_silent() {
    let mut outbox = opened();
    outbox.message(ROOM, Number(1), Content::ToBeRead, None);
    outbox.unseat(ROOM);
    outbox.message(ROOM, Number(2), Content::Frame(frame(2, 1)), None);
    assert_eq!(drain(&mut outbox, 2, 1), [0; 0]);
    outbox.seat(ROOM, false);
    outbox.message(ROOM, Number(3), Content::Frame(frame(3, 1)), None);
    assert_eq!(drain(&mut outbox, 3, 1), [3]);
}
