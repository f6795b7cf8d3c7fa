//! Events that are posted to a host: a subscription has a URL, a source, and a place, and lasts as long as its host renews it.
//!
//! It is memory, as all that waits for a host: the node keeps no keys. After a restart, or at another node, a host that renews its
//! subscription says where it was, and nothing is lost: events are behind a cursor.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bridge::{
    ids,
    read::{Callback, CallbackError},
};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    asking::{
        Asking, Name,
        hooks::{Hook, Renewed, State},
    },
    events::{Source, complete, cursor, pause},
    limits::{
        EVENTS_AT_ONCE_MAX, HOOK_RETRY_FIRST, HOOK_RETRY_MAX, HOOK_TTL_DEFAULT, HOOK_TTL_MAX,
        HOOK_TTL_MIN, HOOKS_MAX, HOOKS_PER_AGENT_MAX, HOOKS_PER_KEY_MAX, TASK_LOOK_EVERY,
        TASK_WAIT_MAX,
    },
    occurrence::Occurrence,
    outcome::No,
    tasks_kept::{millis, now_ms, time},
};

/// The same agent, URL and source are the same subscription.
fn id(of: &Name, url: &str, source: &Source) -> String {
    let (agent, key) = of;
    let named = json!([agent, key.0, url, source.name(), source.arguments()]).to_string();
    let hash = Sha256::digest(named.as_bytes());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What a host asks for, checked.
struct Wanted {
    id: String,
    source: Source,
    renewed: Renewed,
    ttl: Duration,
}

impl Wanted {
    async fn of(asking: &Asking, params: &Value) -> Result<Wanted, No> {
        let source = Source::open(asking, params).await?;
        let delivery = &params["delivery"];
        let text = |field: &'static str| {
            let given = delivery[field].as_str();
            given.ok_or_else(|| No::argument(field, "must be a text in `delivery`"))
        };
        let (url, secret) = (text("url")?, text("secret")?);
        let to = Callback::new(url, secret).map_err(|error| unfit(&error))?;
        asking.shared.desk.may_post(&asking.reader, &to).await.map_err(|error| unfit(&error))?;
        let ttl = params["ttlMs"].as_u64().map_or(HOOK_TTL_DEFAULT, Duration::from_millis);
        let ttl = ttl.clamp(HOOK_TTL_MIN, HOOK_TTL_MAX);
        // It waits as a task does: its agent need not be there.
        let asking = asking.patient(TASK_WAIT_MAX);
        let id = id(&asking.id(), url, &source);
        let renewed = Renewed { asking, to, until: Instant::now() + ttl };
        Ok(Wanted { id, source, renewed, ttl })
    }
}

fn unfit(error: &CallbackError) -> No {
    No::argument("delivery", &format!("cannot be: {error}"))
}

/// Begins a subscription, or renews it.
pub(crate) async fn subscribe(asking: &Asking, params: &Value) -> Result<Value, No> {
    let given = cursor(params)?;
    let Wanted { id, source, renewed, ttl } = Wanted::of(asking, params).await?;
    let hooks = &asking.shared.hooks;
    let answer = |cursor: &str, truncated: bool, error: Option<&str>| {
        let before = now_ms().saturating_add(millis(ttl));
        let delivery = json!({"active": error.is_none(), "lastError": error});
        complete(json!({
            "id": id,
            "refreshBefore": time(before),
            "cursor": cursor,
            "truncated": truncated,
            "deliveryStatus": delivery,
        }))
    };
    if let Some(hook) = hooks.all().get(&id) {
        // It is where it is: a host that renews it need not know where.
        hook.renewed.send_replace(renewed);
        let state = hook.state.lock().unwrap_or_else(PoisonError::into_inner);
        return Ok(answer(&state.cursor, false, state.error.as_deref()));
    }
    has_room(&hooks.all(), &asking.id())?;
    verify(&renewed, &id).await?;
    let start = source.after(asking, given, EVENTS_AT_ONCE_MAX).await?;
    // From before what was found: that is posted, too.
    let first = given.map_or_else(|| start.cursor.clone(), str::to_owned);
    let state = Arc::new(Mutex::new(State { cursor: first.clone(), error: None }));
    let (renewed, renewals) = watch::channel(renewed);
    let worker = Worker { id: id.clone(), source, renewals, state: state.clone() };
    let mut all = hooks.all();
    has_room(&all, &asking.id())?;
    let posting = tokio::spawn(worker.run()).abort_handle();
    all.insert(id.clone(), Hook { of: asking.id(), posting, renewed, state });
    drop(all);
    Ok(answer(&first, start.truncated, None))
}

