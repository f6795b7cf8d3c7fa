//! The kept form of a subscription, and its changes by failures and successes.

use std::{fmt, time::Duration};

use mesh::{
    api::command::Speech,
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    limits::{WEBHOOK_KEEP_AFTER, WEBHOOK_RETRY_AFTER},
    seam::{
        answer::{Filter, SubscriptionStatus as Status, SubscriptionView},
        event::{Message, Voice},
    },
    secret::Secret,
};

/// Names of kept records begin so; the subscription's id follows.
pub(super) const NAMES: &[u8] = b"webhook/";

/// A subscription, as the store has it: JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    owner: [u8; 16],
    room: [u8; 16],
    pub(super) url: String,
    pub(super) secret: Secret,
    pub(super) filter: Filter,
    since: u64,
    /// Everything up to here was delivered, or was not to be.
    delivered: u64,
    status: Status,
    /// Failures in a row, but for one that ended it.
    failures: u64,
    /// Unix milliseconds of the next try, after a failure.
    retry_ms: Option<u64>,
    created_ms: u64,
}

/// All times of a subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Pauses before the tries that follow failures.
    pub(super) retry_after: [Duration; 5],
    /// A cursor that has moved is written after this.
    pub(super) keep_after: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { retry_after: WEBHOOK_RETRY_AFTER, keep_after: WEBHOOK_KEEP_AFTER }
    }
}

impl Policy {
    fn pause(&self, failures: u64) -> Option<Duration> {
        self.retry_after.get(usize::try_from(failures).ok()?).copied()
    }
}

/// A subscription that is asked for.
pub(super) struct New {
    pub(super) id: String,
    pub(super) owner: KeyPrint,
    pub(super) room: RoomId,
    pub(super) url: String,
    pub(super) secret: Secret,
    pub(super) filter: Filter,
    pub(super) since: Number,
    pub(super) now_ms: u64,
}

impl fmt::Debug for Record {
    /// URLs of webhooks often are secrets, as the secret is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, delivered) = (&self.status, &self.delivered);
        let mut shown = f.debug_struct("Record");
        shown.field("id", &self.id).field("status", status).field("delivered", delivered);
        shown.finish_non_exhaustive()
    }
}

/// The consequence of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another try.
    Retry(Duration),
    /// No more tries, until it is enabled again.
    Failed,
}

impl Record {
    pub(super) fn new(new: New) -> Record {
        Record {
            id: new.id,
            owner: new.owner.0,
            room: new.room.0,
            url: new.url,
            secret: new.secret,
            filter: new.filter,
            since: new.since.0,
            delivered: new.since.0,
            status: Status::Active,
            failures: 0,
            retry_ms: None,
            created_ms: new.now_ms,
        }
    }

    /// The same, as far and as well as it got elsewhere.
    pub(super) fn after(self, delivered: Number, status: Status, failures: u64) -> Record {
        let failures = failures.min(WEBHOOK_RETRY_AFTER.len() as u64);
        Record { delivered: delivered.0, status, failures, ..self }
    }

    /// `None` if it is of another version, or damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record has only what JSON has")
    }

    pub(super) fn name(&self) -> Vec<u8> {
        [NAMES, self.id.as_bytes()].concat()
    }

    pub(super) fn owner(&self) -> KeyPrint {
        KeyPrint(self.owner)
    }

    pub(super) fn room(&self) -> RoomId {
        RoomId(self.room)
    }

    pub(super) fn cursor(&self) -> Number {
        Number(self.delivered)
    }

    pub(super) fn is_active(&self) -> bool {
        match self.status {
            Status::Active => true,
            Status::Failed | Status::Disabled => false,
        }
    }

    /// How long to wait before the next try. Never longer than the pause was meant to be, even if the
    /// clock was set.
    pub(super) fn wait(&self, policy: &Policy, now_ms: u64) -> Option<Duration> {
        let pause = policy.pause(self.failures.checked_sub(1)?)?;
        let left = self.retry_ms?.saturating_sub(now_ms);
        Some(Duration::from_millis(left).min(pause))
    }

    /// Nothing up to here is to be delivered any more.
    pub(super) fn advance(&mut self, upto: Number) {
        self.delivered = self.delivered.max(upto.0);
        self.failures = 0;
        self.retry_ms = None;
    }

    pub(super) fn fail(&mut self, policy: &Policy, now_ms: u64) -> After {
        if let Some(pause) = policy.pause(self.failures) {
            self.failures += 1;
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            self.retry_ms = Some(now_ms.saturating_add(pause_ms));
            After::Retry(pause)
        } else {
            self.status = Status::Failed;
            self.retry_ms = None;
            After::Failed
        }
    }

    /// From where it stopped, at once.
    pub(super) fn enable(&mut self) {
        self.status = Status::Active;
        self.failures = 0;
        self.retry_ms = None;
    }

    /// As its owner sees it.
    pub(super) fn view(&self) -> SubscriptionView {
        SubscriptionView {
            id: self.id.clone(),
            room: self.room(),
            url: self.url.clone(),
            filter: self.filter.clone(),
            since: Number(self.since),
            delivered: Number(self.delivered),
            status: self.status,
            failures: self.failures,
            created_ms: self.created_ms,
        }
    }
}

