//! The parts of a room's past that are shown, and to whom: to members, or to strangers, who read without a seat. One place for all
//! that tell of rooms: the page of those who look on, and [replays](crate::replay).
//!
//! What strangers see is listed: a kind of message that nobody thought of is chat if it has words alone, and its metadata
//! is never shown. Texts pass [`redacted`].

use mesh::api::command::Speech;
use serde_json::Value;

use crate::{
    redact::{prints, redacted, sha},
    seam::{event::Message, principal::user_of},
};

/// In the place of a text that only members can read.
const ENCRYPTED: &str = "[encrypted]";
/// The beginning of a text that is encrypted end to end.
const BLOB: &str = "clw1:";

/// The name in a message's metadata under which its author says who may see it.
pub const VISIBILITY: &str = "visibility";
/// In the room alone: no stranger is shown it.
pub const ROOM_ONLY: &str = "room_only";

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// Who has a seat, or the key of the room.
    Members,
    /// Anybody.
    Strangers,
}

/// A message, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Its text.
    Chat,
    /// The record of a commit.
    Commit(Commit),
    /// The record of a request to merge.
    Opened(PullRequest),
    /// The record of one that was merged.
    Merged(PullRequest),
}

/// What is shown of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its name, or nothing if that is none.
    pub sha: String,
    /// Its branch.
    pub branch: String,
    /// The first line of its message.
    pub subject: String,
    /// Lines that it adds.
    pub additions: u64,
    /// Lines that it takes away.
    pub deletions: u64,
    /// Lines that it changes.
    pub total_changes: u64,
}

/// What is shown of a request to merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// The branch that is merged, or nothing if that is not known.
    pub head: String,
    /// The branch into which.
    pub base: String,
}

/// Whether the author of a message keeps it from strangers.
#[must_use]
pub fn is_room_only(metadata: Option<&str>) -> bool {
    let all = metadata.and_then(|json| serde_json::from_str::<Value>(json).ok());
    all.is_some_and(|all| all[VISIBILITY] == ROOM_ONLY)
}

