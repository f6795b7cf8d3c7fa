//! Rules for what the fields of a command hold, in no dialect's words: a dialect has names of its own for the fields.

mod tasks;

use std::collections::BTreeSet;

use crate::{
    api::{
        agenda::NewVote,
        command::{Attach, NewRoom},
    },
    limits::{
        AGENT_ID_BYTES_MAX, AVATAR_BYTES_MAX, CAPABILITIES_MAX, CAPABILITY_BYTES_MAX,
        CARD_TAG_BYTES_MAX, CARD_TAGS_MAX, CARD_TEXT_BYTES_MAX, CARDS_PER_AGENT_MAX,
        DESCRIPTION_BYTES_MAX, EMOJI_BYTES_MAX, FILE_BYTES_MAX, MEDIA_TYPE_BYTES_MAX, MENTIONS_MAX,
        MODEL_BYTES_MAX, NAME_BYTES_MAX, REPLY_TO_BYTES_MAX, ROOM_SETTINGS_MAX,
        ROOM_TITLE_BYTES_MAX, SETTING_BYTES_MAX, SETTING_NAME_BYTES_MAX, THREAD_FACT_BYTES_MAX,
        THREAD_FACT_NAME_BYTES_MAX, THREAD_FACTS_AT_ONCE_MAX, THREAD_NAME_BYTES_MAX, VOTE_FOR_MAX,
        VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX, WRITERS_PER_ROOM_MAX,
    },
    name::group::{RESERVED, is_reserved},
    records::{
        details::DetailsUpdate,
        files::{NewFile, PathRule, check_path},
        profile::{self, Card, ProfileUpdate},
        threads::ThreadUpdate,
    },
    wire::roster::Presence,
};

/// A field of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Of an agent or a room.
    Name,
    /// An agent's id.
    AgentId,
    /// What an agent says that it can do.
    Capabilities,
    /// Of a room, a vote or a task.
    Description,
    /// What an agent is doing, in its own words.
    PresenceDetail,
    /// How far an agent is, in per cent.
    Progress,
    /// The agents that a message names.
    Mentions,
    /// The message that a message answers.
    ReplyTo,
    /// Of a vote or a task.
    Title,
    /// Of a vote.
    Options,
    /// How long a vote is open, in seconds.
    Duration,
    /// The agent that is to do a task.
    Assignee,
    /// The agent that a change of a task expects to hold it.
    Holder,
    /// Of a task.
    Note,
    /// How urgent a task is.
    Priority,
    /// Words that a task is found by.
    Labels,
    /// The step that a task is at.
    Step,
    /// What has come of a task.
    TaskResult,
    /// The kind of a task.
    TaskKind,
    /// What a task has to do.
    Requirements,
    /// How it is seen that a task is done.
    Acceptance,
    /// More about a task.
    Context,
    /// How much work a task is.
    Effort,
    /// Where a task came from.
    Origin,
    /// Tasks that a task waits for.
    BlockedBy,
    /// An agent's sign.
    Emoji,
    /// The address of an agent's picture.
    Avatar,
    /// Of an agent's model.
    Provider,
    /// An agent's model.
    Model,
    /// The things that an agent can do.
    Cards,
    /// Of one of these.
    CardName,
    /// Its description.
    CardText,
    /// The words to find it by.
    CardTags,
    /// For whom it is.
    CardVisibility,
    /// A setting of a room, by its name.
    SettingName,
    /// Its value.
    SettingValue,
    /// All settings of a room.
    Settings,
    /// The setting that names the keys that write files of a room.
    Writers,
    /// The setting that lets all keys write them.
    FileWriters,
    /// Of a file.
    Path,
    /// Its media type.
    MediaType,
    /// Its bytes.
    File,
    /// Something that at most one agent does.
    Subject,
    /// How long an agent has it, in milliseconds.
    Lease,
    /// The thing that an agent wants to be allowed.
    Approval,
    /// Those who may allow it.
    Approvers,
    /// How long they have for it, in milliseconds.
    ApprovalTime,
    /// Why somebody decided so.
    Reason,
    /// An agent's own name of a stream.
    Stream,
    /// The name of a tool.
    Tool,
    /// All that a piece of a stream says.
    Piece,
    /// The name of a thread of a room.
    Thread,
    /// A fact of one, by its name.
    ThreadFactName,
    /// Its value.
    ThreadFact,
    /// All facts of one that a change has.
    ThreadFacts,
}

