//! Pages that are open while things happen.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::world::{World, hears, say};

/// The standing of a node, as the table of the mesh shows it.
fn stands(name: &str, standing: &str) -> String {
    format!(
        "[...document.querySelectorAll('tbody tr')].some((row) => row.cells[0].innerText.startsWith({}) && row.cells[1].innerText.includes({}))",
        json!(name),
        json!(standing)
    )
}

pub(crate) async fn three_nodes_are_seen_and_all_are_connected(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let page = &world.page;
    for (name, standing) in [("north", "this node"), ("south", "connected"), ("west", "connected")]
    {
        page.until(&stands(name, standing)).await?;
    }
    page.until("document.querySelectorAll('svg.mesh circle').length === 3").await
}

pub(crate) async fn a_word_at_another_node_comes_to_an_open_page(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    say(&mut bob, &room, "from the south").await?;
    world.page.part_shows("#said", "from the south").await?;
    world.page.part_shows("#side", "bob").await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_split_is_watched_and_its_heal(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut carl = world.agent(2, "carl").await?;
    let room = world.room(&mut [&mut carl]).await?;
    let over_there = world.driver.browser().await?;
    world.enter(&over_there, 2).await?;
    over_there.open(&world.at(2, &format!("/ui/rooms/{room}"))).await?;
    over_there.part_shows("h1", "room").await?;
    world.page.open(&world.at(0, "/")).await?;
    world.page.until(&stands("west", "connected")).await?;
    world.page.run("window.same = true", &[]).await?;
    world.cut(2, true);
    world.page.until(&stands("west", "not heard")).await?;
    world.page.until("!!document.querySelector('svg.mesh line.bad')").await?;
    // Each side goes on.
    say(&mut carl, &room, "said in the west").await?;
    over_there.part_shows("#said", "said in the west").await?;
    world.page.until(&stands("south", "connected")).await?;
    world.cut(2, false);
    world.page.until(&stands("west", "connected")).await?;
    ensure!(world.page.value("window.same === true").await? == json!(true), "without a reload");
    world.visit(&room).await?;
    world.page.part_shows("#said", "said in the west").await?;
    over_there.quit().await?;
    carl.leave().await?;
    Ok(())
}

pub(crate) async fn a_page_that_was_hidden_has_all_that_was_said(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    say(&mut bob, &room, "first").await?;
    world.page.part_shows("#said", "first").await?;
    // As if another tab were in front.
    let hide =
        "Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });
        document.documentElement.dataset.stream = 'none';
        document.dispatchEvent(new Event('visibilitychange'));";
    world.page.run(hide, &[json!(true)]).await?;
    let mut carl = world.agent(0, "carl").await?;
    crate::world::join(&mut carl, &room).await?;
    say(&mut bob, &room, "second").await?;
    hears(&mut carl, &room, "second").await?;
    ensure!(!world.page.text("#said").await?.contains("second"), "nobody looks");
    world.page.run(hide, &[json!(false)]).await?;
    world.page.part_shows("#said", "second").await?;
    let count = "document.querySelectorAll('#said article').length";
    ensure!(world.page.value(count).await? == json!(2), "each once");
    bob.leave().await?;
    carl.leave().await?;
    Ok(())
}

/// Messages of a large room.
const MANY: usize = 10_000;
/// So many on the way at once.
const AT_ONCE: usize = 100;

pub(crate) async fn ten_thousand_messages_are_scrolled(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(0, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let mut waiting = std::collections::VecDeque::new();
    for nth in 0..MANY {
        let content = format!("message {nth}.");
        let send = json!({ "room_id": room, "content": content });
        waiting.push_back(bob.send("send_message", send).await?);
        if waiting.len() >= AT_ONCE {
            let oldest = waiting.pop_front().context("one waits")?;
            bob.reply(&oldest).await?;
        }
    }
    for id in waiting {
        bob.reply(&id).await?;
    }
    world.visit(&room).await?;
    let page = &world.page;
    page.part_shows("#said", &format!("message {}.", MANY - 1)).await?;
    let in_view = "(() => { const at = document.getElementById('end').getBoundingClientRect(); return at.top <= innerHeight + 80; })()";
    page.until(in_view).await?;
    // A page is a link to the one before: the whole room, in the browser, without a gap and nothing twice.
    let walk = "const seen = []; let path = location.pathname; let most = 0;
        return (async () => { while (path) {
            const text = await (await fetch(path)).text(); most = Math.max(most, text.length);
            const page = new DOMParser().parseFromString(text, 'text/html');
            const found = [...page.querySelectorAll('#said article .body')].map((one) => Number(one.textContent.match(/message (\\d+)\\./)[1]));
            seen.unshift(...found);
            path = page.querySelector('.said > p > a[href*=\"before=\"]')?.getAttribute('href');
        } return [seen.length, seen.every((nth, at) => nth === at), most]; })();";
    let walked = page.run(walk, &[]).await?;
    ensure!(walked[0] == json!(MANY) && walked[1] == json!(true), "{walked}");
    ensure!(walked[2].as_u64().is_some_and(|bytes| bytes < 200_000), "no page is large: {walked}");
    page.click(".said > p > a[href*='before=']").await?;
    page.part_shows("#said", &format!("message {}.", MANY - 150)).await?;
    // Older ones are not live: nothing comes there that does not belong there.
    let live: Value = page.value("!!document.querySelector('[data-room]')").await?;
    ensure!(live == json!(false));
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_node_that_starts_anew_says_that_the_page_is_over(
    world: &mut World,
) -> Result<()> {
    let other = world.driver.browser().await?;
    world.enter(&other, 1).await?;
    other.until("document.documentElement.dataset.stream === 'open'").await?;
    world.nodes[1].restart().await?;
    other.until("document.documentElement.dataset.stream === 'over'").await?;
    other.reload().await?;
    other.shows("Sign in to this node").await?;
    other.quit().await?;
    world.enter(&world.page, 0).await?;
    world.page.until(&stands("south", "connected")).await
}
