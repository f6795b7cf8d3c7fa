//! Teams: rooms.

use bridge::seam::call::{DescribeRoom, ListRooms, ReadDetails, SetRoom};
use mesh::{
    api::command::{NewRoom, RoomInfo, RoomView},
    name::id::{MessageId, RoomId},
    records::details::{Details, DetailsUpdate, RoomState},
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    members::{self, lead_of},
    names::uuid_of,
    outcome::{Code, No, Outcome},
    params::{Names, Params, THIS_TEAM},
    times,
};

impl Caller {
    /// Rooms that are shown as teams.
    pub(crate) async fn teams(&self) -> Result<Vec<RoomView>, No> {
        let mut rooms = self.read(ListRooms { parent: None }).await?;
        rooms.retain(|room| room.sides.is_none());
        Ok(rooms)
    }

    /// The team that a text means: by its id, `lobby`, or its exact name.
    pub(crate) async fn team(&self, params: &Params, names: &Names) -> Result<RoomView, No> {
        let text = params.required(names)?;
        self.team_named(&text).await
    }

    /// The room of this id or name, of those that are teams.
    pub(crate) async fn team_named(&self, text: &str) -> Result<RoomView, No> {
        let missing = || No::not_found(format!("team not found: {text}"));
        let rooms = self.teams().await?;
        let id = if text == "lobby" { Some(self.shared.lobby) } else { RoomId::from_uuid(text) };
        if let Some(room) = rooms.iter().find(|room| Some(room.room) == id) {
            return Ok(room.clone());
        }
        let named: Vec<&RoomView> = rooms.iter().filter(|room| *room.name == *text).collect();
        match *named {
            [] => Err(missing()),
            [one] => Ok(one.clone()),
            [..] => {
                let ids: Vec<String> =
                    named.iter().take(5).map(|room| room.room.to_uuid()).collect();
                Err(No::invalid(format!(
                    "several teams are called {text}: use one of {}",
                    ids.join(", ")
                )))
            }
        }
    }

    pub(crate) async fn details(&self, rooms: Vec<RoomId>) -> Result<Vec<Details>, No> {
        self.read(ReadDetails { rooms, settings: true }).await
    }

    /// The id of the mesh.
    pub(crate) fn tenant(&self) -> String {
        MessageId(self.shared.desk.config().here.mesh.0).to_uuid()
    }

    fn team_row(&self, room: &RoomView, details: &Details) -> Value {
        let mut settings: serde_json::Map<String, Value> = details
            .settings
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), serde_json::from_str(value).ok()?)))
            .collect();
        let visibility = if room.public { "public" } else { "private" };
        settings.insert("visibility".to_owned(), json!(visibility));
        let maker = room.created_by.as_deref().unwrap_or_default();
        let lead = lead_of(room).map_or("", |lead| lead);
        let lead_uuid = if lead.is_empty() { String::new() } else { uuid_of(lead) };
        json!({
            "id": room.room.to_uuid(),
            "name": details.title.as_deref().unwrap_or(&room.name),
            "description": details.description.as_deref().or(room.description.as_deref()).unwrap_or_default(),
            "status": if is_archived(details) { "archived" } else { "active" },
            "lead_agent_id": lead_uuid,
            "lead_agent_key": lead,
            "lead_display_name": lead,
            "settings": settings,
            "created_by": maker,
            "created_at": times::text(room.created_ms),
            "updated_at": times::text(room.last_activity_ms.unwrap_or(room.created_ms)),
            // Those with a seat are on the list as a rule, and those on the list are seated when they are there.
            "member_count": room.members.max(room.on_record.len()),
            "tenant_id": self.tenant(),
            "mesh": {"encrypted": room.encrypted, "ephemeral": room.ephemeral, "shared": room.shared.is_some()},
        })
    }
}

/// Whether the team is of the caller's key.
pub(crate) fn owned(caller: &Caller, room: &RoomView) -> Result<(), No> {
    if room.owner == Some(caller.print()) {
        return Ok(());
    }
    Err(No::unauthorized("permission denied: not the owner of this team"))
}

