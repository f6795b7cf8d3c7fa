//! The order by itself: with a replica to read and to write in, and without an engine.

use super::*;
use crate::{
    api::{batch::RoomRecord, boundary::Effect},
    limits::{CLAIM_EVERY, HOLE_AFTER_SILENCE, TAKEOVER_AFTER},
    name::id::{MeshId, NodeId, RoomId},
    order::{delivery::Read, issuing::Question, liveness::Liveness, takeover::SequencerStatus},
    turn::happened::{Happened, Step},
    wire::{
        entry::{Items, Said},
        message::Span,
    },
};

const ME: NodeId = NodeId([1; 32]);
const OTHER: NodeId = NodeId([2; 32]);

fn log(author: NodeId) -> LogId {
    LogId { author, incarnation: 0 }
}

/// A room at one node.
struct Site {
    cx: Context,
    live: Liveness,
    replica: Replica,
    order: Order,
}

impl Site {
    /// Its home sequencer is this node.
    fn new(home: NodeId) -> Site {
        let cx = Context::alone(ME);
        let record = RoomRecord::new(MeshId([1; 16]), log(home));
        let order = Order::new(Numbering::new(record.home));
        let replica = Replica::new(&cx, RoomId([3; 16]), record, log(ME));
        let live = Liveness::new(ME, TAKEOVER_AFTER, cx.now.mono, false);
        Site { cx, live, replica, order }
    }

