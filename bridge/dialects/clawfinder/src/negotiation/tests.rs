use super::{
    attachments::{ATTACHMENTS_MAX, Attachment},
    fields,
    reading::{Message, Read, read},
    steps::{Counted, Role, Sent, Session, State, Step, allowed, fold, next, refusal},
    subject::{self, Subject},
    writing::{Draft, write},
};

use Role::{Consumer, Provider};
use Step::{Accept, Ack, Counter, Execute, Init, Propose, Reject, Result as Outcome};

const STATES: [Option<State>; 9] = [
    None,
    Some(State::Inited),
    Some(State::Acked),
    Some(State::Offered(Consumer)),
    Some(State::Offered(Provider)),
    Some(State::Accepted),
    Some(State::Executing),
    Some(State::Done),
    Some(State::Rejected),
];

/// The table of the page, row by row.
#[test]
fn steps_are_allowed_as_the_table_says() {
    let table: [(&[Step], &[Step]); 9] = [
        (&[Init], &[]),
        (&[Reject], &[Ack, Reject]),
        (&[Propose, Reject], &[Reject]),
        (&[Reject], &[Counter, Accept, Reject]),
        (&[Counter, Accept, Reject], &[Reject]),
        (&[Execute], &[]),
        (&[], &[Outcome]),
        (&[], &[Outcome]),
        (&[], &[]),
    ];
    for (state, (consumer, provider)) in STATES.into_iter().zip(table) {
        assert_eq!(allowed(state, Consumer), consumer, "{state:?}");
        assert_eq!(allowed(state, Provider), provider, "{state:?}");
    }
    let after = |state: State, step, by| next(Some(state), step, by).map(|it| it.to_string());
    assert_eq!(after(State::Acked, Propose, Consumer).as_deref(), Some("offered by consumer"));
    let countered = after(State::Offered(Consumer), Counter, Provider);
    assert_eq!(countered.as_deref(), Some("offered by provider"));
    let text = refusal(State::Rejected, Execute, "f75edaac");
    assert_eq!(text, "clawfinder/1 EXECUTE is not allowed in state rejected (session f75edaac)");
    for step in Step::ALL {
        assert_eq!(Step::read(step.lower()), Some(step));
        assert_eq!(step.lower().to_uppercase(), step.upper());
    }
}

/// Mails of a session, by who sent them, in the order of their stamps.
fn sent(mails: &[(char, Step)]) -> Vec<Sent<usize, usize, char>> {
    let one = |(at, (from, step)): (usize, &(char, Step))| Sent {
        stamp: at,
        id: at,
        from: *from,
        step: *step,
    };
    mails.iter().enumerate().map(one).collect()
}

fn counted(session: &Session<usize, char>) -> Vec<Counted> {
    session.mails.iter().map(|(_, counted, _)| *counted).collect()
}

#[test]
fn sessions_are_folded_from_mail_in_any_order() {
    let all = [
        ('c', Init),
        ('p', Ack),
        ('c', Propose),
        ('p', Counter),
        ('c', Counter),
        ('p', Accept),
        ('c', Execute),
        ('p', Outcome),
        ('p', Outcome),
    ];
    let whole = fold(sent(&all));
    assert_eq!((whole.consumer, whole.state), (Some('c'), Some(State::Done)));
    assert_eq!(counted(&whole), [Counted::Yes; 9]);
    assert_eq!((whole.role_of(&'c'), whole.role_of(&'p')), (Some(Consumer), Some(Provider)));
    let mut turned = sent(&all);
    for _ in 0..all.len() {
        turned.rotate_left(4);
        turned.swap(0, 5);
        assert_eq!(fold(turned.clone()), whole);
    }
    // Equal stamps: the lower id stands first.
    let mut equal = sent(&[('c', Init), ('p', Reject), ('p', Ack)]);
    equal.iter_mut().skip(1).for_each(|it| it.stamp = 1);
    assert_eq!(fold(equal.clone()).state, Some(State::Rejected));
    equal[1].id = 9;
    assert_eq!(fold(equal).mails.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 2, 9]);
    // Ids order nothing but equal stamps.
    let mut reversed = sent(&all);
    reversed.iter_mut().for_each(|it| it.id = 99 - it.id);
    assert_eq!(fold(reversed).state, Some(State::Done));
    assert_eq!(fold(sent(&[])).state, None);
}

