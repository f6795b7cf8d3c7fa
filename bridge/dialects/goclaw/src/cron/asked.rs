//! Jobs as clients write them.

use bridge::schedules::{Deliver, Job, Target, parse, plan::Plan};
use mesh::{limits::JOB_MESSAGE_BYTES_MAX, name::id::AgentId};
use serde_json::Value;

use crate::{
    caller::Caller,
    channels,
    outcome::No,
    params::{AGENT, Names, Params, is_required, must_be},
    times,
};

pub(super) const JOB: &Names = &["jobId", "id", "job_id"];
pub(super) const SCHEDULE: &Names = &["schedule", "cron_expression"];
const ZONE: &Names = &["timezone", "tz"];
const CHANNEL: &Names = &["deliverChannel", "channel"];
const TO: &Names = &["deliverTo", "to"];

/// The name of a job.
const NAME_BYTES_MAX: usize = 64;
/// A room or an agent, as a client names it.
const TO_BYTES_MAX: usize = 256;

/// A job, as far as a client says it. `None`: it stays as it is; `Some(None)`: there is none any more.
pub(super) struct Change {
    pub(super) name: Option<String>,
    pub(super) plan: Option<Plan>,
    pub(super) message: Option<String>,
    pub(super) agent: Option<Option<AgentId>>,
    pub(super) deliver: Option<Option<Deliver>>,
    pub(super) enabled: Option<bool>,
    pub(super) stateless: Option<bool>,
    pub(super) delete_after: Option<bool>,
}

impl Change {
    /// `of`: the job as it is, if it is there.
    pub(super) async fn read(
        caller: &Caller,
        params: &Params,
        of: Option<&Job>,
    ) -> Result<Change, No> {
        let name = params.filled(&["name"])?.map(|name| slug(&name)).transpose()?;
        let message = message(params)?;
        let plan = plan(params, of)?;
        let agent = match params.text(AGENT)? {
            None => None,
            Some(text) if text.is_empty() => Some(None),
            Some(text) => Some(Some(caller.agent(&text).await?.agent)),
        };
        Ok(Change {
            name,
            plan,
            message,
            agent,
            deliver: deliver(caller, params, of).await?,
            enabled: params.flag(&["enabled"])?,
            stateless: params.flag(&["stateless"])?,
            delete_after: params.flag(&["deleteAfterRun"])?,
        })
    }

    /// The job with it.
    pub(super) fn of(self, job: Job, now_ms: u64) -> Job {
        let is_enabled = self.enabled == Some(true) && !job.enabled;
        // Slots of the old schedule, or of when it was off, are not missed.
        let begins_anew = self.plan.is_some() || is_enabled;
        let from_ms = if begins_anew { now_ms.max(job.from_ms) } else { job.from_ms };
        Job {
            name: self.name.unwrap_or(job.name),
            plan: self.plan.unwrap_or(job.plan),
            message: self.message.unwrap_or(job.message),
            agent: self.agent.unwrap_or(job.agent),
            deliver: self.deliver.unwrap_or(job.deliver),
            enabled: self.enabled.unwrap_or(job.enabled),
            stateless: self.stateless.unwrap_or(job.stateless),
            delete_after: self.delete_after.unwrap_or(job.delete_after),
            from_ms,
            ..job
        }
    }
}

/// A job that asks nobody and says nothing anywhere is none.
pub(super) fn goes_somewhere(job: &Job) -> Result<(), No> {
    if job.agent.is_none() && job.deliver.is_none() {
        return Err(No::invalid("agentId is required, or deliver with deliverTo"));
    }
    Ok(())
}

/// A name of letters, digits and hyphens, made of another one if that gives one.
fn slug(name: &str) -> Result<String, No> {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    // As it is, it may have more than one hyphen in a row.
    let is_one = |name: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        name.chars().all(plain) && !name.starts_with('-') && !name.ends_with('-')
    };
    let slug = if is_one(name) { name } else { slug.trim_end_matches('-') };
    if slug.is_empty() || slug.len() > NAME_BYTES_MAX {
        let text = format!("name must have 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -");
        return Err(No::invalid(text));
    }
    Ok(slug.to_owned())
}

fn message(params: &Params) -> Result<Option<String>, No> {
    let names = &["message"];
    let message = match params.text(names)? {
        Some(message) => Some(message),
        None => match params.get(&["payload"]).map(|payload| &payload["message"]) {
            None | Some(Value::Null) => None,
            Some(message) => {
                Some(message.as_str().ok_or_else(|| must_be(names, "a string"))?.to_owned())
            }
        },
    };
    match message {
        Some(message) if message.is_empty() => Err(is_required(names)),
        Some(message) if message.len() > JOB_MESSAGE_BYTES_MAX => {
            Err(No::invalid(format!("message must have at most {JOB_MESSAGE_BYTES_MAX} bytes")))
        }
        message => Ok(message),
    }
}