    /// This node says something.
    fn say(&mut self) -> LocalRef {
        let body = Body::Chat(Said {
            agent: "ann".into(),
            name: "Ann".to_owned(),
            content: "hello".to_owned(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
            turn: None,
            id: None,
            key: None,
            conversation: None,
        });
        let draft = self.replica.write(&mut self.cx, &body, 0).expect("there is room");
        let (at, facts) = (draft.at, draft.facts);
        let read = Read { at, facts, body: &body, len: draft.plain.len() };
        self.order.hold(&mut self.cx, &self.replica, read);
        self.replica.keep(draft);
        at
    }

    fn number_waiting(&mut self) {
        self.order.number_waiting(&mut self.cx, &mut self.replica);
    }

    /// An entry of the other node comes, which gives these numbers of the home era.
    fn hear_ordered(&mut self, seq: u64, first: u64, (logs, items): (Vec<LogId>, Vec<Items>)) {
        let ix = self.replica.logs.ensure(log(OTHER)).expect("there is room");
        self.replica.logs.advance(ix, seq, seq);
        let ordered = Ordered { era: Era::HOME, first, logs, items, by: None };
        let at = LocalRef { log: ix, seq };
        self.order.fold(&mut self.cx, &mut self.replica, at, &Body::Ordered(ordered));
        self.order.deliver(&mut self.cx, &mut self.replica);
    }

    fn status(&self) -> SequencerStatus {
        self.order.status(&self.cx, &self.replica, &self.live)
    }

    /// Numbers that were delivered since the last time.
    fn delivered(&mut self) -> Vec<(Number, LocalRef)> {
        let arrived = self.cx.events.take(Step::Delivered).into_iter();
        let delivered = arrived.filter_map(|arrived| {
            if let Happened::Delivered { entry, .. } = arrived {
                Some((entry.number, entry.at))
            } else {
                None
            }
        });
        delivered.collect()
    }

    fn alarms(&mut self) -> Vec<Alarm> {
        let effects = std::mem::take(&mut self.cx.effects).into_iter();
        let alarms =
            effects.filter_map(
                |effect| if let Effect::Alarm(alarm) = effect { Some(alarm) } else { None },
            );
        alarms.collect()
    }
}

fn items(log: u32, from: u64, count: u32) -> Vec<Items> {
    vec![Items { log, from, count }]
}

#[test]
fn the_sequencer_numbers_all_that_wait_with_one_entry_and_delivers_them() {
    let mut site = Site::new(ME);
    assert_eq!(site.status(), SequencerStatus::Mine);
    let said: Vec<LocalRef> = (0..3).map(|_| site.say()).collect();
    site.number_waiting();
    let numbered: Vec<(Number, LocalRef)> = (1..).map(Number).zip(said).collect();
    assert_eq!(site.delivered(), numbered);
    assert_eq!(site.replica.logs.head_of(log(ME)), 4);
    assert_eq!(site.replica.record.tip, Number(3));
    site.number_waiting();
    assert_eq!(site.replica.logs.head_of(log(ME)), 4, "nothing waits any more");
}

#[test]
fn a_node_claims_the_next_era_when_the_sequencer_is_gone_and_not_twice_at_once() {
    let mut site = Site::new(OTHER);
    let said = site.say();
    assert_eq!(site.status(), SequencerStatus::Other(OTHER));
    site.cx.now.mono += TAKEOVER_AFTER;
    let SequencerStatus::Gone(gone) = site.status() else { panic!("it is silent") };
    site.order.take_over(&mut site.cx, &mut site.replica, &mut site.live, gone);
    let era = Era::new(1, 1).expect("an era");
    assert_eq!(site.delivered(), [(era.number(1), said)]);
    assert_eq!(site.status(), SequencerStatus::Mine);
    let room = site.replica.id;
    assert_eq!(site.alarms(), [Alarm::EraOpened { room, era, before: OTHER }]);
    site.cx.now.mono += CLAIM_EVERY - Duration::from_millis(1);
    assert!(!site.order.claim(&mut site.cx, &mut site.replica, Vec::new()));
    site.cx.now.mono += Duration::from_millis(1);
    assert!(site.order.claim(&mut site.cx, &mut site.replica, Vec::new()));
}

#[test]
fn an_era_that_was_given_away_is_another_nodes() {
    let mut site = Site::new(ME);
    site.say();
    site.number_waiting();
    let mut give = || site.order.hand_over(&mut site.cx, &mut site.replica, Era::HOME, log(OTHER));
    assert_eq!((give(), give()), (Some(3), None));
    assert_eq!(site.status(), SequencerStatus::Other(OTHER));
    let by = EntryRef { log: log(ME), seq: 3 };
    assert_eq!(site.order.numbering.by(Era::HOME), Some(by));
}

#[test]
fn a_number_whose_entry_nobody_has_is_a_hole_in_the_end_and_what_is_behind_it_is_delivered() {
    let mut site = Site::new(OTHER);
    let said = site.say();
    site.hear_ordered(1, 1, (vec![log(OTHER)], items(0, 9, 1)));
    site.hear_ordered(2, 2, (vec![log(ME)], items(0, said.seq, 1)));
    assert_eq!(site.delivered(), [], "the first of them may still come");
    site.cx.now.mono += HOLE_AFTER_SILENCE;
    site.order.leave_holes(&mut site.cx, &mut site.replica);
    let hole = Alarm::Hole { room: site.replica.id, number: Number(1) };
    assert_eq!((site.alarms(), site.order.holes), (vec![hole], 1));
    assert_eq!(site.delivered(), [(Number(2), said)]);
}

#[test]
fn an_entry_that_is_asked_for_gets_one_more_number_once() {
    let mut site = Site::new(ME);
    let said = site.say();
    site.number_waiting();
    let spans = [Span { log: log(ME), after: 0, upto: said.seq }];
    let mut ask = |tip| {
        let question = Question { era: Era::HOME, tip, spans: &spans };
        site.order.on_ask(&mut site.cx, &mut site.replica, &site.live, question);
        site.order.numbering.known(Era::HOME)
    };
    assert_eq!(ask(Number(2)), 1, "of whoever is further than this node nothing is known");
    assert_eq!(ask(Number(1)), 2);
    assert_eq!(ask(Number(1)), 2, "it has one above that tip");
    assert_eq!(ask(Number(2)), 3);
}

#[test]
fn numbers_of_an_author_that_does_not_give_them_count_nowhere() {
    let mut site = Site::new(ME);
    let said = site.say();
    site.hear_ordered(1, 1, (vec![log(ME)], items(0, said.seq, 1)));
    assert_eq!((site.delivered(), site.order.numbering.known(Era::HOME)), (Vec::new(), 0));
    assert_eq!(site.cx.faults.void, 1);
}
