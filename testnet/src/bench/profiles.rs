//! Rows of records: an agent's words about itself, here and at another node.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    figure::{Figure, Target, Unit},
    load::Server,
    run::Run,
};
use crate::{
    distribution::Distribution,
    process::{Auth, Mesh},
};

/// Changes, one after the other.
const CHANGES: u64 = 500;
/// Cards of a whole profile: as many as one may have.
const CARDS: usize = 64;
/// How long another node may take to show a change. Milliseconds.
const SHOWN_WITHIN_MS: u64 = 10_000;

/// One agent changes a field, the next time when another node shows it; then profiles are read, small ones and whole
/// ones. Only keys sign records, so these nodes check them.
pub(super) async fn profile(run: &Run) -> Result<Vec<Figure>> {
    let mut plan = run.plan(2)?;
    plan.auth = Auth::Key;
    let mut mesh = Mesh::up(plan).await?;
    let mut here = Server::of(&mesh, 0).attach("here").await?;
    let mut there = Server::of(&mesh, 1).attach("there").await?;
    let mut took: [Vec<u64>; 4] = Default::default();
    let mut question = Value::Null;
    for nth in 0..run.scaled(CHANGES) {
        let text = format!("says {nth}");
        let began = run.clock.now_us();
        let own = here.call("set_profile", &json!({ "description": text })).await?;
        took[0].push(run.clock.now_us() - began);
        question = json!({ "agent_id": own["agent_id"] });
        while there.call("get_profile", &question).await?["description"] != *text {
            let waits = run.clock.now_us() - began;
            ensure!(waits < SHOWN_WITHIN_MS * 1_000, "the other node does not show the change");
        }
        took[1].push(run.clock.now_us() - began);
    }
    for whole in [false, true] {
        if whole {
            let card = |n: usize| json!({ "name": format!("card {n}"), "text": "x".repeat(200) });
            let cards: Vec<Value> = (0..CARDS).map(card).collect();
            here.call("set_profile", &json!({ "cards": cards })).await?;
        }
        for _ in 0..run.scaled(CHANGES) {
            let began = run.clock.now_us();
            let read = here.call("get_profile", &question).await?;
            took[2 + usize::from(whole)].push(run.clock.now_us() - began);
            let cards = read["cards"].as_array().map_or(0, Vec::len);
            ensure!(cards == if whole { CARDS } else { 0 }, "{cards} cards are read");
        }
    }
    mesh.stop().await.context("the mesh stops")?;
    let names = [
        ("profile_set_p50", "a field of a profile is changed: answer p50", 3.0),
        ("profile_seen_p50", "… until another node shows it, asked again and again: p50", 6.0),
        ("profile_read_p50", "… a profile of one field is read: p50", 1.0),
        ("profile_page_p50", "… one with 64 cards: p50", 3.0),
    ];
    let figures = names.into_iter().zip(took).map(|((name, what, most), took)| {
        let took = Distribution::new(took);
        let value = took.percentile(50.0);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most)).of(&took)
    });
    Ok(figures.collect())
}
