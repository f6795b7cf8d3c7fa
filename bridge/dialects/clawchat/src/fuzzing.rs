//! A driver for fuzzing: sessions over a real engine, without sockets. Not built but with the feature `fuzzing`.

use std::{sync::Arc, time::Duration};

use bridge::testing::{Fake, KEY, keyed};
use serde_json::json;

use crate::local::Local;

/// Clients that speak.
const CLIENTS: usize = 3;
/// How long each line that begins with `+` lets pass.
const PAUSE: Duration = Duration::from_millis(500);

/// Lets three clients say these lines. The first character of a line decides the use of the rest: `0` to `2`, the client
/// says it; `a` to `c`, the client says it as a registered agent; `-`, the first of them hangs up and comes again; `+`,
/// time passes.
///
/// # Panics
/// When the node does not serve somebody else afterwards: fuzzing looks for that.
pub fn play(lines: &str) {
    let (fake, _) = Fake::new();
    let mut clients: Vec<Local> = (0..CLIENTS).map(|_| Local::fresh(&fake, keyed())).collect();
    for line in lines.split('\n') {
        let mut rest = line.chars();
        let Some(how) = rest.next() else { continue };
        match how {
            '0'..='2' => clients[how as usize - '0' as usize].hear(rest.as_str()),
            'a'..='c' => {
                let client = &mut clients[how as usize - 'a' as usize];
                if client.line.is_fresh() {
                    client.post("register", json!({"key": KEY, "name": how, "agent_id": how}));
                    client.post("join_room", json!({"room_id": "lobby"}));
                }
                client.hear(rest.as_str());
            }
            '-' => {
                let gone = std::mem::replace(&mut clients[0], Local::fresh(&fake, keyed()));
                gone.hang_up();
            }
            '+' => {
                fake.pass(PAUSE);
                clients.iter_mut().for_each(|client| client.line.now += PAUSE);
            }
            _ => {}
        }
    }
    clients.iter_mut().for_each(Local::settle);
    let mut witness = Local::fresh(&fake, keyed());
    let registered = witness.call("register", json!({"key": KEY, "name": "witness"}));
    assert!(registered["agent_id"].is_string(), "{registered}");
    witness.call("join_room", json!({"room_id": "lobby"}));
    let said = witness.call("send_message", json!({"room_id": "lobby", "content": "still here"}));
    assert!(said["seq"].as_u64().is_some_and(|seq| seq > 0), "{said}");
    let history = witness.call("get_history", json!({"room_id": "lobby", "limit": 1}));
    assert_eq!(history["messages"][0]["content"], "still here", "{history}");
    drop((clients, witness));
    fake.part();
    assert_eq!(Arc::strong_count(&fake), 1, "what was played holds on to its node");
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_played_is_served_and_given_back() {
        let send =
            r#"{"id":"1","type":"send_message","payload":{"room_id":"lobby","content":"x"}}"#;
        super::play(&format!("a{send}\nb{send}\n0junk\n-\n+\nc{send}\n1{{}}\n+"));
    }
}
