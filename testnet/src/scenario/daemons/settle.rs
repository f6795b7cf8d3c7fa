//! The end of a scenario with real daemons: everything comes everywhere, and all nodes are read.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{COMPLETE_WITHIN, LOOK_EVERY, Node, Result, Stage};
use crate::{
    pipe::State,
    scenario::{disks::Disk, history::Seen, reader::Reader, speaker::look},
    wire::{Agent, get, text},
};

/// How long new messages may not agree after the last fault. It is 10 s on a machine that has time.
const AGREE_WITHIN: Duration = Duration::from_secs(90);

impl Stage {
    /// The last fault is over: everything comes everywhere, and new messages agree.
    pub(super) async fn settle(&mut self, nodes: usize) -> Result<()> {
        let began = Instant::now();
        self.lay(|_, state| *state = State::default());
        let living: Vec<usize> = (0..nodes).filter(|node| !self.retired.contains(node)).collect();
        // A limit ends with the process that has it; a disk stays full.
        let stays = self.setting.disk == Disk::Tmpfs;
        let full = living.iter().filter(|node| stays || self.is_up(**node)).map(|node| node + 1);
        let full: Vec<usize> = full.collect();
        self.fill(&full, false)?;
        for node in &living {
            self.start(*node).await?;
        }
        self.sit().await?;
        self.finish(|_| true).await?;
        let mut all = self.readers(&living).await?;
        self.come_together(&mut all).await?;
        look(&self.notes).healed = began.elapsed();
        let deadline = Instant::now() + AGREE_WITHIN;
        loop {
            look(&self.notes).seen.push(Seen::Calm);
            let from = self.told();
            for node in &living {
                self.speaker(&format!("prober{}", node + 1), *node)?.have_said(1);
            }
            self.finish(|_| true).await?;
            self.come_together(&mut all).await?;
            if self.agree_since(from, &all) || Instant::now() > deadline {
                break;
            }
        }
        if let Some((node, _)) = self.roamer {
            self.roam(node).await?;
        }
        let deadline = Instant::now() + COMPLETE_WITHIN;
        while !self.view_votes().await? && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
        let deadline = Instant::now() + COMPLETE_WITHIN;
        while !self.view_tasks(&living).await? && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
        look(&self.notes).memory =
            self.nodes.values().filter_map(|node| node.daemon.memory()).max();
        let blames = self.blames().await?;
        let to_look_up = {
            let mut notes = look(&self.notes);
            let reads = all.into_iter().zip(&living);
            let reads = reads.map(|(reader, node)| Seen::Read { at: node + 1, rows: reader.rows });
            notes.seen.extend(reads.chain(blames));
            notes.to_look_up(&living)
        };
        for (at, number) in to_look_up {
            let http = self.node(at - 1)?.daemon.http().to_owned();
            let answer = get(&http, &format!("/api/rooms/lobby/messages/{number}")).await?;
            let message = (answer.0 == 200).then(|| text(&answer.1, "message_id"));
            look(&self.notes).seen.push(Seen::Resolved { at, number, message });
        }
        Ok(())
    }

    /// Whether what was told after the first `from` messages has one number at all nodes.
    fn agree_since(&self, from: usize, all: &[Reader]) -> bool {
        let notes = look(&self.notes);
        let told = notes.seen.iter().filter_map(|seen| {
            let Seen::Told { row, .. } = seen else { return None };
            Some(row)
        });
        let mut told = told.skip(from);
        told.all(|row| all.iter().all(|reader| reader.rows.iter().rev().any(|read| read == row)))
    }

    /// One at each node.
    async fn readers(&mut self, nodes: &[usize]) -> Result<Vec<Reader>> {
        let mut readers = Vec::new();
        for node in nodes {
            let agent = Agent::attach(self.node(*node)?.daemon.tcp(), None, "reader").await?;
            let spoilt = look(&self.notes).spoilt();
            readers.push(Reader { agent, rows: Vec::new(), honest: 0, spoilt });
        }
        Ok(readers)
    }

