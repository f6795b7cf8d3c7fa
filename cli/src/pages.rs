//! The whole history of a room, page by page.

use client::client::Client;
use client::limits::PAGE_MESSAGES;
use protocol::object::Message;
use protocol::request::GetHistory;

use crate::outcome::Failure;

/// Gives every message of a room up to this number, oldest first; later messages are left out. After a
/// split some may come twice, under different numbers.
pub(crate) async fn messages_up_to(
    tip: u64,
    client: &Client,
    room_id: &str,
    mut take: impl FnMut(Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut cursor = 0;
    while cursor < tip {
        let ask = GetHistory {
            room_id: room_id.to_owned(),
            limit: PAGE_MESSAGES,
            before: None,
            since: None,
            since_seq: Some(cursor),
        };
        let page = client.call(ask).await?.messages;
        let Some(last) = page.last() else { break };
        if last.seq <= cursor {
            break;
        }
        cursor = last.seq;
        page.into_iter().try_for_each(&mut take)?;
    }
    Ok(())
}
