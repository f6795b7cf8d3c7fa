//! What the operator lets agents send: rules by session, and marks that the operator sets on single sessions. Pure, but for
//! the marks, which the node keeps on its disk.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use mesh::{
    api::policy::AgentToAgent,
    name::{
        group::{Sides, agent_ref},
        id::{AgentId, RoomId},
    },
};

use crate::limits::SESSION_MARKS_MAX;

/// The provider of sessions that are the mesh's own.
pub const PROVIDER: &str = "mesh";
/// The key of an agent's own session.
pub const MAIN: &str = "main";
/// Before the id of a public room.
pub const CHANNEL: &str = "mesh:channel:";
/// Before the id of a private room.
pub const GROUP: &str = "mesh:group:";
/// Before the id of the room of a task.
pub const TASK: &str = "subagent:";
/// The lobby's name in keys: its UUID is another one in every mesh.
pub const LOBBY: &str = "lobby";

/// Texts by which an agent says that it does not answer.
const SKIPS: [&str; 3] = ["REPLY_SKIP", "NO_REPLY", "ANNOUNCE_SKIP"];

/// Whether a text says that there is no answer.
#[must_use]
pub fn is_skip(text: &str) -> bool {
    SKIPS.contains(&text.trim())
}

/// The key of the direct session with an agent.
#[must_use]
pub fn key_of_agent(agent: &str) -> String {
    format!("agent:{}:main", agent_ref(agent))
}

/// A session, as the agent that asks sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its key.
    pub key: String,
    /// Its room's id, as keys have it. `None`: there is no room yet.
    pub id: Option<String>,
    /// Its kind.
    pub chat_type: ChatType,
}

impl Session {
    /// The direct session of an agent with another one.
    #[must_use]
    pub fn with(me: &str, agent: &str) -> Session {
        let key = if *me == *agent { MAIN.to_owned() } else { key_of_agent(agent) };
        Session { key, id: None, chat_type: ChatType::Direct }
    }

    /// A task that is not given yet.
    #[must_use]
    pub fn of_new_task() -> Session {
        Session { key: TASK.to_owned(), id: None, chat_type: ChatType::Direct }
    }
}

/// A room, as far as the key and the kind of its session follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its room.
    pub room: RoomId,
    /// Of a direct room: its two agents.
    pub sides: Option<&'a Sides>,
    /// A direct room for a task.
    pub task: bool,
    /// Every key sees it.
    pub public: bool,
    /// The lobby of the mesh.
    pub lobby: RoomId,
}

impl Place<'_> {
    /// The session, as the agent `me` sees it.
    #[must_use]
    pub fn session(&self, me: &str) -> Session {
        Session { key: self.key(me), id: Some(self.id()), chat_type: self.chat_type() }
    }

    /// Its id, as keys have it.
    #[must_use]
    pub fn id(&self) -> String {
        if self.room == self.lobby { LOBBY.to_owned() } else { self.room.to_uuid() }
    }

    /// The session's key, as the agent `me` says it.
    #[must_use]
    pub fn key(&self, me: &str) -> String {
        match self.sides {
            Some(_) if self.task => format!("{TASK}{}", self.room.to_uuid()),
            Some(sides) if **sides.peer_of(me) == *me => MAIN.to_owned(),
            Some(sides) => key_of_agent(sides.peer_of(me)),
            None if self.public => format!("{CHANNEL}{}", self.id()),
            None => format!("{GROUP}{}", self.id()),
        }
    }

    /// The session's kind.
    #[must_use]
    pub fn chat_type(&self) -> ChatType {
        match self.sides {
            Some(_) => ChatType::Direct,
            None if self.public => ChatType::Channel,
            None => ChatType::Group,
        }
    }
}

/// The kind of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatType {
    /// Of two agents, and of a task.
    Direct,
    /// A private room.
    Group,
    /// A public one.
    Channel,
}

/// Whether something may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It may.
    #[default]
    Allow,
    /// It may not.
    Deny,
}

/// A rule about sending. It matches if all that it gives matches; one that gives nothing matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRule {
    /// The provider of the session.
    pub provider: Option<String>,
    /// Its kind.
    pub chat_type: Option<ChatType>,
    /// The beginning of its key.
    pub key_prefix: Option<String>,
    /// What follows.
    pub action: Action,
}

impl SendRule {
    fn matches(&self, key: &str, chat_type: ChatType) -> bool {
        self.provider.as_ref().is_none_or(|provider| provider == PROVIDER)
            && self.chat_type.is_none_or(|wanted| wanted == chat_type)
            && self.key_prefix.as_ref().is_none_or(|prefix| key.starts_with(&**prefix))
    }
}

