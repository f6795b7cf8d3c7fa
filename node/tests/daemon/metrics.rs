//! `/metrics`, read as strictly as its format is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use serde_json::{Value, json};

use crate::harness::{Agent, DEADLINE, Daemon, temp, until, up, up_keyed};

/// By name and labels, as they stand on the page.
pub(crate) type Samples = BTreeMap<String, f64>;

fn get(node: &Daemon, path: &str) -> (String, String) {
    let mut socket = TcpStream::connect(node.text("http")).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        node.text("http")
    )
    .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

pub(crate) fn scrape(node: &Daemon) -> Samples {
    let (head, body) = get(node, "/metrics");
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    parse(&body)
}

/// The samples of a page: every line is a help, a type, or a sample of the family before it.
fn parse(page: &str) -> Samples {
    assert!(page.ends_with('\n'), "the last line ends");
    let (mut samples, mut families) = (Samples::new(), Vec::new());
    let (mut helped, mut family) = (None, None);
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a help says something");
            assert!(text.ends_with('.') && !name.is_empty(), "{line}");
            helped = Some(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.take().as_deref(), Some(name), "help comes before the type");
            assert!(!families.contains(&name.to_owned()), "{name} is there twice");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            families.push(name.to_owned());
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
            let (family, kind) = family.as_ref().expect("a sample is of a family");
            let bare = name.split('{').next().unwrap();
            let parts: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(parts.iter().any(|part| bare == format!("{family}{part}")), "{line}");
            assert!(bare.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{line}");
            labels(name.strip_prefix(bare).unwrap());
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    for family in families {
        let of = |name: &&String| name.starts_with(&family);
        assert!(samples.keys().any(|it| of(&it)), "{family} has no sample");
    }
    histograms(&samples);
    samples
}

fn labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let inner = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')).expect("braces");
    for label in inner.split(',') {
        let (name, value) = label.split_once("=\"").expect("a label has a value");
        assert!(name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{text}");
        let value = value.strip_suffix('"').expect("in quotes");
        assert!(!value.contains(['"', '\\', '\n']), "{text}");
    }
}

/// Buckets rise, and the last one is the count.
fn histograms(samples: &Samples) {
    for (name, count) in samples.iter().filter(|(name, _)| name.ends_with("_count")) {
        let family = name.strip_suffix("_count").unwrap();
        let infinite = format!("{family}_bucket{{le=\"+Inf\"}}");
        assert_eq!(samples.get(&infinite), Some(count), "{family}");
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|(name, value)| {
                let bound = name.strip_prefix(&format!("{family}_bucket{{le=\""))?;
                Some((bound.strip_suffix("\"}")?.parse().unwrap(), *value))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{family}: {buckets:?}");
        assert!(samples.contains_key(&format!("{family}_sum")), "{family}");
    }
}

#[test]
fn counters_move_by_what_happens() {
    let (first, second) = (temp(), temp());
    let a = up(first.path(), &[]);
    let mut before = scrape(&a);
    // Without what the engine says, if the machine stood still.
    until("the engine answers", || {
        before = scrape(&a);
        before["clawmesh_engine_up"] == 1.0
    });
    let zero = |name: &str| assert_eq!(before[name], 0.0, "{name}");
    zero("clawmesh_messages_accepted_total");
    zero("clawmesh_connections_opened_total{transport=\"tcp\"}");
    zero("clawmesh_peers_connected");
    zero("clawmesh_client_refusals_total{code=\"room_not_found\"}");
    assert!(before.keys().any(|it| it.starts_with("clawmesh_build_info{version=\"")));

    let b = up(second.path(), &["--join", a.text("ticket")]);
    a.until_connected();
    b.until_connected();
    let (mut ada, mut bob) = (Agent::open(&a), Agent::open(&b));
    bob.say("from b");
    for n in 0..5 {
        ada.say(&format!("from a, {n}"));
    }
    assert!(ada.call("join_room", json!({"room_id": "nowhere"})).is_err());
    until("all is there", || ada.lobby().len() == 6);
    let mut after = scrape(&a);
    // What the engine says is of the last two seconds.
    until("the engine's part is new", || {
        after = scrape(&a);
        let is = |name: &str, value: f64| after.get(name) == Some(&value);
        is("clawmesh_messages_delivered_total", 6.0)
            && is("clawmesh_agents{at=\"mesh\"}", 2.0)
            && is("clawmesh_nodes{state=\"alive\"}", 1.0)
    });
    let is = |name: &str, value: f64| assert_eq!(after[name], value, "{name}");
    is("clawmesh_messages_accepted_total", 5.0);
    is("clawmesh_messages_delivered_total", 6.0);
    is("clawmesh_connections{transport=\"tcp\"}", 1.0);
    is("clawmesh_connections_opened_total{transport=\"tcp\"}", 1.0);
    is("clawmesh_connections{transport=\"websocket\"}", 0.0);
    is("clawmesh_client_refusals_total{code=\"room_not_found\"}", 1.0);
    is("clawmesh_peers_connected", 1.0);
    is("clawmesh_agents{at=\"node\"}", 1.0);
    let rose = |name: &str| assert!(after[name] > before[name], "{name}");
    rose("clawmesh_commit_duration_seconds_count");
    rose("clawmesh_commit_duration_seconds_sum");
    rose("clawmesh_commit_inputs_sum");
    rose("clawmesh_commit_rows_total");
    rose("clawmesh_peer_received_bytes_total{by=\"frame\"}");
    rose("clawmesh_peer_sent_bytes_total{by=\"frame\"}");
    rose("clawmesh_uptime_seconds");
    assert!(after["clawmesh_store_bytes"] > 0.0);
    if cfg!(target_os = "linux") {
        assert!(after["process_resident_memory_bytes"] > 1e6);
        assert!(after["process_open_fds"] > 5.0);
    }
    // The same lines before and after: no label grows with use.
    assert!(after.keys().eq(before.keys()));
    drop(ada);
    until("it has left", || scrape(&a)["clawmesh_connections{transport=\"tcp\"}"] == 0.0);
}

#[test]
fn no_name_and_no_secret_is_on_the_page() {
    let dir = temp();
    let key_file = dir.path().join("auth.key");
    let node = up_keyed(&dir.path().join("data"), &["--key-file", key_file.to_str().unwrap()]);
    let key = fs::read_to_string(key_file).unwrap().trim().to_owned();
    let mut agent = Agent::register(node.text("tcp"), &key).unwrap();
    agent.call("create_room", json!({"name": "hushhush"})).unwrap();
    agent.say("contents");
    let (_, page) = get(&node, "/metrics");
    let secrets = ["hushhush", "tester", "contents", key.as_str(), node.text("node_id")];
    for secret in secrets {
        assert!(!page.contains(secret), "{secret}");
    }
}

#[test]
fn metrics_can_be_switched_off() {
    let dir = temp();
    let node = up(dir.path(), &["--no-metrics"]);
    let (head, body) = get(&node, "/metrics");
    assert!(head.starts_with("http/1.1 404 ") && body.is_empty(), "{head}");
}

/// Every metric is on the page for operators, and nothing else is.
#[test]
fn the_page_for_operators_has_every_metric() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let (_, page) = get(&node, "/metrics");
    let types = page.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    let mut served: Vec<&str> = types.map(|it| it.split(' ').next().unwrap()).collect();
    served.sort_unstable();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operating.md");
    let docs = fs::read_to_string(docs).unwrap();
    let named = docs.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named = named.map(|it| it.0.split('{').next().unwrap());
    let mut named: Vec<&str> =
        named.filter(|it| it.starts_with("clawmesh_") || it.starts_with("process_")).collect();
    named.sort_unstable();
    assert_eq!(named, served);
}

/// Names of metrics in a text, without what Prometheus makes of a histogram.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let words = words.filter(|word| word.starts_with("clawmesh_") || word.starts_with("process_"));
    let family = |word: &str| {
        let ends = ["_bucket", "_sum", "_count"];
        ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned()
    };
    words.map(family).collect()
}

#[test]
fn the_board_for_grafana_asks_for_what_there_is() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let (_, page) = get(&node, "/metrics");
    let types = page.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    let served: BTreeSet<&str> = types.map(|it| it.split(' ').next().unwrap()).collect();
    let board = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/grafana.json");
    let board: Value = serde_json::from_str(&fs::read_to_string(board).unwrap()).unwrap();
    let mut asked = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        let asks: BTreeSet<String> =
            targets.flat_map(|target| names(target["expr"].as_str().unwrap())).collect();
        assert!(panel["type"] == "row" || !asks.is_empty(), "{}", panel["title"]);
        asked.extend(asks);
    }
    for variable in board["templating"]["list"].as_array().unwrap() {
        asked.extend(names(variable["definition"].as_str().unwrap_or_default()));
    }
    assert!(asked.len() > 20, "{asked:?}");
    let unknown: Vec<&String> = asked.iter().filter(|it| !served.contains(it.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not on the page");
}
