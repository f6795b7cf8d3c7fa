//! Three nodes, and a link between each two that can be cut.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    http::Http,
    pipe::Pipe,
    process::{Daemon, Options, Terminal},
};

/// Nodes see within this time who is there, and who is not.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Amber,
    Blue,
    Coral,
}

/// In the order in which they start.
pub(super) const ALL: [At; 3] = [At::Amber, At::Blue, At::Coral];

impl At {
    pub(super) fn name(self) -> &'static str {
        match self {
            At::Amber => "amber",
            At::Blue => "blue",
            At::Coral => "coral",
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Stage {
    nodes: Vec<Daemon>,
    /// With the two nodes that each joins.
    links: Vec<([usize; 2], Pipe)>,
    /// The key of all agents.
    pub(super) key: String,
    /// The key of a person's program, which may see and decide all.
    pub(super) admin: String,
    /// Removed when dropped, after the daemons.
    dir: TempDir,
}

impl Stage {
    /// Starts them, each joined to those before it.
    pub(super) async fn up(binary: &Path) -> Result<Stage> {
        let dir = tempfile::Builder::new().prefix("clawmesh-demo-").tempdir()?;
        let mut stage = Stage {
            nodes: Vec::new(),
            links: Vec::new(),
            key: String::new(),
            admin: String::new(),
            dir,
        };
        for at in ALL {
            stage.start(binary, at).await?;
        }
        stage.until_each_meets([2, 2, 2]).await?;
        stage.key = stage.nodes[0].mint(&[]).await?;
        stage.admin = stage.nodes[0].mint(&["--scopes", "admin"]).await?;
        Ok(stage)
    }

    async fn start(&mut self, binary: &Path, at: At) -> Result<()> {
        let (dir, mut join) = (self.dir.path().to_owned(), Vec::new());
        for (other, there) in self.nodes.iter().enumerate() {
            let target = there.ready().listen.first().cloned().context("a node listens")?;
            let pipe = Pipe::to(target).await?;
            join.push(there.invite_at(&pipe.address().to_string()).await?);
            self.links.push(([at as usize, other], pipe));
        }
        let node = Daemon::start(Options {
            binary: binary.to_owned(),
            data_dir: dir.join(at.name()),
            name: at.name().to_owned(),
            key_file: Some(dir.join(format!("{}.key", at.name()))),
            join,
            // Else nodes would tell each other ways around the links.
            flags: vec!["--no-discovery".to_owned()],
            terminal: Terminal::Mine,
            clock: None,
        });
        self.nodes.push(node.await?);
        Ok(())
    }

    pub(super) fn node(&self, at: At) -> &Daemon {
        &self.nodes[at as usize]
    }

    pub(super) async fn kill(&mut self, at: At) -> Result<()> {
        Ok(self.nodes[at as usize].kill9().await?)
    }

    pub(super) async fn restart(&mut self, at: At) -> Result<()> {
        Ok(self.nodes[at as usize].restart().await?)
    }

    /// Cuts all links of a node, or mends them.
    pub(super) fn cut(&self, at: At, cut: bool) {
        let of_node = self.links.iter().filter(|(ends, _)| ends.contains(&(at as usize)));
        of_node.for_each(|(_, pipe)| pipe.set(|state| state.cut = cut));
    }

    /// Until each node that runs is connected with so many others.
    pub(super) async fn until_each_meets(&self, others: [usize; 3]) -> Result<()> {
        let until = Instant::now() + SEEN_WITHIN;
        for (node, others) in self.nodes.iter().zip(others) {
            while node.pid().is_some() && meets(&node.status().await?) != others {
                let name = &node.ready().name;
                ensure!(Instant::now() < until, "{name} is not connected with {others} others");
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// The page of the first node, which signs in whoever opens it first.
    pub(super) async fn link(&self) -> Result<String> {
        let address = self.nodes[0].http();
        let head = format!(
            "POST /ui/link HTTP/1.1\r\nauthorization: Bearer {}\r\ncontent-type: application/json",
            self.key
        );
        let made = Http::at(address).await?.ask(&head, "{}").await?;
        let made: Value = serde_json::from_slice(&made.body)?;
        let path = made["path"].as_str().context("a node makes a link to its page")?;
        Ok(format!("http://{address}{path}"))
    }

    pub(super) async fn stop(self) -> Result<()> {
        let mut ending = JoinSet::new();
        for mut node in self.nodes {
            ending.spawn(async move { node.stop().await.map(drop) });
        }
        Ok(ending.join_all().await.into_iter().collect::<Result<(), _>>()?)
    }
}

fn meets(status: &Value) -> usize {
    let peers = status["peers"].as_array().into_iter().flatten();
    peers.filter(|peer| peer["connected"] == true && peer["alive"] == true).count()
}