/// The rules about sending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendPolicy {
    /// Where no rule matches.
    pub default: Action,
    /// In the operator's order.
    pub rules: Vec<SendRule>,
}

/// Why sending is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedBy {
    /// The operator has said so of this session.
    Override,
    /// This rule, counted from 0.
    Rule(usize),
    /// No rule matches.
    Default,
}

impl SendPolicy {
    /// Whether the rules let something be sent: any rule that denies wins, whatever their order.
    ///
    /// # Errors
    /// Which rule denies it.
    pub fn judge(&self, key: &str, chat_type: ChatType) -> Result<(), DeniedBy> {
        let matching = || {
            let rules = self.rules.iter().enumerate();
            rules.filter(|(_, rule)| rule.matches(key, chat_type))
        };
        if let Some((nth, _)) = matching().find(|(_, rule)| rule.action == Action::Deny) {
            return Err(DeniedBy::Rule(nth));
        }
        if matching().next().is_some() || self.default == Action::Allow {
            return Ok(());
        }
        Err(DeniedBy::Default)
    }
}

/// What the operator has said of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Whether something may be sent there, whatever the rules say. `None`: as the rules say.
    pub sending: Option<Action>,
    /// It is listed among sessions that are over.
    pub archived: bool,
}

/// The session that a mark is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marked {
    /// As this agent says the key. `None`: as every agent of the node does.
    pub agent: Option<AgentId>,
    /// The session's key, or the id of its room.
    pub key: String,
}

/// Marks on sessions, by the operator of the node. At most [`SESSION_MARKS_MAX`].
#[derive(Debug, Default)]
pub struct Marks(RwLock<BTreeMap<Marked, Mark>>);

/// There are as many marks as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMarks;

impl Marks {
    /// Those of earlier starts.
    #[must_use]
    pub fn of(all: impl IntoIterator<Item = (Marked, Mark)>) -> Marks {
        Marks(RwLock::new(all.into_iter().take(SESSION_MARKS_MAX).collect()))
    }

    /// The mark of a session, as an agent sees it: one that names the agent stands before one that does not.
    #[must_use]
    pub fn get(&self, me: &str, session: &Session) -> Mark {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return Mark::default();
        }
        let mut mark = Mark::default();
        for agent in [Some(AgentId::from(me)), None] {
            for key in [Some(&session.key), session.id.as_ref()].into_iter().flatten() {
                let marked = Marked { agent: agent.clone(), key: key.clone() };
                let Some(found) = all.get(&marked) else { continue };
                mark.sending = mark.sending.or(found.sending);
                mark.archived |= found.archived;
            }
        }
        mark
    }

    /// All of them, with one changed.
    ///
    /// # Errors
    /// There is no room for one more.
    pub fn changed(
        &self,
        of: Marked,
        change: impl FnOnce(&mut Mark),
    ) -> Result<BTreeMap<Marked, Mark>, TooManyMarks> {
        let mut all = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut mark = all.get(&of).copied().unwrap_or_default();
        change(&mut mark);
        if mark == Mark::default() {
            all.remove(&of);
        } else {
            all.insert(of, mark);
        }
        if all.len() > SESSION_MARKS_MAX { Err(TooManyMarks) } else { Ok(all) }
    }

    /// From now on these count.
    pub fn replace(&self, all: BTreeMap<Marked, Mark>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }
}

/// All that the operator says of sending.
#[derive(Debug, Default)]
pub struct Policies {
    /// The agents that may write to each other.
    pub agent_to_agent: AgentToAgent,
    /// The rules about sending.
    pub send: SendPolicy,
    /// What stands before them.
    pub marks: Marks,
}

