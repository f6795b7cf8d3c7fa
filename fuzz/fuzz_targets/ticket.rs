//! Words that people paste: tickets, and addresses of peers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use node::ticket::Ticket;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// With the sum that it should have, so that what is behind it is reached.
fn word(bytes: &[u8]) -> String {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    let mut text = "clawmesh1".to_owned();
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes.iter().copied().chain((!sum).to_be_bytes()) {
        held = held << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(held >> bits & 31) as usize]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(held << (5 - bits) & 31) as usize]));
    }
    text
}

fn read(text: &str) {
    if let Ok(ticket) = text.parse::<Ticket>() {
        let again: Ticket = ticket.to_text().parse().expect("what we say can be read");
        assert_eq!(again.to_text(), ticket.to_text());
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(&word(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    read(text);
    if let Ok(peer) = text.parse::<net::PeerAddress>() {
        let again: net::PeerAddress = peer.to_string().parse().expect("what we say can be read");
        assert_eq!(again, peer);
    }
});
