//! `clawmesh thinking`.

use protocol::request;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Think out loud in a room.
#[derive(Debug, clap::Args)]
pub struct Thinking {
    /// Room id, or exact name
    pub room: String,
    /// The thought
    pub text: String,
}

pub(crate) async fn run(cx: &Context, args: Thinking) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.join(&client, &args.room).await?;
    let thought = request::Thinking { room_id, content: args.text, mesh: None };
    let thought = client.call(thought).await?;
    cx.output.show(&thought, || vec![format::message(&cx.output, &thought)])?;
    Ok(Outcome::Done)
}
