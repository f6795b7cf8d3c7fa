//! The sites of all dialects. A path belongs to one of them, or to none, before any router sees it; but for requests that an
//! annex takes.

use std::convert::Infallible;

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::dialect::{Annex, Intrusion, Site};

/// See the module.
pub(crate) struct Sites {
    sites: Vec<Ready>,
    annexes: Vec<(Ready, Takes)>,
}

type Takes = fn(&Method, &str, &HeaderMap) -> bool;

/// A request, as far as sites are told apart by it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    method: &'a Method,
    path: &'a str,
    headers: &'a HeaderMap,
}

impl<'a> Asked<'a> {
    pub(super) fn of(request: &'a Request) -> Asked<'a> {
        let (method, path) = (request.method(), request.uri().path());
        Asked { method, path, headers: request.headers() }
    }
}

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
    pub(super) fn new(sites: Vec<Site>, annexes: Vec<Annex>) -> Result<Sites, SamePaths> {
        let mut paths: Vec<&str> = sites.iter().flat_map(|site| site.paths).copied().collect();
        paths.sort_unstable();
        if let Some(same) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SamePaths(same[0]));
        }
        let annexes = annexes.into_iter().map(|annex| (Ready::new(annex.site), annex.takes));
        let sites = sites.into_iter().map(Ready::new).collect();
        Ok(Sites { sites, annexes: annexes.collect() })
    }

    /// The one that has a request.
    fn of(&self, asked: Asked<'_>) -> Option<&Ready> {
        // A page that asks whether it may is asked with the method that it means.
        let meant = asked.headers.get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let meant = meant.filter(|_| asked.method == Method::OPTIONS);
        let meant = meant.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
        let method = meant.as_ref().unwrap_or(asked.method);
        let mut annexes = self.annexes.iter();
        let annex = annexes.find(|(_, takes)| takes(method, asked.path, asked.headers));
        annex.map(|(ready, _)| ready).or_else(|| self.owner(asked.path))
    }

    /// The one with the longest prefix of a path.
    fn owner(&self, path: &str) -> Option<&Ready> {
        let owned = self.sites.iter().filter_map(|ready| Some((ready.owns(path)?, ready)));
        owned.max_by_key(|(length, _)| *length).map(|(_, ready)| ready)
    }

    /// The one in whose form a request is refused. A path without an owner has the form of the last one, as the last
    /// dialect has all connections that no other has.
    fn form(&self, asked: Asked<'_>) -> Option<&Ready> {
        self.of(asked).or(self.sites.last())
    }

    /// Whether a request by this method to this path is answered only under names that are the node's own. `None`: the
    /// path has no owner.
    pub(super) fn checks_names(&self, asked: Asked<'_>) -> Option<bool> {
        self.of(asked).map(|ready| (ready.site.checks_names)(asked.path, asked.method))
    }

    pub(super) fn refuse(&self, asked: Asked<'_>, why: Intrusion) -> Response {
        match self.form(asked) {
            Some(ready) => (ready.site.refuse)(why),
            None => StatusCode::FORBIDDEN.into_response(),
        }
    }

    /// Methods and headers that a page of an allowed origin may use there.
    pub(super) fn allows(&self, asked: Asked<'_>) -> Option<(HeaderValue, HeaderValue)> {
        self.form(asked).map(|ready| (ready.methods.clone(), ready.headers.clone()))
    }

    /// The answer of the site that owns the path: of its router, with the fallback of that.
    pub(super) async fn answer(&self, request: Request) -> Response {
        let Some(ready) = self.of(Asked::of(&request)) else {
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
    // Alone it is the first page, and not the beginning of all.
    if prefix == "/" {
        return (path == prefix).then_some(prefix.len());
    }
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
    fn the_first_page_owns_itself_and_nothing_below() {
        assert_eq!(owned("/", "/"), Some(1));
        assert_eq!(owned("/", "/ws"), None, "the node's own answers stay as they are");
        assert_eq!(owned("/ui", "/ui/rooms"), Some(3));
    }

    #[test]
    fn a_path_belongs_to_the_site_with_its_longest_prefix() {
        let (short, long) = (site(&["/a/", "/z"], "GET"), site(&["/a/b/"], "PUT"));
        let last = site(&["/c/"], "POST");
        let sites = Sites::new(vec![short, long, last], Vec::new()).unwrap();
        let owner = |path| sites.owner(path).map(|ready| ready.site.methods[0]);
        assert_eq!(owner("/a/x"), Some("GET"));
        assert_eq!(owner("/a/b/x"), Some("PUT"));
        assert_eq!(owner("/zoo"), Some("GET"));
        assert_eq!(owner("/a"), None);
        let asked = asked("/a");
        assert_eq!(sites.allows(Asked::of(&asked)).unwrap().0, "POST", "as the last one's");
        assert_eq!(sites.checks_names(Asked::of(&asked)), None);
    }

    fn asked(path: &str) -> Request {
        Request::builder().uri(path).body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn an_annex_has_what_it_takes_and_the_owner_of_the_path_all_else() {
        let annex = |method, takes| Annex { site: site(&[], method), takes };
        let posts = annex("POST", |method, path, _| method == Method::POST && path == "/a/x");
        let sites = Sites::new(vec![site(&["/a/"], "GET")], vec![posts]).unwrap();
        let of = |method: Method, more: Option<&str>| {
            let mut request = asked("/a/x");
            *request.method_mut() = method;
            if let Some(method) = more {
                let name = header::ACCESS_CONTROL_REQUEST_METHOD;
                request.headers_mut().insert(name, method.parse().unwrap());
            }
            sites.of(Asked::of(&request)).map(|ready| ready.site.methods[0])
        };
        assert_eq!(of(Method::GET, None), Some("GET"));
        assert_eq!(of(Method::POST, None), Some("POST"));
        assert_eq!(of(Method::OPTIONS, Some("POST")), Some("POST"), "as a page asks before");
        assert_eq!(of(Method::GET, Some("POST")), Some("GET"));
    }

    #[test]
    fn a_star_in_a_prefix_is_one_part_of_a_path() {
        let (all, some) = (site(&["/a/"], "GET"), site(&["/a/*/files/"], "PUT"));
        let sites = Sites::new(vec![all, some], Vec::new()).unwrap();
        let owner = |path| sites.owner(path).map(|ready| ready.site.methods[0]);
        assert_eq!(owner("/a/x/files/y"), Some("PUT"));
        for path in ["/a/x/file/y", "/a//files/y", "/a/x/y/files/z", "/a/files/", "/a/x"] {
            assert_eq!(owner(path), Some("GET"), "{path}");
        }
        assert_eq!(owner("/b/x/files/y"), None);
    }

    #[test]
    fn no_two_sites_have_the_same_prefix() {
        let clash =
            Sites::new(vec![site(&["/a/"], "GET"), site(&["/b/", "/a/"], "GET")], Vec::new());
        assert_eq!(clash.err(), Some(SamePaths("/a/")));
    }
}
