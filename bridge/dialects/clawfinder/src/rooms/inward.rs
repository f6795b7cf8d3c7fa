//! Mail into rooms: each once, with what is known of it.

use std::{sync::Arc, time::Instant};

use axum::http::Method;
use bridge::{
    read::Visitor,
    seam::call::{GetReceipts, Say},
};
use mesh::{name::number::Number, wire::record::RecordId};
use serde_json::{Value, json};

use super::guest::{Fault, Guest, State};
use crate::{
    http,
    index::Letter,
    limits::{
        RECEIPTS_ASKED_EVERY, ROOM_METADATA_BYTES_MAX, ROOM_NEWS_FOR_MS, ROOM_TEXT_BYTES_MAX,
        ROOMS_AGAIN_AFTER,
    },
    mail::notices,
    registry::{Registry, now_us},
    shapes::{self, Named},
};

const INBOX: &str = "/api/agents/me/inbox/";
/// The kind of a message that is mail, in its metadata.
pub(super) const MAIL: &str = "finder_mail";

/// Something that is to be said in a room.
struct Letterlike<'l> {
    id: RecordId,
    /// The correspondent's id, and its name. Without an id it is the node itself.
    from: (Option<&'l str>, &'l str),
    shown: &'l Value,
}

impl Guest {
    /// Puts the mail there that is in no room yet, the oldest first.
    pub(super) async fn put_mail(
        &self,
        registry: &Arc<Registry>,
        state: &mut State,
    ) -> Result<(), Fault> {
        let now = Instant::now();
        let letters: Vec<Letter> = {
            let index = registry.index();
            state.put.retain(|id| index.letters.get(*id).is_some() || state.notices.contains(id));
            state.later.retain(|id, _| index.letters.get(*id).is_some());
            let is_new = |letter: &Letter| {
                let waits = state.later.get(&letter.id).is_some_and(|at| *at > now);
                let is_old = index.letters.delivered(letter).is_some_and(is_old);
                !waits && !is_old && !state.put.contains(&letter.id)
            };
            let shows = |letter: &Letter| index.visible(letter.from).is_some();
            let received = index.letters.received(self.caller.print);
            received.filter(|letter| is_new(letter) && shows(letter)).collect()
        };
        for letter in letters {
            match self.put(registry, state, &letter).await {
                Ok(()) => drop(state.later.remove(&letter.id)),
                Err(Fault::Over) => return Err(Fault::Over),
                Err(Fault::Later(why)) => {
                    tracing::debug!(mail = %shapes::uuid(letter.id), why, "mail waits for its room");
                    state.later.insert(letter.id, Instant::now() + ROOMS_AGAIN_AFTER);
                }
            }
        }
        Ok(())
    }

    async fn put(
        &self,
        registry: &Arc<Registry>,
        state: &mut State,
        letter: &Letter,
    ) -> Result<(), Fault> {
        let gone = || Fault::Later("its sender has gone".to_owned());
        let sender: Named = registry.named(letter.from).ok_or_else(gone)?;
        let path = format!("{INBOX}{}/", shapes::uuid(letter.id));
        // As the account would read it. It is delivered with that, which ends nothing here: the room says what is in it.
        let shown = http::ask(registry, Some(&self.api_key), (Method::GET, &path), None).await?;
        let at = self.place_of(registry, state, Some((letter.from, &sender))).await?;
        let from = (Some(sender.id.as_str()), sender.username.as_str());
        self.say(registry, (state, at), Letterlike { id: letter.id, from, shown: &shown }).await
    }

    /// Puts words of the node itself there.
    pub(super) async fn put_notices(
        &self,
        registry: &Arc<Registry>,
        state: &mut State,
    ) -> Result<(), Fault> {
        for notice in notices::of(registry, &self.caller).await? {
            if notice.notice.is_read || !state.notices.insert(notice.id) {
                continue;
            }
            if state.put.contains(&notice.id) {
                continue;
            }
            let shown = notice.whole();
            let said = async {
                let at = self.place_of(registry, state, None).await?;
                let like = Letterlike { id: notice.id, from: (None, "clawmesh"), shown: &shown };
                self.say(registry, (state, at), like).await
            };
            if let Err(fault) = said.await {
                state.notices.remove(&notice.id);
                return Err(fault);
            }
        }
        Ok(())
    }

