//! The way in: paths, methods, bodies, and who may ask.

use super::*;
use crate::{Signup, limits::BODY_BYTES_MAX};

#[tokio::test]
async fn paths_and_methods_are_judged_before_anything_else() {
    let node = Node::new().await;
    for path in ["/api/agents/", "/api/jobs/x/y/", "/api/agents/me/spoons/"] {
        assert_eq!(node.get(path).await.status, 404, "{path}");
    }
    let wrong = node.ask("PUT", "/api/agents/register/", None, None).await;
    wrong.is(405, "Method Not Allowed: Method \"PUT\" not allowed.");
    assert!(wrong.headers.contains("allow: get, post"));
    // 25: with and without a slash, and no redirect.
    for path in ["/api/jobs", "/api/jobs/", "/api/reviews", "/api/schema/", "/api/agents/register"]
    {
        assert_eq!(node.get(path).await.status, 200, "{path}");
    }
    let schema = node.get("/api/schema/").await.ok();
    assert!(schema["paths"]["/api/jobs/{id}/"]["patch"]["security"].is_array(), "{schema}");
    let head = node.ask("HEAD", "/api/jobs/", None, None).await;
    assert_eq!((head.status, &head.body), (200, &Value::Null));
    node.stop().await;
}

#[tokio::test]
async fn keys_of_nobody_are_refused() {
    let node = Node::new().await;
    let none = node.get("/api/agents/me/").await;
    none.is(401, "Unauthorized: Authentication credentials were not provided.");
    assert_eq!(none.body, json!({"detail": "Authentication credentials were not provided."}));
    let unknown = "Unauthorized: no agent here has this key; if it is new elsewhere, try again";
    let made_up = format!("ak_{}", "A".repeat(43));
    for key in ["ak_abc", "spoon", &made_up] {
        node.ask("GET", "/api/agents/me/", Some(key), None).await.is(401, unknown);
    }
    node.stop().await;
}

#[tokio::test]
async fn bodies_are_judged() {
    let node = Node::new().await;
    let head = |length: usize, media: &str| {
        format!(
            "POST /api/agents/register/ HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: {media}\r\ncontent-length: {length}\r\n\r\n",
            node.at
        )
    };
    for (media, body, status) in [
        ("application/x-www-form-urlencoded", "a=b", 415),
        ("application/json", "{", 400),
        ("application/json", "[]", 400),
        ("application/json", "", 400),
        ("application/json", "\0\0", 400),
    ] {
        let request = format!("{}{body}", head(body.len(), media));
        let refused = node.send(request.as_bytes()).await;
        assert_eq!(refused.status, status, "{media} {body:?}");
    }
    // 27: a body that is too large is read to its end, so that the client reads the answer.
    let large = vec![b' '; 2 << 20];
    let request = [head(large.len(), "application/json").as_bytes(), &large].concat();
    let refused = node.send(&request).await;
    let text = format!("Content Too Large: the body has more than {BODY_BYTES_MAX} bytes");
    refused.is(413, &text);
    let name = json!({"name": "x\u{e9}\r\nset-cookie: a=b", "username": "caf\u{e9}"});
    let refused = node.post("/api/agents/register/", None, &name).await;
    assert_eq!(refused.status, 400);
    assert!(refused.reason.is_ascii() && refused.reason.len() <= 200, "{refused:?}");
    assert!(!refused.headers.contains("set-cookie"));
    node.stop().await;
}

#[tokio::test]
async fn an_operator_says_who_may_register() {
    let body = registration("alice-bot", &pgp("alice"));
    for (signup, is_forwarded, status) in [
        (Signup::Local, false, 201),
        (Signup::Local, true, 403),
        (Signup::Open, true, 201),
        (Signup::Off, false, 403),
    ] {
        let node = Node::with(|settings| Settings { signup, ..settings }).await;
        let (body, forwarded) = (body.to_string(), "x-forwarded-for: 1.2.3.4\r\n");
        let request = format!(
            "POST /api/agents/register/ HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            node.at,
            if is_forwarded { forwarded } else { "" },
            body.len()
        );
        let answer = node.send(request.as_bytes()).await;
        assert_eq!(answer.status, status, "{signup:?} {is_forwarded} {answer:?}");
        node.stop().await;
    }
}

#[tokio::test]
async fn other_sites_and_names_are_refused() {
    let node = Node::new().await;
    for header in ["origin: http://evil.example", "x: y"] {
        let host = if header == "x: y" { "evil.example".to_owned() } else { node.at.to_string() };
        let request = format!(
            "GET /api/jobs/ HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{header}\r\n\r\n"
        );
        let refused = node.send(request.as_bytes()).await;
        assert_eq!(refused.status, 403, "{header}");
        assert!(refused.reason.starts_with("Forbidden: "), "{refused:?}");
    }
    node.stop().await;
}
