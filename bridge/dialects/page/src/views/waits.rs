//! Who waits for whom: requests without an answer, votes without all ballots, tasks that others hold, things that nobody has
//! decided about. As a picture, and as the table that says the same.

use std::collections::BTreeMap;

use maud::{Markup, html};
use mesh::{
    api::{
        command::{AgentView, RoomView},
        waits::{Awaited, WaitView},
    },
    name::id::{AgentId, RoomId},
};

use super::{drawn, mesh::clipped, messages::excerpt, plain, rooms::name, side::until};
use crate::{
    limits::{WAIT_LINES_DRAWN, WAITS_SHOWN},
    times,
};

/// All that is shown of it.
pub(super) struct Waits<'a> {
    pub(super) waits: &'a [WaitView],
    pub(super) agents: &'a [AgentView],
    pub(super) rooms: &'a [RoomView],
}

/// Height of a row of the picture, and where its two columns are.
const ROW: usize = 34;
const LEFT: usize = 150;
const RIGHT: usize = 410;

/// In the place of agents, where anybody may end a wait.
const ANYBODY: &str = "anybody";

impl Waits<'_> {
    pub(super) fn markup(&self) -> Markup {
        html! {
            h2 #waits { "Who waits for whom" }
            @if self.waits.is_empty() { p.quiet { "Nobody waits for anybody, as far as your key sees." } }
            @else {
                @for (one, other) in self.circles() {
                    p.problem role="status" { (plain(&self.called(&one))) " and " (plain(&self.called(&other))) " wait for each other." }
                }
                (self.picture())
                (self.table())
            }
        }
    }

    /// An agent's name; of one that is not there its id.
    fn called(&self, agent: &AgentId) -> String {
        let found = self.agents.iter().find(|view| view.agent == *agent);
        found.map_or_else(
            || drawn(agent).map_or_else(|| agent.to_string(), |start| format!("{start}…")),
            |view| view.name.to_string(),
        )
    }

    fn room(&self, room: RoomId) -> String {
        let found = self.rooms.iter().find(|view| view.room == room);
        found.map_or_else(|| "a room".to_owned(), name)
    }

    /// Pairs that wait for each other: neither goes on by itself.
    fn circles(&self) -> Vec<(AgentId, AgentId)> {
        let mut pairs: Vec<(AgentId, AgentId)> = Vec::new();
        for wait in self.waits {
            for other in wait.of.iter().filter(|other| wait.by < **other) {
                let back = |one: &WaitView| one.by == *other && one.of.contains(&wait.by);
                let pair = (wait.by.clone(), other.clone());
                if self.waits.iter().any(back) && !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    /// Lines of the picture: who, for whom, and how many waits that is.
    fn lines(&self) -> Vec<(AgentId, AgentId, usize)> {
        let mut lines: BTreeMap<(AgentId, AgentId), usize> = BTreeMap::new();
        for wait in self.waits {
            let anybody = [AgentId::from(ANYBODY)];
            let of: &[AgentId] = if wait.of.is_empty() { &anybody } else { &wait.of };
            for other in of {
                *lines.entry((wait.by.clone(), other.clone())).or_default() += 1;
            }
        }
        let lines = lines.into_iter().map(|((by, of), count)| (by, of, count));
        lines.take(WAIT_LINES_DRAWN).collect()
    }

    /// Those who wait at the left, those who are waited for at the right.
    fn picture(&self) -> Markup {
        let lines = self.lines();
        let column = |of: fn(&(AgentId, AgentId, usize)) -> &AgentId| {
            let mut agents: Vec<AgentId> = lines.iter().map(of).cloned().collect();
            agents.sort_unstable();
            agents.dedup();
            agents
        };
        let (left, right) = (column(|line| &line.0), column(|line| &line.1));
        let rows = left.len().max(right.len());
        let y = |agents: &[AgentId], agent: &AgentId| {
            let nth = agents.iter().position(|one| one == agent).unwrap_or_default();
            // A shorter column stands in the middle.
            (rows - agents.len()) * ROW / 2 + nth * ROW + ROW / 2 + 18
        };
        html! {
            svg.waits viewBox=(format!("0 0 560 {}", rows * ROW + 24)) role="img" aria-label="Who waits at the left, for whom at the right; the table says the same" {
                text.small x=(LEFT) y="12" { "waits" } text.small x=(RIGHT) y="12" { "for" }
                @for (by, of, count) in &lines {
                    @let (from, to) = (y(&left, by), y(&right, of));
                    path.wait d=(format!("M{} {from} C{} {from} {} {to} {} {to}", LEFT + 8, LEFT + 90, RIGHT - 90, RIGHT - 14)) {}
                    path.tip d=(format!("M{} {} L{} {to} L{} {} Z", RIGHT - 16, to - 5, RIGHT - 7, RIGHT - 16, to + 5)) {}
                    @if *count > 1 { text.small x=((LEFT + RIGHT) / 2) y=((from + to) / 2 - 3) { (count) } }
                }
                @for agent in &left { circle.here cx=(LEFT) cy=(y(&left, agent)) r="6" {} text.left x=(LEFT - 12) y=(y(&left, agent) + 4) { (plain(&clipped(&self.called(agent)))) } }
                @for agent in &right { circle.fair cx=(RIGHT) cy=(y(&right, agent)) r="6" {} text.right x=(RIGHT + 12) y=(y(&right, agent) + 4) { (plain(&clipped(&self.called(agent)))) } }
            }
        }
    }

    fn table(&self) -> Markup {
        html! {
            div.wide { table {
                caption { "The longest first" }
                thead { tr { th scope="col" { "Waits" } th scope="col" { "For" } th scope="col" { "What for" } th scope="col" { "Room" } th scope="col" { "Since" } } }
                tbody {
                    @for wait in self.waits.iter().take(WAITS_SHOWN) {
                        @let path = format!("/ui/rooms/{}", wait.room.to_uuid());
                        tr {
                            th scope="row" { (plain(&self.called(&wait.by))) }
                            td data-th="For" {
                                @if wait.of.is_empty() { (ANYBODY) }
                                @for (nth, agent) in wait.of.iter().enumerate() { @if nth > 0 { ", " } span title=(plain(agent)) { (plain(&self.called(agent))) } }
                            }
                            td data-th="What for" {
                                (what(wait.awaited))
                                @if let Some(title) = &wait.title { ": " (excerpt(title)) }
                                @if wait.awaited == Awaited::Answer { " " a.number href=(format!("{path}/trace/{}", wait.thing.to_uuid())) { "trace" } }
                            }
                            td data-th="Room" { a href=(format!("{path}#{}", part(wait.awaited))) { (plain(&self.room(wait.room))) } }
                            td data-th="Since" { (times::moment(wait.since_ms)) @if let Some(ms) = wait.until_ms { ", " (until("until ", ms)) } }
                        }
                    }
                }
            } }
            @if self.waits.len() > WAITS_SHOWN { p.quiet { "Of " (self.waits.len()) " the longest " (WAITS_SHOWN) " are shown." } }
        }
    }
}

fn what(awaited: Awaited) -> &'static str {
    match awaited {
        Awaited::Answer => "an answer",
        Awaited::Ballots => "a ballot",
        Awaited::Task => "a task",
        Awaited::Decision => "a decision",
    }
}

/// The part of a room's page that shows it.
fn part(awaited: Awaited) -> &'static str {
    match awaited {
        Awaited::Answer => "end",
        Awaited::Ballots => "votes",
        Awaited::Task => "tasks",
        Awaited::Decision => "approvals",
    }
}
