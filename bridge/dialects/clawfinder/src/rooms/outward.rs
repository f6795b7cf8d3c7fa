//! Messages of the agent in its rooms, which go out as mail; and those that cannot, which are answered.

use std::{collections::HashSet, sync::Arc};

use axum::http::{Method, StatusCode};
use bridge::{
    read::Visitor,
    seam::{
        call::{From, History, OneMessage, Say},
        event::Message,
    },
};
use mesh::{
    api::command::Speech,
    limits::FINDER_SUBJECT_BYTES_MAX,
    name::{
        id::{MessageId, RoomId},
        number::Number,
    },
    records::finder::Mail,
    wire::record::RecordId,
};
use serde_json::{Map, Value, json};

use super::{
    guest::{Fault, Guest, State},
    inward::MAIL,
};
use crate::{
    http::{self, MailNonce},
    limits::{ROOM_NEWS_FOR_MS, ROOM_PAGE, ROOM_PAGES_MAX},
    negotiation::reading::{Message as Step, Read, read},
    problem::Problem,
    registry::{Registry, now_us},
    usernames,
};

const SEND: &str = "/api/agents/me/send/";
const NEGOTIATE: &str = "/api/agents/me/negotiate/";
/// The kind of a message that says why one did not go out.
const REFUSED: &str = "finder_refused";
/// The label under which a message's mail gets its id.
const LABEL: &[u8] = b"clawmesh finder out";

/// What is to be asked of the index for a message.
enum Wanted {
    Send(Value),
    Step(Value),
    /// Nothing: it cannot be read.
    Refused(String),
}

impl Guest {
    /// Reads what is new in the rooms.
    pub(super) async fn read_places(
        &self,
        registry: &Arc<Registry>,
        holder: &Visitor,
        state: &mut State,
    ) -> Result<(), Fault> {
        for at in 0..state.places().len() {
            let Some(place) = state.places().get_mut(at).filter(|place| place.is_dirty) else {
                continue;
            };
            let room = place.room;
            match place.read {
                None => self.read_all(registry, holder, (state, at)).await?,
                Some(after) => {
                    let from = From::Number(after.0);
                    self.read_on(registry, holder, (state, at), (room, from)).await?;
                }
            }
            if let Some(place) = state.places().get_mut(at) {
                place.is_dirty = false;
            }
        }
        Ok(())
    }

    /// A room that nothing is known of: what is in it says which mail is there, and what was refused.
    async fn read_all(
        &self,
        registry: &Arc<Registry>,
        holder: &Visitor,
        (state, at): (&mut State, usize),
    ) -> Result<(), Fault> {
        let Some(room) = state.places().get(at).map(|place| place.room) else { return Ok(()) };
        let (mut from, mut waiting, mut refused) = (From::Newest, Vec::new(), HashSet::new());
        let mut read = Number(0);
        for _ in 0..ROOM_PAGES_MAX {
            let call = History { room, from, limit: ROOM_PAGE, before_ms: None };
            let page = registry.desk.ask(holder, call).await?;
            let Some(first) = page.messages.first().map(|message| message.number) else { break };
            for message in page.messages.into_iter().rev() {
                read = read.max(message.number);
                if self.is_to_go(&message) {
                    waiting.push(message);
                } else if self.is_speaker(&message.said.agent) {
                    refused.extend(self.note(registry, (state, at), &message));
                }
            }
            from = From::Below(first);
        }
        waiting.reverse();
        for message in waiting {
            if !refused.contains(&message.message.to_uuid()) {
                self.send(registry, holder, (state, at), &message).await?;
            }
        }
        if let Some(place) = state.places().get_mut(at) {
            place.read = Some(read);
        }
        Ok(())
    }

