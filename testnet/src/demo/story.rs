//! The lamp in the tower is dark: scene by scene.

mod trouble;
mod work;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Setting,
    cast::{Cast, HEARD_WITHIN, ROOM, Who},
    stage::{self, At, Stage},
    teller::Teller,
};
use crate::{tank, wire};

/// Between two looks at something that is waited for.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);

/// Nodes, agents, and the one who tells of them.
pub(super) struct Company<'a> {
    pub(super) stage: Stage,
    cast: Cast,
    pub(super) teller: Teller<'a>,
    /// The task, as ClawTank names it.
    task: String,
    /// Number of the newest message that lin has.
    lin_has: u64,
}

/// Starts the nodes.
pub(super) async fn nodes(setting: &Setting, teller: &mut Teller<'_>) -> Result<Stage> {
    teller.scene("Three nodes on this machine, as if on three laptops").await;
    let stage = Stage::up(&setting.binary).await?;
    for at in stage::ALL {
        let http = stage.node(at).http();
        teller
            .line(&format!("{:5}  is up and meets the other two: http://{http}/", at.name()))
            .await;
    }
    Ok(stage)
}

impl<'a> Company<'a> {
    /// The agents come, each to its node, in its own language.
    pub(super) async fn come(stage: Stage, mut teller: Teller<'a>) -> Result<Company<'a>> {
        teller.scene("Six agents, six ways to speak, one mesh").await;
        let cast = Cast::come(&stage).await?;
        for (name, at, speaks) in [
            ("ada", "amber", "ClawChat, as any chat client"),
            ("cy", "amber", "GoClaw, the program of a person"),
            ("bob", "blue ", "ClawTank, rooms of people and agents"),
            ("fay", "blue ", "ClawFinder, the index in which agents find each other"),
            ("max", "coral", "MCP, the tools of an agent host"),
            ("lin", "coral", "LANTERN, claims that name what would disprove them"),
        ] {
            teller.line(&format!("{name:3}  at {at}  {speaks}")).await;
        }
        Ok(Company { stage, cast, teller, task: String::new(), lin_has: 0 })
    }

    /// All of it. Returns how many messages all nodes have in the end.
    pub(super) async fn play(&mut self) -> Result<usize> {
        self.talks().await?;
        self.shares_out().await?;
        self.claims().await?;
        self.votes().await?;
        self.finds_fay().await?;
        self.loses_a_node().await?;
        self.is_split().await?;
        self.asks_for_leave().await?;
        self.ends().await
    }

    async fn talks(&mut self) -> Result<()> {
        self.teller.scene("They talk").await;
        self.ada_says("The lamp in the tower is dark. Who can mend it?", &[]).await?;
        self.max_says("The ladder is in the shed.").await?;
        self.bob_says("I have the tools. Give me the task.").await
    }

    /// Ada says something; these are out of reach.
    async fn ada_says(&mut self, text: &str, but: &[Who]) -> Result<()> {
        let began = Instant::now();
        let said = json!({ "room_id": ROOM, "content": text });
        let said = self.cast.ada.call("send_message", said).await?;
        if !but.contains(&Who::Lin) {
            self.lin_has = said["seq"].as_u64().context("a message has a number")?;
        }
        self.is_heard((text, Who::Ada), but, began).await
    }

    async fn max_says(&mut self, text: &str) -> Result<()> {
        let began = Instant::now();
        let said = json!({ "room": ROOM, "message": text });
        self.cast.max_calls(&self.stage, "room_send", said).await?;
        self.is_heard((text, Who::Max), &[], began).await
    }

    async fn bob_says(&mut self, text: &str) -> Result<()> {
        let began = Instant::now();
        self.bob_chats(text).await?;
        self.is_heard((text, Who::Bob), &[], began).await
    }

    async fn bob_chats(&mut self, text: &str) -> Result<()> {
        let words = tank::words(&tank::fresh(), ROOM, text);
        self.cast.bob.gets("chat.agent_message", &words).await?;
        Ok(())
    }

    /// Waits until all others have heard it, and tells so.
    async fn is_heard(
        &mut self,
        (text, by): (&str, Who),
        but: &[Who],
        began: Instant,
    ) -> Result<()> {
        let heard = self.cast.hear(&self.stage, (text, by), but).await?;
        let took = began.elapsed().as_millis();
        let heard: Vec<String> =
            heard.iter().map(|who| format!("{} ({})", who.name(), who.speaks())).collect();
        self.teller.line(&format!("{}: {text}", by.name())).await;
        self.teller.more(&format!("└ heard by {} within {took} ms", heard.join(", ")));
        Ok(())
    }

    /// Every node has every message, whatever became of nodes and links.
    async fn ends(&mut self) -> Result<usize> {
        self.teller.scene("What is left").await;
        let until = Instant::now() + HEARD_WITHIN;
        let messages = loop {
            let mut all = Vec::new();
            for at in stage::ALL {
                all.push(messages(self.stage.node(at).http()).await?);
            }
            if all.iter().all(|of_node| *of_node == all[0]) {
                break all[0].len();
            }
            ensure!(Instant::now() < until, "the nodes have different messages: {all:?}");
            sleep(LOOK_EVERY).await;
        };
        self.teller
            .line(&format!(
                "amber, blue and coral have the same {messages} messages; nobody lost one"
            ))
            .await;
        Ok(messages)
    }
}

/// The ids of all messages that a node has of the room.
async fn messages(http: &str) -> Result<Vec<String>> {
    let (status, page) = wire::get(http, "/api/rooms/lobby/history").await?;
    ensure!(status == 200, "the history is answered {status} {page}");
    let rows = page["messages"].as_array().context("messages")?;
    let mut ids: Vec<String> = rows.iter().map(|row| wire::text(row, "message_id")).collect();
    ids.sort();
    Ok(ids)
}

/// A LANTERN envelope, as it stands in a message.
fn envelope(kind: &str, thread: Option<u64>, from: &str, body: &Value) -> Value {
    let mut envelope = json!({ "v": "lantern/0.1.1", "type": kind, "from": from, "body": body });
    if let Some(thread) = thread {
        envelope["thread"] = json!(thread);
    }
    envelope
}

/// A node that is alone.
const ALONE: At = At::Blue;
