//! The page of a node, in a real browser: Chromium, over three real nodes whose links can be cut.
//!
//! All tests share the nodes and a browser, so they run one after the other, and this program runs them itself. Where there is no
//! browser they are skipped, by name, and counted. `--pictures DIRECTORY` takes pictures of all views instead (`docs/pictures/make`).

mod acting;
mod driver;
mod hostile;
mod live;
mod pictures;
mod shape;
mod signing;
mod waiting;
mod world;

use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
    pin::Pin,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use tokio::{runtime::Runtime, time::timeout};
use world::World;

/// For one test.
const TEST_WITHIN: Duration = Duration::from_secs(120);

type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A test and its name.
struct Test {
    name: &'static str,
    run: for<'a> fn(&'a mut World) -> Running<'a>,
}

macro_rules! tests {
    ($( $module:ident: $( $name:ident ),* ; )*) => {
        const TESTS: &[Test] = &[
            $( $( Test { name: stringify!($name), run: |world| Box::pin($module::$name(world)) }, )* )*
        ];
    };
}

tests! {
    signing:
        a_link_signs_in_once,
        a_key_that_is_typed_signs_in_and_a_wrong_one_does_not,
        who_is_not_signed_in_sees_nothing,
        the_cookie_is_not_for_scripts_and_opens_nothing_else,
        a_form_of_another_page_does_nothing,
        no_other_page_frames_it,
        signing_out_ends_it,
        a_key_that_is_revoked_ends_its_open_page,
        rooms_of_another_key_are_not_there;
    live:
        three_nodes_are_seen_and_all_are_connected,
        a_word_at_another_node_comes_to_an_open_page,
        a_split_is_watched_and_its_heal,
        a_page_that_was_hidden_has_all_that_was_said,
        ten_thousand_messages_are_scrolled,
        a_node_that_starts_anew_says_that_the_page_is_over;
    acting:
        a_word_of_ones_own_comes_to_an_agent_at_another_node,
        a_vote_from_its_opening_to_its_result,
        a_task_is_made_claimed_noted_and_ended,
        two_people_do_not_hold_one_task,
        an_agent_asks_and_a_person_allows,
        a_person_writes_to_an_agent_and_answers_its_question,
        the_life_of_a_message_names_all_nodes,
        an_envelope_is_a_card,
        agents_are_stopped_at_once_at_all_nodes_and_let_go,
        what_is_being_typed_stays_while_the_page_changes;
    hostile:
        what_agents_write_is_never_more_than_text,
        every_field_takes_hostile_text_and_shows_it_as_text,
        a_hostile_name_of_a_person_is_text;
    waiting:
        a_node_that_is_cut_off_is_behind_by_what_was_said_since,
        who_waits_for_whom_is_seen_and_that_it_is_over,
        a_list_of_rooms_says_what_was_not_read,
        a_leader_is_drawn_and_everybody_sees_it;
    shape:
        nothing_is_wider_than_a_narrow_screen,
        all_is_done_with_the_keyboard_alone,
        dark_is_dark_and_light_is_light,
        every_page_can_be_read_without_script,
        things_are_done_without_script,
        nothing_is_loaded_from_elsewhere_and_little_of_it,
        readers_of_screens_find_names_and_headings;
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let mut out = io::stdout();
    if args.iter().any(|arg| arg == "--list") {
        let listed: String = TESTS.iter().map(|test| format!("{}: test\n", test.name)).collect();
        return done(write!(out, "{listed}").map_err(Into::into));
    }
    let pictures = args.iter().position(|arg| arg == "--pictures");
    let pictures = pictures.map(|at| args.get(at + 1).map_or("docs/pictures", |dir| dir));
    let Some(programs) = driver::programs() else {
        return done(skipped(&mut out, pictures.is_some()));
    };
    let filters = args.iter().filter(|arg| !arg.starts_with('-'));
    let filters: Vec<&String> = filters.collect();
    let chosen = |test: &&Test| {
        filters.is_empty() || filters.iter().any(|filter| test.name.contains(filter.as_str()))
    };
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return done(Err(error.into())),
    };
    done(match pictures {
        Some(dir) => runtime.block_on(take_pictures(programs, dir)),
        None => runtime.block_on(run(programs, TESTS.iter().filter(chosen).collect())),
    })
}

fn done(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If nobody can read that either, the code says it.
            drop(writeln!(io::stderr(), "{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// There is no browser: names and count. Pictures cannot be skipped.
fn skipped(out: &mut impl io::Write, pictures: bool) -> Result<()> {
    if pictures {
        return Err(anyhow!("there is no chromium and no chromedriver here"));
    }
    for test in TESTS {
        writeln!(out, "test {} ... skipped", test.name)?;
    }
    writeln!(
        out,
        "skipped: {} tests, for there is no chromium or no chromedriver here",
        TESTS.len()
    )?;
    Ok(())
}

async fn take_pictures(programs: (PathBuf, PathBuf), dir: &str) -> Result<()> {
    let mut world = World::up(programs).await?;
    let taken = pictures::take(&mut world, dir.as_ref()).await;
    world.down().await?;
    taken
}

async fn run(programs: (PathBuf, PathBuf), tests: Vec<&Test>) -> Result<()> {
    let mut out = io::stdout();
    writeln!(out, "\nrunning {} tests in a browser", tests.len())?;
    let began = Instant::now();
    let mut world = World::up(programs).await?;
    writeln!(out, "three nodes and a browser are up after {:.1?}", began.elapsed())?;
    let mut failed = Vec::new();
    for test in &tests {
        let at = Instant::now();
        let ended = timeout(TEST_WITHIN, (test.run)(&mut world)).await;
        let ended = ended.unwrap_or_else(|_| Err(anyhow!("not done after {TEST_WITHIN:?}")));
        let word = if ended.is_ok() { "ok" } else { "FAILED" };
        writeln!(out, "test {} ... {word} ({:.1?})", test.name, at.elapsed())?;
        if let Err(error) = ended {
            failed.push((test.name, error));
        }
    }
    world.down().await?;
    for (name, error) in &failed {
        writeln!(out, "\n---- {name}\n{error:#}")?;
    }
    let passed = tests.len() - failed.len();
    writeln!(out, "\n{passed} passed, {} failed, in {:.1?}\n", failed.len(), began.elapsed())?;
    if failed.is_empty() { Ok(()) } else { Err(anyhow!("{} tests failed", failed.len())) }
}
