//! Strings and numbers that have been checked, so that nobody checks them twice.

use std::{collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::field::{Field, Fields};
use crate::limits::{DEDUP_BYTES_MAX, DURABLE_WAIT_MS_MAX, METADATA_DEPTH_MAX};

macro_rules! hidden {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(String);

            impl $name {
                /// As the client gave it.
                pub fn new(text: impl Into<String>) -> Self {
                    Self(text.into())
                }

                /// The text itself: for comparing and deriving, never for printing.
                pub fn expose(&self) -> &str {
                    &self.0
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(concat!(stringify!($name), "(hidden)"))
                }
            }

            impl Field for $name {
                const EXPECTED: &'static str = "a string";

                fn decode(raw: &RawValue) -> Option<Self> {
                    String::decode(raw).map(Self)
                }
            }
        )*
    };
}

hidden! {
    /// An API key. It does not appear in `Debug` output, so that it cannot reach a log by accident.
    ApiKey,
    /// The secret that signs a subscription's deliveries. Hidden like an [`ApiKey`].
    Secret,
}

/// A sender's attachment to a message: any JSON but `null`.
///
/// Sound and on one line: every string is valid Unicode, every number fits a double, nothing is
/// nested deeper than [`METADATA_DEPTH_MAX`], and there is no raw newline. Otherwise one sender could
/// break the frames of everybody in its room. The text is kept as it came.
#[derive(Clone)]
pub struct Metadata(Box<RawValue>);

impl Metadata {
    /// Checks a JSON text.
    ///
    /// # Errors
    /// [`UnsoundMetadata`] if it is not JSON, is `null`, or breaks one of the bounds above.
    pub fn parse(json: &str) -> Result<Self, UnsoundMetadata> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let sound = Sound { depth_left: METADATA_DEPTH_MAX };
        sound.deserialize(&mut reader).and_then(|()| reader.end()).map_err(|_| UnsoundMetadata)?;
        let raw = RawValue::from_string(one_line(json.trim())).map_err(|_| UnsoundMetadata)?;
        if raw.get() == "null" { Err(UnsoundMetadata) } else { Ok(Self(raw)) }
    }

    /// The JSON text, on one line.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Whether it is an object: only to these can fields be added.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// The text of this name at the top of an object.
    pub fn text(&self, name: &str) -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(self.get()).ok()?;
        value.get(name)?.as_str().map(String::from)
    }

    /// An object of these texts, and of the fields of `under` that are not named so.
    pub fn of_texts(texts: &[(&str, &str)], under: Option<&Metadata>) -> Metadata {
        let mut fields: BTreeMap<String, Box<RawValue>> = under
            .filter(|metadata| metadata.is_object())
            .and_then(|metadata| serde_json::from_str(metadata.get()).ok())
            .unwrap_or_default();
        for (name, text) in texts {
            let text = serde_json::value::to_raw_value(text).expect("a string is JSON");
            fields.insert(String::from(*name), text);
        }
        let object = serde_json::value::to_raw_value(&fields);
        Metadata(object.expect("an object of JSON values is JSON"))
    }
}

/// The text is not metadata that can be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsoundMetadata;

impl fmt::Display for UnsoundMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metadata must be {}", Metadata::EXPECTED)
    }
}

impl std::error::Error for UnsoundMetadata {}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Metadata {}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Metadata is content: its size is all that may reach a log.
        write!(f, "Metadata({} bytes)", self.get().len())
    }
}

impl Serialize for Metadata {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}

impl Field for Metadata {
    const EXPECTED: &'static str =
        "JSON with valid strings and numbers, nested at most 100 levels deep";

    fn decode(raw: &RawValue) -> Option<Self> {
        Self::parse(raw.get()).ok()
    }
}

/// Drops the raw newlines of a JSON text. Between tokens they mean nothing, and within strings JSON
/// does not allow them.
fn one_line(json: &str) -> String {
    json.chars().filter(|c| !matches!(c, '\n' | '\r')).collect()
}

/// Reads a value completely and keeps nothing of it. Unlike skipping, this refuses lone surrogates
/// and numbers out of range, which a reader at the other end would choke on.
#[derive(Clone, Copy)]
struct Sound {
    depth_left: usize,
}

impl Sound {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth_left =
            self.depth_left.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Self { depth_left })
    }
}

impl<'de> DeserializeSeed<'de> for Sound {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while seq.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while map.next_key_seed(inner)?.is_some() {
            map.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// An agent's status, as it states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Connected, nothing to do. The status after `register`.
    #[default]
    Idle,
    /// Waiting for others.
    Waiting,
    /// Busy with a task.
    Working,
    /// Busy with a thought.
    Thinking,
}

impl Status {
    /// The status as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Waiting => "waiting",
            Status::Working => "working",
            Status::Thinking => "thinking",
        }
    }
}

