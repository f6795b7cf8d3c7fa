use std::{os::unix::fs::PermissionsExt as _, sync::atomic::AtomicUsize};

use super::*;

/// Logs of which level are wanted, and how often it was set.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<String>>, Arc<AtomicUsize>);

impl Logs {
    fn setter(&self) -> SetLog {
        let Logs(level, count) = self.clone();
        Box::new(move |text| {
            if text == "loud" {
                return Err(anyhow!("--log loud: no level"));
            }
            text.clone_into(&mut level.lock().unwrap());
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        })
    }
}

fn open(dir: &Path, fixed: &[(&'static str, &str)], logs: &Logs) -> Result<Changeable> {
    let base = Values::of(&Settings::isolated(dir), "info");
    let fixed = fixed.iter().map(|(name, by)| (*name, (*by).to_owned())).collect();
    let settings_file = Some(dir.join("node.toml"));
    Changeable::open(dir, Sources { base, fixed, settings_file, set_log: logs.setter() })
}

fn changes(all: &[(&str, Value)]) -> Changes {
    let change = |(name, to): &(&str, Value)| ((*name).to_owned(), Some(to.clone()));
    all.iter().map(change).collect()
}

fn value(of: &Changeable, name: &str) -> Value {
    of.all().into_iter().find(|setting| setting.name == name).expect(name).value
}

fn config() -> bridge::Config {
    let node = mesh::name::id::NodeId([1; 32]);
    let here = mesh::wire::signatures::SignedLog { mesh: mesh::name::id::MeshId([1; 16]), node };
    bridge::Config::new(config::Auth::Open, here)
}

fn followed(all: &Changeable, dir: &Path) -> (Live, bridge::Config) {
    let live = Live::new(goclaw::Settings::default());
    let config = config();
    let http = Some("127.0.0.1:9230".to_owned());
    let (name, mesh) = ("n".to_owned(), "m".to_owned());
    let seen = Seen { http, name, mesh, data_dir: dir.to_owned() };
    let (goclaw, bridge) = (live.clone(), config.changed.clone());
    let webhooks = Box::new(|_| {});
    let cron = Box::new(|_| {});
    all.follow(Followers { goclaw, bridge, webhooks, cron, seen });
    (live, config)
}

/// Whether jobs are fired, as the node was told.
fn fires(all: &Changeable, dir: &Path) -> Arc<Mutex<Vec<bool>>> {
    let told = Arc::<Mutex<Vec<bool>>>::default();
    let tells = told.clone();
    let (live, config) = (Live::new(goclaw::Settings::default()), config());
    let seen =
        Seen { http: None, name: "n".to_owned(), mesh: "m".to_owned(), data_dir: dir.to_owned() };
    all.follow(Followers {
        goclaw: live,
        bridge: config.changed,
        webhooks: Box::new(|_| {}),
        cron: Box::new(move |on| tells.lock().unwrap().push(on)),
        seen,
    });
    told
}

#[test]
fn jobs_are_switched_off_at_once_and_stay_so_over_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let all = open(dir.path(), &[], &Logs::default()).unwrap();
    let told = fires(&all, dir.path());
    assert_eq!(*told.lock().unwrap(), [true]);
    all.change(&changes(&[("cron.enabled", json!(false))]), false).unwrap();
    assert_eq!(told.lock().unwrap().last(), Some(&false));
    let again = open(dir.path(), &[], &Logs::default()).unwrap();
    assert_eq!(*fires(&again, dir.path()).lock().unwrap(), [false]);
}

#[test]
fn a_change_is_applied_at_once_and_kept_over_a_start_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    let all = open(dir.path(), &[], &logs).unwrap();
    let (live, _) = followed(&all, dir.path());
    let wanted = changes(&[
        ("goclaw.events", json!("flat")),
        ("goclaw.run_limit_ms", json!(5_000)),
        ("limits.free.messages", json!(7)),
        ("http.hosts", json!(["node.lan"])),
        ("log.level", json!("debug")),
    ]);
    all.change(&wanted, false).unwrap();
    assert!(format!("{live:?}").contains("Flat"), "{live:?}");
    assert_eq!(*logs.0.lock().unwrap(), "debug");
    let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let logs = Logs::default();
    let again = open(dir.path(), &[], &logs).unwrap();
    for (name, to) in &wanted {
        assert_eq!(Some(value(&again, name)), *to, "{name}");
    }
    let mut settings = Settings::isolated(dir.path());
    again.begin(&mut settings).unwrap();
    assert_eq!(settings.limits.quotas.free.messages_per_minute, Some(7));
    assert_eq!(settings.goclaw.run_limit.as_secs(), 5);
    assert_eq!(
        (settings.http_hosts, &**logs.0.lock().unwrap()),
        (vec!["node.lan".to_owned()], "debug")
    );
    // Back again, one alone and then all.
    again.change(&[("goclaw.events".to_owned(), None)].into(), false).unwrap();
    assert_eq!(value(&again, "goclaw.events"), json!("auto"));
    again.change(&changes(&[("goclaw.pairing", json!(false))]), true).unwrap();
    assert_eq!(value(&again, "goclaw.run_limit_ms"), json!(600_000));
    assert_eq!(value(&again, "log.level"), json!("info"));
    assert_eq!(value(&again, "goclaw.pairing"), json!(false));
}