/// A rule that a field breaks. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// It has more than white space.
    #[error("must not be blank")]
    NotBlank,
    /// It is more than white space, without control characters.
    #[error("must not be blank, or have control characters")]
    Plain,
    /// It has no beginning that is kept for names which nodes give.
    #[error("must not begin with {}", RESERVED.join(" or "))]
    NotReserved,
    /// At most so long.
    #[error("must have at most {0} bytes")]
    AtMost(usize),
    /// Not empty, and at most so long.
    #[error("must have 1 to {0} bytes")]
    Within(usize),
    /// So many entries.
    #[error("must have {min} to {max} entries")]
    Count {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// At most so many entries, none longer than this.
    #[error("must have at most {count} entries of at most {bytes} bytes")]
    Entries {
        /// How many.
        count: usize,
        /// How long each.
        bytes: usize,
    },
    /// Each entry has more than white space, and is at most so long.
    #[error("must have entries of 1 to {0} bytes that are not blank")]
    EachWithin(usize),
    /// No two entries have one name.
    #[error("must have entries of different names")]
    Distinct,
    /// A path names one file on every system.
    #[error("{0}")]
    Path(PathRule),
    /// Fingerprints of keys.
    #[error("must be a list of at most {0} fingerprints of keys, of 32 hex digits each, or null")]
    Keys(usize),
    /// The one word that there is.
    #[error("must be {0:?}, or null")]
    Word(&'static str),
    /// A whole number.
    #[error("must be within {min} to {max}")]
    Between {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
    },
}

/// The field that is not as it has to be, and the rule that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field:?} {rule}")]
pub struct Broken {
    /// The field.
    pub field: Field,
    /// The rule.
    pub rule: Rule,
}

/// The field has more than white space.
pub(crate) fn not_blank(field: Field, text: &str) -> Result<(), Broken> {
    holds(!text.trim().is_empty(), field, Rule::NotBlank)
}

/// The field has at most so many bytes.
pub(crate) fn at_most(field: Field, text: Option<&str>, max: usize) -> Result<(), Broken> {
    holds(text.is_none_or(|text| text.len() <= max), field, Rule::AtMost(max))
}

/// The field has 1 to so many bytes.
pub(crate) fn within(field: Field, text: &str, max: usize) -> Result<(), Broken> {
    holds((1..=max).contains(&text.len()), field, Rule::Within(max))
}

/// The rule, unless it holds.
pub(crate) fn holds(good: bool, field: Field, rule: Rule) -> Result<(), Broken> {
    if good { Ok(()) } else { Err(Broken { field, rule }) }
}

// The fields of each command, in the order in which clients are told of them.

impl Attach {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        check_attach(&self.name, Some(&self.agent), &self.capabilities)
    }
}

/// The same before an agent without an id has one: `id` is its own, if it has any.
///
/// # Errors
/// The first field that breaks a rule.
pub fn check_attach(name: &str, id: Option<&str>, capabilities: &[String]) -> Result<(), Broken> {
    named(name)?;
    agent_id(Field::AgentId, id)?;
    let (count, bytes) = (CAPABILITIES_MAX, CAPABILITY_BYTES_MAX);
    let good = capabilities.len() <= count && capabilities.iter().all(|text| text.len() <= bytes);
    holds(good, Field::Capabilities, Rule::Entries { count, bytes })
}

impl Presence {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        at_most(Field::PresenceDetail, self.detail.as_deref(), DESCRIPTION_BYTES_MAX)?;
        let good = self.progress.is_none_or(|percent| percent <= 100);
        holds(good, Field::Progress, Rule::Between { min: 0, max: 100 })
    }
}

impl NewRoom {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        named(&self.name)?;
        let NewRoom { parent, ephemeral, public, encrypted, .. } = self;
        let is_plain = parent.is_none() && !ephemeral && !public && !encrypted;
        holds(!is_reserved(&self.name, is_plain), Field::Name, Rule::NotReserved)?;
        at_most(Field::Description, self.description.as_deref(), DESCRIPTION_BYTES_MAX)
    }
}

/// Whether a message may name these agents, and answer this message.
///
/// # Errors
/// The first field that breaks a rule.
pub fn check_references<Id: AsRef<str>>(
    mentions: &[Id],
    reply_to: Option<&str>,
) -> Result<(), Broken> {
    let (count, bytes) = (MENTIONS_MAX, AGENT_ID_BYTES_MAX);
    let good = mentions.len() <= count && mentions.iter().all(|id| id.as_ref().len() <= bytes);
    holds(good, Field::Mentions, Rule::Entries { count, bytes })?;
    at_most(Field::ReplyTo, reply_to, REPLY_TO_BYTES_MAX)
}

impl NewVote {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        titled(&self.title, self.description.as_deref(), VOTE_TITLE_BYTES_MAX)?;
        let (min, max) = (2, VOTE_OPTIONS_MAX);
        let count = self.options.len();
        holds((min..=max).contains(&count), Field::Options, Rule::Count { min, max })?;
        let bytes = VOTE_OPTION_BYTES_MAX;
        let sound = |text: &String| !text.trim().is_empty() && text.len() <= bytes;
        holds(self.options.iter().all(sound), Field::Options, Rule::EachWithin(bytes))?;
        let (min, max) = (1, VOTE_FOR_MAX.as_secs());
        let good = self.duration_secs.is_none_or(|secs| (min..=max).contains(&secs));
        holds(good, Field::Duration, Rule::Between { min, max })
    }
}

