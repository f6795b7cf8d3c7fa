//! Those who look on, by the thousand, at the room in which honest agents work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use super::scene::Scene;
use crate::tank::Client;

/// Of so many shares each comes one after the other.
const SHARES: usize = 16;
/// The longest that one waits to be let in.
const ONE_WITHIN: Duration = Duration::from_secs(10);
/// The time that one stays who comes again and again.
const STAYS: Duration = Duration::from_millis(200);
/// Words of one who never stops, before it reads what became of them.
const WORDS: usize = 64;
/// Before one that was turned away tries again.
const PAUSE: Duration = Duration::from_millis(50);

/// What one of them does.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Reads,
    /// It never reads, so its frames wait at the node.
    IsDeaf,
    Talks,
    /// It goes, and comes again as another one.
    ComesAgain,
}

const HABITS: [Habit; 4] = [Habit::Reads, Habit::IsDeaf, Habit::Talks, Habit::ComesAgain];

#[derive(Debug, Default)]
struct Counts {
    came: AtomicU64,
    turned: AtomicU64,
    frames: AtomicU64,
    words: AtomicU64,
}

/// As many as `many`, half of them with a key; and then whether one who comes is still shown what happens.
pub(super) async fn look_on(scene: Scene) -> Result<String> {
    let counts = Arc::new(Counts::default());
    let mut crowd = JoinSet::new();
    for share in 0..SHARES {
        let (scene, counts) = (scene.clone(), counts.clone());
        crowd.spawn(async move {
            let mut here = JoinSet::new();
            for nth in (share..scene.many).step_by(SHARES) {
                if scene.is_over() {
                    break;
                }
                let habit = HABITS[nth / 2 % HABITS.len()];
                let one = Onlooker { scene: scene.clone(), counts: counts.clone(), habit, nth };
                here.spawn(one.stays());
                sleep(PAUSE / 10).await;
            }
            here.join_all().await;
        });
    }
    crowd.join_all().await;
    let honest = async {
        let (mut client, first) = Client::spectator(&scene.http, &scene.room, None).await?;
        ensure!(first["type"] == "spectator.welcome", "it is told {first}");
        client.hears("spectator.activity").await
    };
    timeout(ONE_WITHIN, honest).await.context("nothing is shown any more")??;
    let Counts { came, turned, frames, words } = &*counts;
    Ok(format!(
        "{} came, {} turned away, {} frames read, {} words",
        came.load(Relaxed),
        turned.load(Relaxed),
        frames.load(Relaxed),
        words.load(Relaxed)
    ))
}

struct Onlooker {
    scene: Scene,
    counts: Arc<Counts>,
    habit: Habit,
    nth: usize,
}

impl Onlooker {
    async fn stays(self) {
        while !self.scene.is_over() {
            // It is hung up on, turned away, or too late: it comes again.
            drop(self.comes().await);
            sleep(PAUSE).await;
        }
    }

    async fn comes(&self) -> Result<()> {
        let key = self.scene.key.as_deref().filter(|_| self.nth.is_multiple_of(2));
        let coming = Client::spectator(&self.scene.http, &self.scene.room, key);
        let (client, first) = timeout(ONE_WITHIN, coming).await??;
        if first["type"] != "spectator.welcome" {
            self.counts.turned.fetch_add(1, Relaxed);
            return Ok(());
        }
        self.counts.came.fetch_add(1, Relaxed);
        tokio::select! {
            done = self.does(client) => done,
            () = sleep_until(self.scene.until) => Ok(()),
        }
    }

    async fn does(&self, mut client: Client) -> Result<()> {
        match self.habit {
            Habit::Reads => client.counts(&self.counts.frames).await,
            Habit::IsDeaf => {
                sleep_until(self.scene.until).await;
                Ok(())
            }
            Habit::Talks => loop {
                for _ in 0..WORDS {
                    let said = json!({ "content": { "text": "look at me" } });
                    client.say("chat.spectator_message", &said).await?;
                    self.counts.words.fetch_add(1, Relaxed);
                }
                client.next().await?;
            },
            Habit::ComesAgain => {
                sleep(STAYS).await;
                Ok(())
            }
        }
    }
}
