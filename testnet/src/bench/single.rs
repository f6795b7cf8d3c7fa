//! Rows that one server is enough for: any ClawChat server can be measured by them.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;

use super::{
    connection::{Connection, Incoming, Speaker},
    figure::{Figure, Target, Unit},
    load::{FanOut, Pump, Pumped, Server, one_in_flight, pump},
    run::Run,
};
use crate::distribution::Distribution;

/// Agents that send as fast as they can.
const SENDERS: usize = 8;
/// And how many messages each of them has in flight.
const IN_FLIGHT: u64 = 16;
/// When a room is filled.
const FILL_IN_FLIGHT: u64 = 64;
/// Agents that read pages, each one after the other.
const READERS: usize = 4;
/// Messages of a page.
const PAGE: u64 = 50;
/// Messages of a room of which pages are read.
const STORED: u64 = 100_000;

/// One sender, one in flight.
pub(super) async fn ok(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let mut sender = server.attach("one").await?;
    let room = sender.make_room(&run.name("ok")).await?;
    one_in_flight(&mut sender, &room, run.clock, run.warm_up()).await?;
    let took = one_in_flight(&mut sender, &room, run.clock, run.lasts(5)).await?;
    let took = Distribution::new(took);
    let fsync = run.floors.fsync.percentile(50.0);
    let figure = |name, what, percent, target| {
        let value = took.percentile(percent);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(target)).of(&took)
    };
    Ok(vec![
        figure("ok_p50", "one sender, one in flight: `ok` p50", 50.0, 3.0 * fsync + 0.3)
            .above("fsync p50", fsync),
        figure("ok_p99", "… p99", 99.0, 10.0).above("fsync p99", run.floors.fsync.percentile(99.0)),
    ])
}

/// Many senders, each in a room of its own.
pub(super) async fn rooms(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let mut pumps = Vec::new();
    for sender in 0..SENDERS {
        let mut connection = server.attach(&format!("own{sender}")).await?;
        let room = connection.make_room(&run.name(&format!("own{sender}"))).await?;
        pumps.push(Pump::new(connection, &room, sender, run.clock));
    }
    let what = "8 senders × 16 in flight, one room each: acknowledged";
    throughput(run, &mut pumps, "rooms", what, 25_000.0).await
}

/// Many senders in one room, each of whom hears the others.
pub(super) async fn room(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let mut first = server.attach("shared0").await?;
    let room = first.make_room(&run.name("shared")).await?;
    let mut pumps = vec![Pump::new(first, &room, 0, run.clock)];
    for sender in 1..SENDERS {
        let mut connection = server.attach(&format!("shared{sender}")).await?;
        connection.join(&room).await?;
        pumps.push(Pump::new(connection, &room, sender, run.clock));
    }
    let what = "8 senders × 16 in flight, one room of 8: each to 7 others";
    throughput(run, &mut pumps, "room", what, 20_000.0).await
}

async fn throughput(
    run: &Run,
    pumps: &mut [Pump],
    name: &'static str,
    what: &'static str,
    target: f64,
) -> Result<Vec<Figure>> {
    pump(pumps, IN_FLIGHT, run.warm_up(), u64::MAX).await?;
    let Pumped { acknowledged, took } = pump(pumps, IN_FLIGHT, run.lasts(5), u64::MAX).await?;
    let value = acknowledged as f64 / took.as_secs_f64();
    Ok(vec![Figure::new(name, what, Unit::PerSecond, value, Target::AtLeast(target))])
}

/// One speaks, many hear it.
pub(super) async fn fan_out_to_some(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let (_, heard) = fan_out_to(run, server, 50, 100).await?;
    let figure = |name, what, percent, most| {
        let value = heard.percentile(percent);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most)).of(&heard)
    };
    Ok(vec![
        figure("fan_out_50_p50", "to 50 members, 100 messages/s: delivery p50", 50.0, 1.5)
            .above("echo p50", run.floors.echo.percentile(50.0)),
        figure("fan_out_50_p99", "… p99", 99.0, 8.0)
            .above("fsync p99", run.floors.fsync.percentile(99.0)),
    ])
}

