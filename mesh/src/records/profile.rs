//! Profiles of agents, for people and agents who look for one: two collections of the mesh. Each field is a record of its own, and
//! each card: two sides of a split that change different ones lose neither.
//!
//! Anybody with a key may write a profile for any agent id. It shows only while the key owns the id.

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    news::AgentNote,
};
use crate::{
    limits::{
        CARD_RECORDS_PER_KEY_MAX, CARD_RECORDS_PER_NODE_MAX, PROFILE_RECORDS_PER_KEY_MAX,
        PROFILE_RECORDS_PER_NODE_MAX, RECORD_BODY_BYTES_MAX,
    },
    name::id::{AgentId, KeyPrint},
    wire::{
        cbor::encode,
        record::{CollectionNumber, Draft, Record, RecordId, Space, Stamp},
    },
};

/// Fields: an agent's name, its picture, and so on.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(1),
    name: "agent.profile",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: RECORD_BODY_BYTES_MAX,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: PROFILE_RECORDS_PER_KEY_MAX,
    node_max: PROFILE_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<TextRecord>(body).ok()?.id()),
};

/// Cards: the things that an agent can do.
pub static CARDS: Collection = Collection {
    number: CollectionNumber(2),
    name: "agent.card",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: RECORD_BODY_BYTES_MAX,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: CARD_RECORDS_PER_KEY_MAX,
    node_max: CARD_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<CardRecord>(body).ok()?.id()),
};

/// A field of a profile. Others are kept and passed on, and do not show: a later version may know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The agent's name.
    Name,
    /// The agent's purpose.
    Description,
    /// A sign for it.
    Emoji,
    /// The address of a picture.
    Avatar,
    /// The provider of its model.
    Provider,
    /// Its model.
    Model,
}

impl Field {
    /// All of them.
    pub const ALL: [Field; 6] = [
        Field::Name,
        Field::Description,
        Field::Emoji,
        Field::Avatar,
        Field::Provider,
        Field::Model,
    ];

    /// As it is written.
    const fn number(self) -> u16 {
        match self {
            Field::Name => 1,
            Field::Description => 2,
            Field::Emoji => 3,
            Field::Avatar => 4,
            Field::Provider => 5,
            Field::Model => 6,
        }
    }
}

/// A thing that an agent can do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Card {
    /// Its name, one of the agent's.
    #[n(0)]
    pub name: String,
    /// Its description.
    #[n(1)]
    pub text: String,
    /// Words to find it by.
    #[n(2)]
    pub tags: Vec<String>,
    /// For whom it is, in the agent's own words.
    #[n(3)]
    pub visibility: Option<String>,
}

/// A change of an agent's profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileUpdate {
    /// Fields with their new texts; `None`: the field is deleted. The last one of a field counts.
    pub fields: Vec<(Field, Option<String>)>,
    /// All cards from now on. `None`: they stay as they are.
    pub cards: Option<Vec<Card>>,
}

/// A profile as it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Fields that are set, in the order of [`Field::ALL`].
    pub fields: Vec<(Field, String)>,
    /// By name.
    pub cards: Vec<Card>,
    /// When it was changed last, deletions included. Unix milliseconds; `None`: nothing was ever said.
    pub updated_ms: Option<u64>,
}

/// The content of a field's record.
#[derive(Encode, Decode)]
struct TextRecord {
    #[n(0)]
    agent: String,
    #[n(1)]
    field: u16,
    #[n(2)]
    text: String,
}

/// The content of a card's record.
#[derive(Encode, Decode)]
struct CardRecord {
    #[n(0)]
    agent: String,
    #[n(1)]
    card: Card,
}

impl TextRecord {
    fn id(&self) -> RecordId {
        field_id(&self.agent, self.field)
    }
}

impl CardRecord {
    fn id(&self) -> RecordId {
        card_id(&self.agent, &self.card.name)
    }
}

fn field_id(agent: &str, field: u16) -> RecordId {
    RecordId::of_part(COLLECTION.number, agent.as_bytes(), &field.to_be_bytes())
}

