//! A node dies, and a cable is cut: nobody has to stop.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use super::{ALONE, Company};
use crate::{
    demo::{
        cast::{ROOM, Who, attach},
        stage::At,
    },
    wire::text,
};

/// Whoever waited so long for a number, in seconds, has asked for it.
const ASKED_FOR: f64 = 0.5;

impl Company<'_> {
    /// Coral dies. One of its agents goes to another node, the other one waits for it.
    pub(super) async fn loses_a_node(&mut self) -> Result<()> {
        self.teller.scene("A node is killed").await;
        self.stage.kill(At::Coral).await?;
        self.teller.line("coral is killed (SIGKILL); max and lin were there").await;
        let there = [Who::Max, Who::Lin];
        let words = "Coral is gone. We go on.";
        self.ada_says(words, &there).await?;
        self.cast.lin = attach(&self.stage, At::Amber, "lin").await?;
        let page = json!({ "room_id": ROOM, "since_seq": self.lin_has, "limit": 500 });
        let page = self.cast.lin.call("get_history", page).await?;
        let missed: Vec<String> = page["messages"]
            .as_array()
            .context("a page")?
            .iter()
            .map(|message| text(message, "content"))
            .collect();
        ensure!(missed == [words], "lin missed {missed:?}");
        self.teller
            .line(&format!(
                "lin: comes back at amber, with her number {}, and reads what she missed",
                self.lin_has
            ))
            .await;
        self.stage.restart(At::Coral).await?;
        self.stage.until_each_meets([2, 2, 2]).await?;
        self.teller.line("coral is started again, and catches up").await;
        self.cast.max_calls(&self.stage, "room_join", json!({ "room": ROOM })).await?;
        self.cast.hear(&self.stage, (words, Who::Ada), &[Who::Bob, Who::Cy, Who::Lin]).await?;
        self.teller.line("max: reads on where he was, and has missed nothing either").await;
        Ok(())
    }

    /// Blue is alone for a while. Both sides go on, and have everything afterwards.
    pub(super) async fn is_split(&mut self) -> Result<()> {
        self.teller.scene("A cable is cut").await;
        self.stage.cut(ALONE, true);
        self.stage.until_each_meets([1, 0, 1]).await?;
        self.teller.line("blue is alone; bob and fay are there").await;
        let (by_bob, by_ada) = ("The glass is in.", "Bob, we do not hear you.");
        let began = Instant::now();
        self.bob_chats(by_bob).await?;
        let took = began.elapsed().as_secs_f64();
        self.teller.line(&format!("bob: {by_bob}")).await;
        // It may have been the one who gives the numbers.
        let how = if took > ASKED_FOR {
            "blue asks who gives the numbers, in vain, and takes over"
        } else {
            "blue gives the numbers"
        };
        self.teller.more(&format!("└ {how}: confirmed after {took:.1} s"));
        let report = json!({
            "task_id": self.task, "agent_id": "bob", "status": "in_progress",
            "progress": { "percentage": 0.7, "current_step": "the fuse" },
        });
        self.cast.bob.gets("task.status", &report).await?;
        self.teller.line("bob: reports the task 70 % done").await;
        self.ada_says(by_ada, &[Who::Bob]).await?;
        self.teller.scene("The cable is mended").await;
        self.stage.cut(ALONE, false);
        self.stage.until_each_meets([2, 2, 2]).await?;
        self.teller.line("blue meets the others again").await;
        self.cast.hear(&self.stage, (by_bob, Who::Bob), &[]).await?;
        let all_but_bob = [Who::Cy, Who::Max, Who::Lin];
        self.cast.hear(&self.stage, (by_ada, Who::Ada), &all_but_bob).await?;
        self.teller.line(&format!("ada, cy, max and lin hear bob: {by_bob}")).await;
        self.teller.line(&format!("bob hears ada: {by_ada}")).await;
        self.ada_hears("task_updated", |task| task["mesh"]["progress"]["percent"] == 70).await?;
        self.teller.line("ada sees the task at 70 %: nothing of either side is lost").await;
        Ok(())
    }
}