impl Field for Status {
    const EXPECTED: &'static str = "one of idle, waiting, working, thinking";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// The kind of a piece of an answer that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    /// More of the text.
    Chunk,
    /// The agent uses a tool.
    ToolCall,
    /// And has its result.
    ToolResult,
    /// A word about the work.
    Activity,
}

impl Field for PieceKind {
    const EXPECTED: &'static str = "one of chunk, tool_call, tool_result, activity";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Nobody has begun. The status of a new task.
    Pending,
    /// Somebody is at it.
    InProgress,
    /// Done.
    Completed,
    /// Waits for something.
    Blocked,
}

impl Field for TaskStatus {
    const EXPECTED: &'static str = "one of pending, in_progress, completed, blocked";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// What somebody says about an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChoice {
    /// The agent may.
    Approved,
    /// It may, and whenever it asks for the same in this room.
    Always,
    /// It may not.
    Denied,
    /// It is to ask for something else.
    Changes,
    /// No longer for always.
    Withdrawn,
}

impl Field for ApprovalChoice {
    const EXPECTED: &'static str = "one of approved, always, denied, changes, withdrawn";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// The agent that has to hold a task so that an update is applied. On the wire: absent, `null`, or an id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IfAssignee {
    /// Any agent, or none.
    #[default]
    Anybody,
    /// Nobody.
    Nobody,
    /// This agent.
    Agent(String),
}

impl Field for IfAssignee {
    const EXPECTED: &'static str = "the id of an agent, or null";

    fn decode(raw: &RawValue) -> Option<Self> {
        String::decode(raw).map(Self::Agent)
    }

    fn absent() -> Option<Self> {
        Some(Self::Anybody)
    }

    fn null() -> Option<Self> {
        Some(Self::Nobody)
    }

    fn is_unset(&self) -> bool {
        *self == Self::Anybody
    }
}

impl Serialize for IfAssignee {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Anybody | Self::Nobody => s.serialize_none(),
            Self::Agent(id) => s.serialize_str(id),
        }
    }
}

/// A change of something that may be there or not. On the wire: absent, `null`, or the new value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Update<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is deleted.
    Delete,
    /// It is this from now on.
    Set(T),
}

impl Field for Update<String> {
    const EXPECTED: &'static str = "a string, or null";

    fn decode(raw: &RawValue) -> Option<Self> {
        String::decode(raw).map(Self::Set)
    }

    fn absent() -> Option<Self> {
        Some(Self::Keep)
    }

    fn null() -> Option<Self> {
        Some(Self::Delete)
    }

    fn is_unset(&self) -> bool {
        *self == Self::Keep
    }
}

impl<T: Serialize> Serialize for Update<T> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Delete => s.serialize_none(),
            Self::Set(value) => value.serialize(s),
        }
    }
}

/// Settings of a room, by name.
pub type Settings = BTreeMap<String, Metadata>;

/// Settings that change, by name; `None`, on the wire `null`: the setting is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct SettingsUpdate(pub BTreeMap<String, Option<Metadata>>);

impl Field for SettingsUpdate {
    const EXPECTED: &'static str =
        "an object; each of its values `null` or sound JSON, as `metadata` of a message is";

    fn decode(raw: &RawValue) -> Option<Self> {
        let values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let value = |raw: &RawValue| match raw.get() {
            "null" => Some(None),
            json => Metadata::parse(json).ok().map(Some),
        };
        let settings = values.into_iter().map(|(name, raw)| Some((name, value(&raw)?)));
        settings.collect::<Option<_>>().map(Self)
    }
}

/// How far an agent says it has come, in per cent: 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Progress(u8);

impl Progress {
    /// The progress, if it is within 0 to 100.
    pub fn new(percent: u64) -> Option<Self> {
        u8::try_from(percent).ok().filter(|percent| *percent <= 100).map(Self)
    }

    /// The progress in per cent.
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl TryFrom<u64> for Progress {
    type Error = &'static str;

    fn try_from(percent: u64) -> Result<Self, Self::Error> {
        Self::new(percent).ok_or("progress must be an integer from 0 to 100")
    }
}

impl Field for Progress {
    const EXPECTED: &'static str = "an integer from 0 to 100";

    fn decode(raw: &RawValue) -> Option<Self> {
        u64::decode(raw).and_then(Self::new)
    }
}

/// Names one send over all its retries: 1 to [`DEDUP_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct DedupId(String);

impl DedupId {
    /// The id, if its length is allowed.
    pub fn new(id: impl Into<String>) -> Option<Self> {
        let id = id.into();
        (1..=DEDUP_BYTES_MAX).contains(&id.len()).then_some(Self(id))
    }

