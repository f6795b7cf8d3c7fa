//! A browser that is driven: W3C WebDriver, as far as these tests need it, with a connection for each command.
//!
//! Without a crate: `thirtyfour` has serde_json keep the order of fields in every package that is tested with it, so another
//! program would be tested than is shipped; `fantoccini` builds a dozen crates a second time, in older versions.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::{sleep, timeout},
};

/// Longer than a command, or a condition, takes on a machine that does other things, too.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The name of an element's id, by the specification.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are pressed.
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const CONTROL: &str = "\u{e009}";
    pub(crate) const SPACE: &str = " ";
}

/// The programs. `None`: they are not here.
pub(crate) fn programs() -> Option<(PathBuf, PathBuf)> {
    let path = std::env::var_os("PATH")?;
    let find = |names: &[&str]| {
        let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let all = names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
        all.into_iter().find(|file| file.is_file())
    };
    Some((find(&["chromedriver"])?, find(&["chromium", "google-chrome", "chrome"])?))
}

/// The program that drives browsers.
pub(crate) struct Driver {
    _child: Child,
    at: String,
    browser: PathBuf,
}

impl Driver {
    pub(crate) async fn start(programs: (PathBuf, PathBuf)) -> Result<Driver> {
        let (driver, browser) = programs;
        let mut command = Command::new(driver);
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().context("start chromedriver")?;
        let stdout = child.stdout.take().context("chromedriver has no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let port = async {
            while let Some(line) = lines.next_line().await? {
                let port = line.split_once("on port ").map(|(_, rest)| rest.trim_end_matches('.'));
                if let Some(port) = port.filter(|_| line.contains("started successfully")) {
                    return Ok(port.to_owned());
                }
            }
            bail!("chromedriver ends without a port")
        };
        let port = timeout(SOON, port).await.context("chromedriver is not ready")??;
        // Else it waits for somebody who reads.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Driver { _child: child, at: format!("127.0.0.1:{port}"), browser })
    }

    /// A browser with a profile of its own.
    pub(crate) async fn browser(&self) -> Result<Browser> {
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            "--window-size=1280,900",
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            // Whoever opens a dialog fails the test that is running.
            "unhandledPromptBehavior": "ignore",
            "goog:chromeOptions": { "binary": self.browser, "args": args },
        } } });
        let made = ask(&self.at, "POST", "/session", Some(&wanted)).await?;
        let id = made["sessionId"].as_str().context("a session has an id")?;
        Ok(Browser { at: self.at.clone(), path: format!("/session/{id}") })
    }
}

/// A command, and the value of its answer.
async fn ask(at: &str, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let asked = async {
        let mut io = BufReader::new(TcpStream::connect(at).await?);
        io.write_all(request.as_bytes()).await?;
        // It keeps the connection, whatever it is asked to do.
        let (mut line, mut bytes) = (String::new(), 0);
        while io.read_line(&mut line).await? > 2 {
            if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                bytes = length.trim().parse()?;
            }
            line.clear();
        }
        let mut body = vec![0; bytes];
        io.read_exact(&mut body).await?;
        anyhow::Ok(body)
    };
    let body = timeout(SOON, asked).await.with_context(|| format!("{method} {path}"))??;
    let mut answer: Value = serde_json::from_slice(&body)?;
    let value = answer["value"].take();
    if let Some(error) = value["error"].as_str() {
        bail!("{method} {path}: {error}: {}", value["message"].as_str().unwrap_or_default());
    }
    Ok(value)
}

/// A part of a page.
#[derive(Clone, Debug)]
pub(crate) struct Element(String);

/// A browser with a tab.
pub(crate) struct Browser {
    at: String,
    path: String,
}

