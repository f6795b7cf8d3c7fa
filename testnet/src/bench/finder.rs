//! The index of agents, over HTTP: jobs that are searched, mail, and a node that joins a mesh with many records.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    figure::{Figure, Target, Unit},
    run::Run,
};
use crate::{
    distribution::Distribution,
    finder::{Account, Chance, Client, now},
};

/// Jobs that are searched, and how often.
const JOBS: u64 = 10_000;
const SEARCHES: u64 = 500;
/// Of so many jobs one is found: their first page is full.
const FOUND_OF: u64 = 10;
/// Jobs of an account: it has a profile and a time of last use besides. No account has more than 100.
const JOBS_EACH: u64 = 99;
const RECORDS_EACH: u64 = JOBS_EACH + 2;
/// Records of a mesh that a node joins.
const RECORDS: u64 = 100_000;
/// Nodes at which their accounts are registered: one takes a third of all jobs.
const FILLED: usize = 4;
/// Connections that fill an index.
const FILLERS: usize = 16;
/// Mails of one recipient, and of each of their senders: 60 a minute are taken.
const MAILS: u64 = 1_000;
const MAILS_EACH: u64 = 50;
/// How often an inbox is listed: an account asks 1,200 times a minute.
const LISTS: u64 = 500;
const MAIL_BYTES: usize = 1_024;
/// Between two looks at something that is waited for, and how long it is.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const JOINED_WITHIN: Duration = Duration::from_secs(300);

/// Fills an index: so many accounts, with jobs of which one in [`FOUND_OF`] is found. Returns how many jobs there are.
async fn fill(run: &Run, address: &str, all: Range<u64>) -> Result<u64> {
    let accounts = all.end - all.start;
    run.tell(&format!("registering {accounts} agents, with {JOBS_EACH} jobs each"));
    let filler = async |first: u64| -> Result<()> {
        let mut client = Client::at(address).await?;
        for nth in (all.start + first..all.end).step_by(FILLERS) {
            let account = client.register(&format!("bench-{nth}")).await?;
            for job in nth * JOBS_EACH..(nth + 1) * JOBS_EACH {
                client.done("POST /api/jobs/", Some(&account), Some(&offer(job))).await?;
            }
        }
        Ok(())
    };
    try_join_all((0..FILLERS as u64).map(filler)).await?;
    Ok(accounts * JOBS_EACH)
}

fn offer(nth: u64) -> Value {
    let title = if nth.is_multiple_of(FOUND_OF) { "Research" } else { "Translation" };
    json!({
        "title": format!("{title} assistant {nth}"),
        "description": "I read what you name, follow what it cites, and write a report of two pages with a list of sources. \
            Ask for a sample first. Languages are in the metadata; deadlines are one day, or as we agree.",
        "price_type": "fixed", "price": format!("{} USDC per report", nth % 100),
        "metadata": {"languages": ["en", "de"], "number": nth},
    })
}

/// `job list --search`: a page of 100 of 1,000 jobs that are found among 10,000.
pub(super) async fn search(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let address = mesh.nodes[0].http().to_owned();
    let jobs = fill(run, &address, 0..run.scaled(JOBS).div_ceil(JOBS_EACH)).await?;
    let mut client = Client::at(&address).await?;
    let mut took = Vec::new();
    for _ in 0..run.scaled(SEARCHES) {
        let began = run.clock.now_us();
        let page = client.done("GET /api/jobs/?search=research+assistant", None, None).await?;
        took.push(run.clock.now_us() - began);
        let found = page["count"].as_u64();
        ensure!(found == Some(jobs.div_ceil(FOUND_OF)), "of {jobs} jobs {found:?} are found");
    }
    mesh.stop().await?;
    let took = Distribution::new(took);
    let what = "the index of agents: a search among 10,000 jobs, p50";
    let value = took.percentile(50.0);
    let figure = Figure::new("finder_search_p50", what, Unit::Ms, value, Target::AtMost(20.0));
    Ok(vec![figure.of(&took).above("echo p50", run.floors.echo.percentile(50.0))])
}