#[test]
fn what_is_not_allowed_where_it_stands_does_nothing() {
    use Counted::{Late, No, Yes};
    type Case = (&'static [(char, Step)], &'static [Counted], Option<State>);
    let cases: [Case; 9] = [
        (&[('p', Ack)], &[No], None),
        (&[('c', Init), ('c', Ack)], &[Yes, No], Some(State::Inited)),
        (&[('c', Init), ('c', Init)], &[Yes, No], Some(State::Inited)),
        // Both began one of this id on two sides of a split.
        (&[('c', Init), ('p', Init), ('p', Ack)], &[Yes, Late, Yes], Some(State::Acked)),
        (&[('c', Init), ('c', Propose), ('p', Ack)], &[Yes, No, Yes], Some(State::Acked)),
        // REJECT and ACCEPT cross: the earlier stamp counts.
        (
            &[('c', Init), ('p', Ack), ('c', Propose), ('c', Reject), ('p', Accept)],
            &[Yes, Yes, Yes, Yes, Late],
            Some(State::Rejected),
        ),
        (
            &[('c', Init), ('p', Ack), ('c', Propose), ('p', Accept), ('c', Reject)],
            &[Yes, Yes, Yes, Yes, Late],
            Some(State::Accepted),
        ),
        // Of one's own offer.
        (
            &[('c', Init), ('p', Ack), ('c', Propose), ('c', Accept)],
            &[Yes, Yes, Yes, No],
            Some(State::Offered(Consumer)),
        ),
        // After one's own REJECT nothing is late.
        (&[('c', Init), ('p', Reject), ('p', Ack)], &[Yes, Yes, No], Some(State::Rejected)),
    ];
    for (mails, expected, state) in cases {
        let session = fold(sent(mails));
        assert_eq!((counted(&session).as_slice(), session.state), (expected, state), "{mails:?}");
    }
}

#[test]
fn subjects_are_read() {
    let uuid = "f75edaac-6fe5-4c8a-a123-0d6d4b6cb1a4";
    assert_eq!(subject::read(&subject::write(Propose, uuid)), Subject::Step(Propose, uuid));
    assert_eq!(subject::write(Init, "x"), "negotiate:init:x");
    assert_eq!(subject::read("negotiate:Ack:a.B_9-"), Subject::Step(Ack, "a.B_9-"));
    let long = "x".repeat(65);
    for wrong in [
        "negotiate:ack:",
        "negotiate:haggle:x",
        "negotiate:ack:a b",
        "negotiate:ack:a:b",
        &format!("negotiate:ack:{long}"),
    ] {
        assert_eq!(subject::read(wrong), Subject::Wrong, "{wrong}");
    }
    for ordinary in
        ["", "hello", "negotiate:", "negotiate: me:x", "negotiate:4:x", "Re: negotiate:ack:x"]
    {
        assert_eq!(subject::read(ordinary), Subject::Ordinary, "{ordinary}");
    }
}

fn draft<'a>(step: Step, fields: Vec<(&'a str, &'a str)>) -> Draft<'a> {
    let timestamp = "2026-11-21T01:45:32.339Z";
    Draft { step, session: "s-1", timestamp, fields, attachments: Vec::new(), body: None }
}

fn message(text: &str) -> Message {
    match read(text) {
        Read::Message(message) => message,
        other @ (Read::Ordinary | Read::Malformed(_)) => panic!("{other:?}: {text}"),
    }
}

fn attachment() -> Attachment {
    Attachment {
        url: "https://files.example/report.pgp".to_owned(),
        hash: format!("sha256:{}", "aB".repeat(32)),
        size: "10485760".to_owned(),
        filename: "report (1).pdf".to_owned(),
    }
}

/// All that a message may have.
fn full(step: Step) -> Draft<'static> {
    let mut draft = draft(step, fields::of(step).iter().rev().map(|it| (it.key, "a: b")).collect());
    if fields::has_body(step) {
        draft.attachments = vec![attachment(); ATTACHMENTS_MAX];
        draft.body = Some("type: INIT\r\n\n\nno newline at the end");
    }
    draft
}

