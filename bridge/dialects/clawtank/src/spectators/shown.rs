//! What those who look on see of events, as [`bridge::shown`] has it for strangers. All that is not named here is hidden.

use std::collections::{HashMap, VecDeque};

use bridge::{
    seam::event::{Event, Message},
    shown::{Commit, Eyes, PullRequest, Shown},
};
use mesh::{
    api::{
        agenda::{TaskChange, TaskField, TaskView},
        command::{AgentView, RoomInfo},
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::{roster::Status, tasks::TaskStatus},
};
use serde_json::{Value, json};

use crate::{
    envelope::{Told, cut},
    limits::{
        ACTIVITY_BYTES_MAX, ACTIVITY_EVENTS_MAX, NAME_CHARS_MAX, SEEN_AGENTS_MAX, TEXT_CHARS_MAX,
        TITLE_CHARS_MAX,
    },
    names,
    style::Style,
    times,
};

/// Characters of a URL.
const URL_CHARS_MAX: usize = 500;

/// What a stage knows of its room, and the events that are to be shown.
pub(super) struct Scene {
    encrypted: bool,
    /// Of more than there may be the newest.
    events: VecDeque<Event>,
    seen: HashMap<AgentId, Seen>,
}

/// An agent, as it was seen last.
struct Seen {
    name: String,
    status: Option<Status>,
}

/// The events of one frame.
#[derive(Debug, Default)]
pub(super) struct Items(VecDeque<Item>);

/// One event.
#[derive(Debug, PartialEq)]
struct Item {
    kind: &'static str,
    at_ms: u64,
    data: Value,
    task: Option<MessageId>,
}

/// The word of a status.
pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Idle => "idle",
        Status::Waiting => "waiting",
        Status::Working => "working",
        Status::Thinking => "thinking",
    }
}

fn short(text: &str, max: usize) -> String {
    cut(&Eyes::Strangers.text(text), max).0
}

impl Scene {
    pub(super) fn new(info: &RoomInfo) -> Scene {
        let mut scene =
            Scene { encrypted: info.room.encrypted, events: VecDeque::new(), seen: HashMap::new() };
        for member in &info.agents {
            scene.see(&member.agent, Some(&member.name)).status = Some(member.presence.status);
        }
        scene
    }

    /// An event, to be shown with others. `false`: it shows nothing.
    pub(super) fn hears(&mut self, event: Event) -> bool {
        if let Event::Presence(view) = &event {
            // The newest one says it all.
            let is_old =
                |other: &Event| matches!(other, Event::Presence(old) if old.agent == view.agent);
            self.events.retain(|other| !is_old(other));
            if self
                .seen
                .get(&view.agent)
                .is_some_and(|seen| seen.status == Some(view.presence.status))
            {
                return false;
            }
        }
        if self.events.len() >= ACTIVITY_EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
        true
    }

    /// All of them, the oldest first.
    pub(super) fn take(&mut self) -> Items {
        let mut items = VecDeque::new();
        for event in std::mem::take(&mut self.events) {
            items.extend(self.items(&event));
        }
        let mut bytes: usize = items.iter().map(Item::bytes).sum();
        while items.len() > ACTIVITY_EVENTS_MAX || bytes > ACTIVITY_BYTES_MAX {
            bytes -= items.pop_front().map_or(bytes, |item| item.bytes());
        }
        Items(items)
    }

    fn see(&mut self, agent: &AgentId, name: Option<&str>) -> &mut Seen {
        if self.seen.len() >= SEEN_AGENTS_MAX && !self.seen.contains_key(agent) {
            self.seen.clear();
        }
        let seen = self.seen.entry(agent.clone());
        let known = names::user_of(agent).unwrap_or(agent);
        let seen =
            seen.or_insert_with(|| Seen { name: short(known, NAME_CHARS_MAX), status: None });
        if let Some(name) = name {
            seen.name = short(name, NAME_CHARS_MAX);
        }
        seen
    }

