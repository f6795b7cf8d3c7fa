//! Ways in and out, and pages that would like to have a way.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testnet::wire::text;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::world::{PERSON, World, hears, http, join, say};

pub(crate) async fn a_link_signs_in_once(world: &mut World) -> Result<()> {
    let link = world.link(0, &world.key, PERSON).await?;
    world.page.open(&link).await?;
    world.page.until("!!document.querySelector('nav a[aria-current]')").await?;
    ensure!(world.page.text(".who").await?.contains(PERSON));
    let other = world.driver.browser().await?;
    other.open(&link).await?;
    other.shows("This link was opened before").await?;
    other.open(&world.at(0, "/")).await?;
    other.shows("Sign in to this node").await?;
    other.quit().await
}

pub(crate) async fn a_key_that_is_typed_signs_in_and_a_wrong_one_does_not(
    world: &mut World,
) -> Result<()> {
    let page = &world.page;
    page.forget_cookies().await?;
    page.open(&world.at(0, "/")).await?;
    page.write("input[name=key]", "a key that nobody has made").await?;
    page.click("button.main").await?;
    page.part_shows("[role=alert]", "key").await?;
    page.write("input[name=key]", &world.key).await?;
    page.write("input[name=name]", PERSON).await?;
    page.click("button.main").await?;
    page.part_shows("h1", "Mesh").await
}

pub(crate) async fn who_is_not_signed_in_sees_nothing(world: &mut World) -> Result<()> {
    world.page.forget_cookies().await?;
    for path in ["/", "/ui/rooms", "/ui/agents", "/ui/rooms/x", "/ui/rooms/x/trace/y"] {
        world.page.open(&world.at(0, path)).await?;
        world.page.part_shows("h1", "Sign in to this node").await?;
        ensure!(world.page.all("main *").await?.len() < 15, "{path} shows more than a way in");
    }
    world.enter(&world.page, 0).await
}

pub(crate) async fn the_cookie_is_not_for_scripts_and_opens_nothing_else(
    world: &mut World,
) -> Result<()> {
    let page = &world.page;
    world.enter(page, 0).await?;
    ensure!(page.value("document.cookie").await? == json!(""), "HttpOnly");
    let cookies = page.cookies().await?;
    let cookie = cookies.first().context("a cookie")?;
    ensure!(cookie["httpOnly"] == json!(true) && cookie["sameSite"] == json!("Strict"));
    let cookie = format!("{}={}", text(cookie, "name"), text(cookie, "value"));
    let mut maker = world.agent(0, "maker").await?;
    let made = json!({ "name": "hidden", "public": false });
    let room = text(&maker.call("create_room", made).await?, "room_id");
    maker.leave().await?;
    let at = world.nodes[0].http();
    let of_room = format!("/ui/rooms/{room}");
    ensure!(http(at, &format!("GET {of_room}"), &[("cookie", &cookie)], "").await?.0 == 200);
    let paths = [
        format!("GET /api/rooms/{room}"),
        format!("GET /api/rooms/{room}/messages"),
        "POST /api/rooms".to_owned(),
        "POST /mcp".to_owned(),
        "POST /tools/invoke".to_owned(),
        "GET /api/agents/x/files/y".to_owned(),
        "POST /ui/link".to_owned(),
    ];
    for path in paths {
        let (status, _, body) = http(at, &path, &[("cookie", &cookie)], "{}").await?;
        ensure!((400..500).contains(&status), "{path}: {status} {body}");
        ensure!(!body.contains("hidden"), "{path}: {body}");
    }
    Ok(())
}

/// A page of somebody else, on this machine: of another origin, and of the same site. Serves it until the future is dropped.
async fn other_page(html: String) -> Result<(String, impl Future<Output = ()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = format!("http://{}/", listener.local_addr()?);
    let serves = async move {
        while let Ok((mut io, _)) = listener.accept().await {
            let mut request = [0; 4096];
            // A browser asks for an icon, too: it has the same.
            drop(io.read(&mut request).await);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                html.len()
            );
            drop(io.write_all(format!("{head}{html}").as_bytes()).await);
        }
    };
    Ok((at, serves))
}

