//! Texts that would like to be more than text.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    driver::Browser,
    world::{World, say},
};

/// Runs a script if it is anything but text, in one of the ways there are; hides and turns what stands beside it.
const HOSTILE: &str = "</textarea></script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\">\
    <svg onload='window.pwned=3'>\"' autofocus onfocus='window.pwned=4' x='javascript:alert(5)</details>{{7*7}}\
    <a href='javascript:alert(6)'>x</a><style>body{display:none}</style>\u{202e}live\u{2066}\u{200b}\u{feff}";
/// A part of it that is seen.
const SEEN: &str = "<script>window.pwned=1</script>";

/// Nothing of it was run, or has become a part of the page.
async fn is_unharmed(page: &Browser) -> Result<()> {
    ensure!(!page.is_asked().await, "a dialog is open");
    let found = "({
        pwned: window.pwned ?? null,
        parts: document.querySelectorAll('img, main script, main style, iframe, [onload], [onerror], [onfocus], a[href^=javascript]').length,
        svg: [...document.querySelectorAll('svg')].filter((one) => !['mesh', 'waits', 'plot'].some((of) => one.classList.contains(of))).length,
        hidden: /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff\\u001b]/.test(document.body.innerText),
        shown: getComputedStyle(document.body).display,
    })";
    let found = page.value(found).await?;
    let good = json!({ "pwned": null, "parts": 0, "svg": 0, "hidden": false, "shown": "block" });
    ensure!(found == good, "{found} at {}", page.url().await?);
    Ok(())
}

pub(crate) async fn what_agents_write_is_never_more_than_text(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let escape = "\u{1b}[2J\u{1b}]0;title\u{7}";
    let mut bob = world.agent(1, &format!("bob{}", &HOSTILE[..60])).await?;
    let room = world.room_called(&format!("r{}", &HOSTILE[..80]), &mut [&mut bob]).await?;
    world.visit(&room).await?;
    say(&mut bob, &room, &format!("{HOSTILE}{escape}")).await?;
    world.page.part_shows("#said", SEEN).await?;
    is_unharmed(&world.page).await?;
    let thinking = json!({ "room_id": room, "content": HOSTILE });
    bob.call("thinking", thinking).await?;
    let presence = json!({ "status": "working", "detail": &HOSTILE[..100] });
    bob.call("set_presence", presence).await?;
    bob.call("assign_task", json!({ "room_id": room, "title": HOSTILE, "description": HOSTILE }))
        .await?;
    let vote = json!({ "room_id": room, "title": &HOSTILE[..200], "options": [&HOSTILE[..100], "b"], "description": HOSTILE });
    bob.call("create_vote", vote).await?;
    let approval = json!({ "command": HOSTILE, "timeout_secs": 600 });
    let metadata = json!({ "kind": "approval_request", "approval": approval });
    bob.call("send_message", json!({ "room_id": room, "content": HOSTILE, "metadata": metadata }))
        .await?;
    for verb in ["ASSERT", "CHALLENGE", "FUSE", "HELLO"] {
        let body = json!({ "claim": HOSTILE, "counter_claim": HOSTILE, "test": HOSTILE, "target_seq": 1,
            "synthesis": HOSTILE, "shared_state_delta": { HOSTILE: HOSTILE }, "falsifiable_by": HOSTILE });
        let envelope = json!({ "v": "lantern/0.1.1", "type": verb, "from": HOSTILE, "intent": HOSTILE, "thread": 1,
            "agent_name": HOSTILE, "model": HOSTILE, "capabilities": [{ "name": HOSTILE }], "body": body });
        say(&mut bob, &room, &envelope.to_string()).await?;
    }
    world.page.until("document.querySelectorAll('#said .card').length === 4").await?;
    world.page.part_shows("#votes ~ .vote", SEEN.get(..20).unwrap_or_default()).await?;
    is_unharmed(&world.page).await?;
    for path in ["/", "/ui/rooms", "/ui/agents", &format!("/ui/rooms/{room}")] {
        world.page.open(&world.at(0, path)).await?;
        world.page.until("document.documentElement.dataset.stream === 'open'").await?;
        is_unharmed(&world.page).await?;
    }
    world.page.click("#said a[href*='/trace/']").await?;
    world.page.part_shows("h1", "The life of a message").await?;
    is_unharmed(&world.page).await?;
    bob.leave().await?;
    Ok(())
}