/// Settings as they are kept, each by itself; visibility is the room's, and not among them.
fn kept_settings(params: &Params) -> Result<Vec<(String, Option<String>)>, No> {
    let Some(settings) = params.object(&["settings"])? else { return Ok(Vec::new()) };
    let kept = settings.iter().filter(|(name, _)| *name != "visibility");
    let kept = kept.map(|(name, value)| {
        let value = (!value.is_null()).then(|| value.to_string());
        (name.clone(), value)
    });
    Ok(kept.collect())
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let name = params.required(&["name"])?;
    let settings = kept_settings(params)?;
    let visibility = params.object(&["settings"])?.and_then(|settings| settings.get("visibility"));
    let public = visibility.is_some_and(|visibility| visibility == "public");
    let description = params.filled(&["description"])?;
    let new =
        NewRoom { name, description, parent: None, ephemeral: false, public, encrypted: false };
    let who = caller.speaker();
    let room = members::make(caller, params, new).await?;
    if !settings.is_empty() {
        let update = DetailsUpdate { settings, ..DetailsUpdate::default() };
        caller.act(&who, SetRoom { room: room.room, update }).await?;
    }
    let details = caller.details(vec![room.room]).await?.into_iter().next().unwrap_or_default();
    let team = caller.team_row(&room, &details);
    Ok(json!({"id": team["id"], "team": team}))
}

pub(crate) async fn update(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, THIS_TEAM).await?;
    owned(caller, &room)?;
    let (name, description) = (params.filled(&["name"])?, params.text(&["description"])?);
    if let Some(name) = &name {
        let others = caller.teams().await?;
        if others.iter().any(|other| *other.name == **name && other.room != room.room) {
            return Err(No::new(
                Code::AlreadyExists,
                format!("a team named {name} exists already"),
            ));
        }
    }
    let update = DetailsUpdate {
        closes: false,
        title: name.map(Some),
        description: description.map(|text| Some(text).filter(|text| !text.is_empty())),
        state: None,
        settings: kept_settings(params)?,
        ..DetailsUpdate::default()
    };
    if update == DetailsUpdate::default() {
        return Err(No::invalid("name, description or settings is required"));
    }
    caller.act(&caller.speaker(), SetRoom { room: room.room, update }).await?;
    Ok(json!({"ok": true}))
}

/// Closes the room, for ever: from now on it is not there, at any node.
pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, THIS_TEAM).await?;
    if room.room == caller.shared.lobby {
        return Err(No::invalid("the lobby is nobody's own: it cannot be deleted"));
    }
    owned(caller, &room)?;
    let update = DetailsUpdate { closes: true, ..DetailsUpdate::default() };
    caller.act(&caller.speaker(), SetRoom { room: room.room, update }).await?;
    Ok(json!({"ok": true}))
}

fn is_archived(details: &Details) -> bool {
    details.state == Some(RoomState::Archived)
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let with_archived = params.flag(&["includeArchived"])?.unwrap_or(false);
    let rooms = caller.teams().await?;
    let details = caller.details(rooms.iter().map(|room| room.room).collect()).await?;
    let shown =
        rooms.iter().zip(&details).filter(|(_, details)| with_archived || !is_archived(details));
    let teams: Vec<Value> = shown.map(|(room, details)| caller.team_row(room, details)).collect();
    Ok(json!({"count": teams.len(), "teams": teams}))
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, THIS_TEAM).await?;
    let info = caller.read(DescribeRoom(room.room)).await?;
    let members = members::rows(caller, &info).await?;
    let RoomInfo { room, leader, .. } = info;
    let details = caller.details(vec![room.room]).await?.into_iter().next().unwrap_or_default();
    let id = room.room.to_uuid();
    let mut team = caller.team_row(&room, &details);
    team["member_count"] = json!(members.len());
    if let Some(leader) = leader {
        team["mesh"]["leader"] = json!(&*leader.agent);
    }
    Ok(json!({"team": team, "members": members, "id": id}))
}
