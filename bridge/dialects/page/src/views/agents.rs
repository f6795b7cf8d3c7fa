//! The agents of the mesh: where each is, what it says that it does, how it hears of news, and for whom it waits.

use std::sync::Arc;

use bridge::{
    Woken,
    checkup::Checkup,
    seam::{
        call::{ListAttached, ListDirect, ListNodes, ListRooms, ListStops, ListWaits},
        principal::is_principal,
    },
};
use maud::{Markup, html};
use mesh::{
    api::command::{AgentView, StopView, Stops},
    wire::roster::Status,
};

use super::{Problem, id, layout, mesh::name_of, plain, waits::Waits};
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

/// How its client is attached. `dialect`: of a connection to this node.
fn by(agent: &AgentView, dialect: Option<&'static str>) -> &'static str {
    match (is_principal(&agent.agent), agent.hosted, dialect) {
        (true, ..) => "person",
        (false, true, _) => "agent host, by requests",
        (false, false, Some(dialect)) => dialect,
        (false, false, None) => "connection",
    }
}

/// How it hears that something has come for it.
fn woken(agent: &AgentView, checkup: Option<&Checkup>) -> Markup {
    let posts = checkup.and_then(|checkup| checkup.woken.iter().find(|(of, _)| *of == agent.agent));
    html! {
        @match posts.map(|(_, woken)| woken) {
            Some(Woken::Nothing) => "posts to its host",
            Some(Woken::Told(times)) => { "posts to its host" br; span.quiet { "told " (if *times == 1 { "once".to_owned() } else { format!("{times} times") }) ", not fetched yet" } },
            Some(Woken::Unreached) => { "posts to its host" br; span.problem { "its host does not take them" } },
            Some(Woken::Unread) => { "posts to its host" br; span.problem { "fetches nothing, however often it was told" } },
            None if is_principal(&agent.agent) => "looks at a page",
            None if agent.hosted => "asks, or waits for it",
            None if agent.lingers => "when it is back",
            None => "at once, by its connection",
        }
    }
}

/// Stopping all agents, and what is stopped.
fn stopping(person: &Person, stops: &Stops) -> Markup {
    let of_all = |stop: &&StopView| stop.agent.is_none();
    let own = stops.stops.iter().filter(of_all).any(|stop| stop.key == person.holder.key());
    html! {
        @for stop in stops.stops.iter().filter(of_all) {
            p.problem role="status" { (plain(&stop.by)) " has stopped all agents" @if stop.key == person.holder.key() && !stops.is_operator { " of your key" } ", " (times::moment(stop.since_ms)) }
        }
        @if stops.stops.iter().any(|stop| stop.agent.is_some()) {
            p.quiet { "A stop is of one id: who has its key can come back under another one. To end that, stop all agents of the key, or revoke it." }
        }
        @if person.holder.standing().may_write() {
            form.act method="post" action="/ui/agents/stop" {
                input type="hidden" name="form" value=(person.form);
                input type="hidden" name="who" value="all";
                @if own { button #go-all name="do" value="go" { "Let all go" } }
                @else if stops.is_operator { button #stop-all name="do" value="stop" title="They send nothing until you let them go; people of your key still do" { "Stop all agents" } }
                @else { button #stop-all name="do" value="stop" { "Stop all agents of your key" } }
            }
        }
    }
}

/// Stops an agent, or lets it go, where the person's key may.
fn stop(person: &Person, agent: &AgentView, stops: &Stops) -> Markup {
    let key = person.holder.key();
    let is_own = agent.key == key;
    let said =
        stops.stops.iter().any(|stop| stop.key == key && stop.agent.as_ref() == Some(&agent.agent));
    let (word, name) = if said { ("go", "Let go") } else { ("stop", "Stop") };
    html! {
        @if (is_own || stops.is_operator) && agent.agent != person.agent() {
            form method="post" action="/ui/agents/stop" {
                input type="hidden" name="form" value=(person.form);
                input type="hidden" name="who" value="one";
                input type="hidden" name="agent" value=(agent.agent);
                button #(format!("{word}-{}", agent.agent)) name="do" value=(word) aria-label=(format!("{name}: {}", plain(&agent.name))) { (name) }
            }
        }
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
    let stops = shared.desk.ask(&person.holder, ListStops).await?;
    let writes = person.holder.standing().may_write();
    let waits = shared.desk.ask(&person.holder, ListWaits).await?;
    let mut rooms = shared.desk.ask(&person.holder, ListRooms { parent: None }).await?;
    rooms.extend(shared.desk.ask(&person.holder, ListDirect).await?);
    let checkup = shared.desk.checkup(&person.holder).await.ok().flatten();
    let checkup = checkup.as_deref();
    Ok(html! {
        h1 { "Agents" }
        (stopping(person, &stops))
        (Waits { waits: &waits, agents: &agents, rooms: &rooms }.markup())
        h2 { "Who is there" }
        @if agents.is_empty() { p { "Nobody is attached." } }
        @else { div.wide { table {
            caption { "Attached to any node now" }
            thead { tr { th scope="col" { "Agent" } th scope="col" { "Node" } th scope="col" { "Doing" } th scope="col" { "By" } th scope="col" { "Woken" } th scope="col" { "Can do" } th scope="col" { "Last active" } @if writes { th scope="col" { "Act" } } } }
            tbody {
                @for agent in &agents {
                    tr {
                        th scope="row" {
                            (plain(&agent.name))
                            @if agent.verified { " " span.tag.good title="The key that owns this id says itself that it was shown at this node" { "verified" } }
                            @if agent.key == own { " " span.tag { "your key" } }
                            @if let Some(stop) = stops.stops.iter().find(|stop| stop.agent.as_ref() == Some(&agent.agent)) {
                                " " span.tag.bad { "stopped by " (plain(&stop.by)) }
                            }
                            br; span.quiet { (id(&agent.agent)) }
                        }
                        td data-th="Node" { (plain(&name_of(&nodes, agent.node))) }
                        td data-th="Doing" {
                            (status(agent))
                            @if let Some(detail) = &agent.presence.detail { br; span.quiet { (plain(detail)) } }
                        }
                        td data-th="By" { (by(agent, shared.desk.speaks(&agent.agent))) }
                        td data-th="Woken" { (woken(agent, checkup)) }
                        td data-th="Can do" { @for word in agent.capabilities.iter().take(8) { span.tag { (plain(word)) } " " } @if agent.capabilities.len() > 8 { "…" } }
                        td data-th="Last active" { (times::moment(agent.last_active_ms)) }
                        @if writes { td.acts { (write_to(person, agent)) (stop(person, agent, &stops)) } }
                    }
                }
            }
        } } }
        @if agents.len() >= AGENTS_SHOWN { p.quiet { "The first " (AGENTS_SHOWN) " by id are shown." } }
    })
}