    async fn say(
        &self,
        registry: &Arc<Registry>,
        (state, at): (&mut State, usize),
        like: Letterlike<'_>,
    ) -> Result<(), Fault> {
        let Letterlike { id, from, shown } = like;
        let Some(place) = state.places().get_mut(at) else { return Ok(()) };
        let subject = shown["subject"].as_str().unwrap_or_default();
        let say = Say {
            mentions: vec![self.agent.to_string()],
            metadata: Some(metadata(id, shown)),
            dedup: Some(format!("finder {}", shapes::uuid(id))),
            expects_reply: Some(false),
            ..Say::chat(place.room, content(id, shown))
        };
        let speaker = self.speaker(registry, from).await?;
        let said = registry.desk.ask(&speaker, say).await?;
        state.put.insert(id);
        let Some(place) = state.places().get_mut(at) else { return Ok(()) };
        place.subject = Some(subject.to_owned());
        place.unread.insert(said.number, (id, said.message));
        Ok(())
    }

    /// Mail is read once its agent is known to have got it.
    pub(super) async fn note_read(
        &self,
        registry: &Arc<Registry>,
        holder: &Visitor,
        state: &mut State,
    ) -> Result<(), Fault> {
        if state.asked.is_some_and(|asked| asked.elapsed() < RECEIPTS_ASKED_EVERY) {
            return Ok(());
        }
        state.asked = Some(Instant::now());
        for at in 0..state.places().len() {
            let Some(place) = state.places().get(at) else { break };
            let Some((number, (_, message))) = place.unread.last_key_value() else { continue };
            let (number, ask) = (*number, GetReceipts { room: place.room, message: *message });
            let receipts = registry.desk.ask(holder, ask).await?;
            let has_it = receipts
                .is_some_and(|found| found.agents.iter().any(|one| one.agent == self.agent));
            if has_it {
                self.mark_read(registry, (state, at), number).await?;
            }
        }
        Ok(())
    }

    /// The agent has all mail of a room up to this number.
    pub(super) async fn mark_read(
        &self,
        registry: &Arc<Registry>,
        (state, at): (&mut State, usize),
        upto: Number,
    ) -> Result<(), Fault> {
        let read = json!({"is_read": true});
        loop {
            let Some(place) = state.places().get_mut(at) else { return Ok(()) };
            let Some(first) = place.unread.first_entry().filter(|it| *it.key() <= upto) else {
                return Ok(());
            };
            let path = format!("{INBOX}{}/", shapes::uuid(first.get().0));
            let asked = (Method::PATCH, path.as_str());
            match http::ask(registry, Some(&self.api_key), asked, Some(&read)).await {
                Ok(_) => {}
                // Its sender may have gone, and the mail with it.
                Err(problem) if problem.status().is_client_error() => {
                    tracing::debug!(why = problem.text(), "mail was not marked as read");
                }
                Err(problem) => return Err(problem.into()),
            }
            if let Some(place) = state.places().get_mut(at) {
                place.unread.pop_first();
            }
        }
    }
}

/// Whether it was delivered so long ago that it is no news in a room: its account has read it otherwise.
fn is_old(delivered_ms: u64) -> bool {
    delivered_ms.saturating_add(ROOM_NEWS_FOR_MS) < now_us() / 1_000
}

/// Subject and text. What does not fit is cut, and says so.
fn content(id: RecordId, shown: &Value) -> String {
    let text = |name: &str| shown[name].as_str().unwrap_or_default();
    let mut content = format!("Subject: {}\n\n{}", text("subject"), text("body"));
    if content.len() > ROOM_TEXT_BYTES_MAX {
        let mut end = ROOM_TEXT_BYTES_MAX;
        while !content.is_char_boundary(end) {
            end -= 1;
        }
        content.truncate(end);
        content.push_str(&format!(
            "\n\n[Cut here: the whole text is in the account's inbox, message {}.]",
            shapes::uuid(id)
        ));
    }
    content
}

fn metadata(id: RecordId, shown: &Value) -> String {
    let mesh = &shown["mesh"];
    let mut finder = json!({
        "id": shapes::uuid(id),
        "sender_id": shown["sender_id"],
        "subject": shown["subject"],
        "form": mesh["form"],
    });
    if let Some(signature) = mesh.get("signature") {
        finder["signature"] = signature.clone();
    }
    if let Some(Value::Object(negotiation)) = mesh.get("negotiation") {
        let mut negotiation = negotiation.clone();
        // It is in the text.
        negotiation.remove("body");
        if Value::Object(negotiation.clone()).to_string().len() > ROOM_METADATA_BYTES_MAX {
            negotiation.remove("fields");
            negotiation.remove("attachments");
        }
        finder["negotiation"] = Value::Object(negotiation);
    }
    json!({"kind": MAIL, "finder": finder}).to_string()
}