    /// The id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A sender's options for a mesh node, beyond the standard protocol; standard servers ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SendOptions {
    /// Repeated within 10 minutes by the same key and agent, the send returns the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup: Option<DedupId>,
    /// So many nodes are to hold the message durably before the reply, the client's own included: 1 or more. The reply
    /// says how many do ([`crate::object::MeshNote::durable`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable: Option<u64>,
    /// For how long the reply waits for them, in milliseconds; at most [`DURABLE_WAIT_MS_MAX`]. Absent = 2,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_wait_ms: Option<u64>,
}

impl Field for SendOptions {
    const EXPECTED: &'static str = "an object with any of: `dedup`, a string of 1 to 128 bytes; `durable`, an \
                                    integer of 1 or more; `durable_wait_ms`, an integer of 0 to 20000";

    fn decode(raw: &RawValue) -> Option<Self> {
        let fields = Fields::read(raw.get(), &["dedup", "durable", "durable_wait_ms"]).ok()?;
        let dedup = match fields.get::<Option<String>>("dedup", None).ok()? {
            Some(id) => Some(DedupId::new(id)?),
            None => None,
        };
        let durable = fields.get::<Option<u64>>("durable", None).ok()?;
        let durable_wait_ms = fields.get::<Option<u64>>("durable_wait_ms", None).ok()?;
        let sound = durable.is_none_or(|copies| copies >= 1)
            && durable_wait_ms.is_none_or(|ms| ms <= DURABLE_WAIT_MS_MAX);
        sound.then_some(Self { dedup, durable, durable_wait_ms })
    }
}

/// Options of a room that is made at a mesh node; standard servers ignore them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RoomOptions {
    /// The room can be shared with agents of other keys, and nobody else sees it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Field for RoomOptions {
    const EXPECTED: &'static str = "an object, with `shared`, if it is there, true or false";

    fn decode(raw: &RawValue) -> Option<Self> {
        let fields = Fields::read(raw.get(), &["shared"]).ok()?;
        let shared = fields.get::<Option<bool>>("shared", None).ok()?.unwrap_or_default();
        Some(Self { shared })
    }
}

/// The longest [`RegisterOptions::linger_secs`].
pub const LINGER_SECS_MAX: u64 = 600;

/// Random bytes of an id that a client has its node draw.
pub const DRAWN_BYTES: usize = 6;

/// The wishes of an agent that registers, of mesh nodes alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RegisterOptions {
    /// After its connection has ended the agent stays for so many seconds; at most [`LINGER_SECS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger_secs: Option<u64>,
    /// Without an `agent_id`: the random part of the id that the node draws. The same part and key have the same id.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hexadecimal")]
    pub draw: Option<[u8; DRAWN_BYTES]>,
    /// Events that clients are not told of unless they ask: [`RECEIPT`], [`STREAM`]. Names that a node does not know are of no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

/// The event that a request in a direct room has come further.
pub const RECEIPT: &str = "receipt";

/// The event that an agent writes an answer: a piece of it.
pub const STREAM: &str = "stream";

impl RegisterOptions {
    /// Whether the client wants to be told of such events.
    #[must_use]
    pub fn wants(&self, event: &str) -> bool {
        self.events.iter().any(|name| name == event)
    }
}

fn hexadecimal<S: serde::Serializer>(
    bytes: &Option<[u8; DRAWN_BYTES]>,
    s: S,
) -> Result<S::Ok, S::Error> {
    let digits = bytes.iter().flatten().map(|byte| format!("{byte:02x}"));
    s.serialize_str(&digits.collect::<String>())
}

fn drawn_part(text: &str) -> Option<[u8; DRAWN_BYTES]> {
    let sound =
        text.len() == 2 * DRAWN_BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok().filter(|_| sound)?;
    let [_, _, part @ ..] = number.to_be_bytes();
    Some(part)
}

impl Field for RegisterOptions {
    const EXPECTED: &'static str = "an object with any of: `linger_secs`, an integer of 0 to 600; `draw`, 12 \
                                    hexadecimal digits; `events`, an array of strings";

