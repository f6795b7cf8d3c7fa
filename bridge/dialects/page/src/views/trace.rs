//! The life of a message: the node that wrote it, the nodes that hold it, and the agents that have it.

use std::sync::Arc;

use bridge::seam::{
    answer::{How, Receipts},
    call::{DescribeRoom, GetReceipts, ListNodes, Look, OneMessage},
    event::Message,
};
use maud::{Markup, html};
use mesh::{
    api::{delivery::Stage, status::MemberStatus},
    name::id::{MessageId, RoomId},
};

use super::{
    Problem, id, layout,
    mesh::name_of,
    messages::{self, Talk},
    plain,
    room::reader,
    rooms::name,
};
use crate::{shared::Shared, signing::Person, times};

pub(crate) async fn page(
    shared: &Shared,
    person: &Arc<Person>,
    room: RoomId,
    message: MessageId,
) -> Result<Markup, Problem> {
    let desk = &shared.desk;
    let reader = reader(shared, person, room).await?;
    let info = desk.ask(&reader, DescribeRoom(room)).await.map_err(|_| Problem::NotFound)?;
    let found = desk.ask(&reader, OneMessage { room, message }).await?.ok_or(Problem::NotFound)?;
    if desk.ask(&reader, Look(room)).await?.withheld(&found.said.agent).is_some() {
        return Err(Problem::NotFound);
    }
    let receipts = desk.ask(&reader, GetReceipts { room, message }).await?;
    let nodes = desk.ask(&person.holder, ListNodes).await?;
    let path = room.to_uuid();
    let talk = Talk { room: &path, answers: false };
    Ok(layout(
        person,
        "Trace",
        &html! {
            h1 { "The life of a message" }
            p { "In " a href=(format!("/ui/rooms/{path}#n{}", found.number.0)) { (plain(&name(&info.room))) } }
            (messages::alone(&talk, &found))
            (written(&found, &nodes))
            @match &receipts {
                Some(receipts) => (held(receipts, &nodes)),
                None => p.quiet { "It is no longer kept, so nobody was asked." },
            }
        },
    ))
}

/// Where it was written, and its numbers.
fn written(message: &Message, nodes: &[MemberStatus]) -> Markup {
    html! {
        h2 { "Written" }
        p {
            "At " strong { (plain(&name_of(nodes, message.by))) } ", " (times::moment(message.wall_ms)) " by its clock. Here it is #" (message.number.0)
            @if message.canonical != message.number { "; its lowest number anywhere is #" (message.canonical.0) }
            @for number in message.numbers.iter().filter(|number| **number != message.number && **number != message.canonical) { ", #" (number.0) }
            "."
        }
        @if let Some(fate) = &message.fate {
            p {
                "As a request it "
                @match fate.stage {
                    Stage::Arrived => "is at a node of the agent that is asked",
                    Stage::Failed => "was given up or refused",
                    Stage::Delivered => "was handed to the agent that is asked",
                }
                ", says " (plain(&name_of(nodes, fate.node))) ", " (times::moment(fate.at_ms)) "."
            }
        }
    }
}

fn held(receipts: &Receipts, nodes: &[MemberStatus]) -> Markup {
    html! {
        h2 { "Held durably by " (receipts.stored.len()) " of " (receipts.of) " nodes" }
        ul.plain {
            @for at in &receipts.stored { li { span.dot.good {} " " (plain(&name_of(nodes, at.node))) " " span.quiet { "said so " (times::moment(at.at_ms)) } } }
            @for node in &receipts.unknown { li { span.dot.bad {} " " (plain(&name_of(nodes, *node))) " " span.quiet { "did not answer" } } }
        }
        h2 { "Agents that have it" }
        @if receipts.agents.is_empty() { p.quiet { "Of none is it known." } }
        ul.plain {
            @for reached in &receipts.agents {
                li {
                    (id(&reached.agent)) " "
                    @match reached.how { How::Delivered => "was given it", How::Confirmed => "says that it has it", How::Answered => "has answered it" }
                    " " span.quiet { "at " (plain(&name_of(nodes, reached.node))) ", " (times::moment(reached.at_ms)) }
                }
            }
        }
        p.quiet { "Nodes say so, and nothing more: reload to ask again." }
    }
}
