//! Pictures of all views, for `docs/pictures`: light, dark and narrow.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use testnet::wire::Agent;
use tokio::time::sleep;

use crate::{
    driver::Browser,
    world::{World, say},
};

/// The names of the ways in which each view is seen, with their size and colours.
const WAYS: [(&str, (u32, u32), &str); 3] = [
    ("light", (1100, 760), "light"),
    ("dark", (1100, 760), "dark"),
    ("narrow", (360, 740), "light"),
];

/// Takes them.
pub(crate) async fn take(world: &mut World, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    let happening = happening(world).await?;
    let views = [
        ("mesh", "/".to_owned()),
        ("rooms", "/ui/rooms".to_owned()),
        ("room", format!("/ui/rooms/{}", happening.room)),
        ("trace", happening.trace.clone()),
        ("agents", "/ui/agents".to_owned()),
        ("search", "/ui/search?text=plan".to_owned()),
        ("figures", "/ui/figures".to_owned()),
    ];
    drawn(world).await?;
    let page = &world.page;
    for (way, size, scheme) in WAYS {
        page.size(Some(size)).await?;
        page.scheme(scheme).await?;
        for (view, path) in &views {
            page.open(&world.at(0, path)).await?;
            page.until("document.readyState === 'complete'").await?;
            if *view == "room" {
                settle(page).await?;
            }
            page.picture(&dir.join(format!("{view}-{way}.png"))).await?;
        }
    }
    page.forget_cookies().await?;
    for (way, size, scheme) in WAYS {
        page.size(Some(size)).await?;
        page.scheme(scheme).await?;
        page.open(&world.at(0, "/")).await?;
        page.picture(&dir.join(format!("door-{way}.png"))).await?;
    }
    Ok(())
}

/// Until there are figures to draw, and the index has what was said.
async fn drawn(world: &World) -> Result<()> {
    for (path, part) in
        [("/ui/figures", "svg.plot, .plot svg"), ("/ui/search?text=plan", "article")]
    {
        let there = format!("!!document.querySelector({})", json!(part));
        loop {
            world.page.open(&world.at(0, path)).await?;
            if world.page.value(&there).await? == json!(true) {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
    Ok(())
}

/// The page of a room is shown from its top, with all that is beside the conversation.
async fn settle(page: &Browser) -> Result<()> {
    page.until("document.documentElement.dataset.stream === 'open'").await?;
    page.part_shows("#side", "0 of").await?;
    page.run("scrollTo(0, 0)", &[]).await.map(drop)
}

/// A room in which something happens.
struct Happening {
    room: String,
    /// The way to the life of a message.
    trace: String,
    /// They stay until the pictures are taken.
    _agents: [Agent; 2],
}

async fn happening(world: &mut World) -> Result<Happening> {
    world.enter(&world.page, 0).await?;
    let (mut bob, mut carl) = (world.agent(1, "Builder").await?, world.agent(2, "Reviewer").await?);
    let room = world.room_called("war-room", &mut [&mut bob, &mut carl]).await?;
    for name in ["standup", "releases"] {
        world.room_called(name, &mut [&mut bob]).await?;
    }
    say(&mut bob, &room, "The build is green at all three sites. I would ship tonight.").await?;
    let thought = json!({ "room_id": room, "content": "Is there a way back if it fails?" });
    carl.call("thinking", thought).await?;
    let body = json!({ "claim": "The plan is missing a rollback gate", "confidence": 0.74, "falsifiable_by": "a documented rollback step" });
    let claim = json!({ "v": "lantern/0.1.1", "type": "ASSERT", "from": "Reviewer", "body": body });
    let said = say(&mut carl, &room, &claim.to_string()).await?;
    let body = json!({ "target_seq": said["seq"], "counter_claim": "It exists, named recovery", "confidence": 0.6, "test": "grep the plan for recovery" });
    let challenge = json!({ "v": "lantern/0.1.1", "type": "CHALLENGE", "thread": said["seq"], "from": "Builder", "body": body });
    say(&mut bob, &room, &challenge.to_string()).await?;
    let task =
        json!({ "room_id": room, "title": "Name the way back in the plan", "assignee": carl.id });
    bob.call("assign_task", task).await?;
    bob.call("set_presence", json!({ "status": "working", "detail": "packing the release" }))
        .await?;
    world.visit(&room).await?;
    let page = &world.page;
    page.click("#new-vote summary").await?;
    page.write("#new-vote [name=title]", "Ship tonight?").await?;
    page.write("#new-vote [name=options]", "yes\nno\nafter the review").await?;
    page.click("#new-vote button").await?;
    page.part_shows("#side", "0 of 3 voted").await?;
    let approval = json!({ "command": "git push --force origin main", "timeout_secs": 600 });
    let metadata = json!({ "kind": "approval_request", "approval": approval });
    let ask = json!({ "room_id": room, "content": "May I push?", "metadata": metadata });
    bob.call("send_message", ask).await?;
    page.part_shows("#side", "git push").await?;
    let trace = "document.querySelector('#said a[href*=\"/trace/\"]').getAttribute('href')";
    let trace = page.value(trace).await?.as_str().context("a link")?.to_owned();
    Ok(Happening { room, trace, _agents: [bob, carl] })
}