impl Filter {
    /// Whether a message is to be delivered.
    pub(super) fn wants(&self, message: &Message, voice: &dyn Voice) -> bool {
        let from = |name: &String| *name == message.said.name;
        (message.speech != Speech::Thinking || !self.exclude_thinking)
            && self.only_from.as_ref().is_none_or(from)
            && !self.not_from.as_ref().is_some_and(from)
            && self
                .kinds
                .as_ref()
                .is_none_or(|kinds| voice.kind(message).is_some_and(|kind| kinds.contains(&kind)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use mesh::{
        Proof,
        name::id::{EntryRef, LogId, MessageId, NodeId},
        wire::entry::Said,
    };

    use super::*;
    use crate::seam::event::{Event, Frames};

    /// A dialect in which the metadata of a message is its kind.
    #[derive(Debug)]
    struct Tagged;

    impl Voice for Tagged {
        fn frames(&self, _: &Event) -> Frames {
            Frames::none()
        }

        fn kind(&self, message: &Message) -> Option<String> {
            message.said.metadata.clone()
        }

        fn letter(&self, _: &str, _: &Message) -> Option<Bytes> {
            None
        }
    }

    fn record() -> Record {
        Record::new(New {
            id: "s".into(),
            owner: KeyPrint([1; 16]),
            room: RoomId([2; 16]),
            url: "https://example.org/hush".into(),
            secret: Secret::new("hush"),
            filter: Filter::default(),
            since: Number(7),
            now_ms: 1_000,
        })
    }

    #[test]
    fn a_delivery_is_tried_again_five_times() {
        let (mut record, policy) = (record(), Policy::default());
        let mut now_ms = 1_000;
        for (n, secs) in [1, 4, 16, 64, 256].into_iter().enumerate() {
            let pause = Duration::from_secs(secs);
            assert_eq!(record.fail(&policy, now_ms), After::Retry(pause));
            assert_eq!(record.wait(&policy, now_ms), Some(pause));
            assert_eq!(record.view().failures, n as u64 + 1);
            assert!(record.is_active());
            now_ms += secs * 1_000;
            assert_eq!(record.wait(&policy, now_ms), Some(Duration::ZERO));
        }
        assert_eq!(record.fail(&policy, now_ms), After::Failed);
        let view = record.view();
        assert_eq!((view.status, view.failures), (Status::Failed, 5));
        assert_eq!(view.delivered, Number(7), "it keeps its cursor");
        record.enable();
        assert_eq!((record.is_active(), record.wait(&policy, now_ms)), (true, None));
        assert_eq!(record.fail(&policy, now_ms), After::Retry(Duration::from_secs(1)));
        record.advance(Number(9));
        assert_eq!((record.cursor(), record.wait(&policy, now_ms)), (Number(9), None));
        record.advance(Number(8));
        assert_eq!(record.cursor(), Number(9), "it never goes back");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_a_delivery() {
        let (mut record, policy) = (record(), Policy::default());
        record.fail(&policy, 1_000_000_000);
        assert_eq!(record.wait(&policy, 5), Some(Duration::from_secs(1)));
    }

    #[test]
    fn records_come_back_and_hide_their_secret() {
        let (mut record, policy) = (record(), Policy::default());
        record.fail(&policy, 1_000);
        assert_eq!(Record::decode(&record.encode()), Some(record.clone()));
        assert_eq!(Record::decode(b"{}"), None);
        assert_eq!(record.name(), b"webhook/s");
        let shown = format!("{record:?} {:?}", record.secret);
        assert!(shown.contains("Record") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn filters_are_and_across_fields_and_or_within_kinds() {
        let message = |name: &str, metadata: Option<&str>| Message {
            room: RoomId([2; 16]),
            number: Number(1),
            canonical: Number(1),
            numbers: Vec::new(),
            message: MessageId([3; 16]),
            speech: Speech::Chat,
            wall_ms: 0,
            by: NodeId([4; 32]),
            said: Arc::new(Said {
                agent: "a".into(),
                name: name.into(),
                content: "x".into(),
                reply_to: None,
                mentions: Vec::new(),
                metadata: metadata.map(String::from),
                dedup: None,
                turn: None,
                id: None,
                key: None,
                conversation: None,
            }),
            proof: Proof::default(),
            entry: EntryRef { log: LogId { author: NodeId([4; 32]), incarnation: 0 }, seq: 1 },
            fate: None,
        };
        let pulse = || Message { speech: Speech::Thinking, ..message("a", None) };
        let verdict = || message("claude", Some("verdict"));
        let check = |filter: &Filter, message: Message, expect| {
            assert_eq!(filter.wants(&message, &Tagged), expect, "{filter:?} {message:?}");
        };
        let kinds =
            Filter { kinds: Some(vec!["fyi".into(), "verdict".into()]), ..Filter::default() };
        check(&kinds, verdict(), true);
        check(&kinds, message("claude", Some("checkpoint")), false);
        check(&kinds, message("claude", None), false);
        let both = Filter { only_from: Some("claude".into()), ..kinds.clone() };
        check(&both, verdict(), true);
        check(&both, message("other", Some("verdict")), false);
        check(&both, message("claude", Some("x")), false);
        let not = Filter { not_from: Some("claude".into()), ..Filter::default() };
        check(&not, verdict(), false);
        check(&not, message("other", None), true);
        let quiet = Filter { exclude_thinking: true, ..Filter::default() };
        check(&quiet, pulse(), false);
        check(&quiet, message("a", None), true);
        check(&Filter::default(), pulse(), true);
    }
}
