//! Requests about agents' profiles (spec §3).

use bridge::{
    seam::{
        answer::AgentProfile,
        call::{GetProfile, SetProfile},
    },
    session::seat::Seat,
};
use mesh::{
    name::id::AgentId,
    records::profile::{Card, Field, ProfileUpdate},
};
use protocol::{object, reply::Reply as Frame, request, value::Update};

use crate::{conversation::Turn, encode};

impl Turn {
    pub(crate) fn set_profile(self, seat: &mut Seat, set: request::SetProfile) {
        let Some(agent) = seat.agent().cloned() else { return };
        seat.ask(SetProfile(update(set)), move |seat, done| match done {
            // As it is read from now on.
            Ok(()) => self.get_profile(seat, agent),
            Err(refusal) => self.refuse(seat, refusal),
        });
    }

    pub(crate) fn get_profile(self, seat: &mut Seat, agent: AgentId) {
        self.ask(seat, GetProfile(agent), |_, profile| Frame::Profile(Box::new(shown(profile))));
    }
}

fn update(set: request::SetProfile) -> ProfileUpdate {
    let request::SetProfile { name, description, emoji, avatar, provider, model, cards } = set;
    let fields = [
        (Field::Name, name),
        (Field::Description, description),
        (Field::Emoji, emoji),
        (Field::Avatar, avatar),
        (Field::Provider, provider),
        (Field::Model, model),
    ];
    let change = |(field, update)| match update {
        Update::Keep => None,
        Update::Delete => Some((field, None)),
        // Nobody is shown an empty text.
        Update::Set(text) => Some((field, Some(text).filter(|text: &String| !text.is_empty()))),
    };
    let card = |card: object::Card| {
        let object::Card { name, text, tags, visibility } = card;
        Card { name, text, tags, visibility }
    };
    ProfileUpdate {
        fields: fields.into_iter().filter_map(change).collect(),
        cards: cards.map(|cards| cards.into_iter().map(card).collect()),
    }
}

fn shown(said: AgentProfile) -> object::Profile {
    let AgentProfile { agent, registered, profile, retired: _ } = said;
    let text = |field| {
        let found = profile.fields.iter().find(|(named, _)| *named == field);
        found.map(|(_, text)| text.clone())
    };
    let card = |card: &Card| {
        let Card { name, text, tags, visibility } = card.clone();
        object::Card { name, text, tags, visibility }
    };
    object::Profile {
        agent_id: agent.to_string(),
        name: text(Field::Name).or(registered.as_deref().map(String::from)),
        description: text(Field::Description),
        emoji: text(Field::Emoji),
        avatar: text(Field::Avatar),
        provider: text(Field::Provider),
        model: text(Field::Model),
        cards: profile.cards.iter().map(card).collect(),
        updated_at: profile.updated_ms.map(encode::timestamp),
    }
}
