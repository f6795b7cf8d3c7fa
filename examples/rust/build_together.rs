//! Three agents build a game: they share tasks out by claiming them, build, and play their game.

#![expect(clippy::print_stdout, reason = "an example says what happens")]

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use client::error::CallError;
use examples::{Member, agents, gather};
use protocol::{
    code::Code,
    event::Event,
    object::Message,
    request::{AssignTask, GetHistory, ListTasks, SendMessage, UpdateTask},
    value::{IfAssignee, Metadata, TaskStatus},
};

/// The work to be done: the rows of a board of tic-tac-toe. In earnest each agent would think about it.
const PARTS: [(&str, &str); 3] = [("top", "X X X"), ("middle", "O O ."), ("bottom", ". . .")];

#[tokio::main]
async fn main() -> Result<()> {
    let mut builders = agents(["ada", "bob", "eve"]).await?;
    let room_id = gather("workshop", &mut builders).await?;
    let mut tasks = BTreeMap::new();
    for (title, work) in PARTS {
        let title = title.to_owned();
        let room_id = room_id.clone();
        let task = AssignTask { room_id, title, description: None, assignee: None, mesh: None };
        tasks.insert(builders[0].client.call(task).await?.task_id, work);
    }
    for builder in &mut builders {
        for _ in PARTS {
            builder.until(|event| matches!(event, Event::TaskAssigned(_))).await?;
        }
    }

    // Each agent claims tasks that are free: of two that want the same one, the loser learns the winner.
    let mut done = BTreeSet::new();
    while done.len() < tasks.len() {
        for builder in &builders {
            let free: Vec<_> = tasks.iter().filter(|(id, _)| !done.contains(*id)).collect();
            for (task, work) in free {
                if claim(builder, task).await? {
                    build(builder, &room_id, (task, work)).await?;
                    done.insert(task.clone());
                    break;
                }
            }
        }
    }

    let ada = &mut builders[0];
    let parts = built(ada, &room_id).await?;
    for (title, _) in PARTS {
        let part = parts.iter().find(|part| title_of(part).as_deref() == Some(title));
        let Some(part) = part else { bail!("nobody built {title}") };
        println!("{}   {title}, built by {}", part.content, part.agent_name);
    }
    let list = ListTasks { room_id, status: Some(TaskStatus::Completed) };
    while ada.client.call(list.clone()).await?.tasks.len() < PARTS.len() {
        // The work of others at their nodes is here in a moment.
        ada.until(|event| matches!(event, Event::TaskUpdated(_))).await?;
    }
    ensure!(parts.iter().any(|part| part.content == "X X X"), "X wins");
    println!("X wins");
    Ok(())
}

/// Whether it is the builder's now.
async fn claim(builder: &Member, task: &str) -> Result<bool> {
    let claim = UpdateTask {
        task_id: task.to_owned(),
        status: None,
        assignee: Some(builder.client.agent_id().to_owned()),
        note: None,
        if_assignee: IfAssignee::Nobody,
        mesh: None,
    };
    match builder.client.call(claim).await {
        Ok(_) => Ok(true),
        Err(CallError::Refused { code: Code::InvalidPayload, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn build(builder: &Member, room: &str, (task, work): (&str, &str)) -> Result<()> {
    let done = UpdateTask {
        task_id: task.to_owned(),
        status: Some(TaskStatus::Completed),
        assignee: None,
        note: Some(format!("built by {}", builder.name())),
        if_assignee: IfAssignee::Anybody,
        mesh: None,
    };
    let title = builder.client.call(done).await?.title;
    let part = SendMessage {
        room_id: room.to_owned(),
        content: work.to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: Some(Metadata::of_texts(&[("part", &title)], None)),
        mesh: None,
    };
    builder.client.call(part).await?;
    Ok(())
}

/// All parts, once they are here.
async fn built(who: &mut Member, room: &str) -> Result<Vec<Message>> {
    loop {
        let page = GetHistory {
            room_id: room.to_owned(),
            limit: 50,
            before: None,
            since: None,
            since_seq: None,
        };
        let mut parts = who.client.call(page).await?.messages;
        parts.retain(|part| title_of(part).is_some());
        if parts.len() >= PARTS.len() {
            return Ok(parts);
        }
        who.until(|event| matches!(event, Event::MessageReceived(_))).await?;
    }
}

/// Which part a message is.
fn title_of(message: &Message) -> Option<String> {
    let json = message.metadata.as_ref()?.get();
    let title = json.strip_prefix(r#"{"part":""#)?.strip_suffix(r#""}"#)?;
    Some(title.to_owned())
}
