//! Agents: registered, and what they are doing.

use std::time::Duration;

use bridge::seam::call::{Attach, GetProfile, Identity, NotStopped, SetPresence, SetProfile};
use bytes::Bytes;
use mesh::{
    name::id::{AgentId, RoomId},
    records::profile::{Field, Profile, ProfileUpdate},
    wire::roster::Presence,
};
use serde_json::{Value, json};

use crate::{
    connect::Kind,
    envelope::{Request, Told, cut},
    limits::{AGENT_ID_CHARS_MAX, AGENT_NAME_CHARS_MAX, HEARTBEATS_PER_MINUTE},
    problem::{Problem, status_of},
    rooms,
    shared::Rate,
    state::Context,
};

/// An agent, as it says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    pub(crate) agent: AgentId,
    pub(crate) name: String,
    provider: String,
    model: String,
    capabilities: Vec<String>,
}

impl Introduction {
    pub(crate) fn of(cx: &Context, request: &Request) -> Result<Introduction, Problem> {
        match cx.member.kind {
            Kind::Agent => {}
            Kind::Human => {
                return Err(Problem::denied("a connection of type agent registers agents"));
            }
        }
        let data = request.data();
        let id = data.get("agent_id");
        let agent: AgentId = id.words(AGENT_ID_CHARS_MAX)?.into();
        if cx.member.agent.get().is_some_and(|own| *own != agent) {
            let text = "this connection has registered another agent; open another connection";
            return Err(Problem::conflict(text, "one agent each").at(id.path()));
        }
        if crate::names::user_of(&agent).is_some() {
            return Err(id.bad("is a person's: it must not begin as the id of a principal"));
        }
        let model = data.get("model_info").required()?;
        model.object()?;
        model.get("context_length").whole(u64::MAX)?;
        model.get("capabilities").texts(64, 256)?;
        model.get("version").text(256)?;
        // Anybody may say anything there: the owner is the holder of the key.
        data.get("owner_info").required()?.object()?;
        let mut capabilities = data.get("agent_capabilities").required()?.texts(64, 256)?;
        let languages = data.get("supported_languages").texts(64, 250)?;
        capabilities.extend(languages.iter().map(|language| format!("lang:{language}")));
        if capabilities.len() > mesh::limits::CAPABILITIES_MAX {
            let max = mesh::limits::CAPABILITIES_MAX;
            let text = format!("with languages there may be {max}");
            return Err(data.get("agent_capabilities").bad(text));
        }
        Ok(Introduction {
            agent,
            name: data.get("agent_name").words(AGENT_NAME_CHARS_MAX)?.to_owned(),
            provider: model.get("provider").words(128)?.to_owned(),
            model: model.get("model_name").words(128)?.to_owned(),
            capabilities,
        })
    }

    pub(crate) fn attach(&self, cx: &Context) -> Attach {
        Attach {
            key: cx.member.key.clone(),
            name: self.name.clone(),
            identity: Identity::Named(self.agent.to_string()),
            capabilities: self.capabilities.clone(),
            reconnect: true,
            linger: Duration::ZERO,
        }
    }
}

/// Tells an agent that is attached where it is.
pub(crate) async fn registered(
    cx: &Context,
    own: &Introduction,
    request: &Request,
) -> Result<Vec<Bytes>, Problem> {
    let room: Option<RoomId> = cx.rooms().first().copied();
    let mut data = json!({
        "agent_id": &*own.agent,
        "registration_status": "success",
        "assigned_permissions": cx.member.rights.shown(false),
        "rate_limits": {
            "messages_per_minute": cx.member.per_minute(),
            "tasks_per_hour": 300,
            "git_operations_per_hour": 600,
        },
    });
    if let Some(room) = room {
        data["room_context"] = rooms::context(cx, room).await?;
    }
    let told = Told::fresh("agent.registered", data).answering(&request.related);
    Ok(vec![cx.frame(told)])
}

/// Notes the model of an agent that is attached. A profile that says the same is not written again: all nodes would hear of
/// it.
pub(crate) async fn note_model(cx: &Context, own: &Introduction) -> Result<(), Problem> {
    if cx.member.rights.may(crate::connect::Right::Chat, false).is_err() {
        return Ok(());
    }
    let Profile { fields, .. } = cx.ask(GetProfile(own.agent.clone())).await?.profile;
    let says = |field: Field, text: &str| {
        fields.iter().any(|(known, said)| *known == field && said == text)
    };
    let wanted = [(Field::Provider, &own.provider), (Field::Model, &own.model)];
    let new = wanted.into_iter().filter(|(field, text)| !says(*field, text));
    let fields: Vec<_> = new.map(|(field, text)| (field, Some(text.clone()))).collect();
    if fields.is_empty() || is_stopped(cx).await {
        return Ok(());
    }
    cx.ask(SetProfile(ProfileUpdate { fields, cards: None })).await
}

/// A sign of life, which is answered. What the agent does is told to others.
pub(crate) async fn beat(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let activity = request.data().get("current_activity");
    activity.object()?;
    let word = activity.get("type").text(256)?;
    let progress = activity.get("progress").number(0.0, 1.0)?;
    if let Ok(agent) = cx.agent() {
        let rate = Rate::per_minute("heartbeats", HEARTBEATS_PER_MINUTE);
        // More are not answered: nobody needs them.
        if cx.shared.take(&agent.clone(), rate).is_err() {
            return Ok(Vec::new());
        }
        if let Some(word) = word {
            show(cx, word, progress).await?;
        }
    }
    let data = json!({
        "connection_id": cx.member.connection_id(),
        "status": "active",
        "uptime_seconds": cx.member.since.elapsed().as_secs(),
    });
    let told = Told::fresh("connection.heartbeat", data).answering(&request.related);
    Ok(vec![cx.frame(told)])
}

/// `agent.status` without a task, of older clients.
pub(crate) async fn status(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let word = request.data().get("status").words(256)?.to_owned();
    show(cx, &word, None).await?;
    Ok(Vec::new())
}

async fn show(cx: &Context, word: &str, progress: Option<f64>) -> Result<(), Problem> {
    // A presence is told to others: a key that only reads has none.
    if cx.member.rights.may(crate::connect::Right::Chat, false).is_err() || is_stopped(cx).await {
        return Ok(());
    }
    let progress = progress.map(percent);
    let (detail, _) = cut(word, 200);
    let presence = Presence { status: status_of(word), detail: Some(detail), progress };
    cx.ask(SetPresence(presence)).await
}

/// A stopped agent still comes, and shows signs of life: these are answered, and nobody is told what it says of itself.
async fn is_stopped(cx: &Context) -> bool {
    cx.ask(NotStopped { of: None }).await.is_err()
}

/// Of a part of 1.
pub(crate) fn percent(part: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "it is within 0 and 100")]
    #[expect(clippy::cast_sign_loss, reason = "it is within 0 and 100")]
    let percent = (part.clamp(0.0, 1.0) * 100.0).round() as u8;
    percent
}

/// What agents are asked for that came and went, as an event has it.
pub(crate) fn model_of(profile: &Profile) -> Value {
    let of = |field: Field| {
        let said = profile.fields.iter().find(|(known, _)| *known == field);
        said.map_or("unknown", |(_, text)| text)
    };
    json!({"provider": of(Field::Provider), "model_name": of(Field::Model)})
}
