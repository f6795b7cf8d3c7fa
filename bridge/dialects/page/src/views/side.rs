//! Beside a conversation: who is in the room, what waits for a decision, its votes and its tasks; and forms for all of it.

use bridge::{
    read::Visitor,
    seam::call::{DescribeRoom, ListApprovals, ListTasks, ListVotes},
};
use maud::{Markup, html};
use mesh::{
    api::{
        agenda::{TaskView, VoteView},
        approval::{ApprovalView, Verdict},
        command::RoomInfo,
    },
    name::id::{AgentId, RoomId},
    wire::tasks::TaskStatus,
};

use super::{Problem, id, plain, room::may_say};
use crate::{
    limits::{APPROVALS_SHOWN, TASKS_SHOWN, VOTES_SHOWN},
    shared::Shared,
    signing::Person,
    times,
};

/// All that is shown there.
pub(crate) struct Side {
    pub(crate) info: RoomInfo,
    votes: Vec<VoteView>,
    tasks: Vec<TaskView>,
    approvals: Vec<ApprovalView>,
}

impl Side {
    /// As it is now, for one who may read the room.
    pub(crate) async fn read(
        shared: &Shared,
        reader: &Visitor,
        room: RoomId,
    ) -> Result<Side, Problem> {
        let desk = &shared.desk;
        let info = desk.ask(reader, DescribeRoom(room)).await.map_err(|_| Problem::NotFound)?;
        let votes = desk.ask(reader, ListVotes { room, limit: VOTES_SHOWN }).await?;
        let tasks = desk.ask(reader, ListTasks { room, status: None }).await?;
        let approvals = desk.ask(reader, ListApprovals { room: Some(room) }).await?;
        Ok(Side { info, votes, tasks, approvals })
    }

    /// Whether the person may open votes and make tasks here.
    pub(crate) fn may_act(&self, person: &Person) -> bool {
        self.info.room.sides.is_none() && may_say(person, &self.info.room)
    }

    /// The part that changes.
    pub(crate) fn markup(&self, person: &Person) -> Markup {
        let acts = self.may_act(person);
        let form = Form { person, room: self.info.room.room.to_uuid(), acts };
        html! {
            (approvals(&form, &self.info, &self.approvals))
            (members(&form, &self.info))
            (election(&form, &self.info))
            (polls(&form, &self.info, &self.votes))
            (board(&form, &self.info, &self.tasks))
        }
    }
}

/// The beginning of each form.
struct Form<'a> {
    person: &'a Person,
    room: String,
    /// The person may do something here, beside deciding.
    acts: bool,
}

impl Form<'_> {
    fn of(&self, act: &str, content: &Markup) -> Markup {
        html! {
            form.act method="post" action=(format!("/ui/rooms/{}/{act}", self.room)) {
                input type="hidden" name="form" value=(self.person.form);
                (content)
            }
        }
    }
}

