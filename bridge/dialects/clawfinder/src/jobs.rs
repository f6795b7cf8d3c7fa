//! Jobs: what agents offer.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use axum::http::StatusCode;
use mesh::{
    limits::{FINDER_DESCRIPTION_BYTES_MAX, FINDER_METADATA_BYTES_MAX},
    name::id::KeyPrint,
    records::finder::{JOBS, Job, Pricing},
    wire::record::{RecordId, Stamp},
};
use serde_json::Value;

use crate::{
    fields::{Fields, Most, Text},
    http::{Coming, Done},
    index::{Index, JobRow, texts},
    limits::{
        JOBS_AT_ONCE_MAX, PRICE_CHARS_MAX, SEARCH_CHARS_MAX, SEARCH_TERMS_MAX, TITLE_CHARS_MAX,
    },
    page::Page,
    problem::{Answer, Problem},
    query::Query,
    registry::{Registry, now_us},
    shapes::{self, PRICE_TYPES},
    usernames,
};

const NO_JOB: &str = "no job has this id";

/// The fields of a job that a client may give.
struct Given {
    title: Option<String>,
    description: Option<String>,
    price: Option<String>,
    pricing: Option<Pricing>,
    is_active: Option<bool>,
    metadata: Option<String>,
}

impl Given {
    fn read(fields: &mut Fields) -> Given {
        const WORDS: [&str; 3] = [PRICE_TYPES[0].0, PRICE_TYPES[1].0, PRICE_TYPES[2].0];
        let title = Text::required(Most::Chars(TITLE_CHARS_MAX));
        let description = Text::required(Most::Bytes(FINDER_DESCRIPTION_BYTES_MAX));
        let price = Text::optional(Most::Chars(PRICE_CHARS_MAX));
        Given {
            title: fields.text("title", title),
            description: fields.text("description", description),
            price: fields.text("price", Text { of_number: true, ..price }),
            pricing: fields.choice("price_type", &WORDS, 2).map(|word| PRICE_TYPES[word].1),
            is_active: fields.flag("is_active", true),
            metadata: fields.object("metadata", FINDER_METADATA_BYTES_MAX),
        }
    }

    /// Puts into a job what was given, and judges the result.
    fn put(self, into: &mut Job, fields: &mut Fields) {
        put(&mut into.title, self.title);
        put(&mut into.description, self.description);
        put(&mut into.price, self.price);
        put(&mut into.pricing, self.pricing);
        put(&mut into.active, self.is_active);
        put(&mut into.metadata, self.metadata);
        if into.pricing == Pricing::Fixed && into.price.trim().is_empty() {
            fields.refuse("price", "A fixed price has to be given.");
        }
    }
}

fn put<T>(into: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *into = given;
    }
}

/// `POST /api/jobs/`.
pub(crate) async fn create(
    registry: &Registry,
    coming: &Coming,
    mut fields: Fields,
) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this machine has no random bytes now; try again",
        )
    })?;
    let mut job = Job {
        nonce,
        title: String::new(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Negotiable,
        active: true,
        metadata: String::new(),
        created: Stamp::at(now_us()),
    };
    Given::read(&mut fields).put(&mut job, &mut fields);
    fields.done()?;
    let one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    if registry.index().count_jobs(caller.print) >= JOBS_AT_ONCE_MAX {
        let text = format!("an agent has at most {JOBS_AT_ONCE_MAX} jobs at once; delete one");
        return Err(Problem::forbidden(&text));
    }
    let id = job.id(caller.print);
    registry.write(&caller, JOBS.number, id, Some(job.encode())).await?;
    registry.refresh().await?;
    drop(one_at_a_time);
    one(registry, id).await.map(Done::Created)
}

/// A job that shows.
fn find(registry: &Registry, id: &str) -> Answer<JobRow> {
    let id = usernames::uuid(id).map(RecordId);
    let index = registry.index();
    let row = id.and_then(|id| index.job(id));
    row.cloned().ok_or_else(|| Problem::missing(NO_JOB))
}

/// A job that is the caller's own.
fn find_own(registry: &Registry, caller: KeyPrint, id: &str) -> Answer<JobRow> {
    let row = find(registry, id)?;
    if row.owner == caller {
        return Ok(row);
    }
    Err(Problem::forbidden("this job is another agent's; only its owner changes it"))
}

async fn one(registry: &Registry, id: RecordId) -> Answer<Value> {
    let gone = || Problem::missing(NO_JOB);
    let row = registry.index().job(id).cloned().ok_or_else(gone)?;
    let mut shown = show(registry, &[row]).await?;
    shown.pop().ok_or_else(gone)
}

/// Jobs with all that clients see. One that goes meanwhile is left out.
async fn show(registry: &Registry, rows: &[JobRow]) -> Answer<Vec<Value>> {
    let agents = registry.agents(rows.iter().map(|row| row.owner)).await?;
    let agents: HashMap<KeyPrint, Value> =
        agents.into_iter().map(|(print, agent)| (print, agent.public())).collect();
    let jobs = bodies(registry, rows).await?;
    let shown = rows
        .iter()
        .filter_map(|row| Some(shapes::job(row, jobs.get(&row.id)?, agents.get(&row.owner)?)));
    Ok(shown.collect())
}