/// Sets fields without a keyboard, as a person does who pastes, and sends their form.
async fn send(page: &Browser, form: &str, fields: &Value, button: &str) -> Result<()> {
    let script = "const form = document.querySelector(arguments[0]); form.closest('details')?.setAttribute('open', '');
        for (const [name, value] of Object.entries(arguments[1])) {
            const field = form.elements[name]; field.removeAttribute('maxlength'); field.value = value;
        }
        document.documentElement.dataset.stream = 'sent';
        form.querySelector(arguments[2]).click();";
    page.run(script, &[json!(form), fields.clone(), json!(button)]).await?;
    page.until(
        "document.readyState === 'complete' && document.documentElement.dataset.stream !== 'sent'",
    )
    .await
}

/// With a new field in a view this fails until it is tried, too.
fn all_were_tried(mut fields: Vec<String>) -> Result<()> {
    fields.sort();
    fields.dedup();
    let known = [
        "assignee",
        "description",
        "key",
        "minutes",
        "name",
        "note",
        "options",
        "reason",
        "text",
        "title",
    ];
    ensure!(fields == known, "fields that were not tried: {fields:?}");
    Ok(())
}

pub(crate) async fn every_field_takes_hostile_text_and_shows_it_as_text(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    let page = &world.page;
    world.visit(&room).await?;
    // A list of all fields, so that none is forgotten: with a new one this test fails.
    let mut fields: Vec<String> = Vec::new();
    let named = "[...document.querySelectorAll('main input:not([type=hidden]), main textarea, main select')].map((one) => one.name)";
    let mut note = async |page: &Browser| -> Result<()> {
        let found: Vec<String> = serde_json::from_value(page.value(named).await?)?;
        fields.extend(found);
        Ok(())
    };
    send(page, "form[action$='/say']", &json!({ "text": HOSTILE }), "button").await?;
    page.part_shows("#said", SEEN).await?;
    is_unharmed(page).await?;
    let task = json!({ "title": HOSTILE, "description": HOSTILE, "assignee": &HOSTILE[..90] });
    send(page, "form[action$=make-task]", &task, "button").await?;
    page.until("!!document.querySelector('#side [name=note]')").await?;
    is_unharmed(page).await?;
    send(
        page,
        "form[action$=change-task]",
        &json!({ "note": HOSTILE, "assignee": &HOSTILE[..90] }),
        "[value=note]",
    )
    .await?;
    page.until("document.querySelector('#side')?.textContent.includes('noted: <')").await?;
    is_unharmed(page).await?;
    let vote = json!({ "title": &HOSTILE[..200], "description": HOSTILE, "options": format!("{}\nb", &HOSTILE[..90]), "minutes": HOSTILE });
    send(page, "form[action$=open-vote]", &vote, "button").await?;
    page.part_shows("h1", "Not done").await?;
    is_unharmed(page).await?;
    world.visit(&room).await?;
    let mut vote = vote;
    vote["minutes"] = json!("");
    send(page, "form[action$=open-vote]", &vote, "button").await?;
    page.until("!!document.querySelector('#side form[action$=cast]')").await?;
    is_unharmed(page).await?;
    let approval = json!({ "command": "x", "timeout_secs": 600 });
    let metadata = json!({ "kind": "approval_request", "approval": approval });
    bob.call("send_message", json!({ "room_id": room, "content": "may I?", "metadata": metadata }))
        .await?;
    page.until("!!document.querySelector('#side [name=reason]')").await?;
    note(page).await?;
    send(page, "form[action$=decide]", &json!({ "reason": HOSTILE }), "[value=deny]").await?;
    is_unharmed(page).await?;
    page.forget_cookies().await?;
    page.open(&world.at(0, "/")).await?;
    note(page).await?;
    send(page, "form[action$=enter]", &json!({ "key": HOSTILE, "name": HOSTILE }), "button")
        .await?;
    is_unharmed(page).await?;
    all_were_tried(fields)?;
    world.enter(page, 0).await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_hostile_name_of_a_person_is_text(world: &mut World) -> Result<()> {
    let other = world.driver.browser().await?;
    let name = "<img src=x onerror=x>\u{202e}eve";
    other.open(&world.link(0, &world.key, name).await?).await?;
    other.until("!!document.querySelector('nav a[aria-current]')").await?;
    is_unharmed(&other).await?;
    ensure!(other.text(".who span").await?.starts_with("<img src=x"));
    let room = world.room(&mut []).await?;
    other.open(&world.at(0, &format!("/ui/rooms/{room}"))).await?;
    other.write("textarea[name=text]", "by a bad name").await?;
    other.click("form.say button.main").await?;
    other.part_shows("#said", "by a bad name").await?;
    is_unharmed(&other).await?;
    other.quit().await?;
    Ok(())
}
