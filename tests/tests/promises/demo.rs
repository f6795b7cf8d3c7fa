//! The demonstration, without its pauses, and its recording.

use std::{fs, path::Path, process::ExitCode};

use testnet::{
    binary, cli,
    demo::{self, Setting},
};
use tokio::runtime::Runtime;

use crate::end_to_end::machine;

/// Titles, which do not depend on ports and times.
fn scenes(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("── ")?.split(" ─").next()).collect()
}

#[test]
fn the_demonstration_ends_well_and_its_recording_has_all_its_scenes() {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let setting = Setting { binary, scale: 0.0 };
    let (mut told, mut page) = (String::new(), String::new());
    let runtime = Runtime::new().expect("the system gives threads");
    let played = runtime.block_on(async {
        let mut tell = |line: &str| told += &format!("{line}\n");
        let mut watch = |link: &str| page += link;
        let ended = demo::play(&setting, &mut tell, &mut watch).await?;
        let messages = ended.messages;
        ended.stop().await?;
        anyhow::Ok(messages)
    });
    let messages = played.unwrap_or_else(|error| panic!("{error:#}\n{told}"));
    assert!(messages >= 10, "{messages} messages\n{told}");
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/demo.txt");
    let recording = fs::read_to_string(file).expect("testnet/record-demo makes it");
    assert_eq!(scenes(&recording), scenes(&told), "testnet/record-demo makes the recording anew");
}

#[test]
fn a_demonstration_that_cannot_be_played_says_so_by_its_exit() {
    let arguments = ["clawmesh-testnet", "demo", "--fast", "--clawmeshd", "/nowhere/clawmeshd"];
    assert_eq!(cli::run(arguments.map(Into::into)), ExitCode::FAILURE);
}
