use super::*;

#[test]
fn a_private_room_is_its_keys_and_where_there_are_no_keys_everybodys_of_the_node() {
    let (own, other) = (KeyPrint([1; 16]), KeyPrint([2; 16]));
    let access =
        |public, sealed| Access { public, owner: Some(own), sealed, sides: None, shared: None };
    let may = |access: Access| [own, other, KeyPrint::OPEN].map(|key| access.includes(key, None));
    assert_eq!(may(access(true, false)), [true; 3]);
    assert_eq!(may(access(false, false)), [true, false, true]);
    assert_eq!(may(access(false, true)), [true, false, false], "it is of a key of the mesh");
}

#[test]
fn what_was_drawn_is_not_shown() {
    assert!(!format!("{:?}", Drawn::new([77; 32])).contains("77"));
}
