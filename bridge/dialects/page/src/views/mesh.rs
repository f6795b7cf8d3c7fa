//! The mesh: its nodes, which of them this one reaches, and how far each is.

use std::{f64::consts, sync::Arc};

use bridge::{
    checkup::{Checkup, Finding, PeerFacts},
    seam::call::{ListAttached, ListNodes, ListRooms},
};
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

/// All that is known of the nodes.
struct Known<'a> {
    nodes: &'a [MemberStatus],
    /// For the operator alone.
    checkup: Option<&'a Checkup>,
}

impl Known<'_> {
    fn facts(&self, node: NodeId) -> Option<&PeerFacts> {
        self.checkup?.nodes.get(&node)
    }

    fn name(&self, node: NodeId) -> String {
        name_of(self.nodes, node)
    }

    /// The node that passes on what another one says.
    fn through(&self, node: &MemberStatus) -> Option<String> {
        let through = node.through.filter(|_| Standing::of(node) == Standing::Heard)?;
        Some(self.name(through))
    }
}

/// The part that changes.
pub(crate) async fn content(shared: &Shared, person: &Person) -> Result<Markup, Problem> {
    let ask = &shared.desk;
    let mut nodes = ask.ask(&person.holder, ListNodes).await?;
    nodes.sort_by(|one, other| (!one.me, &one.name).cmp(&(!other.me, &other.name)));
    let agents = ask.ask(&person.holder, ListAttached { limit: AGENTS_SHOWN }).await?;
    let rooms = ask.ask(&person.holder, ListRooms { parent: None }).await?;
    // Only the operator is told more.
    let checkup = ask.checkup(&person.holder).await.ok().flatten();
    let known = Known { nodes: &nodes, checkup: checkup.as_deref() };
    let parts = nodes.iter().filter(|node| node.parted.is_none());
    let reached = nodes.iter().filter(|node| Standing::of(node) == Standing::Linked).count();
    let others = parts.clone().filter(|node| !node.me).count();
    let even = parts.clone().filter(|node| node.step.is_some_and(|step| step.is_even)).count();
    let of_node = |node: NodeId| agents.iter().filter(|agent| agent.node == node).count();
    Ok(html! {
        h1 { "Mesh" }
        dl.counts {
            div { dt { "Nodes" } dd { (parts.clone().count()) } }
            div { dt { "In step with this one" } dd { (even) " of " (parts.count()) } }
            div { dt { "Connected to this one" } dd { (reached) " of " (others) } }
            div { dt { "Agents attached" } dd { (agents.len()) @if agents.len() >= AGENTS_SHOWN { "+" } } }
            div { dt { "Rooms you see" } dd { (rooms.len()) } }
        }
        (picture(&known))
        (table(&known, of_node))
        @if let Some(checkup) = &checkup { (doctor(checkup)) }
    })
}

fn table(known: &Known<'_>, agents: impl Fn(NodeId) -> usize) -> Markup {
    let more = known.checkup.is_some();
    html! {
        div.wide { table {
            caption { "Nodes, as this one sees them" }
            thead { tr {
                th scope="col" { "Node" } th scope="col" { "Standing" } th scope="col" { "Messages" } th scope="col" { "Last heard" }
                @if more { th scope="col" { "Link" } th scope="col" { "Clock" } th scope="col" { "Gives numbers in" } }
                th scope="col" { "Agents" } th scope="col" { "Version" } th scope="col" { "Member since" }
            } }
            tbody {
                @for node in known.nodes {
                    @let standing = Standing::of(node);
                    @let facts = known.facts(node.node);
                    tr {
                        th scope="row" { (plain(&known.name(node.node))) @if node.founder { " " span.tag { "founder" } } }
                        td data-th="Standing" {
                            span.dot.(standing.class()) {} " "
                            @match known.through(node) { Some(through) => { "heard through " (plain(&through)) }, None => (standing.word()) }
                        }
                        td data-th="Messages" { (step(known, node)) }
                        td data-th="Last heard" { @if node.me { "–" } @else if let Some(ago) = node.heard_ago { (times::span(ago.as_secs())) " ago" } @else { "not since this node's start" } }
                        @if more {
                            td data-th="Link" { @match facts.and_then(|facts| facts.rtt_ms) { Some(ms) => (wait(ms)), None => "–" } }
                            td data-th="Clock" { (clock(node, facts)) }
                            td data-th="Gives numbers in" { (facts.map_or(0, |facts| facts.sequences)) " rooms" }
                        }
                        td data-th="Agents" { (agents(node.node)) }
                        td data-th="Version" { @if let Some(about) = &node.about { (plain(&about.version)) } @else { "unknown" } }
                        td data-th="Member since" { (times::moment(node.since_ms)) }
                    }
                }
            }
        } }
    }
}

/// A time between question and answer. In whole milliseconds: it is not to change with each look.
fn wait(ms: f64) -> String {
    if ms < 1.0 { "under 1 ms".to_owned() } else { format!("{ms:.0} ms") }
}

fn clock(node: &MemberStatus, facts: Option<&PeerFacts>) -> Markup {
    let ahead = facts.and_then(|facts| facts.clock_ahead_ms);
    html! {
        @match ahead {
            _ if node.me => "–",
            None => "unknown",
            Some(ms) if ms.unsigned_abs() < 1_000 => "agrees",
            Some(ms) => span.problem { (ms.unsigned_abs() / 1_000) " s " (if ms > 0 { "ahead" } else { "behind" }) },
        }
    }
}

