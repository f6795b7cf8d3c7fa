//! Agents of hosts that give each other tasks and ask each other, while their nodes are killed and started again. The asker
//! is idle until its node wakes it: then it reads its inbox. Every task and every question that its node took has a result
//! in its inbox, and nothing comes again that it has confirmed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{LOOK_EVERY, SOON};
use crate::{
    process::{Mesh, Plan},
    sim::dice::Dice,
    wire::{text, tool},
};

/// Who asks, at the first node.
const ASKER: &str = "asker";
/// Who works, at the second one.
const WORKER: &str = "worker";
/// Requests in one run: half of them tasks, half questions.
const REQUESTS: usize = 4;
/// The kill comes at some time of a run: requests, answers, the notice, its fetch and its confirmation are over by then.
const KILL_WITHIN_MS: u64 = 2_500;
/// A node that was killed may stay away for so long.
const AWAY_MS_MAX: u64 = 200;
/// A host takes its time between a notice and its fetch, and between a fetch and its confirmation.
const THINKS_MS_MAX: u64 = 150;
/// A host dies after a fetch so often, of a hundred: the next one reads again.
const HOST_DIES: u64 = 20;
/// The budgets of a pair of agents are for models, not for this.
const SETTINGS: &str = "[session]\npair = { messages = 100000, within = \"60s\", rest = \"1s\" }\n";

/// The results of the runs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs: in each a node, or both, was killed once.
    pub runs: usize,
    /// Requests that the asker's node had taken: each has its result.
    pub answered: usize,
    /// Results that came more than once, before they were confirmed.
    pub again: usize,
    /// Notices to the asker's host.
    pub woken: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.runs += other.runs;
        self.answered += other.answered;
        self.again += other.again;
        self.woken += other.woken;
    }
}

/// What the asker knows.
#[derive(Debug, Default)]
struct Known {
    /// Requests that its node took, and what they were.
    asked: BTreeMap<String, &'static str>,
    /// Those whose results it was given.
    answered: BTreeSet<String>,
    /// Items that it has confirmed: the node had answered that.
    confirmed: BTreeSet<String>,
    given: BTreeSet<String>,
    again: usize,
    woken: usize,
    wrong: Option<String>,
}

/// Both hosts, and the way to their nodes.
#[derive(Debug)]
struct Hosts {
    key: String,
    asker_at: String,
    worker_at: String,
    known: Mutex<Known>,
    /// A notice has come.
    notice: Notify,
    over: AtomicBool,
}

impl Hosts {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of a tool. `None`: the node did not answer, and whether it did something nobody knows.
    async fn try_call(&self, agent: &str, name: &str, args: &Value) -> Result<Option<Value>> {
        let at = if agent == ASKER { &self.asker_at } else { &self.worker_at };
        let call = json!({"tool": name, "agentId": agent, "args": args});
        match tool(at, &self.key, &call).await {
            Ok(result) => Ok(Some(result)),
            Err(error) if error.code().is_some_and(|code| code.starts_with('4')) => {
                Err(error).with_context(|| format!("{name} of {agent}"))
            }
            Err(_) => Ok(None),
        }
    }

    /// The same call again and again until its node answers in this way.
    async fn call(&self, agent: &str, name: &str, args: Value, status: &str) -> Result<Value> {
        let deadline = Instant::now() + SOON;
        let mut last = None;
        while Instant::now() < deadline {
            let result = self.try_call(agent, name, &args).await?;
            match result {
                Some(result) if result["status"] == status => return Ok(result),
                Some(result) => last = Some(result),
                None => {}
            }
            sleep(LOOK_EVERY).await;
        }
        Err(anyhow!("{name} of {agent} with {args}: {last:?}"))
    }

    /// Gives tasks and asks questions, each until the node has taken it.
    async fn ask(&self, run: &str) -> Result<()> {
        for nth in 0..REQUESTS {
            let name = format!("{run} {nth}");
            let (tool, mut args) = if nth % 2 == 0 {
                ("sessions_spawn", json!({"task": name, "label": name}))
            } else {
                ("sessions_send", json!({"message": name}))
            };
            args["agentId"] = json!(WORKER);
            args["timeoutSeconds"] = json!(0);
            args["idempotencyKey"] = json!(name);
            let taken = self.call(ASKER, tool, args, "accepted").await?;
            self.known().asked.insert(text(&taken, "runId"), tool);
        }
        Ok(())
    }