impl Browser {
    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        ask(&self.at, "POST", &format!("{}/{path}", self.path), Some(body)).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        ask(&self.at, "GET", &format!("{}/{path}", self.path), None).await
    }

    /// Ends it.
    pub(crate) async fn quit(&self) -> Result<()> {
        ask(&self.at, "DELETE", &self.path, None).await.map(drop)
    }

    /// Goes to a page, and waits until it is loaded.
    pub(crate) async fn open(&self, url: &str) -> Result<()> {
        self.post("url", &json!({ "url": url })).await.map(drop)
    }

    pub(crate) async fn reload(&self) -> Result<()> {
        self.post("refresh", &json!({})).await.map(drop)
    }

    pub(crate) async fn url(&self) -> Result<String> {
        Ok(self.get("url").await?.as_str().unwrap_or_default().to_owned())
    }

    /// All parts that a CSS selector names.
    pub(crate) async fn all(&self, css: &str) -> Result<Vec<Element>> {
        let found =
            self.post("elements", &json!({ "using": "css selector", "value": css })).await?;
        let ids = found.as_array().into_iter().flatten();
        Ok(ids.filter_map(|one| one[ELEMENT].as_str().map(|id| Element(id.to_owned()))).collect())
    }

    /// The first of them, as soon as it is there.
    pub(crate) async fn one(&self, css: &str) -> Result<Element> {
        let until = Instant::now() + SOON;
        loop {
            if let Some(first) = self.all(css).await?.into_iter().next() {
                return Ok(first);
            }
            if Instant::now() > until {
                let page = self.text("body").await.unwrap_or_default();
                bail!("there is no {css} at {}:\n{page}", self.url().await?);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// The text of a part, as it is seen: also where scripts are off.
    pub(crate) async fn text(&self, css: &str) -> Result<String> {
        let until = Instant::now() + SOON;
        loop {
            let found = self.all(css).await?.into_iter().next();
            let found = found.with_context(|| format!("there is no {css}"))?;
            match self.get(&format!("element/{}/text", found.0)).await {
                Ok(text) => return Ok(text.as_str().unwrap_or_default().to_owned()),
                // It was shown anew in between.
                Err(_) if Instant::now() < until => sleep(LOOK_EVERY).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until a part of the page reads so: also where scripts are off.
    pub(crate) async fn reads(&self, css: &str, text: &str) -> Result<()> {
        let until = Instant::now() + SOON;
        loop {
            let seen = self.text(css).await.unwrap_or_default();
            if seen.contains(text) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "{css} does not read {text:?}: {seen}");
            sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn click(&self, css: &str) -> Result<()> {
        let until = Instant::now() + SOON;
        loop {
            let element = self.one(css).await?;
            match self.post(&format!("element/{}/click", element.0), &json!({})).await {
                Ok(_) => return Ok(()),
                // It was shown anew in between: nothing was clicked.
                Err(error) if is_stale(&error) && Instant::now() < until => {}
                Err(error) => return Err(error).with_context(|| format!("click {css}")),
            }
        }
    }

    /// Types a text into a field.
    pub(crate) async fn write(&self, css: &str, text: &str) -> Result<()> {
        let element = self.one(css).await?;
        let path = format!("element/{}/value", element.0);
        self.post(&path, &json!({ "text": text })).await.map(drop)
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub(crate) async fn press(&self, keys: &[&str]) -> Result<()> {
        let steps = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        self.act(steps.collect()).await
    }

    /// Presses a key while another one is held.
    pub(crate) async fn chord(&self, held: &str, key: &str) -> Result<()> {
        let steps = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        let steps = steps.map(|(kind, key)| json!({ "type": kind, "value": key }));
        self.act(steps.to_vec()).await
    }

    async fn act(&self, steps: Vec<Value>) -> Result<()> {
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] });
        self.post("actions", &actions).await.map(drop)
    }

    /// The value of an expression of a script in the page.
    pub(crate) async fn value(&self, expression: &str) -> Result<Value> {
        let script = json!({ "script": format!("return ({expression})"), "args": [] });
        self.post("execute/sync", &script).await
    }

    /// Runs a script in the page, with arguments.
    pub(crate) async fn run(&self, script: &str, args: &[Value]) -> Result<Value> {
        self.post("execute/sync", &json!({ "script": script, "args": args })).await
    }

    /// Waits until an expression is true. Pages come and go meanwhile.
    pub(crate) async fn until(&self, expression: &str) -> Result<()> {
        let until = Instant::now() + SOON;
        loop {
            let value = self.value(expression).await;
            if matches!(value, Ok(Value::Bool(true))) {
                return Ok(());
            }
            if Instant::now() > until {
                let page = self.text("body").await.unwrap_or_default();
                bail!("it is not so: {expression} ({value:?}) at {}:\n{page}", self.url().await?);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until the page shows a text.
    pub(crate) async fn shows(&self, text: &str) -> Result<()> {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await
    }

    /// Waits until a part of the page shows a text.
    pub(crate) async fn part_shows(&self, css: &str, text: &str) -> Result<()> {
        let part = format!("document.querySelector({})?.innerText", json!(css));
        self.until(&format!("!!{part}?.includes({})", json!(text))).await
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: &str, params: &Value) -> Result<Value> {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": params })).await
    }

    /// From now on pages are so wide and high, in CSS pixels. `None`: as the window is.
    pub(crate) async fn size(&self, size: Option<(u32, u32)>) -> Result<()> {
        match size {
            Some((width, height)) => {
                let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
                self.devtools("Emulation.setDeviceMetricsOverride", &params).await.map(drop)
            }
            None => {
                self.devtools("Emulation.clearDeviceMetricsOverride", &json!({})).await.map(drop)
            }
        }
    }

    /// From now on people like it dark, or light.
    pub(crate) async fn scheme(&self, scheme: &str) -> Result<()> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features).await.map(drop)
    }

    /// Whether scripts of pages that are opened from now on are run.
    pub(crate) async fn scripts(&self, run: bool) -> Result<()> {
        let params = json!({ "value": !run });
        self.devtools("Emulation.setScriptExecutionDisabled", &params).await.map(drop)
    }

    pub(crate) async fn cookies(&self) -> Result<Vec<Value>> {
        Ok(self.get("cookie").await?.as_array().cloned().unwrap_or_default())
    }

    pub(crate) async fn forget_cookies(&self) -> Result<()> {
        ask(&self.at, "DELETE", &format!("{}/cookie", self.path), None).await.map(drop)
    }

    /// Further commands are about a frame of the page; `None`: about the page.
    pub(crate) async fn frame(&self, css: Option<&str>) -> Result<()> {
        let id = match css {
            Some(css) => json!({ ELEMENT: self.one(css).await?.0 }),
            None => Value::Null,
        };
        self.post("frame", &json!({ "id": id })).await.map(drop)
    }

    /// Whether a dialog is open.
    pub(crate) async fn is_asked(&self) -> bool {
        self.get("alert/text").await.is_ok()
    }

    /// The page, as far as it is seen: a PNG, into a file.
    pub(crate) async fn picture(&self, file: &Path) -> Result<()> {
        let shot = self.get("screenshot").await?;
        let bytes = decoded(shot.as_str().unwrap_or_default())?;
        std::fs::write(file, bytes).with_context(|| format!("write {}", file.display()))
    }
}

/// Base64, as pictures come.
fn decoded(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => bail!("a picture that is not base64"),
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff)?);
        }
    }
    ensure!(bytes.starts_with(b"\x89PNG"), "a picture that is no PNG");
    Ok(bytes)
}

/// The part of the page was another one by then.
fn is_stale(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("stale element reference")
}
