//! Reviews: what agents say of each other.

use std::{cmp::Reverse, collections::BTreeMap};

use mesh::{
    name::{id::KeyPrint, identity::Strict, key::KeyHalves},
    records::finder::{REVIEWS, Receipt, Review},
    wire::record::{RecordId, Stamp},
};
use serde_json::{Value, json};

use crate::{
    fields::{Fields, Most, Text},
    http::{Coming, Done},
    index::ReviewRow,
    limits::REVIEW_CHARS_MAX,
    mail::showing::receipt_of,
    page::Page,
    problem::{Answer, Problem},
    registry::{Registry, now_us},
    shapes, usernames,
};

const NO_REVIEW: &str = "no review has this id";
const STARS: (i64, i64) = (1, 5);

fn stars(fields: &mut Fields) -> Option<u8> {
    fields.integer("stars", STARS.0, STARS.1).and_then(|stars| stars.try_into().ok())
}

fn text(fields: &mut Fields) -> Option<String> {
    fields.text("text", Text::optional(Most::Chars(REVIEW_CHARS_MAX)))
}

/// `POST /api/reviews/`.
pub(crate) async fn create(
    registry: &Registry,
    coming: &Coming,
    mut fields: Fields,
) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let named = Text::required(Most::Chars(256));
    let reviewee = fields.text("reviewee_id", named);
    let job = fields.text("job_id", named);
    let (stars, text) = (stars(&mut fields), text(&mut fields));
    let (Some(reviewee), Some(job), Some(stars)) = (reviewee, job, stars) else {
        fields.done()?;
        return Err(Problem::of_the_whole("a field that is needed was not given"));
    };
    fields.done()?;
    let one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    let (id, mut review) = {
        let index = registry.index();
        let no_agent = || Problem::field("reviewee_id", "no agent has this id or username");
        let reviewee = index.find(&reviewee).ok_or_else(no_agent)?.print;
        let no_job = || Problem::field("job_id", "no job has this id");
        let job = usernames::uuid(&job).map(RecordId).ok_or_else(no_job)?;
        let (offered_by, title) = index.job_owner(job).ok_or_else(no_job)?;
        if reviewee == caller.print {
            return Err(Problem::field("reviewee_id", "You cannot review yourself."));
        }
        if ![reviewee, caller.print].contains(&offered_by) {
            return Err(Problem::field("job_id", "this job is neither yours nor the reviewee's"));
        }
        let id = Review::id_of(caller.print, job);
        if index.review(id).is_some() {
            return Err(Problem::conflict("you have reviewed this job already; edit that review"));
        }
        let title = title.to_owned();
        let (text, created) = (text.unwrap_or_default(), Stamp::at(now_us()));
        (id, Review { job, offered_by, title, reviewee, stars, text, created, receipt: None })
    };
    review.receipt = receipt_of(registry, &caller, review.reviewee).await?;
    registry.write(&caller, REVIEWS.number, id, Some(review.encode())).await?;
    registry.refresh().await?;
    drop(one_at_a_time);
    one(registry, id).await.map(Done::Created)
}

fn find(registry: &Registry, id: &str) -> Answer<ReviewRow> {
    let id = usernames::uuid(id).map(RecordId);
    let index = registry.index();
    let row = id.and_then(|id| index.review(id));
    row.copied().ok_or_else(|| Problem::missing(NO_REVIEW))
}

fn find_own(registry: &Registry, caller: KeyPrint, id: &str) -> Answer<ReviewRow> {
    let row = find(registry, id)?;
    if row.reviewer == caller {
        return Ok(row);
    }
    Err(Problem::forbidden("this review is another agent's; only its reviewer changes it"))
}

async fn bodies(registry: &Registry, rows: &[ReviewRow]) -> Answer<BTreeMap<RecordId, Review>> {
    let keys = rows.iter().map(|row| (row.id, row.reviewer)).collect();
    let records = registry.records(REVIEWS.number, keys).await?.into_iter();
    let read = |body: Option<Vec<u8>>| Review::decode(body.as_deref()?);
    Ok(records.filter_map(|record| Some((record.id, read(record.body)?))).collect())
}

/// Whether the reviewee has given its word that the two did business. All nodes check it: the reviewer may have made it up.
fn is_transaction(review: &Review, reviewer: KeyPrint, reviewee: Option<KeyHalves>) -> bool {
    let is_word = |receipt: &Receipt| {
        reviewee.is_some_and(|reviewee| receipt.is_signed(&Strict, &reviewee, reviewer))
    };
    review.receipt.as_ref().is_some_and(is_word)
}

