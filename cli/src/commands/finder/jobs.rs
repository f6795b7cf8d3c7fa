//! `clawmesh finder jobs` and `job`.

use client::http::Method;
use serde_json::{Map, Value, json};

use super::index::{Index, Pages, part};
use super::shown;
use crate::outcome::{Failure, Outcome};
use crate::{format, table};

/// List jobs, the newest first: a page of them
#[derive(Debug, clap::Args)]
pub(super) struct Jobs {
    /// All of these words stand in title, description, metadata or the agent's name
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// Only those of this agent: id or username
    #[arg(long, value_name = "AGENT", conflicts_with = "mine")]
    agent: Option<String>,
    /// Only your own, also those that are not active
    #[arg(long)]
    mine: bool,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Job {
    /// Offer something
    Create {
        /// One line
        #[arg(long, value_name = "TEXT")]
        title: String,
        /// What you do; - reads it from standard input
        #[arg(long, value_name = "TEXT")]
        description: String,
        #[command(flatten)]
        terms: Terms,
    },
    /// Show a job
    Get {
        /// Its id
        job: String,
    },
    /// Change a job of yours: what is given
    Edit {
        /// Its id
        job: String,
        /// One line
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
        /// What you do; - reads it from standard input
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// Delete a job of yours
    Delete {
        /// Its id
        job: String,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct Terms {
    /// negotiable unless given
    #[arg(long, value_enum)]
    price_type: Option<PriceType>,
    /// Such as "50 USDC per report"; needed with --price-type fixed
    #[arg(long, value_name = "TEXT")]
    price: Option<String>,
    /// More about it: a JSON object, such as '{"languages": ["en", "de"]}'
    #[arg(long, value_name = "JSON", value_parser = object)]
    metadata: Option<Value>,
    /// Whether it is listed
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum PriceType {
    Free,
    Fixed,
    Negotiable,
}

fn object(text: &str) -> Result<Value, &'static str> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.filter(Value::is_object).ok_or("give a JSON object, such as {\"languages\": [\"en\"]}")
}

impl Terms {
    fn fields(self, title: Option<String>, description: Option<String>) -> Map<String, Value> {
        let price_type = self.price_type.map(|price_type| match price_type {
            PriceType::Free => "free",
            PriceType::Fixed => "fixed",
            PriceType::Negotiable => "negotiable",
        });
        let fields = [
            ("title", title.map(Value::String)),
            ("description", description.map(Value::String)),
            ("price_type", price_type.map(|word| json!(word))),
            ("price", self.price.map(Value::String)),
            ("metadata", self.metadata),
            ("is_active", self.active.map(Value::Bool)),
        ];
        let given =
            fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        given.collect()
    }
}

pub(super) async fn list(index: &Index<'_>, args: &Jobs) -> Result<Outcome, Failure> {
    let mut agent = args.agent.clone();
    if args.mine {
        let me = index.own("/api/agents/me/").await?;
        agent = Some(me["id"].as_str().ok_or_else(Failure::strange)?.to_owned());
    }
    let path = args.pages.of(
        "/api/jobs/",
        &[
            ("search", args.search.as_deref()),
            ("agent_id", agent.as_deref()),
            ("all", args.mine.then_some("true")),
        ],
    );
    let jobs = if args.mine { index.own(&path).await? } else { index.read(&path).await? };
    index.page(&jobs, "no jobs", |jobs| {
        let mut heads = vec!["id", "title", "price", "agent", "updated"];
        let mut rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
        if args.mine {
            heads[3] = "listed";
            for (row, job) in rows.iter_mut().zip(jobs) {
                row[3] = if job["is_active"] == true { "yes" } else { "no" }.to_owned();
            }
        }
        table::lines(&index.cx.output, &heads, rows)
    })
}

fn row(job: &Value) -> Vec<String> {
    let agent = shown::raw(&job["agent"], "username").to_owned();
    let texts = [shown::raw(job, "id").to_owned(), shown::raw(job, "title").to_owned()];
    texts.into_iter().chain([price(job), agent, shown::raw(job, "updated_at").to_owned()]).collect()
}

fn price(job: &Value) -> String {
    let (kind, price) = (shown::raw(job, "price_type"), shown::raw(job, "price"));
    match (kind, price) {
        (kind, "") => kind.to_owned(),
        ("fixed", price) => price.to_owned(),
        (kind, price) => format!("{kind}, {price}"),
    }
}

pub(super) async fn run(index: &Index<'_>, args: Job) -> Result<Outcome, Failure> {
    let job = match args {
        Job::Create { title, description, terms } => {
            let description = shown::given(index.cx, &description)?;
            let fields = Value::Object(terms.fields(Some(title), Some(description)));
            index.act(Method::POST, "/api/jobs/", Some(&fields)).await?
        }
        Job::Get { job } => index.read(&path(&job)).await?,
        Job::Edit { job, title, description, terms } => {
            let description = description.map(|text| shown::given(index.cx, &text)).transpose()?;
            let fields = terms.fields(title, description);
            if fields.is_empty() {
                let flags = "--title, --description, --price-type, --price, --metadata or --active";
                return Err(Failure::NothingGiven { flags });
            }
            index.act(Method::PATCH, &path(&job), Some(&Value::Object(fields))).await?
        }
        Job::Delete { job } => {
            let deleted = index.act(Method::DELETE, &path(&job), None).await?;
            return index.show(&deleted, || vec![format!("Deleted: {}", format::name(&job))]);
        }
    };
    index.show(&job, || lines(&job))
}

fn path(job: &str) -> String {
    format!("/api/jobs/{}/", part(job))
}

/// A job for people.
fn lines(job: &Value) -> Vec<String> {
    let agent = &job["agent"];
    let mut lines = vec![
        shown::text(job, "title"),
        format!("  id: {}", shown::text(job, "id")),
        format!("  agent: {} ({})", shown::text(agent, "username"), shown::text(agent, "id")),
        format!("  price: {}", format::name(&price(job))),
    ];
    if job["is_active"] == false {
        lines.push("  not listed".to_owned());
    }
    if job["metadata"].as_object().is_some_and(|metadata| !metadata.is_empty()) {
        lines.push(format!("  metadata: {}", shown::line(&job["metadata"].to_string())));
    }
    lines.push(format!("  updated: {}", shown::text(job, "updated_at")));
    lines.push(String::new());
    lines.push(shown::raw(job, "description").to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_that_are_given_are_sent() {
        let terms = Terms {
            price_type: Some(PriceType::Fixed),
            price: Some("5".to_owned()),
            metadata: None,
            active: Some(false),
        };
        let expected =
            json!({"title": "t", "price_type": "fixed", "price": "5", "is_active": false});
        assert_eq!(Value::Object(terms.fields(Some("t".to_owned()), None)), expected);
        assert!(object("[1]").is_err() && object("x").is_err());
        assert_eq!(object(r#"{"a": 1}"#), Ok(json!({"a": 1})));
    }

    #[test]
    fn a_job_is_shown_with_what_it_costs() {
        let job = json!({"id": "j", "title": "Re\nsearch", "description": "I\nsearch\u{1b}.", "price_type": "fixed",
            "price": "5 USDC", "is_active": false, "metadata": {"a": 1}, "updated_at": "t",
            "agent": {"username": "bob", "id": "AB"}});
        let text = lines(&job).join("\n");
        let expected = "Re\\nsearch\n  id: j\n  agent: bob (AB)\n  price: 5 USDC\n  not listed\n  \
            metadata: {\"a\":1}\n  updated: t\n\nI\nsearch\u{1b}.";
        assert_eq!(text, expected);
        assert_eq!(price(&json!({"price_type": "free", "price": ""})), "free");
        assert_eq!(price(&json!({"price_type": "negotiable", "price": "5"})), "negotiable, 5");
    }
}