pub(crate) async fn a_form_of_another_page_does_nothing(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let mut bob = world.agent(1, "bob").await?;
    let room = world.room(&mut [&mut bob]).await?;
    world.visit(&room).await?;
    // Even with the word of a page of one's own, as if it had leaked.
    let word =
        world.page.value("document.querySelector('form.say input[name=form]').value").await?;
    let word = word.as_str().context("a word")?;
    let action = world.at(0, &format!("/ui/rooms/{room}/say"));
    let html = format!(
        "<form method=post action='{action}'><input name=form value='{word}'><input name=text value=forged><button>x</button></form>"
    );
    let (at, serves) = other_page(html).await?;
    let page = &world.page;
    let attack = async {
        page.open(&at).await?;
        page.click("button").await?;
        page.shows("Another web page has asked").await
    };
    tokio::select! { done = attack => done?, () = serves => {} }
    world.visit(&room).await?;
    world.page.write("textarea[name=text]", "mine").await?;
    world.page.click("form.say button.main").await?;
    hears(&mut bob, &room, "mine").await?;
    world.page.shows("mine").await?;
    ensure!(!world.page.text("#said").await?.contains("forged"));
    bob.leave().await?;
    Ok(())
}

pub(crate) async fn no_other_page_frames_it(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    let html = format!("<h1>evil</h1><iframe src='{}'></iframe>", world.at(0, "/"));
    let (at, serves) = other_page(html).await?;
    let page = &world.page;
    let attack = async {
        page.open(&at).await?;
        page.frame(Some("iframe")).await?;
        let seen = page.text("body").await.unwrap_or_default();
        page.frame(None).await?;
        ensure!(!seen.contains("Mesh") && !seen.contains("Sign in"), "it is framed: {seen}");
        ensure!(page.text("h1").await? == "evil", "the page around it is there");
        Ok(())
    };
    tokio::select! { done = attack => done, () = serves => Ok(()) }
}

pub(crate) async fn signing_out_ends_it(world: &mut World) -> Result<()> {
    world.enter(&world.page, 0).await?;
    world.page.click(".who button").await?;
    world.page.shows("Sign in to this node").await?;
    ensure!(world.page.cookies().await?.is_empty());
    world.enter(&world.page, 0).await
}

/// Mints a key at the first node.
async fn minted(world: &World, label: &str) -> Result<String> {
    let minted = world.operate(0, &["keys", "mint", "--label", label]).await?;
    let key = minted.split_whitespace().find(|word| word.len() >= 40).context("a key")?;
    Ok(key.to_owned())
}

pub(crate) async fn a_key_that_is_revoked_ends_its_open_page(world: &mut World) -> Result<()> {
    let key = minted(world, "visitor").await?;
    let other = world.driver.browser().await?;
    other.open(&world.link(0, &key, "eve").await?).await?;
    other.until("document.documentElement.dataset.stream === 'open'").await?;
    let listed = world.operate(0, &["keys", "list", "--json"]).await?;
    let print = listed.lines().find(|line| line.contains("visitor")).unwrap_or(&listed).to_owned();
    let listed: serde_json::Value = serde_json::from_str(&print)?;
    let all = listed.as_array().cloned().unwrap_or_else(|| vec![listed.clone()]);
    let of_visitor = all.iter().find(|key| key["label"] == json!("visitor")).context("the key")?;
    let print = [text(of_visitor, "fingerprint"), text(of_visitor, "key")].concat();
    world.operate(0, &["keys", "revoke", &print]).await?;
    other.until("document.documentElement.dataset.stream === 'over'").await?;
    other.reload().await?;
    other.shows("Sign in to this node").await?;
    other.quit().await
}

pub(crate) async fn rooms_of_another_key_are_not_there(world: &mut World) -> Result<()> {
    let key = minted(world, "neighbour").await?;
    let mut maker = world.agent(0, "maker").await?;
    let made = json!({ "name": "cellar", "public": false });
    let room = text(&maker.call("create_room", made).await?, "room_id");
    join(&mut maker, &room).await?;
    say(&mut maker, &room, "a secret").await?;
    let other = world.driver.browser().await?;
    other.open(&world.link(0, &key, "eve").await?).await?;
    other.until("!!document.querySelector('nav a[aria-current]')").await?;
    other.open(&world.at(0, "/ui/rooms")).await?;
    other.part_shows("h1", "Rooms").await?;
    ensure!(!other.text("main").await?.contains("cellar"));
    other.open(&world.at(0, &format!("/ui/rooms/{room}"))).await?;
    other.shows("Not found").await?;
    other.quit().await?;
    world.enter(&world.page, 0).await?;
    world.visit(&room).await?;
    world.page.shows("a secret").await?;
    maker.leave().await?;
    Ok(())
}