fn has_room(all: &BTreeMap<String, Hook>, of: &Name) -> Result<(), No> {
    let of_agent = all.values().filter(|hook| hook.of == *of).count();
    let of_key = all.values().filter(|hook| hook.of.1 == of.1).count();
    let is_full =
        of_agent >= HOOKS_PER_AGENT_MAX || of_key >= HOOKS_PER_KEY_MAX || all.len() >= HOOKS_MAX;
    if is_full {
        let retry = json!(millis(HOOK_TTL_MIN));
        return Err(No::error("too many subscriptions; end one").with("retryAfterMs", retry));
    }
    Ok(())
}

/// Whether who listens there wants it: else a node would be sent against others.
async fn verify(renewed: &Renewed, id: &str) -> Result<(), No> {
    let challenge = ids::uuid(ids::random(), 4);
    let body = json!({"type": "verification", "subscriptionId": id, "challenge": challenge});
    let named = format!("verification-{challenge}");
    let answer = renewed.post(&named, &body).await.map_err(|error| unfit(&error))?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if answer["challenge"] == *challenge {
        return Ok(());
    }
    let text =
        "was not taken: who listens there must answer {\"challenge\": …} with what it was sent";
    Err(No::argument("delivery", text))
}

/// Ends a subscription of this agent.
pub(crate) fn unsubscribe(asking: &Asking, params: &Value) -> Result<Value, No> {
    let id = params["id"].as_str().ok_or_else(|| No::argument("id", "must be a subscription's"))?;
    let mut all = asking.shared.hooks.all();
    let is_own = all.get(id).is_some_and(|hook| hook.of == asking.id());
    if !is_own {
        return Err(No::error("there is no such subscription"));
    }
    all.remove(id);
    Ok(complete(json!({})))
}

impl Renewed {
    async fn post(&self, id: &str, body: &Value) -> Result<Bytes, CallbackError> {
        let body = Bytes::from(body.to_string());
        self.asking.shared.desk.post(&self.asking.reader, &self.to, id, body).await
    }
}

/// Posts one event after the other.
struct Worker {
    id: String,
    source: Source,
    renewals: watch::Receiver<Renewed>,
    state: Arc<Mutex<State>>,
}

impl Worker {
    fn now(&self) -> Renewed {
        self.renewals.borrow().clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.now().until
    }

    /// Until nobody renews it, or the agent may not hear any more.
    async fn run(self) {
        let ended = self.posts().await;
        if let Err(no) = ended {
            let body = json!({"type": "terminated", "subscriptionId": self.id, "error": no.text()});
            // An error: who is told no more need not hear that.
            self.now().post(&format!("terminated-{}", self.id), &body).await.ok();
        }
    }

    async fn posts(&self) -> Result<(), No> {
        let mut watch = self.source.watch(&self.now().asking).await?;
        while !self.is_over() {
            let asking = self.now().asking;
            asking.goes_on().await?;
            let after = self.state().cursor.clone();
            let found = self.source.after(&asking, Some(&after), EVENTS_AT_ONCE_MAX).await?;
            if found.truncated && !self.posted("gap", &self.gap(&found.cursor)).await? {
                return Ok(());
            }
            for event in &found.events {
                if !self.posted(&event.id, &self.body(event)).await? {
                    return Ok(());
                }
                self.state().cursor.clone_from(&event.cursor);
            }
            self.state().cursor = found.cursor;
            if !found.more {
                let look = Instant::now() + TASK_LOOK_EVERY;
                // No news: it is looked whether the key is still valid.
                drop(timeout_at(look.min(self.now().until), watch.news()).await);
            }
        }
        Ok(())
    }

    fn body(&self, event: &Occurrence) -> Value {
        let mut body = self.source.event(event);
        body.insert("subscriptionId".to_owned(), json!(self.id));
        Value::Object(body)
    }

    fn gap(&self, cursor: &str) -> Value {
        json!({"type": "gap", "subscriptionId": self.id, "truncated": true, "cursor": cursor})
    }

    /// Tries until it was taken. `false`: nobody has renewed the subscription by then.
    async fn posted(&self, id: &str, body: &Value) -> Result<bool, No> {
        let mut failures = 0;
        loop {
            let now = self.now();
            if Instant::now() >= now.until {
                return Ok(false);
            }
            match now.post(id, body).await {
                Ok(_) => {
                    self.state().error = None;
                    return Ok(true);
                }
                Err(error) => self.state().error = Some(error.to_string()),
            }
            sleep(pause(failures, HOOK_RETRY_FIRST, HOOK_RETRY_MAX)).await;
            failures += 1;
            now.asking.goes_on().await?;
        }
    }
}
