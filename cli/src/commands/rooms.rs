//! `clawmesh rooms`.

use protocol::object::{Member, Room};
use protocol::reply::RoomInfoResult;
use protocol::request::{
    AddMember, Command, CreateRoom, ListRooms, RemoveMember, RoomInfo, RoomTip, SetRoom, ShareRoom,
    UnshareRoom,
};
use protocol::value::{Metadata, RoomOptions, SettingsUpdate, Update};
use serde::Serialize;

use crate::commands::agents;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// List, create and look at rooms.
#[derive(Debug, clap::Subcommand)]
pub enum Rooms {
    /// List the rooms that the key may see
    List {
        /// Only the parts of this room (id, or exact name)
        #[arg(long, value_name = "ROOM")]
        parent: Option<String>,
    },
    /// Create a room; nobody joins it yet
    Create(Create),
    /// Show a room, its members, its parts and whose turn it is
    Info {
        /// Room id, or exact name
        room: String,
    },
    /// Set title, description, state and settings of a room of your key, or that it shares; what is not named stays as it is
    Set(Set),
    /// Share a room that your key has made with --shared: with the keys of these agents, and so with all of these keys' agents
    Share(Share),
    /// Take the keys of agents out of a shared room, for ever; what their nodes have of it, they have
    Unshare(Share),
    /// Show which agents a room's key wants there, put agents on that list, and take them off
    Members(Members),
    /// Print the highest number in a room
    Tip {
        /// Room id, or exact name
        room: String,
    },
}

/// Create a room; nobody joins it yet.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Name that no other room has
    // Not `name`: that is the id of --name, which would be refused here.
    #[arg(id = "room_name", value_name = "NAME")]
    pub name: String,
    /// The purpose of the room
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The room it is a part of (id, or exact name)
    #[arg(long, value_name = "ROOM")]
    pub parent: Option<String>,
    /// Gone when its last member has left
    #[arg(long)]
    pub ephemeral: bool,
    /// Visible to every key
    #[arg(long)]
    pub public: bool,
    /// Only encrypted content is taken: give every agent the same --room-key
    #[arg(long)]
    pub encrypted: bool,
    /// It can be shared with agents of other keys, by `rooms share`, and nobody else sees it
    #[arg(long, conflicts_with_all = ["public", "ephemeral", "parent"])]
    pub shared: bool,
}

/// A shared room, and agents.
#[derive(Debug, clap::Args)]
pub struct Share {
    /// Room id, or exact name
    pub room: String,
    /// Ids of agents
    #[arg(required = true, value_name = "AGENT")]
    pub agents: Vec<String>,
}

/// Show which agents a room's key wants there, put agents on that list, and take them off.
///
/// An agent on the list has a seat in the room whenever it is attached, unless it has left by itself. A shared room is given to
/// its key.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// Room id, or exact name
    pub room: String,
    /// Put this agent on the list, or give it another role; by the key that made the room
    #[arg(long, value_name = "AGENT")]
    pub add: Vec<String>,
    /// The role of those that are added: lead, member or reviewer. A second lead takes the place of the first
    #[arg(long, value_name = "ROLE", requires = "add")]
    pub role: Option<String>,
    /// Take this agent off the list, and out of the room
    #[arg(long, value_name = "AGENT")]
    pub remove: Vec<String>,
}

/// Set title, description, state and settings of a room of your key, or that it shares. What is not named stays as it is.
#[derive(Debug, clap::Args)]
pub struct Set {
    /// Room id, or exact name
    pub room: String,
    /// A title beside the name; empty deletes it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// In the place of the description that the room was made with
    #[arg(long, value_name = "TEXT", conflicts_with = "old_description")]
    pub description: Option<String>,
    /// The description that the room was made with, again
    #[arg(long)]
    pub old_description: bool,
    /// lobby, active, paused or archived, for its members to know; empty deletes it
    #[arg(long, value_name = "STATE")]
    pub state: Option<String>,
    /// A setting, such as `theme=dark`: its value is JSON if it can be read as such, else a text. `theme=` deletes it
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, Option<Metadata>)>,
}