impl Eyes {
    /// A text.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        match self {
            Eyes::Members => text.to_owned(),
            Eyes::Strangers => redacted(text),
        }
    }

    /// Words of a room, whose contents are encrypted or not: those that are, nobody can read here.
    #[must_use]
    pub fn words(self, text: &str, encrypted: bool) -> String {
        if encrypted || text.starts_with(BLOB) { ENCRYPTED.to_owned() } else { self.text(text) }
    }

    /// The id of an agent or person. Of a person it has the print of a key in it, which is no matter of strangers.
    #[must_use]
    pub fn agent(self, agent: &str) -> String {
        match self {
            Eyes::Members => agent.to_owned(),
            Eyes::Strangers => redacted(user_of(agent).unwrap_or(agent)),
        }
    }

    /// A text of a page that is as it was written, but for prints of keys in ids of people.
    #[must_use]
    pub fn verbatim(self, text: &str) -> String {
        match self {
            Eyes::Members => text.to_owned(),
            Eyes::Strangers => prints(text),
        }
    }

    /// A page, as JSON, that was written for members: its texts are seen as by [`Eyes::verbatim`], wherever they stand.
    pub fn reads(self, page: &mut Value) {
        match (self, page) {
            (Eyes::Members, _)
            | (Eyes::Strangers, Value::Null | Value::Bool(_) | Value::Number(_)) => {}
            (Eyes::Strangers, Value::String(text)) => *text = prints(text),
            (Eyes::Strangers, Value::Array(all)) => all.iter_mut().for_each(|one| self.reads(one)),
            (Eyes::Strangers, Value::Object(fields)) => {
                let seen = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.reads(&mut value);
                    (prints(&name), value)
                });
                *fields = seen.collect();
            }
        }
    }

    /// The record of a repository, as JSON, that was written for members: without addresses of people.
    pub fn reads_record(self, record: &mut Value) {
        let author = record.pointer_mut("/commit_info/author").and_then(Value::as_object_mut);
        if let (Eyes::Strangers, Some(author)) = (self, author) {
            author.remove("email");
        }
    }

    /// A message. `None`: it is not shown, or another one tells of the same.
    #[must_use]
    pub fn sees(self, message: &Message) -> Option<Shown> {
        let said = &*message.said;
        let mut all =
            said.metadata.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok());
        let is_kept = || {
            let is_room_only = all.as_ref().is_some_and(|all| all[VISIBILITY] == ROOM_ONLY);
            is_room_only || said.conversation.is_some() || message.speech == Speech::Thinking
        };
        if self == Eyes::Strangers && is_kept() {
            return None;
        }
        match message.speech {
            Speech::Thinking | Speech::Decision => return Some(Shown::Chat),
            Speech::Chat => {}
        }
        let Some(all) = &mut all else { return Some(Shown::Chat) };
        let kind = all["kind"].as_str().unwrap_or_default().to_owned();
        let git = all.get_mut("git").map(Value::take).filter(Value::is_object);
        match &*kind {
            "git.commit" => git.map(|git| Shown::Commit(self.commit(&git))),
            "git.pr_opened" => git.map(|git| Shown::Opened(self.pull_request(&git))),
            "git.pr_merged" => git.map(|git| Shown::Merged(self.pull_request(&git))),
            "git.pr_reviewed"
            | "approval_request"
            | "approval_decision"
            | "approval_discussion" => None,
            "request" | "cancel" | "timeout" if self == Eyes::Strangers => None,
            _ => Some(Shown::Chat),
        }
    }

    fn commit(self, git: &Value) -> Commit {
        let count = |name: &str| git["changes"]["stats"][name].as_u64().unwrap_or_default();
        let message = at(git, "/commit_info/message");
        Commit {
            sha: sha(at(git, "/commit_info/sha")).to_owned(),
            branch: self.text(at(git, "/commit_info/branch")),
            subject: self.text(message.lines().next().unwrap_or_default()),
            additions: count("additions"),
            deletions: count("deletions"),
            total_changes: count("total_changes"),
        }
    }

    fn pull_request(self, git: &Value) -> PullRequest {
        PullRequest {
            number: git["pull_request"]["number"].as_u64().unwrap_or_default(),
            title: self.text(at(git, "/pull_request/title")),
            url: self.text(at(git, "/pull_request/url")),
            head: self.text(at(git, "/branch_info/head/name")),
            base: self.text(at(git, "/final_state/base_branch")),
        }
    }
}

