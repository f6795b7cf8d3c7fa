//! Who is behind, who waits for whom, and what was not read: while it happens.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::world::{World, say};

/// The row of a node says that it is not heard, and so many messages or more behind.
fn is_behind_at_least(name: &str, count: usize) -> String {
    let said = r"/behind by (\d+) messages: it is not heard/";
    format!(
        "[...document.querySelectorAll('tbody tr')].some((row) => row.cells[0].innerText.startsWith({name:?}) && \
         Number(row.cells[2].innerText.match({said})?.[1]) >= {count})"
    )
}

/// How far a node is, as the table of the mesh shows it.
fn is_at(name: &str, step: &str) -> String {
    format!(
        "[...document.querySelectorAll('tbody tr')].some((row) => row.cells[0].innerText.startsWith({}) && row.cells[2].innerText.includes({}))",
        json!(name),
        json!(step)
    )
}

pub(crate) async fn a_node_that_is_cut_off_is_behind_by_what_was_said_since(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(0, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    page.open(&world.at(0, "/")).await?;
    for name in ["north", "south", "west"] {
        page.until(&is_at(name, "in step")).await?;
    }
    page.part_shows("#doctor + ul", "disk").await?;
    world.cut(2, true);
    for nth in 0..3 {
        say(&mut bob, &room, &format!("word {nth}")).await?;
    }
    // Its last word before the cut may not have come: then more than these three are behind, as far as is known here.
    page.until(&is_behind_at_least("west", 3)).await?;
    page.until(&is_at("south", "in step")).await?;
    page.part_shows("#doctor + ul", "west").await?;
    // Parts of a picture have no innerText.
    let late = r"/[3-9] behind/.test(document.querySelector('svg.mesh .late')?.textContent)";
    page.until(late).await?;
    world.cut(2, false);
    page.until(&is_at("west", "in step")).await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn who_waits_for_whom_is_seen_and_that_it_is_over(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let (mut ann, mut bob) =
        (world.agent(1, "ann-waits").await?, world.agent(2, "bob-is-awaited").await?);
    let room = world.room(&mut [&mut ann, &mut bob]).await?;
    let page = &world.page;
    page.open(&world.at(0, "/ui/agents")).await?;
    page.until("document.documentElement.dataset.stream === 'open'").await?;
    let title = "<b>paint the shed";
    let task = json!({ "room_id": room, "title": title, "assignee": bob.id });
    let task = ann.call("assign_task", task).await?;
    page.part_shows("#waits ~ .wide", title).await?;
    let drawn = "[...document.querySelectorAll('svg.waiting text')].map((one) => one.textContent).filter((text) => text.endsWith('-waits') || text.endsWith('-awaited'))";
    ensure!(page.value(drawn).await? == json!(["ann-waits", "bob-is-awaited"]));
    // A picture is for eyes: the table says the same to everybody else, and leads there.
    page.click(&format!("#waits ~ .wide a[href='/ui/rooms/{room}#tasks']")).await?;
    page.part_shows("#side", title).await?;
    page.open(&world.at(0, "/ui/agents")).await?;
    let done = json!({ "task_id": task["task_id"], "status": "completed" });
    bob.call("update_task", done).await?;
    let over = format!("!document.querySelector('main').innerText.includes({})", json!(title));
    page.until(&over).await?;
    ann.leave().await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_list_of_rooms_says_what_was_not_read(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    world.visit(&room).await?;
    page.open(&world.at(0, "/ui/rooms")).await?;
    let unread = format!(
        "(document.querySelector('a[href$=\"{room}\"]')?.closest('tr').querySelector('.count')?.innerText ?? 'none')"
    );
    page.until(&format!("{unread} === 'none'")).await?;
    page.until("document.documentElement.dataset.stream === 'open'").await?;
    say(&mut bob, &room, "one").await?;
    say(&mut bob, &room, "two").await?;
    page.until(&format!("{unread} === '2'")).await?;
    world.visit(&room).await?;
    page.part_shows("#said", "two").await?;
    // What comes while it is looked at is read, too.
    say(&mut bob, &room, "three").await?;
    page.part_shows("#said", "three").await?;
    page.open(&world.at(0, "/ui/rooms")).await?;
    page.until(&format!("{unread} === 'none'")).await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_leader_is_drawn_and_everybody_sees_it(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    world.visit(&room).await?;
    page.click("#side button#join").await?;
    page.click("#side button#elect").await?;
    page.part_shows("#side", "A leader is being drawn").await?;
    page.click("#side button#decline").await?;
    page.part_shows("#side", "Not standing: ada").await?;
    // Of two, one does not stand: it is the other one.
    page.until("[...document.querySelectorAll('#side li')].some((one) => one.innerText.startsWith('bob') && one.innerText.includes('leader'))").await?;
    bob.leave().await?;
    Ok(())
}
