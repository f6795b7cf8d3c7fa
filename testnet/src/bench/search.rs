//! Searches in a node with a million messages.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    connection::Connection,
    figure::{Figure, Target, Unit},
    keeping::fill_rooms,
    load::Server,
    run::Run,
};
use crate::distribution::Distribution;

/// Rooms, and messages in all of them.
const ROOMS: u64 = 1_000;
const MESSAGES: u64 = 1_000_000;
/// Searches of each kind, one after the other.
const SEARCHES: u64 = 200;
/// The index is complete within this time after the last message.
const INDEXED_WITHIN: Duration = Duration::from_secs(1_800);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The first page comes within this time. Milliseconds.
const FIRST_MS: f64 = 200.0;

/// One node that has all: words that every message has, words that one has, that none has, and phrases.
pub(super) async fn search(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let server = Server::of(&mesh, 0);
    let messages = fill_rooms(run, &server, ROOMS, run.scaled(MESSAGES)).await?;
    let began = Instant::now();
    let mut asker = server.attach("asker").await?;
    run.tell("the index is awaited");
    while asker.call("search", &json!({ "text": "1", "limit": 1 })).await?["behind"] == true {
        ensure!(began.elapsed() < INDEXED_WITHIN, "the index is not complete");
        sleep(LOOK_EVERY).await;
    }
    let indexed = began.elapsed().as_secs_f64();
    // The text of a message: its sender, its count, its time, and many x.
    let mut took: [Vec<u64>; 4] = Default::default();
    let newest = first(&mut asker, "1").await?;
    for nth in 0..run.scaled(SEARCHES) {
        let text = newest[usize::try_from(nth)? % newest.len()]["content"].as_str().unwrap_or("");
        let mut words = text.split(' ');
        let (sender, count) = (words.next().context("a sender")?, words.next().context("a count")?);
        let time = words.next().context("a time")?;
        let phrase = format!("\"{sender} {count} {time}\"");
        let asked = [sender, time, "nowhere", &phrase];
        for (kind, text) in asked.into_iter().enumerate() {
            let began = run.clock.now_us();
            let found = first(&mut asker, text).await?;
            took[kind].push(run.clock.now_us() - began);
            let expected = if kind == 2 { found.is_empty() } else { !found.is_empty() };
            ensure!(expected, "a search for {text} finds {}", found.len());
        }
    }
    drop(asker);
    mesh.nodes[0].stop().await?;
    let index = std::fs::metadata(mesh.nodes[0].ready().data_dir.join("search.redb"))?.len();
    let names = [
        ("search_common_p99", "a search in 1,000,000 messages for a word of many: first page, p99"),
        ("search_rare_p99", "… for a word that one has: p99"),
        ("search_none_p99", "… for a word that none has: p99"),
        ("search_phrase_p99", "… for a phrase: p99"),
    ];
    let figures = names.into_iter().zip(took).map(|((name, what), took)| {
        let took = Distribution::new(took);
        let value = took.percentile(99.0);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(FIRST_MS)).of(&took)
    });
    let mut figures: Vec<Figure> = figures.collect();
    let what = "… the index is complete after the last message";
    figures.push(Figure::new(
        "search_indexed",
        what,
        Unit::Seconds,
        indexed,
        Target::AtMost(180.0),
    ));
    let (what, each) = ("… the index: bytes per message of 200", index as f64 / messages as f64);
    figures.push(Figure::new("search_disk", what, Unit::Bytes, each, Target::AtMost(150.0)));
    Ok(figures)
}

/// The first page.
async fn first(asker: &mut Connection, text: &str) -> Result<Vec<Value>> {
    let mut found = asker.call("search", &json!({ "text": text, "limit": 20 })).await?;
    let messages =
        found["messages"].as_array_mut().context("a search is answered with messages")?;
    Ok(std::mem::take(messages))
}
