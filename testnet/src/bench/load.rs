//! Kinds of load that rows are made of.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connection::{Clock, Connection, Incoming, SILENT, Said, Speaker};
use crate::process::Mesh;

/// A server at which agents attach.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// `HOST:PORT`.
    pub(super) address: String,
    pub(super) key: Option<String>,
}

impl Server {
    /// A node of a mesh.
    pub(super) fn of(mesh: &Mesh, node: usize) -> Server {
        let key = mesh.key().map(str::to_owned);
        Server { address: mesh.nodes[node].tcp().to_owned(), key }
    }

    pub(super) async fn attach(&self, name: &str) -> Result<Connection> {
        Connection::attach(&self.address, self.key.as_deref(), name).await
    }
}

/// Sends one message after the other, each when the one before was acknowledged. How long each took, in
/// microseconds.
pub(super) async fn one_in_flight(
    connection: &mut impl Speaker,
    room: &str,
    clock: Clock,
    lasts: Duration,
) -> Result<Vec<u64>> {
    let (began, mut took, mut count) = (Instant::now(), Vec::new(), 0);
    while began.elapsed() < lasts {
        let sent = clock.now_us();
        let number = connection.say(room, Said { sender: 0, count, at_us: sent });
        count += 1;
        connection.flush().await?;
        while !matches!(connection.incoming().await?, Incoming::Ok(to) if to == number) {}
        took.push(clock.now_us() - sent);
    }
    Ok(took)
}

/// A sender that keeps so many messages in flight, and hears the others of its room.
#[derive(Debug)]
pub(super) struct Pump<C = Connection> {
    connection: C,
    room: String,
    sender: usize,
    clock: Clock,
    sent: u64,
    acknowledged: u64,
    /// How many it heard of each other sender: none may be missing, none come twice.
    heard: BTreeMap<usize, u64>,
}

impl<C: Speaker> Pump<C> {
    pub(super) fn new(connection: C, room: &str, sender: usize, clock: Clock) -> Pump<C> {
        let room = room.to_owned();
        Pump { connection, room, sender, clock, sent: 0, acknowledged: 0, heard: BTreeMap::new() }
    }

    /// Sends until `until`, or until `most` were sent; then waits for messages in flight.
    async fn run(&mut self, window: u64, until: Instant, most: u64) -> Result<()> {
        loop {
            let goes_on = self.sent < most && Instant::now() < until;
            while goes_on && self.sent - self.acknowledged < window && self.sent < most {
                let at_us = self.clock.now_us();
                let said = Said { sender: self.sender, count: self.sent, at_us };
                self.connection.say(&self.room, said);
                self.sent += 1;
            }
            self.connection.flush().await?;
            if self.sent == self.acknowledged {
                return Ok(());
            }
            self.take().await?;
            while self.connection.has_more() {
                self.take().await?;
            }
        }
    }

    async fn take(&mut self) -> Result<()> {
        match self.connection.incoming().await? {
            Incoming::Ok(_) => self.acknowledged += 1,
            Incoming::Said(said) => {
                let heard = self.heard.entry(said.sender).or_default();
                ensure!(
                    said.count == *heard,
                    "sender {} was heard {} times, and now with its message {}",
                    said.sender,
                    heard,
                    said.count
                );
                *heard += 1;
            }
            Incoming::Other => {}
        }
        Ok(())
    }

    /// Reads until all that these sent was heard.
    async fn hear_all(&mut self, sent: &BTreeMap<usize, u64>) -> Result<()> {
        let missing = |heard: &BTreeMap<usize, u64>| {
            sent.iter().any(|(sender, all)| heard.get(sender).copied().unwrap_or_default() < *all)
        };
        while missing(&self.heard) {
            self.take().await?;
        }
        Ok(())
    }
}

/// The result of pumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pumped {
    /// Messages that were acknowledged.
    pub(super) acknowledged: u64,
    /// From the first one sent until everybody had heard everything.
    pub(super) took: Duration,
}

/// Runs all of these at once. Those in one room hear each other, everything, each once.
pub(super) async fn pump<C: Speaker>(
    pumps: &mut [Pump<C>],
    window: u64,
    lasts: Duration,
    most: u64,
) -> Result<Pumped> {
    let began = Instant::now();
    let until = began + lasts;
    let before: u64 = pumps.iter().map(|pump| pump.acknowledged).sum();
    let most: Vec<u64> = pumps.iter().map(|pump| pump.sent.saturating_add(most)).collect();
    let running = pumps.iter_mut().zip(most).map(|(pump, most)| pump.run(window, until, most));
    try_join_all(running).await?;
    let sent: Vec<(String, usize, u64)> =
        pumps.iter().map(|pump| (pump.room.clone(), pump.sender, pump.sent)).collect();
    let hearing = pumps.iter_mut().map(|pump| {
        let others =
            sent.iter().filter(|(room, sender, _)| *room == pump.room && *sender != pump.sender);
        let others = others.map(|(_, sender, sent)| (*sender, *sent)).collect();
        async move { pump.hear_all(&others).await.context("not everything was heard") }
    });
    try_join_all(hearing).await?;
    let acknowledged = pumps.iter().map(|pump| pump.acknowledged).sum::<u64>() - before;
    Ok(Pumped { acknowledged, took: began.elapsed() })
}

/// One says something so many times a second, all others of the room hear it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FanOut<'a> {
    pub(super) room: &'a str,
    pub(super) clock: Clock,
    pub(super) per_second: u32,
    pub(super) lasts: Duration,
}

impl FanOut<'_> {
    /// Returns how long each acknowledgement and each delivery took, in microseconds.
    pub(super) async fn run(
        self,
        sender: &mut Connection,
        members: &mut [Connection],
    ) -> Result<(Vec<u64>, Vec<u64>)> {
        let count = u64::from(self.per_second) * self.lasts.as_secs().max(1);
        let hearing = members.iter_mut().map(|member| hear(member, self.clock, count));
        let (oks, heard) = tokio::join!(self.say(sender, count), join_all(hearing));
        let mut deliveries = Vec::new();
        for heard in heard {
            deliveries.extend(heard?);
        }
        Ok((oks?, deliveries))
    }

    async fn say(self, connection: &mut Connection, count: u64) -> Result<Vec<u64>> {
        let mut beat = interval(Duration::from_secs(1) / self.per_second);
        beat.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut sent, mut took) = (BTreeMap::new(), Vec::new());
        for count in 0..count {
            beat.tick().await;
            let at_us = self.clock.now_us();
            sent.insert(connection.say(self.room, Said { sender: 0, count, at_us }), at_us);
            connection.flush().await?;
            // At these rates an acknowledgement is here long before the next message.
            while !sent.is_empty() {
                if let Incoming::Ok(to) = connection.incoming().await?
                    && let Some(at_us) = sent.remove(&to)
                {
                    took.push(self.clock.now_us() - at_us);
                }
            }
        }
        Ok(took)
    }
}

async fn hear(connection: &mut Connection, clock: Clock, count: u64) -> Result<Vec<u64>> {
    let mut took = Vec::new();
    let mut next = 0;
    while next < count {
        let incoming = timeout(SILENT, connection.incoming()).await;
        if let Incoming::Said(said) = incoming.context("a message did not come")?? {
            ensure!(said.count == next, "message {} came instead of {next}", said.count);
            next += 1;
            took.push(clock.now_us() - said.at_us);
        }
    }
    Ok(took)
}
