//! What waits cost. By hand: `cargo test -p mcp -- --ignored --nocapture --test-threads 1 cost`.

use std::fmt::Write as _;

use tokio::{io::AsyncWriteExt as _, time::sleep};

use super::*;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
#[ignore = "other tests of the process change what is measured"]
async fn an_open_wait_costs_so_much() {
    const AGENTS: usize = 31;
    const WAITS: usize = 8;
    let node = Node::new().await;
    for agent in 0..AGENTS {
        node.call(&format!("a{agent}"), "inbox_wait", json!({"timeoutSeconds": 0})).await;
    }
    let params = json!({"name": "inbox_wait", "arguments": {"timeoutSeconds": 50}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let before = resident_kib();
    let mut waits = Vec::new();
    for nth in 0..AGENTS * WAITS {
        let mut head = format!("POST /mcp/a{} HTTP/1.1\r\nhost: localhost\r\n", nth / WAITS);
        write!(head, "authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n").unwrap();
        write!(head, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut io = TcpStream::connect(node.at).await.unwrap();
        io.write_all(head.as_bytes()).await.unwrap();
        waits.push(io);
    }
    sleep(Duration::from_secs(5)).await;
    let each = (resident_kib() - before) / (AGENTS * WAITS) as u64;
    let mut answered = [0; 1];
    let early = waits.iter().filter(|io| io.try_read(&mut answered).is_ok()).count();
    assert_eq!(early, 0, "they wait");
    println!("{each} KiB each");
    drop(waits);
    node.stop().await;
}

#[tokio::test]
#[ignore = "other tests of the process change what is measured"]
async fn a_connection_costs_so_much_of_that() {
    const CONNECTIONS: usize = 248;
    let node = Node::new().await;
    node.call("a", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    let before = resident_kib();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(TcpStream::connect(node.at).await.unwrap());
    }
    sleep(Duration::from_secs(2)).await;
    let silent = (resident_kib() - before) / CONNECTIONS as u64;
    for io in &mut connections {
        // The head has begun: what it is read into is there.
        io.write_all(b"POST /mcp/a HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    }
    sleep(Duration::from_secs(2)).await;
    let begun = (resident_kib() - before) / CONNECTIONS as u64;
    println!("{silent} KiB each that is silent, {begun} KiB each that has begun a request");
    drop(connections);
    node.stop().await;
}