fn at<'a>(git: &'a Value, path: &str) -> &'a str {
    git.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mesh::{
        Proof,
        name::{
            id::{EntryRef, KeyPrint, LogId, MessageId, NodeId, RoomId},
            number::Number,
        },
        wire::{conversation::Conversation, entry::Said},
    };
    use serde_json::json;

    use super::*;
    use crate::seam::principal::principal;

    fn message(speech: Speech, metadata: Option<&Value>) -> Message {
        Message {
            room: RoomId([1; 16]),
            number: Number(1),
            canonical: Number(1),
            numbers: Vec::new(),
            message: MessageId([2; 16]),
            speech,
            wall_ms: 0,
            by: NodeId([4; 32]),
            said: Arc::new(Said {
                agent: "bob".into(),
                name: "Bob".to_owned(),
                content: "words".to_owned(),
                reply_to: None,
                mentions: Vec::new(),
                metadata: metadata.map(Value::to_string),
                dedup: None,
                turn: None,
                id: None,
                key: None,
                conversation: None,
            }),
            proof: Proof::default(),
            entry: EntryRef { log: LogId { author: NodeId([4; 32]), incarnation: 0 }, seq: 1 },
            fate: None,
        }
    }

    #[test]
    fn strangers_see_less_than_members_and_no_more_than_is_listed() {
        let chat = |metadata: Value| message(Speech::Chat, Some(&metadata));
        let mut asked = message(Speech::Chat, None);
        let of = Conversation {
            begun_by: None,
            turn: 0,
            max_turns: 1,
            hops: 0,
            expects_reply: true,
            answers: None,
            announces: false,
            of_person: false,
        };
        Arc::make_mut(&mut asked.said).conversation = Some(of);
        for (message, members, strangers) in [
            (message(Speech::Chat, None), true, true),
            (message(Speech::Decision, None), true, true),
            (message(Speech::Thinking, None), true, false),
            (chat(json!({"kind": "anything"})), true, true),
            (chat(json!({"visibility": "room_only"})), true, false),
            (
                chat(json!({"visibility": "room_only", "kind": "git.commit", "git": {}})),
                true,
                false,
            ),
            (chat(json!({"kind": "request"})), true, false),
            (chat(json!({"kind": "timeout"})), true, false),
            (chat(json!({"kind": "approval_discussion"})), false, false),
            (chat(json!({"kind": "git.pr_reviewed", "git": {}})), false, false),
            (chat(json!({"kind": "git.commit"})), false, false),
            (asked, true, false),
        ] {
            let sees = |eyes: Eyes| eyes.sees(&message).is_some();
            assert_eq!(
                (sees(Eyes::Members), sees(Eyes::Strangers)),
                (members, strangers),
                "{message:?}"
            );
        }
    }

    #[test]
    fn of_a_record_strangers_see_no_address_and_one_line() {
        let git = json!({
            "commit_info": {
                "sha": "abc123def456789012345678901234567890abcd", "branch": "main",
                "message": "by ada@example.org\n\nmore", "author": {"email": "ada@example.org"},
            },
            "changes": {"stats": {"additions": 2, "deletions": 1, "total_changes": 3}},
        });
        let said = message(Speech::Chat, Some(&json!({"kind": "git.commit", "git": git})));
        let mut seen = Commit {
            sha: "abc123def456789012345678901234567890abcd".to_owned(),
            branch: "main".to_owned(),
            subject: "by [EMAIL]".to_owned(),
            additions: 2,
            deletions: 1,
            total_changes: 3,
        };
        assert_eq!(Eyes::Strangers.sees(&said), Some(Shown::Commit(seen.clone())));
        seen.subject = "by ada@example.org".to_owned();
        assert_eq!(Eyes::Members.sees(&said), Some(Shown::Commit(seen)));
    }

    #[test]
    fn strangers_see_no_print_of_a_key_and_nobody_reads_what_is_encrypted() {
        let person = principal(KeyPrint([0xab; 16]), "ada");
        assert_eq!(Eyes::Strangers.agent(&person), "ada");
        assert_eq!(Eyes::Strangers.text(&format!("ask @{person}, or bob")), "ask @ada, or bob");
        assert_eq!(Eyes::Members.agent(&person), *person);
        for eyes in [Eyes::Members, Eyes::Strangers] {
            assert_eq!(eyes.words("clw1:AAAA", false), ENCRYPTED);
            assert_eq!(eyes.words("anything", true), ENCRYPTED);
            assert_eq!(eyes.words("anything", false), "anything");
        }
    }

    #[test]
    fn a_page_has_no_print_for_strangers_in_any_text_of_it() {
        let ada = principal(KeyPrint([0xab; 16]), "ada").to_string();
        let page = json!({
            "by": ada, "n": 1, "all": [null, true, {"text": format!("thanks, @{ada}!")}],
            "votes": {ada.clone(): "yes"},
        });
        let (mut own, mut all) = (page.clone(), page.clone());
        Eyes::Members.reads(&mut own);
        assert_eq!(own, page);
        Eyes::Strangers.reads(&mut all);
        let seen = json!({
            "by": "ada", "n": 1, "all": [null, true, {"text": "thanks, @ada!"}],
            "votes": {"ada": "yes"},
        });
        assert_eq!(all, seen);
        let record = json!({"commit_info": {"sha": "1", "author": {"name": "n", "email": "e"}}});
        let (mut own, mut all) = (record.clone(), record.clone());
        Eyes::Members.reads_record(&mut own);
        Eyes::Strangers.reads_record(&mut all);
        assert_eq!(own, record);
        assert_eq!(all, json!({"commit_info": {"sha": "1", "author": {"name": "n"}}}));
    }
}
