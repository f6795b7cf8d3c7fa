//! Tools of agent hosts, over HTTP: their list, a message that is sent, and a wait at another node that it ends.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use super::{
    connection::{Connection, Speaker as _},
    figure::{Figure, Target, Unit},
    run::Run,
};
use crate::{
    distribution::Distribution,
    http::Http,
    process::{Auth, Mesh, Plan},
};

/// Calls of each kind, one after the other.
const CALLS: u64 = 1_000;

/// An agent is known at other nodes within this time.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A host that keeps its connection.
struct Host {
    http: Http,
    path: String,
    key: String,
}

impl Host {
    async fn at(address: &str, agent: &str, key: Option<&str>) -> Result<Host> {
        let (path, key) = (format!("/mcp/{agent}?tools=all"), key.unwrap_or("none").to_owned());
        Ok(Host { http: Http::at(address).await?, path, key })
    }

    /// Until its node has heard of an agent that has come to another one.
    async fn knows(&mut self, agent: &str) -> Result<()> {
        let until = Instant::now() + KNOWN_WITHIN;
        loop {
            let params = json!({ "name": "agents_list", "arguments": { "search": agent } });
            let listed = self.ask("tools/call", &params).await?;
            let count = listed["structuredContent"]["count"].as_u64();
            if count.is_some_and(|count| count > 0) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "nobody hears of {agent}: {listed}");
            sleep(LOOK_EVERY).await;
        }
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let head = format!(
            "POST {} HTTP/1.1\r\nauthorization: Bearer {}\r\ncontent-type: application/json",
            self.path, self.key
        );
        let answer = self.http.ask(&head, &body.to_string()).await?;
        let answer: Value = serde_json::from_slice(&answer.body)?;
        if answer["result"].is_null() {
            bail!("{method} is answered {answer}");
        }
        Ok(answer["result"].clone())
    }

    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.ask("tools/call", &params).await?["structuredContent"].take();
        ensure!(result["status"] == "ok", "{tool} is answered {result}");
        Ok(result)
    }
}

/// Two nodes, a host at each, one room: the first host speaks, and the second one waits.
pub(super) async fn tools(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = Mesh::up(run.plan(2)?).await?;
    let mut speaker = Host::at(mesh.nodes[0].http(), "speaker", None).await?;
    let mut listener = Host::at(mesh.nodes[1].http(), "listener", None).await?;
    let room = json!({ "room": "lobby" });
    speaker.call("room_join", &room).await?;
    listener.call("room_join", &room).await?;
    let mut took: [Vec<u64>; 3] = Default::default();
    let mut after = 0;
    for nth in 0..run.scaled(CALLS) {
        let began = run.clock.now_us();
        speaker.ask("tools/list", &json!({})).await?;
        took[0].push(run.clock.now_us() - began);
        let text = format!("message {nth}");
        let wait = json!({ "room": "lobby", "afterSeq": after, "timeoutSeconds": 30 });
        let said = json!({ "room": "lobby", "message": text });
        let began = run.clock.now_us();
        let (heard, said) = tokio::join!(listener.call("room_wait", &wait), async {
            let said = speaker.call("room_send", &said).await;
            (said, run.clock.now_us() - began)
        });
        took[2].push(run.clock.now_us() - began);
        said.0?;
        took[1].push(said.1);
        let heard = heard?;
        ensure!(heard["messages"][0]["content"] == *text, "the wait gives {heard}");
        after = heard["afterSeq"].as_u64().context("a number")?;
    }
    mesh.stop().await.context("the mesh stops")?;
    let [lists, sends, waits] = took;
    let names = [
        ("tools_list_p50", "tools over HTTP: `tools/list` p50", 2.0),
        ("tools_send_p50", "… `room_send` p50", 8.0),
        ("tools_wait_p50", "… until a `room_wait` at another node gives it: p50", 8.0),
        (
            "tools_ask_p50",
            "… `sessions_send` to an agent at another node that answers at once: p50",
            8.0,
        ),
    ];
    let took = [lists, sends, waits, asked(run).await?];
    let figures = names.into_iter().zip(took).map(|((name, what, most), took)| {
        let took = Distribution::new(took);
        let value = took.percentile(50.0);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most)).of(&took)
    });
    Ok(figures.collect())
}

/// A host at one node asks an agent at the other one, which answers whatever it is told.
async fn asked(run: &Run) -> Result<Vec<u64>> {
    let temp = tempfile::tempdir()?;
    // As many questions as are measured.
    let config = temp.path().join("clawmesh.toml");
    std::fs::write(&config, "[session]\npair = { messages = 1000000000 }\n")?;
    let flags = vec!["--config".to_owned(), config.display().to_string()];
    let mut mesh = Mesh::up(Plan { auth: Auth::Key, flags, ..run.plan(2)? }).await?;
    let key = mesh.key().context("a key")?.to_owned();
    let mut answers = Connection::attach(mesh.nodes[1].tcp(), Some(&key), "answers").await?;
    let agent = answers.agent.clone();
    let mut asker = Host::at(mesh.nodes[0].http(), "asker", Some(&key)).await?;
    let answering = tokio::spawn(async move {
        while let Ok(told) = answers.event("message_received").await {
            let answer = json!({ "room_id": told["room_id"], "reply_to": told["message_id"], "content": "so it is" });
            answers.push("send_message", &answer);
            answers.flush().await?;
        }
        anyhow::Ok(())
    });
    asker.knows(&agent).await?;
    let mut took = Vec::new();
    for nth in 0..run.scaled(CALLS) {
        let asks = json!({ "agentId": agent, "message": format!("question {nth}") });
        let began = run.clock.now_us();
        let answer = asker.call("sessions_send", &asks).await?;
        took.push(run.clock.now_us() - began);
        ensure!(answer["reply"] == "so it is", "the answer is {answer}");
    }
    mesh.stop().await.context("the mesh stops")?;
    answering.abort();
    Ok(took)
}