#[test]
fn what_is_written_is_read_again() {
    for step in Step::ALL {
        let full = full(step);
        let text = write(&full).expect("it is complete");
        let message = message(&text);
        assert_eq!((message.step, message.body.as_deref()), (Some(step), full.body));
        assert_eq!(message.violations(step, "s-1"), Vec::<String>::new(), "{text}");
        let keys: Vec<&str> = message.fields.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys[..4], ["protocol", "type", "session_id", "timestamp"]);
        let own: Vec<&str> = fields::of(step).iter().map(|it| it.key).collect();
        assert_eq!(keys[4..4 + own.len()], own, "in the order of the table");
        let shown = message.attachments();
        assert!(shown.iter().all(|it| it.problem.is_none() && it.attachment == attachment()));
        assert_eq!(shown.len(), full.attachments.len());
    }
    let mut one = full(Execute);
    one.attachments.truncate(1);
    assert!(write(&one).expect("it is complete").contains("\nattachment_url: https://"));
    let accept = write(&draft(Accept, vec![])).expect("it is complete");
    let expected = "protocol: clawfinder/1\ntype: ACCEPT\nsession_id: s-1\ntimestamp: 2026-11-21T01:45:32.339Z\n";
    assert_eq!(accept, expected);
    let empty = Draft { body: Some(""), ..full(Execute) };
    assert_eq!(message(&write(&empty).expect("it is complete")).body.as_deref(), Some(""));
}

#[test]
fn what_cannot_be_read_back_is_not_written() {
    let field = |draft: &Draft<'_>| write(draft).map_err(|refused| refused.field);
    let err = |field: &str| Err(field.to_owned());
    for forged in ["x\ntype: ACCEPT", "x\r", "x\u{2028}y", "\u{85}", "x\0"] {
        let value = format!("a{forged}b");
        let draft = draft(Reject, vec![("reason", &value)]);
        assert_eq!(field(&draft), err("reason"), "{forged:?}");
    }
    assert_eq!(field(&draft(Reject, vec![])), err("reason"));
    assert_eq!(field(&draft(Reject, vec![("reason", "  ")])), err("reason"));
    assert_eq!(field(&draft(Reject, vec![("reason", "x"), ("reason", "y")])), err("reason"));
    assert_eq!(field(&draft(Accept, vec![("price", "1")])), err("price"));
    assert_eq!(field(&Draft { session: "a b", ..draft(Accept, vec![]) }), err("session_id"));
    assert_eq!(field(&Draft { body: Some("x"), ..draft(Accept, vec![]) }), err("body"));
    let long = "x".repeat(fields::LINE_BYTES_MAX);
    assert_eq!(field(&draft(Reject, vec![("reason", &long)])), err("reason"));
    let with = |attachments| Draft { attachments, ..draft(Execute, vec![]) };
    assert_eq!(field(&with(vec![attachment(); ATTACHMENTS_MAX + 1])), err("attachments"));
    let accept = Draft { attachments: vec![attachment()], ..draft(Accept, vec![]) };
    assert_eq!(field(&accept), err("attachments"));
    let changed = |change: &dyn Fn(&mut Attachment)| {
        let mut attachment = attachment();
        change(&mut attachment);
        field(&with(vec![attachment]))
    };
    for url in [
        "",
        "http://a/x",
        "https://",
        "https:///x",
        "https://u@h/x",
        "https://u:p@h/",
        "https://h/a b",
        "ftp://h",
        "/x",
        "https://:80/",
    ] {
        assert_eq!(changed(&|it| it.url = url.to_owned()), err("attachments"), "{url}");
    }
    for hash in ["", "aB", "sha256:aB", "md5:00"] {
        assert_eq!(changed(&|it| it.hash = hash.to_owned()), err("attachments"), "{hash}");
    }
    for size in ["", "-1", "1.5", "+1", "99999999999999999999"] {
        assert_eq!(changed(&|it| it.size = size.to_owned()), err("attachments"), "{size}");
    }
    for name in ["", ".", "..", "a/b", "a\\b", "a\u{7f}", &"x".repeat(256)] {
        assert_eq!(changed(&|it| it.filename = name.to_owned()), err("attachments"), "{name}");
    }
    assert!(changed(&|it| it.url = "HTTPS://h.example:8443/x?sig=a@b".to_owned()).is_ok());
}

