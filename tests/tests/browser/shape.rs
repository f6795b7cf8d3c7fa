//! The shape of pages: narrow, dark, with a keyboard, without script.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::{
    driver::key,
    world::{World, hears, say},
};

/// All views, of a room that has something of everything.
async fn views(world: &mut World) -> Result<Vec<String>> {
    let mut bob =
        world.agent(1, "bob-with-a-name-that-is-quite-long-and-has-no-space-in-it").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let long = "word".repeat(120);
    say(&mut bob, &room, &format!("a message\n{long}")).await?;
    let body = json!({ "claim": long, "confidence": 0.5, "falsifiable_by": long });
    let claim = json!({ "v": "lantern/0.1.1", "type": "ASSERT", "from": "bob", "body": body });
    say(&mut bob, &room, &claim.to_string()).await?;
    bob.call("assign_task", json!({ "room_id": room, "title": long })).await?;
    bob.call(
        "create_vote",
        json!({ "room_id": room, "title": "a vote?", "options": [&long[..200], "no"] }),
    )
    .await?;
    let approval = json!({ "command": long, "timeout_secs": 600 });
    let metadata = json!({ "kind": "approval_request", "approval": approval });
    bob.call("send_message", json!({ "room_id": room, "content": "may I?", "metadata": metadata }))
        .await?;
    world.visit(&room).await?;
    world.page.part_shows("#side", "a vote?").await?;
    world.page.until("document.querySelectorAll('#said article').length >= 3").await?;
    let trace = world
        .page
        .value("document.querySelector('#said a[href*=\"/trace/\"]').getAttribute('href')")
        .await?;
    let trace = trace.as_str().context("a link")?.to_owned();
    bob.leave().await?;
    let room = format!("/ui/rooms/{room}");
    Ok(vec!["/".into(), "/ui/rooms".into(), room, trace, "/ui/agents".into()])
}

pub(crate) async fn nothing_is_wider_than_a_narrow_screen(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let views = views(world).await?;
    let page = &world.page;
    for size in [(360, 740), (2560, 1440)] {
        page.size(Some(size)).await?;
        for path in &views {
            page.open(&world.at(0, path)).await?;
            page.run(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
                &[],
            )
            .await?;
            let width = page.value("document.documentElement.scrollWidth").await?;
            ensure!(
                width.as_u64().is_some_and(|width| width <= u64::from(size.0)),
                "{path} at {size:?} is {width} wide"
            );
        }
    }
    page.size(None).await
}

pub(crate) async fn all_is_done_with_the_keyboard_alone(world: &mut World) -> Result<()> {
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    page.forget_cookies().await?;
    page.open(&world.at(0, "/")).await?;
    // The field for the key has the focus.
    let mut keys: Vec<String> = world.key.chars().map(String::from).collect();
    keys.push(key::ENTER.to_owned());
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    page.press(&keys).await?;
    page.part_shows("h1", "Mesh").await?;
    world.visit(&room).await?;
    reach(page, "textarea[name=text]").await?;
    ensure!(
        page.value("getComputedStyle(document.activeElement).outlineStyle").await?
            == json!("solid"),
        "the focus is seen"
    );
    page.press(&["b", "y", " ", "k", "e", "y"]).await?;
    page.chord(key::CONTROL, key::ENTER).await?;
    hears(&mut bob, &room, "by key").await?;
    page.until(
        "document.documentElement.dataset.stream === 'open' && document.readyState === 'complete'",
    )
    .await?;
    reach(page, "#new-vote summary").await?;
    page.press(&[key::ENTER]).await?;
    page.until("document.querySelector('#new-vote').open").await?;
    reach(page, "#new-vote [name=title]").await?;
    page.press(&[
        "o",
        "k",
        "?",
        key::TAB,
        key::TAB,
        "a",
        key::ENTER,
        "b",
        key::TAB,
        key::TAB,
        key::ENTER,
    ])
    .await?;
    page.part_shows("#side", "0 of 2 voted").await?;
    reach(page, "#side form[action$=cast] button[value='1']").await?;
    page.press(&[key::SPACE]).await?;
    page.part_shows("#side", "1 of 2 voted").await?;
    bob.leave().await?;
    Ok(())
}

/// Presses Tab until a part of the page has the focus.
async fn reach(page: &crate::driver::Browser, css: &str) -> Result<()> {
    for _ in 0..200 {
        let has = format!("document.activeElement?.matches({})", json!(css));
        if page.value(&has).await? == json!(true) {
            return Ok(());
        }
        page.press(&[key::TAB]).await?;
    }
    anyhow::bail!("the keyboard does not reach {css}")
}

