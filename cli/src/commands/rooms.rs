//! `clawmesh rooms`.

use protocol::request::{CreateRoom, ListRooms, RoomInfo, RoomTip};

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

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
    /// What the room is for
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
    let (client, _) = cx.connect().await?;
    let parent_id = match parent {
        Some(room) => Some(cx.room(&client, &room).await?),
        None => None,
    };
    for room in client.call(ListRooms { parent_id }).await?.rooms {
        cx.output.line(&format::room(&room))?;
    }
    Ok(Outcome::Done)
}

async fn create(cx: &Context, args: Create) -> Result<Outcome, Failure> {
    let (client, _) = cx.connect().await?;
    let parent_id = match args.parent {
        Some(room) => Some(cx.room(&client, &room).await?),
        None => None,
    };
    let room = CreateRoom {
        name: args.name,
        description: args.description,
        parent_id,
        ephemeral: args.ephemeral,
        public: args.public,
        encrypted: false,
    };
    let room = client.call(room).await?;
    cx.output.line(&format!("Created room: {} ({})", room.name, room.room_id))?;
    Ok(Outcome::Done)
}

async fn info(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let (client, _) = cx.connect().await?;
    let room_id = cx.room(&client, room).await?;
    let info = client.call(RoomInfo { room_id }).await?;
    cx.output.line(&format::room(&info.room))?;
    for agent in &info.agents {
        let has_turn = info.current_turn_holder.as_ref() == Some(&agent.agent_id);
        let turn = if has_turn { " · has the turn" } else { "" };
        cx.output.line(&format!("  agent {}{turn}", format::agent(agent)))?;
    }
    for part in &info.sub_rooms {
        cx.output.line(&format!("  room {}", format::room(part)))?;
    }
    Ok(Outcome::Done)
}

async fn tip(cx: &Context, room: &str) -> Result<Outcome, Failure> {
    let (client, _) = cx.connect().await?;
    let room_id = cx.room(&client, room).await?;
    let tip = client.call(RoomTip { room_id }).await?;
    cx.output.line(&tip.seq.to_string())?;
    Ok(Outcome::Done)
}