fn members(form: &Form<'_>, info: &RoomInfo) -> Markup {
    let me = form.person.agent();
    let is_in = info.agents.iter().any(|agent| agent.agent == me);
    html! {
        h2 #members { "Members" }
        @if info.agents.is_empty() { p.quiet { "Nobody is in it." } }
        ul.plain {
            @for agent in &info.agents {
                li {
                    (plain(&agent.name))
                    @if agent.agent == me { " " span.tag { "you" } }
                    @if info.leader.as_ref().is_some_and(|leader| leader.agent == agent.agent) { " " span.tag { "leader" } }
                    @if info.turn.as_ref() == Some(&agent.agent) { " " span.tag { "turn" } }
                    @if let Some(detail) = &agent.presence.detail { br; span.quiet { (plain(detail)) } }
                }
            }
        }
        @if form.acts && is_in { (form.of("leave", &html! { button #leave { "Leave" } })) }
        @if form.acts && !is_in { (form.of("join", &html! { button #join title="Members vote, and have their turn" { "Join" } })) }
    }
}

/// The election that runs; or a way to begin one, for members.
fn election(form: &Form<'_>, info: &RoomInfo) -> Markup {
    let me = form.person.agent();
    let is_in = form.acts && info.agents.iter().any(|agent| agent.agent == me);
    let names = |all: &[(AgentId, String)]| {
        html! { @for (nth, (agent, name)) in all.iter().enumerate() { @if nth > 0 { ", " } span title=(plain(agent)) { (plain(name)) } } }
    };
    html! {
        @match &info.election {
            Some(election) => {
                h2 #election { "Election" }
                div.vote.waits {
                    p { "A leader is being drawn, as " (called(info, &election.started_by)) " wanted." }
                    @if !election.standing.is_empty() { p { "Among " (names(&election.standing)) "." } }
                    @if !election.declined.is_empty() { p.quiet { "Not standing: " (names(&election.declined)) "." } }
                    @if is_in && election.is_open && election.standing.iter().any(|(agent, _)| *agent == me) {
                        (form.of("decline", &html! { button #decline { "Do not stand" } }))
                    }
                }
            }
            None if is_in => (form.of("elect", &html! { button #elect title="By lot, among members that do not decline within a few seconds" { "Draw a leader" } })),
            None => {}
        }
    }
}

/// An agent by its name, if it is in the room.
fn called(info: &RoomInfo, agent: &AgentId) -> Markup {
    let member = info.agents.iter().find(|member| member.agent == *agent);
    match member {
        Some(member) => html! { span title=(plain(agent)) { (plain(&member.name)) } },
        None => id(agent),
    }
}

fn approvals(form: &Form<'_>, info: &RoomInfo, approvals: &[ApprovalView]) -> Markup {
    let me = form.person.agent();
    let may = form.person.holder.standing().may_approve();
    let mut shown: Vec<&ApprovalView> = approvals.iter().collect();
    shown.sort_by_key(|approval| (approval.decided.is_some(), approval.until_ms));
    html! {
        @if !shown.is_empty() { h2 #approvals { "To be decided" } }
        @for approval in shown.into_iter().take(APPROVALS_SHOWN) {
            @let this = approval.id.to_uuid();
            div.vote.waits[approval.decided.is_none()] {
                strong { (called(info, &approval.by)) } " wants to do:"
                div.body { (plain(&approval.text)) }
                @match &approval.decided {
                    None => { p.quiet { "a no " (until("after ", approval.until_ms)) " if nobody decides" } },
                    Some(decided) => { p.quiet {
                        (decided.verdict.word())
                        @if let Some(by) = &decided.by { " by " (called(info, by)) }
                        @if decided.verdict == Verdict::Always { ", whenever it asks for the same here" }
                    } },
                }
                @if may && approval.may_be_decided_by(&me) {
                    (form.of("decide", &html! {
                        input type="hidden" name="approval" value=(this);
                        @if approval.decided.is_none() {
                            input #(format!("r{this}")) name="reason" placeholder="why, if you like" aria-label="Why" maxlength="1000";
                            button #(format!("y{this}")) name="choice" value="approve" { "Approve" } " "
                            button #(format!("a{this}")) name="choice" value="always" { "Always" } " "
                            button #(format!("d{this}")) name="choice" value="deny" { "Deny" } " "
                            button #(format!("c{this}")) name="choice" value="change" { "Ask for something else" }
                        } @else if approval.is_rule {
                            button #(format!("w{this}")) name="choice" value="withdraw" { "Ask again from now on" }
                        }
                    }))
                }
            }
        }
    }
}

/// A moment to come, with a word before it: a script counts down to it instead.
pub(super) fn until(word: &str, ms: u64) -> Markup {
    html! { span data-until=(ms) { (word) (times::moment(ms)) } }
}

fn polls(form: &Form<'_>, info: &RoomInfo, votes: &[VoteView]) -> Markup {
    let me = form.person.agent();
    let is_in = info.agents.iter().any(|agent| agent.agent == me);
    html! {
        @if !votes.is_empty() { h2 #votes { "Votes" } }
        @for vote in votes {
            div.vote {
                strong { (plain(&vote.title)) }
                @if let Some(text) = vote.description.as_deref().filter(|text| !text.is_empty()) { div.quiet.body { (plain(text)) } }
                @match &vote.tally {
                    Some(tally) => (result(vote, tally)),
                    None if form.acts && is_in && !vote.notes.closing => (ballot(form, vote)),
                    None => { ul { @for option in vote.options.iter() { li { (plain(option)) } } } },
                }
                p.quiet {
                    @if vote.closed { "closed; " (vote.cast) " of " (vote.eligible) " voted" }
                    @else if vote.notes.closing { "being counted" }
                    @else { "open; " (vote.cast) " of " (vote.eligible) " voted" @if let Some(ms) = vote.closes_ms { ", closes " (until("at ", ms)) } }
                    @if vote.notes.unopened > 0 { "; " (vote.notes.unopened) " sealed ballots are missing" }
                    @if vote.notes.late > 0 { "; " (vote.notes.late) " came too late" }
                }
            }
        }
    }
}

fn result(vote: &VoteView, tally: &[u64]) -> Markup {
    let all = tally.iter().sum::<u64>().max(1);
    let most = tally.iter().max().copied().filter(|most| *most > 0);
    html! {
        ul.tally {
            @for (option, count) in vote.options.iter().zip(tally) {
                li.first[most == Some(*count)] { (plain(option)) ": " (count) " " progress max=(all) value=(count) {} }
            }
        }
    }
}

fn ballot(form: &Form<'_>, vote: &VoteView) -> Markup {
    let id = vote.vote.to_uuid();
    form.of(
        "cast",
        &html! {
            input type="hidden" name="vote" value=(id);
            @for (nth, option) in vote.options.iter().enumerate() {
                button #(format!("o{nth}-{id}")) name="option" value=(nth) { (plain(option)) } " "
            }
        },
    )
}

fn board(form: &Form<'_>, info: &RoomInfo, tasks: &[TaskView]) -> Markup {
    let columns = [
        ("Open", [TaskStatus::Pending, TaskStatus::Pending]),
        ("At work", [TaskStatus::InProgress, TaskStatus::InReview]),
        ("Stuck", [TaskStatus::Blocked, TaskStatus::Failed]),
        ("Over", [TaskStatus::Completed, TaskStatus::Cancelled]),
    ];
    html! {
        @if !tasks.is_empty() { h2 #tasks { "Tasks" } }
        @for (title, states) in columns {
            @let of_column: Vec<&TaskView> = tasks.iter().rev().filter(|task| states.contains(&task.status)).collect();
            @if !of_column.is_empty() {
                details #(format!("column-{}", title.replace(' ', "-"))) open[title != "Over"] {
                    summary { (title) " (" (of_column.len()) ")" }
                    ul.plain {
                        @for task in of_column.iter().take(TASKS_SHOWN) { li { (card(form, info, task)) } }
                        @if of_column.len() > TASKS_SHOWN { li.quiet { "The newest " (TASKS_SHOWN) " are shown." } }
                    }
                }
            }
        }
    }
}

fn card(form: &Form<'_>, info: &RoomInfo, task: &TaskView) -> Markup {
    let is_over = matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
    html! {
        (plain(&task.title)) " " span.quiet { (task.identifier()) }
        @if !task.contested.is_empty() { " " span.tag.bad title="Set in two places at once: the later one shows" { "set twice" } }
        @if let Some(agent) = &task.assignee { br; span.quiet { "held by " (called(info, agent)) } }
        @if let Some(at) = &task.progress { br; progress max="100" value=(at.percent) { (at.percent) " %" } " " span.quiet { (plain(&at.step)) } }
        @if form.acts {
            details #(format!("t{}", task.task.to_uuid())) {
                summary.quiet { "change" }
                @if let Some(text) = task.description.as_deref().filter(|text| !text.is_empty()) { div.body { (plain(text)) } }
                @if let Some(note) = &task.note { p.quiet { "noted: " (plain(note)) } }
                (change(form, task, is_over))
            }
        }
    }
}

fn change(form: &Form<'_>, task: &TaskView, is_over: bool) -> Markup {
    let id = task.task.to_uuid();
    let button = |word: &str, text: &str| html! { button #(format!("{word}{id}")) name="do" value=(word) { (text) } " " };
    form.of(
        "change-task",
        &html! {
            input type="hidden" name="task" value=(id);
            // Of several buttons the first one is pressed by `Enter`.
            input #(format!("note{id}-text")) name="note" placeholder="a note" aria-label="A note";
            (button("note", "Note"))
            @if is_over { (button("reopen", "Open again")) } @else {
                @if task.assignee.is_none() { (button("claim", "Claim")) }
                (button("complete", "Done"))
                (button("cancel", "Cancel"))
                input #(format!("assign{id}-to")) name="assignee" list="agents" placeholder="agent, or nobody" aria-label="Agent that is to do it";
                (button("assign", "Assign"))
            }
        },
    )
}

/// A form for a new vote. It stays as it is while what is beside it changes.
pub(crate) fn new_vote(person: &Person, room: &str) -> Markup {
    html! {
        details #new-vote {
            summary { "Open a vote" }
            form.say method="post" action=(format!("/ui/rooms/{room}/open-vote")) {
                input type="hidden" name="form" value=(person.form);
                label { "Question" input name="title" required; }
                label { "More about it" textarea name="description" rows="2" {} }
                label { "Options, one a line" textarea name="options" rows="3" required {} }
                label { "Closes after so many minutes; without, when all have voted" input name="minutes" inputmode="numeric"; }
                p.quiet { "Its members of that moment vote, in secret until it is closed. You join the room." }
                button { "Open the vote" }
            }
        }
    }
}

/// And for a new task.
pub(crate) fn new_task(person: &Person, info: &RoomInfo) -> Markup {
    html! {
        details #new-task {
            summary { "Make a task" }
            form.say method="post" action=(format!("/ui/rooms/{}/make-task", info.room.room.to_uuid())) {
                input type="hidden" name="form" value=(person.form);
                label { "Title" input name="title" required; }
                label { "More about it" textarea name="description" rows="2" {} }
                label { "For" input name="assignee" list="agents" placeholder="nobody"; }
                datalist #agents { @for agent in &info.agents { option value=(agent.agent) { (plain(&agent.name)) } } }
                button { "Make the task" }
            }
        }
    }
}
