//! The agents of the mesh: where each is, and what it says that it does.

use std::sync::Arc;

use bridge::seam::{
    call::{ListAttached, ListNodes},
    principal::is_principal,
};
use maud::{Markup, html};
use mesh::{api::command::AgentView, wire::roster::Status};

use super::{Problem, id, layout, mesh::name_of, plain};
use crate::{limits::AGENTS_SHOWN, shared::Shared, signing::Person, times};

pub(crate) async fn page(shared: &Shared, person: &Arc<Person>) -> Result<Markup, Problem> {
    let content = content(shared, person).await?;
    Ok(layout(
        person,
        "Agents",
        &html! {
            div #live data-live="/ui/live/agents" aria-live="off" { (content) }
        },
    ))
}

fn status(agent: &AgentView) -> &'static str {
    if agent.lingers && !agent.hosted {
        return "away";
    }
    match agent.presence.status {
        Status::Idle => "idle",
        Status::Working => "working",
        Status::Thinking => "thinking",
        Status::Waiting => "waiting",
    }
}

/// How its client is attached.
fn by(agent: &AgentView) -> &'static str {
    match (is_principal(&agent.agent), agent.hosted) {
        (true, _) => "person",
        (false, true) => "agent host, by requests",
        (false, false) => "connection",
    }
}

/// Opens the direct room of the person and an agent. Nobody writes to oneself.
fn write_to(person: &Person, agent: &AgentView) -> Markup {
    html! {
        @if agent.agent != person.agent() {
            form method="post" action="/ui/agents/write" {
                input type="hidden" name="form" value=(person.form);
                input type="hidden" name="agent" value=(agent.agent);
                button #(format!("write-{}", agent.agent)) aria-label=(format!("Write to {}", plain(&agent.name))) { "Write" }
            }
        }
    }
}

/// The part that changes.
pub(crate) async fn content(shared: &Shared, person: &Person) -> Result<Markup, Problem> {
    let agents = shared.desk.ask(&person.holder, ListAttached { limit: AGENTS_SHOWN }).await?;
    let nodes = shared.desk.ask(&person.holder, ListNodes).await?;
    let own = person.holder.key();
    let writes = person.holder.standing().may_write();
    Ok(html! {
        h1 { "Agents" }
        @if agents.is_empty() { p { "Nobody is attached." } }
        @else { div.wide { table {
            caption { "Attached to any node now" }
            thead { tr { th scope="col" { "Agent" } th scope="col" { "Node" } th scope="col" { "Doing" } th scope="col" { "By" } th scope="col" { "Can do" } th scope="col" { "Last active" } @if writes { th scope="col" { "Write" } } } }
            tbody {
                @for agent in &agents {
                    tr {
                        th scope="row" {
                            (plain(&agent.name))
                            @if agent.verified { " " span.tag.good title="The key that owns this id says itself that it was shown at this node" { "verified" } }
                            @if agent.key == own { " " span.tag { "your key" } }
                            br; span.quiet { (id(&agent.agent)) }
                        }
                        td data-th="Node" { (plain(&name_of(&nodes, agent.node))) }
                        td data-th="Doing" {
                            (status(agent))
                            @if let Some(detail) = &agent.presence.detail { br; span.quiet { (plain(detail)) } }
                        }
                        td data-th="By" { (by(agent)) }
                        td data-th="Can do" { @for word in agent.capabilities.iter().take(8) { span.tag { (plain(word)) } " " } @if agent.capabilities.len() > 8 { "…" } }
                        td data-th="Last active" { (times::moment(agent.last_active_ms)) }
                        @if writes { td { (write_to(person, agent)) } }
                    }
                }
            }
        } } }
        @if agents.len() >= AGENTS_SHOWN { p.quiet { "The first " (AGENTS_SHOWN) " by id are shown." } }
    })
}