impl ProfileUpdate {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        for (field, text) in &self.fields {
            let (named, max) = match field {
                profile::Field::Name => (Field::Name, NAME_BYTES_MAX),
                profile::Field::Description => (Field::Description, DESCRIPTION_BYTES_MAX),
                profile::Field::Emoji => (Field::Emoji, EMOJI_BYTES_MAX),
                profile::Field::Avatar => (Field::Avatar, AVATAR_BYTES_MAX),
                profile::Field::Provider => (Field::Provider, MODEL_BYTES_MAX),
                profile::Field::Model => (Field::Model, MODEL_BYTES_MAX),
            };
            at_most(named, text.as_deref(), max)?;
        }
        let cards = self.cards.as_deref().unwrap_or_default();
        let (min, max) = (0, CARDS_PER_AGENT_MAX);
        holds(cards.len() <= max, Field::Cards, Rule::Count { min, max })?;
        cards.iter().try_for_each(Card::check)?;
        let mut names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
        names.sort_unstable();
        holds(names.is_sorted_by(|one, next| one < next), Field::Cards, Rule::Distinct)
    }
}

impl Card {
    fn check(&self) -> Result<(), Broken> {
        within(Field::CardName, &self.name, NAME_BYTES_MAX)?;
        at_most(Field::CardText, Some(&self.text), CARD_TEXT_BYTES_MAX)?;
        let (count, bytes) = (CARD_TAGS_MAX, CARD_TAG_BYTES_MAX);
        let good = self.tags.len() <= count && self.tags.iter().all(|tag| tag.len() <= bytes);
        holds(good, Field::CardTags, Rule::Entries { count, bytes })?;
        at_most(Field::CardVisibility, self.visibility.as_deref(), CARD_TAG_BYTES_MAX)
    }
}

impl DetailsUpdate {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        let text = |text: &Option<Option<String>>| text.clone().flatten();
        at_most(Field::Title, text(&self.title).as_deref(), ROOM_TITLE_BYTES_MAX)?;
        at_most(Field::Description, text(&self.description).as_deref(), DESCRIPTION_BYTES_MAX)?;
        let named = self.writers.named.iter().flatten().map(BTreeSet::len).max();
        let max = WRITERS_PER_ROOM_MAX;
        holds(named.unwrap_or_default() <= max, Field::Writers, Rule::Keys(max))?;
        self.threads.iter().try_for_each(ThreadUpdate::check)?;
        let (min, max) = (0, ROOM_SETTINGS_MAX);
        holds(self.settings.len() <= max, Field::Settings, Rule::Count { min, max })?;
        self.settings.iter().try_for_each(|(name, value)| {
            within(Field::SettingName, name, SETTING_NAME_BYTES_MAX)?;
            at_most(Field::SettingValue, value.as_deref(), SETTING_BYTES_MAX)
        })
    }
}

impl ThreadUpdate {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        within(Field::Thread, &self.thread, THREAD_NAME_BYTES_MAX)?;
        let (min, max) = (0, THREAD_FACTS_AT_ONCE_MAX);
        holds(self.facts.len() <= max, Field::ThreadFacts, Rule::Count { min, max })?;
        self.facts.iter().try_for_each(|(name, value)| {
            within(Field::ThreadFactName, name, THREAD_FACT_NAME_BYTES_MAX)?;
            at_most(Field::ThreadFact, value.as_deref(), THREAD_FACT_BYTES_MAX)
        })
    }
}

impl NewFile {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        check_path(&self.path)
            .map_err(|rule| Broken { field: Field::Path, rule: Rule::Path(rule) })?;
        at_most(Field::MediaType, self.media.as_deref(), MEDIA_TYPE_BYTES_MAX)?;
        holds(self.bytes.len() <= FILE_BYTES_MAX, Field::File, Rule::AtMost(FILE_BYTES_MAX))
    }
}

fn named(name: &str) -> Result<(), Broken> {
    not_blank(Field::Name, name)?;
    at_most(Field::Name, Some(name), NAME_BYTES_MAX)
}

/// Title and description of a vote or a task.
pub(crate) fn titled(title: &str, description: Option<&str>, max: usize) -> Result<(), Broken> {
    not_blank(Field::Title, title)?;
    at_most(Field::Title, Some(title), max)?;
    at_most(Field::Description, description, DESCRIPTION_BYTES_MAX)
}

/// An agent's id, or nobody's.
pub(crate) fn agent_id(field: Field, id: Option<&str>) -> Result<(), Broken> {
    id.map_or(Ok(()), |id| within(field, id, AGENT_ID_BYTES_MAX))
}