    /// Does all that it is asked, and confirms it only then.
    async fn work(&self) -> Result<()> {
        let mut cursor = None;
        while !self.over.load(Relaxed) {
            let mut args = json!({"timeoutSeconds": 1});
            if let Some(cursor) = &cursor {
                args["cursor"] = json!(cursor);
            }
            let Some(page) = self.try_call(WORKER, "inbox_wait", &args).await? else {
                sleep(LOOK_EVERY).await;
                continue;
            };
            for item in page["messages"].as_array().into_iter().flatten() {
                self.answer(item).await?;
            }
            if page["cursor"].is_string() {
                cursor = Some(text(&page, "cursor"));
            }
        }
        Ok(())
    }

    async fn answer(&self, item: &Value) -> Result<()> {
        if item["item"] == "task" {
            self.complete(&item["taskId"]).await?;
        } else if item["expectsReply"] == true {
            let reply = json!({
                "sessionKey": item["sessionKey"], "replyTo": item["id"], "message": "so it is",
                "timeoutSeconds": 0, "idempotencyKey": item["id"],
            });
            self.call(WORKER, "sessions_send", reply, "accepted").await?;
        }
        Ok(())
    }

    /// Ends a task. An item may come again of one that was ended before its node died, and whose result the asker has confirmed
    /// since: then its room is gone.
    async fn complete(&self, task: &Value) -> Result<()> {
        let done = json!({"taskId": task, "result": "done"});
        let deadline = Instant::now() + SOON;
        while Instant::now() < deadline {
            if let Some(result) = self.try_call(WORKER, "task_complete", &done).await?
                && (result["status"] == "ok" || result["code"] == "task_not_found")
            {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
        Err(anyhow!("task_complete of {task} is not answered"))
    }

    /// An idle host: it reads when it is told that something is there, and not before.
    async fn idle(&self, mut dice: Dice) -> Result<()> {
        while !self.over.load(Relaxed) {
            if timeout(Duration::from_millis(200), self.notice.notified()).await.is_err() {
                continue;
            }
            self.known().woken += 1;
            // A host that dies after a fetch is started again, and reads.
            while self.read(&mut dice).await? {}
        }
        Ok(())
    }

    /// Reads until nothing is left. True: it died before it confirmed.
    async fn read(&self, dice: &mut Dice) -> Result<bool> {
        let mut cursor: Option<String> = None;
        let mut held: Vec<String> = Vec::new();
        loop {
            sleep(Duration::from_millis(dice.within(0, THINKS_MS_MAX))).await;
            let mut args = json!({"timeoutSeconds": 0});
            if let Some(cursor) = &cursor {
                args["cursor"] = json!(cursor);
            }
            // The node is gone: it tells again that something is there.
            let Some(page) = self.try_call(ASKER, "inbox_wait", &args).await? else {
                return Ok(false);
            };
            let messages = page["messages"].as_array().cloned().unwrap_or_default();
            let mut known = self.known();
            known.confirmed.extend(held.drain(..));
            for item in &messages {
                known.take(item);
            }
            drop(known);
            if messages.is_empty() {
                return Ok(false);
            }
            if dice.chance(HOST_DIES) {
                return Ok(true);
            }
            held = messages.iter().map(|item| text(item, "id")).collect();
            cursor = Some(text(&page, "cursor"));
        }
    }

    /// Hears of each notice to the asker's host.
    async fn hear(&self, listener: TcpListener) -> Result<()> {
        loop {
            let (stream, _) = listener.accept().await.context("hear a notice")?;
            // A node that is killed while it posts posts again.
            if take_post(stream).await.is_ok() {
                self.notice.notify_one();
            }
        }
    }

    /// What both hosts would see now, for an error.
    async fn state(&self) -> String {
        let mut seen = Vec::new();
        for agent in [ASKER, WORKER] {
            let args = json!({"timeoutSeconds": 0, "limit": 5});
            let unread = self.try_call(agent, "inbox_wait", &args).await;
            let sessions = self.try_call(agent, "sessions_list", &json!({})).await;
            seen.push(format!("{agent} has {unread:?} and {sessions:?}"));
        }
        let woken = self.known().woken;
        format!("{}; {woken} notices", seen.join("; "))
    }

    /// All that was asked has a result.
    async fn all_answered(&self) -> Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            let missing: Vec<String> = {
                let known = self.known();
                if let Some(wrong) = &known.wrong {
                    bail!("{wrong}");
                }
                let missing = known.asked.iter().filter(|(run, _)| !known.answered.contains(*run));
                missing.map(|(run, tool)| format!("{tool} {run}")).collect()
            };
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (missing, seen) = (missing.join(", "), self.state().await);
                bail!("no result in the inbox within {SOON:?}: {missing}; {seen}");
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Known {
    fn take(&mut self, item: &Value) {
        let id = text(item, "id");
        if self.confirmed.contains(&id) {
            self.wrong = Some(format!("an item came again that was confirmed: {item}"));
        }
        if !self.given.insert(id) {
            self.again += 1;
        }
        let run = match item["item"].as_str() {
            Some("spawn_result") => text(&item["spawn"], "runId"),
            Some(_) | None => text(item, "replyTo"),
        };
        self.answered.insert(run);
    }
}

/// Takes one request of HTTP whole, and says yes.
async fn take_post(mut stream: TcpStream) -> Result<()> {
    let mut request = Vec::new();
    let taken = async {
        loop {
            let read = stream.read_buf(&mut request).await?;
            let whole = String::from_utf8_lossy(&request);
            if let Some((head, body)) = whole.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                let length: usize = length.unwrap_or("0").trim().parse()?;
                if body.len() >= length {
                    break;
                }
            }
            ensure!(read > 0, "a request that ends in the middle");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
        Ok(())
    };
    timeout(SOON, taken).await?
}

/// So many runs on a mesh of two, each with a kill. `told` hears of each run.
///
/// # Errors
///
/// The first request without a result, the first item that comes again, or a daemon that fails.
pub async fn play(
    mut plan: Plan,
    (runs, seed): (usize, u64),
    mut told: impl FnMut(&Tally),
) -> Result<Tally> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("hear notices")?;
    let settings = tempfile::tempdir().context("make a directory")?;
    let file = settings.path().join("node.toml");
    let url = format!("http://{}/wake", listener.local_addr().context("hear notices")?);
    let wake = format!("{SETTINGS}\n[[wake]]\nagent = \"{ASKER}\"\nurl = \"{url}\"\n");
    fs::write(&file, wake).with_context(|| format!("write {}", file.display()))?;
    plan.flags.extend(["--config".to_owned(), file.display().to_string()]);
    plan.nodes = 2;
    let mut mesh = Mesh::up(plan).await?;
    let hosts = Arc::new(Hosts {
        key: mesh.key().context("nodes with a key")?.to_owned(),
        asker_at: mesh.nodes[0].http().to_owned(),
        worker_at: mesh.nodes[1].http().to_owned(),
        known: Mutex::default(),
        notice: Notify::new(),
        over: AtomicBool::new(false),
    });
    let mut dice = Dice::new(seed);
    let mut living = JoinSet::new();
    let (at_work, idle, ears) = (hosts.clone(), hosts.clone(), hosts.clone());
    let own = Dice::new(dice.draw());
    living.spawn(async move { at_work.work().await });
    living.spawn(async move { idle.idle(own).await });
    let hearing = tokio::spawn(async move { ears.hear(listener).await });
    let mut tally = Tally::default();
    for nth in 0..runs {
        let played = run(&mut mesh, &hosts, &mut dice, nth).await;
        if played.is_err()
            && let Some(ended) = living.try_join_next()
        {
            // It is the cause of the other one.
            ended.context("a host")??;
        }
        played.with_context(|| format!("run {nth} of seed {seed}"))?;
        let known = hosts.known();
        let (answered, again, woken) = (known.asked.len(), known.again, known.woken);
        drop(known);
        tally = Tally { runs: nth + 1, answered, again, woken };
        told(&tally);
    }
    hosts.over.store(true, Relaxed);
    while let Some(ended) = living.join_next().await {
        ended.context("a host")??;
    }
    hearing.abort();
    mesh.stop().await?;
    Ok(tally)
}

async fn run(mesh: &mut Mesh, hosts: &Arc<Hosts>, dice: &mut Dice, nth: usize) -> Result<()> {
    let choices: [&[usize]; 4] = [&[0], &[0], &[1], &[0, 1]];
    let victims = *dice.pick(&choices);
    let asks = hosts.clone();
    let asking = tokio::spawn(async move { asks.ask(&format!("run {nth}")).await });
    sleep(Duration::from_millis(dice.within(0, KILL_WITHIN_MS))).await;
    for victim in victims {
        mesh.nodes[*victim].kill9().await?;
    }
    sleep(Duration::from_millis(dice.within(0, AWAY_MS_MAX))).await;
    for victim in victims {
        mesh.nodes[*victim].restart().await?;
    }
    asking.await.context("the asker")??;
    hosts.all_answered().await
}