impl Policies {
    /// Whether an agent may send into a session.
    ///
    /// # Errors
    /// What denies it.
    pub fn may_send(&self, me: &str, session: &Session) -> Result<(), DeniedBy> {
        if session.key == MAIN {
            return Ok(());
        }
        match self.marks.get(me, session).sending {
            Some(Action::Allow) => Ok(()),
            Some(Action::Deny) => Err(DeniedBy::Override),
            None => self.send.judge(&session.key, session.chat_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(action: Action, chat_type: Option<ChatType>, key_prefix: Option<&str>) -> SendRule {
        let key_prefix = key_prefix.map(str::to_owned);
        SendRule { provider: None, chat_type, key_prefix, action }
    }

    fn policy(default: Action, rules: &[SendRule]) -> SendPolicy {
        SendPolicy { default, rules: rules.to_vec() }
    }

    #[test]
    fn any_rule_that_denies_wins_whatever_the_order() {
        let mesh =
            SendRule { provider: Some("mesh".to_owned()), ..rule(Action::Allow, None, None) };
        let channel = rule(Action::Deny, Some(ChatType::Channel), None);
        for (rules, nth) in [([mesh.clone(), channel.clone()], 1), ([channel, mesh], 0)] {
            let policy = policy(Action::Allow, &rules);
            let denied = policy.judge("mesh:channel:lobby", ChatType::Channel);
            assert_eq!(denied, Err(DeniedBy::Rule(nth)));
            assert_eq!(policy.judge("agent:bob:main", ChatType::Direct), Ok(()));
        }
    }

    #[test]
    fn what_no_rule_matches_goes_as_the_default_says() {
        let bots = rule(Action::Allow, None, Some("agent:bot-"));
        let policy = policy(Action::Deny, &[bots]);
        assert_eq!(policy.judge("agent:bot-1:main", ChatType::Direct), Ok(()));
        let denied = policy.judge("agent:bob:main", ChatType::Direct);
        assert_eq!(denied, Err(DeniedBy::Default));
        assert_eq!(SendPolicy::default().judge("agent:bob:main", ChatType::Direct), Ok(()));
    }

    #[test]
    fn a_rule_matches_if_all_that_it_gives_does() {
        let both = rule(Action::Deny, Some(ChatType::Group), Some("mesh:group:7"));
        let other = SendRule { provider: Some("discord".to_owned()), ..both.clone() };
        let only = |rule: &SendRule| policy(Action::Allow, std::slice::from_ref(rule));
        assert!(only(&both).judge("mesh:group:7a", ChatType::Group).is_err());
        assert!(only(&both).judge("mesh:group:8a", ChatType::Group).is_ok());
        assert!(only(&both).judge("mesh:group:7a", ChatType::Channel).is_ok());
        assert!(only(&other).judge("mesh:group:7a", ChatType::Group).is_ok());
        let everything = rule(Action::Deny, None, None);
        assert!(only(&everything).judge("subagent:1", ChatType::Direct).is_err());
    }

    fn room(id: u8, public: bool) -> Session {
        let lobby = RoomId([0; 16]);
        let room = RoomId([id; 16]);
        Place { room, sides: None, task: false, public, lobby }.session("ada")
    }

    #[test]
    fn the_operators_word_of_a_session_stands_before_the_rules() {
        let deny = policy(Action::Deny, &[]);
        let policies = Policies { send: deny, ..Policies::default() };
        let (lobby, other) = (room(0, true), room(1, false));
        assert_eq!(policies.may_send("ada", &lobby), Err(DeniedBy::Default));
        let set = |agent: Option<&str>, key: &str, action| {
            let marked = Marked { agent: agent.map(AgentId::from), key: key.to_owned() };
            let all = policies.marks.changed(marked, |mark| mark.sending = action);
            policies.marks.replace(all.expect("there is room"));
        };
        set(None, "mesh:channel:lobby", Some(Action::Allow));
        assert_eq!(policies.may_send("ada", &lobby), Ok(()));
        assert_eq!(policies.may_send("ada", &other), Err(DeniedBy::Default));
        set(Some("ada"), "mesh:channel:lobby", Some(Action::Deny));
        assert_eq!(policies.may_send("ada", &lobby), Err(DeniedBy::Override));
        assert_eq!(policies.may_send("bob", &lobby), Ok(()), "of one agent alone");
        set(Some("ada"), "mesh:channel:lobby", None);
        assert_eq!(policies.may_send("ada", &lobby), Ok(()));
        set(None, other.id.as_deref().expect("it has a room"), Some(Action::Allow));
        assert_eq!(policies.may_send("ada", &other), Ok(()), "by the id of its room");
        let bob = Session::with("ada", "bob");
        assert_eq!(policies.may_send("ada", &bob), Err(DeniedBy::Default));
        assert_eq!(policies.may_send("ada", &Session::with("ada", "ada")), Ok(()), "main");
    }

    #[test]
    fn there_are_so_many_marks_and_one_that_says_nothing_is_none() {
        let marked = |n: usize| Marked { agent: None, key: format!("subagent:{n}") };
        let mark = Mark { archived: true, ..Mark::default() };
        let marks = Marks::of((0..SESSION_MARKS_MAX).map(|n| (marked(n), mark)));
        let more = marks.changed(marked(SESSION_MARKS_MAX), |mark| mark.archived = true);
        assert_eq!(more, Err(TooManyMarks));
        let less = marks.changed(marked(0), |mark| mark.archived = false).expect("one less");
        assert_eq!(less.len(), SESSION_MARKS_MAX - 1);
    }
}
