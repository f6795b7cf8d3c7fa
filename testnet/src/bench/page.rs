//! The page that people open: what it costs a node in an idle mesh, and how soon it shows a message of another node.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    connection::Speaker as _,
    figure::{Figure, Target, Unit},
    load::Server,
    nodes::{pid, reach},
    run::Run,
};
use crate::{
    distribution::Distribution,
    proc,
    process::{Daemon, Mesh},
};

const NODES: usize = 5;
/// Messages, one after the other.
const MESSAGES: u64 = 400;
const BETWEEN: Duration = Duration::from_millis(25);
/// A browser is told within this time, or never.
const TOLD_WITHIN: Duration = Duration::from_secs(20);

/// A person who is signed in.
struct Person<'a> {
    node: &'a Daemon,
    cookie: String,
}

/// A page that is open: events as a browser hears them.
struct Live {
    io: BufReader<TcpStream>,
}

/// Sends a request whose answer ends with its connection. Returns what comes after its head.
async fn ask(at: &str, head: &str, body: &str) -> Result<(String, BufReader<TcpStream>)> {
    let mut io = BufReader::new(TcpStream::connect(at).await?);
    io.get_mut().set_nodelay(true)?;
    let length = body.len();
    let request = format!("{head}\r\nhost: {at}\r\ncontent-length: {length}\r\n\r\n{body}");
    io.get_mut().write_all(request.as_bytes()).await?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(io.read_line(&mut head).await? > 0, "the node hung up: {head}");
    }
    Ok((head, io))
}

impl Person<'_> {
    async fn enters(node: &Daemon) -> Result<Person<'_>> {
        let at = node.http();
        let head = format!(
            "POST /ui/enter HTTP/1.0\r\norigin: http://{at}\r\ncontent-type: application/x-www-form-urlencoded"
        );
        let (head, _) = ask(at, &head, "name=bench").await?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no cookie")?;
        Ok(Person { node, cookie: cookie.to_owned() })
    }

    /// Opens a page's stream. HTTP/1.0: so that it comes without frames of its own.
    async fn opens(&self, path: &str) -> Result<Live> {
        let head = format!("GET {path} HTTP/1.0\r\ncookie: {}", self.cookie);
        let (head, io) = ask(self.node.http(), &head, "").await?;
        ensure!(head.contains("text/event-stream"), "{path}: {head}");
        Ok(Live { io })
    }

    /// The bytes of a page or an asset, its head included.
    async fn loads(&self, path: &str) -> Result<(usize, String)> {
        let head = format!("GET {path} HTTP/1.0\r\ncookie: {}", self.cookie);
        let (head, mut io) = ask(self.node.http(), &head, "").await?;
        let mut body = String::new();
        io.read_to_string(&mut body).await?;
        Ok((head.len() + body.len(), body))
    }
}

impl Live {
    /// The next event, as it came.
    async fn event(&mut self) -> Result<String> {
        let mut event = String::new();
        loop {
            let mut line = String::new();
            ensure!(self.io.read_line(&mut line).await? > 0, "the page is over");
            if line.trim_end().is_empty() && event.contains("data:") {
                return Ok(event);
            }
            event.push_str(&line);
        }
    }

    /// Until an event has a text.
    async fn shows(&mut self, text: &str) -> Result<()> {
        let shown = async {
            while !self.event().await?.contains(text) {}
            anyhow::Ok(())
        };
        timeout(TOLD_WITHIN, shown).await.with_context(|| format!("{text} is not shown"))?
    }

    /// What comes is read, and thrown away.
    async fn is_open_for(&mut self, lasts: Duration) -> Result<()> {
        let read = async {
            loop {
                self.event().await?;
            }
        };
        match timeout(lasts, read).await {
            Ok(Ok(())) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error),
        }
    }
}

/// The share of a core that a node takes meanwhile, in percent.
async fn share(node: &Daemon, meanwhile: impl Future<Output = Result<()>>) -> Result<f64> {
    let (before, began) = (proc::processor_seconds(pid(node)?)?, Instant::now());
    meanwhile.await?;
    let took = began.elapsed().as_secs_f64();
    Ok((proc::processor_seconds(pid(node)?)? - before) / took * 100.0)
}

