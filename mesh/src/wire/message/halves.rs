//! Messages with many signatures, in two: each half can be verified on a thread of its own.

use super::Message;
use crate::{
    limits::RECORDS_IN_HALF_MIN,
    wire::run::{Run, Verified},
};

impl Message<Run> {
    /// The message, or its first half and its second one.
    #[must_use]
    pub fn halves(mut self) -> (Message<Run>, Option<Message<Run>>) {
        let mut second = None;
        if let Message::Records(records) = &mut self
            && records.len() >= 2 * RECORDS_IN_HALF_MIN
        {
            second = Some(Message::Records(records.split_off(records.len() / 2)));
        }
        (self, second)
    }
}

impl Message<Verified> {
    /// The two halves of a message as one again. `None`: they are not of one message.
    #[must_use]
    pub fn with_half(self, second: Message<Verified>) -> Option<Message<Verified>> {
        let (Message::Records(mut records), Message::Records(rest)) = (self, second) else {
            return None;
        };
        records.extend(rest);
        Some(Message::Records(records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{id::MeshId, key::KeySecret},
        wire::record::{CollectionNumber, Draft, Record, RecordId, Space, Stamp},
    };

    const MESH: MeshId = MeshId([1; 16]);

    fn records(count: usize) -> Vec<Record> {
        let key = KeySecret::of(&"k".repeat(32));
        let (space, collection) = (Space::Mesh, CollectionNumber(u16::MAX));
        let draft = Draft { space, collection, id: RecordId([4; 16]), body: None };
        let record = |n| draft.clone().sign(&key, MESH, Stamp::at(n)).expect("it is long enough");
        (0..count as u64).map(record).collect()
    }

    #[test]
    fn two_halves_that_verify_are_the_message_in_its_order() {
        let all = records(2 * RECORDS_IN_HALF_MIN + 1);
        let (first, second) = Message::Records(all.clone()).halves();
        let second = second.expect("there are enough").verify(MESH).expect("they are signed");
        let whole = first.verify(MESH).expect("they are signed").with_half(second);
        assert!(matches!(whole, Some(Message::Records(records)) if records == all));
    }

    #[test]
    fn a_forged_record_is_found_in_either_half() {
        for at in [0, 2 * RECORDS_IN_HALF_MIN - 1] {
            let mut all = records(2 * RECORDS_IN_HALF_MIN);
            all[at].stamp.0 += 1;
            let (first, second) = Message::Records(all).halves();
            let second = second.expect("there are enough").verify(MESH);
            assert_eq!([first.verify(MESH).is_ok(), second.is_ok()], [at != 0, at == 0]);
        }
    }

    #[test]
    fn a_message_of_few_is_one() {
        let few = Message::<Run>::Records(records(2 * RECORDS_IN_HALF_MIN - 1));
        assert!(few.halves().1.is_none());
    }
}