fn card_id(agent: &str, name: &str) -> RecordId {
    RecordId::of_part(CARDS.number, agent.as_bytes(), name.as_bytes())
}

/// The beginning of the ids of all cards of an agent.
pub(crate) fn cards_of(agent: &str) -> [u8; RecordId::SUBJECT_BYTES] {
    RecordId::subject(CARDS.number, agent.as_bytes())
}

impl ProfileUpdate {
    /// Bytes that the client chose.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(_, text)| text.as_ref().map_or(0, String::len));
        let cards = self.cards.iter().flatten().map(|card| {
            card.name.len() + card.text.len() + card.tags.iter().map(String::len).sum::<usize>()
        });
        fields.sum::<usize>() + cards.sum::<usize>()
    }

    /// The records to write. `cards`: ids of those that the agent has.
    #[must_use]
    pub fn drafts(&self, agent: &str, cards: &[RecordId]) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for field in Field::ALL {
            let last = self.fields.iter().rev().find(|(named, _)| *named == field);
            let Some((_, text)) = last else { continue };
            let number = field.number();
            let record = |text: &String| TextRecord {
                agent: agent.to_owned(),
                field: number,
                text: text.clone(),
            };
            let body = text.as_ref().map(|text| encode(&record(text)));
            drafts.push(draft(&COLLECTION, field_id(agent, number), body));
        }
        let Some(new) = &self.cards else { return drafts };
        for card in new {
            let record = CardRecord { agent: agent.to_owned(), card: card.clone() };
            drafts.push(draft(&CARDS, record.id(), Some(encode(&record))));
        }
        let is_kept = |id: &&RecordId| new.iter().any(|card| card_id(agent, &card.name) == **id);
        let gone = cards.iter().filter(|id| !is_kept(id));
        drafts.extend(gone.map(|id| draft(&CARDS, *id, None)));
        drafts
    }
}

fn draft(collection: &Collection, id: RecordId, body: Option<Vec<u8>>) -> Draft {
    Draft { space: Space::Mesh, collection: collection.number, id, body }
}

/// Where the records of an agent's profile are: collections, and the beginnings of their ids.
#[must_use]
pub fn places(agent: &str) -> [(CollectionNumber, [u8; RecordId::SUBJECT_BYTES]); 2] {
    let fields = RecordId::subject(COLLECTION.number, agent.as_bytes());
    [(COLLECTION.number, fields), (CARDS.number, cards_of(agent))]
}

/// The agent whose profile a record's content is part of, as its writer says: whether its key owns that id says the directory.
#[must_use]
pub fn agent_of(content: &[u8]) -> Option<AgentId> {
    let said: TextRecord = minicbor::decode(content).ok()?;
    Some(said.agent.as_str().into())
}

/// The agent of whose profile a record says something.
pub(crate) fn note_of(record: &Record) -> Option<(AgentId, AgentNote)> {
    let body = record.content()?;
    if record.collection == CARDS.number {
        let said: CardRecord = minicbor::decode(body).ok()?;
        return Some((said.agent.as_str().into(), AgentNote::Cards));
    }
    let said: TextRecord = minicbor::decode(body).ok()?;
    let field = Field::ALL.into_iter().find(|field| field.number() == said.field)?;
    Some((said.agent.as_str().into(), AgentNote::Field(field)))
}

/// The part of this agent's profile that a record deletes, if it does.
pub(crate) fn note_of_deleted(agent: &AgentId, record: &Record) -> Option<AgentNote> {
    if record.collection == CARDS.number {
        return record.id.0.starts_with(&cards_of(agent)).then_some(AgentNote::Cards);
    }
    let is_it = |field: &Field| field_id(agent, field.number()) == record.id;
    Field::ALL.into_iter().find(is_it).map(AgentNote::Field)
}

