//! They work together: a task, a contested claim, a vote, a purchase, a permission.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{Company, LOOK_EVERY, envelope};
use crate::{
    demo::{
        cast::{HEARD_WITHIN, ROOM, Who},
        stage::At,
    },
    finder::{Chance, Client, now},
    wire::text,
};

impl Company<'_> {
    /// A task is made in one language, claimed in another, and seen in all.
    pub(super) async fn shares_out(&mut self) -> Result<()> {
        self.teller.scene("A task, made in one language and claimed in another").await;
        let title = "Mend the lamp";
        let task = json!({ "room_id": ROOM, "title": title });
        self.cast.ada.call("assign_task", task).await?;
        self.teller.line(&format!("ada: makes the task {title:?} (ClawChat)")).await;
        let told = loop {
            let frame = self.cast.bob.hears("task.created").await?;
            if frame["data"]["title"] == title {
                break frame;
            }
        };
        self.task = text(&told["data"], "task_id");
        let claim = json!({ "task_id": self.task, "agent_id": "bob" });
        let claimed = self.cast.bob.ask("task.claim", &claim).await?;
        ensure!(claimed["type"] == "task.claim_accepted", "the claim is answered {claimed}");
        self.teller.line("bob: claims it (ClawTank); of all who try, anywhere, one gets it").await;
        let by_bob = |task: &Value| task["assignee"] == "bob";
        self.ada_hears("task_updated", by_bob).await?;
        self.cy_hears("team.task.claimed", |told| told["owner_agent_key"] == "bob").await?;
        self.teller.more("└ ada sees it as `task_updated`, cy as `team.task.claimed`");
        Ok(())
    }

    /// An event of ClawChat.
    pub(super) async fn ada_hears(
        &mut self,
        kind: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let ada = &mut self.cast.ada;
        let event = ada.event(kind, HEARD_WITHIN, |event| event.kind == kind && is(&event.body));
        Ok(event.await?.body)
    }

    async fn cy_hears(&mut self, event: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let heard = timeout(HEARD_WITHIN, self.cast.cy.hears(event, is)).await;
        heard.with_context(|| format!("cy hears no {event}"))?
    }

    /// A claim, a challenge, a look, an agreement.
    pub(super) async fn claims(&mut self) -> Result<()> {
        self.teller.scene("A claim is contested, and settled by evidence").await;
        let assert = json!({
            "claim": "the fuse is blown, the bulb is good", "falsifiable_by": "current at the bulb",
            "confidence": 0.8,
        });
        let thread = self.lin_sends(&envelope("ASSERT", None, "lin", &assert)).await?;
        self.teller.line("lin: ASSERT     the fuse is blown, the bulb is good (0.8)").await;
        self.teller.more("└ would be disproved by: current at the bulb");
        let challenge = json!({
            "target_seq": thread, "counter_claim": "the bulb is ten years old", "confidence": 0.6,
            "test": "measure at the socket",
        });
        let mut challenge = envelope("CHALLENGE", Some(thread), "ada", &challenge);
        challenge["reply_to"] = json!(thread);
        self.ada_sends(&challenge).await?;
        self.teller
            .line("ada: CHALLENGE  the bulb is ten years old (0.6). Measure at the socket")
            .await;
        let resolve = json!({ "observation": "no current at the socket", "basis": "tool" });
        self.lin_sends(&envelope("RESOLVE", Some(thread), "lin", &resolve)).await?;
        self.teller.line("lin: RESOLVE    no current at the socket; basis: tool").await;
        let outcomes = json!({ thread.to_string(): true });
        let fuse = json!({ "synthesis": "a new fuse, and the old bulb", "outcomes": outcomes });
        self.ada_sends(&envelope("FUSE", Some(thread), "ada", &fuse)).await?;
        self.teller.line("ada: FUSE       a new fuse, and the old bulb").await;
        Ok(())
    }

    /// Returns the number, when everybody has heard it.
    async fn lin_sends(&mut self, envelope: &Value) -> Result<u64> {
        let said = lantern(envelope);
        let sent = self.cast.lin.call("send_message", said).await?;
        self.cast.hear(&self.stage, (&envelope.to_string(), Who::Lin), &[]).await?;
        let seq = sent["seq"].as_u64().context("a message has a number")?;
        self.lin_has = seq;
        Ok(seq)
    }

    async fn ada_sends(&mut self, envelope: &Value) -> Result<()> {
        let said = lantern(envelope);
        let sent = self.cast.ada.call("send_message", said).await?;
        self.cast.hear(&self.stage, (&envelope.to_string(), Who::Ada), &[]).await?;
        self.lin_has = sent["seq"].as_u64().context("a message has a number")?;
        Ok(())
    }

    /// A sealed vote of those who have a turn in the room.
    pub(super) async fn votes(&mut self) -> Result<()> {
        self.teller.scene("A sealed vote").await;
        let vote = json!({ "room_id": ROOM, "title": "Which glass?", "options": ["blue", "clear"], "duration_secs": 60 });
        let vote = text(&self.cast.ada.call("create_vote", vote).await?, "vote_id");
        self.teller.line("ada: opens a vote: which glass, blue or clear?").await;
        self.cast.ada.call("cast_vote", json!({ "vote_id": vote, "option_index": 0 })).await?;
        self.cast.lin.call("cast_vote", json!({ "vote_id": vote, "option_index": 1 })).await?;
        self.teller
            .line("ada and lin vote; nobody sees a choice, nor does any node tell one")
            .await;
        let ballot = json!({ "voteId": vote, "option": "blue" });
        self.cast.max_calls(&self.stage, "vote_cast", ballot).await?;
        let result = self.ada_hears("vote_result", |told| told["vote_id"] == *vote).await?;
        let counts: Vec<String> = result["tally"]
            .as_array()
            .context("a tally")?
            .iter()
            .map(|row| format!("{} {}", text(row, "option_text"), row["count"]))
            .collect();
        ensure!(counts == ["blue 2", "clear 1"], "the tally is {counts:?}");
        self.teller
            .line(&format!("max votes by a tool: all have voted, {}", counts.join(", ")))
            .await;
        Ok(())
    }

    /// Fay offers glass at one node, and is found at another one.
    pub(super) async fn finds_fay(&mut self) -> Result<()> {
        self.teller.scene("Somebody who sells blue glass is found, and written to").await;
        let mut at_blue = Client::at(self.stage.node(At::Blue).http()).await?;
        let fay = &self.cast.fay;
        let job = json!({
            "title": "Blue glass, cut to size", "description": "For lamps of any make.",
            "price_type": "fixed", "price": "3 USD per pane",
        });
        at_blue.done("POST /api/jobs/", Some(fay), Some(&job)).await?;
        self.teller
            .line("fay: offers \"Blue glass, cut to size\" in the index of blue (ClawFinder)")
            .await;
        let mut at_amber = Client::at(self.stage.node(At::Amber).http()).await?;
        let buyer = at_amber.register("ada-lamps").await?;
        let began = Instant::now();
        let search = "GET /api/jobs/?search=blue+glass";
        while at_amber.done(search, Some(&buyer), None).await?["count"] != 1 {
            ensure!(began.elapsed() < HEARD_WITHIN, "amber does not list fay's offer");
            sleep(LOOK_EVERY).await;
        }
        self.teller.line("ada: searches in the index of amber, and finds it").await;
        let mut chance = Chance::new("a mail of the demonstration");
        let to = [fay.secret.certificate()];
        let body =
            buyer.secret.seal(&to, b"One pane, please.", now(), &mut |bytes| chance.fill(bytes))?;
        let mail = json!({ "recipient_id": fay.id, "subject": "One pane", "body": body });
        at_amber.done("POST /api/agents/me/send/", Some(&buyer), Some(&mail)).await?;
        let began = Instant::now();
        while at_blue.done("GET /api/agents/me/inbox/", Some(fay), None).await?["count"] != 1 {
            ensure!(began.elapsed() < HEARD_WITHIN, "fay gets no mail");
            sleep(LOOK_EVERY).await;
        }
        self.teller
            .line("ada: writes her a mail, which no node can read (OpenPGP); fay has it")
            .await;
        Ok(())
    }

    /// Bob would rather ask before he switches it on.
    pub(super) async fn asks_for_leave(&mut self) -> Result<()> {
        self.teller.scene("May I?").await;
        let ask = json!({
            "request_id": crate::tank::fresh(), "agent_id": "bob", "approval_type": "exec",
            "task_id": self.task, "details": { "command": "lamp --on" }, "room_id": ROOM,
        });
        self.cast.bob.gets("approval.request", &ask).await?;
        self.teller.line("bob: asks whether he may run `lamp --on`").await;
        let asked =
            self.cy_hears("exec.approval.pending", |told| told["command"] == "lamp --on").await?;
        let leave = json!({ "id": asked["id"] });
        self.cast.cy.ask("exec.approval.approve", &leave).await?;
        let told = timeout(HEARD_WITHIN, self.cast.bob.hears("approval.response")).await;
        let told = told.context("bob hears of no decision")??;
        ensure!(told["data"]["decision"] == "approved", "the decision is {told}");
        self.teller
            .line("cy: allows it, and bob is told; the first decision counts, wherever it is made")
            .await;
        let done = json!({ "task_id": self.task, "agent_id": "bob" });
        self.cast.bob.gets("task.completed", &done).await?;
        self.ada_hears("task_updated", |task| task["status"] == "completed").await?;
        self.teller.line("bob: the lamp is on. Ada sees the task completed").await;
        Ok(())
    }
}

fn lantern(envelope: &Value) -> Value {
    json!({ "room_id": ROOM, "content": envelope.to_string(), "metadata": { "kind": "lantern" } })
}
