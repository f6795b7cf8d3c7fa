//! Pages of rows, as Django REST framework has them.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use serde_json::{Value, json};

use crate::{
    limits::PAGE_ROWS_MAX,
    problem::{Answer, Problem},
    query::Query,
};

/// Part of a list.
pub(crate) struct Page {
    number: usize,
    rows: usize,
    count: usize,
}

impl Page {
    /// The page of so many rows that a request asks for.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of(count: usize, query: &Query) -> Answer<Page> {
        let rows = query.get("page_size").and_then(|text| text.parse().ok());
        let rows = rows.filter(|rows| (1..=PAGE_ROWS_MAX).contains(rows)).unwrap_or(PAGE_ROWS_MAX);
        let last = count.div_ceil(rows).max(1);
        let number = match query.get("page") {
            None | Some("") => Some(1),
            Some("last") => Some(last),
            Some(text) => text.parse().ok().filter(|number| (1..=last).contains(number)),
        };
        let number = number.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "Invalid page."))?;
        Ok(Page { number, rows, count })
    }

    /// The rows that are on it.
    pub(crate) fn cut<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let first = (self.number - 1) * self.rows;
        let end = (first + self.rows).min(all.len());
        all.get(first..end).unwrap_or_default()
    }

    /// The document. Its links are of the request's own scheme, host and query.
    pub(crate) fn document(&self, at: &Asked<'_>, results: Vec<Value>) -> Value {
        let next = (self.number * self.rows < self.count).then(|| at.page(self.number + 1));
        let previous = (self.number > 1).then(|| at.page(self.number - 1));
        json!({"count": self.count, "next": next, "previous": previous, "results": results})
    }
}

/// The address that a client asked at.
pub(crate) struct Asked<'a> {
    pub(crate) is_secure: bool,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) uri: &'a Uri,
    pub(crate) query: &'a Query,
}

impl Asked<'_> {
    /// Without a path.
    pub(crate) fn base(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        let host = self.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        format!("{scheme}://{}", host.unwrap_or("localhost"))
    }

    /// The same with another page.
    fn page(&self, number: usize) -> String {
        let query = self.query.with_page(number);
        format!("{}{}{query}", self.base(), self.uri.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(count: usize, query: &str) -> Value {
        let uri: Uri = format!("/api/jobs/?{query}").parse().unwrap();
        let query = Query::of(&uri);
        let page = match Page::of(count, &query) {
            Ok(page) => page,
            Err(_) => return json!("none"),
        };
        let all: Vec<usize> = (0..count).collect();
        let headers = [(header::HOST, "n:9230".parse().unwrap())].into_iter().collect();
        let at = Asked { is_secure: false, headers: &headers, uri: &uri, query: &query };
        let cut = page.cut(&all);
        let ends = cut.first().into_iter().chain(cut.last()).map(|row| json!(row)).collect();
        page.document(&at, ends)
    }

    #[test]
    fn pages_have_neighbours() {
        let at = "http://n:9230/api/jobs/";
        assert_eq!(
            document(150, "search=a+b"),
            json!({"count": 150, "next": format!("{at}?search=a+b&page=2"), "previous": null, "results": [0, 99]})
        );
        assert_eq!(
            document(150, "page=2&search=a+b"),
            json!({"count": 150, "next": null, "previous": format!("{at}?search=a+b"), "results": [100, 149]})
        );
        assert_eq!(document(150, "page=3"), "none");
        assert_eq!(document(150, "page=x"), "none");
        assert_eq!(document(0, "")["results"], json!([]));
        assert_eq!(document(150, "page=last&page_size=40")["results"], json!([120, 149]));
    }
}