/// Mail of 1 KiB to one recipient, and pages of the inbox.
pub(super) async fn mail(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let mut client = Client::at(mesh.nodes[0].http()).await?;
    let reader = client.register("bench-reader").await?;
    if client.ask(INBOX, Some(&reader), None).await?.0 == 404 {
        run.tell("this daemon has no mailbox (404): nothing is measured of it");
        return Ok(Vec::new());
    }
    let (mut sent, mails) = (Vec::new(), run.scaled(MAILS));
    for sender in 0..mails.div_ceil(MAILS_EACH) {
        let account = client.register(&format!("bench-sender-{sender}")).await?;
        for nth in sender * MAILS_EACH..((sender + 1) * MAILS_EACH).min(mails) {
            let body = json!({
                "recipient_id": reader.id, "subject": format!("mail {nth}"),
                "body": sealed(&account, &reader, nth)?,
            });
            let began = run.clock.now_us();
            client.done("POST /api/agents/me/send/", Some(&account), Some(&body)).await?;
            sent.push(run.clock.now_us() - began);
        }
    }
    let mut listed = Vec::new();
    for _ in 0..run.scaled(LISTS) {
        let began = run.clock.now_us();
        let page = client.done(INBOX, Some(&reader), None).await?;
        listed.push(run.clock.now_us() - began);
        ensure!(page["count"].as_u64() == Some(mails), "of {mails} mails {} came", page["count"]);
    }
    mesh.stop().await?;
    let rows = [
        ("finder_send_p50", "the index of agents: a mail of 1 KiB is sent, p50", 15.0, sent),
        ("finder_inbox_p50", "… a page of an inbox of 1,000, p50", 5.0, listed),
    ];
    let figures = rows.into_iter().map(|(name, what, most, took)| {
        let took = Distribution::new(took);
        let value = took.percentile(50.0);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most)).of(&took)
    });
    Ok(figures.collect())
}

const INBOX: &str = "GET /api/agents/me/inbox/";

/// A text that does not get shorter by compression, as the client of an account would send it.
fn sealed(from: &Account, to: &Account, nth: u64) -> Result<String> {
    let mut chance = Chance::new(&format!("{} {nth}", from.id));
    let mut text = vec![0; MAIL_BYTES];
    chance.fill(&mut text);
    text.iter_mut().for_each(|byte| *byte = b' ' + *byte % 95);
    let to = [to.secret.certificate()];
    Ok(from.secret.seal(&to, &text, now(), &mut |bytes| chance.fill(bytes))?)
}

/// Until a node lists so many jobs.
async fn lists(address: &str, jobs: u64) -> Result<()> {
    let mut client = Client::at(address).await?;
    let began = Instant::now();
    loop {
        let page = client.done("GET /api/jobs/?page_size=1", None, None).await?;
        if page["count"].as_u64() == Some(jobs) {
            return Ok(());
        }
        let counted = &page["count"];
        ensure!(began.elapsed() < JOINED_WITHIN, "{counted} of {jobs} jobs came");
        sleep(LOOK_EVERY).await;
    }
}

/// A node that joins a mesh with 100,000 records, until it lists all jobs.
pub(super) async fn join(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(FILLED).await?;
    let each = run.scaled(RECORDS).div_ceil(RECORDS_EACH).div_ceil(FILLED as u64);
    let mut jobs = 0;
    for (nth, node) in (0..).zip(&mesh.nodes) {
        jobs += fill(run, node.http(), nth * each..(nth + 1) * each).await?;
    }
    for node in &mesh.nodes {
        lists(node.http(), jobs).await?;
    }
    let ticket = mesh.nodes[0].ready().ticket.clone();
    let began = Instant::now();
    let newcomer = mesh.add("newcomer", Some(ticket)).await?;
    lists(newcomer.http(), jobs).await?;
    let took = began.elapsed().as_secs_f64();
    mesh.nodes.push(newcomer);
    mesh.stop().await?;
    let what = "a new node starts and has an index of 100,000 records";
    Ok(vec![Figure::new("finder_join", what, Unit::Seconds, took, Target::AtMost(10.0))])
}