fn plan(params: &Params, of: Option<&Job>) -> Result<Option<Plan>, No> {
    let now_ms = times::now_ms();
    let zone = params.filled(ZONE)?;
    let named = zone.as_deref().unwrap_or("UTC");
    let bad = |bad: bridge::schedules::plan::BadPlan| No::invalid(bad.to_string());
    let plan = match params.get(SCHEDULE) {
        Some(Value::String(text)) => parse(text, named, now_ms).map_err(bad)?,
        Some(object @ Value::Object(_)) => Plan::of(object, named).map_err(bad)?,
        Some(_) => return Err(must_be(SCHEDULE, "a text or an object")),
        None => {
            // The same line, in another zone.
            let line = of.map(|job| job.plan.shown()).filter(|_| zone.is_some());
            let expr = line.as_ref().and_then(|line| line["expr"].as_str());
            let Some(expr) = expr else { return Ok(None) };
            Plan::cron(expr, named).map_err(bad)?
        }
    };
    plan.check(now_ms).map_err(bad)?;
    Ok(Some(plan))
}

async fn deliver(
    caller: &Caller,
    params: &Params,
    of: Option<&Job>,
) -> Result<Option<Option<Deliver>>, No> {
    let (channel, to) = (params.filled(CHANNEL)?, params.filled(TO)?);
    let wants = match params.get(&["deliver"]) {
        None => None,
        Some(Value::Bool(wants)) => Some(*wants),
        Some(Value::String(text)) if text == "channel" => Some(true),
        Some(_) => return Err(must_be(&["deliver"], "true or false")),
    };
    if wants == Some(false) {
        return Ok(Some(None));
    }
    if wants.is_none() && to.is_none() && channel.is_none() {
        return Ok(None);
    }
    if to.as_ref().is_some_and(|to| to.len() > TO_BYTES_MAX) {
        return Err(No::invalid(format!("deliverTo must have at most {TO_BYTES_MAX} bytes")));
    }
    let before = of.and_then(|job| job.deliver.as_ref());
    let to = to.or_else(|| before.map(|deliver| deliver.to.clone()));
    if let Some(name) = channel.as_deref().filter(|name| !["room", "agent"].contains(name)) {
        // Its receiver is told, and makes of it what it wants.
        let to = to.unwrap_or_default();
        let target = webhook(caller, name, before.map(|deliver| &deliver.target)).await?;
        return Ok(Some(Some(Deliver { to, target })));
    }
    let kind = match (channel.as_deref(), before.map(|deliver| &deliver.target)) {
        (None, Some(target @ Target::Webhook { .. })) => {
            let (to, target) = (to.unwrap_or_default(), target.clone());
            return Ok(Some(Some(Deliver { to, target })));
        }
        (Some("agent"), _) | (None, Some(Target::Agent(_))) => "agent",
        (Some(_), _) | (None, Some(Target::Room(_)) | None) => "room",
    };
    let to = to.filter(|to| !to.is_empty()).ok_or_else(|| is_required(TO))?;
    let target = if kind == "agent" {
        Target::Agent(caller.agent(&to).await?.agent)
    } else {
        Target::Room(caller.team_named(&to).await?.room)
    };
    Ok(Some(Some(Deliver { to, target })))
}

/// A webhook of the key, by its name or id. The one that a job has may be another node's.
async fn webhook(caller: &Caller, name: &str, before: Option<&Target>) -> Result<Target, No> {
    let mut found = channels::hooks_named(caller, name).await?;
    match (found.len(), before) {
        (1, _) => {
            let (id, name) = found.remove(0);
            Ok(Target::Webhook { id, name })
        }
        (0, Some(target @ Target::Webhook { name: had, .. })) if had == name => Ok(target.clone()),
        (0, _) => Err(No::invalid(format!("channel not found: {name}"))),
        _ => {
            let ids: Vec<String> = found.into_iter().map(|(id, _)| id).collect();
            let text = format!("several channels are called {name}: {}", ids.join(", "));
            Err(No::invalid(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_slugged_if_that_gives_one() {
        let slugs =
            [("nightly-1", "nightly-1"), ("a--b", "a--b"), (" Nightly  Sweep! ", "nightly-sweep")];
        for (name, expected) in slugs {
            assert_eq!(slug(name).unwrap(), expected);
        }
        let longest = "n".repeat(NAME_BYTES_MAX);
        assert_eq!(slug(&longest).unwrap(), longest);
        for bad in ["", "---", "ÄÖ", &format!("{longest}n")] {
            assert!(slug(bad).is_err(), "{bad}");
        }
    }
}
