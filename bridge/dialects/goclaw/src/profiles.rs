//! Agents of the caller's key that people make, and their profiles: `agents.create`, `agents.update`, `skills.update`.

use std::time::Duration;

use bridge::seam::call::{Attach, Identity, SetProfileOf};
use mesh::{
    name::id::AgentId,
    records::profile::{Card, Field, ProfileUpdate},
};
use serde_json::{Value, json};

use crate::{
    agents::Known,
    caller::Caller,
    limits::SLUG_BYTES_MAX,
    outcome::{Code, No, Outcome},
    params::{AGENT, Params, must_be},
};

/// Fields of a profile, by their names here.
const FIELDS: [(&[&str], Field); 6] = [
    (&["name"], Field::Name),
    (&["emoji"], Field::Emoji),
    (&["avatar"], Field::Avatar),
    (&["provider"], Field::Provider),
    (&["model"], Field::Model),
    (&["agent_description", "description"], Field::Description),
];

/// The fields that a client names. An empty text deletes one.
fn fields(params: &Params) -> Result<Vec<(Field, Option<String>)>, No> {
    let mut fields = Vec::new();
    for (names, field) in FIELDS {
        if let Some(text) = params.text(names)? {
            fields.push((field, Some(text).filter(|text| !text.is_empty())));
        }
    }
    Ok(fields)
}

/// The id that an agent of this name gets: lower case, and a `-` for all else.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut slug = String::new();
    for c in name.chars().map(plain) {
        if c != '-' || !(slug.is_empty() || slug.ends_with('-')) {
            slug.push(c);
        }
    }
    slug.truncate(SLUG_BYTES_MAX);
    slug.trim_matches('-').to_owned()
}

impl Caller {
    pub(crate) async fn set_profile(
        &self,
        agent: &AgentId,
        update: ProfileUpdate,
    ) -> Result<(), No> {
        self.read(SetProfileOf { agent: agent.clone(), update }).await
    }

    /// Whether an agent's id is its key's own.
    pub(crate) async fn owns(&self, known: &Known) -> Result<bool, No> {
        if known.view.as_ref().is_some_and(|view| view.key == self.print()) {
            return Ok(true);
        }
        // A change of nothing says whether it may be made.
        Ok(self.set_profile(&known.agent, ProfileUpdate::default()).await.is_ok())
    }
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let name = params.required(&["name"])?;
    let id = slug(&name);
    if id.is_empty() {
        return Err(must_be(&["name"], "a text with a letter or a digit"));
    }
    if id == "default" {
        return Err(No::invalid("an agent named default cannot be made: choose another name"));
    }
    let taken = || No::new(Code::AlreadyExists, format!("an agent {id} exists already"));
    if caller.known(&id).await?.is_some() {
        return Err(taken());
    }
    let update = ProfileUpdate { fields: fields(params)?, cards: None };
    update.check().map_err(|broken| No::from(bridge::seam::refusal::Refusal::Field(broken)))?;
    let attach = Attach {
        key: caller.key.clone(),
        name: name.clone(),
        // The id is claimed for the key when this is answered. Whoever has the key attaches under it.
        identity: Identity::Named(id.clone()),
        capabilities: Vec::new(),
        reconnect: false,
        linger: Duration::ZERO,
    };
    drop(caller.shared.desk.attach(attach).await?);
    let agent = AgentId::from(id.as_str());
    caller.set_profile(&agent, update).await?;
    let note = "the agent is offline until a program attaches under this id with this key";
    Ok(json!({
        "ok": true, "agentId": id, "id": id, "name": name, "workspace": "", "note": note,
    }))
}

pub(crate) async fn update(caller: &Caller, params: &Params) -> Outcome {
    let known = caller.agent(&params.required(AGENT)?).await?;
    if params.filled(&["status"])?.is_some_and(|status| status != "active") {
        return Err(No::invalid("an agent's status is what it is"));
    }
    let fields = fields(params)?;
    if !caller.owns(&known).await? {
        return Err(No::unauthorized(format!("agent {} is of another key", known.agent)));
    }
    let agent = known.agent.clone();
    caller.set_profile(&agent, ProfileUpdate { fields, cards: None }).await?;
    Ok(json!({"ok": true, "agentId": &*agent}))
}

/// A card of an agent of the key. A description is the first line of its text.
pub(crate) async fn update_skill(caller: &Caller, params: &Params) -> Outcome {
    let wanted = params.required(&["name", "id"])?;
    let given = params.object(&["updates", "patch"])?.cloned().map(Params::new);
    let patch = given.as_ref().unwrap_or(params);
    let description = patch.text(&["description"])?;
    let visibility = patch.text(&["visibility"])?;
    let tags = match patch.list(&["tags"])? {
        None => None,
        Some(given) => Some(
            given
                .iter()
                .map(|tag| tag.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
                .ok_or_else(|| must_be(&["tags"], "an array of strings"))?,
        ),
    };
    let mut changed = false;
    for known in caller.everybody_known().await? {
        let is_it = |card: &Card| card.name == wanted;
        if !known.profile.cards.iter().any(is_it) || !caller.owns(&known).await? {
            continue;
        }
        let mut cards = known.profile.cards.clone();
        for card in cards.iter_mut().filter(|card| card.name == wanted) {
            if let Some(line) = &description {
                let rest = card.text.split_once('\n').map(|(_, rest)| format!("\n{rest}"));
                card.text = format!("{line}{}", rest.unwrap_or_default());
            }
            card.tags = tags.clone().unwrap_or_else(|| card.tags.clone());
            card.visibility = visibility.clone().or_else(|| card.visibility.clone());
        }
        let update = ProfileUpdate { fields: Vec::new(), cards: Some(cards) };
        caller.set_profile(&known.agent, update).await?;
        changed = true;
    }
    if !changed {
        return Err(No::not_found(format!("skill not editable: {wanted}")));
    }
    // As its clients expect it.
    Ok(Value::from_iter([("ok", "true")]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_a_name() {
        for (name, id) in
            [("Alice Bot", "alice-bot"), ("  --A  b!!", "a-b"), ("Ü", ""), ("x_y.z", "x-y-z")]
        {
            assert_eq!(slug(name), id, "{name}");
        }
        assert!(slug(&"long name ".repeat(30)).len() <= SLUG_BYTES_MAX);
    }
}