/// How bright the page is, from 0 to 255, and its text.
const BRIGHTNESS: &str = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map((colour) => Number(colour.match(/\\d+/)[0]))";

pub(crate) async fn dark_is_dark_and_light_is_light(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    for (scheme, is_dark) in [("dark", true), ("light", false)] {
        world.page.scheme(scheme).await?;
        world.page.open(&world.at(0, "/ui/rooms")).await?;
        let seen = world.page.value(BRIGHTNESS).await?;
        let (back, text) = (seen[0].as_u64().unwrap_or(128), seen[1].as_u64().unwrap_or(128));
        ensure!(back.abs_diff(text) > 150 && (back < text) == is_dark, "{scheme}: {seen}");
    }
    Ok(())
}

pub(crate) async fn every_page_can_be_read_without_script(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let views = views(world).await?;
    let page = &world.page;
    page.scripts(false).await?;
    let read = async {
        let seen = ["south", "room-", "a message", "Held durably", "Attached to any node"];
        for (path, part) in views.iter().zip(seen) {
            page.open(&world.at(0, path)).await?;
            page.reads("body", part).await?;
        }
        anyhow::Ok(())
    };
    let read = read.await;
    page.scripts(true).await?;
    read
}

pub(crate) async fn things_are_done_without_script(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    page.scripts(false).await?;
    let act = async {
        page.open(&world.at(0, &format!("/ui/rooms/{room}"))).await?;
        page.write("textarea[name=text]", "without a script").await?;
        page.click("form.say button.main").await?;
        page.reads("#said", "without a script").await?;
        page.click("#side button#join").await?;
        page.reads("#side", "you").await?;
        page.click("#new-vote summary").await?;
        page.write("#new-vote [name=title]", "Still?").await?;
        page.write("#new-vote [name=options]", "yes\nno").await?;
        page.click("#new-vote button").await?;
        page.click("#side form[action$=cast] button[value='0']").await?;
        page.reads("#side", "1 of 2 voted").await?;
        anyhow::Ok(())
    };
    let acted = act.await;
    page.scripts(true).await?;
    acted?;
    hears(&mut bob, &room, "without a script").await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn nothing_is_loaded_from_elsewhere_and_little_of_it(
    world: &mut World,
) -> Result<()> {
    let other = world.driver.browser().await?;
    other.open(&world.link(0, &world.key, "new").await?).await?;
    other.until("document.documentElement.dataset.stream === 'open'").await?;
    let loaded = "(() => { const all = [...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')];
        return { bytes: all.reduce((sum, one) => sum + one.transferSize, 0), foreign: all.map((one) => one.name).filter((name) => new URL(name).origin !== location.origin) }; })()";
    let loaded = other.value(loaded).await?;
    other.quit().await?;
    ensure!(loaded["foreign"] == json!([]), "{loaded}");
    let bytes = loaded["bytes"].as_u64().context("bytes")?;
    ensure!((1..100 * 1024).contains(&bytes), "the first view takes {bytes} bytes");
    Ok(())
}

pub(crate) async fn readers_of_screens_find_names_and_headings(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let views = views(world).await?;
    let page = &world.page;
    let seen = "({
        lang: document.documentElement.lang,
        title: document.title.length > 10,
        first: document.querySelectorAll('h1').length,
        current: document.querySelectorAll('nav [aria-current=page]').length <= 1,
        nameless: [...document.querySelectorAll('input:not([type=hidden]), textarea, select, button, a[href], meter, progress')]
            .filter((one) => !(one.labels?.length || one.innerText.trim() || one.getAttribute('aria-label') || one.matches('meter, progress'))).map((one) => one.outerHTML.slice(0, 120)),
        twice: [...document.querySelectorAll('[id]')].map((one) => one.id).filter((id, at, all) => all.indexOf(id) !== at),
        tables: [...document.querySelectorAll('table')].every((one) => one.caption && one.querySelector('th[scope=row]')),
        pictures: [...document.querySelectorAll('svg')].every((one) => one.querySelector('title') || one.getAttribute('aria-label') || one.getAttribute('aria-hidden')),
    })";
    for path in &views {
        page.open(&world.at(0, path)).await?;
        page.run(
            "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
            &[],
        )
        .await?;
        let seen = page.value(seen).await?;
        let good = json!({ "lang": "en", "title": true, "first": 1, "current": true, "nameless": [], "twice": [], "tables": true, "pictures": true });
        ensure!(seen == good, "{path}: {seen}");
    }
    Ok(())
}
