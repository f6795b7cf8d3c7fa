use std::fs;

use bridge::policy::{Action, ChatType, SendPolicy, SendRule};
use clap::Parser as _;
use mesh::api::{budget::Pace, policy::Inbound};

use super::{parse::duration, *};

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    layer: Layer,
}

fn layered(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> Result<Layered> {
    let temp = tempfile::tempdir().unwrap();
    let config = file.map(|text| {
        let path = temp.path().join("clawmesh.toml");
        fs::write(&path, text).unwrap();
        path
    });
    let flags = Flags::parse_from(std::iter::once(&"up").chain(flags)).layer;
    let env = |name: &str| {
        env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Layered::new(flags, config, env)
}

fn settings(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> Settings {
    layered(flags, env, file).unwrap().resolve().unwrap()
}

fn refused(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> String {
    let error = layered(flags, env, file).and_then(|it| it.resolve()).unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "one line: {text}");
    text
}

#[test]
fn without_a_word_the_standard_client_finds_the_node() {
    let settings = settings(&[], &[], None);
    let home = etcetera::home_dir().unwrap();
    assert_eq!(settings.data_dir, home.join(".clawmesh"));
    assert_eq!(settings.socket, Some(home.join(".clawchat/clawchat.sock")));
    assert_eq!(settings.tcp.as_deref(), Some("127.0.0.1:9229"));
    assert_eq!(settings.http.as_deref(), Some("127.0.0.1:9230"));
    assert_eq!(settings.auth, Auth::KeyFile(home.join(".clawchat/auth.key")));
    assert_eq!(settings.listen, [Listen::Auto(9231)]);
    assert_eq!(settings.takeover_after, TAKEOVER_AFTER);
    assert!(settings.join.is_empty() && settings.name.is_none());
    assert_eq!(settings.discovery, Discovery::FullMesh);
}

#[test]
fn a_node_carries_for_members_unless_it_is_told_not_to() {
    let relaying = |flags: &[&str], env| settings(flags, env, None).relaying;
    assert_eq!(relaying(&[], &[]), Relaying::Members);
    assert_eq!(relaying(&["--relay", "off"], &[]), Relaying::Off);
    assert_eq!(relaying(&[], &[("CLAWMESH_RELAY", "off")]), Relaying::Off);
    assert_eq!(settings(&["--relay-rate", "1MiB"], &[], None).relay_rate, 1 << 20);
}

#[test]
fn links_over_websocket_are_taken_where_the_operator_says() {
    let none = settings(&[], &[], None);
    assert!(none.listen_ws.is_empty() && none.link_tls.is_none());
    let flags = ["--listen-ws", "127.0.0.1:8443", "--reached-at", "wss://a.example"];
    let behind = settings(&flags, &[], None);
    assert_eq!(behind.listen_ws, ["127.0.0.1:8443".parse().unwrap()]);
    assert_eq!(behind.reached_at[0].to_string(), "wss://a.example:443");
    let env = [("CLAWMESH_LISTEN_WS", "0.0.0.0:443"), ("CLAWMESH_TLS_CERT", "c")];
    let tls = Some(TlsFiles { of: "tls", certificate: "c".into(), key: "k".into() });
    assert_eq!(settings(&["--tls-key", "k"], &env, None).link_tls, tls);
    assert!(refused(&[], &env, None).contains("private key with --tls-key"));
    let alone = ["--tls-cert", "c", "--tls-key", "k"];
    assert!(refused(&alone, &[], None).contains("--listen-ws"));
    assert!(refused(&["--listen-ws", "auto:1"], &[], None).contains("listen-ws"));
}

#[test]
fn a_relay_is_there_to_be_reached_and_keeps_for_others_what_it_is_told_to() {
    let of = |flags: &[&str], env: &[(&str, &str)]| {
        let all = layered(flags, env, None).unwrap();
        Layered {
            all: [vec![Layer { is_relay: Some(true), ..Layer::default() }], all.all].concat(),
            ..all
        }
        .resolve()
    };
    let relay = of(&[], &[]).unwrap();
    assert!(relay.is_relay && relay.carry == 0);
    assert_eq!(relay.listen, [Listen::At("0.0.0.0:9231".parse().unwrap())]);
    assert_eq!(of(&["--carry", "1MiB"], &[]).unwrap().carry, 1 << 20);
    assert_eq!(of(&[], &[("CLAWMESH_CARRY", "1MiB")]).unwrap().carry, 1 << 20);
    assert!(of(&[], &[("CLAWMESH_RELAY", "off")]).is_err());
    assert!(of(&[], &[("CLAWMESH_NO_DISCOVERY", "1")]).is_err());
    assert!(!settings(&[], &[], None).is_relay);
}

#[test]
fn discovery_can_be_switched_off() {
    let discovery = |flags: &[&str], file| settings(flags, &[], file).discovery;
    assert_eq!(discovery(&["--no-discovery"], None), Discovery::Configured);
    assert_eq!(discovery(&[], Some("no-discovery = true")), Discovery::Configured);
    assert_eq!(
        settings(&[], &[("CLAWMESH_NO_DISCOVERY", "1")], None).discovery,
        Discovery::Configured
    );
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let file = "name = 'file'\ntcp = '1.1.1.1:1'\nhttp = '1.1.1.1:2'\nno-auth = true\n\
                listen = ['1.1.1.1:3', '1.1.1.1:4']\ntakeover-after = '2s'";
    let env = [("CLAWMESH_NAME", "env"), ("CLAWMESH_TCP", "2.2.2.2:1")];
    let all = settings(&["--name", "flag"], &env, Some(file));
    assert_eq!(all.name.as_deref(), Some("flag"));
    assert_eq!(all.tcp.as_deref(), Some("2.2.2.2:1"));
    assert_eq!(all.http.as_deref(), Some("1.1.1.1:2"));
    assert_eq!(all.listen, ["1.1.1.1:3", "1.1.1.1:4"].map(|at| Listen::At(at.parse().unwrap())));
    assert_eq!(all.auth, Auth::Open);
    assert_eq!(all.takeover_after, Duration::from_secs(2));
}

#[test]
fn what_is_off_below_can_be_on_above() {
    let file = Some("no-tcp = true\nno-http = true\nno-socket = true");
    let env = [("CLAWMESH_NO_HTTP", "false")];
    let some = settings(&["--tcp", "1.1.1.1:1"], &env, file);
    assert_eq!(some.tcp.as_deref(), Some("1.1.1.1:1"));
    assert_eq!(some.http.as_deref(), Some("127.0.0.1:9230"));
    assert_eq!(some.socket, None);
    assert_eq!(settings(&["--no-tcp"], &[("CLAWMESH_TCP", "1.1.1.1:1")], None).tcp, None);
}

#[test]
fn lists_in_the_environment_are_separated_by_commas() {
    let all = settings(&[], &[("CLAWMESH_LISTEN", "127.0.0.1:0, 127.0.0.1:7")], None);
    assert_eq!(all.listen.len(), 2);
    let all = settings(&[], &[("CLAWMESH_REACHED_AT", "home.example:7, [2001:db8::1]:7")], None);
    assert_eq!(all.reached_at.len(), 2);
}

#[test]
fn refusals_name_what_to_change() {
    let check = |flags: &[&str], expect: &str| {
        let error = refused(flags, &[], None);
        assert!(error.contains(expect), "{flags:?}: {error}");
    };
    check(&["--tcp", "9229"], "--tcp 9229: write HOST:PORT");
    check(&["--http", "a:b"], "--http a:b");
    check(&["--listen", "127.0.0.1"], "--listen 127.0.0.1");
    check(&["--reached-at", "host"], "--reached-at host: not an address");
    check(&["--join", "clawmesh1abc"], "--join: the ticket is damaged");
    check(&["--name", " "], "--name");
    check(&["--takeover-after", "soon"], "--takeover-after soon");
    check(&["--takeover-after", "1ms"], "--takeover-after 1ms: choose 700ms");
    check(&["--tcp", "a:1", "--no-tcp"], "--tcp and --no-tcp");
    check(&["--relay", "all"], "--relay all: write members or off");
    check(&["--signup", "maybe"], "--signup maybe: write off, admin or open");
    check(&["--signup", "admin"], "--signup admin: name the secret's file");
    check(&["--http-origin", "example.org"], "--http-origin example.org: write it as browsers do");
    check(&["--http-origin", "https://a.org/"], "--http-origin https://a.org/");
    check(&["--http-origin", "https://*.org"], "--http-origin");
    check(&["--http-host", "a.org:80"], "--http-host a.org:80: write a name without port");
    check(&["--trusted-proxy", "a.org"], "--trusted-proxy a.org: write an address");
    check(&["--retention", "2 weeks"], "--retention 2 weeks: write a time such as 30d");
    for short in ["0", "59m", "3599s"] {
        check(&["--retention", short], &format!("--retention {short}: write a time"));
        check(&["--limit", &format!("pro.retention={short}")], "at least 1h");
    }
    let hour = Some(Duration::from_secs(3_600));
    assert_eq!(Some(mesh::limits::RETENTION_MIN), hour, "as that says");
    assert_eq!(settings(&["--retention", "1h"], &[], None).limits.retention.own, hour);
    check(&["--limit", "gold.agents=5"], "--limit gold.agents=5: write KEY.WHAT=VALUE");
    let error = refused(&[], &[], Some("name = 'x'\nport = 7"));
    assert!(error.contains("line 2") && error.contains("`port`"), "{error}");
    let error = refused(&[], &[("CLAWMESH_NO_AUTH", "maybe")], None);
    assert!(error.contains("CLAWMESH_NO_AUTH=maybe"), "{error}");
    let missing = refused(&[], &[("CLAWMESH_CONFIG", "/no/such")], None);
    assert!(missing.contains("--config /no/such"), "{missing}");
}

#[test]
fn times() {
    let check = |text: &str, expect| assert_eq!(duration(text), expect, "{text}");
    check("1.5s", Some(Duration::from_millis(1_500)));
    check("800ms", Some(Duration::from_millis(800)));
    check("2m", Some(Duration::from_secs(120)));
    check("3", Some(Duration::from_secs(3)));
    check("12h", Some(Duration::from_secs(12 * 3_600)));
    check("14d", Some(Duration::from_secs(14 * 86_400)));
    for bad in ["", "s", "-1s", "inf", "nan", "1w", "1e400s"] {
        check(bad, None);
    }
}

#[test]
fn who_may_have_a_key_made() {
    let all = settings(&[], &[], None);
    assert_eq!((all.signup, all.allow_private_webhooks), (Signup::Off, false));
    let file = Some("signup = 'admin'\nadmin-secret-file = '/a'\nallow-private-webhooks = true");
    let all = settings(&[], &[], file);
    assert_eq!((all.signup, all.allow_private_webhooks), (Signup::Admin("/a".into()), true));
    let all = settings(&["--signup", "open"], &[("CLAWMESH_ALLOW_PRIVATE_WEBHOOKS", "0")], file);
    assert_eq!((all.signup, all.allow_private_webhooks), (Signup::Open, false));
}

#[test]
fn who_is_let_in_over_http() {
    let env = [("CLAWMESH_TRUSTED_PROXY", "10.0.0.1, fd00::1")];
    let file = "http-origin = ['https://a.org', 'http://localhost:3000']\nhttp-host = ['A.org']";
    let all = settings(&[], &env, Some(file));
    assert_eq!(all.http_origins, ["https://a.org", "http://localhost:3000"]);
    assert_eq!(all.http_hosts, ["a.org"]);
    let proxies: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
    assert_eq!(all.trusted_proxies, proxies);
}

#[test]
fn each_limit_is_the_highest_layers_that_has_it() {
    let file = "retention = '1d'\nlimit = ['free.agents=1', 'free.rooms=1', 'pro.agents=1']";
    let env = [("CLAWMESH_LIMIT", "free.agents=2,free.rooms=2")];
    let flags = ["--limit", "free.agents=3", "--retention", "forever"];
    let limits = settings(&flags, &env, Some(file)).limits;
    let tiers = limits.tiers;
    assert_eq!((tiers.low.agents, tiers.low.rooms, tiers.high.agents), (Some(3), Some(2), Some(1)));
    assert_eq!(limits.retention.own, None);
    let day = Duration::from_secs(86_400);
    assert_eq!(settings(&[], &[], Some(file)).limits.retention.own, Some(day));
    assert_eq!(settings(&[], &[], None).limits, Limits::default());
}

#[test]
fn tls_takes_both_files_from_wherever_they_are_named() {
    let both = Some(TlsFiles { of: "http", certificate: "c".into(), key: "k".into() });
    assert_eq!(settings(&["--http-cert", "c", "--http-key", "k"], &[], None).http_tls, both);
    let split = settings(&["--http-cert", "c"], &[], Some("http-key = \"k\"\nhttp-cert = \"x\""));
    assert_eq!(split.http_tls, both);
    let env = [("CLAWMESH_HTTP_CERT", "c"), ("CLAWMESH_HTTP_KEY", "k")];
    assert_eq!(settings(&[], &env, None).http_tls, both);
    assert_eq!(settings(&[], &[], None).http_tls, None);
    let error = refused(&["--http-cert", "c"], &[], None);
    assert!(error.starts_with("--http-cert c: ") && error.contains("--http-key FILE"), "{error}");
    let error = refused(&["--http-key", "k"], &[], None);
    assert!(error.starts_with("--http-key k: ") && error.contains("--http-cert FILE"), "{error}");
    let error = refused(&["--http-cert", "c", "--http-key", "k", "--no-http"], &[], None);
    assert!(error.contains("--no-http"), "{error}");
}

#[test]
fn tools_for_hosts_are_on_unless_a_flag_or_the_file_says_otherwise() {
    let mcp = |flags: &[&str], file: &str| settings(flags, &[], Some(file)).mcp;
    assert_eq!(mcp(&[], ""), Some(Mcp::default()));
    assert_eq!(mcp(&["--no-mcp"], "[mcp]\nenabled = true"), None);
    assert_eq!(mcp(&[], "no-mcp = true"), None);
    assert_eq!(mcp(&[], "[mcp]\nenabled = false"), None);
    assert_eq!(settings(&[], &[("CLAWMESH_NO_MCP", "1")], None).mcp, None);
    let file = "[mcp]\ntools = ['rooms', 'tasks']\nidle-detach = '90s'";
    let groups = Groups::parse("rooms,tasks").unwrap();
    assert_eq!(
        mcp(&[], file),
        Some(Mcp { groups, idle_detach: Duration::from_secs(90), ..Mcp::default() })
    );
    for (file, error) in [
        ("[mcp]\ntools = ['spoons']", "mcp.tools"),
        ("[mcp]\nidle-detach = '11m'", "mcp.idle-detach"),
        ("[mcp]\nspoon = 1", "spoon"),
    ] {
        let found = refused(&[], &[], Some(file));
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn agents_may_answer_each_other_as_the_file_says() {
    let budgets = |file: &str| settings(&[], &[], Some(file)).budgets;
    assert_eq!(budgets(""), Budgets::default());
    let file = "[session]\nmax-ping-pong-turns = 0\nmax-hops = 4\nmax-unanswered = 7\n\
                pair = { messages = 3, within = '10s', rest = '1m' }";
    let pair = Pace { messages: 3, within: Duration::from_secs(10), rest: Duration::from_secs(60) };
    let ttl = |file: &str| settings(&[], &[], Some(file)).request_ttl;
    assert_eq!((ttl("").as_secs(), ttl("[session]\nttl = '1m'").as_secs()), (7 * 86_400, 60));
    assert_eq!(budgets(file), Budgets { turns: 0, hops: 4, pair, outstanding: 7 });
    for (file, error) in [
        ("[session]\nmax-ping-pong-turns = 201", "session.max-ping-pong-turns"),
        ("[session]\nmax-hops = 0", "session.max-hops"),
        ("[session]\nmax-unanswered = 0", "session.max-unanswered"),
        ("[session]\npair = { messages = 0 }", "session.pair.messages"),
        ("[session]\npair = { within = '2h' }", "session.pair.within"),
        ("[session]\nttl = '59s'", "session.ttl"),
        ("[session]\nttl = '31d'", "session.ttl"),
        ("[session]\nspoon = 1", "spoon"),
        ("[session.sandbox]\nvisibility = 'joined'", "session.sandbox.visibility"),
        ("[session.sandbox]\nspoon = 1", "spoon"),
    ] {
        let found = refused(&[], &[], Some(file));
        assert!(found.contains(error), "{found}");
    }
    let sandbox = |file: &str| settings(&[], &[], Some(file)).sandbox;
    assert_eq!(sandbox(""), Visibility::Spawned);
    assert_eq!(sandbox("[session.sandbox]\nvisibility = 'all'"), Visibility::All);
}

#[test]
fn who_may_write_to_whom_and_where_stands_in_the_file() {
    let policies = |file: &str| settings(&[], &[], Some(file)).policies;
    assert_eq!(policies(""), Policies::default());
    let file = "[session]\ninbound = 'known'\n[session.agent-to-agent]\nallow = ['ada', 'ops-*']\n\
                [session.send-policy]\ndefault = 'deny'\nrules = [\
                { match = { provider = 'mesh', chat-type = 'channel' }, action = 'deny' }, \
                { match = { channel = 'mesh', keyPrefix = 'Agent:Bot', chatType = 'direct' }, action = 'allow' }, \
                { action = 'allow' }]";
    let found = policies(file);
    assert_eq!(found.core.inbound, Inbound::Known);
    let agents = &found.core.agent_to_agent;
    assert!(agents.allows("ada", "ops-1") && !agents.allows("ada", "bob"));
    let mesh = || Some("mesh".to_owned());
    let rule = |provider, chat_type, key_prefix: Option<&str>, action| {
        let key_prefix = key_prefix.map(str::to_owned);
        SendRule { provider, chat_type, key_prefix, action }
    };
    let rules = vec![
        rule(mesh(), Some(ChatType::Channel), None, Action::Deny),
        rule(mesh(), Some(ChatType::Direct), Some("agent:bot"), Action::Allow),
        rule(None, None, None, Action::Allow),
    ];
    assert_eq!(found.send, SendPolicy { default: Action::Deny, rules });
    let off = policies("[session.agent-to-agent]\nenabled = false");
    assert!(!off.core.agent_to_agent.allows("ada", "bob"));
    let soft = settings(&[], &[], Some("[session]\nsoft-timeout = 'accepted'")).mcp;
    assert_eq!(soft.map(|mcp| mcp.soft_timeout), Some(SoftTimeout::Accepted));
}

#[test]
fn policies_that_make_no_sense_stop_the_start_and_say_where() {
    let rule =
        |rule: &str| format!("[session.send-policy]\nrules = [{{ action = 'deny' }}, {rule}]");
    for (file, error) in [
        (
            "[session]\nsoft-timeout = 'never'".to_owned(),
            "session.soft-timeout never: write timeout",
        ),
        ("[session]\ninbound = 'all'".to_owned(), "session.inbound all: write mesh"),
        ("[session.agent-to-agent]\nallow = ['']".to_owned(), "session.agent-to-agent.allow"),
        ("[session.agent-to-agent]\ndeny = ['a']".to_owned(), "`deny`"),
        (
            "[session.send-policy]\ndefault = 'maybe'".to_owned(),
            "session.send-policy.default maybe",
        ),
        (rule("{ action = 'maybe' }"), "session.send-policy.rules [1].action = \"maybe\""),
        (rule("{ match = { chat-type = 'dm' }, action = 'deny' }"), "[1].match.chat-type = \"dm\""),
        (
            rule("{ match = { provider = 'a', channel = 'b' }, action = 'deny' }"),
            "[1].match.channel",
        ),
        (rule("{ match = { spoon = 1 }, action = 'deny' }"), "spoon"),
        (rule("{ match = {} }"), "action"),
    ] {
        let found = refused(&[], &[], Some(&file));
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn rooms_in_which_agents_announce_stand_in_the_file_and_have_the_form_of_keys() {
    let rooms = |file: &str| settings(&[], &[], Some(file)).announce_rooms;
    assert!(rooms("").is_empty());
    let file =
        "[session.announce]\nrooms = { bob = 'mesh:channel:lobby', 'a b' = ' mesh:group:ops ' }";
    let found: Vec<_> = rooms(file).into_iter().collect();
    let named = |agent: &str, room: &str| (AgentId::from(agent), room.to_owned());
    assert_eq!(found, [named("a b", "mesh:group:ops"), named("bob", "mesh:channel:lobby")]);
    for (file, error) in [
        ("rooms = { bob = 'lobby' }", "session.announce.rooms lobby: write the key of a room"),
        ("rooms = { bob = 'mesh:channel:' }", "session.announce.rooms"),
        ("rooms = { bob = 'agent:ada:main' }", "session.announce.rooms"),
        ("rooms = { '' = 'mesh:channel:lobby' }", "session.announce.rooms"),
        ("room = 'lobby'", "`room`"),
    ] {
        let found = refused(&[], &[], Some(&format!("[session.announce]\n{file}")));
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn tasks_that_agents_give_have_the_bounds_of_the_file() {
    let spawning = |file: &str| {
        let settings = settings(&[], &[], Some(file));
        assert_eq!(settings.mcp.map(|mcp| mcp.spawning), Some(settings.spawning));
        settings.spawning
    };
    let Spawning { max_children, max_depth, archive_after } = spawning("");
    assert_eq!((max_children, max_depth, archive_after), (5, 1, Duration::from_secs(3_600)));
    let file = "[session.spawn]\nmax-children = 2\nmax-depth = 3\narchive-after = '5m'";
    let Spawning { max_children, max_depth, archive_after } = spawning(file);
    assert_eq!((max_children, max_depth, archive_after), (2, 3, Duration::from_secs(300)));
    for (file, error) in [
        ("[session.spawn]\nmax-children = 0", "session.spawn.max-children"),
        ("[session.spawn]\nmax-depth = 4", "session.spawn.max-depth"),
        ("[session.spawn]\narchive-after = 'soon'", "session.spawn.archive-after"),
        ("[session.spawn]\nspoon = 1", "spoon"),
    ] {
        let found = refused(&[], &[], Some(file));
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn hosts_that_are_woken_stand_in_the_file_and_their_tokens_beside_it() {
    let file = "[[wake]]\nagent = 'ada'\nurl = 'http://127.0.0.1:1/hooks/wake'\ntoken-file = 'hooks.token'";
    let wakes = settings(&[], &[], Some(file)).wakes;
    let [wake] = &wakes[..] else { panic!("{wakes:?}") };
    assert_eq!((&*wake.agent, &*wake.url), ("ada", "http://127.0.0.1:1/hooks/wake"));
    let token = wake.token_file.as_deref().expect("it has one");
    assert!(token.is_absolute() && token.ends_with("hooks.token"), "{token:?}");
    assert_eq!(wake.body, bridge::WakeBody::default());
    let body = r#"{"prompt": "{notice}", "n": {count}, "from": "{agents}"}"#;
    let with_body = format!("{file}\nbody = '{body}'");
    let wakes = settings(&[], &[], Some(&with_body)).wakes;
    assert_eq!(wakes[0].body, bridge::WakeBody::parse(body).expect("it is one"));
    for (file, error) in [
        ("[[wake]]\nagent = ''\nurl = 'http://h/'", "wake.agent"),
        ("[[wake]]\nagent = 'a'\nurl = 'ftp://h/'", "wake.url"),
        ("[[wake]]\nagent = 'a'", "url"),
        ("[[wake]]\nagent = 'a'\nurl = 'http://h/'\nbody = 'hello'", "wake.body"),
        ("[[wake]]\nagent = 'a'\nurl = 'http://h/'\nbody = '\"{text}\"'", "{notice}"),
    ] {
        let found = refused(&[], &[], Some(file));
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn clawtank_is_on_until_an_operator_says_otherwise_and_a_file_says_how() {
    use ::clawtank::Form;
    assert_eq!(settings(&[], &[], None).clawtank, ::clawtank::Settings::default());
    assert!(!settings(&["--no-clawtank"], &[], None).clawtank.on);
    assert!(!settings(&[], &[("CLAWMESH_NO_CLAWTANK", "1")], None).clawtank.on);
    let off = "[clawtank]\nenabled = false";
    assert!(!settings(&[], &[], Some(off)).clawtank.on);
    assert!(
        settings(&[], &[("CLAWMESH_NO_CLAWTANK", "0")], Some(off)).clawtank.on,
        "over the file"
    );
    let bare = "[clawtank]\nids = 'bare'";
    assert_eq!(settings(&[], &[], Some(bare)).clawtank.ids, Form::Bare);
    let none = "[clawtank]\nspectators = false";
    assert!(!settings(&[], &[], Some(none)).clawtank.spectators);
    let wrong = refused(&[], &[], Some("[clawtank]\nids = 'long'"));
    assert!(wrong.contains("clawtank.ids"), "{wrong}");
}

#[test]
fn goclaw_is_on_until_an_operator_says_otherwise_and_a_file_says_how() {
    assert_eq!(settings(&[], &[], None).goclaw, ::goclaw::Settings::default());
    assert!(!settings(&["--no-goclaw"], &[], None).goclaw.on);
    assert!(!settings(&[], &[("CLAWMESH_NO_GOCLAW", "1")], None).goclaw.on);
    let off = "[goclaw]\nenabled = false";
    assert!(!settings(&[], &[], Some(off)).goclaw.on);
    assert!(settings(&[], &[("CLAWMESH_NO_GOCLAW", "0")], Some(off)).goclaw.on, "over the file");
    let file = "[goclaw]\nevents = 'flat'\ndefault-agent = 'bob'\nrun-limit-ms = 2000\n\
                reply-wait-ms = 1000\nrequests-per-minute = 7\npairing = false";
    let goclaw = settings(&[], &[], Some(file)).goclaw;
    assert_eq!(
        (goclaw.events, goclaw.default_agent.as_deref()),
        (::goclaw::Events::Flat, Some("bob"))
    );
    let times = (goclaw.run_limit, goclaw.reply_wait);
    assert_eq!(times, (Duration::from_secs(2), Duration::from_secs(1)));
    assert_eq!((goclaw.requests_per_minute, goclaw.pairing), (7, false));
    for (file, text) in [
        ("[goclaw]\nevents = 'loud'", "goclaw.events"),
        ("[goclaw]\nrun-limit-ms = 1", "goclaw.run-limit-ms"),
        ("[goclaw]\nreply-wait-ms = 9000000", "goclaw.reply-wait-ms"),
        ("[goclaw]\nrequests-per-minute = 0", "goclaw.requests-per-minute"),
        ("[goclaw]\nloud = true", "loud"),
    ] {
        let refused = refused(&[], &[], Some(file));
        assert!(refused.contains(text), "{refused}");
    }
}
