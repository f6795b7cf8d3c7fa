//! A demonstration for people: three nodes, six agents that speak in six ways, a kill, a split and a heal.
//!
//! Everything is real: daemons, sockets, dialects. Everything that is told was seen by the agent that it is told of,
//! and an agent that does not hear what it should within a minute ends the demonstration with an error.
//!
//! In reading order: `teller` (the words, and their pace), `stage` (nodes and the links between them), `cast` (the
//! agents, and how each hears), `story` (scene by scene). Of agents it uses the clients of this package.

mod cast;
mod stage;
mod story;
mod teller;

use std::{path::PathBuf, time::Duration};

use anyhow::Result;

use self::{stage::Stage, story::Company, teller::Teller};

/// How to play it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The daemon.
    pub binary: PathBuf,
    /// The length of all pauses, of those for which it takes 90 s.
    pub scale: f64,
}

/// The curtain has fallen.
#[derive(Debug)]
pub struct Ended {
    /// Messages that all nodes have.
    pub messages: usize,
    /// From the first word to the last.
    pub took: Duration,
    stage: Stage,
}

impl Ended {
    /// Ends the nodes in good order.
    ///
    /// # Errors
    ///
    /// One does not end.
    pub async fn stop(self) -> Result<()> {
        self.stage.stop().await
    }
}

/// Plays it. `tell` is given each line as it happens, `watch` the page of a node, signed in, when there is one.
///
/// # Errors
///
/// A node or an agent does not do what it should.
pub async fn play(
    setting: &Setting,
    tell: &mut dyn FnMut(&str),
    watch: &mut dyn FnMut(&str),
) -> Result<Ended> {
    let mut teller = Teller::new(setting.scale, tell);
    let stage = story::nodes(setting, &mut teller).await?;
    watch(&stage.link().await?);
    let mut company = Company::come(stage, teller).await?;
    let messages = company.play().await?;
    let took = company.teller.elapsed();
    Ok(Ended { messages, took, stage: company.stage })
}