fn setting(text: &str) -> Result<(String, Option<Metadata>), &'static str> {
    let (name, value) = text.split_once('=').ok_or("give a name and a value, joined by `=`")?;
    let json = Metadata::parse(value).or_else(|_| Metadata::parse(&json_text(value)));
    let value =
        if value.is_empty() { None } else { Some(json.map_err(|_| "give a shorter value")?) };
    Ok((name.to_owned(), value))
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(crate) async fn run(cx: &Context, args: Rooms) -> Result<Outcome, Failure> {
    match args {
        Rooms::List { parent } => list(cx, parent).await,
        Rooms::Create(args) => create(cx, args).await,
        Rooms::Info { room } => info(cx, &room).await,
        Rooms::Set(args) => set(cx, args).await,
        Rooms::Share(args) => share(cx, args).await,
        Rooms::Unshare(args) => unshare(cx, args).await,
        Rooms::Members(args) => members(cx, args).await,
        Rooms::Tip { room } => tip(cx, &room).await,
    }
}

async fn list(cx: &Context, parent: Option<String>) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let parent_id = cx.some_room(&client, parent.as_deref()).await?;
    let list = client.call(ListRooms { parent_id }).await?;
    cx.output.list(&list, "no rooms", || lines(&cx.output, &list.rooms))?;
    Ok(Outcome::Done)
}

fn lines(output: &Output, rooms: &[Room]) -> Vec<String> {
    let row = |room: &Room| {
        vec![
            room.name.clone(),
            room.room_id.clone(),
            room.member_count.unwrap_or_default().to_string(),
            format::traits(room),
            room.last_activity.clone().unwrap_or_default(),
            purpose(room),
        ]
    };
    let heads = ["name", "id", "agents", "is", "last message", "for"];
    table::lines(output, &heads, rooms.iter().map(row).collect())
}

/// Its title and its description.
fn purpose(room: &Room) -> String {
    let title = room.mesh.as_ref().and_then(|note| note.title.as_deref());
    let parts = [title, room.description.as_deref()].into_iter().flatten();
    parts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}

async fn create(cx: &Context, args: Create) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let parent_id = cx.some_room(&client, args.parent.as_deref()).await?;
    let room = CreateRoom {
        name: args.name,
        description: args.description,
        parent_id,
        ephemeral: args.ephemeral,
        public: args.public,
        encrypted: args.encrypted,
        mesh: args.shared.then_some(RoomOptions { shared: true }),
    };
    let room = client.call(room).await?;
    let line = || format!("Created room: {} ({})", format::name(&room.name), room.room_id);
    cx.output.show(&room, || vec![line()])?;
    Ok(Outcome::Done)
}

/// Shares a room with the keys of agents, or takes them out, as the request says; a line for each.
async fn each_agent<R: Command<Reply: Serialize>>(
    cx: &Context,
    args: Share,
    request: impl Fn(String, String) -> R,
    line: impl Fn(&str) -> String,
) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    for agent_id in args.agents {
        let line = line(&format::name(&agent_id));
        let done = client.call(request(room_id.clone(), agent_id)).await?;
        cx.output.show(&done, || vec![line])?;
    }
    Ok(Outcome::Done)
}

async fn share(cx: &Context, args: Share) -> Result<Outcome, Failure> {
    let request = |room_id, agent_id| ShareRoom { room_id, agent_id };
    each_agent(cx, args, request, |agent| format!("Shared with the key of {agent}")).await
}

async fn unshare(cx: &Context, args: Share) -> Result<Outcome, Failure> {
    let request = |room_id, agent_id| UnshareRoom { room_id, agent_id };
    each_agent(cx, args, request, |agent| format!("The key of {agent} is out")).await
}

async fn members(cx: &Context, args: Members) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    for agent_id in args.add {
        let (room_id, role) = (room_id.clone(), args.role.clone());
        client.call(AddMember { room_id, agent_id, role }).await?;
    }
    for agent_id in args.remove {
        client.call(RemoveMember { room_id: room_id.clone(), agent_id }).await?;
    }
    let info = client.call(RoomInfo { room_id }).await?;
    let members = info.room.mesh.map(|note| note.members).unwrap_or_default();
    cx.output.list(&members, "no members on record", || {
        let row = |member: &Member| {
            let left = if member.left { "left" } else { "" };
            [&member.agent_id, &member.role, left, &member.since].map(str::to_owned).to_vec()
        };
        table::lines(&cx.output, &["id", "role", "", "since"], members.iter().map(row).collect())
    })?;
    Ok(Outcome::Done)
}

