//! One attack, and its outcome.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, sleep, sleep_until},
};

use super::{
    abuse, clients,
    insider::Insider,
    judge::{self, Broken, Limits, is_slower},
    kind::{Blame, Kind, Means},
    lies,
    load::{Load, Percentiles, Phase},
    scene::Scene,
    setting::{Setting, Until},
};
use crate::process::Mesh;

/// The outcome of an attack.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its kind.
    pub kind: Kind,
    /// From a request to its `ok`, before and during.
    pub ok: [Percentiles; 2],
    /// From a request to its message at the other agents, before and during.
    pub delivered: [Percentiles; 2],
    /// The largest resident set of each daemon, in bytes.
    pub rss: Vec<u64>,
    /// The attacker's deeds, for people.
    pub done: String,
    /// The id of the attacking node, if it was one.
    pub offender: Option<String>,
    /// The most telling `status` of a daemon about it.
    pub named: Option<String>,
    /// Acknowledged messages, and those of them that somebody did not get.
    pub acknowledged: (u64, u64),
}

impl Outcome {
    /// The limits that did not hold.
    #[must_use]
    pub fn judge(&self, limits: Limits) -> Vec<Broken> {
        let mut broken = Vec::new();
        let (kind, (acknowledged, missing)) = (self.kind, self.acknowledged);
        if missing > 0 {
            broken.push(format!("{missing} of {acknowledged} acknowledged messages were lost"));
        }
        if acknowledged == 0 {
            broken.push("nothing was acknowledged".to_owned());
        }
        if let Some(rss) = self.rss.iter().max().filter(|rss| **rss > limits.rss_bytes) {
            broken.push(format!("a daemon had {} MiB", rss / (1024 * 1024)));
        }
        for (what, [before, during]) in [("ok", self.ok), ("delivered", self.delivered)] {
            if is_slower(before, during, limits) {
                broken
                    .push(format!("{what}: p99 {:?} before, {:?} during", before.p99, during.p99));
            }
        }
        if kind.blame() == Blame::Named && self.named.is_none() {
            broken.push("no status names the offender".to_owned());
        }
        broken.into_iter().map(|what| Broken(format!("{kind}: {what}"))).collect()
    }
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
        // The cost of opening rooms and joining is not the load's.
        sleep(Duration::from_secs(1)).await;
        load.enter(Phase::Before);
        sleep(phase).await;
    }
    load.enter(Phase::During);
    let attacker = attacker(setting.threads)?;
    let until = Instant::now() + phase;
    let scene = Scene::new(mesh, load.room(), setting, until);
    let attack = attacker.spawn(perform(kind, insider.clone(), scene));
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
    load.enter(Phase::After);
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
        offender: insider.map(|insider| insider.node().to_string()),
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

/// Plays the kind's means until the scene is over. Returns the deeds, for people.
async fn perform(kind: Kind, insider: Option<Insider>, scene: Scene) -> Result<String> {
    match (kind.means(), insider) {
        (Means::Lies(theme), Some(insider)) => lies::tell(insider, theme, scene).await,
        (Means::Abuse(abuse), Some(insider)) => abuse::perform(insider, abuse, scene).await,
        (Means::Clients(enemy), _) => clients::perform(enemy, scene).await,
        (Means::Nothing, _) => {
            sleep_until(scene.until).await;
            Ok("nothing".to_owned())
        }
        (Means::Lies(_) | Means::Abuse(_), None) => Ok("nothing".to_owned()),
    }
}