#[test]
fn what_cannot_be_changed_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    let all = open(dir.path(), &[("log.level", "--log")], &logs).unwrap();
    let free = open(dir.path(), &[], &logs).unwrap();
    followed(&all, dir.path());
    let before = all.all();
    for (name, to, why) in [
        ("gateway.port", json!(1), "gateway.port needs a restart: edit "),
        ("no.such", json!(1), "no.such needs a restart"),
        ("log.level", json!("debug"), "log.level is set by --log"),
        ("goclaw.events", json!("loud"), "must be auto, flat, envelope or both"),
        ("goclaw.pairing", json!("yes"), "must be true or false"),
        ("goclaw.run_limit_ms", json!(5), "milliseconds from 1000"),
        ("goclaw.run_limit_ms", json!("5"), "goclaw.run_limit_ms must be a whole number"),
        ("goclaw.requests_per_minute", json!(0), "from 1 to"),
        ("limits.own.content_bytes", json!(0), "1 to 262144"),
        ("limits.pro.messages", json!("many"), "a number, or none"),
        ("http.origins", json!("x"), "must be a list of strings"),
        ("http.origins", json!(["ftp:"]), "http-origin"),
    ] {
        let wanted = changes(&[("goclaw.default_agent", json!("bob")), (name, to.clone())]);
        let no = all.change(&wanted, false).unwrap_err();
        assert!(no.contains(why), "{name}: {no}");
        assert_eq!(all.all(), before, "{name}");
    }
    let loud = changes(&[("goclaw.default_agent", json!("bob")), ("log.level", json!("loud"))]);
    assert!(free.change(&loud, false).unwrap_err().contains("no level"));
    assert_eq!(value(&free, "goclaw.default_agent"), json!(""));
    assert!(!dir.path().join(FILE).exists(), "nothing was kept");
}

/// A flag stands over what was changed before it was given.
#[test]
fn flags_stand_over_what_was_changed_and_a_bad_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    let wanted = changes(&[("log.level", json!("debug"))]);
    open(dir.path(), &[], &logs).unwrap().change(&wanted, false).unwrap();
    let flagged = open(dir.path(), &[("log.level", "--log")], &logs).unwrap();
    assert_eq!(value(&flagged, "log.level"), json!("info"));
    for bad in ["[", "{\"goclaw.events\": \"loud\"}"] {
        fs::write(dir.path().join(FILE), bad).unwrap();
        let error = open(dir.path(), &[], &logs).unwrap_err();
        assert!(format!("{error:#}").contains(FILE), "{error:#}");
    }
}

#[test]
fn limits_hold_at_once_and_no_name_is_the_beginning_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let all = open(dir.path(), &[], &Logs::default()).unwrap();
    let (_, mut config) = followed(&all, dir.path());
    config.auth = config::Auth::Key(config::NodeKey::new("k"));
    let quota = |config: &bridge::Config| config.quota(mesh::api::agenda::Standing::Own);
    assert_eq!(quota(&config).messages_per_minute, None);
    all.change(&changes(&[("limits.own.messages", json!(9))]), false).unwrap();
    assert_eq!(quota(&config).messages_per_minute, Some(9));
    all.change(&changes(&[("limits.own.messages", json!(0))]), false).unwrap();
    assert_eq!(quota(&config).messages_per_minute, None);
    let names: Vec<&str> = all.all().iter().map(|setting| setting.name).collect();
    assert!(names.is_sorted());
    for name in &names {
        let inner = format!("{name}.");
        assert!(!names.iter().any(|other| other.starts_with(&inner) || *other == "raw"), "{name}");
    }
}