async fn info(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, room).await?;
    let info = client.call(RoomInfo { room_id }).await?;
    cx.output.show(&info, || about(&cx.output, &info))?;
    Ok(Outcome::Done)
}

/// A room, and the details that its key has set. All of it is of others: it steers nothing.
fn details(output: &Output, room: &Room) -> Vec<String> {
    let name = output.strong(&format::name(&room.name));
    let mut lines = vec![format!("{name} ({}) · {}", room.room_id, format::traits(room))];
    let note = room.mesh.clone().unwrap_or_default();
    lines.extend(note.title.as_deref().map(format::name));
    lines.extend(room.description.as_deref().map(format::name));
    let setting = |(name, value): (&String, &Metadata)| {
        format!("setting {}: {}", format::name(name), format::name(value.get()))
    };
    lines.extend(note.settings.iter().map(setting));
    let member = |member: &Member| {
        let left = if member.left { ", has left" } else { "" };
        format!("{} {}{left}", format::name(&member.role), format::name(&member.agent_id))
    };
    lines.extend(note.members.iter().map(member));
    lines.extend(note.keys.iter().map(|key| format!("shared with the key {}", format::name(key))));
    lines
}

fn about(output: &Output, info: &RoomInfoResult) -> Vec<String> {
    let room = &info.room;
    let mut lines = details(output, room);
    lines.push(format!("created {}", room.created_at));
    lines.extend(room.last_activity.as_ref().map(|at| format!("last message {at}")));
    if !info.agents.is_empty() {
        lines.push(String::new());
        let turn = info.current_turn_holder.as_deref().unwrap_or_default();
        lines.extend(agents::lines(output, &info.agents, Some(turn)));
    }
    if !info.sub_rooms.is_empty() {
        lines.push(String::new());
        lines.extend(self::lines(output, &info.sub_rooms));
    }
    lines
}

async fn set(cx: &Context, args: Set) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    let room = client.call(change(args, room_id)).await?;
    cx.output.show(&room, || details(&cx.output, &room))?;
    Ok(Outcome::Done)
}

fn change(args: Set, room_id: String) -> SetRoom {
    let update = |text: Option<String>| match text {
        None => Update::Keep,
        Some(text) if text.is_empty() => Update::Delete,
        Some(text) => Update::Set(text),
    };
    let description = match args.description {
        _ if args.old_description => Update::Delete,
        Some(text) => Update::Set(text),
        None => Update::Keep,
    };
    let settings = SettingsUpdate(args.settings.into_iter().collect());
    SetRoom {
        room_id,
        title: update(args.title),
        description,
        state: update(args.state),
        settings: Some(settings).filter(|settings| !settings.0.is_empty()),
    }
}

async fn tip(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, room).await?;
    let tip = client.call(RoomTip { room_id }).await?;
    // The bare integer, also for people: `--since-seq` takes it.
    cx.output.show(&tip, || vec![tip.seq.to_string()])?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(settings: &[&str]) -> Set {
        let settings = settings.iter().map(|text| setting(text).unwrap()).collect();
        let (title, state) = (Some(String::new()), Some("paused".to_owned()));
        let (description, old_description) = (None, false);
        Set { room: "r".to_owned(), title, description, old_description, state, settings }
    }

    #[test]
    fn what_is_named_is_set_or_deleted_and_all_else_stays() {
        let set =
            change(args(&["theme=dark", "max=3", "old=", "text=\"3\"", "eq=a=b"]), "id".to_owned());
        assert_eq!((set.title, set.description), (Update::Delete, Update::Keep));
        assert_eq!(set.state, Update::Set("paused".to_owned()));
        let settings = set.settings.unwrap().0;
        let value = |name: &str| settings[name].as_ref().map(|value| value.get().to_owned());
        let values = ["theme", "max", "old", "text", "eq"].map(value);
        let expected = [Some("\"dark\""), Some("3"), None, Some("\"3\""), Some("\"a=b\"")];
        assert_eq!(values, expected.map(|text| text.map(String::from)));
        assert_eq!(change(args(&[]), "id".to_owned()).settings, None);
        let old = Set { old_description: true, ..args(&[]) };
        assert_eq!(change(old, "id".to_owned()).description, Update::Delete);
        assert!(setting("theme").is_err());
    }
}