/// The same to very many.
pub(super) async fn fan_out_to_many(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let (_, heard) = fan_out_to(run, server, 1_000, 20).await?;
    let what = "to 1,000 members, 20 messages/s: delivery p99";
    let value = heard.percentile(99.0);
    Ok(vec![
        Figure::new("fan_out_1000_p99", what, Unit::Ms, value, Target::AtMost(60.0))
            .of(&heard)
            .above("fsync p99", run.floors.fsync.percentile(99.0)),
    ])
}

async fn fan_out_to(
    run: &Run,
    server: &Server,
    count: usize,
    per_second: u32,
) -> Result<(Distribution, Distribution)> {
    let mut sender = server.attach("speaker").await?;
    let room = sender.make_room(&run.name(&format!("fan{count}"))).await?;
    let mut members = Vec::with_capacity(count);
    for n in 0..count {
        let mut member = server.attach(&format!("member{n}")).await?;
        member.join(&room).await?;
        members.push(member);
    }
    let warm_up = FanOut { room: &room, clock: run.clock, per_second, lasts: run.warm_up() };
    // Until all have heard of all who joined: with 1,000 members a million events.
    warm_up.run(&mut sender, &mut members).await?;
    let fan_out = FanOut { lasts: run.lasts(10), ..warm_up };
    let (oks, heard) = fan_out.run(&mut sender, &mut members).await?;
    Ok((Distribution::new(oks), Distribution::new(heard)))
}

/// Fills a room of its own with so many messages.
pub(super) async fn fill(run: &Run, server: &Server, name: &str, count: u64) -> Result<String> {
    let mut first = server.attach("filler0").await?;
    let room = first.make_room(&run.name(name)).await?;
    let mut pumps = vec![Pump::new(first, &room, 0, run.clock)];
    let forever = Duration::from_secs(3_600);
    pump(&mut pumps, FILL_IN_FLIGHT, forever, count).await?;
    Ok(room)
}

/// Pages of a long history.
pub(super) async fn history(run: &Run, server: &Server) -> Result<Vec<Figure>> {
    let stored = run.scaled(STORED);
    let room = fill(run, server, "history", stored).await?;
    let mut readers = Vec::new();
    for n in 0..READERS {
        readers.push(server.attach(&format!("reader{n}")).await?);
    }
    let until = Instant::now() + run.lasts(5);
    let pages = Pages { run, room: &room, stored, until };
    let began = Instant::now();
    let reading = readers.iter_mut().enumerate().map(|(n, reader)| {
        // Each from elsewhere, in strides that meet no page twice for long.
        let first = n as u64 * stored / READERS as u64;
        pages.read(reader, first)
    });
    let took: Vec<u64> = try_join_all(reading).await?.into_iter().flatten().collect();
    let per_second = took.len() as f64 / began.elapsed().as_secs_f64();
    let took = Distribution::new(took);
    let what = "`get_history`, pages of 50 of 100,000";
    Ok(vec![
        Figure::new("history", what, Unit::PerSecond, per_second, Target::AtLeast(8_000.0)),
        Figure::new("history_p99", "… p99", Unit::Ms, took.percentile(99.0), Target::AtMost(5.0))
            .of(&took)
            .above("echo p99", run.floors.echo.percentile(99.0)),
    ])
}

/// Pages of a room, read in strides.
struct Pages<'a> {
    run: &'a Run,
    room: &'a str,
    stored: u64,
    until: Instant,
}

impl Pages<'_> {
    /// Returns how long each page took, in microseconds.
    async fn read(&self, reader: &mut Connection, first: u64) -> Result<Vec<u64>> {
        /// Coprime to the number of messages.
        const STRIDE: u64 = 7_919;
        let (mut since, mut took) = (first, Vec::new());
        let last = self.stored.saturating_sub(PAGE).max(1);
        while Instant::now() < self.until {
            since = (since + STRIDE) % last;
            let began = self.run.clock.now_us();
            let asked = json!({ "room_id": self.room, "limit": PAGE, "since_seq": since });
            let number = reader.push("get_history", &asked);
            reader.flush().await?;
            while !matches!(reader.incoming().await?, Incoming::Ok(to) if to == number) {}
            took.push(self.run.clock.now_us() - began);
        }
        Ok(took)
    }
}
