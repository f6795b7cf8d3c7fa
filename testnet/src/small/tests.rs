//! Some small worlds, all of them, in each test run.

use super::*;

#[test]
fn tmp() {
    for steps in ["say 1, gossip 1>0, gossip 1>2, gossip 0>1, gossip 0>2, wait", "crash 0, say 1, frame 0>1, frame 0>2, wait, wait, frame 1>2, frame 2>1, wait, frame 1>2, frame 2>1, frame 1>2, frame 2>1,wait"] {
        let played = replay(Setting{nodes:3,..Setting::default()}, steps, &mut |text| eprintln!("{text:.700}"));
        eprintln!("{played:?}");
    }
}
