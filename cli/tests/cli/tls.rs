//! `wss://` and `https://`, at a node with a certificate of its operator's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::World;

/// Self-signed, for 127.0.0.1, from 2000 to 2100.
const CERTIFICATE: &str = include_str!("../../../bridge/src/webhooks/testdata/cert.pem");
const KEY: &str = include_str!("../../../bridge/src/webhooks/testdata/key.pem");

/// A file that its owner alone can read.
fn private(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn a_node_with_a_certificate_is_reached_by_those_who_trust_it() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) =
        (private(dir.path(), "cert.pem", CERTIFICATE), private(dir.path(), "key.pem", KEY));
    let world = World::with(1, &["--http-cert", &certificate, "--http-key", &key]);
    let at = world.mesh.nodes[0].http().to_owned();
    let (_, key_file) = world.mesh.key.as_ref().unwrap();
    let key_file = key_file.display().to_string();
    let call = |url: &str, more: &[&str]| {
        let url = format!("{url}://{at}");
        let args = [&["--url", &url, "--key-file", &key_file], more].concat();
        world.bare(&args).run()
    };
    let send = ["--ca", &certificate, "send", "lobby", "over TLS"];
    call("wss", &send).ok();
    assert!(call("https", &["--ca", &certificate, "history", "lobby"]).ok().contains("over TLS"));
    // Who does not trust it, or speaks in the clear, does not get in.
    let stranger = call("wss", &["history", "lobby"]).failed();
    assert!(stranger.contains("cannot reach"), "{stranger}");
    call("ws", &["history", "lobby"]).failed();
    let nothing = private(dir.path(), "empty.pem", "");
    let nothing = call("wss", &["--ca", &nothing, "history", "lobby"]).failed();
    assert!(nothing.contains("empty.pem") && nothing.contains("no certificate"), "{nothing}");
    let data_dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let status = world.bare(&["mesh", "status", "--json", "--data-dir", &data_dir]).run().ok();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["http"], format!("https://{at}"));
    assert_eq!(status["certificate"], Value::Null, "it lasts");
}
