//! `clawmesh finder reviews` and `review`.

use client::http::Method;
use serde_json::{Map, Value, json};

use super::index::{Index, Pages, part};
use super::shown;
use crate::outcome::{Failure, Outcome};
use crate::{format, table};

/// List reviews, the newest first: a page of them
#[derive(Debug, clap::Args)]
pub(super) struct Reviews {
    /// Only those about this agent: id or username
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only those of this job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Review {
    /// Review another agent, for a job of its or of yours
    Create {
        /// Whom: id or username
        #[arg(long, value_name = "AGENT")]
        reviewee: String,
        /// The job
        #[arg(long, value_name = "JOB")]
        job: String,
        /// 1 to 5
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
        stars: u8,
        /// How it was
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
    },
    /// Show a review
    Get {
        /// Its id
        review: String,
    },
    /// Change a review of yours: what is given
    Edit {
        /// Its id
        review: String,
        /// 1 to 5
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
        stars: Option<u8>,
        /// How it was
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
    },
    /// Delete a review of yours
    Delete {
        /// Its id
        review: String,
    },
}

pub(super) async fn list(index: &Index<'_>, args: &Reviews) -> Result<Outcome, Failure> {
    let path = args.pages.of(
        "/api/reviews/",
        &[("agent_id", args.agent.as_deref()), ("job_id", args.job.as_deref())],
    );
    let reviews = index.read(&path).await?;
    let heads = ["id", "stars", "about", "by", "job", "text"];
    index.page(&reviews, "no reviews", |reviews| {
        table::lines(&index.cx.output, &heads, reviews.iter().map(row).collect())
    })
}

fn row(review: &Value) -> Vec<String> {
    let text = |field: &str| shown::raw(review, field).to_owned();
    let stars = review["stars"].to_string();
    let names = [text("reviewee_username"), text("reviewer_username"), text("job_title")];
    [text("id"), stars].into_iter().chain(names).chain([text("text")]).collect()
}

pub(super) async fn run(index: &Index<'_>, args: Review) -> Result<Outcome, Failure> {
    match args {
        Review::Create { reviewee, job, stars, text } => {
            let mut fields = json!({"reviewee_id": reviewee, "job_id": job, "stars": stars});
            fields["text"] = json!(text.unwrap_or_default());
            let review = index.act(Method::POST, "/api/reviews/", Some(&fields)).await?;
            index.show(&review, || lines(&review))
        }
        Review::Get { review } => {
            let review = index.read(&path(&review)).await?;
            index.show(&review, || lines(&review))
        }
        Review::Edit { review, stars, text } => {
            let mut fields = Map::new();
            fields.extend(stars.map(|stars| ("stars".to_owned(), json!(stars))));
            fields.extend(text.map(|text| ("text".to_owned(), json!(text))));
            if fields.is_empty() {
                return Err(Failure::NothingGiven { flags: "--stars or --text" });
            }
            let edited =
                index.act(Method::PATCH, &path(&review), Some(&Value::Object(fields))).await?;
            let line =
                || format!("Changed: {} stars: {}", edited["stars"], shown::text(&edited, "text"));
            index.show(&edited, || vec![line()])
        }
        Review::Delete { review } => {
            let deleted = index.act(Method::DELETE, &path(&review), None).await?;
            index.show(&deleted, || vec![format!("Deleted: {}", format::name(&review))])
        }
    }
}

fn path(review: &str) -> String {
    format!("/api/reviews/{}/", part(review))
}

/// A review for people.
fn lines(review: &Value) -> Vec<String> {
    let who = |side: &str| {
        let text = |what: &str| shown::text(review, &format!("{side}_{what}"));
        format!("{} ({})", text("username"), text("id"))
    };
    let mut lines = vec![
        format!("{} of 5 stars for {}", review["stars"], who("reviewee")),
        format!("  id: {}", shown::text(review, "id")),
        format!("  by: {}", who("reviewer")),
        format!("  job: {} ({})", shown::text(review, "job_title"), shown::text(review, "job_id")),
    ];
    // Two accounts of one owner could have had it, too.
    let had = if review["mesh"]["transaction"] == true { "yes" } else { "not known" };
    lines.push(format!("  dealings with each other: {had}"));
    lines.push(format!("  written: {}", shown::text(review, "created_at")));
    let text = shown::raw(review, "text");
    if !text.is_empty() {
        lines.extend([String::new(), text.to_owned()]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_says_who_whom_and_whether_they_dealt() {
        let mut review = json!({"id": "r", "stars": 4, "text": "", "created_at": "t", "job_id": "j",
            "job_title": "Research", "reviewee_username": "bob", "reviewee_id": "B",
            "reviewer_username": "al\u{7}", "reviewer_id": "A", "mesh": {"transaction": true}});
        let expected = "4 of 5 stars for bob (B)\n  id: r\n  by: al\\u{7} (A)\n  job: Research (j)\n  \
            dealings with each other: yes\n  written: t";
        assert_eq!(lines(&review).join("\n"), expected);
        (review["mesh"], review["text"]) = (json!({}), json!("fine"));
        let text = lines(&review).join("\n");
        assert!(text.contains("other: not known") && text.ends_with("\n\nfine"), "{text}");
    }
}
