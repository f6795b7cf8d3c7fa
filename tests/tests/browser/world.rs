//! What all tests share: three real nodes with links that can be cut, and a browser.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testnet::{
    binary,
    pipe::Pipe,
    process::{Daemon, Options, Terminal},
    wire::{Agent, Event, text},
};
use tokio::time::sleep;

use crate::driver::{Browser, Driver, SOON};

/// Nodes of the mesh.
const NODES: usize = 3;
/// The name under which the browser's person writes.
pub(crate) const PERSON: &str = "ada";

/// See the module.
pub(crate) struct World {
    pub(crate) nodes: Vec<Daemon>,
    pipes: Vec<((usize, usize), Pipe)>,
    pub(crate) key: String,
    pub(crate) driver: Driver,
    /// Of the person who is signed in at the first node.
    pub(crate) page: Browser,
    rooms: usize,
    dir: TempDir,
}

impl World {
    pub(crate) async fn up(programs: (PathBuf, PathBuf)) -> Result<World> {
        let binary = binary::fresh()?;
        let dir = tempfile::Builder::new().prefix("clawmesh-browser-").tempdir()?;
        let key_file = dir.path().join("auth.key");
        let (mut nodes, mut pipes) = (Vec::<Daemon>::new(), Vec::new());
        for node in 0..NODES {
            let mut join = Vec::new();
            for (other, there) in nodes.iter().enumerate() {
                let target = there.ready().listen.first().cloned().unwrap_or_default();
                let pipe = Pipe::to(target).await?;
                join.push(there.invite_at(&pipe.address().to_string()).await?);
                pipes.push(((node, other), pipe));
            }
            let name = ["north", "south", "west"][node].to_owned();
            let options = Options {
                binary: binary.clone(),
                data_dir: dir.path().join(&name),
                name,
                key_file: Some(key_file.clone()),
                join,
                // Else nodes would tell each other ways around the pipes.
                flags: vec!["--no-discovery".to_owned()],
                terminal: Terminal::Shared,
                clock: None,
            };
            nodes.push(Daemon::start(options).await?);
        }
        let key = std::fs::read_to_string(&key_file)?.trim().to_owned();
        let driver = Driver::start(programs).await?;
        let page = driver.browser().await?;
        Ok(World { nodes, pipes, key, driver, page, rooms: 0, dir })
    }

    /// Ends all that was started.
    pub(crate) async fn down(mut self) -> Result<()> {
        let quit = self.page.quit().await;
        for node in &mut self.nodes {
            node.stop().await?;
        }
        drop(self.dir);
        quit
    }

    /// The address of a node's page.
    pub(crate) fn at(&self, node: usize, path: &str) -> String {
        format!("http://{}{path}", self.nodes[node].http())
    }

    /// A link that signs in, as `clawmesh open` gets it.
    pub(crate) async fn link(&self, node: usize, key: &str, name: &str) -> Result<String> {
        let (shown, name) = (format!("Bearer {key}"), json!({ "name": name }).to_string());
        let headers = [("authorization", &*shown)];
        let made = http(self.nodes[node].http(), "POST /ui/link", &headers, &name);
        let (status, _, body) = made.await?;
        ensure!(status == 200, "{status}: {body}");
        let made: Value = serde_json::from_str(&body)?;
        Ok(self.at(node, made["path"].as_str().context("a path")?))
    }

    /// Signs a browser in, if it is not.
    pub(crate) async fn enter(&self, browser: &Browser, node: usize) -> Result<()> {
        browser.open(&self.at(node, "/")).await?;
        if !browser.all("nav a[aria-current]").await?.is_empty() {
            return Ok(());
        }
        browser.open(&self.link(node, &self.key, PERSON).await?).await?;
        // The way in leads to the first page.
        browser.until("!!document.querySelector('nav a[aria-current]')").await
    }

    pub(crate) async fn agent(&self, node: usize, name: &str) -> Result<Agent> {
        Ok(Agent::attach(self.nodes[node].tcp(), Some(&self.key), name).await?)
    }

    /// A new room that all nodes know, with these agents in it.
    pub(crate) async fn room(&mut self, agents: &mut [&mut Agent]) -> Result<String> {
        self.rooms += 1;
        let name = format!("room-{}", self.rooms);
        self.room_called(&name, agents).await
    }

    pub(crate) async fn room_called(
        &mut self,
        name: &str,
        agents: &mut [&mut Agent],
    ) -> Result<String> {
        let mut maker = self.agent(0, "maker").await?;
        let made = maker.call("create_room", json!({ "name": name, "public": true })).await?;
        let room = text(&made, "room_id");
        for agent in agents {
            join(agent, &room).await?;
        }
        maker.leave().await?;
        Ok(room)
    }

    /// Opens a room of the first node in the browser, and waits until the page is live.
    pub(crate) async fn visit(&self, room: &str) -> Result<()> {
        self.page.open(&self.at(0, &format!("/ui/rooms/{room}"))).await?;
        self.page.until("document.documentElement.dataset.stream === 'open'").await
    }

    /// Cuts the links of a node, or heals them.
    pub(crate) fn cut(&self, node: usize, cut: bool) {
        for ((one, other), pipe) in &self.pipes {
            if *one == node || *other == node {
                pipe.set(|state| state.cut = cut);
            }
        }
    }

    /// Runs a command of the daemon's program for a node. Returns what it prints.
    pub(crate) async fn operate(&self, node: usize, args: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::new(binary::fresh()?);
        command.args(args).arg("--data-dir").arg(&self.nodes[node].ready().data_dir);
        let output = command.stdin(std::process::Stdio::null()).output().await?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success(), "{args:?}: {out}{err}");
        Ok(out)
    }
}

/// Joins a room, which may have been made on another node a moment ago.
pub(crate) async fn join(agent: &mut Agent, room: &str) -> Result<()> {
    let until = Instant::now() + SOON;
    loop {
        match agent.call("join_room", json!({ "room_id": room })).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some("room_not_found") && Instant::now() < until => {
                sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) async fn say(agent: &mut Agent, room: &str, content: &str) -> Result<Value> {
    Ok(agent.call("send_message", json!({ "room_id": room, "content": content })).await?)
}

/// The next message of a room that an agent is told.
pub(crate) async fn hears(agent: &mut Agent, room: &str, content: &str) -> Result<Event> {
    let fields = json!({ "room_id": room, "content": content });
    Ok(agent.event(content, SOON, |event| event.is("message_received", &fields)).await?)
}

/// A request to a node, with headers of one's own: the status, the head and the body of the answer.
pub(crate) async fn http(
    at: &str,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<(u16, String, String)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{what} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let asked = async {
        let mut io = tokio::net::TcpStream::connect(at).await?;
        io.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        io.read_to_end(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(SOON, asked).await.context("an answer")??;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer that is not HTTP")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("a status")?;
    Ok((status, head.to_owned(), body.to_owned()))
}