/// The profile that these records say. `owns`: whether a key owns the agent's id now; records of others do not show.
#[must_use]
pub fn read(agent: &str, records: &[Record], owns: impl Fn(KeyPrint) -> bool) -> Profile {
    let mut profile = Profile::default();
    let mut latest = Stamp::default();
    for record in records {
        let is_ours = |named: &str| named == agent;
        let shows = match &record.body {
            // It does not say whose it was, but its id is made of that.
            None => true,
            Some(body) if record.collection == COLLECTION.number => {
                let said = minicbor::decode::<TextRecord>(body).ok();
                said.filter(|said| is_ours(&said.agent) && owns(record.owner())).is_some_and(
                    |said| {
                        let field =
                            Field::ALL.into_iter().find(|field| field.number() == said.field);
                        profile.fields.extend(field.map(|field| (field, said.text)));
                        true
                    },
                )
            }
            Some(body) => {
                let said = minicbor::decode::<CardRecord>(body).ok();
                said.filter(|said| is_ours(&said.agent) && owns(record.owner())).is_some_and(
                    |said| {
                        profile.cards.push(said.card);
                        true
                    },
                )
            }
        };
        if shows && owns(record.owner()) {
            latest = latest.max(record.stamp);
        }
    }
    profile.fields.sort_unstable();
    profile.cards.sort_unstable();
    profile.updated_ms = Some(latest.wall_ms()).filter(|at| *at > 0);
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::{
            CARD_TAG_BYTES_MAX, CARD_TAGS_MAX, CARD_TEXT_BYTES_MAX, CARDS_PER_AGENT_MAX,
            DESCRIPTION_BYTES_MAX, EMOJI_BYTES_MAX, NAME_BYTES_MAX,
        },
        name::{id::MeshId, key::KeySecret},
    };

    const MESH: MeshId = MeshId([1; 16]);
    const AGENT: &str = "scout";

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn card(name: &str, text: &str) -> Card {
        Card { name: name.to_owned(), text: text.to_owned(), tags: Vec::new(), visibility: None }
    }

    fn sets(field: Field, text: &str) -> ProfileUpdate {
        ProfileUpdate { fields: vec![(field, Some(text.to_owned()))], cards: None }
    }

    fn signed(drafts: Vec<Draft>, by: &KeySecret, at: u64) -> Vec<Record> {
        let sign = |draft: Draft| draft.sign(by, MESH, Stamp::at(at)).expect("it is long enough");
        drafts.into_iter().map(sign).collect()
    }

    #[test]
    fn a_profile_is_what_the_key_that_owns_the_id_says_of_the_agent() {
        let mut update = sets(Field::Name, "Scout");
        update.fields.push((Field::Emoji, Some("🦀".to_owned())));
        update.cards = Some(vec![card("map", "draws maps"), card("dig", "digs")]);
        let (owner, other) = (key(1), key(2));
        let mut records = signed(update.drafts(AGENT, &[]), &owner, 5_000);
        records.extend(signed(sets(Field::Model, "x").drafts("another", &[]), &owner, 9_000));
        records.extend(signed(sets(Field::Name, "Mallory").drafts(AGENT, &[]), &other, 9_000));
        let profile = read(AGENT, &records, |key| key == owner.print());
        let fields = [(Field::Name, "Scout".to_owned()), (Field::Emoji, "🦀".to_owned())];
        assert_eq!(profile.fields, fields);
        assert_eq!(profile.cards, [card("dig", "digs"), card("map", "draws maps")]);
        assert_eq!(profile.updated_ms, Some(5));
        assert_eq!(read(AGENT, &records, |_| false), Profile::default(), "a revoked key");
    }

    #[test]
    fn all_records_have_the_form_of_their_collection_and_no_other() {
        let mut update = sets(Field::Name, "Scout");
        update.cards = Some(vec![card("map", "draws maps")]);
        for draft in update.drafts(AGENT, &[]) {
            let collection = Collection::of(draft.collection).expect("it is known");
            assert!(collection.fits(
                Space::Mesh,
                (draft.id, KeyPrint::OPEN),
                draft.body.as_deref()
            ));
            assert!(collection.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), None));
            assert!(
                !collection.fits(
                    Space::Mesh,
                    (RecordId([9; 16]), KeyPrint::OPEN),
                    draft.body.as_deref()
                ),
                "another's id"
            );
            assert!(!collection.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), Some(b"text")));
            assert!(!collection.fits(
                Space::Mesh,
                (draft.id, KeyPrint::OPEN),
                Some(&[0; RECORD_BODY_BYTES_MAX + 1])
            ));
        }
        // As a later version may write one.
        let field = TextRecord { agent: AGENT.to_owned(), field: 99, text: "new".to_owned() };
        assert!(COLLECTION.fits(Space::Mesh, (field.id(), KeyPrint::OPEN), Some(&encode(&field))));
        let records =
            signed(vec![draft(&COLLECTION, field.id(), Some(encode(&field)))], &key(1), 1_000);
        assert_eq!(read(AGENT, &records, |_| true).fields, [], "it does not show");
    }

    #[test]
    fn the_largest_card_and_the_largest_field_are_records() {
        let mut update = sets(Field::Description, &"d".repeat(DESCRIPTION_BYTES_MAX));
        let tags = vec!["t".repeat(CARD_TAG_BYTES_MAX); CARD_TAGS_MAX];
        let name = "n".repeat(NAME_BYTES_MAX);
        let text = "x".repeat(CARD_TEXT_BYTES_MAX);
        let visibility = Some("v".repeat(CARD_TAG_BYTES_MAX));
        let largest = Card { name, text, tags, visibility };
        update.cards = Some(vec![largest.clone()]);
        assert_eq!(update.check(), Ok(()));
        let agent = "a".repeat(crate::limits::AGENT_ID_BYTES_MAX);
        for draft in update.drafts(&agent, &[]) {
            let collection = Collection::of(draft.collection).expect("it is known");
            assert!(
                collection.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), draft.body.as_deref()),
                "{collection:?}"
            );
        }
        let bad = [
            Card { name: String::new(), ..largest.clone() },
            Card { text: "x".repeat(CARD_TEXT_BYTES_MAX + 1), ..largest.clone() },
            Card { tags: vec![String::new(); CARD_TAGS_MAX + 1], ..largest.clone() },
            Card { visibility: Some("v".repeat(CARD_TAG_BYTES_MAX + 1)), ..largest.clone() },
        ];
        for card in bad {
            assert!(ProfileUpdate { fields: Vec::new(), cards: Some(vec![card]) }.check().is_err());
        }
        let twice = Some(vec![largest.clone(), largest.clone()]);
        assert!(ProfileUpdate { fields: Vec::new(), cards: twice }.check().is_err());
        let many = (0..=CARDS_PER_AGENT_MAX).map(|n| card(&n.to_string(), "")).collect();
        assert!(ProfileUpdate { fields: Vec::new(), cards: Some(many) }.check().is_err());
        assert!(sets(Field::Emoji, &"e".repeat(EMOJI_BYTES_MAX + 1)).check().is_err());
    }

    #[test]
    fn new_cards_replace_all_that_there_were() {
        let update = |cards| ProfileUpdate { fields: Vec::new(), cards: Some(cards) };
        let [map, dig] = ["map", "dig"].map(|name| card_id(AGENT, name));
        let drafts = update(vec![card("map", "draws better maps")]).drafts(AGENT, &[map, dig]);
        let said: Vec<_> = drafts.iter().map(|draft| (draft.id, draft.body.is_some())).collect();
        assert_eq!(said, [(map, true), (dig, false)]);
        assert!(dig.0.starts_with(&cards_of(AGENT)));
        assert_eq!(ProfileUpdate::default().drafts(AGENT, &[map, dig]), []);
    }

    #[test]
    fn of_a_field_that_is_named_twice_the_last_word_counts() {
        let mut update = sets(Field::Name, "one");
        update.fields.push((Field::Name, None));
        let drafts = update.drafts(AGENT, &[]);
        assert_eq!(drafts.len(), 1);
        assert_eq!(drafts[0].body, None);
    }
}
