//! What is kept of a subscription, and what a failure or a success does to it.

use std::{fmt, time::Duration};

use mesh::{
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
    wire::kinds::THINKING,
};
use protocol::{
    object::{Message, Subscription, SubscriptionStatus as Status},
    value::Secret,
};
use serde::{Deserialize, Serialize};

use crate::{
    convert,
    limits::{WEBHOOK_KEEP_AFTER, WEBHOOK_RETRY_AFTER},
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

/// Which messages are delivered: all of these must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filter {
    /// Only those whose `metadata.kind` is one of these.
    pub(super) kinds: Option<Vec<String>>,
    /// Only those of agents of this name.
    pub(super) only_from: Option<String>,
    /// None of agents of this name.
    pub(super) not_from: Option<String>,
    /// No thinking pulses.
    pub(super) exclude_thinking: bool,
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

/// What is asked for.
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

/// What a failure leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another try.
    Retry(Duration),
    /// No more tries, until it is enabled again.
    Failed,
}

impl Record {
    pub(super) fn new(it: New) -> Record {
        Record {
            id: it.id,
            owner: it.owner.0,
            room: it.room.0,
            url: it.url,
            secret: it.secret,
            filter: it.filter,
            since: it.since.0,
            delivered: it.since.0,
            status: Status::Active,
            failures: 0,
            retry_ms: None,
            created_ms: it.now_ms,
        }
    }

    /// The same, as far and as well as it got elsewhere.
    pub(super) fn after(self, (delivered, status, failures): (Number, Status, u64)) -> Record {
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

    /// How long to wait before the next try. Never longer than the pause was meant to be, whatever the
    /// clock did since.
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
    pub(super) fn view(&self, lobby: RoomId) -> Subscription {
        Subscription {
            subscription_id: self.id.clone(),
            room_id: convert::room_text(lobby, self.room()),
            webhook_url: self.url.clone(),
            kinds: self.filter.kinds.clone(),
            only_from: self.filter.only_from.clone(),
            not_from: self.filter.not_from.clone(),
            exclude_thinking: self.filter.exclude_thinking,
            since_seq: self.since,
            last_delivered_seq: self.delivered,
            status: self.status,
            failure_count: self.failures,
            created_at: convert::timestamp(self.created_ms),
        }
    }
}

impl Filter {
    /// Whether a message of this kind ([`mesh::wire::entry::Facts::kind`]) is to be delivered.
    pub(super) fn wants(&self, kind: u8, message: &Message) -> bool {
        let from = |name: &String| *name == message.agent_name;
        (kind != THINKING || !self.exclude_thinking)
            && self.only_from.as_ref().is_none_or(from)
            && !self.not_from.as_ref().is_some_and(from)
            && self.kinds.as_ref().is_none_or(|kinds| is_one_of(kinds, message))
    }
}

/// Whether `metadata.kind` is one of these.
fn is_one_of(kinds: &[String], message: &Message) -> bool {
    #[derive(Deserialize)]
    struct Tagged {
        kind: String,
    }
    let metadata = message.metadata.as_ref();
    let tagged = metadata.and_then(|json| serde_json::from_str::<Tagged>(json.get()).ok());
    tagged.is_some_and(|tagged| kinds.contains(&tagged.kind))
}

#[cfg(test)]
mod tests {
    use mesh::wire::kinds::CHAT;
    use protocol::value::Metadata;

    use super::*;

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
            assert_eq!(record.view(RoomId([0; 16])).failure_count, n as u64 + 1);
            assert!(record.is_active());
            now_ms += secs * 1_000;
            assert_eq!(record.wait(&policy, now_ms), Some(Duration::ZERO));
        }
        assert_eq!(record.fail(&policy, now_ms), After::Failed);
        let view = record.view(RoomId([0; 16]));
        assert_eq!((view.status, view.failure_count), (Status::Failed, 5));
        assert_eq!(view.last_delivered_seq, 7, "it keeps its cursor");
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
        let wire = serde_json::to_string(&record.view(RoomId([2; 16]))).unwrap();
        assert!(!wire.contains("secret") && wire.contains(r#""room_id":"lobby""#), "{wire}");
    }

    #[test]
    fn filters_are_and_across_fields_and_or_within_kinds() {
        let message = |name: &str, metadata: Option<&str>| Message {
            message_id: "m".into(),
            room_id: "r".into(),
            agent_id: "a".into(),
            agent_name: name.into(),
            content: "x".into(),
            reply_to_message: None,
            metadata: metadata.map(|json| Metadata::parse(json).unwrap()),
            timestamp: String::new(),
            seq: 1,
            mesh: None,
        };
        let verdict = || message("claude", Some(r#"{"kind":"verdict"}"#));
        let check = |filter: &Filter, message: Message, expect| {
            assert_eq!(filter.wants(CHAT, &message), expect, "{filter:?} {message:?}");
        };
        let kinds =
            Filter { kinds: Some(vec!["fyi".into(), "verdict".into()]), ..Filter::default() };
        check(&kinds, verdict(), true);
        check(&kinds, message("claude", Some(r#"{"kind":"checkpoint"}"#)), false);
        check(&kinds, message("claude", Some(r#"{"kind":7}"#)), false);
        check(&kinds, message("claude", Some(r#""verdict""#)), false);
        check(&kinds, message("claude", None), false);
        let both = Filter { only_from: Some("claude".into()), ..kinds.clone() };
        check(&both, verdict(), true);
        check(&both, message("other", Some(r#"{"kind":"verdict"}"#)), false);
        check(&both, message("claude", Some(r#"{"kind":"x"}"#)), false);
        let not = Filter { not_from: Some("claude".into()), ..Filter::default() };
        check(&not, verdict(), false);
        check(&not, message("other", None), true);
        let quiet = Filter { exclude_thinking: true, ..Filter::default() };
        assert!(!quiet.wants(THINKING, &message("a", None)));
        assert!(quiet.wants(CHAT, &message("a", None)));
        assert!(Filter::default().wants(THINKING, &message("a", None)));
    }
}
