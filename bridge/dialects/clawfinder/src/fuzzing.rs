//! Drivers for fuzzing: each gives one input to all that reads such. Not built but with the feature `fuzzing`.

use axum::response::IntoResponse as _;
use hyper::ext::ReasonPhrase;

use crate::{
    agents,
    fields::{Fields, Most, Purpose, Text},
    mail::negotiating,
    negotiation::{
        attachments::Attachment,
        fields,
        reading::{Message, Read, read},
        steps::Step,
        subject::{self, Subject},
        writing::{Draft, write},
    },
    problem::Problem,
};

/// A text that somebody has sent as a message of a negotiation, and one as its subject. A message that a node writes of it says the
/// same when it is read.
///
/// # Panics
/// If it does not: fuzzing looks for that.
pub fn negotiation(text: &str) {
    if let Subject::Step(step, session) = subject::read(text) {
        let again = subject::write(step, session);
        assert_eq!(subject::read(&again), Subject::Step(step, session), "{again}");
    }
    let Read::Message(message) = read(text) else { return };
    for step in Step::ALL {
        // Nothing that is wrong stops a reader.
        drop(message.violations(step, "s"));
    }
    let Some(step) = message.step else { return };
    let Some(written) = written(&message, step) else { return };
    let Read::Message(again) = read(&written) else { panic!("nobody reads {written:?}") };
    assert_eq!(again.step, Some(step));
    let session = message.value("session_id").unwrap_or_default();
    assert_eq!(again.violations(step, session), Vec::<String>::new(), "{written:?}");
    for field in fields::of(step) {
        let of = |message: &Message| message.value(field.key).unwrap_or_default().trim().to_owned();
        assert_eq!(of(&again), of(&message), "{} of {written:?}", field.key);
    }
    assert_eq!(again.body, message.body, "{written:?}");
    let attachments = |message: &Message| -> Vec<Attachment> {
        message.attachments().into_iter().map(|shown| shown.attachment).collect()
    };
    assert_eq!(attachments(&again), attachments(&message), "{written:?}");
}

fn written(message: &Message, step: Step) -> Option<String> {
    let known = fields::of(step).iter();
    let known = known.filter_map(|field| Some((field.key, message.value(field.key)?)));
    let draft = Draft {
        step,
        session: message.value("session_id")?,
        timestamp: "2026-11-27T00:00:00.000Z",
        fields: known.collect(),
        attachments: message.attachments().into_iter().map(|shown| shown.attachment).collect(),
        body: message.body.as_deref(),
    };
    write(&draft).ok()
}

/// The body of a request, read as each page reads its fields. A refusal is one line of ASCII.
///
/// # Panics
/// If it is not.
pub fn body(bytes: &[u8]) {
    for purpose in [Purpose::Make, Purpose::Replace, Purpose::Change] {
        let read = || Fields::read(bytes, purpose);
        let Ok(mut fields) = read().map_err(refused) else { return };
        drop(agents::Given::read(&mut fields, true));
        let _ = fields.done().map_err(refused);
        drop(read().and_then(negotiating::Given::read).map_err(refused));
        let Ok(mut fields) = read() else { return };
        drop(fields.text("title", Text::required(Most::Chars(256))));
        drop(fields.text("price", Text { of_number: true, ..Text::optional(Most::Chars(64)) }));
        drop(fields.object("metadata", 8_192));
        let _ = fields.integer("stars", 1, 5);
        let _ = fields.flag("is_active", true);
        let _ = fields.choice("price_type", &["free", "fixed"], 0);
        let _ = fields.done().map_err(refused);
    }
}

#[expect(clippy::boxed_local, reason = "as the readers give it")]
fn refused(problem: Box<Problem>) {
    let response = problem.into_response();
    let reason = response.extensions().get::<ReasonPhrase>().expect("a reason is one line");
    let bytes = reason.as_bytes();
    let is_plain = bytes.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic());
    assert!(is_plain && bytes.len() <= 200, "{reason:?}");
}

/// Sound inputs, to begin with: target, name and bytes.
#[must_use]
pub fn seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let hash = "0".repeat(64);
    let result = format!(
        "protocol: clawfinder/1\ntype: RESULT\nsession_id: s1\ntimestamp: t\ninvoice_amount: 5\n\
         invoice_wallet_address: w\ninvoice_payment_method: lobster.cash\nattachment_url: https://x.example/f\n\
         attachment_hash: sha256:{hash}\nattachment_size: 7\nattachment_filename: f\n\nthe work\n"
    );
    let init = "protocol: clawfinder/1\ntype: INIT\nsession_id: s1\ntimestamp: t\njob_ref: j\nneed: n\n\
         consumer_username: c\nindex_url: http://127.0.0.1:9230\n";
    let (head, text) = ("finder_negotiation", "finder_body");
    let profile = r#"{"username":"a-bot","name":"A","pgp_key":"k","payment_methods":["invoice"],"contact_methods":[{"method":"email","handle":"a@b.c"}]}"#;
    let job = r#"{"title":"t","description":"d","price":5,"price_type":"fixed","is_active":true,"metadata":{"k":[1]},"stars":5}"#;
    let step = r#"{"type":"result","to":"bob","session_id":"s1","invoice_payment_method":"invoice","body":"b","attachments":[{"url":"https://x.example/f","hash":"h","size":7,"filename":"f"}],"force":true}"#;
    vec![
        (head, "init", init.as_bytes().to_vec()),
        (head, "result", result.into_bytes()),
        (head, "subject", b"negotiate:init:s1".to_vec()),
        (text, "profile", profile.as_bytes().to_vec()),
        (text, "job", job.as_bytes().to_vec()),
        (text, "step", step.as_bytes().to_vec()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fuzzers, with few inputs: each sound one with one byte changed, cut, or doubled.
    #[test]
    fn damaged_inputs_are_read_or_refused() {
        for (target, _, sound) in seeds() {
            for at in 0..sound.len() {
                for byte in [0, b'\n', b':', b'"', b'\\', 0xff] {
                    let mut damaged = sound.clone();
                    damaged[at] = byte;
                    run(target, &damaged);
                }
                run(target, &sound[..at]);
                run(target, &[&sound[..at], &sound[..]].concat());
            }
            run(target, &sound);
        }
    }

    fn run(target: &str, bytes: &[u8]) {
        match target {
            "finder_body" => body(bytes),
            _ => negotiation(&String::from_utf8_lossy(bytes)),
        }
    }

    #[test]
    fn a_sound_message_is_written_and_read_again() {
        let all = seeds();
        let of = |name| all.iter().find(|(_, one, _)| *one == name).unwrap().2.clone();
        for (name, step) in [("init", Step::Init), ("result", Step::Result)] {
            let text = String::from_utf8(of(name)).unwrap();
            let Read::Message(message) = read(&text) else { panic!("{text}") };
            assert!(written(&message, step).is_some(), "{name} is not written");
        }
    }
}
