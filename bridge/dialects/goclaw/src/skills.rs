//! What agents can do, and with which models: `skills.*` and `providers.models`.

use std::collections::{BTreeMap, BTreeSet};

use mesh::records::profile::{Card, Field};
use serde_json::{Value, json};

use crate::{
    agents::Known,
    caller::Caller,
    outcome::{No, Outcome},
    params::Params,
};

/// A skill, of all agents that have it.
#[derive(Default)]
struct Skill {
    agents: BTreeSet<String>,
    online: bool,
    /// Of the first agent that has a card for it.
    card: Option<Card>,
}

/// A card's text says this in one line.
const DESCRIPTION_CHARS: usize = 200;

fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

impl Skill {
    fn row(&self, name: &str) -> Value {
        let agents: Vec<&str> = self.agents.iter().map(String::as_str).collect();
        let text = self.card.as_ref().map_or("", |card| &card.text);
        let line: String =
            text.lines().next().unwrap_or_default().chars().take(DESCRIPTION_CHARS).collect();
        json!({
            "name": name,
            "slug": slug(name),
            "description": line,
            "source": agents.join(", "),
            "version": 1,
            "is_system": false,
            "enabled": self.online,
            "agents": agents,
            "visibility": self.card.as_ref().and_then(|card| card.visibility.clone()).unwrap_or_default(),
            "tags": self.card.as_ref().map(|card| card.tags.clone()).unwrap_or_default(),
        })
    }

    fn content(&self) -> String {
        match &self.card {
            Some(card) => card.text.clone(),
            None => {
                let agents = self.agents.iter().map(|agent| format!("- {agent}"));
                format!("Agents that offer this:\n{}\n", agents.collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// The cards of profiles, and the words that agents registered with.
fn of(known: &[Known]) -> BTreeMap<String, Skill> {
    let mut skills: BTreeMap<String, Skill> = BTreeMap::new();
    for agent in known {
        let words = agent.view.iter().flat_map(|view| view.capabilities.iter());
        let cards = agent.profile.cards.iter();
        let named =
            words.map(|word| (word, None)).chain(cards.map(|card| (&card.name, Some(card))));
        for (name, card) in named {
            let skill = skills.entry(name.clone()).or_default();
            skill.agents.insert(agent.agent.to_string());
            skill.online |= agent.online();
            skill.card = skill.card.take().or_else(|| card.cloned());
        }
    }
    skills
}

pub(crate) async fn list(caller: &Caller) -> Outcome {
    let skills = of(&caller.everybody_known().await?);
    let rows: Vec<Value> = skills.iter().map(|(name, skill)| skill.row(name)).collect();
    Ok(json!({"skills": rows}))
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let wanted = params.required(&["name"])?;
    let skills = of(&caller.everybody_known().await?);
    let found = skills.iter().find(|(name, _)| **name == wanted);
    let found = found.or_else(|| skills.iter().find(|(name, _)| slug(name) == wanted));
    let (name, skill) = found.ok_or_else(|| No::not_found(format!("skill not found: {wanted}")))?;
    let mut row = skill.row(name);
    row["content"] = json!(skill.content());
    Ok(row)
}

pub(crate) async fn models(caller: &Caller) -> Outcome {
    let mut models: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for known in caller.everybody_known().await? {
        let Some(model) = known.field(Field::Model).filter(|model| !model.is_empty()) else {
            continue;
        };
        let provider = known.field(Field::Provider).unwrap_or_default();
        let agents = models.entry((model.to_owned(), provider.to_owned())).or_default();
        agents.insert(known.agent.to_string());
    }
    let rows = models
        .into_iter()
        .map(|((id, provider), agents)| json!({"id": id, "provider": provider, "agents": agents}));
    Ok(json!({"models": rows.collect::<Vec<Value>>()}))
}
