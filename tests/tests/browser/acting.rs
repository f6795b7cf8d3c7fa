//! Things that a person does in rooms, and their ends.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testnet::wire::{Agent, text};

use crate::{
    driver::SOON,
    world::{World, hears, say},
};

pub(crate) async fn a_word_of_ones_own_comes_to_an_agent_at_another_node(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(2, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    world.page.write("textarea[name=text]", "good <evening>").await?;
    world.page.click("form.say button.main").await?;
    let heard = hears(&mut bob, &room, "good <evening>").await?;
    ensure!(text(&heard.body, "agent_id").ends_with("-ada"), "{heard:?}");
    world.page.part_shows("#said", "good <evening>").await?;
    // An answer says what it answers.
    let answer = "[...document.querySelectorAll('#said .links a')].find((one) => one.innerText === 'answer').click()";
    world.page.run(answer, &[]).await?;
    world.page.shows("Answers").await?;
    world.page.write("textarea[name=text]", "to that").await?;
    world.page.click("form.say button.main").await?;
    let heard = hears(&mut bob, &room, "to that").await?;
    ensure!(
        !heard.body["reply_to_message"].is_null() || !heard.body["reply_to"].is_null(),
        "{heard:?}"
    );
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_vote_from_its_opening_to_its_result(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let (mut bob, mut carl) = (world.agent(1, "bob").await?, world.agent(2, "carl").await?);
    let room = world.room(&mut [&mut bob, &mut carl]).await?;
    world.visit(&room).await?;
    let page = &world.page;
    page.part_shows("#side", "carl").await?;
    page.click("#new-vote summary").await?;
    page.write("#new-vote [name=title]", "Ship it?").await?;
    page.write("#new-vote [name=options]", "yes\nno\nlater").await?;
    page.write("#new-vote [name=minutes]", "5").await?;
    page.click("#new-vote button").await?;
    page.part_shows("#side", "0 of 3 voted").await?;
    // A script counts down.
    page.until("/in [45] min/.test(document.querySelector('#side [data-until]')?.innerText)")
        .await?;
    for (agent, option) in [(&mut bob, 1), (&mut carl, 0)] {
        let opened = agent.event("the vote", SOON, |event| {
            event.body["vote"]["title"] == json!("Ship it?")
                || event.body["title"] == json!("Ship it?")
        });
        let opened = opened.await?;
        let vote = [text(&opened.body, "vote_id"), text(&opened.body["vote"], "vote_id")].concat();
        agent.call("cast_vote", json!({ "vote_id": vote, "option_index": option })).await?;
    }
    page.part_shows("#side", "2 of 3 voted").await?;
    ensure!(!page.text("#side").await?.contains("yes: "), "sealed until it is closed");
    page.run("window.same = true", &[]).await?;
    page.click("#side form[action$=cast] button[value='0']").await?;
    page.part_shows("#side", "closed; 3 of 3 voted").await?;
    page.part_shows("#side", "yes: 2").await?;
    page.part_shows("#side", "no: 1").await?;
    bob.leave().await?;
    carl.leave().await?;
    Ok(())
}

pub(crate) async fn a_task_is_made_claimed_noted_and_ended(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    let page = &world.page;
    page.click("#new-task summary").await?;
    page.write("#new-task [name=title]", "sweep the floor").await?;
    page.write("#new-task [name=description]", "with a broom").await?;
    page.click("#new-task button").await?;
    page.part_shows("#column-Open", "sweep the floor").await?;
    page.click("#side details[id^=t] summary").await?;
    page.click("#side button[value=claim]").await?;
    page.part_shows("#column-At-work", "held by u-").await?;
    page.click("#side details[id^=t] summary").await?;
    page.write("#side [name=note]", "half of it").await?;
    page.click("#side button[value=note]").await?;
    page.until("document.querySelector('#side')?.textContent.includes('noted: half of it')")
        .await?;
    page.click("#side details[id^=t] summary").await?;
    page.write("#side [name=assignee]", &bob.id).await?;
    page.click("#side button[value=assign]").await?;
    page.part_shows("#side", "held by bob").await?;
    let tasks = bob.call("list_tasks", json!({ "room_id": room })).await?;
    let task = text(&tasks["tasks"][0], "task_id");
    let done = json!({ "task_id": task, "status": "completed" });
    bob.call("update_task", done).await?;
    page.until("document.querySelector('#column-Over')?.textContent.includes('sweep the floor')")
        .await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn two_people_do_not_hold_one_task(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    let page = &world.page;
    let made = bob.call("assign_task", json!({ "room_id": room, "title": "mend it" })).await?;
    let task = text(&made, "task_id");
    page.part_shows("#column-Open", "mend it").await?;
    page.click("#side details[id^=t] summary").await?;
    // It is taken while the person reads; the button of the old picture is pressed all the same.
    let keep =
        "const form = document.querySelector('#side form[action$=change-task]').cloneNode(true);
        form.id = 'kept'; document.querySelector('main').append(form);";
    page.run(keep, &[]).await?;
    let claim = json!({ "task_id": task, "assignee": bob.id, "if_assignee": null });
    bob.call("update_task", claim).await?;
    page.part_shows("#side", "held by bob").await?;
    page.click("#kept button[value=claim]").await?;
    page.part_shows("h1", "Not done").await?;
    world.visit(&room).await?;
    world.page.part_shows("#side", "held by bob").await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn an_agent_asks_and_a_person_allows(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    let page = &world.page;
    for (command, choice, decision) in
        [("rm -r build", "approve", "approved"), ("rm -r /", "deny", "denied")]
    {
        let approval = json!({ "command": command, "timeout_secs": 600 });
        let metadata = json!({ "kind": "approval_request", "approval": approval });
        let ask = json!({ "room_id": room, "content": "may I?", "metadata": metadata });
        bob.call("send_message", ask).await?;
        page.part_shows("#side", command).await?;
        page.write("#side [name=reason]", "because").await?;
        page.click(&format!("#side button[value={choice}]")).await?;
        let told = bob.event("a decision", SOON, |event| event.kind == "approval_decided").await?;
        ensure!(text(&told.body, "decision") == decision, "{told:?}");
        ensure!(text(&told.body, "reason") == "because", "{told:?}");
        page.until("!document.querySelector('#side .waits')").await?;
    }
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn a_person_writes_to_an_agent_and_answers_its_question(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut robin = world.agent(1, "robin").await?;
    let page = &world.page;
    page.open(&world.at(0, "/ui/agents")).await?;
    page.part_shows("#live", "robin").await?;
    page.click("button[aria-label='Write to robin']").await?;
    page.shows("Say something as ada").await?;
    page.write("textarea[name=text]", "what do you need?").await?;
    page.click("form.say button.main").await?;
    let asked = robin.event("a question", SOON, |event| {
        event.kind == "message_received" && event.body["content"] == json!("what do you need?")
    });
    let room = text(&asked.await?.body, "room_id");
    say(&mut robin, &room, "which colour?").await?;
    page.part_shows("#said", "which colour?").await?;
    let answer = "[...document.querySelectorAll('#said article')].find((one) => one.innerText.includes('which colour?')).querySelector('.links a:last-child').click()";
    page.run(answer, &[]).await?;
    page.shows("Answers robin: which colour?").await?;
    page.write("textarea[name=text]", "blue").await?;
    page.click("form.say button.main").await?;
    hears(&mut robin, &room, "blue").await?;
    robin.leave().await?;
    Ok(())
}

pub(crate) async fn the_life_of_a_message_names_all_nodes(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let (mut bob, mut carl) = (world.agent(1, "bob").await?, world.agent(2, "carl").await?);
    let room = world.room(&mut [&mut bob, &mut carl]).await?;
    world.visit(&room).await?;
    say(&mut bob, &room, "trace me").await?;
    hears(&mut carl, &room, "trace me").await?;
    let page = &world.page;
    page.part_shows("#said", "trace me").await?;
    let trace = page.value("document.querySelector('#said a[href*=\"/trace/\"]').href").await?;
    let trace = trace.as_str().context("a link")?.to_owned();
    page.click("#said a[href*='/trace/']").await?;
    page.part_shows("h1", "The life of a message").await?;
    // The third node may still be writing it down: nodes are asked at each look.
    let until = std::time::Instant::now() + SOON;
    while !page.text("main").await?.contains("Held durably by 3 of 3 nodes") {
        ensure!(std::time::Instant::now() < until, "{}", page.text("main").await?);
        page.open(&trace).await?;
    }
    let seen = page.text("main").await?;
    for part in ["At south", "north", "west"] {
        ensure!(seen.contains(part), "{part}: {seen}");
    }
    bob.leave().await?;
    carl.leave().await?;
    Ok(())
}

pub(crate) async fn an_envelope_is_a_card(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    let body = json!({ "claim": "the plan holds", "confidence": 0.74, "falsifiable_by": "a rollback step" });
    let claim = json!({ "v": "lantern/0.1.1", "type": "ASSERT", "from": "bob", "body": body });
    say(&mut bob, &room, &claim.to_string()).await?;
    let page = &world.page;
    page.part_shows("#said .card", "the plan holds").await?;
    page.part_shows("#said .card", "74 %").await?;
    let number = page.value("Number(document.querySelector('#said article').id.slice(1))").await?;
    let body = json!({ "target_seq": number, "counter_claim": "it does not", "confidence": 0.6, "test": "grep" });
    let challenge = json!({ "v": "lantern/0.1.1", "type": "CHALLENGE", "thread": number, "from": "bob", "body": body });
    say(&mut bob, &room, &challenge.to_string()).await?;
    page.part_shows("#said .card.challenge", "it does not").await?;
    page.reload().await?;
    page.part_shows("#said .card.assert", "Challenged").await?;
    page.part_shows("#said .card.assert", "it does not").await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn what_is_being_typed_stays_while_the_page_changes(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    let page = &world.page;
    bob.call("assign_task", json!({ "room_id": room, "title": "first" })).await?;
    page.part_shows("#side", "first").await?;
    page.click("#side details[id^=t] summary").await?;
    page.write("textarea[name=text]", "half a thought").await?;
    bob.call("assign_task", json!({ "room_id": room, "title": "second" })).await?;
    page.part_shows("#side", "second").await?;
    ensure!(
        page.value("document.querySelector('textarea[name=text]').value").await?
            == json!("half a thought")
    );
    let open = "document.querySelectorAll('#side details[id^=t][open]').length";
    ensure!(page.value(open).await? == json!(1), "what was opened stays open");
    // While somebody types beside the conversation, that part waits.
    page.write("#side details[id^=t][open] [name=note]", "a note to").await?;
    bob.call("assign_task", json!({ "room_id": room, "title": "third" })).await?;
    say(&mut bob, &room, "and a word").await?;
    page.part_shows("#said", "and a word").await?;
    ensure!(
        page.value("document.querySelector('#side details[id^=t][open] [name=note]').value")
            .await?
            == json!("a note to")
    );
    page.click("#side details[id^=t][open] button[value=note]").await?;
    page.until("document.querySelector('#side')?.textContent.includes('noted: a note to')").await?;
    page.part_shows("#side", "third").await?;
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn agents_are_stopped_at_once_at_all_nodes_and_let_go(
    world: &mut World,
) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let (mut bob, mut carl) = (world.agent(1, "robot").await?, world.agent(2, "carl").await?);
    let room = world.room(&mut [&mut bob, &mut carl]).await?;
    let page = &world.page;
    page.open(&world.at(0, "/ui/agents")).await?;
    page.part_shows("#live", "robot").await?;
    page.click("button[aria-label='Stop: robot']").await?;
    page.part_shows("#live", "stopped by ada").await?;
    let refused = refuses(&mut bob, &room).await?;
    ensure!(refused.contains("ada has stopped this agent"), "{refused}");
    say(&mut carl, &room, "others go on").await?;
    page.click("button[aria-label='Let go: robot']").await?;
    sends(&mut bob, &room).await?;
    page.click("#stop-all").await?;
    page.shows("ada has stopped all agents").await?;
    for agent in [&mut bob, &mut carl] {
        let refused = refuses(agent, &room).await?;
        ensure!(refused.contains("ada has stopped all agents"), "{refused}");
    }
    // A node that starts anew still knows it, and the operator at the command line lets go.
    world.nodes[2].restart().await?;
    let mut late = world.agent(2, "late").await?;
    crate::world::join(&mut late, &room).await?;
    refuses(&mut late, &room).await?;
    let listed = world.operate(1, &["agents", "stopped"]).await?;
    ensure!(listed.contains("all agents: by ada"), "{listed}");
    world.operate(1, &["agents", "go", "--all"]).await?;
    sends(&mut bob, &room).await?;
    sends(&mut late, &room).await?;
    page.until("!!document.querySelector('#stop-all')").await?;
    bob.leave().await?;
    late.leave().await?;
    Ok(())
}

/// Waits until an agent is refused when it says something. Returns why.
async fn refuses(agent: &mut Agent, room: &str) -> Result<String> {
    let until = std::time::Instant::now() + SOON;
    loop {
        match say(agent, room, "x").await {
            Ok(_) => ensure!(std::time::Instant::now() < until, "it still sends"),
            Err(refused) => return Ok(refused.to_string()),
        }
    }
}

/// Waits until it is not refused any more.
async fn sends(agent: &mut Agent, room: &str) -> Result<()> {
    let until = std::time::Instant::now() + SOON;
    while let Err(refused) = say(agent, room, "x").await {
        ensure!(std::time::Instant::now() < until, "it is still stopped: {refused}");
    }
    Ok(())
}
