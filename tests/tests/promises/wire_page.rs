//! The example in `docs/protocol/mesh.md` holds the very bytes that this code sends and takes.

use std::{fs, path::Path};

use mesh::{
    name::{
        group::Group,
        id::{KeyPrint, MeshId, MessageId, RoomId, RoomKey},
    },
    wire::{
        message::Message,
        run::Carried,
        seal::{Seal, SealContext},
    },
};

#[test]
fn the_example_on_the_page_is_read_verified_and_written_alike() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol/mesh.md");
    let page = fs::read_to_string(file).expect("the page is in the tree");
    let bytes = bytes(&page, "hex");
    let message = Message::decode(&bytes).expect("a message");
    assert_eq!(message.encode(), bytes, "there is one form");
    let verified = message.verify(MeshId([1; 16])).expect("the seal is good");
    let Message::Runs(runs) = verified else { panic!("not Runs") };
    let run = runs[0].run();
    assert_eq!((run.room, run.first, run.entries.len()), (RoomId([2; 16]), 1, 1));
    let Carried::Here(body) = &run.entries[0].body else { panic!("the body is apart") };
    assert!(body.windows(5).any(|window| window == b"hello"));
    let hash = runs[0].hash_at(1).expect("it has entry 1");
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(page.contains(&hash), "the header's hash is {hash}");
    let id = MessageId::new(run.room, run.log, 1).to_uuid();
    assert!(page.contains(&id), "the message's id is {id}");
}

#[test]
fn the_sealed_body_on_the_page_is_that_of_the_example() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol/mesh.md");
    let page = fs::read_to_string(file).expect("the page is in the tree");
    let message = Message::decode(&bytes(&page, "hex")).expect("a message");
    let Message::Runs(runs) = message else { panic!("not Runs") };
    let Carried::Here(body) = &runs[0].entries[0].body else { panic!("the body is apart") };
    let (room, key) = (runs[0].room, "an API key");
    assert!(page.contains(&format!("`{key}`")), "the page names the key");
    let seal = Seal::of_room(Group::Key(KeyPrint::of(key)), &RoomKey::of(key), room);
    let spot = SealContext { room, log: runs[0].log, seq: 1, kind: runs[0].entries[0].facts.kind };
    let sealed = bytes(&page, "sealed");
    assert_eq!(seal.seal(&spot, body), sealed, "the same everywhere");
    assert_eq!(seal.open(&spot, &sealed).as_deref(), Some(&body[..]));
}

/// The bytes in the page's one block of this kind, without the notes beside them.
fn bytes(page: &str, kind: &str) -> Vec<u8> {
    let block = page.split(&format!("```{kind}\n")).nth(1).expect("there is one");
    let lines = block.lines().take_while(|line| !line.starts_with("```"));
    let digits: Vec<u32> = lines
        .filter_map(|line| line.split('#').next())
        .flat_map(str::chars)
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    let bytes = digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]);
    bytes.map(|byte| u8::try_from(byte).expect("two digits are a byte")).collect()
}
