//! Tools for the hosts of agents, lent to the dialect that they speak. Each is a few requests as they come over HTTP, judged and
//! counted in the same way, for the account of the agent that calls.

use std::sync::Arc;

use axum::http::Method;
use bridge::{
    secret::Secret,
    toolbox::{Called, LentTool, ToolCaller, Toolbox},
};
use mesh::name::id::KeyPrint;
use serde_json::{Map, Value, json};

use crate::{
    Opened, http,
    limits::TOOL_PAGE_ROWS,
    linked::{self, Linked, NoAccount},
    problem::{Answer, Problem},
    registry::Registry,
    stops, usernames,
};

mod results;
mod table;

/// See the module.
pub(crate) struct Tools {
    registry: Opened,
}

impl Tools {
    pub(crate) fn new(registry: Opened) -> Tools {
        Tools { registry }
    }
}

impl Toolbox for Tools {
    fn tools(&self) -> &'static [LentTool] {
        &table::TABLE
    }

    fn call(&self, by: ToolCaller, tool: &'static str, given: Map<String, Value>) -> Called<'_> {
        Box::pin(async move {
            let Some(registry) = self.registry.get() else {
                return results::error("the node is starting; try again in a moment");
            };
            match called(registry, &by, tool, given).await {
                Ok(result) => result,
                Err(NoAccount::Words(text)) => results::error(&text),
                Err(NoAccount::Problem(problem)) => results::refused(&problem),
            }
        })
    }
}

async fn called(
    registry: &Arc<Registry>,
    by: &ToolCaller,
    tool: &str,
    given: Map<String, Value>,
) -> Result<Map<String, Value>, NoAccount> {
    let Linked { key, print, is_known } =
        linked::of(registry, (by.signer.as_ref(), &by.agent)).await?;
    if let Some(signer) = &by.signer {
        registry.agents.note(print, signer.print(), &by.agent);
    }
    let asks = Asks { registry, key, given };
    if tool == table::REGISTER {
        let done = if is_known { asks.update().await } else { asks.register().await };
        return Ok(results::one("agent", done?));
    }
    if !is_known {
        return Err(NoAccount::Words("not registered; call finder_register".to_owned()));
    }
    Ok(match tool {
        table::SEARCH => asks.search().await?,
        table::JOB => {
            // Between two looks it may have gone, and then it has no jobs.
            let own = registry.index().live(print).map(|account| account.id.to_string());
            asks.job(&own.unwrap_or_default()).await?
        }
        table::REVIEW => asks.review().await?,
        table::MAIL => asks.mail().await?,
        table::NEGOTIATE => {
            let body = Value::Object(asks.given.clone());
            results::plain(asks.send(Method::POST, "/api/agents/me/negotiate/", body).await?)
        }
        table::SESSIONS => asks.sessions().await?,
        _ => results::error("there is no such tool"),
    })
}

/// An agent that asks for something, with its arguments.
struct Asks<'a> {
    registry: &'a Arc<Registry>,
    key: Secret,
    given: Map<String, Value>,
}

/// What a call of a tool comes to.
type Outcome = Answer<Map<String, Value>>;

const ME: &str = "/api/agents/me/";
const INBOX: &str = "/api/agents/me/inbox/";
const SENT: &str = "/api/agents/me/sent/";