    async fn read_on(
        &self,
        registry: &Arc<Registry>,
        holder: &Visitor,
        (state, at): (&mut State, usize),
        (room, mut from): (RoomId, From),
    ) -> Result<(), Fault> {
        loop {
            let call = History { room, from, limit: ROOM_PAGE, before_ms: None };
            let messages = registry.desk.ask(holder, call).await?.messages;
            let is_all = (messages.len() as u64) < ROOM_PAGE;
            for message in messages {
                if self.is_to_go(&message) {
                    self.send(registry, holder, (state, at), &message).await?;
                }
                from = From::Number(message.number.0);
                if let Some(place) = state.places().get_mut(at) {
                    place.read = Some(message.number);
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Whether a message is its agent's, for its correspondent, and not too old.
    fn is_to_go(&self, message: &Message) -> bool {
        message.said.agent == self.agent
            && message.speech == Speech::Chat
            && message.wall_ms.saturating_add(ROOM_NEWS_FOR_MS) >= now_us() / 1_000
    }

    /// Takes down that some mail is in a room. What it says instead, if it is a refusal: of which message.
    fn note(
        &self,
        registry: &Registry,
        (state, at): (&mut State, usize),
        message: &Message,
    ) -> Option<String> {
        let told = metadata_of(message);
        if told["kind"] == REFUSED {
            return message.said.reply_to.clone();
        }
        let id = told["finder"]["id"].as_str().and_then(usernames::uuid).map(RecordId);
        let id = id.filter(|_| told["kind"] == MAIL)?;
        state.put.insert(id);
        let is_unread = {
            let index = registry.index();
            let letter = index.letters.get(id);
            letter.is_some_and(|letter| !index.letters.is_read(&letter))
        };
        let place = state.places.as_mut()?.get_mut(at)?;
        if place.peer.is_none() {
            state.notices.insert(id);
        }
        if is_unread {
            place.unread.insert(message.number, (id, message.message));
        }
        // Read from the newest on.
        let subject = told["finder"]["subject"].as_str().unwrap_or_default();
        place.subject.get_or_insert_with(|| subject.to_owned());
        None
    }

    /// Sends a message as mail, once; or says why it cannot be sent.
    async fn send(
        &self,
        registry: &Arc<Registry>,
        holder: &Visitor,
        (state, at): (&mut State, usize),
        message: &Message,
    ) -> Result<(), Fault> {
        let nonce = self.nonce(message.message)?;
        let is_sent = |nonce| {
            let id = Mail::id_of(self.caller.print, nonce);
            registry.index().letters.get(id).is_some()
        };
        // Who speaks has got what was said before.
        self.mark_read(registry, (state, at), message.number).await?;
        let Some(place) = state.places().get(at) else { return Ok(()) };
        if is_sent(&nonce.0) {
            return Ok(());
        }
        let (room, peer, newest) = (place.room, place.peer.clone(), place.subject.clone());
        let subject = match &message.said.reply_to {
            Some(reply) => self.subject_of(registry, holder, (room, reply)).await?.or(newest),
            None => newest,
        };
        let wanted = match &peer {
            Some(peer) => wanted(&message.said.content, peer, subject),
            None => Wanted::Refused("nobody reads what is written to the node itself".to_owned()),
        };
        let (path, body) = match wanted {
            Wanted::Send(body) => (SEND, body),
            Wanted::Step(body) => (NEGOTIATE, body),
            Wanted::Refused(why) => return self.refuse(registry, room, (message, &why)).await,
        };
        let (asked, given) = ((Method::POST, path), (Some(&body), Some(nonce)));
        match http::ask_once(registry, Some(&self.api_key), asked, given).await {
            Ok(_) => Ok(()),
            Err(problem) if is_final(&problem) => {
                self.refuse(registry, room, (message, problem.text())).await
            }
            Err(problem) => Err(problem.into()),
        }
    }

    /// What the id of the mail is made of that a message goes out as.
    fn nonce(&self, message: MessageId) -> Result<MailNonce, Fault> {
        let derived = self.caller.secret.derive(&[LABEL, &message.0].concat());
        let derived = derived.map_err(|short| Fault::Later(short.to_string()))?;
        let mut nonce = [0; 16];
        nonce.iter_mut().zip(derived.iter()).for_each(|(to, from)| *to = *from);
        Ok(MailNonce(nonce))
    }

    /// The subject of the mail that a message in the room is.
    async fn subject_of(
        &self,
        registry: &Registry,
        holder: &Visitor,
        (room, message): (RoomId, &str),
    ) -> Result<Option<String>, Fault> {
        let Some(message) = MessageId::from_uuid(message) else { return Ok(None) };
        let found = registry.desk.ask(holder, OneMessage { room, message }).await?;
        let told = found.filter(|found| self.is_speaker(&found.said.agent));
        let told = told.map(|found| metadata_of(&found)).filter(|told| told["kind"] == MAIL);
        Ok(told.and_then(|told| told["finder"]["subject"].as_str().map(str::to_owned)))
    }

    async fn refuse(
        &self,
        registry: &Registry,
        room: RoomId,
        (message, why): (&Message, &str),
    ) -> Result<(), Fault> {
        let id = message.message.to_uuid();
        let metadata = json!({"kind": REFUSED, "finder": {"message_id": id, "reason": why}});
        let say = Say {
            reply_to: Some(id.clone()),
            mentions: vec![self.agent.to_string()],
            metadata: Some(metadata.to_string()),
            dedup: Some(format!("finder refused {id}")),
            expects_reply: Some(false),
            ..Say::chat(room, format!("This message was not sent: {why}"))
        };
        let speaker = self.speaker(registry, (None, "clawmesh")).await?;
        registry.desk.ask(&speaker, say).await?;
        Ok(())
    }
}

fn metadata_of(message: &Message) -> Value {
    let json = message.said.metadata.as_deref();
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Whether it would come to the same again. A full mailbox may have room in some days: its agent is to know.
fn is_final(problem: &Problem) -> bool {
    let status = problem.status();
    let passes = [StatusCode::TOO_MANY_REQUESTS, StatusCode::UNAUTHORIZED];
    (status.is_client_error() && !passes.contains(&status))
        || status == StatusCode::INSUFFICIENT_STORAGE
}

fn wanted(content: &str, peer: &str, newest: Option<String>) -> Wanted {
    match read(content) {
        Read::Message(step) => negotiation(&step, peer),
        Read::Malformed(why) => Wanted::Refused(format!("malformed clawfinder/1 message: {why}")),
        Read::Ordinary => {
            let (subject, body) = split(content, newest);
            Wanted::Send(json!({"recipient_id": peer, "subject": subject, "body": body}))
        }
    }
}

/// A message that begins with a subject has that one.
fn split(content: &str, newest: Option<String>) -> (String, &str) {
    let (first, rest) = content.split_once('\n').unwrap_or((content, ""));
    if let Some(subject) = first.strip_prefix("Subject:") {
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        return (cut(subject.trim()), rest);
    }
    let subject =
        newest.map(
            |subject| {
                if subject.starts_with("Re: ") { subject } else { format!("Re: {subject}") }
            },
        );
    (cut(&subject.unwrap_or_default()), content)
}

fn cut(subject: &str) -> String {
    let mut end = subject.len().min(FINDER_SUBJECT_BYTES_MAX);
    while !subject.is_char_boundary(end) {
        end -= 1;
    }
    subject[..end].to_owned()
}

/// A step, which is written anew by the node.
fn negotiation(step: &Step, peer: &str) -> Wanted {
    let mut body = Map::new();
    let own = ["protocol", "timestamp"];
    for (key, value) in step.fields.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
        if !key.starts_with("attachment_") {
            body.insert(key.clone(), json!(value));
        }
    }
    body.insert("to".to_owned(), json!(peer));
    body.remove("force");
    body.remove("attachments");
    body.remove("body");
    let attachments = step.attachments();
    if !attachments.is_empty() {
        let attachments = attachments.into_iter().map(|shown| {
            let given = shown.attachment;
            json!({"url": given.url, "hash": given.hash, "size": given.size, "filename": given.filename})
        });
        body.insert("attachments".to_owned(), attachments.collect());
    }
    if let Some(text) = &step.body {
        body.insert("body".to_owned(), json!(text));
    }
    Wanted::Step(Value::Object(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_message_may_be_its_subject() {
        let newest = || Some("An offer".to_owned());
        let split = |content, newest| {
            let (subject, body) = split(content, newest);
            (subject, body.to_owned())
        };
        let is = |subject: &str, body: &str| (subject.to_owned(), body.to_owned());
        assert_eq!(split("Yes.\nBye", newest()), is("Re: An offer", "Yes.\nBye"));
        assert_eq!(split("Yes", Some("Re: An offer".to_owned())), is("Re: An offer", "Yes"));
        assert_eq!(split("Yes", None), is("", "Yes"));
        assert_eq!(split("Subject: Tea \n\nat four\n\n", newest()), is("Tea", "at four\n\n"));
        assert_eq!(split("Subject: Tea\nat four", newest()), is("Tea", "at four"));
        assert_eq!(split("Subject: Tea", newest()), is("Tea", ""));
        let long = format!("Subject: {}", "\u{e9}".repeat(400));
        assert_eq!(split(&long, None).0.len(), 512);
    }

    #[test]
    fn a_step_is_what_its_fields_say_to_the_room_s_correspondent() {
        let text = "protocol: clawfinder/1\ntype: RESULT\nsession_id: s1\nto: mallory\nforce: true\n\
             invoice_payment_method: invoice\nattachment_url: https://x.example/f\n\nthe work";
        let Wanted::Step(body) = wanted(text, "bob", None) else { panic!("a step") };
        assert_eq!((&body["to"], &body["type"]), (&json!("bob"), &json!("RESULT")));
        assert_eq!((&body["session_id"], &body["body"]), (&json!("s1"), &json!("the work")));
        assert_eq!(body["attachments"][0]["url"], "https://x.example/f");
        assert!(body.get("force").is_none() && body.get("protocol").is_none(), "{body}");
        let twice = "protocol: clawfinder/1\ntype: ACK\ntype: REJECT";
        assert!(matches!(wanted(twice, "bob", None), Wanted::Refused(_)));
    }
}