#[test]
fn readers_are_tolerant() {
    let text = "\u{feff}Protocol: clawfinder/1\r\nTYPE: accept\r\nSession: s-1\r\ntimestamp : now\r\nX-Other: kept: whole\r\n";
    let read_back = message(text);
    assert_eq!(read_back.violations(Accept, "s-1"), Vec::<String>::new());
    assert_eq!(read_back.value("x_other"), Some("kept: whole"));
    let old = message("protocol: clawfinder/1\ntype: EXECUTE\nsession_id: s\nbody: the work");
    assert_eq!((old.body.as_deref(), old.value("body")), (Some("the work"), None));
    let both = message("protocol: clawfinder/1\nbody: kept\n\nbehind\r\n");
    assert_eq!((both.body.as_deref(), both.value("body")), (Some("behind\r\n"), Some("kept")));
    for ordinary in
        ["", "hello", "protocol: other/1\ntype: INIT", "\nprotocol: clawfinder/1", "a: b\na: b"]
    {
        assert_eq!(read(ordinary), Read::Ordinary, "{ordinary:?}");
    }
}

#[test]
fn forged_headers_make_a_message_malformed() {
    let forged = [
        "protocol: clawfinder/1\ntype: INIT\nneed: x\ntype: ACCEPT",
        "protocol: clawfinder/1\nsession_id: a\nSession: b",
        "protocol: clawfinder/1\nneed: two\nlines",
        "protocol: clawfinder/1\nprotocol: clawfinder/1",
        &format!("protocol: clawfinder/1\nneed: {}", "x".repeat(fields::LINE_BYTES_MAX)),
        &format!(
            "protocol: clawfinder/1\n{}",
            (0..99).map(|n| format!("k{n}: v\n")).collect::<String>()
        ),
    ];
    for text in forged {
        assert!(matches!(read(text), Read::Malformed(_)), "{text}");
    }
}

#[test]
fn violations_are_named() {
    let inside = message("protocol: clawfinder/1\ntype: EXECUTE\nsession_id: b\ntimestamp: t\n");
    let expected = [
        "its type is EXECUTE, that of its subject is ACK",
        "its session is b, that of its subject is a",
        "capabilities is missing",
        "pricing is missing",
    ];
    assert_eq!(inside.violations(Ack, "a"), expected);
    let shown = |lines: &str| {
        let text =
            format!("protocol: clawfinder/1\ntype: EXECUTE\nsession_id: a\ntimestamp: t\n{lines}");
        message(&text).violations(Execute, "a")
    };
    let all = |number: &str| {
        let attachment = attachment();
        let lines = attachment.lines(None);
        lines
            .map(|(key, value)| {
                format!(
                    "{}: {value}\n",
                    key.replace("attachment_", &format!("attachment_{number}"))
                )
            })
            .concat()
    };
    assert_eq!(shown(&[all("1_"), all("2_")].concat()), Vec::<String>::new());
    assert_eq!(shown(&[all("2_"), all("1_")].concat()), Vec::<String>::new(), "in any order");
    let mixed = "attachment: numbered and unnumbered attachments are mixed";
    assert_eq!(shown(&[all(""), all("1_")].concat()), [mixed; 2]);
    let gap = "attachment: the numbers of attachments have a gap";
    assert_eq!(shown(&[all("1_"), all("3_")].concat()), [gap]);
    assert_eq!(shown(&all("0_")), Vec::<String>::new(), "no attachment: an unknown field");
    assert_eq!(
        shown("attachment_url: https://h/x\n"),
        ["attachment: hash: This field is required."]
    );
    let paid =
        message("protocol: clawfinder/1\ninvoice_amount: 50 USDC\ninvoice_wallet_address:\n");
    assert!(fields::lacks_payment("lobster.cash", |key| paid.value(key)));
    assert!(!fields::lacks_payment("invoice", |key| paid.value(key)));
    assert!(!fields::lacks_payment("lobster.cash", |_| Some("x")));
}