/// In a few words, for the picture.
fn short_step(node: &MemberStatus) -> String {
    match node.step {
        None => "not heard".to_owned(),
        Some(step) if step.is_even => "in step".to_owned(),
        Some(step) => format!("{} behind", step.behind),
    }
}

/// How far a node is, and the reason if it is behind.
fn step(known: &Known<'_>, node: &MemberStatus) -> Markup {
    let standing = Standing::of(node);
    let obstacle = known.facts(node.node).and_then(|facts| facts.obstacle.as_ref());
    let why = match standing {
        Standing::Here => "its peers have them, and they are being fetched".to_owned(),
        Standing::Linked => "they are on their way".to_owned(),
        Standing::Heard => "there is no link to it".to_owned(),
        Standing::Away => "it is not heard".to_owned(),
        Standing::Removed => return html! { "–" },
    };
    html! {
        @match node.step {
            Some(step) if step.is_even => span.even { "in step" },
            None => { "not known: " (why) },
            Some(step) => {
                span.problem {
                    "behind by " (step.behind) @if node.me { " entries" } @else if step.behind == 1 { " message" } @else { " messages" }
                }
                ": " (why)
                @if let Some(ago) = step.even_ago { span.quiet { " · in step " (times::span(ago.as_secs())) " ago" } }
            }
        }
        @if let (Some((error, advice)), Standing::Heard | Standing::Away) = (obstacle, standing) {
            br; span.quiet { (plain(error)) ": " (advice) }
        }
    }
}

/// The checks that `clawmesh doctor` makes of this node.
fn doctor(checkup: &Checkup) -> Markup {
    html! {
        h2 #doctor { "What the doctor says of this node" }
        ul.plain.checks {
            @for check in &checkup.checks {
                @let (class, word) = match check.finding { Finding::Well => ("good", "ok"), Finding::Note => ("fair", "note"), Finding::Bad => ("bad", "bad") };
                li {
                    span.dot.(class) {} " " span.quiet { (word) } " " strong { (check.subject) } " " (plain(&check.found))
                    @if let Some(advice) = &check.advice { br; span.advice { "→ " (plain(advice)) } }
                }
            }
        }
        p.quiet { "The same checks as " code { "clawmesh doctor" } ", which looks at your key and your own connection, too." }
    }
}

/// A place in the picture.
type Place = (f64, f64);

/// The middle of the picture, and how far the others are from it.
const MIDDLE: Place = (260.0, 150.0);
const FAR: Place = (190.0, 105.0);

/// The other nodes on a circle around this one, from the left on: two others stand beside it, and no line goes through a name.
fn place(nth: usize, of: usize) -> Place {
    #[expect(clippy::cast_precision_loss, reason = "of some dozens")]
    let angle = consts::TAU * nth as f64 / of as f64 - consts::PI;
    (MIDDLE.0 + FAR.0 * angle.cos(), MIDDLE.1 + FAR.1 * angle.sin())
}

/// Nodes, each with its way to this one. Beyond so many there is no picture: it would show nothing.
fn picture(known: &Known<'_>) -> Markup {
    const SHOWN_MAX: usize = 24;
    let others: Vec<&MemberStatus> =
        known.nodes.iter().filter(|node| !node.me && node.parted.is_none()).collect();
    if others.is_empty() || others.len() > SHOWN_MAX {
        return html! {};
    }
    let at = |node: NodeId| {
        let nth = others.iter().position(|other| other.node == node);
        nth.map_or(MIDDLE, |nth| place(nth, others.len()))
    };
    let me = known.nodes.iter().find(|node| node.me);
    html! {
        svg.mesh viewBox="0 0 520 310" role="img" aria-label="This node in the middle, and its ways to the others; the table says the same" {
            @for node in &others {
                // A node that is heard through another one hangs on that one.
                @let from = node.through.filter(|_| Standing::of(node) == Standing::Heard).map_or(MIDDLE, at);
                @let (x, y) = at(node.node);
                line class=(Standing::of(node).class()) x1=(digit(from.0)) y1=(digit(from.1)) x2=(digit(x)) y2=(digit(y)) {}
                @if let Some(ms) = known.facts(node.node).and_then(|facts| facts.rtt_ms).filter(|_| node.connected) {
                    text.small x=(digit(f64::midpoint(MIDDLE.0, x))) y=(digit(f64::midpoint(MIDDLE.1, y) - 4.0)) { (wait(ms)) }
                }
            }
            @for node in &others { (dot(known, node, (at(node.node), 10))) }
            @if let Some(me) = me { (dot(known, me, (MIDDLE, 14))) }
        }
    }
}

fn dot(known: &Known<'_>, node: &MemberStatus, ((x, y), r): (Place, u32)) -> Markup {
    let class = Standing::of(node).class();
    let behind = node.step.is_none_or(|step| !step.is_even);
    let numbers = known.facts(node.node).map_or(0, |facts| facts.sequences);
    html! {
        circle class=(class) cx=(digit(x)) cy=(digit(y)) r=(r) {}
        text x=(digit(x)) y=(digit(y + f64::from(r) + 13.0)) { (plain(&clipped(&known.name(node.node)))) }
        text.small.late[behind] x=(digit(x)) y=(digit(y + f64::from(r) + 25.0)) {
            (short_step(node)) @if numbers > 0 { " · numbers " (numbers) }
        }
    }
}

/// A place, as it is written.
fn digit(at: f64) -> String {
    format!("{at:.1}")
}

/// A name that does not fit into a picture, by its beginning.
pub(super) fn clipped(name: &str) -> String {
    const CHARS: usize = 18;
    if name.chars().count() <= CHARS {
        return name.to_owned();
    }
    name.chars().take(CHARS - 1).chain(['…']).collect()
}
