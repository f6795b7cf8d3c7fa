//! News of what records say of teams, sessions and agents, whichever node and dialect wrote them: `team.updated`,
//! `session.updated`, `agent.updated`.

use std::sync::{Arc, Weak};

use bridge::{
    read::{Described, Overheard},
    seam::event::Event,
};
use mesh::{
    name::id::{KeyPrint, RoomId},
    records::{
        members::Role,
        news::{AgentNote, RoomNote},
        profile::Field,
    },
};
use serde_json::json;
use tokio::sync::{broadcast::error::RecvError, mpsc};

use crate::{limits::RECORDS_WAITING_MAX, members::is_told, outcome::No, shared::Shared};

/// The way to one who reads what is new and tells it: news of rooms are heard by somebody who does not wait for reading.
pub(crate) type Told = mpsc::Sender<Arc<Overheard>>;

/// Hears of records as long as the dialect is there.
pub(crate) fn listen(shared: &Arc<Shared>) -> Told {
    let (told, mut rooms) = mpsc::channel::<Arc<Overheard>>(RECORDS_WAITING_MAX);
    let mut agents = shared.desk.hear_of_agents();
    let shared: Weak<Shared> = Arc::downgrade(shared);
    drop(tokio::spawn(async move {
        loop {
            tokio::select! {
                news = rooms.recv() => {
                    let (Some(news), Some(shared)) = (news, shared.upgrade()) else { return };
                    of_room(&shared, &news).await;
                }
                news = agents.recv() => match (news, shared.upgrade()) {
                    (Ok(news), Some(shared)) => of_agent(&shared, &news).await,
                    // More changed at once than is kept for those who hear of it.
                    (Err(RecvError::Lagged(_)), Some(_)) => {}
                    (Err(RecvError::Closed), _) | (_, None) => return,
                },
            }
        }
    }));
    told
}

async fn of_room(shared: &Shared, news: &Overheard) {
    let Event::Recorded { room, notes } = &news.event else { return };
    if news.facts.access.sides.is_none() {
        return of_team(shared, news, notes).await;
    }
    for note in notes.iter() {
        // Facts that this dialect takes back it writes as nothing: so the thread is named.
        if let RoomNote::Thread { key, thread: Some(thread) } = note {
            // One that cannot be read, or is of nobody who is connected, is found with the next look.
            drop(of_session(shared, *room, (*key, thread)).await);
        }
    }
}

/// The field of a team that is otherwise, as it is called here.
fn team_field(note: &RoomNote) -> Option<String> {
    match note {
        RoomNote::Title => Some("name".to_owned()),
        RoomNote::Description => Some("description".to_owned()),
        RoomNote::State => Some("status".to_owned()),
        RoomNote::Setting(Some(name)) => Some(format!("settings.{name}")),
        RoomNote::Setting(None) => Some("settings".to_owned()),
        RoomNote::Thread { .. } => None,
    }
}

async fn of_team(shared: &Shared, news: &Overheard, notes: &[RoomNote]) {
    let changes: Vec<String> = notes.iter().filter_map(team_field).collect();
    let (facts, list) = (&news.facts, &news.facts.on_record);
    let hears =
        |client: &crate::caller::Caller| is_told(client, |key| facts.readable_by(key, None), list);
    let clients = shared.clients();
    let Some(reader) = clients.iter().find(|client| hears(&client.caller)) else { return };
    if changes.is_empty() {
        return;
    }
    // The name is told also if its title cannot be read.
    let details = reader.caller.details(vec![news.room]).await.unwrap_or_default();
    let title = details.into_iter().next().and_then(|details| details.title);
    let mut told = json!({
        "team_id": news.room.to_uuid(), "team_name": title.as_deref().unwrap_or(&facts.name),
        "member_count": list.len(), "changes": changes,
    });
    if let Some(lead) = list.iter().find(|member| member.role == Role::Lead) {
        told["lead_agent_key"] = json!(&*lead.agent);
    }
    shared.tell("team.updated", &told, hears);
}

async fn of_session(
    shared: &Shared,
    room: RoomId,
    (key, thread): (KeyPrint, &str),
) -> Result<(), No> {
    for client in shared.clients().iter().filter(|client| client.caller.print() == key) {
        let caller = &client.caller;
        let rooms = caller.direct_rooms().await?;
        let Some(direct) = rooms.into_iter().find(|direct| direct.room == room) else { continue };
        let speaker = caller.speaker_of(&direct).await?;
        let label = caller.facts(&direct, thread).await?.label.unwrap_or_default();
        let told = json!({"sessionKey": thread, "label": label, "userId": speaker.user});
        shared.tell("session.updated", &told, |client| client.sees(&speaker, key));
        break;
    }
    Ok(())
}

/// The field of an agent that is otherwise, as it is called here.
fn agent_field(note: &AgentNote) -> &'static str {
    match note {
        AgentNote::Field(Field::Name) => "name",
        AgentNote::Field(Field::Description) => "description",
        AgentNote::Field(Field::Emoji) => "emoji",
        AgentNote::Field(Field::Avatar) => "avatar",
        AgentNote::Field(Field::Provider) => "provider",
        AgentNote::Field(Field::Model) => "model",
        AgentNote::Cards => "skills",
    }
}

/// All see the same agents.
async fn of_agent(shared: &Shared, news: &Described) {
    for client in shared.clients() {
        // A key that is not valid any more sees nothing: another one may.
        let Ok(known) = client.caller.known(&news.agent).await else { continue };
        // One that has retired is told of no more.
        let Some(known) = known else { return };
        let changes: Vec<&str> = news.notes.iter().map(agent_field).collect();
        let agent = &*news.agent;
        let told = json!({
            "agentId": agent, "agent_key": agent, "name": known.name(), "changes": changes,
        });
        return shared.tell("agent.updated", &told, |_| true);
    }
}
