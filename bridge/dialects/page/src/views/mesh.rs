//! The mesh: its nodes, and which of them this one reaches.

use std::sync::Arc;

use bridge::seam::call::{ListAttached, ListNodes, ListRooms};
use maud::{Markup, html};
use mesh::{api::status::MemberStatus, name::id::NodeId};

use super::{Problem, layout, plain};
use crate::{limits::AGENTS_SHOWN, shared::Shared, signing::Person, times};

pub(crate) async fn page(shared: &Shared, person: &Arc<Person>) -> Result<Markup, Problem> {
    let content = content(shared, person).await?;
    Ok(layout(
        person,
        "Mesh",
        &html! {
            div #live data-live="/ui/live/mesh" aria-live="off" { (content) }
        },
    ))
}

/// How a node stands, as this one sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Here,
    Linked,
    /// Heard through others.
    Heard,
    Away,
    Removed,
}

impl Standing {
    fn of(node: &MemberStatus) -> Standing {
        match node {
            MemberStatus { parted: Some(_), .. } => Standing::Removed,
            MemberStatus { me: true, .. } => Standing::Here,
            MemberStatus { connected: true, .. } => Standing::Linked,
            MemberStatus { alive: true, .. } => Standing::Heard,
            MemberStatus { .. } => Standing::Away,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Standing::Here => "this node",
            Standing::Linked => "connected",
            Standing::Heard => "heard through others",
            Standing::Away => "not heard",
            Standing::Removed => "removed",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Standing::Here => "here",
            Standing::Linked => "good",
            Standing::Heard => "fair",
            Standing::Away | Standing::Removed => "bad",
        }
    }
}

/// A node's name, or the beginning of its id.
pub(crate) fn name_of(nodes: &[MemberStatus], id: NodeId) -> String {
    let name = nodes.iter().find(|node| node.node == id).map(|node| node.name.clone());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| short(id))
}

fn short(id: NodeId) -> String {
    id.to_string().chars().take(12).collect()
}

/// The part that changes.
pub(crate) async fn content(shared: &Shared, person: &Person) -> Result<Markup, Problem> {
    let ask = &shared.desk;
    let mut nodes = ask.ask(&person.holder, ListNodes).await?;
    nodes.sort_by(|one, other| (!one.me, &one.name).cmp(&(!other.me, &other.name)));
    let agents = ask.ask(&person.holder, ListAttached { limit: AGENTS_SHOWN }).await?;
    let rooms = ask.ask(&person.holder, ListRooms { parent: None }).await?;
    let reached = nodes.iter().filter(|node| Standing::of(node) == Standing::Linked).count();
    let others = nodes.iter().filter(|node| !node.me && node.parted.is_none()).count();
    Ok(html! {
        h1 { "Mesh" }
        dl.counts {
            div { dt { "Nodes" } dd { (nodes.iter().filter(|node| node.parted.is_none()).count()) } }
            div { dt { "Connected to this one" } dd { (reached) " of " (others) } }
            div { dt { "Agents attached" } dd { (agents.len()) @if agents.len() >= AGENTS_SHOWN { "+" } } }
            div { dt { "Rooms you see" } dd { (rooms.len()) } }
        }
        (picture(&nodes))
        div.wide { table {
            caption { "Nodes, as this one sees them" }
            thead { tr { th scope="col" { "Node" } th scope="col" { "Standing" } th scope="col" { "Last heard" } th scope="col" { "Agents" } th scope="col" { "Version" } th scope="col" { "Member since" } } }
            tbody {
                @for node in &nodes {
                    @let standing = Standing::of(node);
                    tr {
                        th scope="row" { (plain(&name_of(&nodes, node.node))) @if node.founder { " " span.tag { "founder" } } }
                        td data-th="Standing" { span.dot.(standing.class()) {} " " (standing.word()) }
                        td data-th="Last heard" { @if node.me { "–" } @else if let Some(ago) = node.heard_ago { (times::span(ago.as_secs())) " ago" } @else { "not since this node's start" } }
                        td data-th="Agents" { (agents.iter().filter(|agent| agent.node == node.node).count()) }
                        td data-th="Version" { @if let Some(about) = &node.about { (plain(&about.version)) } @else { "unknown" } }
                        td data-th="Member since" { (times::moment(node.since_ms)) }
                    }
                }
            }
        } }
    })
}

/// Nodes on a circle around this one, each with its link. Beyond so many there is no picture: it would show nothing.
fn picture(nodes: &[MemberStatus]) -> Markup {
    const SHOWN_MAX: usize = 24;
    let others: Vec<&MemberStatus> =
        nodes.iter().filter(|node| !node.me && node.parted.is_none()).collect();
    if others.is_empty() || others.len() > SHOWN_MAX {
        return html! {};
    }
    let place = |nth: usize| {
        // From the left on: two others stand beside this one, and no line goes through a name.
        let angle = std::f64::consts::TAU * nth as f64 / others.len() as f64 - std::f64::consts::PI;
        (180.0 + 130.0 * angle.cos(), 120.0 + 85.0 * angle.sin())
    };
    html! {
        svg.mesh viewBox="0 0 360 250" role="img" aria-label="This node in the middle, and its links to the others; the table says the same" {
            @for (nth, node) in others.iter().enumerate() {
                @let (x, y) = place(nth);
                line class=(Standing::of(node).class()) x1="180" y1="120" x2=(format!("{x:.1}")) y2=(format!("{y:.1}")) {}
            }
            @for (nth, node) in others.iter().enumerate() {
                @let (x, y) = place(nth);
                circle class=(Standing::of(node).class()) cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="9" {}
                text x=(format!("{x:.1}")) y=(format!("{:.1}", y + 22.0)) { (plain(&name_of(nodes, node.node))) }
            }
            circle.here cx="180" cy="120" r="12" {}
            text x="180" y="146" { (nodes.iter().find(|node| node.me).map(|me| plain(&name_of(nodes, me.node)).into_owned()).unwrap_or_default()) }
        }
    }
}