    fn decode(raw: &RawValue) -> Option<Self> {
        let fields = Fields::read(raw.get(), &["linger_secs", "draw", "events"]).ok()?;
        let events = fields.get::<Option<Vec<String>>>("events", None).ok()?.unwrap_or_default();
        let linger_secs = fields.get::<Option<u64>>("linger_secs", None).ok()?;
        let draw = match fields.get::<Option<String>>("draw", None).ok()? {
            Some(text) => Some(drawn_part(&text)?),
            None => None,
        };
        let sound = linger_secs.is_none_or(|seconds| seconds <= LINGER_SECS_MAX);
        sound.then_some(Self { linger_secs, draw, events })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_of_a_registration_are_within_their_bounds() {
        let read = |json: &str| {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            RegisterOptions::decode(&raw)
        };
        let json = r#"{"linger_secs":600,"draw":"00a1B2c3d4ff"}"#;
        let options = read(json).unwrap();
        assert_eq!(options.draw, Some([0, 0xa1, 0xb2, 0xc3, 0xd4, 0xff]));
        assert_eq!(serde_json::to_string(&options).unwrap(), json.to_lowercase());
        let options = read(r#"{"events":["receipt","tides"]}"#).unwrap();
        assert!(options.wants(RECEIPT) && !options.wants("stream"));
        assert_eq!(serde_json::to_string(&RegisterOptions::default()).unwrap(), "{}");
        for bad in [
            r#"{"linger_secs":601}"#,
            r#"{"linger_secs":-1}"#,
            r#"{"linger_secs":"1"}"#,
            r#"{"draw":"00a1b2c3d4"}"#,
            r#"{"draw":"+0a1b2c3d4ff"}"#,
            r#"{"events":"receipt"}"#,
            r#"{"events":[1]}"#,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn options_of_a_send_are_within_their_bounds() {
        let read = |json: &str| {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            SendOptions::decode(&raw)
        };
        let options = read(r#"{"durable":2,"durable_wait_ms":20000,"later":1}"#).unwrap();
        assert_eq!((options.durable, options.durable_wait_ms), (Some(2), Some(20_000)));
        assert_eq!(read(r#"{"durable":null}"#), Some(SendOptions::default()));
        for bad in [
            r#"{"durable":0}"#,
            r#"{"durable":-1}"#,
            r#"{"durable":"2"}"#,
            r#"{"durable":2,"durable_wait_ms":20001}"#,
            r#"{"dedup":""}"#,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn metadata_that_would_break_a_reader_is_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Metadata::parse(&deep(METADATA_DEPTH_MAX)).is_ok());
        assert!(Metadata::parse(&deep(METADATA_DEPTH_MAX + 1)).is_err());
        assert!(Metadata::parse(&deep(300_000)).is_err());
        for bad in ["null", "", "{", "1e999", r#""\ud800""#, r#"{"\udc00":1}"#, "[1] 2", "nul"] {
            assert!(Metadata::parse(bad).is_err(), "{bad}");
        }
        for good in ["0", "false", r#"{"kind":"fyi"}"#, r#""😀""#, "[1.5e300, -1]"] {
            assert_eq!(Metadata::parse(good).unwrap().get(), good);
        }
    }

    #[test]
    fn metadata_is_always_on_one_line() {
        let metadata = Metadata::parse(" {\n\t\"a\": [1,\r\n2], \"b\": \"x\\ny\"}\n").unwrap();
        assert_eq!(metadata.get(), "{\t\"a\": [1,2], \"b\": \"x\\ny\"}");
    }

    #[test]
    fn texts_are_written_over_an_objects_own_fields() {
        let own = |json: &str| Metadata::parse(json).unwrap();
        let texts = [("type", "decision"), ("by", "a\"\n")];
        for (under, expect) in [
            (None, r#"{"by":"a\"\n","type":"decision"}"#),
            (
                Some(own(r#"{"type":"mine","w":[1, 12345678901234567890123]}"#)),
                r#"{"by":"a\"\n","type":"decision","w":[1, 12345678901234567890123]}"#,
            ),
            (Some(own("[1]")), r#"{"by":"a\"\n","type":"decision"}"#),
        ] {
            let metadata = Metadata::of_texts(&texts, under.as_ref());
            assert_eq!(metadata.get(), expect);
            assert_eq!(
                Metadata::parse(metadata.get()).unwrap(),
                metadata,
                "it is as sound as what it is of"
            );
        }
    }

    #[test]
    fn secrets_and_contents_stay_out_of_debug_output() {
        assert!(!format!("{:?}", ApiKey::new("s3cret")).contains("s3cret"));
        assert!(!format!("{:?}", Secret::new("s3cret")).contains("s3cret"));
        assert!(!format!("{:?}", Metadata::parse("\"s3cret\"").unwrap()).contains("s3cret"));
    }

    #[test]
    fn bounds_of_small_values() {
        assert_eq!(Progress::new(100).map(Progress::percent), Some(100));
        assert_eq!(Progress::new(101), None);
        assert_eq!(DedupId::new(""), None);
        assert!(DedupId::new("x".repeat(DEDUP_BYTES_MAX)).is_some());
        assert_eq!(DedupId::new("x".repeat(DEDUP_BYTES_MAX + 1)), None);
        for status in [Status::Idle, Status::Waiting, Status::Working, Status::Thinking] {
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{}\"", status.as_str()));
        }
    }
}