    fn items(&mut self, event: &Event) -> Vec<Item> {
        if let Event::Said(message) = event {
            self.said(message).into_iter().collect()
        } else if let Event::TaskMade(task) = event {
            self.made(task)
        } else if let Event::TaskChanged(task, change) = event {
            self.changed(task, change)
        } else if let Event::Joined { agent, name, .. } = event {
            vec![self.moved(agent, Some(name), ["agent.joined", "member.joined"])]
        } else if let Event::Left { agent, .. } = event {
            let left = vec![self.moved(agent, None, ["agent.left", "member.left"])];
            self.seen.remove(agent);
            left
        } else if let Event::Presence(view) = event {
            self.presence(view).into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn said(&mut self, message: &Message) -> Option<Item> {
        let said = &*message.said;
        let name = self.see(&said.agent, Some(&said.name)).name.clone();
        let at_ms = message.wall_ms;
        let (kind, data) = match Eyes::Strangers.sees(message)? {
            Shown::Commit(commit) => ("git.commit", shown_commit(&name, &commit)),
            Shown::Opened(request) => ("git.pr_opened", shown_request(&request)),
            Shown::Merged(request) => ("git.pr_merged", shown_request(&request)),
            Shown::Chat => {
                let is_person = names::user_of(&said.agent).is_some();
                let data = json!({
                    "author": name,
                    "author_type": if is_person { "human" } else { "agent" },
                    "content": self.readable(&said.content, TEXT_CHARS_MAX),
                    "timestamp": times::text(at_ms),
                });
                ("chat.public", data)
            }
        };
        Some(Item { kind, at_ms, data, task: None })
    }

    fn readable(&self, text: &str, max: usize) -> String {
        cut(&Eyes::Strangers.words(text, self.encrypted), max).0
    }

    fn title(&self, task: &TaskView) -> String {
        self.readable(&task.title, TITLE_CHARS_MAX)
    }

    fn made(&mut self, task: &TaskView) -> Vec<Item> {
        let creator = self.see(&task.created_by, None).name.clone();
        let data = json!({"title": self.title(task), "creator": creator});
        let at_ms = task.created_ms;
        vec![Item { kind: "task.created", at_ms, data, task: Some(shown_id(task)) }]
    }

    fn changed(&mut self, task: &TaskView, change: &TaskChange) -> Vec<Item> {
        let at_ms = task.updated_ms.unwrap_or(task.created_ms);
        let holder = task.assignee.clone();
        let name = holder.as_ref().map(|holder| self.see(holder, None).name.clone());
        let name = name.unwrap_or_default();
        let mut items = Vec::new();
        if let Some(holder) = &holder
            && change.fields.contains(&TaskField::Assignee)
        {
            let data = json!({
                "agent_id": Eyes::Strangers.agent(holder), "agent_name": name,
                "title": self.title(task),
            });
            items.push(Item {
                kind: "agent.claimed_task",
                at_ms,
                data,
                task: Some(shown_id(task)),
            });
        }
        // One completion, as members are told of one: when its holder says so.
        let by_holder = change.by.is_some() && change.by == holder;
        let is_handed_in =
            task.status == TaskStatus::InReview && task.result.is_some() && by_holder;
        let is_done =
            task.status == TaskStatus::Completed && change.was != Some(TaskStatus::InReview);
        if change.was.is_some() && (is_handed_in || is_done) {
            let data = json!({"agent_name": name});
            items.push(Item { kind: "task.completed", at_ms, data, task: Some(shown_id(task)) });
        }
        items
    }

    fn moved(
        &mut self,
        agent: &AgentId,
        name: Option<&str>,
        [of_agent, of_person]: [&'static str; 2],
    ) -> Item {
        let name = self.see(agent, name).name.clone();
        let is_person = names::user_of(agent).is_some();
        let (kind, data) = if is_person {
            (of_person, json!({"display_name": name}))
        } else {
            (of_agent, json!({"agent_id": Eyes::Strangers.agent(agent), "agent_name": name}))
        };
        Item { kind, at_ms: times::now_ms(), data, task: None }
    }

    fn presence(&mut self, view: &AgentView) -> Option<Item> {
        let now = view.presence.status;
        let seen = self.see(&view.agent, Some(&view.name));
        let is_new = seen.status.replace(now) != Some(now);
        let data = json!({"agent_name": seen.name, "status": status(now)});
        let is_agent = names::user_of(&view.agent).is_none();
        let item = Item { kind: "agent.status_change", at_ms: times::now_ms(), data, task: None };
        (is_new && is_agent).then_some(item)
    }
}

/// The id by which members are told of a task.
fn shown_id(task: &TaskView) -> MessageId {
    task.facts.alias.unwrap_or(task.task)
}

fn shown_commit(name: &str, commit: &Commit) -> Value {
    let Commit { sha, branch, subject, additions, deletions, total_changes } = commit;
    json!({
        "sha": sha,
        "branch": cut(branch, TITLE_CHARS_MAX).0,
        "message": cut(subject, TITLE_CHARS_MAX).0,
        "agent_name": name,
        "stats": {
            "additions": additions, "deletions": deletions, "total_changes": total_changes,
        },
    })
}

fn shown_request(request: &PullRequest) -> Value {
    json!({
        "number": request.number,
        "title": cut(&request.title, TITLE_CHARS_MAX).0,
        "url": cut(&request.url, URL_CHARS_MAX).0,
    })
}

impl Item {
    /// What it has in a frame, its kind, time and id included.
    fn bytes(&self) -> usize {
        self.data.to_string().len() + 160
    }

    fn shown(&self, style: Style) -> Value {
        let mut data = self.data.clone();
        if let Some(task) = self.task {
            data["task_id"] = json!(style.task_id(task));
        }
        json!({"type": self.kind, "timestamp": times::text(self.at_ms), "data": data})
    }
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn told(&self, style: Style, room: RoomId) -> Told {
        let data = json!({
            "room_id": style.room(room),
            "timestamp": times::text(times::now_ms()),
            "events": self.0.iter().map(|item| item.shown(style)).collect::<Vec<Value>>(),
        });
        Told::fresh("spectator.activity", data).with("room_id", style.room(room))
    }
}

#[cfg(test)]
mod tests {
    use bridge::testing::lobby;
    use mesh::name::id::KeyPrint;

    use super::*;

    fn scene() -> Scene {
        Scene { encrypted: false, events: VecDeque::new(), seen: HashMap::new() }
    }

    fn joins(number: usize, name: &str) -> Event {
        let agent = AgentId::from(format!("agent-{number}").as_str());
        Event::Joined { room: lobby(), agent, name: name.into(), reconnected: false }
    }

    #[test]
    fn of_more_than_a_frame_has_the_newest_are_shown() {
        let mut scene = scene();
        for number in 0..ACTIVITY_EVENTS_MAX + 5 {
            scene.hears(joins(number, "x"));
        }
        let items = scene.take();
        assert_eq!(items.0.len(), ACTIVITY_EVENTS_MAX);
        assert_eq!(items.0[0].data["agent_id"], "agent-5");
        assert!(scene.take().is_empty(), "each once");
    }

    #[test]
    fn a_frame_has_no_more_bytes_than_a_message_may_have() {
        let mut scene = scene();
        for number in 0..ACTIVITY_EVENTS_MAX {
            // In JSON six bytes each.
            scene.hears(joins(number, &"\u{1}".repeat(1_000)));
        }
        let items = scene.take();
        let style = Style { form: crate::Form::Prefixed, lobby: lobby(), eyes: Eyes::Strangers };
        let text = items.told(style, lobby()).text(style.form);
        assert!(text.len() <= crate::limits::MESSAGE_BYTES_MAX, "{}", text.len());
        let newest = items.0.back().unwrap();
        assert_eq!(newest.data["agent_id"], format!("agent-{}", ACTIVITY_EVENTS_MAX - 1));
        assert!(items.0.len() > 50, "and as many as fit");
    }

    #[test]
    fn who_has_been_seen_is_remembered_up_to_a_bound() {
        let mut scene = scene();
        for number in 0..=SEEN_AGENTS_MAX {
            scene.items(&joins(number, "x"));
        }
        assert!(scene.seen.len() <= SEEN_AGENTS_MAX);
        let person = crate::names::principal(KeyPrint([1; 16]), "ada");
        let left = scene.items(&Event::Left { room: lobby(), agent: person });
        assert_eq!((left[0].kind, &left[0].data), ("member.left", &json!({"display_name": "ada"})));
    }

    #[test]
    fn what_only_members_can_read_is_not_shown() {
        let mut scene = scene();
        assert_eq!(scene.readable("clw1:AAAA", 99), "[encrypted]");
        scene.encrypted = true;
        assert_eq!(scene.readable("anything", 99), "[encrypted]");
    }
}
