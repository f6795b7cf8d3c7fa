//! Announcements of where nodes are: the sender first, then the peers it is connected to.
//!
//! A sequence of records: node id (32 bytes), number of addresses (u8), and each address as length
//! (u8) and text: `host:port`, or `via/` and the id of a relay in hex. Addresses that do not parse are
//! skipped: a newer node may know kinds that we do not.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::address::{Address, parse_node};
use crate::identity::{NodeId, in_hex};
use crate::limits::{ANNOUNCED_PEERS_MAX, PEER_ADDRESSES_MAX, PEER_RELAYS_MAX};

/// Where one node says, or is said, to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) node: NodeId,
    pub(crate) addresses: Vec<Address>,
    /// Members through which it can be reached.
    pub(crate) relays: Vec<NodeId>,
}

/// In front of the id of a relay.
const VIA: &str = "via/";
/// Texts in one record.
const TEXTS_MAX: usize = PEER_ADDRESSES_MAX + PEER_RELAYS_MAX;

/// The bytes end in the middle of a record, or there are too many records or addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a malformed announcement")]
pub(crate) struct Malformed;

/// Encodes at most [`ANNOUNCED_PEERS_MAX`] records with at most [`PEER_ADDRESSES_MAX`] addresses
/// each.
pub(crate) fn encode(records: &[Record]) -> Bytes {
    let mut buffer = BytesMut::new();
    for record in records.iter().take(ANNOUNCED_PEERS_MAX) {
        let addresses = record.addresses.iter().map(Address::to_string);
        // Only host names near the longest possible do not fit into the length byte.
        let addresses = addresses.filter(|text| u8::try_from(text.len()).is_ok());
        let relays = record.relays.iter().take(PEER_RELAYS_MAX);
        let relays = relays.map(|relay| format!("{VIA}{}", in_hex(relay)));
        let texts: Vec<String> = addresses.take(PEER_ADDRESSES_MAX).chain(relays).collect();
        buffer.put_slice(&record.node);
        buffer.put_u8(texts.len() as u8);
        for text in texts {
            buffer.put_u8(text.len() as u8);
            buffer.put_slice(text.as_bytes());
        }
    }
    buffer.freeze()
}

pub(crate) fn decode(mut bytes: Bytes) -> Result<Vec<Record>, Malformed> {
    let mut records = Vec::new();
    while bytes.has_remaining() {
        if records.len() == ANNOUNCED_PEERS_MAX {
            return Err(Malformed);
        }
        let mut node = NodeId::default();
        bytes.try_copy_to_slice(&mut node).map_err(|_| Malformed)?;
        let count = usize::from(bytes.try_get_u8().map_err(|_| Malformed)?);
        if count > TEXTS_MAX {
            return Err(Malformed);
        }
        let (mut addresses, mut relays) = (Vec::with_capacity(count), Vec::new());
        for _ in 0..count {
            let length = usize::from(bytes.try_get_u8().map_err(|_| Malformed)?);
            if bytes.remaining() < length {
                return Err(Malformed);
            }
            let text = bytes.split_to(length);
            let text = std::str::from_utf8(&text).unwrap_or_default();
            if let Some(relay) = text.strip_prefix(VIA) {
                relays.extend(parse_node(relay));
            } else if let Ok(address) = text.parse() {
                addresses.push(address);
            }
        }
        addresses.truncate(PEER_ADDRESSES_MAX);
        relays.truncate(PEER_RELAYS_MAX);
        records.push(Record { node, addresses, relays });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(node: u8, addresses: &[&str]) -> Record {
        Record {
            node: [node; 32],
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            relays: Vec::new(),
        }
    }

    fn relayed(node: u8, relays: &[u8]) -> Record {
        let relays = relays.iter().map(|relay| [*relay; 32]).collect();
        Record { relays, ..record(node, &[]) }
    }

    #[test]
    fn announcements_round_trip_and_every_cut_is_refused_or_shorter() {
        let records =
            [record(1, &["10.0.0.1:7", "host.example:8"]), record(2, &[]), relayed(3, &[4, 5])];
        let bytes = encode(&records);
        assert_eq!(decode(bytes.clone()).unwrap(), records);
        for end in 0..bytes.len() {
            if let Ok(fewer) = decode(bytes.slice(..end)) {
                assert_eq!(fewer, records[..fewer.len()]);
            }
        }
    }

    #[test]
    fn limits_hold() {
        let many: Vec<Record> = (0..=ANNOUNCED_PEERS_MAX).map(|i| record(i as u8, &[])).collect();
        assert_eq!(decode(encode(&many)).unwrap().len(), ANNOUNCED_PEERS_MAX);
        let mut bytes = BytesMut::from(&encode(&many)[..]);
        bytes.extend_from_slice(&encode(&many[..1]));
        assert_eq!(decode(bytes.freeze()), Err(Malformed));
        let mut greedy = vec![0u8; 32];
        greedy.push(1 + TEXTS_MAX as u8);
        assert_eq!(decode(greedy.into()), Err(Malformed));
    }
}