    /// Reads on at all nodes until all have as many messages, or nothing new comes for too long: then
    /// the checkers say what is missing.
    pub(super) async fn come_together(&mut self, all: &mut [Reader]) -> Result<()> {
        let count = |all: &[Reader]| all.iter().map(|reader| reader.honest).sum::<usize>();
        let mut grown = (count(all), Instant::now());
        loop {
            for reader in all.iter_mut() {
                reader.read_on().await?;
            }
            self.all_live()?;
            let most = all.iter().map(|reader| reader.honest).max().unwrap_or(0);
            let told = look(&self.notes).told_honestly();
            if most >= told && all.iter().all(|reader| reader.honest == most) {
                return Ok(());
            }
            if count(all) > grown.0 {
                grown = (count(all), Instant::now());
            }
            if grown.1.elapsed() > COMPLETE_WITHIN {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Asks all nodes about all tasks, notes it, and says whether they say the same.
    pub(super) async fn view_tasks(&mut self, nodes: &[usize]) -> Result<bool> {
        if look(&self.notes).tasks.is_empty() {
            return Ok(true);
        }
        let mut all: Vec<Vec<(String, Option<String>, bool)>> = Vec::new();
        for node in nodes {
            let tcp = self.node(*node)?.daemon.tcp().to_owned();
            let mut agent = Agent::attach(&tcp, None, "visitor").await?;
            let list = agent.call("list_tasks", json!({ "room_id": "lobby" })).await?;
            let tasks = list["tasks"].as_array().into_iter().flatten();
            let shown = tasks.map(|task| {
                let contested = task["mesh"]["contested"].as_array().into_iter().flatten();
                let contested = contested.into_iter().any(|field| field == "assignee");
                (text(task, "task_id"), task["assignee"].as_str().map(str::to_owned), contested)
            });
            all.push(shown.collect());
        }
        let same = all.windows(2).all(|two| two[0] == two[1]);
        for (node, tasks) in nodes.iter().zip(all) {
            let shows = tasks.into_iter().map(|(task, holder, contested)| Seen::Shows {
                at: node + 1,
                task,
                holder,
                contested,
            });
            look(&self.notes).seen.extend(shows);
        }
        Ok(same)
    }

    /// Asks all nodes that run about all votes, notes it, and says whether all are closed and told.
    pub(super) async fn view_votes(&mut self) -> Result<bool> {
        let votes = look(&self.notes).votes.clone();
        let mut all = true;
        for (node, there) in &self.nodes {
            if !there.up || votes.is_empty() {
                continue;
            }
            let mut agent = Agent::attach(there.daemon.tcp(), None, "visitor").await?;
            for vote in &votes {
                let answer = agent.call("get_vote_status", json!({ "vote_id": vote })).await;
                let view = match answer {
                    Err(error) if error.code() == Some("vote_not_found") => {
                        all = false;
                        continue;
                    }
                    answer => answer?,
                };
                let tally = view["tally"].as_array().map(|tally| {
                    tally.iter().map(|option| option["count"].as_u64().unwrap_or(0)).collect()
                });
                let closed = text(&view, "status") == "closed";
                all &= closed && tally.is_some();
                let (at, vote) = (node + 1, vote.clone());
                look(&self.notes).seen.push(Seen::Viewed { at, vote, closed, tally });
            }
        }
        Ok(all)
    }

    /// Whom each node that runs tells its operator to have forked.
    async fn blames(&self) -> Result<Vec<Seen>> {
        let mut blames = Vec::new();
        for (node, there) in &self.nodes {
            if self.retired.contains(node) {
                continue;
            }
            let status = there.daemon.status().await?;
            let forked = status["forked"].as_array().cloned().unwrap_or_default();
            let numbered = |id: &Value| {
                let known = |node: &Node| Some(node.daemon.ready().node_id.as_str()) == id.as_str();
                self.nodes.iter().find(|(_, node)| known(node)).map_or(0, |(node, _)| node + 1)
            };
            let mut of: Vec<usize> = forked.iter().map(numbered).collect();
            of.sort_unstable();
            blames.push(Seen::Blames { at: node + 1, of });
        }
        Ok(blames)
    }
}