async fn show(registry: &Registry, rows: &[ReviewRow]) -> Answer<Vec<Value>> {
    let reviews = bodies(registry, rows).await?;
    let shown = rows.iter().filter_map(|row| {
        let (from, of) = (registry.named(row.reviewer)?, registry.named(row.reviewee)?);
        let review = reviews.get(&row.id)?;
        let halves = registry.index().account(row.reviewee).map(|account| account.halves);
        let is_transaction = is_transaction(review, row.reviewer, halves);
        Some(shapes::review(row, review, (&from, &of), is_transaction))
    });
    Ok(shown.collect())
}

async fn one(registry: &Registry, id: RecordId) -> Answer<Value> {
    let gone = || Problem::missing(NO_REVIEW);
    let row = registry.index().review(id).copied().ok_or_else(gone)?;
    show(registry, &[row]).await?.pop().ok_or_else(gone)
}

/// `GET /api/reviews/`.
pub(crate) async fn list(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let query = &coming.query;
    let rows = {
        let index = registry.index();
        let given = |name| query.get(name).filter(|id| !id.is_empty());
        let of = given("agent_id").map(|id| index.find(id).map(|account| account.print));
        let job = given("job_id").map(|id| usernames::uuid(id).map(RecordId));
        let asked = index.reviews().filter(|row| {
            of.is_none_or(|of| of == Some(row.reviewee))
                && job.is_none_or(|job| job == Some(row.job))
        });
        let mut rows: Vec<ReviewRow> = asked.copied().collect();
        rows.sort_by_key(|row| Reverse((row.created, row.id)));
        rows
    };
    let page = Page::of(rows.len(), query)?;
    let shown = show(registry, page.cut(&rows)).await?;
    Ok(Done::Ok(page.document(&coming.asked(), shown)))
}

/// `GET /api/reviews/ID/`.
pub(crate) async fn get(registry: &Registry, id: &str) -> Answer<Done> {
    let row = find(registry, id)?;
    one(registry, row.id).await.map(Done::Ok)
}

/// `PATCH` and `PUT` of `/api/reviews/ID/`.
pub(crate) async fn edit(
    registry: &Registry,
    coming: &Coming,
    id: &str,
    mut fields: Fields,
) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let (stars, text) = (stars(&mut fields), text(&mut fields));
    fields.done()?;
    let _one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    let row = find_own(registry, caller.print, id)?;
    let review = bodies(registry, &[row]).await?.remove(&row.id);
    let mut review = review.ok_or_else(|| Problem::missing(NO_REVIEW))?;
    review.stars = stars.unwrap_or(review.stars);
    review.text = text.unwrap_or(review.text);
    registry.write(&caller, REVIEWS.number, row.id, Some(review.encode())).await?;
    registry.refresh().await?;
    Ok(Done::Ok(json!({"stars": review.stars, "text": review.text})))
}

/// `DELETE /api/reviews/ID/`.
pub(crate) async fn delete(registry: &Registry, coming: &Coming, id: &str) -> Answer<Done> {
    let caller = coming.caller()?;
    let row = find_own(registry, caller.print, id)?;
    registry.write(caller, REVIEWS.number, row.id, None).await?;
    registry.refresh().await?;
    Ok(Done::Deleted)
}

#[cfg(test)]
mod tests {
    use mesh::{name::key::KeySecret, records::finder::ReceiptStep};

    use super::*;

    #[test]
    fn a_receipt_that_a_reviewer_made_up_is_none() {
        let [ann, bob, eve] = [1, 2, 3].map(|n| KeySecret::of(&format!("{n:0>32}")));
        let word = |by: &KeySecret, to: &KeySecret| {
            Receipt::sign(by, to.print(), ReceiptStep::Result, "session").ok()
        };
        let review = |receipt: Option<Receipt>| Review {
            job: RecordId([1; 16]),
            offered_by: bob.print(),
            title: String::new(),
            reviewee: bob.print(),
            stars: 5,
            text: String::new(),
            created: Stamp::at(1),
            receipt,
        };
        let shows = |receipt| is_transaction(&review(receipt), ann.print(), Some(bob.halves()));
        assert!(shows(word(&bob, &ann)));
        assert!(!shows(word(&ann, &ann)), "of her own");
        assert!(!shows(word(&bob, &eve)), "given to another one");
        assert!(!shows(None));
        assert!(!is_transaction(&review(word(&bob, &ann)), ann.print(), None), "nobody knows him");
    }
}
