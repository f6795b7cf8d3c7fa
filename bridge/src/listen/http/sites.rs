//! The sites of all dialects. A path belongs to one of them, or to none, before any router sees it.

use std::convert::Infallible;

use axum::{
    extract::Request,
    http::{HeaderValue, Method, StatusCode},
    response::{IntoResponse, Response},
};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::dialect::{Intrusion, Site};

/// See the module.
pub(crate) struct Sites(Vec<Ready>);

/// A site, and what a preflight of its pages is answered.
struct Ready {
    site: Site,
    methods: HeaderValue,
    headers: HeaderValue,
}

/// Two sites want the same paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two dialects have pages under {0}")]
pub(crate) struct SamePaths(&'static str);

impl Sites {
    /// # Errors
    /// Two of them have an equal prefix of paths: neither can be meant.
    pub(super) fn new(sites: Vec<Site>) -> Result<Sites, SamePaths> {
        let mut paths: Vec<&str> = sites.iter().flat_map(|site| site.paths).copied().collect();
        paths.sort_unstable();
        if let Some(same) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SamePaths(same[0]));
        }
        Ok(Sites(sites.into_iter().map(Ready::new).collect()))
    }

    /// The one with the longest prefix of a path.
    fn owner(&self, path: &str) -> Option<&Ready> {
        let owned = self.0.iter().filter_map(|ready| Some((ready.owns(path)?, ready)));
        owned.max_by_key(|(length, _)| *length).map(|(_, ready)| ready)
    }

    /// The one in whose form a request is refused. A path without an owner has the form of the last one, as the last
    /// dialect has all connections that no other has.
    fn form(&self, path: &str) -> Option<&Ready> {
        self.owner(path).or(self.0.last())
    }

    /// Whether a request by this method to this path is answered only under names that are the node's own. `None`: the
    /// path has no owner.
    pub(super) fn checks_names(&self, path: &str, method: &Method) -> Option<bool> {
        self.owner(path).map(|ready| (ready.site.checks_names)(path, method))
    }

    pub(super) fn refuse(&self, path: &str, why: Intrusion) -> Response {
        match self.form(path) {
            Some(ready) => (ready.site.refuse)(why),
            None => StatusCode::FORBIDDEN.into_response(),
        }
    }

    /// Methods and headers that a page of an allowed origin may use there.
    pub(super) fn allows(&self, path: &str) -> Option<(HeaderValue, HeaderValue)> {
        self.form(path).map(|ready| (ready.methods.clone(), ready.headers.clone()))
    }

    /// The answer of the site that owns the path: of its router, with the fallback of that.
    pub(super) async fn answer(&self, request: Request) -> Response {
        let Some(ready) = self.owner(request.uri().path()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let router = TowerToHyperService::new(ready.site.router.clone());
        let answer: Result<Response, Infallible> = router.call(request).await;
        answer.unwrap_or_else(|never| match never {})
    }
}

impl Ready {
    fn new(site: Site) -> Ready {
        let headers: Vec<&str> =
            std::iter::once("content-type").chain(site.headers.iter().copied()).collect();
        let value = |names: &[&str]| HeaderValue::try_from(names.join(", "));
        Ready {
            methods: value(site.methods).expect("names of methods are tokens"),
            headers: value(&headers).expect("names of headers are tokens"),
            site,
        }
    }

    /// The length of the longest prefix that it has of a path.
    fn owns(&self, path: &str) -> Option<usize> {
        self.site.paths.iter().filter_map(|prefix| owned(prefix, path)).max()
    }
}

/// The length of the beginning of a path that a prefix has, in which `*` stands for one part of any text.
fn owned(prefix: &str, path: &str) -> Option<usize> {
    let Some((first, rest)) = prefix.split_once('*') else {
        return path.starts_with(prefix).then_some(prefix.len());
    };
    let after = path.strip_prefix(first)?;
    let part = after.find('/').filter(|length| *length > 0)?;
    after.get(part..)?.starts_with(rest).then_some(first.len() + part + rest.len())
}

#[cfg(test)]
mod tests {
    use axum::Router;

    use super::*;

    fn site(paths: &'static [&'static str], method: &'static str) -> Site {
        Site {
            router: Router::new(),
            paths,
            methods: Box::leak(Box::new([method])),
            checks_names: |_, _| true,
            headers: &[],
            refuse: |_| StatusCode::FORBIDDEN.into_response(),
        }
    }

    #[test]
    fn a_path_belongs_to_the_site_with_its_longest_prefix() {
        let (short, long) = (site(&["/a/", "/z"], "GET"), site(&["/a/b/"], "PUT"));
        let last = site(&["/c/"], "POST");
        let sites = Sites::new(vec![short, long, last]).unwrap();
        let owner = |path| sites.owner(path).map(|ready| ready.site.methods[0]);
        assert_eq!(owner("/a/x"), Some("GET"));
        assert_eq!(owner("/a/b/x"), Some("PUT"));
        assert_eq!(owner("/zoo"), Some("GET"));
        assert_eq!(owner("/a"), None);
        assert_eq!(sites.allows("/a").unwrap().0, "POST", "as the last one's");
        assert_eq!(sites.checks_names("/a", &Method::GET), None);
    }

    #[test]
    fn a_star_in_a_prefix_is_one_part_of_a_path() {
        let (all, some) = (site(&["/a/"], "GET"), site(&["/a/*/files/"], "PUT"));
        let sites = Sites::new(vec![all, some]).unwrap();
        let owner = |path| sites.owner(path).map(|ready| ready.site.methods[0]);
        assert_eq!(owner("/a/x/files/y"), Some("PUT"));
        for path in ["/a/x/file/y", "/a//files/y", "/a/x/y/files/z", "/a/files/", "/a/x"] {
            assert_eq!(owner(path), Some("GET"), "{path}");
        }
        assert_eq!(owner("/b/x/files/y"), None);
    }

    #[test]
    fn no_two_sites_have_the_same_prefix() {
        let clash = Sites::new(vec![site(&["/a/"], "GET"), site(&["/b/", "/a/"], "GET")]);
        assert_eq!(clash.err(), Some(SamePaths("/a/")));
    }
}