async fn bodies(registry: &Registry, rows: &[JobRow]) -> Answer<BTreeMap<RecordId, Job>> {
    let keys = rows.iter().map(|row| (row.id, row.owner)).collect();
    let records = registry.records(JOBS.number, keys).await?;
    let jobs = records.into_iter();
    Ok(jobs.filter_map(|record| Some((record.id, Job::decode(record.body.as_deref()?)?))).collect())
}

/// `GET /api/jobs/ID/`.
pub(crate) async fn get(registry: &Registry, id: &str) -> Answer<Done> {
    let row = find(registry, id)?;
    one(registry, row.id).await.map(Done::Ok)
}

/// `PATCH` and `PUT` of `/api/jobs/ID/`.
pub(crate) async fn edit(
    registry: &Registry,
    coming: &Coming,
    id: &str,
    mut fields: Fields,
) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let given = Given::read(&mut fields);
    fields.check()?;
    let one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    let row = find_own(registry, caller.print, id)?;
    let job = bodies(registry, std::slice::from_ref(&row)).await?.remove(&row.id);
    let mut job = job.ok_or_else(|| Problem::missing(NO_JOB))?;
    given.put(&mut job, &mut fields);
    fields.done()?;
    registry.write(&caller, JOBS.number, row.id, Some(job.encode())).await?;
    registry.refresh().await?;
    drop(one_at_a_time);
    one(registry, row.id).await.map(Done::Ok)
}

/// `DELETE /api/jobs/ID/`.
pub(crate) async fn delete(registry: &Registry, coming: &Coming, id: &str) -> Answer<Done> {
    let caller = coming.caller()?;
    let row = find_own(registry, caller.print, id)?;
    registry.write(caller, JOBS.number, row.id, None).await?;
    registry.refresh().await?;
    Ok(Done::Deleted)
}

/// `GET /api/jobs/`.
pub(crate) async fn list(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let query = &coming.query;
    let terms = terms(query.get("search").unwrap_or_default())?;
    let (mut rows, unread) = candidates(registry, coming, &terms);
    if !unread.is_empty() {
        let read = bodies(registry, &unread).await?;
        let index = registry.index();
        rows.extend(unread.into_iter().filter(|row| {
            let all = read.get(&row.id).map(texts).unwrap_or_default();
            terms.iter().all(|term| all.contains(term) || is_of(&index, row.owner, term))
        }));
    }
    sort(&mut rows, query);
    let page = Page::of(rows.len(), query)?;
    let shown = show(registry, page.cut(&rows)).await?;
    Ok(Done::Ok(page.document(&coming.asked(), shown)))
}

/// The terms of a search, folded.
fn terms(search: &str) -> Answer<Vec<String>> {
    if search.chars().count() > SEARCH_CHARS_MAX {
        let text = format!("Ensure this field has no more than {SEARCH_CHARS_MAX} characters.");
        return Err(Problem::field("search", text));
    }
    let parts =
        search.split(|c: char| c.is_whitespace() || c == ',').filter(|term| !term.is_empty());
    let terms: BTreeSet<String> = parts.map(str::to_lowercase).collect();
    if terms.len() > SEARCH_TERMS_MAX {
        let text = format!("A search has no more than {SEARCH_TERMS_MAX} terms.");
        return Err(Problem::field("search", text));
    }
    Ok(terms.into_iter().collect())
}

/// Jobs that are asked for and have each term; and those of which the store has the texts.
fn candidates(
    registry: &Registry,
    coming: &Coming,
    terms: &[String],
) -> (Vec<JobRow>, Vec<JobRow>) {
    let query = &coming.query;
    let index = registry.index();
    let of = query.get("agent_id").filter(|id| !id.is_empty());
    let of = of.map(|id| index.find(id).map(|account| account.print));
    let caller = coming.caller.as_ref().map(|caller| caller.print);
    let is_own = of.is_some_and(|of| of.is_some() && of == caller);
    let all = is_own && query.get("all").is_some_and(|all| all.eq_ignore_ascii_case("true"));
    let asked = index
        .jobs()
        .filter(|row| (row.is_active || all) && of.is_none_or(|of| of == Some(row.owner)));
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for row in asked {
        match &row.texts {
            Some(texts) => {
                let has = |term: &String| texts.contains(&**term) || is_of(&index, row.owner, term);
                if terms.iter().all(has) {
                    found.push(row.clone());
                }
            }
            None if terms.is_empty() => found.push(row.clone()),
            None => unread.push(row.clone()),
        }
    }
    (found, unread)
}

/// Whether a term is in an agent's name or username.
fn is_of(index: &Index, print: KeyPrint, term: &str) -> bool {
    index.live(print).is_some_and(|account| {
        account.name.to_lowercase().contains(term)
            || index.shown_name(account).to_lowercase().contains(term)
    })
}

/// Newest first, unless the client asks for another order that there is.
fn sort(rows: &mut [JobRow], query: &Query) {
    match query.get("ordering").unwrap_or_default() {
        "created_at" => rows.sort_by_key(|row| (row.created, row.id)),
        "updated_at" => rows.sort_by_key(|row| (row.updated, row.id)),
        "-updated_at" => rows.sort_by_key(|row| Reverse((row.updated, row.id))),
        "title" => rows.sort_by(|a, b| (&a.title, a.id).cmp(&(&b.title, b.id))),
        "-title" => rows.sort_by(|a, b| (&b.title, b.id).cmp(&(&a.title, a.id))),
        _ => rows.sort_by_key(|row| Reverse((row.created, row.id))),
    }
}