/// See the module.
pub(super) async fn page(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(NODES).await?;
    let mut speaker = Server::of(&mesh, NODES - 1).attach("speaker").await?;
    let room = speaker.make_room(&run.name("page")).await?;
    let mut members = Vec::new();
    for node in 0..NODES {
        members.push(reach(&Server::of(&mesh, node), &format!("member{node}"), &room).await?);
    }
    sleep(run.warm_up() * 3).await;
    let mut figures = costs(run, &mesh, &room).await?;
    let person = Person::enters(&mesh.nodes[0]).await?;
    let mut seen = person.opens(&format!("/ui/rooms/{room}/live?after=0")).await?;
    let mut listed = person.opens("/ui/live/rooms").await?;
    listed.event().await?;
    let (mut fresh, mut unread) = (Vec::new(), Vec::new());
    for nth in 0..run.scaled(MESSAGES) {
        let (text, sent) = (format!("word-{nth}."), run.clock.now_us());
        speaker.push("send_message", &json!({ "room_id": room, "content": text }));
        speaker.flush().await?;
        seen.shows(&text).await?;
        fresh.push(run.clock.now_us() - sent);
        // The page of the room has read it: the list says that it is the newest.
        if nth.is_multiple_of(4) {
            listed.shows(&format!("\"Messages\">{}<", nth + 1)).await?;
            unread.push(run.clock.now_us() - sent);
        }
        sleep(BETWEEN).await;
    }
    for (name, what, took) in [
        ("page_fresh_p99", "… an open room shows a message of another node: p99", fresh),
        ("page_list_p99", "… the list of rooms does: p99", unread),
    ] {
        let took = Distribution::new(took);
        let value = took.percentile(99.0);
        figures.push(Figure::new(name, what, Unit::Ms, value, Target::AtMost(250.0)).of(&took));
    }
    let mut bytes = 0;
    for path in ["/", "/assets/page.css", "/assets/page.js"] {
        bytes += person.loads(path).await?.0;
    }
    let what = "… the first view with all that it loads";
    #[expect(clippy::cast_precision_loss, reason = "some kilobytes")]
    figures.push(Figure::new(
        "page_bytes",
        what,
        Unit::Bytes,
        bytes as f64,
        Target::AtMost(102_400.0),
    ));
    drop(members);
    Ok(figures)
}

/// Processor time of the node of the page: of the view that takes most, and of none after all were closed.
async fn costs(run: &Run, mesh: &Mesh, room: &str) -> Result<Vec<Figure>> {
    let (node, lasts) = (&mesh.nodes[0], run.lasts(20));
    let quiet = async || {
        share(node, async {
            sleep(lasts).await;
            Ok(())
        })
        .await
    };
    let never = quiet().await?;
    let person = Person::enters(node).await?;
    let mut most: Option<f64> = None;
    for path in [
        "/ui/live/mesh",
        "/ui/live/rooms",
        "/ui/live/agents",
        &format!("/ui/rooms/{room}/live?after=0"),
    ] {
        let mut live = person.opens(path).await?;
        let with = share(node, live.is_open_for(lasts)).await?;
        run.tell(&format!("{path}: {with:.2} % of a core, {never:.2} % without"));
        most = Some(most.unwrap_or(0.0).max(with - never));
    }
    let Some(most) = most else { bail!("no view was measured") };
    let closed = quiet().await? - never;
    Ok(vec![
        Figure::new(
            "page_open",
            "a page that is open in an idle mesh of 5, the costliest view: of one core, above the node without",
            Unit::Percent,
            most.max(0.0),
            Target::AtMost(0.5),
        ),
        Figure::new(
            "page_closed",
            "… after all pages were closed",
            Unit::Percent,
            closed.max(0.0),
            Target::AtMost(0.1),
        ),
    ])
}
