//! Webhooks, to a receiver on this machine.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use serde_json::{Value, json};

use crate::harness::{Agent, DEADLINE, Daemon, temp, until, up};

/// A post, as the receiver got it.
pub(crate) struct Post {
    id: String,
    signature: String,
    timestamp: u64,
    pub(crate) body: Value,
}

impl Post {
    pub(crate) fn content(&self) -> &str {
        self.body["message"]["content"].as_str().unwrap()
    }
}

/// An HTTP server: answers each post with what it is told to.
pub(crate) struct Hook {
    pub(crate) url: String,
    posts: Receiver<Post>,
    answers: Sender<u16>,
}

impl Hook {
    pub(crate) fn start() -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (told, posts) = channel();
        let (answers, to_answer) = channel();
        thread::spawn(move || {
            // Until the test ends.
            while let Ok((socket, _)) = listener.accept() {
                let mut read = BufReader::new(socket);
                let Some(post) = receive(&mut read) else { continue };
                if told.send(post).is_err() {
                    return;
                }
                let Ok(status) = to_answer.recv() else { return };
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                // The node may have been killed meanwhile.
                drop(read.into_inner().write_all(answer.as_bytes()));
            }
        });
        Hook { url, posts, answers }
    }

    /// The next post that does not say `old`, answered so. Those that do are taken.
    fn next_but(&self, old: &str, status: u16) -> Post {
        loop {
            let post = self.posts.recv_timeout(DEADLINE).expect("a post");
            let again = post.content() == old;
            self.answers.send(if again { 200 } else { status }).unwrap();
            if !again {
                return post;
            }
        }
    }

    /// The next post, answered so.
    pub(crate) fn next(&self, status: u16) -> Post {
        let post = self.posts.recv_timeout(DEADLINE).expect("a post");
        self.answers.send(status).unwrap();
        post
    }
}

fn receive(read: &mut impl BufRead) -> Option<Post> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line);
    }
    let header = |name: &str| {
        let value = lines.iter().find_map(|it| it.strip_prefix(&format!("{name}: ")));
        value.map(|it| it.trim().to_owned())
    };
    assert_eq!(lines[0], "POST /hook HTTP/1.1\r\n");
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    let mut body = vec![0; header("content-length")?.parse().ok()?];
    read.read_exact(&mut body).ok()?;
    Some(Post {
        id: header("webhook-id")?,
        signature: header("webhook-signature")?,
        timestamp: header("webhook-timestamp")?.parse().ok()?,
        body: serde_json::from_slice(&body).ok()?,
    })
}

const PRIVATE: &[&str] = &["--allow-private-webhooks"];

fn subscribe(agent: &mut Agent, hook: &Hook) -> Value {
    let wish = json!({"room_id": "lobby", "webhook_url": hook.url, "secret": "hush"});
    agent.call("subscribe", wish).unwrap()
}

fn subscription(node: &Daemon) -> Value {
    let listed = Agent::open(node).call("list_subscriptions", json!({})).unwrap();
    listed["subscriptions"][0].clone()
}

#[test]
fn a_webhook_gets_what_is_said_at_any_node() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), PRIVATE);
    let second = up(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let hook = Hook::start();
    let made = subscribe(&mut Agent::open(&first), &hook);
    assert_eq!(made["status"], "active");
    Agent::open(&second).say("from afar");
    let post = hook.next(200);
    assert_eq!(post.content(), "from afar");
    assert_eq!(post.body["type"], "clawchat.message.created");
    assert_eq!(post.body["subscription_id"], made["subscription_id"]);
    assert_eq!(post.body["room_id"], "lobby");
    assert!(post.signature.starts_with("v1,"), "{}", post.signature);
    assert!(post.timestamp > 1_700_000_000);
    Agent::open(&first).say("from here");
    assert_eq!(hook.next(200).content(), "from here");
    until("all is delivered", || subscription(&first)["last_delivered_seq"] == 2);
}

#[test]
fn a_node_that_is_killed_between_two_tries_goes_on_with_the_next() {
    let dir = temp();
    let node = up(dir.path(), PRIVATE);
    let hook = Hook::start();
    let mut agent = Agent::open(&node);
    subscribe(&mut agent, &hook);
    agent.say("one");
    assert_eq!(hook.next(200).content(), "one");
    agent.say("two");
    agent.say("three");
    let first = hook.next(503);
    assert_eq!(first.content(), "two");
    until("the failure counts", || subscription(&node)["failure_count"] == 1);
    node.kill();

    let node = up(dir.path(), PRIVATE);
    // What was delivered just before it was killed may come once more, until it is taken.
    let again = hook.next_but("one", 503);
    assert_eq!((again.content(), &again.id), ("two", &first.id));
    let again = hook.next_but("one", 200);
    assert_eq!((again.content(), &again.id), ("two", &first.id));
    let third = hook.next(200);
    assert_eq!(third.content(), "three");
    assert_ne!(third.id, first.id);
    until("all is delivered", || subscription(&node)["last_delivered_seq"] == 3);

    // And one that is told to stop forgets nothing that it delivered.
    node.stop();
    let node = up(dir.path(), PRIVATE);
    assert_eq!(subscription(&node)["last_delivered_seq"], 3);
    Agent::open(&node).say("four");
    assert_eq!(hook.next(200).content(), "four");
}

#[test]
fn a_node_calls_nobody_inside_unless_its_operator_says_so() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    for url in ["http://127.0.0.1:1/x", "http://[::1]/x", "http://169.254.169.254/", "ftp://a/b"] {
        let wish = json!({"room_id": "lobby", "webhook_url": url, "secret": "s"});
        assert_eq!(agent.call("subscribe", wish).unwrap_err(), "invalid_payload", "{url}");
    }
}

#[test]
fn files_that_hold_secrets_are_their_owners_alone() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let dir = temp();
    let data = dir.path().join("data");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let node = up(&data, PRIVATE);
    subscribe(&mut Agent::open(&node), &Hook::start());
    node.stop();
    assert_eq!(mode(&data), 0o700);
    for entry in fs::read_dir(&data).unwrap() {
        let file = entry.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let node = up(&data, PRIVATE);
    assert!(fs::read_dir(&data).unwrap().all(|it| mode(&it.unwrap().path()) & 0o077 == 0));
    drop(node);
}
