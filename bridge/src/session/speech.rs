//! `send_message`, `thinking` and `decision`: one path, the data differs.

use mesh::{
    api::command::{Command, Encryption, Say, Speech},
    name::id::AgentId,
    wire::entry::DedupId,
};
use protocol::{
    code::Code,
    request::{Decision, SendMessage, Thinking},
    value::{Metadata, SendOptions},
};

use super::{
    Me, Pending, Saying, Session,
    commands::{Next, at_most},
};
use crate::{convert, encrypted, limits, refusal::Refusal};

/// What an agent wants to say.
struct Utterance {
    room_id: String,
    speech: Speech,
    content: String,
    reply_to: Option<String>,
    mentions: Vec<String>,
    metadata: Option<Metadata>,
    options: Option<SendOptions>,
}

impl Session {
    pub(super) fn send_message(&self, me: &Me, it: SendMessage) -> Result<Next, Refusal> {
        let utterance = Utterance {
            room_id: it.room_id,
            speech: Speech::Chat,
            content: it.content,
            reply_to: it.reply_to,
            mentions: it.mentions,
            metadata: it.metadata,
            options: it.mesh,
        };
        self.say(me, utterance)
    }

    pub(super) fn think(&self, me: &Me, it: Thinking) -> Result<Next, Refusal> {
        let utterance = Utterance {
            room_id: it.room_id,
            speech: Speech::Thinking,
            content: it.content,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            options: it.mesh,
        };
        self.say(me, utterance)
    }

    pub(super) fn decide(&self, me: &Me, it: Decision) -> Result<Next, Refusal> {
        if it.metadata.as_ref().is_some_and(|metadata| !metadata.is_object()) {
            return Err(Refusal::invalid("`metadata` of a decision must be an object"));
        }
        let utterance = Utterance {
            room_id: it.room_id,
            speech: Speech::Decision,
            content: it.content,
            reply_to: None,
            mentions: Vec::new(),
            metadata: it.metadata,
            options: it.mesh,
        };
        self.say(me, utterance)
    }

    fn say(&self, me: &Me, it: Utterance) -> Result<Next, Refusal> {
        let (room, facts) = self.readable(me, &it.room_id)?;
        let is_sealed = encrypted::is_blob(&it.content);
        let encryption = if is_sealed { Encryption::EndToEnd } else { Encryption::None };
        if facts.encrypted && !is_sealed {
            let text = "the room is end-to-end encrypted: content must be a clw1: blob";
            return Err(Refusal::new(Code::PlaintextInEncryptedRoom, text));
        }
        let max = self.config.quota(me.standing).content_bytes_max;
        it.check(max.min(mesh::limits::CONTENT_BYTES_MAX))?;
        self.count(me)?;
        let options = it.options.unwrap_or_default();
        let agent = &me.caller.agent;
        let dedup = options.dedup.map(|id| DedupId::new(me.caller.key, agent, id.as_str()));
        let saying = Box::new(Saying {
            room,
            speech: it.speech,
            content: it.content.clone(),
            reply_to: it.reply_to.clone(),
            metadata: convert::metadata(it.speech, agent, it.metadata.as_ref()),
        });
        let say = Say {
            room,
            speech: it.speech,
            content: it.content,
            encryption,
            reply_to: it.reply_to,
            mentions: distinct(it.mentions),
            metadata: it.metadata.map(|json| String::from(json.get())),
            dedup,
        };
        let command = Command::Say { caller: me.caller.clone(), say };
        Ok(Next::ask(command, Pending::Say(saying)))
    }

    /// Takes one of the messages and acts that the key may send in a minute.
    pub(super) fn count(&self, me: &Me) -> Result<(), Refusal> {
        if let Some(max) = self.config.quota(me.standing).messages_per_minute
            && !self.meter.take(me.caller.key, max, self.now)
        {
            let text = format!("the key may send {max} messages a minute; wait a little");
            return Err(Refusal::new(Code::RateLimitMessages, text));
        }
        Ok(())
    }
}

impl Utterance {
    fn check(&self, content_bytes_max: usize) -> Result<(), Refusal> {
        let too_large = |text: String| Err(Refusal::new(Code::MessageTooLarge, text));
        if self.content.len() > content_bytes_max {
            return too_large(format!("`content` must have at most {content_bytes_max} bytes"));
        }
        let max = mesh::limits::MENTIONS_MAX;
        let id_max = mesh::limits::AGENT_ID_BYTES_MAX;
        if self.mentions.len() > max || self.mentions.iter().any(|id| id.len() > id_max) {
            return Err(Refusal::invalid(format!(
                "`mentions` must have at most {max} ids of at most {id_max} bytes"
            )));
        }
        at_most("reply_to", self.reply_to.as_deref().unwrap_or(""), limits::REPLY_TO_BYTES_MAX)?;
        let metadata = self.metadata.as_ref().map_or(0, |json| json.get().len());
        let mentions: usize = self.mentions.iter().map(|id| id.len() + 4).sum();
        let body = self.content.len() + metadata + mentions + limits::BODY_OVERHEAD_BYTES;
        if body > mesh::limits::PLAIN_BODY_BYTES_MAX {
            return too_large(String::from("`metadata` is too large to be sent with this content"));
        }
        Ok(())
    }
}

fn distinct(mut mentions: Vec<String>) -> Vec<AgentId> {
    mentions.sort_unstable();
    mentions.dedup();
    mentions.into_iter().map(AgentId::from).collect()
}