impl Asks<'_> {
    async fn get(&self, path: &str) -> Answer<Value> {
        http::ask(self.registry, Some(&self.key), (Method::GET, path), None).await
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Answer<Value> {
        http::ask(self.registry, Some(&self.key), (method, path), Some(&body)).await
    }

    /// A page of a list, with more of a query: names and arguments.
    async fn page(&self, path: &str, query: &[(&str, &str)]) -> Outcome {
        let number = self.number("page")?.unwrap_or(1);
        let mut path = format!("{path}?page_size={TOOL_PAGE_ROWS}&page={number}");
        for (name, value) in query {
            path = format!("{path}&{name}={}", encoded(value));
        }
        Ok(results::page(&self.get(&path).await?, number))
    }

    async fn delete(&self, path: &str) -> Outcome {
        let done = http::ask(self.registry, Some(&self.key), (Method::DELETE, path), None).await;
        Ok(results::plain(done?))
    }

    /// An argument that is a text with something in it.
    fn text(&self, name: &str) -> Answer<Option<String>> {
        let text = match self.given.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(Problem::field(name, "Not a valid string.")),
        };
        Ok((!text.is_empty()).then_some(text))
    }

    fn required(&self, name: &str) -> Answer<String> {
        self.text(name)?.ok_or_else(|| Problem::field(name, "This field is required."))
    }

    fn number(&self, name: &str) -> Answer<Option<u64>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let number = text.parse().map(Some);
        number.map_err(|_| Problem::field(name, "A valid integer is required."))
    }

    /// Those of the arguments that have these names, as the body of a request.
    fn body(&self, names: &[&str]) -> Value {
        let of = |name: &&str| Some(((*name).to_owned(), self.given.get(*name)?.clone()));
        Value::Object(names.iter().filter_map(of).collect())
    }

    /// The path of something that an argument names.
    fn path(&self, of: &str, name: &str) -> Answer<String> {
        Ok(format!("{of}{}/", encoded(&self.required(name)?)))
    }

    fn no_action(&self) -> Box<Problem> {
        let action = self.given.get("action").cloned().unwrap_or_default();
        Problem::field("action", crate::fields::no_choice(&action))
    }

    /// The fields of a profile, as they are given. A way to be reached that has no handle may come as its word alone.
    fn profile(&self) -> Value {
        let mut profile = self.body(&["username", "name", "payment_methods", "contact_methods"]);
        let methods = profile.get_mut("contact_methods").and_then(Value::as_array_mut);
        for method in methods.into_iter().flatten().filter(|method| method.is_string()) {
            *method = json!({"method": method.take()});
        }
        profile
    }

    async fn register(&self) -> Answer<Value> {
        let mut profile = self.profile();
        let username = self.required("username")?;
        let assumed = [
            ("name", json!(name_of(&username))),
            ("payment_methods", json!(["invoice"])),
            ("contact_methods", json!([{"method": "index_mailbox"}])),
        ];
        for (field, value) in assumed {
            if profile[field].is_null() {
                profile[field] = value;
            }
        }
        profile["hosted"] = json!(true);
        profile["api_key"] = json!(self.key.expose());
        stops::may_send(self.registry, Some(KeyPrint::of(self.key.expose()))).await?;
        // Nobody shows a key yet.
        let registering = (Method::POST, "/api/agents/register/");
        http::ask(self.registry, None, registering, Some(&profile)).await
    }

    async fn update(&self) -> Answer<Value> {
        let own = self.get(ME).await?;
        let wanted = usernames::folded(&self.required("username")?);
        let names = [&own["username"], &own["mesh"]["username_wanted"]];
        let is_own = |name: &&Value| name.as_str().map(usernames::folded).as_ref() == Some(&wanted);
        if !names.iter().any(is_own) {
            let name = own["username"].as_str().unwrap_or_default();
            let text = format!(
                "You are {name}, and a username is never changed; give it to update the rest."
            );
            return Err(Problem::field("username", text));
        }
        self.send(Method::PATCH, ME, self.profile()).await
    }

    async fn search(&self) -> Outcome {
        let (agent, job) = (self.text("agent")?, self.text("job")?);
        match (agent, job, self.text("query")?) {
            (Some(_), None, None) => {
                let path = self.path("/api/agents/", "agent")?;
                Ok(results::one("agent", self.get(&path).await?))
            }
            (None, Some(_), None) => {
                let path = self.path("/api/jobs/", "job")?;
                Ok(results::one("job", self.get(&path).await?))
            }
            (None, None, query) => {
                self.page("/api/jobs/", &[("search", &query.unwrap_or_default())]).await
            }
            _ => Err(Problem::of_the_whole("give one of query, agent and job")),
        }
    }

    async fn job(&self, own: &str) -> Outcome {
        const JOBS: &str = "/api/jobs/";
        let names = ["title", "description", "price", "price_type", "is_active", "metadata"];
        let fields = self.body(&names);
        match self.required("action")?.as_str() {
            "create" => Ok(results::one("job", self.send(Method::POST, JOBS, fields).await?)),
            "edit" => {
                let path = self.path(JOBS, "id")?;
                Ok(results::one("job", self.send(Method::PATCH, &path, fields).await?))
            }
            "delete" => self.delete(&self.path(JOBS, "id")?).await,
            "mine" => self.page(JOBS, &[("agent_id", own), ("all", "true")]).await,
            _ => Err(self.no_action()),
        }
    }

    async fn review(&self) -> Outcome {
        const REVIEWS: &str = "/api/reviews/";
        match self.required("action")?.as_str() {
            "create" => {
                let fields = self.body(&["reviewee_id", "job_id", "stars", "text"]);
                Ok(results::one("review", self.send(Method::POST, REVIEWS, fields).await?))
            }
            "edit" => {
                let (path, fields) = (self.path(REVIEWS, "id")?, self.body(&["stars", "text"]));
                self.send(Method::PATCH, &path, fields).await?;
                Ok(results::one("review", self.get(&path).await?))
            }
            "delete" => self.delete(&self.path(REVIEWS, "id")?).await,
            "list" => {
                let (agent, job) = (self.text("agent_id")?, self.text("job_id")?);
                let (agent, job) = (agent.unwrap_or_default(), job.unwrap_or_default());
                self.page(REVIEWS, &[("agent_id", &agent), ("job_id", &job)]).await
            }
            _ => Err(self.no_action()),
        }
    }

    async fn mail(&self) -> Outcome {
        let from = self.number("char_offset")?.unwrap_or_default();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        match self.required("action")?.as_str() {
            "list" => {
                let unread = self.given.get("unread_only").is_some_and(is_true);
                let unread: &[(&str, &str)] = if unread { &[("is_read", "false")] } else { &[] };
                self.page(INBOX, unread).await
            }
            "read" => Ok(results::mail(self.get(&self.path(INBOX, "id")?).await?, from)),
            "mark_read" => {
                let path = self.path(INBOX, "id")?;
                let marked = self.send(Method::PATCH, &path, json!({"is_read": true})).await?;
                Ok(results::plain(marked))
            }
            "send" => {
                let mut mail = self.body(&["subject", "body"]);
                // As over HTTP, a field that is missing is named there.
                mail["recipient_id"] = json!(self.required("to")?);
                let sent = self.send(Method::POST, "/api/agents/me/send/", mail).await?;
                Ok(results::one("mail", sent))
            }
            "sent" if self.given.contains_key("id") => {
                Ok(results::mail(self.get(&self.path(SENT, "id")?).await?, from))
            }
            "sent" => self.page(SENT, &[]).await,
            _ => Err(self.no_action()),
        }
    }

    async fn sessions(&self) -> Outcome {
        const SESSIONS: &str = "/api/agents/me/sessions/";
        if self.text("session_id")?.is_none() {
            return self.page(SESSIONS, &[]).await;
        }
        let path = self.path(SESSIONS, "session_id")?;
        Ok(results::session(self.get(&path).await?))
    }
}

/// As models write it.
fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value == "true")
}

/// A text, as a part of a path or a query.
fn encoded(text: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let of = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(of).collect()
}

/// A name for people: `alice-bot` is Alice Bot.
fn name_of(username: &str) -> String {
    let words = username.split(['-', '_', '.']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    words.map(capital).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_parts_of_a_path() {
        assert_eq!(encoded("a b/c?d=\u{e9}&~"), "a%20b%2Fc%3Fd%3D%C3%A9%26~");
        assert_eq!(name_of("alice-research_bot"), "Alice Research Bot");
    }
}
