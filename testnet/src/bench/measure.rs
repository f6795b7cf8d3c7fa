//! The rows of a run, one after the other.

use anyhow::Result;

use super::{
    clawtank,
    figure::Figure,
    finder, goclaw, keeping, nats, nodes, page, profiles,
    report::Report,
    run::Run,
    search,
    setting::{Row, Setting},
    single, tools,
};

/// Measures.
///
/// # Errors
///
/// A server is not there, refuses, loses or repeats a message, hangs up, or says nothing for a minute.
pub async fn measure(setting: Setting) -> Result<Report> {
    let rows = setting.rows.clone();
    let run = Run::start(setting).await?;
    let beside = run.beside();
    let mut figures = Vec::new();
    for row in rows {
        run.tell(&format!("measuring {}", run.called(row)));
        let others = match &beside {
            Some(other) => measured(other, row).await?,
            None => Vec::new(),
        };
        let mut own = measured(&run, row).await?;
        for (figure, other) in own.iter_mut().zip(others) {
            figure.beside = Some(other.value);
        }
        figures.extend(own);
    }
    let scale = run.setting.scale;
    Ok(Report { figures, floors: run.floors, scale })
}

async fn measured(run: &Run, row: Row) -> Result<Vec<Figure>> {
    match row {
        Row::Ok => single::ok(run, &run.one().await?.0).await,
        Row::Rooms => single::rooms(run, &run.one().await?.0).await,
        Row::Room => single::room(run, &run.one().await?.0).await,
        Row::FanOut => single::fan_out_to_some(run, &run.one().await?.0).await,
        Row::Crowd => single::fan_out_to_many(run, &run.one().await?.0).await,
        Row::History => single::history(run, &run.one().await?.0).await,
        Row::Hop => nodes::hop(run).await,
        Row::Acts => nodes::acts(run).await,
        Row::Copies => nodes::copies(run).await,
        Row::Profile => profiles::profile(run).await,
        Row::Tools => tools::tools(run).await,
        Row::Writers => nodes::writers(run).await,
        Row::Heal => nodes::heal(run).await,
        Row::CatchUp => nodes::catch_up(run).await,
        Row::Wire => nodes::wire(run).await,
        Row::IdleProcessor => nodes::idle_processor(run).await,
        Row::Stored => keeping::stored(run).await,
        Row::Search => search::search(run).await,
        Row::Idle => keeping::idle(run).await,
        Row::Finder => finder::search(run).await,
        Row::FinderMail => finder::mail(run).await,
        Row::FinderJoin => finder::join(run).await,
        Row::Page => page::page(run).await,
        Row::Goclaw => goclaw::send(run).await,
        Row::GoclawIdle => goclaw::idle(run).await,
        Row::GoclawCron => goclaw::cron(run).await,
        Row::Clawtank => clawtank::claims(run).await,
        Row::Replay => clawtank::replay(run).await,
        Row::Spectators => clawtank::spectators(run).await,
        Row::Nats => nats::nats(run).await,
    }
}
