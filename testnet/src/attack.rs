//! Attacks on real daemons that serve honest agents meanwhile, measured and judged.
//!
//! An attacker is an insider: a real daemon joins the mesh with its ticket, is admitted, and stops; with its keys a
//! peer goes on that keeps no rule. In reading order: [`kind`] (what there is), `insider` (how to become one),
//! `lies` (what is said well formed: the repertoire of the simulated liar), `abuse` (what is no conversation at all),
//! `clients` (enemies at the agents' doors), `load` (honest agents, and what they notice), `judge` (what must hold).

mod abuse;
mod clients;
mod insider;
mod judge;
pub mod kind;
mod lies;
mod load;

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, sleep},
};

use self::{
    insider::Insider,
    kind::{Blame, Kind, Means},
    load::Load,
};
pub use self::{
    judge::{Broken, Limits},
    load::Percentiles,
};
use crate::process::Mesh;

/// How an attack is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How long honest agents are measured before the attack, and during it.
    pub seconds: f64,
    /// Messages that each honest agent sends in a second.
    pub rate: f64,
    /// Threads of the attacker.
    pub threads: usize,
    /// Connections, or slow readers, of those kinds that consist of many.
    pub many: usize,
    /// How long the attack goes on.
    pub until: Until,
}

/// When an attack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When its seconds are over: for figures.
    Over,
    /// When the offender is named, if it is to be, and honest agents were answered meanwhile; at the latest after its
    /// seconds.
    Seen,
}

/// What came of one.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub kind: Kind,
    /// From a request to its `ok`, before and during.
    pub ok: [Percentiles; 2],
    /// From a request to its message at the other agents, before and during.
    pub delivered: [Percentiles; 2],
    /// The largest resident set of each daemon, in bytes.
    pub rss: Vec<u64>,
    /// What the attacker did, for people.
    pub done: String,
    /// The id of the node that did it; `None` if it was none.
    pub offender: Option<String>,
    /// What the daemons' `status` says about it, the most telling one.
    pub named: Option<String>,
    /// Acknowledged messages, and those of them that somebody did not get.
    pub acknowledged: (u64, u64),
}

/// Plays one attack against a mesh whose agents are otherwise left alone.
///
/// # Errors
///
/// The daemons, or the honest agents, do not do what they should: that is a broken promise, too.
pub async fn play(mesh: &mut Mesh, kind: Kind, setting: Setting) -> Result<Outcome> {
    let phase = Duration::from_secs_f64(setting.seconds.max(kind.seconds_min()));
    let insider = match kind.means() {
        Means::Lies(_) | Means::Abuse(_) => Some(Insider::join(mesh).await?),
        Means::Clients(_) | Means::Nothing => None,
    };
    let load = Load::start(mesh, setting.rate).await?;
    if setting.until == Until::Over {
        // What opening rooms and joining costs is not the load's.
        sleep(Duration::from_secs(1)).await;
        load.enter(load::Phase::Before);
        sleep(phase).await;
    }
    load.enter(load::Phase::During);
    let attacker = attacker(setting.threads)?;
    let until = Instant::now() + phase;
    let scene = kind::Scene::new(mesh, setting, until);
    let attack = attacker.spawn(kind::perform(kind, insider.clone(), scene));
    let mut rss = judge::Resident::default();
    let mut named = None;
    let done = loop {
        rss.look(mesh)?;
        if setting.until == Until::Seen && load.is_served() {
            named = judge::named(mesh, insider.as_ref()).await?;
            if named.is_some() || kind.blame() != Blame::Named {
                break format!("as much as it took ({kind})");
            }
        }
        if Instant::now() >= until {
            break attack.await.context("the attacker panicked")??;
        }
        sleep(judge::LOOK_EVERY).await;
    };
    // Threads of a runtime are not waited for in another one.
    attacker.shutdown_background();
    load.enter(load::Phase::After);
    let heard = load.finish().await?;
    rss.look(mesh)?;
    if named.is_none() {
        named = judge::named(mesh, insider.as_ref()).await?;
    }
    Ok(Outcome {
        kind,
        ok: heard.ok,
        delivered: heard.delivered,
        rss: rss.most,
        done,
        offender: insider.map(|it| it.node().to_string()),
        named,
        acknowledged: (heard.acknowledged, heard.missing),
    })
}

/// Threads of its own, which give way to the daemons: on another machine they would take nothing from them.
fn attacker(threads: usize) -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .thread_name("attacker")
        .on_thread_start(|| {
            // Without the right to, it takes what it gets.
            let _ = rustix::process::nice(10);
        })
        .enable_all()
        .build()
        .context("cannot start the attacker")
}
