//! `clawmesh open`.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

use client::http::{Ask, Method, ask};
use client::limits::HTTP_WITHIN;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};

/// Open the node's page in a browser, signed in with your key
///
/// The link signs in whoever opens it first, within a minute. Without a browser here it is printed.
#[derive(Debug, clap::Args)]
pub struct Open {
    /// The name under which you write there [default: operator]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the link, and open nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    operator: Operator,
}

/// The answer of a node.
#[derive(Debug, Deserialize)]
struct Made {
    path: String,
    seconds: u64,
}

/// The same for a client's user.
#[derive(Debug, Serialize)]
struct Link {
    url: String,
    seconds: u64,
    opened: bool,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
}

pub(crate) async fn run(cx: &Context, args: Open) -> Result<Outcome, Failure> {
    let node = args.operator.web(&cx.node)?.ok_or(Failure::PageOverHttp)?;
    let (key, authorities) = (cx.key()?, cx.authorities());
    let body = serde_json::to_vec(&serde_json::json!({ "name": args.name }))?;
    let asked = Ask {
        method: Method::POST,
        path: "/ui/link",
        key: &key,
        authorities: &authorities,
        headers: &[("content-type", "application/json")],
        body,
        within: HTTP_WITHIN,
    };
    let answer = ask(&node, asked).await?;
    if answer.status == 404 {
        return Err(Failure::NoPage);
    }
    if answer.status != 200 {
        let refusal: Result<Refusal, _> = serde_json::from_slice(&answer.body);
        let why = match refusal {
            Ok(refusal) => refusal.error,
            Err(_) => format!("the node answered with HTTP status {}", answer.status),
        };
        return Err(Failure::Refused { why: format::printable(&why, " ") });
    }
    let made: Made = serde_json::from_slice(&answer.body)?;
    let url = format!("{}{}", node.http(), made.path);
    let is_person = std::io::stdout().is_terminal() && !cx.output.is_json();
    let opened = !args.print && is_person && in_browser(&url);
    let link = Link { url, seconds: made.seconds, opened };
    let lines = || {
        let mut lines = vec![link.url.clone()];
        if link.opened {
            lines.push(format!(
                "Opened in a browser; the link is good once, for {} s.",
                link.seconds
            ));
        }
        lines
    };
    cx.output.show(&link, lines)?;
    Ok(Outcome::Done)
}

/// Whether a browser was told to.
fn in_browser(url: &str) -> bool {
    let named = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match named {
        Some(program) => program,
        None if has_screen => usual.to_owned(),
        None => return false,
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
