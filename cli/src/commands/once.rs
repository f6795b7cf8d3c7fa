//! `clawmesh once`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use client::client::Client;
use client::events::{Event, Events};
use protocol::event::{Event as Pushed, OnceLost, OnceWhy};
use protocol::reply::OnceResult;
use protocol::request::{ListAgents, Once as Ask};
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::format::name;
use crate::outcome::{Failure, Outcome};

/// Run a command at no more than one of many nodes
///
/// The first that asks for SUBJECT in ROOM runs COMMAND and exits with its code. All others run nothing, say who has it and
/// exit 4. Without --lease SUBJECT stays taken for 30 days, whatever becomes of COMMAND. COMMAND has CLAWMESH_ONCE_GRANT in
/// its environment.
#[derive(Debug, clap::Args)]
pub struct Once {
    /// Room id, or exact name
    pub room: String,
    /// The thing that is to be done once: 1 to 128 bytes
    pub subject: String,
    /// SUBJECT is free again so long after COMMAND has ended, or its machine died: renewed at half the time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: Option<u64>,
    /// SUBJECT is free again as soon as COMMAND has ended
    #[arg(long)]
    pub release: bool,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Between two tries to renew a lease.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(crate) async fn run(cx: &Context, args: Once) -> Result<Outcome, Failure> {
    let (client, events) = cx.connect_alone().await?;
    let room_id = cx.join(&client, &args.room).await?;
    let lease_ms = args.lease.map(|secs| secs * 1_000);
    let ask = Ask { room_id, subject: args.subject.clone(), lease_ms, renew: None, release: None };
    let result = client.call(ask.clone()).await?;
    let Some(grant) = result.grant_id.clone().filter(|_| result.granted) else {
        return taken(cx, &client, &result).await;
    };
    if result.durable == Some(1) {
        cx.output
            .note(&format!("once: {}: only this node holds the grant", name(&args.subject)))?;
    }
    let kept = Ask { lease_ms: None, ..ask };
    let held =
        Held { cx, client: &client, kept, grant, lease: args.lease.map(Duration::from_secs) };
    let status = match held.run(events, &args.command).await {
        Ok(status) => status,
        Err(source) => {
            held.give_back().await?;
            let command = args.command[0].to_string_lossy().into_owned();
            return Err(Failure::NotRun { command, source });
        }
    };
    if args.release {
        held.give_back().await?;
    }
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(Outcome::Ran(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Another one has it.
async fn taken(cx: &Context, client: &Client, result: &OnceResult) -> Result<Outcome, Failure> {
    let holder = match &result.agent_id {
        Some(id) => {
            let listed = client.call(ListAgents { room_id: Some(result.room_id.clone()) }).await?;
            let agent = listed.agents.into_iter().find(|agent| agent.agent_id == *id);
            agent.map_or_else(|| name(id), |agent| format!("{} ({})", name(&agent.name), name(id)))
        }
        None => "nobody".to_owned(),
    };
    cx.output.note(&format!("once: {} has {}", holder, name(&result.subject)))?;
    if cx.output.is_json() {
        cx.output.object(result)?;
    }
    Ok(Outcome::Taken)
}

/// The subject is this agent's.
struct Held<'a> {
    cx: &'a Context,
    client: &'a Client,
    kept: Ask,
    grant: String,
    lease: Option<Duration>,
}

impl Held<'_> {
    /// Runs the command to its end, and keeps the lease meanwhile.
    async fn run(&self, mut events: Events, command: &[OsString]) -> io::Result<ExitStatus> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env("CLAWMESH_ONCE_GRANT", &self.grant)
            .spawn()?;
        let mut ended = tokio::task::spawn_blocking(move || child.wait());
        let mut renew_at = self.lease.map(|lease| Instant::now() + lease / 2);
        let mut is_lost = false;
        loop {
            tokio::select! {
                status = &mut ended => {
                    return status.unwrap_or_else(|error| Err(io::Error::other(error)));
                }
                event = events.next() => match event {
                    Some(Event::Pushed(Pushed::OnceLost(lost))) if lost.grant_id == self.grant => {
                        is_lost = true;
                        self.tell_lost(&lost)?;
                    }
                    Some(_) => {}
                    // The client has given up: nobody renews any more, and the command goes on.
                    None => return ended.await.unwrap_or_else(|error| Err(io::Error::other(error))),
                },
                () = at(renew_at), if !is_lost => {
                    let done = self.renew().await?;
                    is_lost = done == Some(false);
                    let pause = self.lease.map(|lease| lease / 2);
                    let pause = if done.is_some() { pause } else { pause.map(|it| it.min(AGAIN_AFTER)) };
                    renew_at = pause.map(|pause| Instant::now() + pause);
                }
            }
        }
    }

    /// Whether the lease begins anew; `None`: the node did not say.
    async fn renew(&self) -> io::Result<Option<bool>> {
        let ask = Ask { renew: Some(self.grant.clone()), ..self.kept.clone() };
        let subject = name(&self.kept.subject);
        match self.client.call(ask).await {
            Ok(result) if result.granted => Ok(Some(true)),
            Ok(result) => {
                let holder = result.agent_id.map_or("nobody".to_owned(), |id| name(&id));
                self.cx.output.note(&format!(
                    "once: {subject} is no longer this agent's: {holder} has it; the command goes on"
                ))?;
                Ok(Some(false))
            }
            Err(error) => {
                let text = format!("once: {subject} could not be renewed: {error}; trying again");
                self.cx.output.note(&text)?;
                Ok(None)
            }
        }
    }

    fn tell_lost(&self, lost: &OnceLost) -> io::Result<()> {
        let why = match lost.why {
            OnceWhy::Lapsed => "its lease had run out",
            OnceWhy::Split => "it was granted earlier on the other side of a split",
        };
        let holder = lost.agent_id.as_deref().map_or("nobody".to_owned(), name);
        let subject = name(&lost.subject);
        self.cx.output.note(&format!(
            "once: {subject} is no longer this agent's: {why}, and {holder} has it; the command goes on"
        ))
    }

    async fn give_back(&self) -> Result<(), Failure> {
        let ask = Ask { release: Some(self.grant.clone()), ..self.kept.clone() };
        self.client.call(ask).await?;
        Ok(())
    }
}

/// Waits until then, or for ever.
async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}
