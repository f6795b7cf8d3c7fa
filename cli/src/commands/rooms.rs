//! `clawmesh rooms`.

use protocol::object::Room;
use protocol::reply::RoomInfoResult;
use protocol::request::{CreateRoom, ListRooms, RoomInfo, RoomTip};

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
}

pub(crate) async fn run(cx: &Context, args: Rooms) -> Result<Outcome, Failure> {
    match args {
        Rooms::List { parent } => list(cx, parent).await,
        Rooms::Create(args) => create(cx, args).await,
        Rooms::Info { room } => info(cx, &room).await,
        Rooms::Tip { room } => tip(cx, &room).await,
    }
}

async fn list(cx: &Context, parent: Option<String>) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let parent_id = cx.some_room(&client, parent.as_deref()).await?;
    let list = client.call(ListRooms { parent_id }).await?;
    cx.output.show(&list, || lines(&cx.output, &list.rooms))?;
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
            room.description.clone().unwrap_or_default(),
        ]
    };
    let heads = ["name", "id", "agents", "is", "last message", "for"];
    table::lines(output, &heads, rooms.iter().map(row).collect())
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
    };
    let room = client.call(room).await?;
    let line = || format!("Created room: {} ({})", format::name(&room.name), room.room_id);
    cx.output.show(&room, || vec![line()])?;
    Ok(Outcome::Done)
}

async fn info(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, room).await?;
    let info = client.call(RoomInfo { room_id }).await?;
    cx.output.show(&info, || about(&cx.output, &info))?;
    Ok(Outcome::Done)
}

fn about(output: &Output, info: &RoomInfoResult) -> Vec<String> {
    let room = &info.room;
    let title = output.strong(&format::name(&room.name));
    let mut lines = vec![format!("{title} ({}) · {}", room.room_id, format::traits(room))];
    lines.extend(room.description.as_deref().map(format::name));
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

async fn tip(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, room).await?;
    let tip = client.call(RoomTip { room_id }).await?;
    // The bare integer, also for people: `--since-seq` takes it.
    cx.output.show(&tip, || vec![tip.seq.to_string()])?;
    Ok(Outcome::Done)
}
